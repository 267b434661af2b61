//! The texts of search results, and their snippets.

use super::query::{Clause, plain};
use crate::view::context::View;
use crate::view::door::{Door, between_letters};
use crate::view::session::entry_builder::EntryBuilder;
use annals_core::{Block, LONGEST_TEXT, MessageKind, PassageKind, Result, Shown, Time, each_text, each_told};
use annals_sources::{Source, by_name};
use annals_store::{CallRow, Contents, PassageHit, PlacedRecord};

/// Letters of a snippet, about.
const SNIPPET: usize = 200;
/// How far behind what is indexed a secret is looked for that begins before it.
const BEYOND: usize = 16 << 10;
/// How close words stand to each other is looked at up to here: what is longer is printed, not said.
const CLOSE: usize = 32 << 10;
/// Bytes around what was asked for that a snippet is made of.
const AROUND: usize = 4 << 10;

/// A hit with its text.
pub struct FoundPassage {
    pub hit: PassageHit,
    /// The step of the session that it is in, and the place of that step.
    pub step: Option<PassageStep>,
    pub tool: Option<String>,
    pub at: Option<Time>,
    pub record: Option<PlacedRecord>,
    pub text: String,
}

pub struct PassageStep {
    pub session: i64,
    pub id: String,
    pub file: i64,
    pub place: u64,
}

/// Reads the rows and texts of hits.
pub struct PassageReader<'a> {
    pub view: &'a View<'a>,
    pub contents: Contents<'a>,
}

