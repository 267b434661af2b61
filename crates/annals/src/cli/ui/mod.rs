//! What commands print with: output, tables, transcripts, times and progress.

pub(super) mod confirm;
pub(super) mod measure;
pub(super) mod output;
mod pager;
pub(super) mod picker;
pub(super) mod progress;
pub(super) mod resume;
pub(super) mod table;
pub(super) mod time;
pub(super) mod transcript;
pub(super) mod wrap;
