//! Takes files from another archive: blobs are there and verified, versions are merged, and our own readers derive the rows
//! in the transaction that writes the versions.

use std::collections::HashSet;
use std::io::Read;

use super::merge::{VersionChange, merge};
use crate::collect::ingest::content::CHUNK;
use crate::collect::ingest::forgotten::{Replacement, Shape, fill, forgotten_parts};
use crate::collect::ingest::parse::Parse;
use crate::collect::rebuild::{RebuildTarget, read_version_of};
use annals_core::{Encoding, Error, Forgotten, Framing, InstanceId, MemberId, Result, SourceStatus, Time};
use annals_sources::{FileContext, Source, by_name};
use annals_store::{
    CapturedFile, ContentHash, ExchangeFile, ExchangeVersion, IncomingFile, KnownFile, PackedBlob, Packer,
    RowsOwner, SEGMENT, Store, VersionRow, Writer,
};

/// Bytes of content that are read until sessions and index are written.
const FLUSH: u64 = 64 << 20;

/// What became of some files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReceivedFiles {
    pub new_files: u64,
    pub changed_files: u64,
    pub unchanged_files: u64,
    /// Forgotten here: they stay away.
    pub forgotten_files: u64,
    /// Files whose content cannot be read to its end, and why.
    pub damaged: Vec<(String, String)>,
}

impl ReceivedFiles {
    pub fn add(&mut self, other: ReceivedFiles) {
        self.new_files += other.new_files;
        self.changed_files += other.changed_files;
        self.unchanged_files += other.unchanged_files;
        self.forgotten_files += other.forgotten_files;
        self.damaged.extend(other.damaged);
    }
}

/// Receives for one holder. The caller holds the lock.
pub struct Receiver {
    store: Store,
    /// Sees what is committed: blobs that are about to be referred to are.
    committed: Store,
    forgotten: Forgotten,
    member: Option<MemberId>,
    now: Time,
}

/// A file that is about to be written.
struct Planned {
    file: ExchangeFile,
    known: Option<KnownFile>,
    change: Option<VersionChange>,
    digest: [u8; 32],
    /// All blobs that were sent for it.
    sent: HashSet<ContentHash>,
}

impl Receiver {
    pub fn new(store: Store, committed: Store, member: Option<MemberId>, now: Time) -> Result<Receiver> {
        let forgotten = store.forgotten()?;
        Ok(Receiver { store, committed, forgotten, member, now })
    }

    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The blobs of these files that have to be sent before they can be taken.
    pub fn missing(
        &self,
        instance: InstanceId,
        source: &str,
        files: &[ExchangeFile],
    ) -> Result<Vec<ContentHash>> {
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for file in files {
            check(source, file)?;
            if self.stays_away(instance, file)? || self.is_received(instance, file)? {
                continue;
            }
            wanted.extend(file.hashes().filter(|hash| seen.insert(*hash)));
        }
        let held = self.store.held_blobs(self.member, &wanted)?;
        wanted.retain(|hash| !held.contains(hash));
        Ok(wanted)
    }

    /// Takes files whose blobs are all there, in one transaction.
    pub fn take(
        &mut self,
        instance: InstanceId,
        source: &str,
        files: &[ExchangeFile],
    ) -> Result<ReceivedFiles> {
        if let Some(hash) = self.missing(instance, source, files)?.first() {
            return Err(Error::bad_request(format!("blob {hash}: missing")));
        }
        let mut received = ReceivedFiles::default();
        let mut planned = Vec::new();
        let mut paths = HashSet::new();
        for file in files {
            if !paths.insert(file.path.as_str()) {
                return Err(Error::bad_request(format!("{:?} is there twice", file.path)));
            }
            match self.plan(instance, file)? {
                Some(plan) => planned.push(plan),
                None if self.stays_away(instance, file)? => received.forgotten_files += 1,
                None => received.unchanged_files += 1,
            }
        }
        if planned.is_empty() {
            return Ok(received);
        }
        // Files that have rows come before those that only have the same content.
        planned.sort_by_key(|plan| plan.file.owner != annals_store::OwnerName::This);
        let mut writer = self.store.writer(self.now)?;
        let mut rows = RowsReader { committed: &self.committed, source: by_name(source), since_flush: 0 };
        let mut is_changed = false;
        for plan in &planned {
            let change = plan.change;
            match (&plan.known, change) {
                (None, _) => received.new_files += 1,
                (Some(_), Some(VersionChange::Same) | None) => received.unchanged_files += 1,
                (Some(_), Some(_)) => received.changed_files += 1,
            }
            if let (Some(known), Some(VersionChange::Same)) = (&plan.known, change) {
                writer.set_received(known.captured.id, plan.digest)?;
            } else {
                is_changed = true;
                let damage = rows.write(&mut writer, instance, plan)?;
                received.damaged.extend(damage.map(|cause| (plan.file.path.clone(), cause)));
            }
            writer.unstage(self.member, &plan.sent)?;
        }
        if is_changed {
            writer.set_time(self.now);
            writer.resolve()?;
            writer.mark_sessions(instance, &[], self.now)?;
            let status = match writer.has_sessions_or_transcripts(instance)? {
                (true, _) => (SourceStatus::Available, ""),
                (false, true) => (SourceStatus::Unsupported, "no line of its transcripts can be read"),
                (false, false) => (SourceStatus::Empty, "no sessions in it"),
            };
            writer.set_instance_status(instance, status.0, status.1, self.now)?;
        }
        writer.touch_home(instance, self.now)?;
        writer.commit()?;
        Ok(received)
    }

