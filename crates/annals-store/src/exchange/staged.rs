//! Blobs from another archive: each is unpacked and compared with its hash before it is stored.

use std::io::{self, Read};

use rusqlite::{OptionalExtension, params};

use super::{ContentHash, ExchangeVersion, holder};
use crate::blobs::{self, Packer, Packing, Segment, Unpacker};
use crate::error::Result;
use crate::{SEGMENT, Store, sql};
use annals_core::{Error, MemberId, Time};
use zstd::bulk::Decompressor;

/// A blob on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBlob {
    pub hash: ContentHash,
    /// Of its bytes.
    pub length: u32,
    /// As in the archive: 0 is plain, 1 is zstd, 2 is the difference from `base`.
    pub packing: u8,
    pub base: Option<ContentHash>,
    pub data: Vec<u8>,
}

impl PackedBlob {
    pub fn of(segment: &Segment) -> PackedBlob {
        PackedBlob {
            hash: ContentHash(segment.hash),
            length: segment.length as u32,
            packing: segment.packing as u8,
            base: segment.base.map(ContentHash),
            data: segment.data.clone(),
        }
    }
}

impl Store {
    /// Stores blobs until a file refers to them, all or none. Returns how many were new to this holder.
    pub fn stage_blobs(&mut self, member: Option<MemberId>, packed: &[PackedBlob], now: Time) -> Result<u64> {
        let mut unpacked = Vec::new();
        let mut staged = 0;
        let mut packer = Packer::new()?;
        // What takes time is done before anybody has to wait for the transaction.
        for (number, blob) in packed.iter().enumerate() {
            unpacked.push(self.unpack_staged(member, blob, &packed[..number], &unpacked)?);
        }
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for (blob, bytes) in packed.iter().zip(&unpacked) {
            let plain = |id: &i64| -> Result<bool> {
                let mut statement =
                    transaction.prepare_cached(sql!("select packing <> 2 from blob where id = $1"))?;
                Ok(statement.query_row(params![id], |row| row.get(0))?)
            };
            let base = match &blob.base {
                Some(base) => blobs::blob_by_hash(&transaction, &base.0)?,
                None => None,
            };
            let keeps_difference = match &base {
                Some(base) => plain(base)?,
                None => false,
            };
            let packing = match blob.packing {
                0 => Some(Packing::Raw),
                1 => Some(Packing::Zstd),
                _ => Some(Packing::Delta).filter(|_| keeps_difference),
            };
            let segment = match packing {
                Some(packing) => Segment {
                    offset: 0,
                    length: bytes.len() as u64,
                    hash: blob.hash.0,
                    packing,
                    base: blob.base.filter(|_| packing == Packing::Delta).map(|base| base.0),
                    data: blob.data.clone(),
                },
                None => packer.pack_one(0, bytes, None)?,
            };
            let id = blobs::blob_of(&transaction, &segment)?;
            let mut statement = transaction.prepare_cached(sql!(
                "insert into staged_blob (holder, blob, at) values ($1, $2, $3)
                 on conflict (holder, blob) do nothing"
            ))?;
            staged += statement.execute(params![holder(member), id, now.micros()])? as u64;
        }
        transaction.commit()?;
        Ok(staged)
    }

