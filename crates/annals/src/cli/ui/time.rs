//! Moments as people read them: in local time.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use annals_core::{Result, Time, parse_moment};

/// A point in time from an argument.
pub fn parse(text: &str, now: Time) -> Result<Time> {
    parse_moment(text, now)
}

/// Local time for a list.
pub fn local(time: Time) -> String {
    match Timestamp::from_microsecond(time.micros()) {
        Ok(stamp) => stamp.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "?".into(),
    }
}

pub fn local_clock(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(stamp) => stamp.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string(),
        Err(_) => String::new(),
    }
}

pub fn local_text(text: Option<&String>) -> String {
    text.and_then(|text| Time::parse(text)).map(local).unwrap_or_default()
}
