//! Feeds a file's content to its reader line by line, and counts every line once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::passages::Passages;
use annals_core::{BLANK, Framing, Item, LineStatus, Span, Verdict};
use annals_sources::json::{Scan, ScanRoom};
use annals_sources::{Reader, Source};
use annals_store::{LineCount, ReadRows};

/// Longer lines are stored and counted, but not parsed.
const LONGEST_LINE: usize = 160 << 20;
/// Longer documents are stored, but not parsed.
const LONGEST_DOCUMENT: usize = 64 << 20;
/// Ends each text of `Framing::Sequence`.
pub const SEQUENCE_END: u8 = 0x1E;
/// The type of an unknown line is truncated to this many bytes.
const LONGEST_KIND: usize = 200;
/// Malformed lines recorded with their offsets between two calls of `take`; all are counted.
const MOST_MALFORMED: usize = 100;
/// Only one thread at a time buffers longer lines, so that memory does not grow with the number of threads.
const LARGE: usize = 16 << 20;
static LARGE_LINE: Mutex<()> = Mutex::new(());

/// Parses one file from where the last run stopped.
pub struct Parse {
    reader: Box<dyn Reader>,
    passages: Passages,
    framing: Framing,
    /// Start of the incomplete line.
    parsed: u64,
    position: u64,
    carry: Vec<u8>,
    /// The current line started before `parsed`: its start was read when the file ended without a newline.
    inside_line: bool,
    too_long: bool,
    large: Option<MutexGuard<'static, ()>>,
    items: Vec<Item>,
    room: ScanRoom,
    counts: HashMap<(LineStatus, String), (u64, u64)>,
    malformed: Vec<(Span, String)>,
    /// Bytes of newlines, which are counted apart from lines.
    line_ends: u64,
    /// Empty lines.
    blank_lines: u64,
    /// The content was already counted.
    again: bool,
    /// Whether lines were forgotten, and whether any was read.
    has_forgotten: bool,
    has_read: bool,
}

impl Parse {
    pub fn new(
        source: &'static dyn Source,
        reader: Box<dyn Reader>,
        framing: Framing,
        parsed: u64,
        inside_line: bool,
    ) -> Parse {
        Parse {
            reader,
            passages: Passages::new(source),
            framing,
            parsed,
            position: parsed,
            carry: Vec::new(),
            inside_line,
            too_long: false,
            large: None,
            items: Vec::new(),
            room: ScanRoom::default(),
            counts: HashMap::new(),
            malformed: Vec::new(),
            line_ends: 0,
            blank_lines: 0,
            again: false,
            has_forgotten: false,
            has_read: parsed > 0,
        }
    }

    /// Parses the next bytes of the content.
    pub fn feed(&mut self, bytes: &[u8]) {
        match self.framing {
            Framing::Whole => {
                self.position += bytes.len() as u64;
                self.buffer_line(bytes, LONGEST_DOCUMENT);
            }
            Framing::Lines | Framing::Sequence => {
                let mut rest = bytes;
                let delimiter = self.delimiter();
                while let Some(end) = memchr::memchr(delimiter, rest) {
                    // Empty lines are not passed to readers: a file can have a billion of them.
                    if end == 0 && self.carry.is_empty() && !self.too_long && !self.inside_line {
                        let run = rest.iter().take_while(|byte| **byte == delimiter).count();
                        self.blank_lines += run as u64;
                        self.line_ends += run as u64;
                        self.position += run as u64;
                        self.parsed = self.position;
                        rest = &rest[run..];
                        continue;
                    }
                    self.position += end as u64 + 1;
                    self.end_line(&rest[..end]);
                    rest = &rest[end + 1..];
                }
                self.position += rest.len() as u64;
                self.buffer_line(rest, LONGEST_LINE);
            }
        }
    }

