//! Files and their versions: batches of captured bytes, and the bytes of a version from start to end.

use std::io::{self, Read};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::blobs::{BaseBlob, Segment, Unpacker, packed_row};
use crate::damage::damage_at;
use crate::error::{Result, StoreError};
use crate::{Archive, Store, TranscriptFile, sql};
use annals_core::{Encoding, FileId, Framing, InstanceId, Item, LineStatus, SessionFacts, Span, Time};

/// A part of a file, committed as a whole: bytes, rows, counts and where to continue.
#[derive(Debug)]
pub struct Batch {
    pub instance: InstanceId,
    /// The row of the file; `None` for a new one.
    pub file: Option<FileId>,
    pub part: FilePart,
    /// Starts a new version of the file with this batch.
    pub new_version: bool,
    pub segments: Vec<Segment>,
    /// Bytes that the archive does not have yet.
    pub new_bytes: u64,
    /// Total captured bytes after this batch.
    pub size: u64,
    /// The file as it is on disk, once all of it is captured.
    pub stat: Option<Stat>,
    pub owner: RowsOwner,
    /// Drops the existing rows of the file.
    pub drops_rows: bool,
    /// Another file whose rows these replace.
    pub supersedes: Option<FileId>,
    /// `None` if the batch has only bytes: existing rows stay.
    pub rows: Option<ReadRows>,
    pub reader_version: u32,
    /// Hashes of the imported texts that this batch adds to the file.
    pub captures: Vec<[u8; 16]>,
    /// The record (stream and key) that has size and hash of the file.
    pub described_by: Option<(&'static str, String)>,
}

impl Batch {
    /// An empty batch for a file that owns its rows.
    pub fn new(instance: InstanceId, file: Option<FileId>, part: FilePart) -> Batch {
        Batch {
            instance,
            file,
            part,
            new_version: false,
            segments: Vec::new(),
            new_bytes: 0,
            size: 0,
            stat: None,
            owner: RowsOwner::This,
            drops_rows: false,
            supersedes: None,
            rows: None,
            reader_version: 0,
            captures: Vec::new(),
            described_by: None,
        }
    }
}

/// What a reader found in a part of a file, and its position after it.
#[derive(Debug, Default)]
pub struct ReadRows {
    pub items: Vec<Item>,
    pub counts: Vec<LineCount>,
    /// Lines that are not JSON, and why.
    pub malformed: Vec<(Span, String)>,
    /// Facts about each session from this file so far. The higher rank wins.
    pub facts: Vec<(Arc<str>, u8, SessionFacts)>,
    /// Content is read up to here.
    pub parsed: u64,
    /// Decoded bytes so far.
    pub content_size: u64,
    /// The state of the reader.
    pub state: String,
}

/// Which of the files with one logical path has the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsOwner {
    This,
    /// A file with the same content.
    Other(FileId),
    /// Another form of the file has the rows; only the bytes of this one are kept.
    Nobody,
}

impl RowsOwner {
    /// The value of the column: null, the other file, or 0.
    pub(crate) fn stored(self) -> Option<i64> {
        match self {
            RowsOwner::This => None,
            RowsOwner::Other(file) => Some(file.0),
            RowsOwner::Nobody => Some(0),
        }
    }

    fn from_stored(stored: Option<i64>) -> RowsOwner {
        match stored {
            None => RowsOwner::This,
            Some(0) => RowsOwner::Nobody,
            Some(file) => RowsOwner::Other(FileId(file)),
        }
    }
}

/// What a file is, besides its bytes.
#[derive(Debug, Clone)]
pub struct FilePart {
    pub path: String,
    /// The same for two forms of one file, such as plain and compressed.
    pub logical_path: String,
    pub store: &'static str,
    pub reader: &'static str,
    pub framing: Framing,
    pub encoding: Encoding,
    /// Generated from a database row; not a file on disk.
    pub document: bool,
    /// Its records end when they disappear from the file, or the file from the home.
    pub mutable: bool,
}

