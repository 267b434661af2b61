//! Keeps what was forgotten out of bytes on their way into the archive: it is blanked in place, so that every other byte
//! keeps its offset.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use super::content::decoder;
use super::parse::SEQUENCE_END;
use annals_core::{BLANK, Encoding, Forgotten, Framing, MASK};
use annals_sources::json::Json;

/// Longer lines and documents are searched for texts only in parts of this size.
const LONGEST: usize = 256 << 20;
/// The compressed form of what is left of a file may need more effort than the client's.
const LEVELS: [i32; 4] = [3, 9, 15, 19];
/// A frame that decoders skip: its mark, and the length of what follows.
const SKIPPED_FRAME: [u8; 4] = [0x50, 0x2A, 0x4D, 0x18];

/// A range of a file that another byte takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blank {
    pub range: Range<u64>,
    pub fill: u8,
}

/// What decides how the bytes of a file are looked at.
#[derive(Debug, Clone, Copy)]
pub(in crate::collect) struct Shape<'a> {
    pub path: &'a str,
    pub framing: Framing,
    pub encoding: Encoding,
}

/// What takes the place of forgotten bytes in a file.
pub enum Replacement {
    Blanks(Vec<Blank>),
    /// A compressed file is rewritten in its old size.
    Whole(Vec<u8>),
}

impl Replacement {
    pub fn is_empty(&self) -> bool {
        matches!(self, Replacement::Blanks(blanks) if blanks.is_empty())
    }

    /// The bytes with the replacement in place.
    pub fn over<'r>(&'r self, bytes: impl Read + 'r) -> Box<dyn Read + 'r> {
        match self {
            Replacement::Blanks(blanks) => Box::new(Overlay { inner: bytes, position: 0, blanks }),
            Replacement::Whole(whole) => Box::new(whole.as_slice()),
        }
    }
}

/// What of a file was forgotten. Reads all of it.
pub fn forgotten_parts(input: impl Read, forgotten: &Forgotten, shape: Shape<'_>) -> io::Result<Replacement> {
    if forgotten.is_empty() {
        return Ok(Replacement::Blanks(Vec::new()));
    }
    match shape.encoding {
        Encoding::Plain => Ok(Replacement::Blanks(find_blanks(input, forgotten, shape)?)),
        Encoding::Zstd => compressed_parts(input, forgotten, shape),
    }
}

/// Blanks what was forgotten in a whole file, or in an element of one.
pub fn blank(bytes: &mut [u8], forgotten: &Forgotten, path: &str, framing: Framing) -> io::Result<()> {
    let shape = Shape { path, framing, encoding: Encoding::Plain };
    for Blank { range, fill } in find_blanks(&*bytes, forgotten, shape)? {
        bytes[range.start as usize..range.end as usize].fill(fill);
    }
    Ok(())
}

/// Everything of a file but its line ends.
pub fn whole_file(input: impl Read, size: u64, shape: Shape<'_>) -> io::Result<Replacement> {
    let all = |range: Range<u64>| Blank { range, fill: BLANK };
    let mut blanks = Vec::new();
    if shape.encoding == Encoding::Zstd || shape.framing == Framing::Whole {
        blanks.push(all(0..size));
    } else {
        each_unit(input, shape.framing, &mut |start, unit| {
            if !unit.is_empty() {
                blanks.push(all(start..start + unit.len() as u64));
            }
        })?;
    }
    Ok(Replacement::Blanks(blanks))
}

/// Visits every line, element or document with its offset; what is longer than `LONGEST` in parts.
pub fn each_unit(input: impl Read, framing: Framing, visit: &mut dyn FnMut(u64, &[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, input);
    let delimiter = match framing {
        Framing::Lines => Some(b'\n'),
        Framing::Sequence => Some(SEQUENCE_END),
        Framing::Whole => None,
    };
    let (mut start, mut unit) = (0, Vec::new());
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let end = delimiter.and_then(|delimiter| memchr::memchr(delimiter, buffer));
        let room = LONGEST - unit.len();
        let part = end.unwrap_or(buffer.len()).min(room);
        let is_ended = end == Some(part);
        // The usual line is in the buffer as a whole.
        if is_ended && unit.is_empty() {
            visit(start, &buffer[..part]);
        } else {
            unit.extend_from_slice(&buffer[..part]);
            if is_ended || unit.len() == LONGEST {
                visit(start, &unit);
            }
        }
        if is_ended {
            start += unit.len().max(part) as u64 + 1;
            unit.clear();
        } else if unit.len() == LONGEST {
            start += unit.len() as u64;
            unit.clear();
        }
        reader.consume(part + usize::from(is_ended));
    }
    if !unit.is_empty() {
        visit(start, &unit);
    }
    Ok(())
}

