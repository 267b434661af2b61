//! A file as last archived, assembled from what calls wrote and read: no file on disk is opened.

use std::collections::VecDeque;

use serde::Serialize;
use utoipa::ToSchema;

use super::Blame;
use super::files::{MOST_EDITS, UnseenFile};
use super::hunks::{CodeCall, CodeFile, HunkReader};
use crate::view::context::View;
use annals_core::{Error, FileWork, Operation, Result, Shown, Time};
use annals_sources::by_name;
use annals_store::CallRow;

/// Calls on one file that are replayed. If there are more, the last ones are used.
pub(super) const MOST_CALLS: i64 = 5_000;
/// Renames followed backwards.
const RENAMES: usize = 4;
/// Larger files are not assembled.
const LARGEST: usize = 8 << 20;

#[derive(Debug, Clone, Default)]
pub struct LineageQuery {
    /// The path, as a client named it, or the end of it.
    pub file: String,
    /// Range of lines from 1; all lines if none.
    pub start: Option<usize>,
    pub end: Option<usize>,
}

/// The origin of the lines of a file, as last archived.
#[derive(Debug, Serialize, ToSchema)]
pub struct Lineage {
    /// When a session last read or wrote it.
    pub seen_at: Option<String>,
    /// False if an edit could not be applied, so that the file may differ.
    pub complete: bool,
    /// Other files whose paths fit as well: in other worktrees, on other machines, in other directories.
    pub others: Vec<Shown>,
    #[serde(flatten)]
    pub blame: Blame,
}

/// What is known about a file that sessions worked on.
pub enum FoundFile {
    /// The origin of its lines, and their masked text.
    Known(Box<Lineage>, Vec<Shown>),
    /// It was edited, but its content is not known.
    Unseen(Box<UnseenFile>),
}

impl View<'_> {
    /// Only for the owner, and only for files below the directory of a session: nothing else is found.
    pub fn lineage(&self, query: &LineageQuery) -> Result<Option<FoundFile>> {
        let start = query.start.unwrap_or(1);
        let end = query.end.unwrap_or(usize::MAX);
        if start == 0 || end < start {
            return Err(Error::bad_request("invalid range of lines")
                .hint("`start` must be at least 1, and `end` at least `start`"));
        }
        if !self.archive.is_whole() {
            return Ok(None);
        }
        let Some((path, others)) = self.find_touched(&query.file)? else { return Ok(None) };
        let Some(known) = self.known_file(&path, RENAMES)? else { return Ok(None) };
        let Some(folder) = known.folder.clone() else { return Ok(None) };
        let others: Vec<Shown> = others.iter().map(|path| self.door.text(path)).collect();
        let Some(text) = known.text else {
            let unseen = self.unseen_file(&path, known, others)?;
            return Ok(unseen.map(|unseen| FoundFile::Unseen(Box::new(unseen))));
        };
        let lines = self.door.lines(&text);
        let deadlines = vec![known.at; lines.len()];
        let file = CodeFile { path, root: Some(folder), text, deadlines };
        let Some(blame) = self.blame(&[file])?.pop() else { return Ok(None) };
        let blame = blame.part(start, end);
        let seen_at = known.at.map(Time::rfc3339);
        let lineage = Lineage { seen_at, complete: known.complete, others, blame };
        Ok(Some(FoundFile::Known(Box::new(lineage), lines)))
    }
}

/// An absolute path without `..` components.
pub(super) fn is_plain_path(path: &str) -> bool {
    let parts = || path.split(['/', '\\']);
    let whole = path.starts_with('/') || path.as_bytes().get(1) == Some(&b':');
    whole
        && !path.contains('\0')
        && parts().skip(1).all(|part| !part.is_empty() && part != "." && part != "..")
}

pub(super) struct KnownFile {
    text: Option<String>,
    at: Option<Time>,
    complete: bool,
    /// The session directory that contains the file.
    folder: Option<String>,
    /// How often it was edited, and the last edits.
    pub edits: usize,
    pub last_edits: VecDeque<(CodeCall, FileWork)>,
    /// It was deleted or renamed since.
    pub is_gone: bool,
}

impl View<'_> {
    /// Replays what calls did to a file, in order of time.
    fn known_file(&self, path: &str, renames: usize) -> Result<Option<KnownFile>> {
        let calls = self.archive.calls_on_file(path, MOST_CALLS)?;
        if calls.is_empty() {
            return Ok(None);
        }
        let mut reader = HunkReader::new(self.archive);
        let mut known = KnownFile {
            text: None,
            at: None,
            complete: true,
            folder: None,
            edits: 0,
            last_edits: VecDeque::new(),
            is_gone: false,
        };
        for (session, file, place) in calls {
            let Some(row) = self.archive.call_at(session, file, place)? else { continue };
            let Some((source, folder)) = reader.session(session)? else { continue };
            let Some(recorder) = by_name(&source).and_then(|source| source.recorder()) else { continue };
            let below = |folder: &str| {
                let folder = folder.trim_end_matches('/');
                !folder.is_empty() && path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
            };
            if known.folder.is_none() {
                known.folder = folder.clone().filter(|folder| below(folder));
            }
            if row.copied || row.ok == Some(false) {
                continue;
            }
            let works = reader.work(&row, recorder, folder.as_deref())?;
            for work in &works {
                if work.moved_from.as_deref() == Some(path) {
                    known.text = None;
                    let (operation, path) = (Operation::MoveFrom, path.to_owned());
                    known.keep_edit(&row, &source, &FileWork { operation, path, ..work.clone() });
                }
                if work.path != path {
                    continue;
                }
                if let Some(from) = work.moved_from.as_deref().filter(|_| renames > 0 && known.text.is_none())
                {
                    let before = self.known_file(from, renames - 1)?;
                    known.text = before.and_then(|before| before.text);
                }
                known.at = known.at.max(row.at);
                if !work.is_read() {
                    known.keep_edit(&row, &source, work);
                }
                known.complete &= replay(&mut known.text, work);
                if let Some(whole) = &work.whole {
                    known.text = Some(whole.clone());
                    known.complete = true;
                }
                if known.text.as_ref().is_some_and(|text| text.len() > LARGEST) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(known))
    }
}