/// What identifies an unchanged file without reading it. The change time cannot be set back by a program.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    pub inode: i64,
    pub modified: Time,
    pub changed: Time,
    /// Permissions. Not compared: they are unknown in older archives, and setting them sets the change time.
    pub mode: Option<u32>,
}

impl PartialEq for Stat {
    fn eq(&self, other: &Stat) -> bool {
        (self.inode, self.modified, self.changed) == (other.inode, other.modified, other.changed)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCount {
    pub status: LineStatus,
    pub kind: String,
    pub lines: u64,
    pub bytes: u64,
}

/// A file as it was last captured.
#[derive(Debug, Clone)]
pub struct CapturedFile {
    pub id: FileId,
    pub path: String,
    pub logical_path: String,
    pub reader: String,
    pub framing: Framing,
    pub encoding: Encoding,
    pub document: bool,
    pub mutable: bool,
    pub version: i64,
    pub rows_version: i64,
    pub size: u64,
    pub parsed: u64,
    pub stat: Option<Stat>,
    pub owner: RowsOwner,
    pub gone: bool,
}

#[derive(Debug, Clone)]
pub struct VersionRow {
    pub version: i64,
    pub size: u64,
    pub modified: Option<Time>,
    pub captured_at: Time,
    /// When the client deleted the file, for its last version at that time.
    pub gone_at: Option<Time>,
}

/// Segments that are compared before an append: 8 MiB take a few milliseconds.
const SAMPLE: usize = 32;

/// For collectors, by ids that they already have. Never called on behalf of a member.
impl Store {
    /// All files of an instance, for comparison with the disk.
    pub fn captured_files(&self, instance: InstanceId) -> Result<Vec<CapturedFile>> {
        self.captured_files_below(instance, "")
    }

    /// Files whose path starts with `prefix`, ordered by path.
    pub fn captured_files_below(&self, instance: InstanceId, prefix: &str) -> Result<Vec<CapturedFile>> {
        let behind = format!("{prefix}\u{10ffff}");
        let text = format!("{CAPTURED} where instance = ?1 and path >= ?2 and path < ?3 order by path");
        let mut statement = self.connection.prepare_cached(&text)?;
        let rows = statement.query_map(params![instance, prefix, behind], captured_file)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Finds a file by its path.
    pub fn captured_file(&self, instance: InstanceId, path: &str) -> Result<Option<CapturedFile>> {
        let text = format!("{CAPTURED} where instance = ?1 and path = ?2");
        let mut statement = self.connection.prepare_cached(&text)?;
        Ok(statement.query_row(params![instance, path], captured_file).optional()?)
    }

    /// Whether an import added a text with this hash to the file.
    pub fn has_capture(&self, file: FileId, hash: &[u8; 16]) -> Result<bool> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select exists (select 1 from capture where file = $1 and hash = $2)"))?;
        Ok(statement.query_row(params![file, hash.as_slice()], |row| row.get(0))?)
    }

    pub fn reader_state(&self, file: FileId) -> Result<String> {
        let mut statement =
            self.connection.prepare_cached(sql!("select state from reader_state where file = $1"))?;
        Ok(statement.query_row(params![file], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Offset, length and hash of each segment of a version, in order.
    pub fn segment_hashes(&self, file: FileId, version: i64) -> Result<Vec<(u64, u64, [u8; 32])>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select segment.byte_offset, segment.length, blob.hash
                 from segment join blob on blob.id = segment.blob where file = $1 and version = $2 order by byte_offset"
        ))?;
        let rows = statement.query_map(params![file, version], segment_hash)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Segments of a version that tell an append from a rewrite: all of them, or of a long version the first, the last
    /// and some between, others at each size.
    pub fn sampled_hashes(&self, file: FileId, version: i64) -> Result<Vec<(u64, u64, [u8; 32])>> {
        let mut hashes = self.segment_hashes(file, version)?;
        let (count, end) = (hashes.len(), hashes.last().map_or(0, |(offset, length, _)| offset + length));
        if count > SAMPLE {
            let step = count.div_ceil(SAMPLE);
            let first = (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % step;
            let mut at = 0..count;
            hashes.retain(|_| at.next().is_some_and(|at| at % step == first || at == 0 || at + 1 == count));
        }
        Ok(hashes)
    }

    /// A file by its row.
    pub fn captured_file_of(&self, file: FileId) -> Result<Option<CapturedFile>> {
        let text = format!("{CAPTURED} where id = ?1");
        let mut statement = self.connection.prepare_cached(&text)?;
        Ok(statement.query_row(params![file], captured_file).optional()?)
    }

    /// The base for a delta in a new version of the file: the blob of this version at `place`, a segment boundary, or
    /// the base of that blob if it is a delta.
    pub fn base_blob(&self, file: FileId, version: i64, offset: u64) -> Result<Option<BaseBlob>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select base.hash, base.length, base.packing, null, base.data
             from segment join blob on blob.id = segment.blob
             join blob base on base.id = coalesce(blob.base, blob.id)
             where segment.file = $1 and segment.version = $2 and segment.byte_offset = $3"
        ))?;
        let mut rows = statement.query(params![file, version, offset as i64])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut bytes = Vec::new();
        let hash = row.get_ref(0)?.as_blob().unwrap_or_default();
        let intact = Unpacker::default().verify(&self.connection, &packed_row(row, 1)?, hash, &mut bytes);
        // A difference from damaged bytes would be lost when they are healed.
        Ok(match (intact, hash.try_into()) {
            (Ok(()), Ok(hash)) => Some(BaseBlob { hash, bytes }),
            _ => None,
        })
    }

    pub fn versions(&self, file: FileId) -> Result<Vec<VersionRow>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select version, size, modified, gone_at, captured_at from version where file = $1 order by version"
        ))?;
        let rows = statement.query_map(params![file], |row| {
            Ok(VersionRow {
                version: row.get(0)?,
                size: row.get::<_, i64>(1)? as u64,
                modified: row.get::<_, Option<i64>>(2)?.map(Time::from_micros),
                gone_at: row.get::<_, Option<i64>>(3)?.map(Time::from_micros),
                captured_at: Time::from_micros(row.get(4)?),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Reads the captured bytes of a version, all of them, each as it was captured: anything else is an error.
    pub fn bytes<'s>(&'s self, file: FileId, version: i64) -> impl Read + 's {
        version_reader(&self.connection, file, version)
    }
}

pub(crate) fn version_reader(connection: &Connection, file: FileId, version: i64) -> VersionReader<'_> {
    let unpacker = Unpacker::default();
    VersionReader { connection, unpacker, file, version, size: None, next: 0, piece: Vec::new(), at: 0 }
}

