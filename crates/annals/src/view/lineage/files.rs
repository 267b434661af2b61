//! The files that sessions worked on: their list, and one of them by the end of its path.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::known::{KnownFile, is_plain_path};
use super::{Origin, OriginBuilder};
use crate::view::context::View;
use crate::view::door::{Door, between_letters};
use crate::view::format::counted;
use crate::view::lineage::hunks::HunkReader;
use crate::view::paging::{Paging, read_keyed, write_keyed};
use crate::view::session::changes::diff_of;
use annals_core::{FileWork, Operation, Result, Shown, Time};
use annals_store::{TouchedFile, WorkFilter};

/// Edits of a file that are shown if its content is not known.
pub const MOST_EDITS: usize = 50;
/// Bytes of their texts.
const SHOWN_TEXT: usize = 4 << 10;
/// Files with a fitting path that are considered, and those that are named beside the one found.
const MOST_FITTING: i64 = 500;
const MOST_OTHERS: usize = 20;

/// Files that sessions worked on, the latest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Files)]
pub struct FileList {
    pub files: Vec<FileSummary>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TouchedFile)]
pub struct FileSummary {
    pub file: Shown,
    /// The directory of a session that contains it.
    pub folder: Shown,
    /// When a session last read or changed it.
    pub last_at: Option<String>,
    /// Number of edits.
    pub edits: i64,
    /// Number of times that sessions read it.
    pub reads: i64,
    pub sessions: i64,
}

/// What sessions did in a folder or to a file.
#[derive(Debug, Default)]
pub struct FolderEntry {
    pub name: Shown,
    pub path: Shown,
    pub is_file: bool,
    pub last_at: Option<String>,
    pub edits: i64,
    pub reads: i64,
    pub sessions: i64,
    /// Lines that edits wrote, and those that they replaced, as far as the clients recorded their numbers.
    pub written: i64,
    pub replaced: i64,
    /// Lines that each assistant wrote, by its name; most first.
    pub shares: Vec<(String, i64)>,
}

/// A file that was edited, but never written or read as a whole.
#[derive(Debug, Serialize)]
pub struct UnseenFile {
    pub file: Shown,
    pub edit_count: usize,
    pub is_gone: bool,
    /// The last edits, in order of time.
    pub edits: Vec<FileEdit>,
    pub others: Vec<Shown>,
}

/// One edit: its call, and what it replaced with what.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FileEdit {
    #[serde(flatten)]
    pub origin: Origin,
    pub operation: &'static str,
    /// Line number of the first line, if it is known.
    pub start: Option<u32>,
    pub before: Option<Shown>,
    pub after: Option<Shown>,
}

impl UnseenFile {
    /// Why there are no lines to show.
    pub fn reason(&self) -> String {
        let count = self.edit_count;
        let edited = if count == 1 { "edited once".to_owned() } else { format!("edited {count} times") };
        let end = if self.is_gone { "then deleted or renamed" } else { "never seen whole" };
        format!("{edited}, {end}")
    }

    /// How many of the edits are shown, if not all.
    pub fn shown_part(&self) -> Option<String> {
        let shown = self.edits.len();
        (shown < self.edit_count).then(|| format!("The last {} are shown.", counted(shown as i64, "edit")))
    }
}