fn find_blanks(input: impl Read, forgotten: &Forgotten, shape: Shape<'_>) -> io::Result<Vec<Blank>> {
    let mut blanks = Vec::new();
    if forgotten.is_empty() {
        return Ok(blanks);
    }
    each_unit(input, shape.framing, &mut |start, unit| {
        if forgotten.is_forgotten(shape.path, unit) {
            blanks.push(Blank { range: start..start + unit.len() as u64, fill: BLANK });
            return;
        }
        let first = blanks.len();
        if shape.framing == Framing::Whole {
            forgotten_entries(unit, forgotten, shape.path, &mut |range| {
                blanks
                    .push(Blank { range: start + range.start as u64..start + range.end as u64, fill: BLANK });
            });
        }
        let entries = blanks.len();
        if forgotten.has_texts() {
            let is_json = matches!(unit.first(), Some(b'{' | b'['));
            forgotten.each_text(unit, &mut |range| {
                let place = start + range.start as u64..start + range.end as u64;
                let is_in_entry = blanks[first..entries]
                    .iter()
                    .any(|entry| entry.range.start < place.end && place.start < entry.range.end);
                let is_part_of_escape = is_json && is_inside_escape(unit, range.start);
                if !is_in_entry && !is_part_of_escape {
                    let digits = unit[range].iter().all(u8::is_ascii_digit);
                    // A number has to stay one.
                    let fill = if digits { b'1' } else { MASK };
                    blanks.push(Blank { range: place, fill });
                }
            });
            blanks[first..].sort_by_key(|blank| (blank.range.start, blank.range.end));
        }
    })?;
    Ok(blanks)
}

/// The entries of a list, or of the lists in an object: what a file that many sessions share has about each of them.
pub fn entries_of(document: &[u8]) -> Vec<Json<'_>> {
    let Some(json) = Json::parse(document) else { return Vec::new() };
    let lists: Vec<Json<'_>> = match json.is_array() {
        true => vec![json],
        false if json.is_object() => json.object().fields().iter().map(|(_, value)| *value).collect(),
        false => Vec::new(),
    };
    let lists = lists.into_iter().filter(|list| list.is_array());
    lists.flat_map(|list| list.items()).filter(|entry| entry.is_object()).collect()
}

/// What an entry about a session as a whole has in place of its name, as in the file.
pub fn id_of<'a>(entry: &Json<'a>) -> Option<Json<'a>> {
    entry.get("id").filter(|id| id.is_string())
}

/// Emits what is inside of the braces of entries that were forgotten: an object without fields stays, so that the
/// document can still be read.
fn forgotten_entries(document: &[u8], forgotten: &Forgotten, path: &str, emit: &mut dyn FnMut(Range<usize>)) {
    if !matches!(document.first(), Some(b'{' | b'[')) {
        return;
    }
    for entry in entries_of(document) {
        let is_known = |json: Json<'_>| forgotten.is_forgotten(path, json.bytes());
        if is_known(entry) || id_of(&entry).is_some_and(is_known) {
            let start = entry.bytes().as_ptr() as usize - document.as_ptr() as usize;
            emit(start + 1..start + entry.bytes().len() - 1);
        }
    }
}

/// Whether a backslash before `at` makes what follows part of an escape.
fn is_inside_escape(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Decodes, blanks, and compresses again to the same size.
fn compressed_parts(
    mut input: impl Read,
    forgotten: &Forgotten,
    shape: Shape<'_>,
) -> io::Result<Replacement> {
    let mut stored = Vec::new();
    input.read_to_end(&mut stored)?;
    let mut content = Vec::new();
    // Of a damaged file, what can be decoded counts.
    let decoded = decoder(stored.as_slice(), shape.encoding)?.read_to_end(&mut content);
    let blanks = find_blanks(content.as_slice(), forgotten, shape)?;
    if blanks.is_empty() {
        return Ok(Replacement::Blanks(blanks));
    }
    for Blank { range, fill } in &blanks {
        content[range.start as usize..range.end as usize].fill(*fill);
    }
    let is_left = content.iter().any(|byte| *byte != BLANK && *byte != b'\n');
    for level in LEVELS.iter().filter(|_| is_left && decoded.is_ok()) {
        let mut packed = zstd::bulk::compress(&content, *level)?;
        let room = stored.len().checked_sub(packed.len());
        if let Some(room) = room.filter(|room| *room == 0 || *room >= 8) {
            if let Some(padding) = room.checked_sub(8) {
                packed.extend(SKIPPED_FRAME);
                packed.extend((padding as u32).to_le_bytes());
                packed.resize(stored.len(), 0);
            }
            return Ok(Replacement::Whole(packed));
        }
    }
    let size = stored.len() as u64;
    Ok(Replacement::Blanks(vec![Blank { range: 0..size, fill: BLANK }]))
}

/// Reads bytes with blanks in place.
struct Overlay<'b, R> {
    inner: R,
    position: u64,
    blanks: &'b [Blank],
}

