//! How the lines of a session refer to each other, so that a message names its parent whatever lies between.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::view::context::View;
use annals_core::{ContentKey, FileId, Framing, Result, SessionId, Span};
use annals_sources::Source;
use annals_store::{Contents, MessageRow, SpanRequest, StepRow};

/// Longer lines are no part of a thread.
const LONGEST: usize = 16 << 20;
/// A chain of lines between two messages ends here at the latest: files may refer in circles.
const LONGEST_CHAIN: usize = 100_000;
/// Bytes read before a line to find its parent, which is nearly always the line before. Doubled each time.
const REACH: u64 = 64 << 10;
/// Bytes read at a time after a line.
const MOST_READ: u64 = 4 << 20;
/// Bytes read for the parents of one page beyond its own lines. A parent is nearly always the line before; one that is
/// farther away than this, or exists nowhere, is not worth reading a whole transcript for.
const MOST_SEARCHED: u64 = if cfg!(test) { 1 << 20 } else { 32 << 20 };
/// Beyond the end of any file: the whole rest is searched.
const END: u64 = u64::MAX >> 1;

/// The lines of one session that were read so far: those of the messages asked for, and as many around them as their
/// parents need.
#[derive(Default)]
pub(in crate::view) struct LineGraph {
    session: SessionId,
    windows: HashMap<FileId, Window>,
    lines: HashMap<ContentKey, LineNode>,
    /// Ids of lines by file and offset.
    ids: BTreeMap<(FileId, u64), String>,
    /// Lines that no file of the session has, as far as it was searched.
    absent: HashSet<ContentKey>,
    /// Bytes that may still be read in search of parents.
    budget: u64,
}

/// A part of a file whose lines were read. It starts and ends with whole lines.
#[derive(Clone, Copy)]
struct Window {
    start: u64,
    end: u64,
    /// Bytes to read before it next.
    reach: u64,
    /// The file ends here.
    is_last: bool,
}

#[derive(Default, Clone, Copy)]
struct LineNode {
    parent: Option<ContentKey>,
    /// The message that the line is a part of, or a result of.
    message: Option<ContentKey>,
}

/// Where lines are read from.
pub(in crate::view) struct Lines<'l, 'v, 's> {
    pub view: &'l View<'v>,
    pub source: &'static dyn Source,
    pub contents: &'l mut Contents<'s>,
}