    fn unpack_staged(
        &self,
        member: Option<MemberId>,
        blob: &PackedBlob,
        before: &[PackedBlob],
        unpacked: &[Vec<u8>],
    ) -> Result<Vec<u8>> {
        let refused = |what: String| Error::bad_request(format!("blob {}: {what}", blob.hash));
        if blob.length as usize > SEGMENT || blob.length == 0 {
            return Err(refused(format!("a length of {} is impossible", blob.length)).into());
        }
        let length = blob.length as usize;
        // A bomb is cut off where its declared length ends.
        let decode = |mut decoder: Decompressor<'_>| {
            let mut bytes = Vec::with_capacity(length + 1);
            decoder.decompress_to_buffer(&blob.data, &mut bytes).map(|_| bytes)
        };
        let bytes = match (blob.packing, &blob.base) {
            (0, None) => Ok(blob.data.clone()),
            (1, None) => Decompressor::new().and_then(decode),
            (2, Some(base)) => {
                let sent = before.iter().position(|other| other.hash == *base);
                let base = match sent.and_then(|at| unpacked.get(at)) {
                    Some(bytes) => bytes.clone(),
                    None if self.holds_blob(member, base)? => self.blob_bytes(base)?,
                    None => return Err(refused(format!("its base {base} is missing")).into()),
                };
                Decompressor::with_dictionary(&base).and_then(decode)
            }
            _ => return Err(refused("unknown packing".to_owned()).into()),
        };
        let bytes = bytes
            .map_err(|error| refused(format!("does not decompress to its {} bytes: {error}", blob.length)))?;
        if bytes.len() != length {
            return Err(refused(format!("has {} bytes instead of {length}", bytes.len())).into());
        }
        if ContentHash::of(&bytes) != blob.hash {
            return Err(refused("wrong hash".to_owned()).into());
        }
        Ok(bytes)
    }

    /// Bytes that a holder sent and no file refers to.
    pub fn staged_bytes(&self, member: Option<MemberId>) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select coalesce(sum(length(blob.data)), 0) from staged_blob
             join blob on blob.id = staged_blob.blob where holder = $1"
        ))?;
        Ok(statement.query_row(params![holder(member)], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Drops blobs that were sent before a time and never used. Returns how many.
    pub fn drop_staged(&mut self, before: Time) -> Result<u64> {
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let blobs: Vec<i64> = transaction
            .prepare_cached(sql!("delete from staged_blob where at < $1 returning blob"))?
            .query_map(params![before.micros()], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        // Differences go first, so that a base that only they need is unused as well.
        for _ in 0..2 {
            for blob in &blobs {
                blobs::remove_unused(&transaction, *blob)?;
            }
        }
        transaction.commit()?;
        Ok(blobs.len() as u64)
    }

    /// Whether blobs wait that were sent before a time.
    pub fn has_staged(&self, before: Time) -> Result<bool> {
        let mut statement =
            self.connection.prepare_cached(sql!("select 1 from staged_blob where at < $1 limit 1"))?;
        Ok(statement.query_row(params![before.micros()], |_| Ok(())).optional()?.is_some())
    }

    /// Reads a version whose blobs are stored, from an offset.
    pub fn read_blobs<'s>(&'s self, version: &'s ExchangeVersion, from: u64) -> impl Read + 's {
        BlobsReader {
            store: self,
            version,
            unpacker: Unpacker::default(),
            piece: Vec::new(),
            at: (from % SEGMENT as u64) as usize,
            next: (from / SEGMENT as u64) as usize,
        }
    }
}

struct BlobsReader<'s> {
    store: &'s Store,
    version: &'s ExchangeVersion,
    unpacker: Unpacker,
    piece: Vec<u8>,
    at: usize,
    next: usize,
}

impl Read for BlobsReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.piece.len() {
            let Some(hash) = self.version.segments.get(self.next) else { return Ok(0) };
            let skipped = if self.piece.is_empty() { self.at } else { 0 };
            let read = self.store.read_blob(&mut self.unpacker, hash, &mut self.piece);
            read.map_err(|error| io::Error::other(Error::from(error)))?;
            if self.piece.len() as u64 != self.version.length_of(self.next) {
                return Err(io::Error::other(format!("blob {hash} does not have the length of its segment")));
            }
            self.next += 1;
            self.at = skipped;
            if self.at >= self.piece.len() {
                return Ok(0);
            }
        }
        let count = into.len().min(self.piece.len() - self.at);
        into[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> PackedBlob {
        PackedBlob::of(&Packer::new().unwrap().pack_one(0, bytes, None).unwrap())
    }

    #[test]
    fn what_does_not_have_its_hash_or_length_is_refused_and_nothing_of_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let now = Time::from_micros(1);
        let good = packed(&[b'a'; 9_000]);
        let bomb = PackedBlob { data: zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap(), ..good.clone() };
        let short = PackedBlob { length: 8_999, ..good.clone() };
        let wrong = PackedBlob { hash: ContentHash([7; 32]), ..good.clone() };
        let odd = PackedBlob { packing: 3, ..good.clone() };
        let baseless = PackedBlob { packing: 2, base: Some(ContentHash([1; 32])), ..good.clone() };
        let long = PackedBlob { length: u32::MAX, ..good.clone() };
        for bad in [bomb, short, wrong, odd, baseless, long] {
            let error = store.stage_blobs(None, &[good.clone(), bad], now).unwrap_err();
            assert!(error.to_string().starts_with("blob "), "{error}");
            let blobs: i64 =
                store.connection.query_row("select count(*) from blob", [], |row| row.get(0)).unwrap();
            assert_eq!(blobs, 0, "{error}");
        }
        assert_eq!(store.stage_blobs(None, std::slice::from_ref(&good), now).unwrap(), 1);
        assert_eq!(store.stage_blobs(None, std::slice::from_ref(&good), now).unwrap(), 0);
        assert_eq!(store.blob_bytes(&good.hash).unwrap(), [b'a'; 9_000]);
    }

    #[test]
    fn nobody_learns_which_blobs_others_have() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let (now, blob) = (Time::from_micros(1), packed(b"mine alone"));
        let (ada, eve) = (Some(MemberId(1)), Some(MemberId(2)));
        store.stage_blobs(ada, std::slice::from_ref(&blob), now).unwrap();
        assert_eq!(store.held_blobs(ada, &[blob.hash]).unwrap().len(), 1);
        assert_eq!(store.held_blobs(eve, &[blob.hash]).unwrap().len(), 0);
        assert_eq!(store.held_blobs(None, &[blob.hash]).unwrap().len(), 0);
        assert_eq!(store.drop_staged(Time::from_micros(2)).unwrap(), 1);
        assert!(store.blob_bytes(&blob.hash).is_err());
    }
}
