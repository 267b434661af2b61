//! Files from another archive: where they belong, what is known of them, and their rows in the tables.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params};

use super::{ContentHash, ExchangeFile, ExchangeVersion, HomeName, OwnerName, holder};
use crate::blobs;
use crate::error::Result;
use crate::files::{encoding, framing};
use crate::write::Writer;
use crate::{CapturedFile, RowsOwner, SEGMENT, Store, sql};
use annals_core::{Error, FileId, InstanceId, MemberId, Time, from_hex};

/// Where a home from elsewhere belongs.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedHome<'a> {
    pub member: Option<MemberId>,
    pub name: &'a HomeName,
    /// The archive that sends it.
    pub archive: &'a [u8],
    pub policy: &'a str,
}

/// A file as this archive has it.
#[derive(Debug, Clone)]
pub struct KnownFile {
    pub captured: CapturedFile,
    pub file: ExchangeFile,
    /// Of what was received last.
    pub digest: Option<Vec<u8>>,
}

/// A file as it shall be.
#[derive(Debug)]
pub struct IncomingFile<'a> {
    pub instance: InstanceId,
    pub known: Option<FileId>,
    pub file: &'a ExchangeFile,
    /// Versions from this one on are written; those before stay as they are.
    pub from: i64,
    pub digest: [u8; 32],
    pub reader_version: u32,
}

impl Store {
    /// The home in this archive; created if there is none. A home of the same name that is somebody else's stays theirs.
    pub fn received_home(&mut self, home: &ReceivedHome<'_>, now: Time) -> Result<InstanceId> {
        let ReceivedHome { member, name, archive, policy } = *home;
        let HomeName { source, machine, root } = name;
        let known: Option<(InstanceId, Vec<u8>, String)> = self
            .connection
            .prepare_cached(sql!(
                "select instance, archive, policy from received_home
                 where holder = $1 and source = $2 and machine = $3 and root = $4"
            ))?
            .query_row(params![holder(member), source, machine, root], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        if let Some((instance, from, how)) = known {
            // A write would invalidate the caches of all readers.
            if from != archive || how != policy {
                self.connection.execute(
                    sql!(
                        "update received_home set archive = $2, policy = $3, last_at = $4 where instance = $1"
                    ),
                    params![instance, archive, policy, now.micros()],
                )?;
            }
            return Ok(instance);
        }
        let owner: Option<String> = match member {
            Some(member) => Some(self.connection.query_row(
                sql!("select name from member where id = $1"),
                params![member],
                |row| row.get(0),
            )?),
            None => None,
        };
        let mut shown = machine.clone();
        for number in 1.. {
            let taken: Option<(InstanceId, i64)> = self
                .connection
                .prepare_cached(sql!(
                    "select id, coalesce(member, 0) from instance where source = $1 and machine = $2 and root = $3"
                ))?
                .query_row(params![source, shown, root], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let instance = match taken {
                Some((instance, whose)) if whose == holder(member) && number == 1 => instance,
                Some(_) => {
                    let who = owner.as_deref().unwrap_or("owner");
                    shown = match number {
                        1 => format!("{machine} ({who})"),
                        number => format!("{machine} ({who} {number})"),
                    };
                    continue;
                }
                None => {
                    let instance = self.instance(source, &shown, root, now)?;
                    self.connection.execute(
                        sql!("update instance set member = $2 where id = $1"),
                        params![instance, member],
                    )?;
                    instance
                }
            };
            self.connection.execute(
                sql!(
                    "insert into received_home (holder, source, machine, root, instance, archive, policy, first_at, last_at)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $8)"
                ),
                params![holder(member), source, machine, root, instance, archive, policy, now.micros()],
            )?;
            return Ok(instance);
        }
        Err(Error::new("no name is left for the home").into())
    }

    pub fn known_file(&self, instance: InstanceId, path: &str) -> Result<Option<KnownFile>> {
        let Some(captured) = self.captured_file(instance, path)? else { return Ok(None) };
        let digest = self
            .connection
            .prepare_cached(sql!("select digest from received_file where file = $1"))?
            .query_row(params![captured.id], |row| row.get(0))
            .optional()?;
        let versions = self.exchange_versions(captured.id)?;
        let Some(mut file) = self.exchange_row(captured.id)? else { return Ok(None) };
        file.versions = versions;
        Ok(Some(KnownFile { captured, file, digest }))
    }

    /// The digest of what was received of a file last.
    pub fn received_digest(&self, instance: InstanceId, path: &str) -> Result<Option<Vec<u8>>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select digest from received_file join file on file.id = received_file.file
             where file.instance = $1 and file.path = $2"
        ))?;
        Ok(statement.query_row(params![instance, path], |row| row.get(0)).optional()?)
    }
}

