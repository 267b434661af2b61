//! Proves that what was forgotten is gone: from contents, index, tables, and the raw bytes of the archive's files.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use super::encodings::{SHORTEST, forms_of};
use super::{ArchivedFile, archived_files, shape_of};
use crate::collect::ingest::content::decoder;
use crate::collect::ingest::forgotten::{each_unit, forgotten_parts};
use crate::collect::rebuild::{RebuildTarget, read_version};
use annals_core::{Error, Forgotten, Result};
use annals_sources::by_name;
use annals_store::Store;

/// Raw bytes that are searched at once, and how much of them is searched again with the next: no text is longer.
const PIECE: usize = 8 << 20;
const OVERLAP: usize = 256 << 10;
/// The table with the keys of removed rows.
const REMOVED: &str = "removed";

/// Where was searched, and what was found.
#[derive(Debug, Default, Serialize)]
pub struct Verified {
    /// Hashes of lines, documents and texts that were looked for.
    pub hashes: u64,
    pub contents: ContentSearch,
    pub blobs: BlobSearch,
    pub index: Index,
    pub tables: Tables,
    pub raw: RawSearch,
    /// Bytes that are kept in the trash until they expire are not searched for.
    pub in_trash: u64,
    /// Places with forgotten content; none if it is gone.
    pub found: Vec<Found>,
}

#[derive(Debug, Default, Serialize)]
pub struct ContentSearch {
    pub files: u64,
    pub versions: u64,
    pub lines: u64,
    pub bytes: u64,
}

