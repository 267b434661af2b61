//! The time zone whose days and hours people mean: that of this machine, or UTC if they ask for it.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::Time;

static UTC: AtomicBool = AtomicBool::new(false);

/// From now on, days and hours are those of UTC in the whole program.
pub fn use_utc() {
    UTC.store(true, Ordering::Relaxed);
}

/// The zone that days and hours are counted in.
pub fn zone() -> TimeZone {
    if UTC.load(Ordering::Relaxed) { TimeZone::UTC } else { TimeZone::system() }
}

/// A moment on the clocks of that zone; none if it is outside of all calendars.
pub fn zoned(time: Time) -> Option<Zoned> {
    Some(Timestamp::from_microsecond(time.micros()).ok()?.to_zoned(zone()))
}

/// Whether days and hours are those of UTC.
pub fn is_utc() -> bool {
    let zone = zone();
    zone == TimeZone::UTC || matches!(zone.iana_name(), Some("UTC" | "Etc/UTC"))
}

/// The number of a moment's day in that zone, counted from 1970-01-01.
pub fn day_number(time: Time) -> i64 {
    let Some(here) = zoned(time) else { return time.day() };
    time.micros().saturating_add(i64::from(here.offset().seconds()) * 1_000_000).div_euclid(86_400_000_000)
}
