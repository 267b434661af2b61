//! Digests of the text index, independent of how it is split into segments.

use annals_core::{FileId, SessionId};
use std::collections::HashMap;
use std::hash::Hash;

use rusqlite::params;
use rusqlite::types::FromSql;

use super::format::{BlockReader, BlockWriter, Doc, read_docs, write_docs};
use crate::error::Result;
use crate::sql;
use crate::write::Writer;
use crate::write::digest::{RowDigests, add_digest};

/// The table that findings name.
const INDEX: &str = "text index";

impl Writer<'_> {
    /// Adds which terms are in which living passages of each file.
    pub(crate) fn digest_index(&self, digests: &mut RowDigests) -> Result<()> {
        let sessions: HashMap<SessionId, String> =
            self.names_of("select id, instance || ' ' || key from session")?;
        let files: HashMap<FileId, String> = self.names_of("select id, path from file")?;
        let epochs = self.epochs()?;
        let mut statement =
            self.transaction.prepare("select id, passages, table_data from search_segment")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let docs: Vec<Doc> = read_docs(row.get_ref(2)?.as_blob().unwrap_or_default()).collect();
            let table = row.get_ref(2)?.as_blob().unwrap_or_default();
            if row.get::<_, i64>(1)? != docs.len() as i64 || write_docs(&docs) != table {
                add_digest(digests, INDEX, "search", b"passages are damaged");
            }
            // What identifies each passage, and the file it is in.
            let passages: Vec<Option<(&str, [u8; 32])>> = docs
                .iter()
                .map(|doc| {
                    let file = files.get(&doc.file).map_or("no file", String::as_str);
                    let session = sessions.get(&doc.session).map_or("", String::as_str);
                    let about = format!(
                        "{file}\n{session}\n{} {} {} {}",
                        doc.offset, doc.kind, doc.minutes, doc.length
                    );
                    let is_alive = epochs.get(&doc.file).copied().unwrap_or(0) == doc.epoch;
                    is_alive.then(|| (file, *blake3::hash(about.as_bytes()).as_bytes()))
                })
                .collect();
            self.digest_blocks(row.get(0)?, &passages, digests)?;
        }
        Ok(())
    }

    fn digest_blocks(
        &self,
        segment: i64,
        passages: &[Option<(&str, [u8; 32])>],
        digests: &mut RowDigests,
    ) -> Result<()> {
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select first_term, data from search_block where segment = $1"))?;
        let mut rows = statement.query(params![segment])?;
        let mut numbers = Vec::new();
        while let Some(row) = rows.next()? {
            let mut block = BlockReader::new(row.get_ref(1)?.as_blob().unwrap_or_default());
            let (mut writer, mut is_sorted) = (BlockWriter::new(), true);
            while block.advance() {
                numbers.clear();
                block.passages(&mut numbers);
                is_sorted &= numbers.is_sorted();
                if is_sorted {
                    writer.add(block.term(), &numbers);
                }
                for number in &numbers {
                    match passages.get(*number as usize) {
                        Some(Some((file, passage))) => {
                            let mut pair = blake3::Hasher::new();
                            pair.update(passage).update(block.term());
                            add_digest(digests, INDEX, file, pair.finalize().as_bytes());
                        }
                        Some(None) => {}
                        None => add_digest(digests, INDEX, "search", b"a passage is missing"),
                    }
                }
            }
            // Written again, an intact block is the same.
            let stored = (row.get_ref(0)?.as_blob().ok(), row.get_ref(1)?.as_blob().ok());
            let again = writer.finish().filter(|_| is_sorted);
            if again.as_ref().map(|(first, data)| (Some(first.as_slice()), Some(data.as_slice())))
                != Some(stored)
            {
                add_digest(digests, INDEX, "search", b"a block is damaged");
            }
        }
        Ok(())
    }

    fn names_of<I: FromSql + Eq + Hash>(&self, select: &str) -> Result<HashMap<I, String>> {
        let mut statement = self.transaction.prepare(select)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
