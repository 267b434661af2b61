//! Every line of every file accounted for: found = kept + unknown + malformed + skipped.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::door::Door;
use annals_core::{FileId, LineStatus, Result, Shown};
use annals_store::{CoverageRow, FileRow};

#[derive(Debug, Serialize)]
pub struct FileAccount {
    pub source: String,
    pub path: Shown,
    pub store: String,
    /// Versions captured so far.
    pub versions: i64,
    /// Bytes on disk as they were captured, and bytes of the content after decoding.
    pub captured_bytes: i64,
    pub content_bytes: i64,
    pub lines: i64,
    pub kept: Sum,
    pub unknown: Sum,
    pub malformed: Sum,
    pub skipped: Sum,
    pub forgotten: Sum,
    /// Lines by type, within their status.
    pub types: BTreeMap<String, BTreeMap<String, Sum>>,
    /// Another form of a file, whose lines are counted with the first.
    pub twin: bool,
    pub source_gone: bool,
}

#[derive(Debug, Default, Clone, Copy, Serialize, ToSchema)]
pub struct Sum {
    pub lines: i64,
    pub bytes: i64,
}

impl View<'_> {
    pub fn accounts(&self, source: Option<&str>) -> Result<Vec<FileAccount>> {
        let mut by_file: HashMap<FileId, Vec<CoverageRow>> = HashMap::new();
        for row in self.archive.coverage(source)? {
            by_file.entry(row.file).or_default().push(row);
        }
        let files = self.archive.files(source)?.into_iter();
        Ok(files
            .map(|file| {
                let rows = by_file.remove(&file.id).unwrap_or_default();
                account(self.door, &file, &rows)
            })
            .collect())
    }
}

fn account(door: &Door, file: &FileRow, rows: &[CoverageRow]) -> FileAccount {
    let sum = |status: LineStatus| {
        let rows = rows.iter().filter(|row| row.status == status);
        rows.fold(Sum::default(), |sum, row| Sum {
            lines: sum.lines + row.lines,
            bytes: sum.bytes + row.bytes,
        })
    };
    let mut skipped = sum(LineStatus::Skipped);
    // An incomplete last line is read once the rest of it arrives.
    if file.content_size > file.parsed && !file.twin {
        skipped = Sum { lines: skipped.lines + 1, bytes: skipped.bytes + file.content_size - file.parsed };
    }
    let mut types: BTreeMap<String, BTreeMap<String, Sum>> = BTreeMap::new();
    for row in rows {
        let sum = Sum { lines: row.lines, bytes: row.bytes };
        types.entry(row.status.name().to_owned()).or_default().insert(row.kind.clone(), sum);
    }
    let forgotten = sum(LineStatus::Forgotten);
    let (kept, unknown, malformed) =
        (sum(LineStatus::Kept), sum(LineStatus::Unknown), sum(LineStatus::Malformed));
    FileAccount {
        source: file.source.clone(),
        path: door.text(&file.path),
        store: file.store.clone(),
        versions: file.version,
        captured_bytes: file.size,
        content_bytes: file.content_size,
        lines: kept.lines + unknown.lines + malformed.lines + skipped.lines + forgotten.lines,
        kept,
        unknown,
        malformed,
        skipped,
        forgotten,
        types,
        twin: file.twin,
        source_gone: file.gone,
    }
}