impl<R: Read> Read for Overlay<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        fill(&mut buffer[..read], self.position, self.blanks);
        self.position += read as u64;
        Ok(read)
    }
}

/// Puts the blanks of a file into bytes that start at `start`.
pub fn fill(bytes: &mut [u8], start: u64, blanks: &[Blank]) {
    let end = start + bytes.len() as u64;
    // Ends are not in order where texts overlap, but starts are.
    let last = blanks.partition_point(|blank| blank.range.start < end);
    let longest_before = blanks[..last].iter().rev();
    for blank in longest_before.take_while(|blank| blank.range.end > start || blank.fill != BLANK) {
        let (from, to) = (blank.range.start.max(start), blank.range.end.min(end));
        if from < to {
            bytes[(from - start) as usize..(to - start) as usize].fill(blank.fill);
        }
    }
}

/// A file with what was forgotten replaced: on disk, or in memory.
pub enum WithoutForgotten {
    Disk { file: std::fs::File, position: u64, blanks: Vec<Blank> },
    Memory(io::Cursor<Vec<u8>>),
}

impl WithoutForgotten {
    pub fn of(
        mut file: std::fs::File,
        forgotten: &Forgotten,
        shape: Shape<'_>,
    ) -> io::Result<WithoutForgotten> {
        let replacement = forgotten_parts(&mut file, forgotten, shape)?;
        file.rewind()?;
        Ok(match replacement {
            Replacement::Blanks(blanks) => WithoutForgotten::Disk { file, position: 0, blanks },
            Replacement::Whole(bytes) => WithoutForgotten::Memory(io::Cursor::new(bytes)),
        })
    }
}

impl Read for WithoutForgotten {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            WithoutForgotten::Disk { file, position, blanks } => {
                let read = file.read(buffer)?;
                fill(&mut buffer[..read], *position, blanks);
                *position += read as u64;
                Ok(read)
            }
            WithoutForgotten::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for WithoutForgotten {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            WithoutForgotten::Disk { file, position, .. } => {
                *position = file.seek(to)?;
                Ok(*position)
            }
            WithoutForgotten::Memory(bytes) => bytes.seek(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::LineKind;

    fn forgetting(lines: &[&str], texts: &[&str]) -> Forgotten {
        let mut forgotten = Forgotten::new([1; 32]);
        for line in lines {
            let hash = forgotten.hash_of_line("a", line.as_bytes(), LineKind::Other);
            forgotten.add_line(line.len() as u64, hash);
        }
        for text in texts {
            forgotten.add_text(forgotten.text(text.as_bytes()));
        }
        forgotten
    }

    fn blanked(text: &str, forgotten: &Forgotten) -> String {
        let mut bytes = text.as_bytes().to_vec();
        blank(&mut bytes, forgotten, "a", Framing::Lines).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_and_texts_are_blanked_in_place() {
        let forgotten = forgetting(&["two"], &["gears", "4711"]);
        assert_eq!(blanked("one\ntwo\nthe gears\nrest", &forgotten), "one\n\t\t\t\nthe *****\nrest");
        assert_eq!(blanked("{\"pin\":4711}\n", &forgotten), "{\"pin\":1111}\n");
        assert_eq!(blanked("{\"a\":\"\\gears\"}\n", &forgotten), "{\"a\":\"\\gears\"}\n");
        assert_eq!(blanked("{\"a\":\"\\\\gears\"}\n", &forgotten), "{\"a\":\"\\\\*****\"}\n");
    }

    #[test]
    fn compressed_files_keep_their_size() {
        let forgotten = forgetting(&[], &["gears"]);
        let content = "oil the gears, then the wheels\n".repeat(40);
        let stored = zstd::bulk::compress(content.as_bytes(), 1).unwrap();
        let shape = Shape { path: "a", framing: Framing::Lines, encoding: Encoding::Zstd };
        let Replacement::Whole(packed) = forgotten_parts(stored.as_slice(), &forgotten, shape).unwrap()
        else {
            panic!("nothing was replaced, or everything");
        };
        assert_eq!(packed.len(), stored.len());
        let mut decoded = String::new();
        decoder(packed.as_slice(), Encoding::Zstd).unwrap().read_to_string(&mut decoded).unwrap();
        assert_eq!(decoded, content.replace("gears", "*****"));
    }
}