    /// Whether the file was forgotten here as a whole.
    fn stays_away(&self, instance: InstanceId, file: &ExchangeFile) -> Result<bool> {
        let name = self.forgotten.file_name(&file.path);
        Ok(self.committed.captured_file(instance, &name)?.is_some()
            && self.committed.captured_file(instance, &file.path)?.is_none())
    }

    fn is_received(&self, instance: InstanceId, file: &ExchangeFile) -> Result<bool> {
        let before = self.committed.received_digest(instance, &file.path)?;
        Ok(before.is_some_and(|before| file.digest().is_ok_and(|digest| before == digest)))
    }

    /// What to do with a file; nothing if it is known or forgotten.
    fn plan(&mut self, instance: InstanceId, file: &ExchangeFile) -> Result<Option<Planned>> {
        if self.stays_away(instance, file)? || self.is_received(instance, file)? {
            return Ok(None);
        }
        let known = self.committed.known_file(instance, &file.path)?;
        let (digest, sent) = (file.digest()?, file.hashes().collect());
        let mut theirs = file.clone();
        for version in &mut theirs.versions {
            self.blank(version, file)?;
        }
        let Some(known) = known else {
            return Ok(Some(Planned { file: theirs, known: None, change: None, digest, sent }));
        };
        let merged = merge(&known.file, &theirs, &self.committed)?;
        let change = Some(merged.change);
        Ok(Some(Planned { file: merged.file, known: Some(known), change, digest, sent }))
    }

    /// Blanks what was forgotten here.
    fn blank(&mut self, version: &mut ExchangeVersion, file: &ExchangeFile) -> Result<()> {
        if self.forgotten.is_empty() {
            return Ok(());
        }
        let encoding = if file.encoding == "zstd" { Encoding::Zstd } else { Encoding::Plain };
        let framing = match file.framing.as_str() {
            "lines" => Framing::Lines,
            "sequence" => Framing::Sequence,
            _ => Framing::Whole,
        };
        let shape = Shape { path: &file.logical_path, framing, encoding };
        let before = version.clone();
        let replacement = forgotten_parts(self.committed.read_blobs(&before, 0), &self.forgotten, shape)?;
        if replacement.is_empty() {
            return Ok(());
        }
        let mut packer = Packer::new()?;
        for (number, hash) in version.segments.iter_mut().enumerate() {
            let start = (number * SEGMENT) as u64;
            let mut bytes = self.committed.blob_bytes(hash)?;
            match &replacement {
                Replacement::Blanks(blanks) => fill(&mut bytes, start, blanks),
                Replacement::Whole(whole) => {
                    let end = (start as usize + bytes.len()).min(whole.len());
                    bytes = whole.get(start as usize..end).unwrap_or_default().to_vec();
                }
            }
            let packed = PackedBlob::of(&packer.pack_one(start, &bytes, None)?);
            if packed.hash != *hash {
                *hash = packed.hash;
                self.store.stage_blobs(self.member, &[packed], self.now)?;
            }
        }
        Ok(())
    }
}

/// Whether it can be a file of this source.
fn check(source: &str, file: &ExchangeFile) -> Result<()> {
    file.check()?;
    let logical = by_name(source).map(|source| source.logical_path(&file.path));
    if file.logical_path != file.path && logical.is_some_and(|logical| logical != file.logical_path) {
        return Err(Error::bad_request(format!("{:?}: its logical path is another file's", file.path)));
    }
    Ok(())
}

/// Writes files and reads their rows.
struct RowsReader<'s> {
    committed: &'s Store,
    source: Option<&'static dyn Source>,
    since_flush: u64,
}