impl KnownFile {
    /// Edits are only of interest while the file was not seen as a whole.
    fn keep_edit(&mut self, row: &CallRow, source: &str, work: &FileWork) {
        self.edits += 1;
        self.is_gone = matches!(work.operation, Operation::Delete | Operation::MoveFrom);
        if self.text.is_some() {
            self.last_edits.clear();
            return;
        }
        let (row, source, path) = (row.clone(), source.to_owned(), work.path.clone());
        if self.last_edits.len() >= MOST_EDITS {
            self.last_edits.pop_front();
        }
        let work = FileWork { whole: None, ..work.clone() };
        self.last_edits.push_back((CodeCall { row, source, path, prompt: None }, work));
    }
}

/// Applies one change; returns false if its position was not found.
fn replay(text: &mut Option<String>, work: &FileWork) -> bool {
    let after = work.after.text.as_deref().unwrap_or_default();
    if work.operation == Operation::Delete {
        *text = None;
        return true;
    }
    let whole = work.before.text.is_none() && work.after.range.is_some_and(|range| range.start == 1);
    let Some(known) = text else {
        // Text written or read from line 1 is the whole file, as far as is known.
        let begins = whole && (work.is_read() || work.operation != Operation::MoveTo);
        *text = begins.then(|| after.to_owned());
        return begins;
    };
    if work.operation == Operation::Create {
        *known = after.to_owned();
        return true;
    }
    let mut lines: Vec<&str> = known.lines().collect();
    let removed: Vec<&str> = work.before.text.as_deref().unwrap_or_default().lines().collect();
    if work.is_read() {
        let Some(range) = work.after.range else { return false };
        let (start, end) = (range.start as usize - 1, (range.end as usize).min(lines.len()));
        if start > lines.len() {
            return false;
        }
        lines.splice(start..end.max(start), after.lines());
        *known = joined(&lines);
        return true;
    }
    let start = work.after.range.or(work.before.range).map(|range| range.start as usize - 1);
    let matches_at =
        |start: usize| lines.get(start..start + removed.len()).is_some_and(|present| present == removed);
    if let Some(start) = start.filter(|start| matches_at(*start)) {
        lines.splice(start..start + removed.len(), after.lines());
        *known = joined(&lines);
        return true;
    }
    // No position, or a wrong one: search for the old text.
    let before = work.before.text.as_deref().filter(|before| !before.is_empty());
    match before.and_then(|before| known.find(before).map(|at| at..at + before.len())) {
        Some(range) => {
            known.replace_range(range, after);
            true
        }
        None if whole => {
            *known = after.to_owned();
            true
        }
        None => false,
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::{FileRegion, Range};

    fn update(before: FileRegion, after: FileRegion) -> FileWork {
        FileWork { before, after, ..FileWork::new("/w/a", Operation::Update) }
    }

    #[test]
    fn edits_are_played_where_they_were() {
        let mut text = None;
        let mut create = FileWork::new("/w/a", Operation::Create);
        create.after = FileRegion::lines(1, "one\ntwo\nthree\n".into());
        assert!(replay(&mut text, &create));
        let insert = update(FileRegion::default(), FileRegion::lines(2, "new\n".into()));
        assert!(replay(&mut text, &insert));
        assert_eq!(text.as_deref(), Some("one\nnew\ntwo\nthree\n"));
        assert!(replay(&mut text, &update(FileRegion::text("two\n"), FileRegion::text("2\n"))));
        assert!(replay(
            &mut text,
            &update(
                FileRegion::lines(4, "three\n".into()),
                FileRegion { range: Some(Range { start: 4, end: 4 }), ..FileRegion::default() }
            )
        ));
        assert_eq!(text.as_deref(), Some("one\nnew\n2\n"));
        assert!(!replay(&mut text, &update(FileRegion::text("nowhere\n"), FileRegion::text("x\n"))));
        let mut read = FileWork::new("/w/a", Operation::Read);
        read.after = FileRegion::lines(3, "2\nmine\n".into());
        assert!(replay(&mut text, &read));
        assert_eq!(text.as_deref(), Some("one\nnew\n2\nmine\n"));
    }

    #[test]
    fn only_plain_paths_are_accepted() {
        for path in ["/w/a.rs", "/w/b/c.rs", "C:\\w\\a.rs"] {
            assert!(is_plain_path(path), "{path}");
        }
        for path in ["a.rs", "../a", "/w/../a", "/w/./a", "/w//a", "/w/", "", "/", "/w/a\0", "./a"] {
            assert!(!is_plain_path(path), "{path:?}");
        }
    }
}