impl<'s> Archive<'s> {
    /// Reads the captured bytes of a transcript.
    pub fn transcript_bytes(&self, file: &TranscriptFile) -> impl Read + use<'s> {
        self.store().bytes(file.id, file.version)
    }
}

const CAPTURED: &str =
    "select id, path, logical_path, reader, framing, encoding, document, version, rows_version, size, parsed,
            inode, modified, changed, rows_owner, gone_at, mutable from file";

fn captured_file(row: &rusqlite::Row<'_>) -> rusqlite::Result<CapturedFile> {
    let inode: Option<i64> = row.get(11)?;
    let modified: Option<i64> = row.get(12)?;
    let changed: Option<i64> = row.get(13)?;
    let stat = inode.zip(modified).zip(changed).map(|((inode, modified), changed)| Stat {
        inode,
        modified: Time::from_micros(modified),
        changed: Time::from_micros(changed),
        mode: None,
    });
    Ok(CapturedFile {
        id: row.get(0)?,
        path: row.get(1)?,
        logical_path: row.get(2)?,
        reader: row.get(3)?,
        framing: framing(row.get_ref(4)?.as_str()?),
        encoding: encoding(row.get_ref(5)?.as_str()?),
        document: row.get(6)?,
        version: row.get(7)?,
        rows_version: row.get(8)?,
        size: row.get::<_, i64>(9)? as u64,
        parsed: row.get::<_, i64>(10)? as u64,
        stat,
        owner: RowsOwner::from_stored(row.get(14)?),
        gone: row.get::<_, Option<i64>>(15)?.is_some(),
        mutable: row.get(16)?,
    })
}

