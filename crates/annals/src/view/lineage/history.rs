//! The edits that sessions made to one file, the latest first.

use serde::Serialize;

use super::OriginBuilder;
use super::files::FileEdit;
use super::hunks::{CodeCall, HunkReader};
use super::known::MOST_CALLS;
use crate::view::context::View;
use crate::view::paging::{Paging, read_numbers, write_numbers};
use annals_core::{Result, Shown};
use annals_sources::by_name;

/// A page of the edits of a file.
#[derive(Debug, Serialize)]
pub struct FileHistory {
    pub file: Shown,
    /// Times that sessions read or changed it; an upper limit applies.
    pub touches: usize,
    /// The latest first.
    pub edits: Vec<FileEdit>,
    /// Other files whose paths fit as well.
    pub others: Vec<Shown>,
    pub next_cursor: Option<String>,
}

impl View<'_> {
    /// Only for the owner, and only for files below the directory of a session, like `lineage`.
    pub fn file_history(&self, file: &str, page: &Paging) -> Result<Option<FileHistory>> {
        if !self.archive.is_whole() {
            return Ok(None);
        }
        let Some((path, others)) = self.find_touched(file)? else { return Ok(None) };
        let mut calls = self.archive.calls_on_file(&path, MOST_CALLS)?;
        calls.reverse();
        let mut reader = HunkReader::new(self.archive);
        let mut is_below = false;
        for (session, ..) in &calls {
            let folder = reader.session(*session)?.and_then(|(_, folder)| folder).unwrap_or_default();
            let folder = folder.trim_end_matches('/');
            let rest = path.strip_prefix(folder).filter(|_| !folder.is_empty());
            is_below |= rest.is_some_and(|rest| rest.starts_with('/'));
        }
        if !is_below {
            return Ok(None);
        }
        let [skipped] = page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX).max(1);
        let mut builder = OriginBuilder::new(self);
        let (mut edits, mut next_cursor) = (Vec::new(), None);
        for (number, (session, file, place)) in calls.iter().copied().enumerate().skip(skipped) {
            // Edits of one call stay together.
            if edits.len() >= limit {
                next_cursor = Some(write_numbers(&[number as i64]));
                break;
            }
            let Some(row) = self.archive.call_at(session, file, place)? else { continue };
            let Some((source, folder)) = reader.session(session)? else { continue };
            let Some(recorder) = by_name(&source).and_then(|source| source.recorder()) else { continue };
            if row.copied || row.ok == Some(false) {
                continue;
            }
            let works = reader.work(&row, recorder, folder.as_deref())?;
            let touches = |from: &Option<String>| from.as_deref() == Some(path.as_str());
            let mut works = works
                .iter()
                .filter(|work| !work.is_read() && (work.path == path || touches(&work.moved_from)));
            let Some(first) = works.next() else { continue };
            let prompt = reader.prompt(&source, &row)?;
            let call = CodeCall { row, source, path: path.clone(), prompt };
            let origin = builder.origin(&call)?;
            edits.extend([first].into_iter().chain(works).map(|work| self.file_edit(origin.clone(), work)));
        }
        let others = others.iter().map(|path| self.door.text(path)).collect();
        let (file, touches) = (self.door.text(&path), calls.len());
        Ok(Some(FileHistory { file, touches, edits, others, next_cursor }))
    }
}
