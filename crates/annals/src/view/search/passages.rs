//! The texts of search results.

use std::cell::OnceCell;

use serde_json::Value;

use super::query::{Clause, normalize};
use crate::view::context::View;
use crate::view::door::{Door, between_letters};
use crate::view::session::entry_builder::EntryBuilder;
use annals_core::{
    Block, FileId, LONGEST_TEXT, MessageKind, PassageKind, Result, SessionId, Time, each_embedded_text,
    each_text,
};
use annals_sources::{Source, by_name};
use annals_store::{CallRow, Contents, PassageHit, PlacedRecord};

/// How far beyond the indexed text to look for the end of a secret.
const BEYOND: usize = 16 << 10;
/// Proximity of words is only measured up to here: longer texts are output, not prose.
const CLOSE: usize = 32 << 10;

/// A hit with its text.
pub struct FoundPassage {
    pub hit: PassageHit,
    /// The step of the session that contains it.
    pub step: Option<PassageStep>,
    pub tool: Option<String>,
    pub at: Option<Time>,
    pub record: Option<PlacedRecord>,
    pub text: PassageText,
}

/// The text of a passage as it is stored, and as it may be shown.
#[derive(Default)]
pub struct PassageText {
    parts: Vec<TextPart>,
    shown: OnceCell<String>,
}

enum TextPart {
    Text(String),
    /// A text that may be a document.
    Output(String),
    Document(Value),
}

impl PassageText {
    fn add(&mut self, part: impl Into<String>) {
        self.parts.push(TextPart::Text(part.into()));
    }

    /// With its secrets: only to rule out what cannot match.
    fn stored(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TextPart::Text(part) => add(&mut text, part),
                TextPart::Output(part) => each_embedded_text(part, &mut |part| add(&mut text, part)),
                TextPart::Document(part) => each_text(part, &mut |part| add(&mut text, part)),
            }
        }
        text
    }

    /// Masked before its parts are joined: a secret may be recognised only by its field.
    pub fn shown(&self, door: &Door) -> &str {
        self.shown.get_or_init(|| {
            let mut text = String::new();
            for part in &self.parts {
                match part {
                    TextPart::Text(part) => add(&mut text, door.text(start_and_beyond(part)).as_str()),
                    TextPart::Output(part) => door.each_embedded_text(part, &mut |part| add(&mut text, part)),
                    TextPart::Document(part) => door.each_text(part, &mut |part| add(&mut text, part)),
                }
            }
            text
        })
    }
}

pub struct PassageStep {
    pub session: SessionId,
    pub id: String,
    pub file: FileId,
    pub place: u64,
}

/// Reads the rows and texts of hits.
pub struct PassageReader<'a> {
    pub view: &'a View<'a>,
    pub contents: Contents<'a>,
}