/// Stored bytes, unpacked, whether a file refers to them or not.
#[derive(Debug, Default, Serialize)]
pub struct BlobSearch {
    pub blobs: u64,
    pub bytes: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct Index {
    pub segments: u64,
    pub blocks: u64,
    pub terms: u64,
    pub passages: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct Tables {
    pub rows: u64,
    pub values: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct RawSearch {
    pub files: u64,
    pub bytes: u64,
    pub free_pages: u64,
    pub log_bytes: u64,
}

#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub place: &'static str,
    /// A number of a file, a name of a table, or a name of a file in the archive's directory.
    pub name: String,
    pub count: u64,
}

/// Searches for everything that was forgotten, for `texts`, and for samples of what was forgotten just now.
pub fn verify(data_dir: &Path, texts: &[String], samples: Option<&Forgotten>) -> Result<Verified> {
    let store = Store::open_reader(data_dir)?;
    let rows = store.forgettings()?;
    let mut verified = Verified {
        hashes: rows.iter().map(|row| u64::try_from(row.hashes).unwrap_or(0)).sum(),
        in_trash: rows.iter().filter(|row| row.expires_at.is_some()).count() as u64,
        ..Verified::default()
    };
    let mut forgotten = store.forgotten()?;
    for text in texts {
        if text.trim().len() < SHORTEST {
            return Err(Error::bad_request(format!("a text to look for has at least {SHORTEST} bytes")));
        }
        forms_of(text).iter().for_each(|form| forgotten.add_text(forgotten.text(form)));
    }
    let mut found = BTreeMap::new();
    search_contents(&store, &forgotten, &mut verified, &mut found)?;
    search_index(&store, &mut verified, &mut found)?;
    // Parts of forgotten lines may also be parts of lines that stay.
    let mut suspected: HashSet<Vec<u8>> = HashSet::new();
    let mut places: Vec<(&'static str, String, Vec<u8>)> = Vec::new();
    let mut search = |place: &'static str, name: &str, bytes: &[u8]| {
        forgotten.each_text(bytes, &mut |_| *found.entry((place, name.to_owned())).or_default() += 1);
        if let Some(samples) = samples {
            samples.each_text(bytes, &mut |range| {
                let part = bytes[range].to_vec();
                suspected.insert(part.clone());
                places.push((place, name.to_owned(), part));
            });
        }
    };
    let (mut blobs, mut lines) = (BlobSearch::default(), 0);
    store.each_blob(&mut |id, bytes| {
        blobs.blobs += 1;
        blobs.bytes += bytes.len() as u64;
        search("blob", &id.to_string(), bytes);
        // Also those that no file refers to any more, which the search of contents does not come to.
        let forgotten_lines =
            bytes.split(|byte| *byte == b'\n').filter(|line| forgotten.is_forgotten("", line));
        lines += forgotten_lines.count() as u64;
    })?;
    verified.blobs = blobs;
    let mut values = 0;
    verified.tables.rows = store.each_value(&mut |table, bytes| {
        values += 1;
        search("table", table, bytes);
    })?;
    verified.tables.values = values;
    search_raw(data_dir, &mut verified, &mut search)?;
    if lines > 0 {
        *found.entry(("blob", "lines".to_owned())).or_default() += lines;
    }
    verified.raw.free_pages = store.free_pages()?;
    // Ids of what was removed stay, for the consumers of records.
    let ids = places.iter().filter(|(place, name, _)| *place == "table" && name == REMOVED);
    let ids: HashSet<Vec<u8>> = ids.map(|(_, _, part)| part.clone()).collect();
    suspected.retain(|part| !ids.contains(part));
    places.retain(|(_, _, part)| !ids.contains(part));
    let mut kept = kept_parts(&store, &forgotten, &suspected)?;
    suspected.retain(|part| !kept.contains(part));
    kept.extend(derived_parts(&store, suspected)?);
    for (place, name, part) in places {
        if !kept.contains(&part) {
            *found.entry((place, name)).or_default() += 1;
        }
    }
    verified.found = found.into_iter().map(|((place, name), count)| Found { place, name, count }).collect();
    Ok(verified)
}

type Places = BTreeMap<(&'static str, String), u64>;

fn search_contents(
    store: &Store,
    forgotten: &Forgotten,
    verified: &mut Verified,
    found: &mut Places,
) -> Result<()> {
    for archived in archived_files(store)? {
        let file = &archived.file;
        verified.contents.files += 1;
        for version in store.versions(file.id)? {
            verified.contents.versions += 1;
            verified.contents.bytes += version.size;
            let bytes = store.bytes(file.id, version.version);
            if let Ok(content) = decoder(bytes, file.encoding) {
                // What is damaged is for `doctor` to report.
                let _ = each_unit(content, file.framing, &mut |_, _| verified.contents.lines += 1);
            }
            let bytes = store.bytes(file.id, version.version);
            if !forgotten_parts(bytes, forgotten, shape_of(file))?.is_empty() {
                *found.entry(("content", file.id.to_string())).or_default() += 1;
            }
        }
    }
    Ok(())
}

/// Every term of the index belongs to a passage that is there: what only forgotten passages had is not in it.
fn search_index(store: &Store, verified: &mut Verified, found: &mut Places) -> Result<()> {
    let check = store.check_index()?;
    verified.index = Index {
        segments: check.segments,
        blocks: check.blocks,
        terms: check.terms,
        passages: check.passages,
    };
    for (name, count) in [("passages", check.dead_passages), ("terms", check.dead_terms)] {
        if count > 0 && verified.hashes > 0 {
            found.insert(("index", name.to_owned()), count);
        }
    }
    Ok(())
}

/// Searches the raw bytes of every file in the archive's directory: database, log, and what an interrupted run left.
fn search_raw(
    data_dir: &Path,
    verified: &mut Verified,
    search: &mut dyn FnMut(&'static str, &str, &[u8]),
) -> Result<()> {
    for entry in std::fs::read_dir(data_dir)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with("-wal") {
            verified.raw.log_bytes += entry.metadata()?.len();
        }
        verified.raw.files += 1;
        let mut file = File::open(entry.path())?;
        let mut piece = Vec::new();
        loop {
            let before = piece.len();
            let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
            verified.raw.bytes += read as u64;
            search("file", &name, &piece);
            if read < PIECE {
                break;
            }
            let rest = (before + read).saturating_sub(OVERLAP);
            piece.drain(..rest);
        }
    }
    Ok(())
}

/// Those of the suspected parts that rows have which are made of nothing but what stays: joined paths, and facts as annals
/// writes them.
fn derived_parts(store: &Store, mut suspected: HashSet<Vec<u8>>) -> Result<HashSet<Vec<u8>>> {
    let mut derived = HashSet::new();
    let mut scratch = Store::in_memory()?;
    for ArchivedFile { source, file, .. } in archived_files(store)? {
        if suspected.is_empty() {
            break;
        }
        let versions = store.versions(file.id)?;
        let version = versions.iter().find(|version| version.version == file.rows_version);
        let (Some(source), Some(version)) = (by_name(&source), version) else { continue };
        let mut parts = Forgotten::default();
        suspected.iter().for_each(|part| parts.add_text(parts.text(part)));
        // Its rows are thrown away with the writer.
        let mut writer = scratch.writer(version.captured_at)?;
        let instance = writer.adopt_file(source.manifest().source, &file)?;
        let target = RebuildTarget { instance, file: &file, version };
        read_version(store, source, &mut writer, &target, &mut |_| {})?;
        writer.flush()?;
        writer.each_value(&mut |_, bytes| {
            parts.each_text(bytes, &mut |range| {
                derived.insert(bytes[range].to_vec());
            });
        })?;
        suspected.retain(|part| !derived.contains(part));
    }
    Ok(derived)
}

/// Those of the suspected parts that lines have which stay.
fn kept_parts(
    store: &Store,
    forgotten: &Forgotten,
    suspected: &HashSet<Vec<u8>>,
) -> Result<HashSet<Vec<u8>>> {
    let mut kept = HashSet::new();
    if suspected.is_empty() {
        return Ok(kept);
    }
    let mut parts = Forgotten::default();
    suspected.iter().for_each(|part| parts.add_text(parts.text(part)));
    for archived in archived_files(store)? {
        for version in store.versions(archived.file.id)? {
            let bytes = store.bytes(archived.file.id, version.version);
            let Ok(content) = decoder(bytes, archived.file.encoding) else { continue };
            each_unit(content, archived.file.framing, &mut |_, unit| {
                if !forgotten.is_forgotten(&archived.file.logical_path, unit) {
                    parts.each_text(unit, &mut |range| {
                        kept.insert(unit[range].to_vec());
                    });
                }
            })?;
        }
    }
    Ok(kept)
}
