//! Archives that exchange bytes: files with their versions come from another archive, rows are read here.

mod import;
mod merge;
mod receive;

pub use import::{ImportedArchive, archive_at, import_archive};
