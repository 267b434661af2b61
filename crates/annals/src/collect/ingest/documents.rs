//! Documents that are replaced as a whole: each change is a new version.

use super::forgotten::blank;
use super::target::Target;
use annals_core::{Forgotten, Result};
use annals_store::{Batch, CapturedFile, Packer, SEGMENT, Store};

/// Whether the newest version of the file has these bytes.
pub fn is_same(store: &Store, known: &CapturedFile, bytes: &[u8]) -> Result<bool> {
    let hashes = store.segment_hashes(known.id, known.version)?;
    Ok(hashes.len() == bytes.chunks(SEGMENT).count()
        && hashes
            .iter()
            .zip(bytes.chunks(SEGMENT))
            .all(|((_, _, hash), piece)| blake3::hash(piece).as_bytes() == hash))
}

/// Writes the bytes of the newest version again: the archive's copy is damaged. Its rows stay.
pub fn write_again(
    target: &Target,
    known: &CapturedFile,
    bytes: &[u8],
    packer: &mut Packer,
) -> Result<Batch> {
    let batch = target.batch(Some(known.id), None);
    Ok(Batch { segments: packer.pack(0, bytes)?, size: bytes.len() as u64, ..batch })
}

/// A document as it may enter the archive, with what was forgotten blanked; none if all of it was forgotten.
pub fn without_forgotten(
    store: &Store,
    target: &Target,
    known: Option<&CapturedFile>,
    forgotten: &Forgotten,
    mut bytes: Vec<u8>,
) -> Result<Option<Vec<u8>>> {
    let path = &target.part.path;
    if known.is_none() && store.captured_file(target.instance, &forgotten.file_name(path))?.is_some() {
        return Ok(None);
    }
    blank(&mut bytes, forgotten, path, target.part.framing)?;
    Ok(Some(bytes))
}

pub fn replace(
    target: &Target,
    known: Option<&CapturedFile>,
    bytes: &[u8],
    packer: &mut Packer,
) -> Result<Batch> {
    let mut parse = target.parse(None);
    parse.feed(bytes);
    parse.finish();
    let batch = target.batch(known.map(|known| known.id), Some(parse.take()));
    let size = bytes.len() as u64;
    let segments = packer.pack(0, bytes)?;
    Ok(Batch { new_version: true, drops_rows: true, segments, new_bytes: size, size, ..batch })
}
