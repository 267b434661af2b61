//! Heals damaged versions: from the client's file, or from another version that has the same bytes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use super::home::walk::stat_of;
use super::ingest::capture::open;
use super::names::path_of;
use super::options::{Environment, Nobody, SyncOptions};
use super::rebuild::{compare_rows, rebuild_intact};
use super::sync::sync;
use annals_core::{Result, Scope};
use annals_sources::{REPOSITORIES, by_name, of_programs, registry};
use annals_store::{DamagedVersion, ExpectedSegment, Packer, Segment, Store, salvage};

/// What a damaged version can be healed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealSource {
    ClientFile,
    /// Found out by reading the database.
    ClientDatabase,
    OtherVersion,
}

#[derive(Debug)]
pub struct RepairedVersion {
    pub path: String,
    pub version: i64,
    /// Where it is damaged, and how.
    pub damages: Vec<String>,
    pub source: Option<HealSource>,
    pub is_healed: bool,
}

#[derive(Debug, Default)]
pub struct RepairReport {
    /// What SQLite finds wrong with the archive file.
    pub broken: Vec<String>,
    /// Rows that are not those of the archived files.
    pub rows: Vec<String>,
    /// Where the damaged file is now, if another took its place.
    pub damaged_file: Option<PathBuf>,
    pub versions: Vec<RepairedVersion>,
}

/// Heals what can be healed, or only finds out what can. The caller holds the lock.
pub fn repair(environment: &Environment<'_>, dry_run: bool) -> Result<RepairReport> {
    let mut report = RepairReport { broken: broken_tables(environment), ..RepairReport::default() };
    if !report.broken.is_empty() {
        if dry_run {
            return Ok(report);
        }
        report.damaged_file = Some(salvage(environment.data_dir)?.damaged_file);
        rebuild_intact(environment.data_dir, (environment.now)(), &mut |_| {})?;
    }
    let store = Store::open(environment.data_dir)?;
    let damaged = store.damaged_versions()?;
    let mut sources = Vec::new();
    for version in &damaged {
        sources.push(find_source(&store, environment, version)?);
    }
    if !dry_run && !damaged.is_empty() {
        recapture(&store, environment, &damaged)?;
        heal_from_versions(environment, &damaged)?;
        store.reconcile_sizes()?;
    }
    if report.damaged_file.is_some() {
        // Files that are lost with their names are captured again.
        sync(&everything(), environment, &mut Nobody)?;
    }
    report.rows = compare_rows(environment.data_dir, (environment.now)(), &mut |_| {})?;
    if !dry_run && !report.rows.is_empty() {
        rebuild_intact(environment.data_dir, (environment.now)(), &mut |_| {})?;
    }
    let left = if dry_run { Vec::new() } else { store.damaged_versions()? };
    let versions = damaged.into_iter().zip(sources).map(|(version, source)| {
        let is_left = left.iter().any(|left| (left.file, left.version) == (version.file, version.version));
        RepairedVersion {
            damages: version
                .damages
                .iter()
                .map(|damage| format!("at byte {}: {}", damage.offset, damage.what))
                .collect(),
            path: version.path,
            version: version.version,
            source,
            is_healed: !dry_run && !is_left,
        }
    });
    report.versions = versions.collect();
    Ok(report)
}

/// What is wrong with the tables themselves.
fn broken_tables(environment: &Environment<'_>) -> Vec<String> {
    let path = environment.data_dir.join("annals.db");
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0) {
        return vec!["the file is empty".to_owned()];
    }
    let checked = Store::open(environment.data_dir).and_then(|store| store.check_integrity());
    checked.unwrap_or_else(|error| vec![error.to_string()])
}

fn everything() -> SyncOptions {
    let outside = of_programs().manifest().source;
    let sources = registry().iter().copied().filter(|source| source.manifest().source != outside);
    SyncOptions { sources: sources.collect(), verify: true, ..SyncOptions::default() }
}

/// Captures the damaged files of homes again.
fn recapture(store: &Store, environment: &Environment<'_>, damaged: &[DamagedVersion]) -> Result<()> {
    let mut sources = Vec::new();
    for instance in store.scoped(Scope::Owner).instances()? {
        if damaged.iter().any(|version| version.instance == instance.id) {
            sources.extend(by_name(&instance.source));
        }
    }
    sources.dedup_by_key(|source| source.manifest().source);
    let paths = damaged.iter().map(|version| (version.instance, version.path.clone())).collect();
    let options = SyncOptions {
        sources,
        verify: true,
        repositories: damaged.iter().any(|version| version.path.starts_with(REPOSITORIES)),
        gaps_only: true,
        damaged: Some(paths),
        ..SyncOptions::default()
    };
    sync(&options, environment, &mut Nobody)?;
    Ok(())
}

