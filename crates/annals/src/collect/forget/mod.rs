//! Forgets: what is planned is recorded first, then all answers lose it in one transaction, then its bytes are removed.

pub mod account;
mod encodings;
pub mod plan;
pub mod secret;
pub mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use super::ingest::forgotten::{Replacement, Shape, fill, forgotten_parts, whole_file};
use super::rebuild::{RebuildTarget, read_version_of};
use account::Account;
use annals_core::{Error, FORGOTTEN_FILES, FileId, Forgotten, InstanceId, Result, Scope, Time};
use annals_sources::by_name;
use annals_store::{
    CapturedFile, ForgettingState, NewForgetting, Packer, RowsOwner, SEGMENT, Store, VersionRow, Writer,
};
use plan::ForgetPlan;

/// Bytes of content read until sessions and index are written.
const FLUSH: u64 = 64 << 20;

/// How a forgetting ended.
#[derive(Debug)]
pub struct Forgot {
    pub id: i64,
    /// False while another process reads the archive: the next run removes the last copy of the bytes.
    pub is_scrubbed: bool,
}

/// A file of the archive, and the source that reads it.
pub struct ArchivedFile {
    pub instance: InstanceId,
    pub source: String,
    pub file: CapturedFile,
}

/// Every file of the archive.
pub fn archived_files(store: &Store) -> Result<Vec<ArchivedFile>> {
    let mut files = Vec::new();
    for instance in store.scoped(Scope::Owner).instances()? {
        let source = &instance.source;
        files.extend(store.captured_files(instance.id)?.into_iter().map(|file| ArchivedFile {
            instance: instance.id,
            source: source.clone(),
            file,
        }));
    }
    Ok(files)
}

/// How the bytes of a version are looked at, under the name that the client has for the file.
pub fn shape_of(file: &CapturedFile) -> Shape<'_> {
    Shape { path: &file.logical_path, framing: file.framing, encoding: file.encoding }
}

/// Does what was planned. The caller holds the lock. In the trash the bytes stay until `expires_at`.
pub fn forget(data_dir: &Path, plan: &ForgetPlan, expires_at: Option<Time>, now: Time) -> Result<Forgot> {
    let mut store = Store::open(data_dir)?;
    let files: Vec<FileId> = plan.whole.iter().copied().collect();
    let account = serde_json::to_string(&plan.account_for(expires_at))?;
    let mut writer = store.writer(now)?;
    let id = writer.begin_forgetting(&NewForgetting {
        at: now,
        reason: &plan.reason,
        expires_at,
        account: &account,
        key: plan.key,
        lines: &plan.lines,
        texts: &plan.texts,
        files: &files,
    })?;
    writer.commit()?;
    drop(store);
    apply(data_dir, id, Some(&plan.affected), expires_at.is_some(), now)?;
    let is_scrubbed = expires_at.is_some() || scrub(data_dir, now)?;
    Ok(Forgot { id, is_scrubbed })
}

/// Finishes what an interrupted run began, and removes what was long enough in the trash. The caller holds the lock.
pub fn finish(data_dir: &Path, now: Time) -> Result<bool> {
    let store = Store::open(data_dir)?;
    let rows = store.forgettings()?;
    drop(store);
    for row in rows {
        if row.state == ForgettingState::Begun {
            apply(data_dir, row.id, None, row.expires_at.is_some(), now)?;
        }
        if row.expires_at.is_some_and(|expires_at| expires_at <= now) {
            empty_one(data_dir, row.id, &row.account, now)?;
        }
    }
    scrub(data_dir, now)
}

/// Removes the bytes of one entry of the trash, or of all, now.
pub fn empty_trash(data_dir: &Path, only: Option<i64>, now: Time) -> Result<u64> {
    let store = Store::open(data_dir)?;
    let rows = store.forgettings()?;
    drop(store);
    let mut count = 0;
    for row in rows.iter().filter(|row| row.expires_at.is_some() && only.is_none_or(|id| id == row.id)) {
        empty_one(data_dir, row.id, &row.account, now)?;
        count += 1;
    }
    scrub(data_dir, now)?;
    Ok(count)
}

fn empty_one(data_dir: &Path, id: i64, account: &str, now: Time) -> Result<()> {
    let mut account: Account = serde_json::from_str(account).unwrap_or_default();
    account.titles.clear();
    let mut store = Store::open(data_dir)?;
    let mut writer = store.writer(now)?;
    writer.empty_trash(id, &serde_json::to_string(&account)?)?;
    writer.remove_orphaned_arrangements()?;
    writer.remove_unreferenced()?;
    Ok(writer.commit()?)
}

