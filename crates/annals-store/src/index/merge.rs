//! Merges segments of the text index: eight of a size become one, without dead passages.

use annals_core::FileId;
use rusqlite::params;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::format::{BlockReader, Doc, read_docs};
use super::write::SegmentWriter;
use crate::error::Result;
use crate::sql;
use crate::write::Writer;

/// The number of segments of one size that are merged.
const FAN: usize = 8;
/// Passages of the smallest size; each size holds `FAN` times as many.
const SMALLEST: i64 = 64;
/// Larger segments are not merged: rewriting them costs more than reading several.
const LARGEST: i64 = 40_000;

impl Writer<'_> {
    pub(crate) fn merge_segments(&mut self) -> Result<()> {
        loop {
            let mut sizes: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
            let mut statement = self
                .transaction
                .prepare_cached(sql!("select id, passages from search_segment order by id"))?;
            let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
            for row in rows {
                let (segment, passages) = row?;
                if passages <= LARGEST {
                    let size = (passages / SMALLEST).max(1).ilog(FAN as i64);
                    sizes.entry(size).or_default().push(segment);
                }
            }
            drop(statement);
            let Some(chosen) = sizes.into_values().find(|segments| segments.len() >= FAN) else {
                return Ok(());
            };
            self.merge(&chosen)?;
        }
    }

    fn merge(&mut self, chosen: &[i64]) -> Result<()> {
        let epochs = self.epochs()?;
        let mut docs: Vec<Doc> = Vec::new();
        let mut sources = Vec::new();
        let mut postings = 0;
        for segment in chosen {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("select table_data, postings from search_segment where id = $1"))?;
            let (table, count): (Vec<u8>, i64) =
                statement.query_row(params![segment], |row| Ok((row.get(0)?, row.get(1)?)))?;
            postings += usize::try_from(count).unwrap_or(0);
            // The new number of each passage; dead ones have none.
            let mut numbers = Vec::new();
            for doc in read_docs(&table) {
                let alive = epochs.get(&doc.file).copied().unwrap_or(0) == doc.epoch;
                numbers.push(alive.then_some(docs.len() as u32));
                if alive {
                    docs.push(doc);
                }
            }
            sources.push(SegmentReader::new(self, *segment, numbers)?);
        }
        let mut heap = BinaryHeap::new();
        for (at, source) in sources.iter_mut().enumerate() {
            if source.advance(self)? {
                heap.push(Reverse((source.term.clone(), at)));
            }
        }
        let mut segment = SegmentWriter::new(self, &docs, postings)?;
        let mut passages: Vec<u32> = Vec::new();
        let mut scratch = Vec::new();
        while let Some(Reverse((term, at))) = heap.pop() {
            let source = &mut sources[at];
            scratch.clear();
            scratch.append(&mut source.passages);
            passages.extend(
                scratch.iter().filter_map(|old| source.numbers.get(*old as usize).copied().flatten()),
            );
            if source.advance(self)? {
                heap.push(Reverse((source.term.clone(), at)));
            }
            let more = heap.peek().is_some_and(|Reverse((next, _))| *next == term);
            if !more {
                // Sources are in order, and so are the new numbers.
                if !passages.is_empty() {
                    segment.add(&term, &passages)?;
                }
                passages.clear();
            }
        }
        segment.finish()?;
        self.remove_segments(chosen)
    }

    /// Rewrites small segments in which half of the passages are dead, so that a file that changes often leaves little
    /// behind.
    pub(crate) fn compact_segments(&mut self) -> Result<()> {
        let epochs = self.epochs()?;
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select id, table_data from search_segment where passages <= $1"))?;
        let mut rows = statement.query(params![SMALLEST * FAN as i64])?;
        let (mut dead, mut stale) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let table = row.get_ref(1)?.as_blob().unwrap_or_default();
            let alive = |doc: &Doc| epochs.get(&doc.file).copied().unwrap_or(0) == doc.epoch;
            let (all, alive) = (read_docs(table).count(), read_docs(table).filter(alive).count());
            match alive {
                0 => dead.push(row.get::<_, i64>(0)?),
                alive if alive * 2 <= all => stale.push(row.get::<_, i64>(0)?),
                _ => {}
            }
        }
        drop(rows);
        drop(statement);
        self.remove_segments(&dead)?;
        stale.into_iter().try_for_each(|segment| self.merge(&[segment]))
    }

    /// Rewrites every segment that has dead passages, so that nothing of them is left.
    pub(crate) fn drop_dead_passages(&mut self) -> Result<()> {
        let epochs = self.epochs()?;
        let mut statement =
            self.transaction.prepare_cached(sql!("select id, table_data from search_segment"))?;
        let mut rows = statement.query([])?;
        let (mut dead, mut stale) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let table = row.get_ref(1)?.as_blob().unwrap_or_default();
            let alive = |doc: &Doc| epochs.get(&doc.file).copied().unwrap_or(0) == doc.epoch;
            let (all, alive) = (read_docs(table).count(), read_docs(table).filter(alive).count());
            if alive == 0 {
                dead.push(row.get::<_, i64>(0)?);
            } else if alive < all {
                stale.push(row.get::<_, i64>(0)?);
            }
        }
        drop(rows);
        drop(statement);
        self.remove_segments(&dead)?;
        stale.into_iter().try_for_each(|segment| self.merge(&[segment]))
    }

    fn remove_segments(&self, segments: &[i64]) -> Result<()> {
        for segment in segments {
            for text in [
                sql!("delete from search_block where segment = $1"),
                sql!("delete from search_segment where id = $1"),
            ] {
                self.transaction.prepare_cached(text)?.execute(params![segment])?;
            }
        }
        Ok(())
    }

    pub(crate) fn epochs(&self) -> Result<HashMap<FileId, i64>> {
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select id, search_epoch from file where search_epoch > 0"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// Reads a segment from first term to last, one block at a time.
struct SegmentReader {
    blocks: std::vec::IntoIter<i64>,
    /// The rest of the current block: terms with their passages, last first.
    lists: Vec<(Vec<u8>, Vec<u32>)>,
    numbers: Vec<Option<u32>>,
    term: Vec<u8>,
    passages: Vec<u32>,
}

impl SegmentReader {
    fn new(writer: &Writer<'_>, segment: i64, numbers: Vec<Option<u32>>) -> Result<SegmentReader> {
        let mut statement = writer
            .transaction
            .prepare_cached(sql!("select id from search_block where segment = $1 order by first_term"))?;
        let blocks: Vec<i64> =
            statement.query_map(params![segment], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let blocks = blocks.into_iter();
        Ok(SegmentReader { blocks, lists: Vec::new(), numbers, term: Vec::new(), passages: Vec::new() })
    }

    fn advance(&mut self, writer: &Writer<'_>) -> Result<bool> {
        while self.lists.is_empty() {
            let Some(block) = self.blocks.next() else { return Ok(false) };
            let mut statement =
                writer.transaction.prepare_cached(sql!("select data from search_block where id = $1"))?;
            let data: Vec<u8> = statement.query_row(params![block], |row| row.get(0))?;
            let mut reader = BlockReader::new(&data);
            while reader.advance() {
                let mut passages = Vec::new();
                reader.passages(&mut passages);
                self.lists.push((reader.term().to_vec(), passages));
            }
            self.lists.reverse();
        }
        if let Some((term, passages)) = self.lists.pop() {
            (self.term, self.passages) = (term, passages);
        }
        Ok(true)
    }
}
