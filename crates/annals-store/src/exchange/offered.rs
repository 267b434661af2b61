//! What this archive can hand on: its homes and files, whose they are, and blobs as they are stored.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::staged::PackedBlob;
use super::{ContentHash, ExchangeFile, ExchangeVersion, HomeName, OwnerName, holder};
use crate::arrangement::holder_of;
use crate::blobs::{Packer, Unpacker, packed_row};
use crate::error::Result;
use crate::{SEGMENT, Store, sql};
use annals_core::{
    Arranged, ArrangedField, ArrangedKind, Arrangement, FORGOTTEN_FILES, FileId, InstanceId, MemberId, Scope,
    SessionId, Time, to_hex,
};

#[derive(Debug, Clone)]
pub struct OfferedHome {
    pub instance: InstanceId,
    pub name: HomeName,
    /// The archive it came from, if this one did not capture it.
    pub archive: Option<Vec<u8>>,
}

/// A file, and a text that changes with it.
#[derive(Debug, Clone)]
pub struct StampedFile {
    pub id: FileId,
    pub path: String,
    pub stamp: String,
}

/// Where a session ran, and when it ended.
#[derive(Debug, Clone)]
pub struct SessionPlace {
    pub session: SessionId,
    pub cwd: Option<String>,
    pub last_at: Option<i64>,
}