    /// Ends the content. A last line without a newline is parsed if it is complete.
    pub fn finish(&mut self) {
        match self.framing {
            Framing::Whole => {
                let bytes = std::mem::take(&mut self.carry);
                let length = self.position;
                if is_blank(&bytes) {
                    self.count_forgotten(length);
                } else {
                    let verdict = match self.too_long {
                        true => Verdict::Skipped("document over 64 MiB".into()),
                        false if bytes.is_empty() => Verdict::Kept("empty file".into()),
                        false => self.read(0, &bytes),
                    };
                    self.count(verdict, 0, length, 1);
                }
                self.parsed = self.position;
            }
            Framing::Lines | Framing::Sequence => {
                if !self.too_long && (is_blank(&self.carry) || Scan::new(&self.carry).line().is_complete()) {
                    let line = std::mem::take(&mut self.carry);
                    // The carriage return of a line ending may already be there.
                    let text = line.strip_suffix(b"\r").unwrap_or(&line);
                    self.line_ends += (line.len() - text.len()) as u64;
                    self.read_line(text);
                    self.parsed = self.position;
                    self.inside_line = true;
                }
            }
        }
        self.release();
    }

    /// Feeds content that an earlier run read, to restore the reader's state. It produces no items and no counts.
    pub fn replay(&mut self, bytes: &[u8]) {
        self.again = true;
        self.feed(bytes);
        self.again = false;
        (self.line_ends, self.blank_lines) = (0, 0);
        self.counts.clear();
        self.malformed.clear();
    }

    fn delimiter(&self) -> u8 {
        match self.framing {
            Framing::Sequence => SEQUENCE_END,
            Framing::Lines | Framing::Whole => b'\n',
        }
    }

    /// Ends the current line as malformed because the rest of the content cannot be read.
    pub fn end_malformed(&mut self, reason: &str) {
        let length = self.position - self.parsed;
        self.carry = Vec::new();
        self.count(Verdict::Malformed(reason.into()), self.parsed, length, 1);
        self.parsed = self.position;
        self.framing = Framing::Lines;
    }

    /// Takes the rows since the last call.
    pub fn take(&mut self) -> ReadRows {
        if self.line_ends > 0 {
            self.counts
                .insert((LineStatus::Kept, "line end".into()), (0, std::mem::take(&mut self.line_ends)));
        }
        if self.blank_lines > 0 {
            let blank = self.counts.entry((LineStatus::Skipped, "blank line".into())).or_default();
            blank.0 += std::mem::take(&mut self.blank_lines);
        }
        let counts = std::mem::take(&mut self.counts).into_iter();
        // The name of a file would still tell of a session of which everything was forgotten.
        let tells = self.has_read || !self.has_forgotten;
        let facts = self.reader.facts().into_iter().filter(|_| tells);
        ReadRows {
            items: std::mem::take(&mut self.items),
            counts: counts
                .map(|((status, kind), (lines, bytes))| LineCount { status, kind, lines, bytes })
                .collect(),
            malformed: std::mem::take(&mut self.malformed),
            facts: facts.map(|facts| (facts.session, facts.rank, facts.facts)).collect(),
            parsed: self.parsed,
            content_size: self.position,
            state: if tells { self.reader.save() } else { String::new() },
        }
    }

