//! What commands print with: output, tables, transcripts, times and progress.

pub(super) mod measure;
pub(super) mod output;
pub(super) mod progress;
pub(super) mod resume;
pub(super) mod table;
pub(super) mod time;
pub(super) mod transcript;