impl LineGraph {
    /// The messages before these steps, by the offsets of the steps.
    pub fn parents_of(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        (session, file): (SessionId, FileId),
        steps: &[StepRow],
    ) -> Result<HashMap<u64, ContentKey>> {
        let mut parents = HashMap::new();
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Ok(parents) };
        if !lines.source.names_lines() {
            return Ok(parents);
        }
        self.enter(session);
        self.budget = MOST_SEARCHED;
        if !self.windows.contains_key(&file) {
            // Everything that the steps need, at once.
            let offset = first.offset().saturating_sub(REACH);
            let span = Span { offset, length: last.end() + REACH - offset };
            lines.contents.load(&[SpanRequest { file, version: None, span }])?;
        }
        self.cover(lines, file, (first.offset(), last.offset()))?;
        for step in steps {
            let StepRow::Message(row) = step else { continue };
            if let Some(parent) = self.parent_within(lines, row)? {
                parents.insert(row.span.offset, parent);
            }
        }
        Ok(parents)
    }

    /// The message before this one.
    pub fn parent(&mut self, lines: &mut Lines<'_, '_, '_>, row: &MessageRow) -> Result<Option<ContentKey>> {
        self.enter(row.session_id);
        self.budget = MOST_SEARCHED;
        self.parent_within(lines, row)
    }

    fn parent_within(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        row: &MessageRow,
    ) -> Result<Option<ContentKey>> {
        let own = lines.contents.span(row.file, row.span)?;
        let Some(ids) = lines.source.line_ids(own.expose()) else { return Ok(None) };
        self.cover(lines, row.file, (row.span.offset, row.span.offset))?;
        let mut line = key_of(&ids.id);
        for _ in 0..LONGEST_CHAIN {
            let parent = self.find(lines, row.file, line)?.and_then(|node| node.parent);
            let Some(parent) = parent else { return Ok(None) };
            match self.find(lines, row.file, parent)?.and_then(|node| node.message) {
                Some(found) if found != row.key => return Ok(Some(found)),
                _ => line = parent,
            }
        }
        Ok(None)
    }

    /// The id of the line that contains this offset.
    pub fn line_at(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        session: SessionId,
        (file, offset): (FileId, u64),
    ) -> Result<Option<&str>> {
        if !lines.source.names_lines() {
            return Ok(None);
        }
        self.enter(session);
        self.cover(lines, file, (offset, offset))?;
        let line = self.ids.range(..=(file, offset)).next_back();
        Ok(line.filter(|((of, _), _)| *of == file).map(|(_, id)| id.as_str()))
    }

    fn enter(&mut self, session: SessionId) {
        if self.session != session {
            *self = LineGraph { session, ..LineGraph::default() };
        }
    }

    /// Finds a line: before what was read, then after it, then in the other files of the session.
    fn find(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        file: FileId,
        line: ContentKey,
    ) -> Result<Option<LineNode>> {
        if self.absent.contains(&line) {
            return Ok(None);
        }
        while !self.lines.contains_key(&line) && self.search(lines, file, LineGraph::extend_back)? {}
        while !self.lines.contains_key(&line) && self.search(lines, file, LineGraph::extend_to_end)? {}
        if !self.lines.contains_key(&line) && self.budget > 0 {
            for other in lines.view.archive.transcript_sources(self.session)? {
                if other.framing == Framing::Lines && !self.windows.contains_key(&other.id) {
                    self.cover(lines, other.id, (0, 0))?;
                }
                while !self.lines.contains_key(&line)
                    && self.search(lines, other.id, LineGraph::extend_to_end)?
                {}
            }
        }
        let found = self.lines.get(&line).copied();
        if found.is_none() {
            self.absent.insert(line);
        }
        Ok(found)
    }

    /// Reads more lines of a file while the budget lasts.
    fn search(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        file: FileId,
        extend: fn(&mut LineGraph, &mut Lines<'_, '_, '_>, FileId) -> Result<bool>,
    ) -> Result<bool> {
        if self.budget == 0 {
            return Ok(false);
        }
        let before = self.window(file);
        let has_more = extend(self, lines, file)?;
        let after = self.window(file);
        let read = (before.start - after.start) + (after.end - before.end);
        self.budget = self.budget.saturating_sub(read.max(1));
        Ok(has_more)
    }

    fn extend_to_end(&mut self, lines: &mut Lines<'_, '_, '_>, file: FileId) -> Result<bool> {
        self.extend(lines, file, END)
    }

    /// Reads until the lines from this offset to that one are known.
    fn cover(
        &mut self,
        lines: &mut Lines<'_, '_, '_>,
        file: FileId,
        (offset, last): (u64, u64),
    ) -> Result<()> {
        if let Entry::Vacant(window) = self.windows.entry(file) {
            let start = line_start(lines, file, offset)?;
            window.insert(Window { start, end: start, reach: REACH, is_last: false });
        }
        while self.window(file).start > offset && self.extend_back(lines, file)? {}
        while self.window(file).end <= last && self.extend(lines, file, last)? {}
        Ok(())
    }

    fn window(&self, file: FileId) -> Window {
        let nothing = Window { start: 0, end: 0, reach: REACH, is_last: true };
        self.windows.get(&file).copied().unwrap_or(nothing)
    }

    /// Reads lines before the window; false at the start of the file.
    fn extend_back(&mut self, lines: &mut Lines<'_, '_, '_>, file: FileId) -> Result<bool> {
        let window = self.window(file);
        if window.start == 0 {
            return Ok(false);
        }
        let from = window.start.saturating_sub(window.reach.min(MOST_SEARCHED));
        let bytes = lines.contents.span(file, Span { offset: from, length: window.start - from })?;
        let bytes = bytes.expose();
        // A line whose start was not read waits for the next time.
        let skipped = match memchr::memchr(b'\n', bytes) {
            _ if from == 0 => 0,
            Some(end) => end + 1,
            None => bytes.len(),
        };
        let start = from + skipped as u64;
        self.windows.insert(file, Window { start, reach: window.reach.saturating_mul(2), ..window });
        self.read(lines, file, start, &bytes[skipped..])?;
        Ok(true)
    }

    /// Reads lines after the window, at least until the one at `offset` ends; false at the end of the file.
    fn extend(&mut self, lines: &mut Lines<'_, '_, '_>, file: FileId, offset: u64) -> Result<bool> {
        let window = self.window(file);
        if window.is_last {
            return Ok(false);
        }
        let mut length = (offset.saturating_sub(window.end) + REACH).min(MOST_READ);
        loop {
            let bytes = lines.contents.span_until_end(file, Span { offset: window.end, length })?;
            let bytes = bytes.expose();
            let is_last = (bytes.len() as u64) < length;
            let whole = match memchr::memrchr(b'\n', bytes) {
                _ if is_last => bytes.len(),
                Some(end) => end + 1,
                None => {
                    length *= 2;
                    continue;
                }
            };
            let end = window.end + whole as u64;
            self.windows.insert(file, Window { end, is_last, ..window });
            self.read(lines, file, window.end, &bytes[..whole])?;
            return Ok(true);
        }
    }

    /// Notes the lines in these bytes.
    fn read(&mut self, lines: &Lines<'_, '_, '_>, file: FileId, start: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let until = start + bytes.len() as u64;
        let owners = lines.view.archive.line_owners(self.session, file, (start, until))?;
        let mut owners = owners.into_iter().peekable();
        let mut offset = start;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line_start, end) = (offset, offset + line.len() as u64);
            offset = end;
            let mut owner = None;
            while let Some((_, key)) = owners.next_if(|(place, _)| *place < end) {
                owner = owner.or(Some(key));
            }
            let Some(ids) = (line.len() <= LONGEST).then(|| lines.source.line_ids(line)).flatten() else {
                continue;
            };
            let node = self.lines.entry(key_of(&ids.id)).or_default();
            node.parent = node.parent.or(ids.parent.as_deref().map(key_of));
            node.message = node.message.or(owner);
            self.ids.insert((file, line_start), ids.id);
        }
        Ok(())
    }
}

/// The start of the line at this offset, or of one before it.
fn line_start(lines: &mut Lines<'_, '_, '_>, file: FileId, offset: u64) -> Result<u64> {
    let mut reach = REACH;
    loop {
        let from = offset.saturating_sub(reach);
        let before = lines.contents.span(file, Span { offset: from, length: offset - from })?;
        match memchr::memchr(b'\n', before.expose()) {
            _ if from == 0 => return Ok(0),
            Some(end) => return Ok(from + end as u64 + 1),
            None => reach *= 2,
        }
    }
}

fn key_of(id: &str) -> ContentKey {
    ContentKey::of(&[id.as_bytes()])
}