    fn buffer_line(&mut self, bytes: &[u8], longest: usize) {
        if self.too_long {
            return;
        }
        if self.carry.len() + bytes.len() > longest {
            self.too_long = true;
            self.carry = Vec::new();
            return;
        }
        if self.carry.len() + bytes.len() > LARGE && self.large.is_none() {
            self.large = Some(LARGE_LINE.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.carry.extend_from_slice(bytes);
    }

    fn release(&mut self) {
        if self.large.is_some() {
            self.carry = Vec::new();
            self.large = None;
        }
    }

    /// `tail` is the line, or the rest of it after the buffered part.
    fn end_line(&mut self, tail: &[u8]) {
        if self.carry.is_empty() && !self.too_long {
            self.read_ended(tail);
        } else {
            self.buffer_line(tail, LONGEST_LINE);
            if self.too_long {
                let length = self.position - self.parsed - 1;
                self.note_malformed(Span { offset: self.parsed, length }, "line too long");
                self.count_line(Verdict::Skipped("line over 160 MiB".into()), length);
                self.line_ends += 1;
                self.too_long = false;
            } else {
                let line = std::mem::take(&mut self.carry);
                self.read_ended(&line);
                self.carry = line;
                self.carry.clear();
            }
        }
        self.release();
        self.parsed = self.position;
        self.inside_line = false;
    }

    /// Reads a line that ends with a newline; a carriage return is part of the newline.
    fn read_ended(&mut self, line: &[u8]) {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        self.line_ends += (line.len() - text.len()) as u64 + 1;
        self.read_line(text);
    }

    fn read_line(&mut self, line: &[u8]) {
        if self.inside_line && line.is_empty() {
            return;
        }
        if is_blank(line) {
            return self.count_forgotten(line.len() as u64);
        }
        let verdict = self.read(self.parsed, line);
        self.count_line(verdict, line.len() as u64);
    }

    fn read(&mut self, offset: u64, bytes: &[u8]) -> Verdict {
        self.has_read = true;
        let before = self.items.len();
        let scan = Scan::within(bytes, std::mem::take(&mut self.room));
        let verdict = self.reader.read(offset, scan.line(), &mut self.items);
        if self.again {
            self.items.clear();
        } else {
            self.count_drift(before);
            self.passages.gather(offset, scan.line(), &mut self.items, before);
        }
        self.room = scan.into_room();
        verdict
    }

    /// Counts unknown content inside known lines. The line and its bytes are already counted by the line's verdict.
    fn count_drift(&mut self, from: usize) {
        let mut at = from;
        while let Some(item) = self.items.get(at) {
            let Item::Drift(kind) = item else {
                at += 1;
                continue;
            };
            let kind = shorten(kind.clone());
            self.counts.entry((LineStatus::Drift, kind)).or_default().0 += 1;
            self.items.remove(at);
        }
    }

    fn count_forgotten(&mut self, bytes: u64) {
        self.has_forgotten = true;
        let count = self.counts.entry((LineStatus::Forgotten, "forgotten".into())).or_default();
        *count = (count.0 + u64::from(!self.inside_line), count.1 + bytes);
    }

    fn count_line(&mut self, verdict: Verdict, bytes: u64) {
        // If the start of the line was already counted, only bytes are added.
        let lines = u64::from(!self.inside_line);
        self.count(verdict, self.parsed, bytes, lines);
    }

    fn count(&mut self, verdict: Verdict, offset: u64, bytes: u64, lines: u64) {
        let (status, kind) = match verdict {
            Verdict::Kept(kind) => (LineStatus::Kept, kind),
            Verdict::Unknown(kind) => (LineStatus::Unknown, kind),
            Verdict::Malformed(kind) => {
                self.note_malformed(Span { offset, length: bytes }, &kind);
                (LineStatus::Malformed, kind)
            }
            Verdict::Skipped(kind) => (LineStatus::Skipped, kind),
            Verdict::Parts(parts) => {
                for (verdict, bytes) in parts {
                    self.count(verdict, offset, bytes, lines);
                }
                return;
            }
        };
        let count = self.counts.entry((status, shorten(kind))).or_default();
        *count = (count.0 + lines, count.1 + bytes);
    }

    fn note_malformed(&mut self, span: Span, what: &str) {
        if self.malformed.len() < MOST_MALFORMED {
            self.malformed.push((span, what.to_owned()));
        }
    }
}

/// Whether a line or document was forgotten.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.first() == Some(&BLANK) && bytes.iter().all(|byte| *byte == BLANK)
}

fn shorten(mut kind: String) -> String {
    let mut end = kind.len().min(LONGEST_KIND);
    while !kind.is_char_boundary(end) {
        end -= 1;
    }
    kind.truncate(end);
    kind
}
