//! How many lines of a session's edits are still in the files.

use std::collections::HashMap;

use serde::Serialize;

use super::hunks::{HunkReader, written_lines};
use super::matching::{Hunk, HunkLine, TracedLines, claim_lines};
use crate::view::context::View;
use crate::view::session::list::SessionView;
use annals_core::{CallKind, Result, Shown, Time};
use annals_sources::by_name;

/// What is left of one call's edits to one file.
#[derive(Debug, Serialize)]
pub struct Survivor {
    pub call_id: Shown,
    pub file: Shown,
    /// Lines that the call wrote, and how many of them are still there.
    pub written: usize,
    pub standing: usize,
    /// Where they are, as line ranges.
    pub lines: Vec<[usize; 2]>,
}

impl View<'_> {
    /// Checks every edit of a session. `read` returns the text of a file by its path, if it exists.
    pub fn survivors(
        &self,
        session: &SessionView,
        read: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Vec<Survivor>> {
        let mut survivors = Vec::new();
        let Some(recorder) = by_name(&session.source).and_then(|source| source.recorder()) else {
            return Ok(survivors);
        };
        let mut reader = HunkReader::new(self.archive);
        let folder = reader.session(session.row)?.and_then(|(_, folder)| folder);
        let mut files: HashMap<String, Option<Vec<HunkLine>>> = HashMap::new();
        for (file, place) in self.archive.calls_of_kind(session.row, CallKind::Edit)? {
            let Some(row) = self.archive.call_at(session.row, file, place)? else { continue };
            if row.copied || row.ok == Some(false) {
                continue;
            }
            let mut of_path: Vec<(String, Vec<Hunk>)> = Vec::new();
            for work in reader.work(&row, recorder, folder.as_deref())? {
                let lines = written_lines(&work);
                let hunk = Hunk {
                    call: 0,
                    read: false,
                    same_file: true,
                    nearness: 1,
                    at: row.at.map_or(0, Time::micros),
                    start: None,
                    lines,
                    loose: false,
                };
                match of_path.iter_mut().find(|(path, _)| *path == work.path) {
                    Some((_, hunks)) => hunks.push(hunk),
                    None => of_path.push((work.path, vec![hunk])),
                }
            }
            for (path, hunks) in of_path {
                let lines_now = files.entry(path.clone()).or_insert_with(|| {
                    let text = read(&path)?;
                    Some(text.lines().map(|line| HunkLine::new(line, false)).collect())
                });
                let written = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| !line.context).count();
                let claims = match lines_now {
                    Some(lines) => {
                        let traced = TracedLines { lines, deadlines: &[], first: false };
                        claim_lines(traced, &hunks, &|_| 1.0)
                    }
                    None => Vec::new(),
                };
                let standing: Vec<usize> = claims
                    .iter()
                    .enumerate()
                    .filter(|(_, claim)| claim.is_some())
                    .map(|(at, _)| at + 1)
                    .collect();
                survivors.push(Survivor {
                    call_id: self.door.text(&row.call_id),
                    file: self.door.text(&path),
                    written,
                    standing: standing.len(),
                    lines: line_ranges(&standing),
                });
            }
        }
        Ok(survivors)
    }
}

fn line_ranges(lines: &[usize]) -> Vec<[usize; 2]> {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some(last) if last[1] + 1 == *line => last[1] = *line,
            _ => ranges.push([*line, *line]),
        }
    }
    ranges
}
