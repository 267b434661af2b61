//! The format of the text index: varints, a table of passages, blocks of sorted terms.

use annals_core::{FileId, SessionId};

/// One passage of a segment; its number is its place in the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Doc {
    /// The session's row, or 0 for a record of a file.
    pub session: SessionId,
    pub file: FileId,
    pub offset: i64,
    pub epoch: i64,
    pub kind: u8,
    /// Minutes since 1970; 0 if unknown.
    pub minutes: i64,
    /// Base-2 logarithm of the number of terms.
    pub length: u8,
}

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Small numbers of either sign take few bytes.
fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

pub(crate) fn write_docs(docs: &[Doc]) -> Vec<u8> {
    let mut out = Vec::with_capacity(docs.len() * 10);
    let mut before = Doc::default();
    for doc in docs {
        put_signed(&mut out, doc.session.0.wrapping_sub(before.session.0));
        put_signed(&mut out, doc.file.0.wrapping_sub(before.file.0));
        put_signed(&mut out, doc.offset.wrapping_sub(before.offset));
        put(&mut out, doc.epoch as u64);
        put_signed(&mut out, doc.minutes.wrapping_sub(before.minutes));
        out.extend([doc.kind, doc.length]);
        before = *doc;
    }
    out
}

/// A damaged table ends where the damage starts.
pub(crate) fn read_docs(mut bytes: &[u8]) -> impl Iterator<Item = Doc> {
    let mut before = Doc::default();
    std::iter::from_fn(move || {
        before = read_doc(&mut bytes, &before)?;
        Some(before)
    })
}

fn read_doc(bytes: &mut &[u8], before: &Doc) -> Option<Doc> {
    let session = SessionId(before.session.0.wrapping_add(take_signed(bytes)?));
    let file = FileId(before.file.0.wrapping_add(take_signed(bytes)?));
    let offset = before.offset.wrapping_add(take_signed(bytes)?);
    let epoch = take(bytes)? as i64;
    let minutes = before.minutes.wrapping_add(take_signed(bytes)?);
    let (end, rest) = bytes.split_first_chunk::<2>()?;
    *bytes = rest;
    let [kind, length] = *end;
    Some(Doc { session, file, offset, epoch, kind, minutes, length })
}

/// Writes sorted terms with their passages, starting a new block when one is large enough.
pub(crate) struct BlockWriter {
    data: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
}

const BLOCK: usize = 16 << 10;

impl BlockWriter {
    pub(crate) fn new() -> BlockWriter {
        BlockWriter { data: Vec::with_capacity(BLOCK + 1024), first: Vec::new(), last: Vec::new() }
    }

    /// Passages must be sorted. Returns a block when it is full.
    pub(crate) fn add(&mut self, term: &[u8], passages: &[u32]) -> Option<(Vec<u8>, Vec<u8>)> {
        let full = if self.data.len() >= BLOCK { self.finish() } else { None };
        if self.data.is_empty() {
            self.first = term.to_vec();
            self.last.clear();
        }
        let shared = self.last.iter().zip(term).take_while(|(before, now)| before == now).count();
        self.data.extend([shared as u8, (term.len() - shared) as u8]);
        self.data.extend_from_slice(&term[shared..]);
        put(&mut self.data, passages.len() as u64);
        // The length is known only once the numbers are written; most lists are short.
        let mut numbers = std::mem::take(&mut self.last);
        numbers.clear();
        let mut before = 0;
        for passage in passages {
            put(&mut numbers, u64::from(passage - before));
            before = *passage;
        }
        put(&mut self.data, numbers.len() as u64);
        self.data.extend_from_slice(&numbers);
        numbers.clear();
        numbers.extend_from_slice(term);
        self.last = numbers;
        full
    }

    pub(crate) fn finish(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        if self.data.is_empty() {
            return None;
        }
        Some((std::mem::take(&mut self.first), std::mem::take(&mut self.data)))
    }
}

/// The terms of a block, one after another.
pub(crate) struct BlockReader<'b> {
    rest: &'b [u8],
    term: Vec<u8>,
    count: u64,
    numbers: &'b [u8],
}

impl<'b> BlockReader<'b> {
    pub(crate) fn new(block: &'b [u8]) -> BlockReader<'b> {
        BlockReader { rest: block, term: Vec::new(), count: 0, numbers: &[] }
    }

    /// Moves to the next term. Returns false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        self.read().is_some()
    }

    fn read(&mut self) -> Option<()> {
        let (lengths, rest) = self.rest.split_first_chunk::<2>()?;
        let [shared, suffix] = lengths.map(usize::from);
        let (suffix, rest) = rest.split_at_checked(suffix)?;
        self.rest = rest;
        self.term.truncate(shared);
        self.term.extend_from_slice(suffix);
        self.count = take(&mut self.rest)?;
        let length = usize::try_from(take(&mut self.rest)?).ok()?;
        let (numbers, rest) = self.rest.split_at_checked(length)?;
        (self.numbers, self.rest) = (numbers, rest);
        Some(())
    }

    pub(crate) fn term(&self) -> &[u8] {
        &self.term
    }

    /// The number of passages that contain the term.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn passages(&self, out: &mut Vec<u32>) {
        let mut numbers = self.numbers;
        let mut passage = 0u32;
        out.reserve(usize::try_from(self.count).unwrap_or(0).min(numbers.len()));
        while let Some(step) = take(&mut numbers) {
            passage = passage.wrapping_add(step as u32);
            out.push(passage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(take(&mut out.as_slice()), Some(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put_signed(&mut out, number);
            assert_eq!(take_signed(&mut out.as_slice()), Some(number));
        }
        assert_eq!(take(&mut &[0x80][..]), None);
    }

    #[test]
    fn tables_and_blocks_read_back() {
        let docs: Vec<Doc> = (0..300)
            .map(|at| Doc {
                session: SessionId(at / 7),
                file: FileId(9 - at % 3),
                offset: at * 1_000 % 77,
                epoch: at % 2,
                kind: (at % 7) as u8,
                minutes: 29_000_000 - at,
                length: 3,
            })
            .collect();
        assert_eq!(read_docs(&write_docs(&docs)).collect::<Vec<_>>(), docs);
        let terms: Vec<(Vec<u8>, Vec<u32>)> = (0..4_000)
            .map(|number| (format!("term{number:05}").into_bytes(), vec![number, number + 5, number + 900]))
            .collect();
        let mut writer = BlockWriter::new();
        let mut blocks: Vec<(Vec<u8>, Vec<u8>)> =
            terms.iter().filter_map(|(term, passages)| writer.add(term, passages)).collect();
        blocks.extend(writer.finish());
        assert!(blocks.len() > 1);
        let mut read = Vec::new();
        for (first, block) in &blocks {
            let mut reader = BlockReader::new(block);
            let started = read.len();
            while reader.advance() {
                let mut passages = Vec::new();
                reader.passages(&mut passages);
                read.push((reader.term().to_vec(), passages));
            }
            assert_eq!(&read[started].0, first);
        }
        assert_eq!(read, terms);
    }

    #[test]
    fn broken_blocks_end_early() {
        let mut writer = BlockWriter::new();
        writer.add(b"alpha", &[1, 2, 3]);
        writer.add(b"beta", &[4]);
        let (_, block) = writer.finish().unwrap();
        for cut in 0..block.len() {
            let mut reader = BlockReader::new(&block[..cut]);
            while reader.advance() {}
        }
    }
}