impl View<'_> {
    /// The files that sessions worked on, below the directories of these sessions; for the owner.
    pub fn lineage_files(&self, page: &Paging) -> Result<Option<FileList>> {
        if !self.archive.is_whole() {
            return Ok(None);
        }
        let after = page.cursor.as_deref().map(read_keyed).transpose()?;
        let after = after.as_ref().map(|(at, path)| (*at, path.as_str()));
        let mut files = self.archive.touched_files("", after, page.limit + 1)?;
        let more = files.len() as i64 > page.limit;
        files.truncate(usize::try_from(page.limit).unwrap_or_default());
        let next_cursor = files.last().filter(|_| more).map(|last| write_keyed(last.at, &last.path));
        let files = files.iter().map(|file| summary(self.door, file)).collect();
        Ok(Some(FileList { files, next_cursor }))
    }

    /// What sessions did below a folder: in its folders, and to its files; without one, in the directories of sessions.
    /// For the owner. Folders come first, those with most edits before others.
    pub fn folder(&self, folder: Option<&str>, filter: &WorkFilter) -> Result<Option<Vec<FolderEntry>>> {
        if !self.archive.is_whole() {
            return Ok(None);
        }
        let folder = folder.map(|folder| folder.trim_end_matches('/'));
        let mut entries: BTreeMap<(bool, String), (i64, FolderEntry)> = BTreeMap::new();
        for work in self.archive.work_below(folder, filter)? {
            let (at, entry) = entries.entry((work.is_file, work.name)).or_default();
            *at = work.at.max(*at);
            entry.edits += work.edits;
            entry.reads += work.calls - work.edits;
            entry.sessions += work.sessions;
            entry.written += work.written;
            entry.replaced += work.replaced;
            if work.written > 0 {
                entry.shares.push((work.source, work.written));
            }
        }
        let finish = |((is_file, name), (at, mut entry)): ((bool, String), (i64, FolderEntry))| {
            let path = folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
            entry.shares.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
            FolderEntry {
                name: self.door.text(&name),
                path: self.door.text(&path),
                is_file,
                last_at: (at > 0).then(|| Time::from_micros(at).rfc3339()),
                ..entry
            }
        };
        let mut entries: Vec<FolderEntry> = entries.into_iter().map(finish).collect();
        entries.sort_by_key(|entry| (entry.is_file, std::cmp::Reverse((entry.edits, entry.reads))));
        Ok(Some(entries))
    }

    /// The file with this path, or the latest one whose path ends like this, and the others that do. A path from
    /// another worktree or machine fits if it ends like a file below the directory of a session.
    pub(super) fn find_touched(&self, path_or_end: &str) -> Result<Option<(String, Vec<String>)>> {
        let is_complete = is_plain_path(path_or_end);
        if !is_complete && !is_plain_path(&format!("/{path_or_end}")) {
            return Ok(None);
        }
        if is_complete && !self.archive.calls_on_file(path_or_end, 1)?.is_empty() {
            return Ok(Some((path_or_end.to_owned(), Vec::new())));
        }
        let name = path_or_end.rsplit('/').next().unwrap_or(path_or_end);
        let named = self.archive.touched_files(&format!("/{name}"), None, MOST_FITTING)?;
        let is_fitting = |file: &TouchedFile| match is_complete {
            true => inside(file).is_some_and(|inside| ends_with_path(path_or_end, inside)),
            false => ends_with_path(&file.path, path_or_end),
        };
        let mut fitting = named.into_iter().filter(is_fitting).map(|file| file.path);
        let Some(found) = fitting.next() else { return Ok(None) };
        Ok(Some((found, fitting.take(MOST_OTHERS).collect())))
    }

    pub(super) fn unseen_file(
        &self,
        path: &str,
        known: KnownFile,
        others: Vec<Shown>,
    ) -> Result<Option<UnseenFile>> {
        if known.edits == 0 {
            return Ok(None);
        }
        let mut builder = OriginBuilder::new(self);
        let mut reader = HunkReader::new(self.archive);
        let mut edits = Vec::new();
        for (mut call, work) in known.last_edits {
            call.prompt = reader.prompt(&call.source, &call.row)?;
            edits.push(self.file_edit(builder.origin(&call)?, &work));
        }
        let (file, edit_count, is_gone) = (self.door.text(path), known.edits, known.is_gone);
        Ok(Some(UnseenFile { file, edit_count, is_gone, edits, others }))
    }

    pub(super) fn file_edit(&self, origin: Origin, work: &FileWork) -> FileEdit {
        FileEdit {
            origin,
            operation: match work.operation {
                Operation::Create => "create",
                Operation::Delete => "delete",
                Operation::Read => "read",
                Operation::Update => "update",
                Operation::MoveTo | Operation::MoveFrom => "rename",
            },
            start: work.after.range.or(work.before.range).map(|range| range.start),
            before: work.before.text.as_deref().map(|text| shown_start(self.door, text)),
            after: work.after.text.as_deref().map(|text| shown_start(self.door, text)),
        }
    }
}

impl FileEdit {
    /// What changed, as a unified diff.
    pub fn diff(&self) -> Shown {
        let text = |shown: &Option<Shown>| shown.as_ref().map(ToString::to_string).unwrap_or_default();
        let start = self.start;
        Shown::new(diff_of((start, &text(&self.before)), (start, &text(&self.after))))
    }
}

fn summary(door: &Door, file: &TouchedFile) -> FileSummary {
    FileSummary {
        file: door.text(&file.path),
        folder: door.text(&file.folder),
        last_at: (file.at > 0).then(|| Time::from_micros(file.at).rfc3339()),
        edits: file.edits,
        reads: file.calls - file.edits,
        sessions: file.sessions,
    }
}

/// The path of a file below the directory of its session.
fn inside(file: &TouchedFile) -> Option<&str> {
    file.path.strip_prefix(file.folder.trim_end_matches('/'))?.strip_prefix('/')
}

fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Masked before it is truncated: half a secret is not recognised as one.
fn shown_start(door: &Door, text: &str) -> Shown {
    let masked = door.text(text);
    let text = masked.as_str();
    let end = between_letters(text, SHOWN_TEXT);
    let cut = text[..end].rfind("[secret:").filter(|open| !text[*open..end].contains(']'));
    Shown::new(&text[..cut.unwrap_or(end)])
}

#[cfg(test)]
mod tests {
    use super::ends_with_path;

    #[test]
    fn paths_end_at_a_component() {
        assert!(ends_with_path("/w/src/a.rs", "src/a.rs"));
        assert!(ends_with_path("src/a.rs", "src/a.rs"));
        assert!(!ends_with_path("/w/my-src/a.rs", "src/a.rs"));
        assert!(!ends_with_path("/w/src/b.rs", "src/a.rs"));
    }
}
