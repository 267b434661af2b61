//! Removes forgotten bytes from the database: blobs, differences from them, words, index segments, and free pages.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use crate::blobs::{self, BaseBlob, Packer, Segment, Unpacker, packed_row};
use crate::error::Result;
use crate::index::format::{BlockReader, read_docs};
use crate::write::Writer;
use crate::{Store, sql};
use annals_core::FileId;

/// What the text index contains.
#[derive(Debug, Default, Clone, Copy)]
pub struct IndexCheck {
    pub segments: u64,
    pub blocks: u64,
    pub terms: u64,
    pub passages: u64,
    /// Passages of rows that are no longer there, whose terms are still in the index.
    pub dead_passages: u64,
    /// Terms without a passage.
    pub dead_terms: u64,
}

impl Writer<'_> {
    /// Writes other bytes of the same length in place of a segment. `trash` keeps the old ones.
    pub fn replace_segment(
        &mut self,
        file: FileId,
        version: i64,
        segment: &Segment,
        trash: Option<i64>,
    ) -> Result<()> {
        if let Some(forgetting) = trash {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into trashed_segment (forgetting, file, version, byte_offset, length, blob)
                 select $1, file, version, byte_offset, length, blob from segment
                 where file = $2 and version = $3 and byte_offset = $4
                 on conflict (forgetting, file, version, byte_offset) do nothing"
            ))?;
            statement.execute(params![forgetting, file, version, segment.offset as i64])?;
        }
        self.write_segment(file, version, segment)
    }

    /// Removes what nothing refers to any more: blobs, also those that others are differences from, words, and passages
    /// of the index.
    pub fn remove_unreferenced(&mut self) -> Result<()> {
        self.flush()?;
        self.release_blobs()?;
        self.transaction.execute_batch(
            "delete from name where id not in (
                 select model from message where model is not null
                 union select name from tool_call
                 union select model from tool_call where model is not null
                 union select model from usage where model is not null
                 union select model from usage_sum
                 union select path from file_touch)",
        )?;
        self.drop_dead_passages()
    }

    fn release_blobs(&mut self) -> Result<()> {
        // What was sent and not used may have what is forgotten; it is sent again.
        self.transaction.execute_batch("delete from staged_blob")?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "select id from blob where not exists (select 1 from segment where segment.blob = blob.id)
             and not exists (select 1 from trashed_segment where trashed_segment.blob = blob.id)"
        ))?;
        let unused: Vec<i64> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let unused_set: BTreeSet<i64> = unused.iter().copied().collect();
        // Differences go first, so that a base that only they need is unused as well.
        for blob in &unused {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("delete from blob where id = $1 and base is not null"))?;
            statement.execute(params![blob])?;
        }
        for blob in &unused {
            self.detach_differences(*blob, &unused_set)?;
            let mut statement = self.transaction.prepare_cached(sql!("delete from blob where id = $1"))?;
            statement.execute(params![blob])?;
        }
        Ok(())
    }

    /// Packs the blobs that are differences from `base` again: the first one alone, the others as differences from it.
    fn detach_differences(&self, base: i64, unused: &BTreeSet<i64>) -> Result<()> {
        let mut statement =
            self.transaction.prepare_cached(sql!("select id from blob where base = $1 order by id"))?;
        let ids: Vec<i64> =
            statement.query_map(params![base], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let (mut packer, mut unpacker) = (Packer::new()?, Unpacker::default());
        let mut new_base: Option<BaseBlob> = None;
        for id in ids.into_iter().filter(|id| !unused.contains(id)) {
            let mut bytes = Vec::new();
            let mut statement = self
                .transaction
                .prepare_cached(sql!("select length, packing, base, data, hash from blob where id = $1"))?;
            let mut rows = statement.query(params![id])?;
            let Some(row) = rows.next()? else { continue };
            let hash: Vec<u8> = row.get(4)?;
            let verified = unpacker.verify(&self.transaction, &packed_row(row, 0)?, &hash, &mut bytes);
            drop(rows);
            drop(statement);
            if let Err(cause) = verified {
                return Err(std::io::Error::other(format!(
                    "a blob is damaged ({cause}): run `annals repair`"
                ))
                .into());
            }
            let packed = packer.pack_one(0, &bytes, new_base.as_ref())?;
            blobs::store_packed(&self.transaction, id, &packed)?;
            if new_base.is_none() {
                new_base = Some(BaseBlob { hash: packed.hash, bytes });
            }
        }
        Ok(())
    }
}

