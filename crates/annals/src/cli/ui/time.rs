//! Times on the command line: read from arguments, shown in local time.

use annals_core::{Result, Time, parse_moment};

pub use crate::view::format::{local, local_clock, local_text};

/// A point in time from an argument.
pub fn parse(text: &str, now: Time) -> Result<Time> {
    parse_moment(text, now)
}
