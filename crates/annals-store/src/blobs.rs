//! Bytes by content: a blob is stored once, however many versions, files and sources contain it. It is stored plain,
//! compressed, or as a delta against another blob.

use std::io;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use zstd::bulk::{Compressor, Decompressor};

use crate::error::Result;
use crate::sql;

/// Raw bytes per segment; versions are split into segments.
pub const SEGMENT: usize = 256 << 10;
/// Smaller blobs are not worth a delta.
const SMALLEST_DELTA: usize = 4 << 10;

/// How a blob's bytes are stored. The numbers are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Raw = 0,
    Zstd = 1,
    /// Compressed with the bytes of another blob as the dictionary. That one is never a delta itself.
    Delta = 2,
}

impl Packing {
    fn stored(self) -> i64 {
        self as i64
    }

    fn from_stored(number: i64) -> Option<Packing> {
        [Packing::Raw, Packing::Zstd, Packing::Delta].into_iter().find(|packing| packing.stored() == number)
    }
}

/// Some bytes of a version, packed.
#[derive(Debug)]
pub struct Segment {
    pub offset: u64,
    pub length: u64,
    pub hash: [u8; 32],
    pub packing: Packing,
    /// The base of a delta.
    pub base: Option<[u8; 32]>,
    pub data: Vec<u8>,
}

/// A blob that can be the base of a delta.
#[derive(Debug)]
pub struct BaseBlob {
    pub hash: [u8; 32],
    pub bytes: Vec<u8>,
}

/// Splits bytes into segments and compresses them. One per thread, reused for many files.
pub struct Packer {
    compressor: Compressor<'static>,
}

impl Packer {
    pub fn new() -> io::Result<Packer> {
        Ok(Packer { compressor: Compressor::new(1)? })
    }

    /// Packs bytes that start at `place`, a segment boundary.
    pub fn pack(&mut self, offset: u64, bytes: &[u8]) -> io::Result<Vec<Segment>> {
        let pieces = bytes.chunks(SEGMENT).enumerate();
        pieces.map(|(number, raw)| self.pack_one(offset + (number * SEGMENT) as u64, raw, None)).collect()
    }

    /// Packs one segment. `base` has the bytes of an earlier version at this place.
    pub fn pack_one(&mut self, offset: u64, raw: &[u8], base: Option<&BaseBlob>) -> io::Result<Segment> {
        let hash = *blake3::hash(raw).as_bytes();
        let segment = |packing, base, data| {
            let length = raw.len() as u64;
            Segment { offset, length, hash, packing, base, data }
        };
        let base = base.filter(|base| base.hash != hash && raw.len() >= SMALLEST_DELTA);
        let delta = match base {
            Some(base) => Some((base.hash, Compressor::with_dictionary(3, &base.bytes)?.compress(raw)?)),
            None => None,
        };
        let packed = self.compressor.compress(raw)?;
        Ok(match delta {
            Some((base, delta)) if delta.len() < packed.len() / 2 => {
                segment(Packing::Delta, Some(base), delta)
            }
            _ if packed.len() < raw.len() => segment(Packing::Zstd, None, packed),
            _ => segment(Packing::Raw, None, raw.to_vec()),
        })
    }
}

/// No blob is longer; a length beyond it is damage, and must not be allocated.
const LONGEST_BLOB: usize = 16 << 20;

/// Unpacks blobs, reusing its buffers.
#[derive(Default)]
pub(crate) struct Unpacker {
    decompressor: Decompressor<'static>,
    base: Vec<u8>,
}

impl Unpacker {
    /// Unpacks a blob into `into` and verifies its length and hash. Returns why it is damaged.
    pub(crate) fn verify(
        &mut self,
        connection: &Connection,
        row: &PackedRow<'_>,
        hash: &[u8],
        into: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        match self.unpack(connection, row, into) {
            Ok(()) if into.len() != row.length => Err("content does not have its length".to_owned()),
            Ok(()) if blake3::hash(into).as_bytes() != hash => {
                Err("content does not match its hash".to_owned())
            }
            Ok(()) => Ok(()),
            Err(error) => Err(format!("cannot be decompressed: {error}")),
        }
    }