impl Store {
    /// Rewrites the database file without anything that was deleted.
    pub fn scrub(&self) -> Result<()> {
        // The copy that SQLite makes may be larger than memory.
        self.connection.pragma_update(None, "temp_store", "file")?;
        let done = self.connection.execute_batch("vacuum");
        self.connection.pragma_update(None, "temp_store", "memory")?;
        Ok(done?)
    }

    /// Moves the log into the database file and truncates it; false if a reader is in the way.
    pub fn empty_log(&self) -> Result<bool> {
        let busy: i64 = self.connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))?;
        Ok(busy == 0)
    }

    /// Pages of the database file that are not in use.
    pub fn free_pages(&self) -> Result<u64> {
        let count: i64 = self.connection.query_row("pragma freelist_count", [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Reads the whole text index.
    pub fn check_index(&self) -> Result<IndexCheck> {
        let mut check = IndexCheck::default();
        let mut statement =
            self.connection.prepare_cached(sql!("select id, table_data from search_segment"))?;
        let mut segments = statement.query([])?;
        while let Some(row) = segments.next()? {
            check.segments += 1;
            for doc in read_docs(row.get_ref(1)?.as_blob().unwrap_or_default()) {
                check.passages += 1;
                let mut statement =
                    self.connection.prepare_cached(sql!("select search_epoch from file where id = $1"))?;
                let epoch: Option<i64> =
                    statement.query_row(params![doc.file], |row| row.get(0)).optional()?;
                check.dead_passages += u64::from(epoch != Some(doc.epoch));
            }
        }
        let mut statement = self.connection.prepare_cached(sql!("select data from search_block"))?;
        let mut blocks = statement.query([])?;
        while let Some(row) = blocks.next()? {
            check.blocks += 1;
            let mut reader = BlockReader::new(row.get_ref(0)?.as_blob().unwrap_or_default());
            while reader.advance() {
                let mut passages = Vec::new();
                reader.passages(&mut passages);
                check.terms += 1;
                check.dead_terms += u64::from(passages.is_empty());
            }
        }
        Ok(check)
    }

    /// Visits the unpacked bytes of every blob that is not kept in the trash, with its number.
    pub fn each_blob(&self, visit: &mut dyn FnMut(i64, &[u8])) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select length, packing, base, data, hash, id from blob
             where not exists (select 1 from trashed_segment where trashed_segment.blob = blob.id)"
        ))?;
        let mut rows = statement.query([])?;
        let (mut unpacker, mut bytes) = (Unpacker::default(), Vec::new());
        while let Some(row) = rows.next()? {
            let hash = row.get_ref(4)?.as_blob().unwrap_or_default();
            // What is damaged is for `doctor` to report.
            if unpacker.verify(&self.connection, &packed_row(row, 0)?, hash, &mut bytes).is_ok() {
                visit(row.get(5)?, &bytes);
            }
        }
        Ok(())
    }

    /// Visits every text and every other value of bytes in every table, with the table's name: what is not in one piece
    /// on the pages of the file.
    pub fn each_value(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<u64> {
        each_value(&self.connection, visit)
    }
}

impl Writer<'_> {
    /// The same with what is not committed yet.
    pub fn each_value(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<u64> {
        each_value(&self.transaction, visit)
    }
}

fn each_value(connection: &Connection, visit: &mut dyn FnMut(&str, &[u8])) -> Result<u64> {
    let mut statement = connection.prepare(
            "select name from pragma_table_list where type = 'table' and schema = 'main' and name not like 'sqlite\\_%' escape '\\'",
        )?;
    let tables: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    drop(statement);
    let mut count = 0;
    for table in &tables {
        let mut statement = connection.prepare(&format!("select * from \"{table}\""))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            for column in 0..columns {
                if let rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) =
                    row.get_ref(column)?
                {
                    visit(table, bytes);
                }
            }
        }
    }
    Ok(count)
}