impl Writer<'_> {
    /// Writes a file and its versions, whose blobs are stored. Its rows are another matter.
    pub fn put_file(&mut self, incoming: &IncomingFile<'_>) -> Result<CapturedFile> {
        let IncomingFile { instance, known, file, from, .. } = *incoming;
        let newest = file.versions.last().ok_or_else(|| Error::bad_request("a file has no version"))?;
        let owner = match &file.owner {
            OwnerName::This => RowsOwner::This,
            OwnerName::Nobody => RowsOwner::Nobody,
            // As long as the other file is not here, this one has the rows.
            OwnerName::Other(path) => match self.file_at(instance, path)? {
                Some(other) => RowsOwner::Other(other),
                None => RowsOwner::This,
            },
        };
        let id = match known {
            Some(id) => id,
            None => {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "insert into file (instance, path, logical_path, store, reader, framing, encoding, document, mutable,
                                       version, rows_version, size, content_size, parsed, reader_version, first_seen)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, 0, 0, 0, $10)"
                ))?;
                statement.execute(params![
                    instance,
                    file.path,
                    file.logical_path,
                    file.store,
                    file.reader,
                    file.framing,
                    file.encoding,
                    file.document,
                    file.mutable,
                    file.first_seen
                ])?;
                FileId(self.transaction.last_insert_rowid())
            }
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set version = $2, rows_version = $3, size = $4, modified = $5, inode = null, changed = null,
                    rows_owner = $6, gone_at = $7, mode = coalesce($8, mode), reader_version = $9, store = $10,
                    reader = $11, framing = $12, encoding = $13, document = $14, mutable = $15
             where id = $1"
        ))?;
        statement.execute(params![
            id,
            newest.version,
            file.rows_version,
            newest.size as i64,
            newest.modified,
            owner.stored(),
            file.gone_at,
            file.mode,
            incoming.reader_version,
            file.store,
            file.reader,
            file.framing,
            file.encoding,
            file.document,
            file.mutable
        ])?;
        drop(statement);
        self.put_versions(id, from, &file.versions)?;
        for capture in &file.captures {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into capture (file, hash) values ($1, $2) on conflict (file, hash) do nothing"
            ))?;
            statement.execute(params![id, from_hex(capture).unwrap_or_default()])?;
        }
        self.set_received(id, incoming.digest)?;
        Ok(CapturedFile {
            id,
            path: file.path.clone(),
            logical_path: file.logical_path.clone(),
            reader: file.reader.clone(),
            framing: framing(&file.framing),
            encoding: encoding(&file.encoding),
            document: file.document,
            mutable: file.mutable,
            version: newest.version,
            rows_version: file.rows_version,
            size: newest.size,
            parsed: 0,
            stat: None,
            owner,
            gone: file.gone_at.is_some(),
        })
    }

    /// Remembers what was received of a file.
    pub fn set_received(&mut self, file: FileId, digest: [u8; 32]) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into received_file (file, digest) values ($1, $2)
             on conflict (file) do update set digest = excluded.digest"
        ))?;
        statement.execute(params![file, digest.as_slice()])?;
        Ok(())
    }

    fn put_versions(&mut self, file: FileId, from: i64, versions: &[ExchangeVersion]) -> Result<()> {
        let before: HashSet<i64> = self
            .transaction
            .prepare_cached(sql!("delete from segment where file = $1 and version >= $2 returning blob"))?
            .query_map(params![file, from], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.transaction
            .prepare_cached(sql!("delete from version where file = $1 and version >= $2"))?
            .execute(params![file, from])?;
        for version in versions.iter().filter(|version| version.version >= from) {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into version (file, version, size, modified, captured_at, gone_at)
                 values ($1, $2, $3, $4, $5, $6)"
            ))?;
            let (size, at) = (version.size as i64, version.captured_at);
            statement.execute(params![file, version.version, size, version.modified, at, version.gone_at])?;
            drop(statement);
            for (number, hash) in version.segments.iter().enumerate() {
                let missing = || Error::bad_request(format!("blob {hash}: missing"));
                let blob = blobs::blob_by_hash(&self.transaction, &hash.0)?.ok_or_else(missing)?;
                let mut statement = self.transaction.prepare_cached(sql!(
                    "insert into segment (file, version, byte_offset, length, blob) values ($1, $2, $3, $4, $5)"
                ))?;
                let (offset, length) = ((number * SEGMENT) as i64, version.length_of(number) as i64);
                statement.execute(params![file, version.version, offset, length, blob])?;
            }
        }
        before.into_iter().try_for_each(|blob| blobs::remove_unused(&self.transaction, blob))
    }

    /// Blobs of files that are written now wait no more; those that nothing refers to go.
    pub fn unstage(&mut self, member: Option<MemberId>, hashes: &HashSet<ContentHash>) -> Result<()> {
        for hash in hashes {
            let Some(blob) = blobs::blob_by_hash(&self.transaction, &hash.0)? else { continue };
            self.transaction
                .prepare_cached(sql!("delete from staged_blob where holder = $1 and blob = $2"))?
                .execute(params![holder(member), blob])?;
            blobs::remove_unused(&self.transaction, blob)?;
        }
        Ok(())
    }

    /// Drops the rows of a file that shall have other ones; records of its versions stay.
    pub fn drop_rows(&mut self, file: FileId) -> Result<()> {
        self.forget_rows(file)?;
        self.transaction
            .prepare_cached(sql!("update file set parsed = 0, content_size = 0 where id = $1"))?
            .execute(params![file])?;
        self.transaction
            .prepare_cached(sql!("delete from reader_state where file = $1"))?
            .execute(params![file])?;
        Ok(())
    }

    /// Notes that something of a home arrived.
    pub fn touch_home(&mut self, instance: InstanceId, now: Time) -> Result<()> {
        self.transaction
            .prepare_cached(sql!("update received_home set last_at = $2 where instance = $1"))?
            .execute(params![instance, now.micros()])?;
        Ok(())
    }

    fn file_at(&self, instance: InstanceId, path: &str) -> Result<Option<FileId>> {
        let mut statement =
            self.transaction.prepare_cached(sql!("select id from file where instance = $1 and path = $2"))?;
        Ok(statement.query_row(params![instance, path], |row| row.get(0)).optional()?)
    }
}