impl PassageReader<'_> {
    /// Nothing when the row is a copy, is gone, or turned out to be nobody's words.
    pub fn read(&mut self, hit: &PassageHit, source: Option<&str>) -> Result<Option<FoundPassage>> {
        match hit.kind {
            PassageKind::User | PassageKind::Assistant | PassageKind::Thinking => self.message(hit, source),
            PassageKind::Call | PassageKind::Result | PassageKind::Files => {
                let row = self.view.archive.call_at(hit.session, hit.file, hit.place)?;
                match (row, source.and_then(by_name)) {
                    (Some(row), Some(source)) if !row.copied => self.call(hit, &row, source).map(Some),
                    // An output that was written before its call is a message.
                    (None, _) if hit.kind == PassageKind::Result => self.message(hit, source),
                    _ => Ok(None),
                }
            }
            PassageKind::Record | PassageKind::Output => self.record(hit),
        }
    }

    /// Whether the bytes of a hit cannot have a text that contains all of these: most hits end here, unread.
    pub fn rules_out(&mut self, hit: &PassageHit, fragments: &[&str]) -> Result<bool> {
        if fragments.is_empty() {
            return Ok(false);
        }
        let archive = &self.view.archive;
        let mut bytes = Vec::new();
        match hit.kind {
            PassageKind::User | PassageKind::Assistant | PassageKind::Thinking => {
                let Some(row) = archive.message_at(hit.session, hit.file, hit.place)? else {
                    return Ok(true);
                };
                bytes.push(self.contents.span(row.file, row.span)?);
                for line in archive.message_lines(row.session_id, row.file, row.span.offset)? {
                    bytes.push(self.contents.span(row.file, line)?);
                }
            }
            PassageKind::Call | PassageKind::Result => {
                let row = archive.call_at(hit.session, hit.file, hit.place)?;
                let Some(row) = row.filter(|row| row.full_output.is_none()) else { return Ok(false) };
                let output = [row.output, row.detail];
                let spans = if hit.kind == PassageKind::Call { [Some(row.span), None] } else { output };
                for span in spans.into_iter().flatten() {
                    bytes.push(self.contents.span(row.file, span)?);
                }
                // A name may be made up by the reader.
                if fragments.iter().any(|fragment| row.name.to_lowercase().contains(fragment)) {
                    return Ok(false);
                }
            }
            PassageKind::Files | PassageKind::Record | PassageKind::Output => return Ok(false),
        }
        // Letters that are written as numbers are read as letters.
        let is_hidden = |bytes: &[u8]| memchr::memmem::find(bytes, b"\\u00").is_some();
        let has = |fragment: &&str| {
            bytes.iter().any(|bytes| find_folded_bytes(bytes.expose(), fragment.as_bytes()).is_some())
        };
        Ok(!fragments.iter().all(has) && !bytes.iter().any(|bytes| is_hidden(bytes.expose())))
    }

    fn message(&mut self, hit: &PassageHit, source: Option<&str>) -> Result<Option<FoundPassage>> {
        let row = self.view.archive.message_at(hit.session, hit.file, hit.place)?;
        let row = row.filter(|row| !row.copied && row.kind != MessageKind::Injected);
        let (Some(row), Some(source)) = (row, source.and_then(by_name)) else { return Ok(None) };
        let mut lines = vec![self.contents.span(row.file, row.span)?];
        for line in self.view.archive.message_lines(row.session_id, row.file, row.span.offset)? {
            lines.push(self.contents.span(row.file, line)?);
        }
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.expose()).collect();
        let mut text = String::new();
        for block in source.blocks(&lines) {
            match (block, hit.kind) {
                (Block::Thinking(part), PassageKind::Thinking)
                | (
                    Block::Text(part) | Block::Event { text: part, .. } | Block::Attachment { name: part },
                    PassageKind::User | PassageKind::Assistant,
                ) => add(&mut text, &part),
                (Block::Image { path: Some(part), .. }, PassageKind::User | PassageKind::Assistant) => {
                    add(&mut text, &part)
                }
                (
                    Block::ToolResult { output: part, .. },
                    PassageKind::Result | PassageKind::User | PassageKind::Assistant,
                ) if row.kind == MessageKind::Result => add(&mut text, &part),
                // Some clients keep thoughts as messages of their own.
                (Block::Text(part), PassageKind::Thinking) if row.kind == MessageKind::Thinking => {
                    add(&mut text, &part)
                }
                _ => {}
            }
        }
        let step = PassageStep {
            session: row.session_id,
            id: row.key.hex(),
            file: row.file,
            place: row.span.offset,
        };
        Ok(Some(FoundPassage { hit: *hit, step: Some(step), tool: None, at: row.at, record: None, text }))
    }

    fn call(&mut self, hit: &PassageHit, row: &CallRow, source: &'static dyn Source) -> Result<FoundPassage> {
        let builder = EntryBuilder { view: self.view, source, full: true, changes: false };
        let mut text = String::new();
        match hit.kind {
            PassageKind::Result => {
                let output = builder.output(&mut self.contents, row)?.unwrap_or_default();
                each_told(&output, &mut |part| add(&mut text, part));
            }
            PassageKind::Files => {
                for touch in self.view.archive.touches(row.session_id, row.file, row.span.offset)? {
                    add(&mut text, &String::from_utf8_lossy(touch.path.expose()));
                }
            }
            _ => {
                text.push_str(&row.name);
                each_text(&builder.input(&mut self.contents, row)?, &mut |part| add(&mut text, part));
            }
        }
        let step = self.step_of(row)?;
        let record = None;
        Ok(FoundPassage {
            hit: *hit,
            step: Some(step),
            tool: Some(row.name.clone()),
            at: row.at,
            record,
            text,
        })
    }

    /// A call within a message is shown with it.
    pub fn step_of(&self, row: &CallRow) -> Result<PassageStep> {
        let message = match self.view.archive.message_of_call(row)? {
            Some(place) => self.view.archive.message_at(row.session_id, row.file, place)?,
            None => None,
        };
        Ok(match message {
            Some(message) => PassageStep {
                session: row.session_id,
                id: message.key.hex(),
                file: message.file,
                place: message.span.offset,
            },
            None => PassageStep {
                session: row.session_id,
                id: row.key.hex(),
                file: row.file,
                place: row.span.offset,
            },
        })
    }

    fn record(&mut self, hit: &PassageHit) -> Result<Option<FoundPassage>> {
        let Some(record) = self.view.archive.record_at(hit.file, hit.place)? else { return Ok(None) };
        let bytes =
            self.contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
        let mut text = String::new();
        if hit.kind == PassageKind::Record {
            text.push_str(&record.key);
        }
        add(&mut text, &String::from_utf8_lossy(bytes.expose()));
        // An output that was kept apart belongs to its call.
        let name = format!("{}/{}", record.stream, record.key);
        let call = self.view.archive.call_with_output(&name)?;
        let (step, tool) = match &call {
            Some(row) => (Some(self.step_of(row)?), Some(row.name.clone())),
            None => (None, None),
        };
        let at = call.as_ref().map_or(record.at, |row| row.at);
        Ok(Some(FoundPassage { hit: *hit, step, tool, at, record: Some(record), text }))
    }
}

fn add(text: &mut String, part: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(part);
}

/// The longest part of a phrase that is in JSON as it is in the text, whoever wrote the JSON.
pub fn fragment(phrase: &str) -> Option<&str> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || "_-.:=+,;@#%*()[]{}|~!?$".contains(letter);
    let parts = phrase.split(|letter| !is_plain(letter));
    // Between a name and its value, readers put signs of their own.
    let parts = parts.map(|part| part.trim_matches([':', '=', ',', ';', '.']));
    parts.max_by_key(|part| part.len()).filter(|part| part.len() > 1)
}

/// Whether a text holds what must be as it was typed, and nothing of what must not.
pub fn fits(text: &str, exact: &[&Clause], unwanted: &[&Clause]) -> bool {
    if exact.is_empty() && unwanted.is_empty() {
        return true;
    }
    let text = plain(start(text));
    exact.iter().all(|clause| clause.fits(&text)) && !unwanted.iter().any(|clause| clause.fits(&text))
}

