//! Rebuilds all rows from the archived bytes, with the same readers. Until it is complete, the old rows stay.

use std::cell::RefCell;
use std::io::{self, Read};
use std::path::Path;

use super::ingest::content::read_content;
use super::ingest::parse::Parse;
use annals_core::{FileId, InstanceId, Item, Result, Scope, Time};
use annals_sources::{FileContext, by_name};
use annals_store::{CapturedFile, RowsOwner, Store, VersionRow, Writer, salvage};

/// Bytes of content read until sessions and index are written.
const FLUSH: u64 = 64 << 20;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    pub files: u64,
    pub bytes: u64,
    /// Files that could not be read to their end, and why.
    pub damaged: Vec<(String, String)>,
}

/// Rebuilds in one transaction: readers see the old rows until it ends, and still do if it is cut off. The caller holds
/// the lock. If the tables of the archive are damaged, they are written again first.
pub fn rebuild(data_dir: &Path, now: Time, progress: &mut dyn FnMut(u64)) -> Result<Rebuilt> {
    if Store::open(data_dir)?.check_integrity().is_ok_and(|broken| broken.is_empty()) {
        rebuild_intact(data_dir, now, progress)
    } else {
        salvage(data_dir)?;
        rebuild_intact(data_dir, now, progress)
    }
}

/// The same for an archive that SQLite finds intact.
pub fn rebuild_intact(data_dir: &Path, now: Time, progress: &mut dyn FnMut(u64)) -> Result<Rebuilt> {
    let mut store = Store::open(data_dir)?;
    let source_of_bytes = Store::open(data_dir)?;
    let mut writer = store.writer(now)?;
    let done = rebuild_rows(&mut writer, &source_of_bytes, now, progress)?;
    writer.commit()?;
    store.checkpoint()?;
    Ok(done)
}

/// Compares all rows with those of a rebuild, which is undone. Returns what differs. The caller holds the lock.
pub fn compare_rows(data_dir: &Path, now: Time, progress: &mut dyn FnMut(u64)) -> Result<Vec<String>> {
    let mut store = Store::open(data_dir)?;
    let source_of_bytes = Store::open(data_dir)?;
    let mut writer = store.writer(now)?;
    let before = writer.digest_rows()?;
    rebuild_rows(&mut writer, &source_of_bytes, now, progress)?;
    writer.flush()?;
    let after = writer.digest_rows()?;
    drop(writer);
    store.checkpoint()?;
    let mut differing: Vec<String> = Vec::new();
    for (key, digest) in &before {
        if after.get(key) != Some(digest) {
            differing.push(format!("{}: {} rows differ from its content", key.1, key.0));
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(key)) {
        differing.push(format!("{}: {} rows are missing", key.1, key.0));
    }
    Ok(differing)
}

fn rebuild_rows(
    writer: &mut Writer<'_>,
    source_of_bytes: &Store,
    now: Time,
    progress: &mut dyn FnMut(u64),
) -> Result<Rebuilt> {
    let mut done = Rebuilt::default();
    writer.forget_everything()?;
    let mut since_flush = 0;
    for instance in source_of_bytes.scoped(Scope::Owner).instances()? {
        let Some(source) = by_name(&instance.source) else { continue };
        let files = source_of_bytes.captured_files(instance.id)?;
        for file in &files {
            for version in source_of_bytes.versions(file.id)? {
                let target = RebuildTarget { instance: instance.id, file, version: &version };
                let (bytes, damage) = read_version(source_of_bytes, source, writer, &target, progress)?;
                done.damaged.extend(damage.map(|cause| (file.path.clone(), cause)));
                done.bytes += bytes;
                since_flush += bytes;
                if since_flush > FLUSH {
                    since_flush = 0;
                    writer.flush()?;
                }
            }
            done.files += 1;
        }
        writer.resolve()?;
        let gone: Vec<FileId> = files.iter().filter(|file| file.gone).map(|file| file.id).collect();
        writer.mark_sessions(instance.id, &gone, now)?;
    }
    writer.finish_rebuild()?;
    Ok(done)
}

/// Notes why bytes could not be read: what is missing at the end of a damaged file must not go unnoticed.
struct Noted<'a, R> {
    bytes: R,
    failure: &'a RefCell<Option<String>>,
}

impl<R: Read> Read for Noted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into).inspect_err(|error| {
            self.failure.replace(Some(error.to_string()));
        })
    }
}

pub(super) struct RebuildTarget<'a> {
    pub(super) instance: InstanceId,
    pub(super) file: &'a CapturedFile,
    pub(super) version: &'a VersionRow,
}

/// Reads all rows of the version that rows point into; of earlier versions only records, which survive rewrites.
pub(super) fn read_version(
    store: &Store,
    source: &'static dyn annals_sources::Source,
    writer: &mut Writer<'_>,
    target: &RebuildTarget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Option<String>)> {
    let (file, version) = (target.file, target.version);
    if file.owner != RowsOwner::This {
        return Ok((0, None));
    }
    read_version_of(store.bytes(file.id, version.version), source, writer, target, progress)
}

/// The same for bytes that may not be committed yet.
pub(super) fn read_version_of(
    bytes: impl Read,
    source: &'static dyn annals_sources::Source,
    writer: &mut Writer<'_>,
    target: &RebuildTarget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Option<String>)> {
    let (file, version) = (target.file, target.version);
    writer.set_time(version.captured_at);
    let context = FileContext { path: file.path.clone(), modified: version.modified };
    let reader = source.reader(&file.reader, &context, None);
    let parse = Parse::new(source, reader, file.framing, 0, false);
    let failure = RefCell::new(None);
    let stored = Noted { bytes, failure: &failure };
    let (mut total, mut buffer) = (0, Vec::new());
    read_content(parse, stored, file.encoding, version.size, &mut buffer, &mut |chunk| {
        total += chunk.bytes;
        progress(chunk.bytes);
        let (instance, reader_version) = (target.instance, source.manifest().reader_version);
        if version.version == file.rows_version {
            writer.apply_rows(instance, file.id, version.version, chunk.rows, reader_version)?;
        } else {
            let mut items = chunk.rows.items;
            items.retain(|item| matches!(item, Item::Document(_)));
            writer.apply_items(instance, file.id, version.version, items, Vec::new())?;
        }
        Ok(())
    })?;
    if file.mutable {
        writer.end_unseen_records(file.id, version.version, version.captured_at)?;
        if let Some(gone_at) = version.gone_at {
            writer.end_records(file.id, gone_at)?;
        }
    }
    Ok((total, failure.take()))
}
