//! Rebuilds all rows from the archived bytes, with the same readers.

use std::path::Path;

use super::ingest::content::read_content;
use super::ingest::parse::Parse;
use annals_core::{Item, Result, Scope, Time};
use annals_sources::{FileContext, by_name};
use annals_store::{CapturedFile, RowsOwner, Store, VersionRow, Writer};

/// Bytes of content read between two commits.
const COMMIT: u64 = 64 << 20;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilt {
    pub files: u64,
    pub bytes: u64,
}

/// The caller holds the lock. The next run that writes repeats an interrupted rebuild.
pub fn rebuild(home: &Path, now: Time, progress: &mut dyn FnMut(u64)) -> Result<Rebuilt> {
    let mut store = Store::open(home)?;
    let source_of_bytes = Store::open(home)?;
    let mut done = Rebuilt::default();
    let mut writer = store.writer(now)?;
    writer.forget_everything()?;
    writer.commit()?;
    let mut writer = store.writer(now)?;
    let mut since_commit = 0;
    for instance in source_of_bytes.scoped(Scope::Owner).instances()? {
        let Some(source) = by_name(&instance.source) else { continue };
        let files = source_of_bytes.captured_files(instance.id)?;
        for file in &files {
            for version in source_of_bytes.versions(file.id)? {
                let target = RebuildTarget { instance: instance.id, file, version: &version };
                let bytes = read_version(&source_of_bytes, source, &mut writer, &target, progress)?;
                done.bytes += bytes;
                since_commit += bytes;
                if since_commit > COMMIT {
                    since_commit = 0;
                    writer.commit()?;
                    writer = store.writer(now)?;
                }
            }
            done.files += 1;
        }
        writer.resolve()?;
        let gone: Vec<i64> = files.iter().filter(|file| file.gone).map(|file| file.id).collect();
        writer.mark_sessions(instance.id, &gone, now)?;
    }
    writer.finish_rebuild()?;
    writer.commit()?;
    store.checkpoint()?;
    Ok(done)
}

struct RebuildTarget<'a> {
    instance: i64,
    file: &'a CapturedFile,
    version: &'a VersionRow,
}

/// Reads all rows of the version that rows point into; of earlier versions only records, which survive rewrites.
fn read_version(
    store: &Store,
    source: &'static dyn annals_sources::Source,
    writer: &mut Writer<'_>,
    target: &RebuildTarget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let (file, version) = (target.file, target.version);
    if file.owner != RowsOwner::This {
        return Ok(0);
    }
    writer.set_time(version.captured_at);
    let context = FileContext { path: file.path.clone(), modified: version.modified };
    let reader = source.reader(&file.reader, &context, None);
    let parse = Parse::new(source, reader, file.framing, 0, false);
    let stored = store.bytes(file.id, version.version);
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
    Ok(total)
}
