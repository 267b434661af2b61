//! Collects the passages of a transaction, and writes them as one segment of the text index on commit.

use rusqlite::params;

use super::format::{BlockWriter, Doc, write_docs};
use crate::error::Result;
use crate::sql;
use crate::write::Writer;
use annals_core::{FileId, InstanceId, Passage, SessionId, Time, hash_term};

/// The number of recent passages in which repetitions are detected.
const RECENT: usize = 16;

/// A term by its hash. A comparison needs only the slot and the letters, which stay in the CPU cache.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The upper half of the hash; the lower half is the index.
    tag: u32,
    /// Starts at 1; 0 marks an empty slot.
    number: u32,
    start: u32,
    length: u32,
}

impl Slot {
    fn term(self, letters: &[u8]) -> &[u8] {
        &letters[self.start as usize..(self.start + self.length) as usize]
    }
}

/// Terms are numbered as they come; pairs of term and passage are sorted once, at the end.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    docs: Vec<Doc>,
    slots: Vec<Slot>,
    hashes: Vec<u64>,
    letters: Vec<u8>,
    spans: Vec<(u32, u8)>,
    pairs: Vec<(u32, u32)>,
}

impl IndexBuilder {
    fn add(&mut self, doc: Doc, passage: &Passage) {
        let key = |doc: &Doc| (doc.file, doc.epoch, doc.offset, doc.kind);
        let same = |known: &Doc| key(known) == key(&doc);
        let recent = self.docs.len().saturating_sub(RECENT);
        // A repeated output is one passage, and so is a message of several lines.
        let number = match self.docs[recent..].iter().rposition(same) {
            Some(at) => {
                let known = &mut self.docs[recent + at];
                known.length = known.length.max(doc.length);
                recent + at
            }
            None => {
                self.docs.push(doc);
                self.docs.len() - 1
            }
        } as u32;
        for term in passage.terms.iter() {
            let term = self.number_of(term);
            self.pairs.push((term, number));
        }
    }

    fn number_of(&mut self, term: &[u8]) -> u32 {
        if (self.spans.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let hash = hash_term(term);
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].number > 0 {
            let slot = self.slots[at];
            if slot.tag == tag && slot.term(&self.letters) == term {
                return slot.number - 1;
            }
            at = (at + 1) & mask;
        }
        let (number, start) = (self.spans.len() as u32, self.letters.len() as u32);
        self.slots[at] = Slot { tag, number: number + 1, start, length: term.len() as u32 };
        self.hashes.push(hash);
        self.spans.push((start, term.len() as u8));
        self.letters.extend_from_slice(term);
        number
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(1 << 12);
        self.slots = vec![Slot::default(); size];
        let terms = self.hashes.iter().zip(&self.spans).zip(1..);
        for ((hash, (start, length)), number) in terms {
            let mut at = *hash as usize & (size - 1);
            while self.slots[at].number != 0 {
                at = (at + 1) & (size - 1);
            }
            let tag = (hash >> 32) as u32;
            self.slots[at] = Slot { tag, number, start: *start, length: u32::from(*length) };
        }
    }

    fn term(&self, number: u32) -> &[u8] {
        let (start, length) = self.spans[number as usize];
        &self.letters[start as usize..start as usize + usize::from(length)]
    }

