//! Tables of Markdown and CSV whose header names a secret: the cells below it are secrets.

use std::ops::Range;

use super::slot::{is_name_byte, run, until};

/// A column below a header, read row by row.
pub(super) struct Column {
    separator: u8,
    index: usize,
    count: usize,
    escaped: bool,
    /// Where the next row starts.
    next: usize,
}

impl Column {
    /// The column whose header ends with this word.
    pub(super) fn below(bytes: &[u8], word: Range<usize>) -> Option<Column> {
        let closed = run(until(bytes, word.end, 8), word.end, |byte| b"\"'`* ".contains(&byte));
        let rest = until(bytes, word.end, LONGEST_LINE).get(closed..)?;
        if !matches!(rest, [b'|' | b',' | b';' | b'\t' | b'\n' | b'\r', ..] | [b'\\', b'n' | b'r' | b't', ..])
        {
            return None;
        }
        let (line, escaped) = line_end(bytes, word.end)?;
        let before = &bytes[word.start.saturating_sub(LONGEST_LINE)..word.start];
        let first = if escaped {
            before.windows(2).rposition(|pair| pair == b"\\n" || pair == b":\"").map_or(0, |at| at + 2)
        } else {
            before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
        };
        let start = word.start - (before.len() - first);
        let header = &bytes[start..line];
        let is_markdown = header.trim_ascii_start().starts_with(b"|");
        let separators: &[u8] = if is_markdown { b"|" } else { b",;\t" };
        let separator = *header.iter().find(|byte| separators.contains(byte))?;
        let is_cell = |byte: &u8| is_name_byte(*byte) || *byte >= 0x80 || b"\"'`* ".contains(byte);
        let is_header = header.iter().all(|byte| *byte == separator || is_cell(byte))
            && !header.windows(2).any(|pair| !is_markdown && pair[0] == separator && pair[1] == b' ');
        let count = |part: &[u8]| part.iter().filter(|byte| **byte == separator).count();
        let index = count(&bytes[start..word.start]);
        let mut column = Column {
            separator,
            index,
            count: count(header),
            escaped,
            next: after_line(bytes, line, escaped),
        };
        if is_markdown {
            let (rule, _) = line_end(bytes, column.next)?;
            let is_rule =
                bytes[column.next..rule].iter().all(|byte| b"|:- ".contains(byte)) && rule > column.next + 3;
            column.next = after_line(bytes, rule, escaped);
            return (is_header && is_rule && index > 0).then_some(column);
        }
        let is_framed =
            header.ends_with(&[separator]) || header.starts_with(b" ") || header.starts_with(b"\t");
        (is_header && !is_framed).then_some(column)
    }

    pub(super) fn is_markdown(&self) -> bool {
        self.separator == b'|'
    }

    /// The cell of the next row; None at the end of the table.
    pub(super) fn cell(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = self.next;
        let end = line_end(bytes, start).filter(|(_, escaped)| *escaped == self.escaped || !self.escaped);
        let end = end.map_or_else(|| until(bytes, start, LONGEST_LINE).len(), |(end, _)| end);
        let row = bytes.get(start..end)?;
        let places: Vec<usize> =
            row.iter().zip(start..).filter(|(byte, _)| **byte == self.separator).map(|(_, at)| at).collect();
        if places.len() != self.count || row.len() >= LONGEST_LINE {
            return None;
        }
        self.next = after_line(bytes, end, self.escaped);
        let from = self.index.checked_sub(1).map_or(start, |before| places[before] + 1);
        let to = places.get(self.index).copied().unwrap_or(end);
        let is_frame = |byte: &u8| b" \"'`*\\\r".contains(byte);
        let cell = &bytes[from..to];
        let open = cell.iter().position(|byte| !is_frame(byte)).unwrap_or(cell.len());
        let close = cell.iter().rposition(|byte| !is_frame(byte)).map_or(open, |at| at + 1);
        Some(from + open..from + close)
    }
}

/// The end of a line, and whether its break is an escape.
fn line_end(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    let line = until(bytes, from, LONGEST_LINE).get(from..)?;
    let broken = line.iter().position(|byte| *byte == b'\n');
    let escaped = line.windows(2).position(|pair| pair == b"\\n");
    match (broken, escaped) {
        (Some(at), Some(sooner)) if sooner < at => Some((from + sooner, true)),
        (Some(at), _) => Some((from + at, false)),
        (None, at) => at.map(|at| (from + at, true)),
    }
}

fn after_line(bytes: &[u8], end: usize, escaped: bool) -> usize {
    bytes.len().min(end + if escaped { 2 } else { 1 })
}

const LONGEST_LINE: usize = 512;
