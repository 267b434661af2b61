//! Damage: archived bytes that are not what was captured, and files whose versions do not add up.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use rusqlite::{Connection, params};

use crate::blobs::{SEGMENT, Unpacker, packed_row};
use crate::error::Result;
use crate::files::{segment_at, version_size};
use crate::write::Writer;
use crate::{Segment, Store, sql};
use annals_core::{FileId, InstanceId, Time};

/// A place in a version where content is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub path: String,
    pub version: i64,
    pub offset: u64,
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} version {} at byte {}: {}", self.path, self.version, self.offset, self.what)
    }
}

/// A damaged version of a file.
#[derive(Debug, Clone)]
pub struct DamagedVersion {
    pub instance: InstanceId,
    pub file: FileId,
    pub path: String,
    pub logical_path: String,
    /// A row of a client's database.
    pub document: bool,
    pub version: i64,
    pub is_newest: bool,
    pub size: u64,
    pub modified: Option<Time>,
    /// Never empty.
    pub damages: Vec<Damage>,
}

/// A segment that a version should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedSegment {
    pub offset: u64,
    pub length: u64,
    /// The hash of its content, if that is known.
    pub hash: Option<[u8; 32]>,
}

pub(crate) fn damage_at(
    connection: &Connection,
    file: FileId,
    version: i64,
    offset: u64,
    what: &str,
) -> Damage {
    let path = connection.query_row(sql!("select path from file where id = $1"), [file], |row| row.get(0));
    // The path may be damaged as well.
    let path = path.unwrap_or_else(|_| format!("file {file}"));
    Damage { path, version, offset, what: what.to_owned() }
}

/// A row of `file`, as far as its versions go.
struct Catalogued {
    id: FileId,
    instance: InstanceId,
    path: String,
    logical_path: String,
    document: bool,
    version: i64,
    rows_version: i64,
    size: i64,
}