pub(crate) fn framing(name: &str) -> Framing {
    match name {
        "lines" => Framing::Lines,
        "sequence" => Framing::Sequence,
        _ => Framing::Whole,
    }
}

fn segment_hash(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, u64, [u8; 32])> {
    let mut hash = [0; 32];
    let stored = row.get_ref(2)?.as_blob()?;
    hash[..stored.len().min(32)].copy_from_slice(&stored[..stored.len().min(32)]);
    Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, hash))
}

pub fn encoding(name: &str) -> Encoding {
    if name == "zstd" { Encoding::Zstd } else { Encoding::Plain }
}

/// Reads a version segment by segment.
pub(crate) struct VersionReader<'s> {
    connection: &'s Connection,
    unpacker: Unpacker,
    file: FileId,
    version: i64,
    size: Option<u64>,
    next: u64,
    piece: Vec<u8>,
    at: usize,
}

impl VersionReader<'_> {
    /// Unpacks the next segment; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let (connection, file, version) = (self.connection, self.file, self.version);
        let damaged =
            |offset, what: &str| Err(StoreError::Damaged(damage_at(connection, file, version, offset, what)));
        let size = match self.size {
            Some(size) => size,
            None => match version_size(connection, file, version)? {
                Some(size) => *self.size.insert(size),
                None => return damaged(0, "the version is missing"),
            },
        };
        if self.next == size {
            return Ok(false);
        }
        let start = segment_at(connection, &mut self.unpacker, file, version, self.next, &mut self.piece)?;
        if start != Some(self.next) || self.piece.is_empty() {
            return damaged(self.next, "content is missing");
        }
        self.at = 0;
        self.next += self.piece.len() as u64;
        if self.next > size {
            // It may have grown meanwhile.
            self.size = version_size(connection, file, version)?;
            if self.size.is_none_or(|size| self.next > size) {
                return damaged(size, "the version has more content than its size");
            }
        }
        Ok(true)
    }
}

pub(crate) fn version_size(connection: &Connection, file: FileId, version: i64) -> Result<Option<u64>> {
    let mut statement =
        connection.prepare_cached(sql!("select size from version where file = $1 and version = $2"))?;
    let size = statement.query_row(params![file, version], |row| row.get::<_, i64>(0)).optional()?;
    Ok(size.map(|size| size as u64))
}

impl Read for VersionReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // An error that passes through a decoder comes back as it is.
        let failed = |error: StoreError| io::Error::other(annals_core::Error::from(error));
        if self.at == self.piece.len() && !self.advance().map_err(failed)? {
            return Ok(0);
        }
        let count = into.len().min(self.piece.len() - self.at);
        into[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Unpacks and verifies the segment that covers `place`, and returns where it starts.
pub(crate) fn segment_at(
    connection: &Connection,
    unpacker: &mut Unpacker,
    file: FileId,
    version: i64,
    offset: u64,
    into: &mut Vec<u8>,
) -> Result<Option<u64>> {
    let mut statement = connection.prepare_cached(sql!(
        "select segment.byte_offset, segment.length, blob.packing, blob.base, blob.data, blob.hash
         from segment join blob on blob.id = segment.blob
         where segment.file = $1 and segment.version = $2 and segment.byte_offset <= $3
         order by segment.byte_offset desc limit 1"
    ))?;
    let mut rows = statement.query(params![file, version, offset as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (start, length) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
    if offset >= start + length {
        return Ok(None);
    }
    let hash = row.get_ref(5)?.as_blob().unwrap_or_default();
    match unpacker.verify(connection, &packed_row(row, 1)?, hash, into) {
        Ok(()) => Ok(Some(start)),
        Err(what) => Err(StoreError::Damaged(damage_at(connection, file, version, start, &what))),
    }
}