fn heal_from_versions(environment: &Environment<'_>, damaged: &[DamagedVersion]) -> Result<()> {
    let mut store = Store::open(environment.data_dir)?;
    let reader = Store::open(environment.data_dir)?;
    let mut writer = store.writer((environment.now)())?;
    let mut packer = Packer::new()?;
    for version in damaged {
        for (expected, bytes) in missing_segments(&reader, environment, version)? {
            let Some(bytes) = bytes else { continue };
            let segment: Segment = packer.pack_one(expected.offset, &bytes, None)?;
            writer.heal_segment(version.file, version.version, &segment)?;
        }
    }
    Ok(writer.commit()?)
}

fn find_source(
    store: &Store,
    environment: &Environment<'_>,
    version: &DamagedVersion,
) -> Result<Option<HealSource>> {
    let file = client_file(store, environment, version)?;
    if version.is_newest && file.is_some_and(|file| has_version(store, version, file).unwrap_or(false)) {
        return Ok(Some(HealSource::ClientFile));
    }
    let segments = missing_segments(store, environment, version)?;
    if !segments.is_empty() && segments.iter().all(|(_, bytes)| bytes.is_some()) {
        return Ok(Some(HealSource::OtherVersion));
    }
    Ok(Some(HealSource::ClientDatabase).filter(|_| version.document && version.is_newest))
}

/// Whether the client's file still has all bytes of its newest version.
fn has_version(store: &Store, version: &DamagedVersion, mut file: File) -> Result<bool> {
    let metadata = file.metadata()?;
    let known = store.captured_file(version.instance, &version.path)?;
    if known.is_some_and(|known| known.stat == Some(stat_of(&metadata))) {
        return Ok(true);
    }
    for expected in store.expected_segments(version.file, version.version, version.size)? {
        if expected.hash.is_none() || read_segment(&mut file, &expected)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The damaged segments of a version, each with its bytes if the client's file or another version has them.
fn missing_segments(
    store: &Store,
    environment: &Environment<'_>,
    damaged: &DamagedVersion,
) -> Result<Vec<(ExpectedSegment, Option<Vec<u8>>)>> {
    let mut file = client_file(store, environment, damaged)?;
    let others: Vec<i64> =
        store.versions(damaged.file).unwrap_or_default().iter().map(|row| row.version).collect();
    let mut segments = Vec::new();
    for expected in store.expected_segments(damaged.file, damaged.version, damaged.size)? {
        let end = expected.offset + expected.length;
        let is_damaged = damaged.damages.iter().any(|damage| (expected.offset..end).contains(&damage.offset));
        if !is_damaged && expected.hash.is_some() {
            continue;
        }
        let mut bytes = match &mut file {
            Some(file) => read_segment(file, &expected).unwrap_or_default(),
            None => None,
        };
        for version in others.iter().filter(|version| **version != damaged.version) {
            if bytes.is_none() {
                let found = store.version_range(damaged.file, *version, expected.offset, expected.length);
                bytes = found.ok().flatten().filter(|bytes| has_hash(bytes, &expected));
            }
        }
        segments.push((expected, bytes));
    }
    Ok(segments)
}

/// The bytes of a file at a segment's place, if they have its hash.
fn read_segment(file: &mut File, expected: &ExpectedSegment) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(expected.offset))?;
    file.take(expected.length).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| has_hash(bytes, expected)))
}

fn has_hash(bytes: &[u8], expected: &ExpectedSegment) -> bool {
    Some(*blake3::hash(bytes).as_bytes()) == expected.hash
}

/// The file on disk, if it is one of this machine and still there.
fn client_file(
    store: &Store,
    environment: &Environment<'_>,
    version: &DamagedVersion,
) -> Result<Option<File>> {
    if version.document {
        return Ok(None);
    }
    let Some((machine, root)) = store.home_of(version.instance)? else { return Ok(None) };
    if machine != environment.machine {
        return Ok(None);
    }
    let path = match version.path.strip_prefix(REPOSITORIES).filter(|rest| rest.starts_with('/')) {
        Some(absolute) => path_of(absolute),
        None => PathBuf::from(root).join(path_of(&version.path)),
    };
    Ok(open(&path).ok())
}