    /// Term numbers, sorted by the letters of the terms.
    fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> = (0..self.spans.len() as u32)
            .map(|number| {
                let mut first = [0; 8];
                let term = self.term(number);
                let length = term.len().min(8);
                first[..length].copy_from_slice(&term[..length]);
                (u64::from_be_bytes(first), number)
            })
            .collect();
        // Eight letters are nearly always enough.
        order.sort_unstable_by(|(left, a), (right, b)| {
            left.cmp(right).then_with(|| self.term(*a).cmp(self.term(*b)))
        });
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Visits each term with its passages, in order.
    fn visit_lists(&self, mut visit: impl FnMut(&[u8], &[u32]) -> Result<()>) -> Result<()> {
        let mut starts = vec![0u32; self.spans.len() + 1];
        for (term, _) in &self.pairs {
            starts[*term as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut ends = starts.clone();
        let mut lists = vec![0u32; self.pairs.len()];
        for (term, passage) in &self.pairs {
            let end = &mut ends[*term as usize];
            lists[*end as usize] = *passage;
            *end += 1;
        }
        for term in self.sorted() {
            let range = starts[term as usize] as usize..ends[term as usize] as usize;
            let list = &mut lists[range];
            // Pairs are ordered by passage, except for repeated ones.
            if list.is_sorted_by(|before, next| before < next) {
                visit(self.term(term), list)?;
            } else {
                list.sort_unstable();
                let mut distinct = list.to_vec();
                distinct.dedup();
                visit(self.term(term), &distinct)?;
            }
        }
        Ok(())
    }
}

impl Writer<'_> {
    /// Passages of this file are alive while its epoch stays the same.
    pub(crate) fn epoch(&self, file: FileId) -> Result<i64> {
        let mut statement =
            self.transaction.prepare_cached(sql!("select search_epoch from file where id = $1"))?;
        Ok(statement.query_row(params![file], |row| row.get(0))?)
    }

    pub(crate) fn write_passage(
        &mut self,
        instance: InstanceId,
        file: FileId,
        epoch: i64,
        passage: &Passage,
    ) -> Result<()> {
        let session = match &passage.session {
            Some(session) => self.session_id(instance, session)?,
            None => SessionId::NONE,
        };
        let doc = Doc {
            session,
            file,
            offset: passage.offset as i64,
            epoch,
            kind: passage.kind.stored(),
            minutes: match passage.at {
                Some(at) => at.minute(),
                None => self.minutes_of(session, file, passage.offset as i64)?,
            },
            length: passage.terms.length.checked_ilog2().unwrap_or(0) as u8,
        };
        self.index.add(doc, passage);
        Ok(())
    }

    /// The time of the message or call at a place, for its further lines and files.
    fn minutes_of(&self, session: SessionId, file: FileId, offset: i64) -> Result<i64> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select coalesce((select at from message where session = $1 and file = $2 and byte_offset = $3),
                             (select at from tool_call where session = $1 and file = $2 and byte_offset = $3))"
        ))?;
        let at: Option<i64> = statement.query_row(params![session, file, offset], |row| row.get(0))?;
        Ok(at.map_or(0, |at| Time::from_micros(at).minute()))
    }

    pub(crate) fn write_index(&mut self) -> Result<()> {
        // First, so that new segments reuse the space of removed ones.
        if std::mem::take(&mut self.dropped_passages) {
            self.compact_segments()?;
        }
        let builder = std::mem::take(&mut self.index);
        if builder.docs.is_empty() {
            return Ok(());
        }
        let mut segment = SegmentWriter::new(self, &builder.docs, builder.pairs.len())?;
        builder.visit_lists(|term, passages| segment.add(term, passages))?;
        segment.finish()?;
        self.merge_segments()
    }
}

/// Writes one segment, term after term.
pub(crate) struct SegmentWriter<'w, 's> {
    writer: &'w Writer<'s>,
    segment: i64,
    blocks: BlockWriter,
}

impl<'w, 's> SegmentWriter<'w, 's> {
    pub(crate) fn new(
        writer: &'w Writer<'s>,
        docs: &[Doc],
        postings: usize,
    ) -> Result<SegmentWriter<'w, 's>> {
        let mut statement = writer.transaction.prepare_cached(sql!(
            "insert into search_segment (passages, postings, table_data) values ($1, $2, $3) returning id"
        ))?;
        let row = params![docs.len() as i64, postings as i64, write_docs(docs)];
        let segment = statement.query_row(row, |row| row.get(0))?;
        Ok(SegmentWriter { writer, segment, blocks: BlockWriter::new() })
    }

    pub(crate) fn add(&mut self, term: &[u8], passages: &[u32]) -> Result<()> {
        let full = self.blocks.add(term, passages);
        self.write(full)
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        let last = self.blocks.finish();
        self.write(last)
    }

    fn write(&self, block: Option<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        let Some((first, data)) = block else { return Ok(()) };
        let mut statement = self.writer.transaction.prepare_cached(sql!(
            "insert into search_block (segment, first_term, data) values ($1, $2, $3)"
        ))?;
        statement.execute(params![self.segment, first, data])?;
        Ok(())
    }
}
