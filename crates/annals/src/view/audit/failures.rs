//! What cannot be captured, since when and why: the whole archive, or files of some homes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::door::Door;
use crate::view::format::counted;
use annals_core::{Result, Shown};
use annals_sources::by_name;
use annals_store::CaptureFailure;

/// Files listed by name for each failure; all are counted.
const LISTED: usize = 20;
/// Files named in a sentence.
const NAMED: usize = 3;

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FailureView {
    /// `archive` if nothing can be captured, `files` if some files cannot be read
    pub kind: &'static str,
    /// The source whose files cannot be read
    pub source: Option<String>,
    pub what: Shown,
    pub hint: Option<Shown>,
    /// When the first capture failed
    pub since: String,
    /// The first files that were not captured
    pub files: Vec<Shown>,
    pub file_count: u64,
}

impl FailureView {
    /// One sentence, for people.
    pub fn sentence(&self) -> String {
        let start = match self.kind {
            "archive" => "New data has not been captured".to_owned(),
            _ => {
                let label = self.source.as_deref().and_then(by_name).map(|source| source.manifest().label);
                format!("{}: {} cannot be read", label.unwrap_or_default(), counted(self.file_count, "file"))
            }
        };
        let mut text = format!("{start} since {}: {}", self.since, self.what);
        if !self.files.is_empty() {
            let named: Vec<&str> = self.files.iter().take(NAMED).map(Shown::as_str).collect();
            let count = counted(self.file_count, "file");
            text.push_str(&format!(". Not captured: {count} ({}", named.join(", ")));
            if self.file_count > named.len() as u64 {
                text.push_str(", …");
            }
            text.push(')');
        }
        text
    }
}

/// A failure of the whole archive, for its owner.
pub fn archive_failure(door: &Door, failure: &CaptureFailure) -> FailureView {
    FailureView {
        kind: "archive",
        source: None,
        what: door.show(&failure.what),
        hint: failure.hint.as_deref().map(|hint| door.show(hint)),
        since: failure.since.rfc3339(),
        files: failure.files.iter().take(LISTED).map(|path| door.show(path)).collect(),
        file_count: failure.file_count,
    }
}

impl View<'_> {
    /// All failures that the caller may see. Others than the owner learn since when nothing is captured, but nothing about
    /// this machine.
    pub fn failures(&self, of_archive: Option<&CaptureFailure>) -> Result<Vec<FailureView>> {
        let mut failures: Vec<FailureView> =
            of_archive.map(|failure| archive_failure(self.door, failure)).into_iter().collect();
        for failure in failures.iter_mut().filter(|_| !self.archive.is_whole()) {
            failure.what = Shown::new("the server cannot write to its archive");
            (failure.hint, failure.files, failure.file_count) = (None, Vec::new(), 0);
        }
        for failed in self.archive.failed_captures(LISTED as i64)? {
            failures.push(FailureView {
                kind: "files",
                source: Some(failed.source),
                what: self.door.raw(&failed.reason),
                hint: Some(Shown::new("check the permissions of these files; `annals gaps` lists them")),
                since: failed.since.rfc3339(),
                files: failed.paths.iter().map(|path| self.door.raw(path)).collect(),
                file_count: failed.count,
            });
        }
        Ok(failures)
    }
}
