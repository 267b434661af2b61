//! The trash: forgotten bytes that are kept apart until their time is over, and the way back.

use std::collections::BTreeSet;
use std::io::Read;

use rusqlite::{OptionalExtension, params};

use super::{ForgettingState, hash_of};
use crate::blobs::{Packer, Unpacker, packed_row};
use crate::error::Result;
use crate::files::version_reader;
use crate::write::Writer;
use crate::{Store, sql};
use annals_core::{FileId, Forgotten, ForgottenText};

/// A segment of the trash.
struct Trashed {
    file: FileId,
    version: i64,
    offset: i64,
    blob: i64,
}

impl Store {
    /// The hashes of everything but one forgetting.
    pub fn forgotten_without(&self, forgetting: i64) -> Result<Forgotten> {
        let mut forgotten = Forgotten::new(self.forget_key()?.unwrap_or_default());
        let mut statement = self
            .connection
            .prepare_cached(sql!("select length, hash from forgotten_line where forgetting <> $1"))?;
        let mut rows = statement.query(params![forgetting])?;
        while let Some(row) = rows.next()? {
            forgotten.add_line(row.get::<_, i64>(0)? as u64, hash_of(row, 1)?);
        }
        let mut statement = self.connection.prepare_cached(sql!(
            "select length, rolling, hash from forgotten_text where forgetting <> $1"
        ))?;
        let mut rows = statement.query(params![forgetting])?;
        while let Some(row) = rows.next()? {
            let length = row.get::<_, i64>(0)? as usize;
            let rolling = row.get::<_, i64>(1)?.cast_unsigned();
            forgotten.add_text(ForgottenText { length, rolling, hash: hash_of(row, 2)? });
        }
        Ok(forgotten)
    }
}

impl Writer<'_> {
    /// Puts the bytes and names of a forgetting back and removes it. Returns the files whose rows have to be read again.
    pub fn take_from_trash(&mut self, forgetting: i64) -> Result<BTreeSet<FileId>> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select file, version, byte_offset, blob from trashed_segment where forgetting = $1"
        ))?;
        let rows = statement.query_map(params![forgetting], |row| {
            Ok(Trashed { file: row.get(0)?, version: row.get(1)?, offset: row.get(2)?, blob: row.get(3)? })
        })?;
        let trashed: Vec<Trashed> = rows.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let mut packer = Packer::new()?;
        let mut files = BTreeSet::new();
        for segment in &trashed {
            let mut bytes = self.blob_bytes(segment.blob)?;
            let mut statement = self.transaction.prepare_cached(sql!(
                "select blob from segment where file = $1 and version = $2 and byte_offset = $3"
            ))?;
            let place = params![segment.file, segment.version, segment.offset];
            let now: Option<i64> = statement.query_row(place, |row| row.get(0)).optional()?;
            drop(statement);
            if let Some(now) = now {
                // The file may have grown meanwhile.
                bytes.extend(self.blob_bytes(now)?.iter().skip(bytes.len()).copied().collect::<Vec<u8>>());
            }
            let packed = packer.pack_one(segment.offset as u64, &bytes, None)?;
            self.write_segment(segment.file, segment.version, &packed)?;
            files.insert(segment.file);
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set path = (select path from forgotten_file where file = file.id and forgetting = $1),
                    logical_path = (select logical_path from forgotten_file where file = file.id and forgetting = $1)
             where id in (select file from forgotten_file where forgetting = $1 and path is not null)
             returning id"
        ))?;
        let named = statement.query_map(params![forgetting], |row| row.get::<_, FileId>(0))?;
        files.extend(named.collect::<rusqlite::Result<Vec<_>>>()?);
        drop(statement);
        for text in [
            sql!("delete from trashed_segment where forgetting = $1"),
            sql!("delete from forgotten_line where forgetting = $1"),
            sql!("delete from forgotten_text where forgetting = $1"),
            sql!("delete from forgotten_file where forgetting = $1"),
            sql!("delete from forgetting where id = $1"),
        ] {
            self.transaction.prepare_cached(text)?.execute(params![forgetting])?;
        }
        Ok(files)
    }

    /// Ends the time in the trash: from here on the bytes have to be removed.
    pub fn empty_trash(&mut self, forgetting: i64, account: &str) -> Result<()> {
        for text in [
            sql!("delete from trashed_segment where forgetting = $1"),
            sql!("update forgotten_file set path = null, logical_path = null where forgetting = $1"),
        ] {
            self.transaction.prepare_cached(text)?.execute(params![forgetting])?;
        }
        let mut statement = self
            .transaction
            .prepare_cached(sql!("update forgetting set expires_at = null, account = $2 where id = $1"))?;
        statement.execute(params![forgetting, account])?;
        drop(statement);
        self.set_forgetting_state(forgetting, ForgettingState::Applied)
    }

    /// The bytes of a version as this transaction has them.
    pub fn version_bytes(&self, file: FileId, version: i64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        version_reader(&self.transaction, file, version).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn blob_bytes(&self, blob: i64) -> Result<Vec<u8>> {
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select length, packing, base, data, hash from blob where id = $1"))?;
        let mut rows = statement.query(params![blob])?;
        let Some(row) = rows.next()? else { return Ok(Vec::new()) };
        let (mut bytes, hash) = (Vec::new(), row.get_ref(4)?.as_blob().unwrap_or_default());
        let verified = Unpacker::default().verify(&self.transaction, &packed_row(row, 0)?, hash, &mut bytes);
        verified
            .map(|()| bytes)
            .map_err(|cause| std::io::Error::other(format!("a blob is damaged: {cause}")).into())
    }
}