    fn unpack(&mut self, connection: &Connection, row: &PackedRow<'_>, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        if row.length > LONGEST_BLOB {
            return Err(io::Error::other("impossible length").into());
        }
        match Packing::from_stored(row.packing) {
            Some(Packing::Raw) => into.extend_from_slice(row.data),
            Some(Packing::Zstd) => {
                into.reserve_exact(row.length);
                self.decompressor.decompress_to_buffer(row.data, into)?;
            }
            Some(Packing::Delta) => {
                let mut base = std::mem::take(&mut self.base);
                let found = self.base_bytes(connection, row.base, &mut base);
                let unpacked = found.and_then(|()| {
                    into.reserve_exact(row.length);
                    Ok(Decompressor::with_dictionary(&base)?.decompress_to_buffer(row.data, into)?)
                });
                self.base = base;
                unpacked?;
            }
            None => return Err(io::Error::other(format!("unknown packing {}", row.packing)).into()),
        }
        Ok(())
    }

    fn base_bytes(&mut self, connection: &Connection, base: Option<i64>, into: &mut Vec<u8>) -> Result<()> {
        let mut statement = connection.prepare_cached(sql!(
            "select length, packing, null, data from blob where id = $1 and packing <> 2"
        ))?;
        let mut rows = statement.query(params![base])?;
        let Some(row) = rows.next()? else {
            return Err(io::Error::other("the blob that it is the difference from is missing").into());
        };
        self.unpack(connection, &packed_row(row, 0)?, into)
    }
}

/// A row of `blob`, as it is stored.
pub(crate) struct PackedRow<'r> {
    pub length: usize,
    pub packing: i64,
    pub base: Option<i64>,
    pub data: &'r [u8],
}

/// Returns the row of a segment's blob, inserting one if no blob has these bytes. One that is damaged gets them again.
pub(crate) fn blob_of(connection: &Connection, segment: &Segment) -> Result<i64> {
    if let Some(id) = blob_by_hash(connection, &segment.hash)? {
        if !is_intact(connection, id)? {
            heal(connection, id, segment)?;
        }
        return Ok(id);
    }
    let base = match &segment.base {
        Some(hash) => blob_by_hash(connection, hash)?,
        None => None,
    };
    let mut statement = connection.prepare_cached(sql!(
        "insert into blob (hash, length, packing, base, data) values ($1, $2, $3, $4, $5)"
    ))?;
    let (length, packing) = (segment.length as i64, segment.packing.stored());
    statement.execute(params![segment.hash.as_slice(), length, packing, base, segment.data])?;
    Ok(connection.last_insert_rowid())
}

/// Whether a blob unpacks to the bytes that its hash is of.
pub(crate) fn is_intact(connection: &Connection, id: i64) -> Result<bool> {
    let mut statement = connection
        .prepare_cached(sql!("select length, packing, base, data, hash from blob where id = $1"))?;
    let mut rows = statement.query(params![id])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let packed = packed_row(row, 0)?;
    let hash = row.get_ref(4)?.as_blob().unwrap_or_default();
    Ok(Unpacker::default().verify(connection, &packed, hash, &mut Vec::new()).is_ok())
}

/// Writes the bytes of `segment` into a damaged blob with their hash. Other blobs may be differences from it, so that it
/// never becomes a difference itself.
fn heal(connection: &Connection, id: i64, segment: &Segment) -> Result<()> {
    let base = match &segment.base {
        Some(hash) => blob_by_hash(connection, hash)?,
        None => None,
    };
    let (length, packing) = (segment.length as usize, segment.packing.stored());
    let packed = PackedRow { length, packing, base, data: &segment.data };
    let mut raw = Vec::new();
    if let Err(cause) = Unpacker::default().verify(connection, &packed, &segment.hash, &mut raw) {
        return Err(io::Error::other(format!("a damaged blob cannot be healed: {cause}")).into());
    }
    store_packed(connection, id, &Packer::new()?.pack_one(segment.offset, &raw, None)?)
}

/// Stores the bytes of a blob in another packing.
pub(crate) fn store_packed(connection: &Connection, id: i64, packed: &Segment) -> Result<()> {
    let base = match &packed.base {
        Some(hash) => blob_by_hash(connection, hash)?,
        None => None,
    };
    let mut statement = connection.prepare_cached(sql!(
        "update blob set length = $2, packing = $3, base = $4, data = $5 where id = $1"
    ))?;
    statement.execute(params![id, packed.length as i64, packed.packing.stored(), base, packed.data])?;
    Ok(())
}