/// How well a text fits beyond holding the words: as they were typed, beside each other, early.
pub fn closeness(text: &str, clauses: &[Clause], typed: &str) -> f32 {
    let text = plain(upto(text, CLOSE));
    let mut places: Vec<usize> = clauses
        .iter()
        .filter_map(|clause| clause.pieces.iter().find_map(|piece| text.find(&piece.text)))
        .collect();
    places.sort_unstable();
    let whole = if clauses.len() > 1 && text.contains(typed) { 1.0 } else { 0.0 };
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return 0.0 };
    let near = if places.len() > 1 && last - first < 200 { 0.4 } else { 0.0 };
    let early = if *first < 400 { 0.2 } else { 0.0 };
    whole + near + early
}

fn start(text: &str) -> &str {
    upto(text, LONGEST_TEXT)
}

/// The first so many bytes, cut between letters.
fn upto(text: &str, longest: usize) -> &str {
    &text[..between_letters(text, longest)]
}

/// A few words around the first of what was asked for, and where in them it stands: the start and length of each, in
/// letters. The whole text is masked before anything of it is cut: what a secret is shows only in its place.
pub fn snippet(door: &Door, text: &str, clauses: &[Clause]) -> (Shown, Vec<[usize; 2]>) {
    let masked = door.text(upto(text, LONGEST_TEXT + BEYOND));
    let needles: Vec<&str> = clauses
        .iter()
        .flat_map(|clause| &clause.pieces)
        .flat_map(|piece| {
            let parts = piece.terms.iter().filter_map(|term| std::str::from_utf8(term).ok());
            std::iter::once(piece.text.as_str()).chain(parts.filter(|_| !piece.exact))
        })
        .collect();
    let (part, cut) = around(upto(masked.as_str(), LONGEST_TEXT), &needles);
    // One line: what was asked for may be apart only by how the text was broken.
    let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let small = small_letters(&line);
    let first = needles.iter().filter_map(|needle| small.find(needle)).min().unwrap_or(0);
    let middle = small[..first].chars().count();
    let start = if middle < SNIPPET * 3 / 4 { 0 } else { middle - SNIPPET / 4 };
    // A mark before the snippet may reach into it.
    let near = start.saturating_sub(64);
    let letters: Vec<char> = line.chars().skip(near).take(SNIPPET + 256).collect();
    let from = start - near;
    let (from, to) = between_marks(&letters, from, (from + SNIPPET).min(letters.len()));
    let mut text: String = letters[from..to].iter().collect();
    if near + from > 0 || cut {
        text.insert(0, '…');
    }
    if line.chars().nth(near + to).is_some() {
        text.push('…');
    }
    let marks = highlights(&text, &needles);
    (Shown::new(text), marks)
}

/// The part of a long text that a snippet is made of, and whether it begins within the text: to fold all of an output
/// costs more than to find it.
fn around<'t>(text: &'t str, needles: &[&str]) -> (&'t str, bool) {
    let first = needles.iter().filter_map(|needle| find_folded(text, needle)).min();
    let Some(first) = first.filter(|_| text.len() > 4 * AROUND) else { return (text, false) };
    let from = upto(text, first.saturating_sub(AROUND)).len();
    (&upto(text, first.saturating_add(2 * AROUND))[from..], from > 0)
}

/// Where a text holds what is written in lower case; large ones are seen through only where they are ASCII.
fn find_folded(text: &str, needle: &str) -> Option<usize> {
    find_folded_bytes(text.as_bytes(), needle.as_bytes())
}

fn find_folded_bytes(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes)
        .find(|at| bytes[*at..].get(..needle.len()).is_some_and(|found| found.eq_ignore_ascii_case(needle)))
}

fn small_letters(text: &str) -> String {
    text.chars().map(|letter| letter.to_lowercase().next().unwrap_or(letter)).collect()
}

/// No mark of a secret is cut in two.
fn between_marks(letters: &[char], mut start: usize, mut end: usize) -> (usize, usize) {
    let opens = |at: usize| letters[at..].starts_with(&['[', 's', 'e', 'c', 'r', 'e', 't', ':']);
    let close =
        |at: usize| letters[at..].iter().take(64).position(|letter| *letter == ']').map(|step| at + step + 1);
    for at in start.saturating_sub(64)..letters.len().min(end) {
        if !opens(at) {
            continue;
        }
        let Some(close) = close(at) else { continue };
        if at < start && close > start {
            start = close;
        }
        if at < end && close > end {
            end = close;
        }
    }
    (start.min(end), end)
}

fn highlights(text: &str, needles: &[&str]) -> Vec<[usize; 2]> {
    let small: Vec<char> = small_letters(text).chars().collect();
    let mut marks: Vec<[usize; 2]> = Vec::new();
    let mut at = 0;
    while at < small.len() {
        let longest = needles
            .iter()
            .filter(|needle| small[at..].iter().copied().take(needle.chars().count()).eq(needle.chars()))
            .map(|needle| needle.chars().count())
            .max()
            .filter(|length| *length > 0);
        match longest {
            Some(length) => {
                marks.push([at, length]);
                at += length;
            }
            None => at += 1,
        }
    }
    marks
}