/// Checks of the whole file, for the owner of this machine and never for a member.
impl Store {
    /// Runs SQLite's check of its trees, and of every index against its table.
    pub fn check_integrity(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("pragma integrity_check(20)")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// The same for the tables that list files and their parts.
    pub fn check_catalogue(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for table in ["instance", "file", "version", "segment"] {
            let mut statement = self.connection.prepare(&format!("pragma integrity_check('{table}')"))?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            found.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    pub fn count_segments(&self) -> Result<u64> {
        let count =
            self.connection.query_row("select count(*) from segment", [], |row| row.get::<_, i64>(0))?;
        Ok(count as u64)
    }

    /// Unpacks all content, compares it with its hashes and every version with its size, and returns what is damaged.
    pub fn damaged_versions(&self) -> Result<Vec<DamagedVersion>> {
        let mut statement = self.connection.prepare(
            "select id, instance, path, logical_path, document, version, rows_version, size from file order by id",
        )?;
        let files = statement.query_map([], |row| {
            Ok(Catalogued {
                id: row.get(0)?,
                instance: row.get(1)?,
                path: row.get(2)?,
                logical_path: row.get(3)?,
                document: row.get(4)?,
                version: row.get(5)?,
                rows_version: row.get(6)?,
                size: row.get(7)?,
            })
        })?;
        let mut checker = Checker { store: self, unpacker: Unpacker::default(), blobs: HashMap::new() };
        let mut damaged = Vec::new();
        for file in files {
            checker.check_file(&file?, &mut damaged)?;
        }
        Ok(damaged)
    }

    /// Corrects sizes that two of file, newest version and segments contradict.
    pub fn reconcile_sizes(&self) -> Result<()> {
        self.connection.execute_batch(
            "update version set size = (select size from file where file.id = version.file)
             where exists (select 1 from file where file.id = version.file and file.version = version.version
                 and file.size <> version.size and file.size = (select coalesce(sum(length), 0) from segment
                     where segment.file = file.id and segment.version = file.version));
             update file set size = (select size from version where version.file = file.id
                 and version.version = file.version)
             where exists (select 1 from version where version.file = file.id and version.version = file.version
                 and version.size <> file.size and version.size = (select coalesce(sum(length), 0) from segment
                     where segment.file = file.id and segment.version = file.version));",
        )?;
        Ok(())
    }

    /// Where the first damage of a version is.
    pub fn first_damage(&self, file: FileId, version: i64, size: u64) -> Result<Option<u64>> {
        let mut checker = Checker { store: self, unpacker: Unpacker::default(), blobs: HashMap::new() };
        let listed = version_size(&self.connection, file, version)?;
        if listed != Some(size) {
            return Ok(Some(0));
        }
        let found = checker.check_version(file, version, Some(size as i64))?;
        Ok(found.into_iter().map(|(offset, _)| offset).min())
    }

    /// Bytes of a version, if it has all of them; whatever else of it is damaged.
    pub fn version_range(
        &self,
        file: FileId,
        version: i64,
        offset: u64,
        length: u64,
    ) -> Result<Option<Vec<u8>>> {
        let (mut unpacker, mut piece, mut bytes) = (Unpacker::default(), Vec::new(), Vec::new());
        let (mut at, end) = (offset, offset.saturating_add(length));
        while at < end {
            let start = segment_at(&self.connection, &mut unpacker, file, version, at, &mut piece)?;
            let Some(start) = start else { return Ok(None) };
            let to = ((end - start) as usize).min(piece.len());
            bytes.extend_from_slice(piece.get((at - start) as usize..to).unwrap_or_default());
            at = start + piece.len() as u64;
        }
        Ok(Some(bytes))
    }

    /// The segments that a version of this size has, and the hashes of those that are known.
    pub fn expected_segments(&self, file: FileId, version: i64, size: u64) -> Result<Vec<ExpectedSegment>> {
        let known: HashMap<u64, (u64, [u8; 32])> = self
            .segment_hashes(file, version)?
            .into_iter()
            .map(|(offset, length, hash)| (offset, (length, hash)))
            .collect();
        let offsets = (0..size).step_by(SEGMENT);
        let expected = offsets.map(|offset| {
            let length = (size - offset).min(SEGMENT as u64);
            let hash = known.get(&offset).filter(|known| known.0 == length).map(|known| known.1);
            ExpectedSegment { offset, length, hash }
        });
        Ok(expected.collect())
    }
}

/// Checks versions, and every blob once.
struct Checker<'s> {
    store: &'s Store,
    unpacker: Unpacker,
    /// Why a blob is damaged.
    blobs: HashMap<i64, Option<String>>,
}

impl Checker<'_> {
    fn check_file(&mut self, file: &Catalogued, damaged: &mut Vec<DamagedVersion>) -> Result<()> {
        let versions = self.store.versions(file.id);
        let (versions, unreadable) = match versions {
            Ok(versions) => (versions, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let sizes: HashMap<i64, i64> = versions.iter().map(|row| (row.version, row.size as i64)).collect();
        let mut numbers: BTreeSet<i64> = sizes.keys().copied().collect();
        numbers.extend([file.version, file.rows_version]);
        numbers.extend(self.versions_with_segments(file.id)?);
        // Rows of a file that was never read are in no version.
        numbers.remove(&0);
        for number in numbers {
            let mut found = match &unreadable {
                Some(error) => vec![(0, error.clone())],
                None => self.check_version(file.id, number, sizes.get(&number).copied())?,
            };
            let is_newest = number == file.version;
            if is_newest && sizes.get(&number).is_some_and(|size| *size != file.size) {
                found.push((0, "the version does not have the size of its file".to_owned()));
            }
            if found.is_empty() {
                continue;
            }
            let size = if is_newest { file.size } else { sizes.get(&number).copied().unwrap_or(0) };
            let damages = found.into_iter().map(|(offset, what)| Damage {
                path: file.path.clone(),
                version: number,
                offset,
                what,
            });
            damaged.push(DamagedVersion {
                instance: file.instance,
                file: file.id,
                path: file.path.clone(),
                logical_path: file.logical_path.clone(),
                document: file.document,
                version: number,
                is_newest,
                size: u64::try_from(size).unwrap_or(0),
                modified: versions.iter().find(|row| row.version == number).and_then(|row| row.modified),
                damages: damages.collect(),
            });
        }
        Ok(())
    }

    fn versions_with_segments(&self, file: FileId) -> Result<Vec<i64>> {
        let mut statement = self
            .store
            .connection
            .prepare_cached(sql!("select distinct version from segment where file = $1"))?;
        let rows = statement.query_map(params![file], |row| row.get(0))?;
        // What cannot be read is missing from its version.
        Ok(rows.map_while(rusqlite::Result::ok).collect())
    }

    fn check_version(&mut self, file: FileId, version: i64, size: Option<i64>) -> Result<Vec<(u64, String)>> {
        let mut found = Vec::new();
        let mut statement = self.store.connection.prepare_cached(sql!(
            "select byte_offset, length, blob from segment where file = $1 and version = $2 order by byte_offset"
        ))?;
        let mut rows = statement.query(params![file, version])?;
        let mut end: i64 = 0;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    found.push((end as u64, error.to_string()));
                    break;
                }
            };
            let read: rusqlite::Result<(i64, i64, i64)> = (|| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))();
            let Ok((offset, length, blob)) = read else {
                found.push((end as u64, "a segment cannot be read".to_owned()));
                continue;
            };
            if offset != end || length <= 0 {
                found.push((end as u64, "content is missing".to_owned()));
            }
            end = offset.saturating_add(length.max(0));
            if let Some(what) = self.check_blob(blob, length) {
                found.push((offset.max(0) as u64, what));
            }
        }
        match size {
            None => found.push((0, "the version is missing".to_owned())),
            Some(size) if size != end => {
                found.push((end.min(size).max(0) as u64, format!("{end} of {size} bytes are there")));
            }
            Some(_) => {}
        }
        Ok(found)
    }

    /// Why a blob is damaged or is not one of this length.
    fn check_blob(&mut self, blob: i64, length: i64) -> Option<String> {
        if let Some(known) = self.blobs.get(&blob) {
            return known.clone();
        }
        let found = self.read_blob(blob, length).unwrap_or_else(|error| Some(error.to_string()));
        self.blobs.insert(blob, found.clone());
        found
    }

    fn read_blob(&mut self, blob: i64, length: i64) -> rusqlite::Result<Option<String>> {
        let connection = &self.store.connection.0;
        let mut statement = connection
            .prepare_cached(sql!("select length, packing, base, data, hash from blob where id = $1"))?;
        let mut rows = statement.query(params![blob])?;
        let Some(row) = rows.next()? else { return Ok(Some("content is missing".to_owned())) };
        let Ok(packed) = packed_row(row, 0) else { return Ok(Some("content cannot be read".to_owned())) };
        if i64::try_from(packed.length) != Ok(length) {
            return Ok(Some("content does not have its length".to_owned()));
        }
        let hash = row.get_ref(4)?.as_blob().unwrap_or_default();
        Ok(self.unpacker.verify(connection, &packed, hash, &mut Vec::new()).err())
    }
}

impl Writer<'_> {
    /// Writes content that a damaged version should have.
    pub fn heal_segment(&mut self, file: FileId, version: i64, segment: &Segment) -> Result<()> {
        self.write_segment(file, version, segment)
    }
}