/// Brings one entry of the trash back. The caller holds the lock.
pub fn take_from_trash(data_dir: &Path, id: i64, now: Time) -> Result<()> {
    let mut store = Store::open(data_dir)?;
    let before = Store::open(data_dir)?;
    let rows = before.forgettings()?;
    let Some(row) = rows.iter().find(|row| row.id == id && row.expires_at.is_some()) else {
        return Err(Error::new(format!("no entry {id} in the trash")).hint("annals trash"));
    };
    if row.state == ForgettingState::Begun {
        return Err(Error::new("this entry is not complete").hint("annals sync"));
    }
    // Something else may have been forgotten in the same files.
    let forgotten = before.forgotten_without(id)?;
    let run = store.start_run("trash", now)?;
    let mut writer = store.writer(now)?;
    let mut work = RowsWork::default();
    for file in writer.take_from_trash(id)? {
        let Some(mut captured) = before.captured_file_of(file)? else { continue };
        if let Some(path) = writer.path_of(file)?.filter(|path| *path != captured.path) {
            let Some(source) = work.source_of(&before, file)? else { continue };
            captured.logical_path = source.logical_path(&path);
            captured.path = path;
        }
        let mut versions = Vec::new();
        for version in before.versions(file)? {
            let bytes = writer.version_bytes(file, version.version)?;
            let replacement = forgotten_parts(bytes.as_slice(), &forgotten, shape_of(&captured))?;
            replace_bytes(&mut writer, &captured, &version, &replacement, &bytes, None)?;
            let mut now_there = Vec::new();
            replacement.over(bytes.as_slice()).read_to_end(&mut now_there)?;
            versions.push((version, now_there));
        }
        writer.discard_rows(file)?;
        for (version, bytes) in &versions {
            work.read(&before, &mut writer, &captured, version, bytes.as_slice())?;
        }
    }
    work.finish(&before, &mut writer, now)?;
    writer.commit()?;
    store.finish_run(run, "", now)?;
    Ok(store.checkpoint()?)
}

/// Takes what was recorded out of all answers, in one transaction. `affected` is known if the plan was just made.
fn apply(
    data_dir: &Path,
    id: i64,
    affected: Option<&BTreeSet<FileId>>,
    keeps: bool,
    now: Time,
) -> Result<()> {
    let mut store = Store::open(data_dir)?;
    let before = Store::open(data_dir)?;
    let forgotten = before.forgotten()?;
    let whole: BTreeSet<FileId> = before.forgotten_files(id)?.into_iter().collect();
    let run = store.start_run("forget", now)?;
    let mut writer = store.writer(now)?;
    let mut work = RowsWork::default();
    let trash = keeps.then_some(id);
    for archived in archived_files(&before)? {
        let file = &archived.file;
        if affected.is_some_and(|affected| !affected.contains(&file.id) && !whole.contains(&file.id)) {
            continue;
        }
        let mut replaced = Vec::new();
        for version in before.versions(file.id)? {
            let replacement = replacement_of(&before, file, &version, &forgotten, &whole)?;
            replaced.push((version, replacement));
        }
        if replaced.iter().all(|(_, replacement)| replacement.is_empty()) && !whole.contains(&file.id) {
            continue;
        }
        for (version, replacement) in &replaced {
            replace_stored(&mut writer, &before, file, version, replacement, trash)?;
        }
        writer.discard_rows(file.id)?;
        if whole.contains(&file.id) && !file.path.starts_with(FORGOTTEN_FILES) {
            writer.hide_file(id, file.id, &forgotten.file_name(&file.path))?;
        }
        for (version, replacement) in &replaced {
            let bytes = replacement.over(before.bytes(file.id, version.version));
            work.read(&before, &mut writer, file, version, bytes)?;
        }
    }
    work.finish(&before, &mut writer, now)?;
    writer.remove_unreferenced()?;
    if !keeps {
        writer.remove_orphaned_arrangements()?;
    }
    let state = if keeps { ForgettingState::Done } else { ForgettingState::Applied };
    writer.set_forgetting_state(id, state)?;
    writer.commit()?;
    store.finish_run(run, "", now)?;
    Ok(store.checkpoint()?)
}

fn replacement_of(
    store: &Store,
    file: &CapturedFile,
    version: &VersionRow,
    forgotten: &Forgotten,
    whole: &BTreeSet<FileId>,
) -> Result<Replacement> {
    let bytes = store.bytes(file.id, version.version);
    Ok(match whole.contains(&file.id) {
        true => whole_file(bytes, version.size, shape_of(file))?,
        false => forgotten_parts(bytes, forgotten, shape_of(file))?,
    })
}