/// The columns `length, packing, base, data` of a row, the first at `at`. Values of a wrong type are those of no blob.
pub(crate) fn packed_row<'r>(row: &'r rusqlite::Row<'_>, at: usize) -> Result<PackedRow<'r>> {
    let number = |at| match row.get_ref(at) {
        Ok(ValueRef::Integer(number)) => Some(number),
        _ => None,
    };
    Ok(PackedRow {
        length: number(at).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX),
        packing: number(at + 1).unwrap_or(-1),
        base: number(at + 2),
        data: row.get_ref(at + 3)?.as_blob().unwrap_or_default(),
    })
}

/// Removes a blob if nothing refers to it any more.
pub(crate) fn remove_unused(connection: &Connection, blob: i64) -> Result<()> {
    let mut statement = connection.prepare_cached(sql!(
        "delete from blob where id = $1 and not exists (select 1 from segment where segment.blob = $1)
         and not exists (select 1 from blob other where other.base = $1)
         and not exists (select 1 from trashed_segment where trashed_segment.blob = $1)
         and not exists (select 1 from staged_blob where staged_blob.blob = $1)"
    ))?;
    statement.execute(params![blob])?;
    Ok(())
}

pub(crate) fn blob_by_hash(connection: &Connection, hash: &[u8; 32]) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(sql!("select id from blob where hash = $1"))?;
    Ok(statement.query_row(params![hash.as_slice()], |row| row.get(0)).optional()?)
}

/// Moves bytes out of segments into blobs, for archives from before there were blobs. Every few segments are one
/// transaction, so an interrupted migration resumes there and freed space is reused.
pub(crate) fn move_segments(connection: &mut Connection, advance: &mut dyn FnMut(u64, u64)) -> Result<()> {
    const STEP: i64 = 32;
    let total: i64 = connection.query_row("select count(*) from segment", [], |row| row.get(0))?;
    let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    loop {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process was faster and may already be at a later migration.
        if transaction.query_row("pragma user_version", [], |row| row.get::<_, i64>(0))? != version {
            return Ok(());
        }
        let mut statement =
            transaction.prepare(sql!("select id from segment where blob is null order by id limit $1"))?;
        let ids: Vec<i64> =
            statement.query_map(params![STEP], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        if ids.is_empty() {
            return Ok(());
        }
        for id in &ids {
            transaction
                .prepare_cached(sql!(
                    "insert into blob (hash, length, packing, data)
                 select hash, length, packing, data from segment where id = $1 on conflict (hash) do nothing"
                ))?
                .execute(params![id])?;
            transaction.prepare_cached(sql!(
                "update segment set blob = (select blob.id from blob where blob.hash = segment.hash), data = x''
                 where id = $1"
            ))?.execute(params![id])?;
        }
        let left: i64 =
            transaction.query_row("select count(*) from segment where blob is null", [], |row| row.get(0))?;
        transaction.commit()?;
        advance((total - left) as u64, total as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut bytes);
        bytes
    }

    #[test]
    fn numbers_on_disk_stay() {
        assert_eq!([Packing::Raw, Packing::Zstd, Packing::Delta].map(Packing::stored), [0, 1, 2]);
        assert_eq!(Packing::from_stored(3), None);
    }

    #[test]
    fn a_small_change_is_a_small_delta() {
        let mut packer = Packer::new().unwrap();
        let bytes = noise(SEGMENT);
        let base = BaseBlob { hash: *blake3::hash(&bytes).as_bytes(), bytes: bytes.clone() };
        let (front, back) =
            ([b"seven..".to_vec(), bytes.clone()].concat(), [bytes.clone(), b"seven..".to_vec()].concat());
        for changed in [&front[..SEGMENT], &back] {
            let segment = packer.pack_one(0, changed, Some(&base)).unwrap();
            assert_eq!((segment.packing, segment.base), (Packing::Delta, Some(base.hash)));
            assert!(segment.data.len() < 1_000, "{} bytes", segment.data.len());
        }
        let other = packer.pack_one(0, &noise(SEGMENT / 2), Some(&base)).unwrap();
        assert!(other.data.len() <= SEGMENT / 2);
        let same = packer.pack_one(0, &bytes, Some(&base)).unwrap();
        assert_eq!(same.packing, Packing::Raw, "equal bytes are one blob, and no delta of themselves");
        assert_eq!(packer.pack_one(0, &[b'a'; 9_000], None).unwrap().packing, Packing::Zstd);
    }
}
