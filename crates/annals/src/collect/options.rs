//! Options, environment and report of a sync.

use std::path::{Path, PathBuf};

use super::home::walk::HomeState;
use annals_core::{InstanceId, Time};
use annals_sources::{Settings, Source};

/// What to collect.
#[derive(Default)]
pub struct SyncOptions {
    pub sources: Vec<&'static dyn Source>,
    /// Skips files that changed earlier.
    pub since: Option<Time>,
    /// Compares every file with the archive's bytes, even if its metadata is unchanged, and heals what is damaged.
    pub verify: bool,
    /// Also collects the declared files of repositories that sessions ran in.
    pub repositories: bool,
    /// Retries only what could not be read before.
    pub gaps_only: bool,
    /// A refresh on request: if nothing changed, it writes nothing but a timestamp now and then.
    pub opportunistic: bool,
    /// Visits only these files of these homes, to heal them.
    pub damaged: Option<Vec<(InstanceId, String)>>,
    /// The member who owns the homes.
    pub member: Option<String>,
}

/// Where the run takes place.
pub struct Environment<'a> {
    /// The archive's folder.
    pub data_dir: &'a Path,
    pub machine: String,
    pub settings: &'a dyn Settings,
    pub threads: usize,
    pub now: fn() -> Time,
}

/// Receives progress.
pub trait Progress {
    fn begin(&mut self, files: u64, bytes: u64);
    fn advance(&mut self, files: u64, bytes: u64);
    fn end(&mut self);
}

#[derive(Debug)]
pub struct SourceReport {
    pub source: &'static dyn Source,
    pub homes: Vec<(PathBuf, HomeState)>,
    pub totals: Totals,
    pub warnings: Vec<String>,
}

#[derive(Debug, Default, Clone)]
pub struct Totals {
    pub found_files: u64,
    pub found_bytes: u64,
    pub captured_bytes: u64,
    pub new_files: u64,
    pub changed_files: u64,
    pub unchanged_files: u64,
    /// Unchanged files whose archived copy was damaged and was captured again.
    pub healed_files: u64,
    pub put_off_files: u64,
    pub failed_files: u64,
    /// Files, directories and databases that could not be read.
    pub unreadable: u64,
    pub gone_files: u64,
    pub documents: u64,
    pub new_documents: u64,
    /// Lines of this run by status.
    pub kept_lines: u64,
    pub unknown_lines: u64,
    pub malformed_lines: u64,
    pub skipped_lines: u64,
    pub forgotten_lines: u64,
    pub left_out_files: u64,
    pub unaccounted_files: u64,
    pub links_out: u64,
}

/// Discards progress.
pub struct Nobody;

impl Progress for Nobody {
    fn begin(&mut self, _files: u64, _bytes: u64) {}
    fn advance(&mut self, _files: u64, _bytes: u64) {}
    fn end(&mut self) {}
}
