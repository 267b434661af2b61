//! What the commands print with: tables, times, progress, and where output goes.

pub(super) mod measure;
pub(super) mod output;
pub(super) mod progress;
pub(super) mod table;
pub(super) mod time;
