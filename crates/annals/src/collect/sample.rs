//! Compares the rows of some files with what their archived bytes give, without writing anything.

use std::time::{Duration, Instant};

use super::rebuild::{RebuildTarget, read_version};
use annals_core::{Result, Scope, Time};
use annals_sources::{Source, by_name};
use annals_store::{CapturedFile, RowsOwner, Store};

/// Larger files are left to a complete comparison.
const LARGEST: u64 = 16 << 20;
/// How long the comparison may take; a file that was started is finished.
const TIME: Duration = Duration::from_secs(3);

/// The result of a comparison.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SampledRows {
    /// Files that were compared.
    pub compared: usize,
    /// Files that have rows.
    pub files: usize,
    pub differing: Vec<String>,
}

/// Compares as many files as time allows, in the order of a hash with `seed`: other files each time.
pub fn compare_sample(store: &Store, seed: [u8; 32], now: Time) -> Result<SampledRows> {
    let started = Instant::now();
    let mut files: Vec<(&'static dyn Source, CapturedFile)> = Vec::new();
    for instance in store.scoped(Scope::Owner).instances()? {
        let Some(source) = by_name(&instance.source) else { continue };
        // The next sync rebuilds rows that an older version made.
        if store.needs_rebuild(&instance.source, source.manifest().reader_version)? {
            continue;
        }
        let captured = store.captured_files(instance.id)?.into_iter();
        files.extend(captured.filter(|file| file.owner == RowsOwner::This).map(|file| (source, file)));
    }
    files.sort_by_cached_key(|(_, file)| *blake3::keyed_hash(&seed, &file.id.0.to_le_bytes()).as_bytes());
    let mut scratch = Store::in_memory()?;
    let mut sampled = SampledRows { files: files.len(), ..SampledRows::default() };
    for (source, file) in files.iter().filter(|(_, file)| file.size <= LARGEST) {
        if started.elapsed() >= TIME {
            break;
        }
        if store.has_typed_prompts(file.id)? {
            continue;
        }
        sampled.compared += 1;
        sampled.differing.extend(compare_file(store, &mut scratch, *source, file, now)?);
    }
    Ok(sampled)
}

/// What differs in the rows of one file.
fn compare_file(
    store: &Store,
    scratch: &mut Store,
    source: &'static dyn Source,
    file: &CapturedFile,
    now: Time,
) -> Result<Vec<String>> {
    let versions = store.versions(file.id)?;
    let Some(version) = versions.iter().find(|version| version.version == file.rows_version) else {
        return Ok(vec![format!("{}: the version that its rows are of is missing", file.path)]);
    };
    // Its rows are thrown away with the writer.
    let mut writer = scratch.writer(now)?;
    let instance = writer.adopt_file(source.manifest().source, file)?;
    let target = RebuildTarget { instance, file, version };
    read_version(store, source, &mut writer, &target, &mut |_| {})?;
    let (stored, expected) = (store.digest_file(file.id)?, writer.digest_file(file.id)?);
    let tables: std::collections::BTreeSet<&str> = stored.keys().chain(expected.keys()).copied().collect();
    let differing = tables.into_iter().filter(|table| stored.get(table) != expected.get(table));
    Ok(differing.map(|table| format!("{}: {table} rows differ from its content", file.path)).collect())
}