impl RowsReader<'_> {
    fn write(
        &mut self,
        writer: &mut Writer<'_>,
        instance: InstanceId,
        plan: &Planned,
    ) -> Result<Option<String>> {
        let file = &plan.file;
        let from = match plan.change {
            None | Some(VersionChange::Interleaved) => 0,
            Some(VersionChange::Grown { version }) => version,
            Some(VersionChange::Versions { from } | VersionChange::Metadata { from }) => from,
            Some(VersionChange::Same) => i64::MAX,
        };
        let known = plan.known.as_ref();
        let captured = writer.put_file(&IncomingFile {
            instance,
            known: known.map(|known| known.captured.id),
            file,
            from,
            digest: plan.digest,
            reader_version: self.source.map_or(0, |source| source.manifest().reader_version),
        })?;
        let damage = self.read_rows(writer, instance, plan, &captured, from)?;
        if let Some(gone_at) = file.gone_at.map(Time::from_micros) {
            if captured.mutable && known.is_some_and(|known| !known.captured.gone) {
                writer.end_records(captured.id, gone_at)?;
            }
            writer.mark_sessions(instance, &[captured.id], gone_at)?;
        }
        if self.since_flush > FLUSH {
            self.since_flush = 0;
            writer.flush()?;
        }
        Ok(damage)
    }

    fn read_rows(
        &mut self,
        writer: &mut Writer<'_>,
        instance: InstanceId,
        plan: &Planned,
        captured: &CapturedFile,
        from: i64,
    ) -> Result<Option<String>> {
        let Some(source) = self.source else { return Ok(None) };
        let known = plan.known.as_ref().map(|known| &known.captured);
        let had_rows = known.is_some_and(|known| known.owner == RowsOwner::This);
        if captured.owner != RowsOwner::This {
            if had_rows {
                writer.drop_rows(captured.id)?;
            }
            return Ok(None);
        }
        let first = match (known, plan.change) {
            (None, _) | (Some(_), None) => 0,
            (Some(known), _) if !had_rows => {
                writer.discard_rows(known.id)?;
                0
            }
            (Some(known), Some(VersionChange::Interleaved)) => {
                writer.discard_rows(known.id)?;
                0
            }
            (Some(known), Some(VersionChange::Grown { version })) => {
                let goes_on = known.rows_version == version
                    && captured.rows_version == version
                    && captured.framing == Framing::Lines
                    && captured.encoding == Encoding::Plain
                    && known.parsed > 0;
                if goes_on {
                    return self.go_on(writer, instance, source, plan, known);
                }
                writer.drop_rows(known.id)?;
                version
            }
            (Some(known), Some(VersionChange::Versions { from } | VersionChange::Metadata { from }))
                if known.rows_version != captured.rows_version || known.rows_version >= from =>
            {
                if matches!(plan.change, Some(VersionChange::Metadata { .. }))
                    && known.rows_version == captured.rows_version
                {
                    return Ok(None);
                }
                writer.drop_rows(known.id)?;
                from.min(captured.rows_version)
            }
            // Rows stay those of an earlier version.
            (Some(_), Some(VersionChange::Versions { .. })) => from,
            (Some(_), Some(VersionChange::Metadata { .. } | VersionChange::Same)) => return Ok(None),
        };
        let mut damage = None;
        for version in plan.file.versions.iter().filter(|version| version.version >= first) {
            let row = row_of(version);
            let target = RebuildTarget { instance, file: captured, version: &row };
            let bytes = self.committed.read_blobs(version, 0);
            let (read, found) = read_version_of(bytes, source, writer, &target, &mut |_| {})?;
            self.since_flush += read;
            damage = damage.or(found);
            if self.since_flush > FLUSH {
                self.since_flush = 0;
                writer.flush()?;
            }
        }
        Ok(damage)
    }

    /// The reader continues where it stopped.
    fn go_on(
        &mut self,
        writer: &mut Writer<'_>,
        instance: InstanceId,
        source: &'static dyn Source,
        plan: &Planned,
        known: &CapturedFile,
    ) -> Result<Option<String>> {
        let Some(version) = plan.file.versions.last() else { return Ok(None) };
        let parsed = known.parsed;
        let mut before = [b'\n'];
        self.committed.read_blobs(version, parsed - 1).read_exact(&mut before)?;
        let saved = self.committed.reader_state(known.id)?;
        let modified = version.modified.map(Time::from_micros);
        let context = FileContext { path: known.path.clone(), modified };
        let reader =
            source.reader(&known.reader, &context, Some(saved.as_str()).filter(|saved| !saved.is_empty()));
        let mut parse = Parse::new(source, reader, known.framing, parsed, before != [b'\n']);
        let mut bytes = self.committed.read_blobs(version, parsed);
        let mut buffer = Vec::new();
        writer.set_time(Time::from_micros(version.captured_at));
        loop {
            buffer.clear();
            bytes.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)?;
            parse.feed(&buffer);
            let is_last = buffer.len() < CHUNK;
            if is_last {
                parse.finish();
            }
            let reader_version = source.manifest().reader_version;
            writer.apply_rows(instance, known.id, version.version, parse.take(), reader_version)?;
            self.since_flush += buffer.len() as u64;
            if self.since_flush > FLUSH {
                self.since_flush = 0;
                writer.flush()?;
            }
            if is_last {
                return Ok(None);
            }
        }
    }
}

fn row_of(version: &ExchangeVersion) -> VersionRow {
    VersionRow {
        version: version.version,
        size: version.size,
        modified: version.modified.map(Time::from_micros),
        captured_at: Time::from_micros(version.captured_at),
        gone_at: version.gone_at.map(Time::from_micros),
    }
}
