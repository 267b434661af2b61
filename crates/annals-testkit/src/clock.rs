//! The day on which tests and benches take place, whatever day it is: handed to the program, and counted from by worlds.

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Noon, so that a run stays within one day. `ANNALS_TEST_NOW` names another moment, to show that none matters.
const START: &str = "2026-11-15T12:00:00Z";

/// Microseconds that the clock of this run is ahead of the machine's; it advances with the machine's.
fn shift() -> i64 {
    static SHIFT: OnceLock<i64> = OnceLock::new();
    *SHIFT.get_or_init(|| {
        let named = std::env::var("ANNALS_TEST_NOW").unwrap_or_else(|_| START.to_owned());
        let start: jiff::Timestamp =
            named.parse().expect("ANNALS_TEST_NOW is a moment like 2026-11-15T12:00:00Z");
        start.as_microsecond() - jiff::Timestamp::now().as_microsecond()
    })
}

/// What time it is in this run.
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now() + jiff::SignedDuration::from_micros(shift())
}

pub fn since_1970() -> Duration {
    Duration::from_micros(u64::try_from(now().as_microsecond()).expect("a moment after 1970"))
}

/// The same as a time of files.
pub fn system_now() -> SystemTime {
    UNIX_EPOCH + since_1970()
}

/// Makes the program live in this run's time.
pub fn set(command: &mut Command) {
    command.env("ANNALS_TEST_CLOCK", shift().to_string()).env("TZ", "UTC");
}
