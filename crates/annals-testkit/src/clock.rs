//! The day on which tests and benches run, whatever day it is: passed to the program, and the reference for worlds.

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Noon, so that a run stays within one day. `ANNALS_TEST_NOW` sets another time, to show that it does not matter.
const START: &str = "2026-11-15T12:00:00Z";

/// Microseconds that the clock of this run is ahead of the machine's; both advance together.
fn shift() -> i64 {
    static SHIFT: OnceLock<i64> = OnceLock::new();
    *SHIFT.get_or_init(|| {
        let named = std::env::var("ANNALS_TEST_NOW").unwrap_or_else(|_| START.to_owned());
        let start: jiff::Timestamp =
            named.parse().expect("ANNALS_TEST_NOW is a moment like 2026-11-15T12:00:00Z");
        start.as_microsecond() - jiff::Timestamp::now().as_microsecond()
    })
}

/// The current time of this run.
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now() + jiff::SignedDuration::from_micros(shift())
}

pub fn since_1970() -> Duration {
    Duration::from_micros(u64::try_from(now().as_microsecond()).expect("a moment after 1970"))
}

/// The same as a file time.
pub fn system_now() -> SystemTime {
    UNIX_EPOCH + since_1970()
}

/// Sets the program's clock to this run's time.
pub fn set(command: &mut Command) {
    command.env("ANNALS_TEST_CLOCK", shift().to_string()).env("TZ", "UTC");
}

/// The same, some days later.
pub fn set_days_later(command: &mut Command, days: i64) {
    command.env("ANNALS_TEST_CLOCK", (shift() + days * 86_400_000_000).to_string());
}