impl Store {
    /// The homes of a member, or those that are nobody's but the owner's.
    pub fn offered_homes(&self, member: Option<MemberId>) -> Result<Vec<OfferedHome>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select instance.id, instance.source, coalesce(home.machine, instance.machine),
                    coalesce(home.root, instance.root), home.archive
             from instance left join received_home home on home.instance = instance.id and home.holder = $1
             where coalesce(instance.member, 0) = $1 order by instance.id"
        ))?;
        let rows = statement.query_map(params![holder(member)], |row| {
            let name = HomeName { source: row.get(1)?, machine: row.get(2)?, root: row.get(3)? };
            Ok(OfferedHome { instance: row.get(0)?, name, archive: row.get(4)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// All homes, whoever they belong to.
    pub fn all_homes(&self) -> Result<Vec<OfferedHome>> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select id, source, machine, root from instance order by id"))?;
        let rows = statement.query_map([], |row| {
            let name = HomeName { source: row.get(1)?, machine: row.get(2)?, root: row.get(3)? };
            Ok(OfferedHome { instance: row.get(0)?, name, archive: None })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Versions of what somebody arranged that came after a commit, and behind a row.
    pub fn arrangements_after(
        &self,
        scope: Scope,
        commit: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Arrangement)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select id, kind, source, target, message, field, item, value, at from arrangement
             where holder = $1 and changed > $2 and id > $3 order by id limit $4"
        ))?;
        let rows = statement.query_map(params![holder_of(scope), commit, after, limit as i64], |row| {
            let (kind, field): (String, String) = (row.get(1)?, row.get(5)?);
            let of = ArrangedKind::from_name(&kind).map(|kind| -> rusqlite::Result<Arranged> {
                Ok(Arranged { kind, source: row.get(2)?, target: row.get(3)?, message: row.get(4)? })
            });
            let Some((of, field)) = of.transpose()?.zip(ArrangedField::from_name(&field)) else {
                return Ok(None);
            };
            let at = Time::from_micros(row.get(8)?);
            Ok(Some((row.get(0)?, Arrangement { of, field, item: row.get(6)?, value: row.get(7)?, at })))
        })?;
        // What a later version arranges is its own.
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The number of the last commit.
    pub fn last_commit(&self) -> Result<i64> {
        let mut statement =
            self.connection.prepare_cached(sql!("select value from setting where name = 'commits'"))?;
        Ok(statement.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// The files of a home behind a path, without those that were forgotten.
    pub fn stamped_files(&self, instance: InstanceId, after: &str, limit: usize) -> Result<Vec<StampedFile>> {
        let forgettings: i64 =
            self.connection.query_row("select coalesce(max(id), 0) from forgetting", [], |row| row.get(0))?;
        let mut statement = self.connection.prepare_cached(sql!(
            "select id, path, version, size, rows_version, gone_at, mode, rows_owner from file
             where instance = $1 and path > $2 and version > 0 order by path limit $3"
        ))?;
        let rows = statement.query_map(params![instance, after, limit as i64], |row| {
            let numbers: [i64; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
            let perhaps: [Option<i64>; 3] = [row.get(5)?, row.get(6)?, row.get(7)?];
            let stamp = format!("{numbers:?}{perhaps:?}{forgettings}");
            Ok(StampedFile { id: row.get(0)?, path: row.get(1)?, stamp })
        })?;
        let mut files: Vec<StampedFile> = rows.collect::<rusqlite::Result<_>>()?;
        files.retain(|file| !file.path.starts_with(FORGOTTEN_FILES));
        Ok(files)
    }

    /// What there is to say about a file; `None` if a part of it is missing or damaged.
    pub fn exchange_file(&self, file: FileId) -> Result<Option<ExchangeFile>> {
        let Some(mut found) = self.exchange_row(file)? else { return Ok(None) };
        found.versions = self.exchange_versions(file)?;
        Ok(Some(found).filter(|found| found.check().is_ok()))
    }

    /// The same without versions.
    pub(super) fn exchange_row(&self, file: FileId) -> Result<Option<ExchangeFile>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select path, logical_path, store, reader, framing, encoding, document, mutable, rows_version, first_seen,
                    gone_at, mode, rows_owner, (select other.path from file other where other.id = file.rows_owner)
             from file where id = $1"
        ))?;
        let found = statement.query_row(params![file], |row| {
            let owner: Option<i64> = row.get(12)?;
            let other: Option<String> = row.get(13)?;
            Ok(ExchangeFile {
                path: row.get(0)?,
                logical_path: row.get(1)?,
                store: row.get(2)?,
                reader: row.get(3)?,
                framing: row.get(4)?,
                encoding: row.get(5)?,
                document: row.get(6)?,
                mutable: row.get(7)?,
                rows_version: row.get(8)?,
                first_seen: row.get(9)?,
                gone_at: row.get(10)?,
                mode: row.get(11)?,
                owner: match (owner, other) {
                    (None, _) => OwnerName::This,
                    (Some(_), Some(path)) => OwnerName::Other(path),
                    (Some(_), None) => OwnerName::Nobody,
                },
                captures: Vec::new(),
                versions: Vec::new(),
            })
        });
        let Some(mut found) = found.optional()? else { return Ok(None) };
        let mut statement =
            self.connection.prepare_cached(sql!("select hash from capture where file = $1 order by hash"))?;
        let captures = statement.query_map(params![file], |row| row.get::<_, Vec<u8>>(0))?;
        for capture in captures {
            found.captures.push(to_hex(&capture?));
        }
        Ok(Some(found))
    }

    pub(super) fn exchange_versions(&self, file: FileId) -> Result<Vec<ExchangeVersion>> {
        let mut segments: BTreeMap<i64, Vec<(u64, u64, ContentHash)>> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(sql!(
            "select segment.version, segment.byte_offset, segment.length, blob.hash
             from segment join blob on blob.id = segment.blob
             where segment.file = $1 order by segment.version, segment.byte_offset"
        ))?;
        let mut rows = statement.query(params![file])?;
        while let Some(row) = rows.next()? {
            let mut hash = [0; 32];
            let stored = row.get_ref(3)?.as_blob().unwrap_or_default();
            if stored.len() == hash.len() {
                hash.copy_from_slice(stored);
            }
            let (offset, length) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
            segments.entry(row.get(0)?).or_default().push((offset, length, ContentHash(hash)));
        }
        let mut versions = Vec::new();
        let mut statement = self.connection.prepare_cached(sql!(
            "select version, size, modified, captured_at, gone_at from version where file = $1 order by version"
        ))?;
        let mut rows = statement.query(params![file])?;
        while let Some(row) = rows.next()? {
            let mut version = ExchangeVersion {
                version: row.get(0)?,
                size: row.get::<_, i64>(1)? as u64,
                modified: row.get(2)?,
                captured_at: row.get(3)?,
                gone_at: row.get(4)?,
                segments: Vec::new(),
            };
            let found = segments.remove(&version.version).unwrap_or_default();
            let aligned = found.iter().enumerate().all(|(number, (offset, length, _))| {
                let expected = (number * SEGMENT) as u64;
                *offset == expected && *length == version.size.saturating_sub(expected).min(SEGMENT as u64)
            });
            // Without its segments the version is refused as a whole.
            if aligned {
                version.segments = found.into_iter().map(|(_, _, hash)| hash).collect();
            }
            versions.push(version);
        }
        Ok(versions)
    }

    /// Where the sessions of each file of a home ran, and when they ended.
    pub fn session_places(&self, instance: InstanceId) -> Result<HashMap<FileId, Vec<SessionPlace>>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select part.file, session.id, session.cwd, session.last_at from session_part part
             join session on session.id = part.session where session.instance = $1"
        ))?;
        let mut places: HashMap<FileId, Vec<SessionPlace>> = HashMap::new();
        let mut rows = statement.query(params![instance])?;
        while let Some(row) = rows.next()? {
            let place = SessionPlace { session: row.get(1)?, cwd: row.get(2)?, last_at: row.get(3)? };
            places.entry(row.get(0)?).or_default().push(place);
        }
        Ok(places)
    }

    /// Those of some hashes that a holder has: in a file of theirs, or sent before.
    pub fn held_blobs(
        &self,
        member: Option<MemberId>,
        hashes: &[ContentHash],
    ) -> Result<HashSet<ContentHash>> {
        let mut held = HashSet::new();
        for hash in hashes {
            if !held.contains(hash) && self.holds_blob(member, hash)? {
                held.insert(*hash);
            }
        }
        Ok(held)
    }

    /// That another member has a blob must not be seen, and gives nobody its content.
    pub(super) fn holds_blob(&self, member: Option<MemberId>, hash: &ContentHash) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select exists (select 1 from blob join staged_blob on staged_blob.blob = blob.id
                            where blob.hash = $1 and staged_blob.holder = $2)
                 or exists (select 1 from blob join segment on segment.blob = blob.id
                            join file on file.id = segment.file join instance on instance.id = file.instance
                            where blob.hash = $1 and coalesce(instance.member, 0) = $2)"
        ))?;
        Ok(statement.query_row(params![hash.0.as_slice(), holder(member)], |row| row.get(0))?)
    }

    /// A blob as it is stored. A difference is resolved, unless the other side has its base.
    pub fn packed_blob(
        &self,
        hash: &ContentHash,
        has_base: &dyn Fn(&ContentHash) -> bool,
    ) -> Result<Option<PackedBlob>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select blob.length, blob.packing, blob.base, blob.data, base.hash
             from blob left join blob base on base.id = blob.base where blob.hash = $1"
        ))?;
        let mut rows = statement.query(params![hash.0.as_slice()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let packed = packed_row(row, 0)?;
        let base = row.get_ref(4)?.as_blob().ok().and_then(|base| base.try_into().ok()).map(ContentHash);
        if packed.packing < 2 || base.is_some_and(|base| has_base(&base)) {
            let base = base.filter(|_| packed.packing == 2);
            return Ok(Some(PackedBlob {
                hash: *hash,
                length: packed.length as u32,
                packing: packed.packing as u8,
                base,
                data: packed.data.to_vec(),
            }));
        }
        let mut bytes = Vec::new();
        if Unpacker::default().verify(&self.connection, &packed, &hash.0, &mut bytes).is_err() {
            return Ok(None);
        }
        Ok(Some(PackedBlob::of(&Packer::new()?.pack_one(0, &bytes, None)?)))
    }

    /// The bytes of a blob.
    pub fn blob_bytes(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_blob(&mut Unpacker::default(), hash, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn read_blob(
        &self,
        unpacker: &mut Unpacker,
        hash: &ContentHash,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select length, packing, base, data from blob where hash = $1"))?;
        let mut rows = statement.query(params![hash.0.as_slice()])?;
        let failed = |what: String| std::io::Error::other(format!("blob {hash}: {what}"));
        let Some(row) = rows.next()? else { return Err(failed("missing".to_owned()).into()) };
        Ok(unpacker.verify(&self.connection, &packed_row(row, 0)?, &hash.0, into).map_err(failed)?)
    }
}