/// Removes the last traces from the database file. False if a reader is in the way of emptying the log: every run that
/// writes tries again when it ends.
fn scrub(data_dir: &Path, now: Time) -> Result<bool> {
    let mut store = Store::open(data_dir)?;
    let waiting: Vec<i64> = store
        .forgettings()?
        .into_iter()
        .filter(|row| row.state == ForgettingState::Applied)
        .map(|row| row.id)
        .collect();
    if waiting.is_empty() {
        return Ok(true);
    }
    store.scrub()?;
    let mut writer = store.writer(now)?;
    for id in waiting {
        writer.set_forgetting_state(id, ForgettingState::Done)?;
    }
    writer.commit()?;
    Ok(store.empty_log()?)
}

/// Writes the segments of a version in which something was replaced.
fn replace_stored(
    writer: &mut Writer<'_>,
    store: &Store,
    file: &CapturedFile,
    version: &VersionRow,
    replacement: &Replacement,
    trash: Option<i64>,
) -> Result<()> {
    let mut packer = Packer::new()?;
    for (offset, length, _) in store.segment_hashes(file.id, version.version)? {
        let bytes = match replacement {
            Replacement::Blanks(blanks) => {
                let end = offset + length;
                if !blanks.iter().any(|blank| blank.range.start < end && blank.range.end > offset) {
                    continue;
                }
                let stored = store.version_range(file.id, version.version, offset, length)?;
                let mut bytes =
                    stored.ok_or_else(|| Error::new("content is missing").hint("annals repair"))?;
                fill(&mut bytes, offset, blanks);
                bytes
            }
            Replacement::Whole(whole) => {
                let range = offset as usize..(offset + length) as usize;
                whole.get(range).unwrap_or_default().to_vec()
            }
        };
        let segment = packer.pack_one(offset, &bytes, None)?;
        writer.replace_segment(file.id, version.version, &segment, trash)?;
    }
    Ok(())
}

/// The same for bytes that are in memory.
fn replace_bytes(
    writer: &mut Writer<'_>,
    file: &CapturedFile,
    version: &VersionRow,
    replacement: &Replacement,
    bytes: &[u8],
    trash: Option<i64>,
) -> Result<()> {
    if replacement.is_empty() {
        return Ok(());
    }
    let mut now_there = Vec::new();
    replacement.over(bytes).read_to_end(&mut now_there)?;
    let mut packer = Packer::new()?;
    for (number, piece) in now_there.chunks(SEGMENT).enumerate() {
        let segment = packer.pack_one((number * SEGMENT) as u64, piece, None)?;
        writer.replace_segment(file.id, version.version, &segment, trash)?;
    }
    Ok(())
}

/// Reads files again whose bytes changed.
#[derive(Default)]
struct RowsWork {
    sources: BTreeMap<FileId, (InstanceId, &'static dyn annals_sources::Source)>,
    since_flush: u64,
}

impl RowsWork {
    fn source_of(
        &mut self,
        store: &Store,
        file: FileId,
    ) -> Result<Option<&'static dyn annals_sources::Source>> {
        if self.sources.is_empty() {
            for archived in archived_files(store)? {
                if let Some(source) = by_name(&archived.source) {
                    self.sources.insert(archived.file.id, (archived.instance, source));
                }
            }
        }
        Ok(self.sources.get(&file).map(|(_, source)| *source))
    }

    fn read(
        &mut self,
        store: &Store,
        writer: &mut Writer<'_>,
        file: &CapturedFile,
        version: &VersionRow,
        bytes: impl Read,
    ) -> Result<()> {
        let Some(source) = self.source_of(store, file.id)? else { return Ok(()) };
        if file.owner != RowsOwner::This {
            return Ok(());
        }
        let Some((instance, _)) = self.sources.get(&file.id).copied() else { return Ok(()) };
        let target = RebuildTarget { instance, file, version };
        let (read, _) = read_version_of(bytes, source, writer, &target, &mut |_| {})?;
        self.since_flush += read;
        if self.since_flush > FLUSH {
            self.since_flush = 0;
            writer.flush()?;
        }
        Ok(())
    }

    fn finish(&self, store: &Store, writer: &mut Writer<'_>, now: Time) -> Result<()> {
        writer.set_time(now);
        writer.resolve()?;
        for instance in store.scoped(Scope::Owner).instances()? {
            let gone: Vec<FileId> = store
                .captured_files(instance.id)?
                .into_iter()
                .filter(|file| file.gone)
                .map(|file| file.id)
                .collect();
            writer.mark_sessions(instance.id, &gone, now)?;
        }
        Ok(writer.flush()?)
    }
}