impl PassageReader<'_> {
    /// None if the row is a copy, is gone, or turned out not to be a message.
    pub fn read(&mut self, hit: &PassageHit, source: Option<&str>) -> Result<Option<FoundPassage>> {
        match hit.kind {
            PassageKind::User | PassageKind::Assistant | PassageKind::Thinking => self.message(hit, source),
            PassageKind::Call | PassageKind::Result | PassageKind::Files => {
                let row = self.view.archive.call_at(hit.session, hit.file, hit.offset)?;
                match (row, source.and_then(by_name)) {
                    (Some(row), Some(source)) if !row.copied => self.call(hit, &row, source).map(Some),
                    // An output that was written before its call is stored as a message.
                    (None, _) if hit.kind == PassageKind::Result => self.message(hit, source),
                    _ => Ok(None),
                }
            }
            PassageKind::Record | PassageKind::Output => self.record(hit),
        }
    }

    /// Whether `read` finds something, without reading texts.
    pub fn is_live(&self, hit: &PassageHit) -> Result<bool> {
        let archive = &self.view.archive;
        let is_message = || -> Result<bool> {
            let row = archive.message_at(hit.session, hit.file, hit.offset)?;
            Ok(row.is_some_and(|row| !row.copied && row.kind != MessageKind::Injected))
        };
        match hit.kind {
            PassageKind::User | PassageKind::Assistant | PassageKind::Thinking => is_message(),
            PassageKind::Call | PassageKind::Result | PassageKind::Files => {
                match archive.call_at(hit.session, hit.file, hit.offset)? {
                    Some(row) => Ok(!row.copied),
                    None if hit.kind == PassageKind::Result => is_message(),
                    None => Ok(false),
                }
            }
            PassageKind::Record | PassageKind::Output => {
                Ok(archive.record_at(hit.file, hit.offset)?.is_some())
            }
        }
    }

    /// Whether the bytes of a hit cannot contain all of these fragments: most hits are discarded here, unread.
    pub fn rules_out(&mut self, hit: &PassageHit, fragments: &[&str]) -> Result<bool> {
        if fragments.is_empty() {
            return Ok(false);
        }
        let archive = &self.view.archive;
        let mut bytes = Vec::new();
        match hit.kind {
            PassageKind::User | PassageKind::Assistant | PassageKind::Thinking => {
                let Some(row) = archive.message_at(hit.session, hit.file, hit.offset)? else {
                    return Ok(true);
                };
                bytes.push(self.contents.span(row.file, row.span)?);
                for line in archive.message_lines(row.session_id, row.file, row.span.offset)? {
                    bytes.push(self.contents.span(row.file, line)?);
                }
            }
            PassageKind::Call | PassageKind::Result => {
                let row = archive.call_at(hit.session, hit.file, hit.offset)?;
                let Some(row) = row.filter(|row| row.full_output.is_none()) else { return Ok(false) };
                let output = [row.output, row.detail];
                let spans = if hit.kind == PassageKind::Call { [Some(row.span), None] } else { output };
                for span in spans.into_iter().flatten() {
                    bytes.push(self.contents.span(row.file, span)?);
                }
                // Names may be generated by the reader.
                if fragments.iter().any(|fragment| row.name.to_lowercase().contains(fragment)) {
                    return Ok(false);
                }
            }
            PassageKind::Files | PassageKind::Record | PassageKind::Output => return Ok(false),
        }
        // Escaped characters are decoded before comparing.
        let is_hidden = |bytes: &[u8]| memchr::memmem::find(bytes, b"\\u00").is_some();
        let has = |fragment: &&str| {
            bytes.iter().any(|bytes| find_folded(bytes.expose(), fragment.as_bytes()).is_some())
        };
        Ok(!fragments.iter().all(has) && !bytes.iter().any(|bytes| is_hidden(bytes.expose())))
    }

    fn message(&mut self, hit: &PassageHit, source: Option<&str>) -> Result<Option<FoundPassage>> {
        let row = self.view.archive.message_at(hit.session, hit.file, hit.offset)?;
        let row = row.filter(|row| !row.copied && row.kind != MessageKind::Injected);
        let (Some(row), Some(source)) = (row, source.and_then(by_name)) else { return Ok(None) };
        let mut lines = vec![self.contents.span(row.file, row.span)?];
        for line in self.view.archive.message_lines(row.session_id, row.file, row.span.offset)? {
            lines.push(self.contents.span(row.file, line)?);
        }
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.expose()).collect();
        let mut text = PassageText::default();
        for block in source.blocks(&lines) {
            match (block, hit.kind) {
                (Block::Thinking(part), PassageKind::Thinking)
                | (
                    Block::Text(part) | Block::Event { text: part, .. } | Block::Attachment { name: part },
                    PassageKind::User | PassageKind::Assistant,
                ) => text.add(part),
                (Block::Image { path: Some(part), .. }, PassageKind::User | PassageKind::Assistant) => {
                    text.add(part)
                }
                (
                    Block::ToolResult { output: part, .. },
                    PassageKind::Result | PassageKind::User | PassageKind::Assistant,
                ) if row.kind == MessageKind::Result => text.add(part),
                // Some clients store thinking as separate messages.
                (Block::Text(part), PassageKind::Thinking) if row.kind == MessageKind::Thinking => {
                    text.add(part)
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
        let mut text = PassageText::default();
        match hit.kind {
            PassageKind::Result => {
                let output = builder.output(&mut self.contents, row)?.unwrap_or_default();
                text.parts.push(TextPart::Output(output));
            }
            PassageKind::Files => {
                for touch in self.view.archive.touches(row.session_id, row.file, row.span.offset)? {
                    text.add(String::from_utf8_lossy(touch.path.expose()));
                }
            }
            _ => {
                text.add(row.name.as_str());
                text.parts.push(TextPart::Document(builder.input(&mut self.contents, row)?));
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

    /// A call within a message is shown with that message.
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
        let Some(record) = self.view.archive.record_at(hit.file, hit.offset)? else { return Ok(None) };
        let bytes =
            self.contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
        let mut text = PassageText::default();
        if hit.kind == PassageKind::Record {
            text.add(record.key.as_str());
        }
        text.add(String::from_utf8_lossy(bytes.expose()));
        // An output stored in a separate file belongs to its call.
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

/// The longest part of a phrase that looks the same in JSON, whoever wrote it.
pub fn fragment(phrase: &str) -> Option<&str> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || "_-.:=+,;@#%*()[]{}|~!?$".contains(letter);
    let parts = phrase.split(|letter| !is_plain(letter));
    // Readers put their own separators between a name and its value.
    let parts = parts.map(|part| part.trim_matches([':', '=', ',', ';', '.']));
    parts.max_by_key(|part| part.len()).filter(|part| part.len() > 1)
}

/// Whether the shown text contains everything in `exact` as typed, and nothing in `unwanted`. What is masked neither
/// matches nor excludes.
pub fn matches_query(door: &Door, text: &PassageText, exact: &[&Clause], unwanted: &[&Clause]) -> bool {
    if exact.is_empty() && unwanted.is_empty() {
        return true;
    }
    // Masking costs more than comparing, and most texts do not match.
    let stored = normalize(start(&text.stored()));
    if !exact.iter().all(|clause| clause.matches(&stored)) {
        return false;
    }
    let shown = normalize(start(text.shown(door)));
    exact.iter().all(|clause| clause.matches(&shown)) && !unwanted.iter().any(|clause| clause.matches(&shown))
}

/// How well a text matches beyond containing the words: as typed, close together, near the start.
pub fn closeness(text: &str, clauses: &[Clause], typed: &str) -> f32 {
    let text = normalize(truncate_to(text, CLOSE));
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
    truncate_to(text, LONGEST_TEXT)
}

pub fn start_and_beyond(text: &str) -> &str {
    truncate_to(text, LONGEST_TEXT + BEYOND)
}

/// The longest prefix of at most `longest` bytes that ends at a character boundary.
pub fn truncate_to(text: &str, longest: usize) -> &str {
    &text[..between_letters(text, longest)]
}

/// Finds a lower-case needle, ignoring the case of ASCII letters.
pub fn find_folded(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes)
        .find(|at| bytes[*at..].get(..needle.len()).is_some_and(|found| found.eq_ignore_ascii_case(needle)))
}
