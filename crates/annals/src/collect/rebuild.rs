//! Rebuilds all rows from the archived bytes, with the same readers.

use std::io::Read;
use std::path::Path;

use super::ingest::capture::{CHUNK, bomb};
use super::ingest::parse::Parse;
use annals_core::{Encoding, Item, Result, Scope, Time};
use annals_sources::{FileContext, by_name};
use annals_store::{CapturedFile, Store, VersionRow, Writer};

/// Bytes of content read between two commits.
const COMMIT: u64 = 64 << 20;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilt {
    pub files: u64,
    pub bytes: u64,
}

/// The caller holds the lock. A rebuild that was cut off is done again by the next run that writes.
pub fn rebuild(home: &Path, now: Time, see: &mut dyn FnMut(u64)) -> Result<Rebuilt> {
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
                let target = Target { instance: instance.id, file, version: &version };
                let bytes = read_version(&source_of_bytes, source, &mut writer, &target, see)?;
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
        writer.resolve_summaries()?;
        let gone: Vec<i64> = files.iter().filter(|file| file.gone).map(|file| file.id).collect();
        writer.mark_sessions(instance.id, &gone, now)?;
    }
    writer.rebuilt()?;
    writer.commit()?;
    store.checkpoint()?;
    Ok(done)
}

struct Target<'a> {
    instance: i64,
    file: &'a CapturedFile,
    version: &'a VersionRow,
}

/// All rows of the version that rows belong to; of earlier versions only records, which outlive rewrites.
fn read_version(
    store: &Store,
    source: &'static dyn annals_sources::Source,
    writer: &mut Writer<'_>,
    target: &Target<'_>,
    see: &mut dyn FnMut(u64),
) -> Result<u64> {
    let (file, version) = (target.file, target.version);
    let current = version.version == file.rows_version;
    if file.twin_of.is_some() {
        return Ok(0);
    }
    writer.pretend(version.captured_at);
    let context = FileContext { path: file.path.clone(), modified: version.modified };
    let reader = source.reader(&file.reader, &context, None);
    let mut parse = Parse::new(source, reader, file.framing, 0, false);
    let stored = store.bytes(file.id, version.version);
    let mut content: Box<dyn Read + '_> = match file.encoding {
        Encoding::Plain => Box::new(stored),
        Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(stored)?),
    };
    let mut buffer = Vec::new();
    let mut total = 0;
    loop {
        buffer.clear();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut buffer);
        total += buffer.len() as u64;
        see(buffer.len() as u64);
        parse.feed(&buffer);
        let broken = match read {
            Ok(_) if file.encoding == Encoding::Zstd => bomb(version.size, total),
            Ok(_) => None,
            Err(error) => Some(format!("cannot be decompressed further: {error}")),
        };
        if let Some(reason) = &broken {
            parse.broken(reason);
        }
        let last = broken.is_some() || buffer.len() < CHUNK;
        if last {
            parse.finish();
        }
        let mut taken = parse.take();
        if current {
            let facts =
                taken.facts.into_iter().map(|facts| (facts.session, facts.rank, facts.facts)).collect();
            writer.apply_rows(target.instance, file.id, version.version, taken.items, facts)?;
            writer.apply_counts(file.id, &taken.counts, &taken.problems)?;
            let reader_version = source.manifest().reader_version;
            writer.apply_place(file.id, taken.parsed, taken.position, &taken.state, reader_version)?;
        } else {
            taken.items.retain(|item| matches!(item, Item::Document(_)));
            writer.apply_rows(target.instance, file.id, version.version, taken.items, Vec::new())?;
        }
        if last {
            if file.mutable {
                writer.end_unseen(file.id, version.version, version.captured_at)?;
            }
            if let Some(gone_at) = version.gone_at.filter(|_| file.mutable) {
                writer.end_records(file.id, gone_at)?;
            }
            return Ok(total);
        }
    }
}
