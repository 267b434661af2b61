//! Compares a home with the archive: what is new, changed, moved, compressed, or gone.

use std::collections::{HashMap, HashSet};

use super::walk::{Survey, WalkedFile};
use annals_core::{Encoding, FORGOTTEN_FILES, FileId, Forgotten, Framing, InstanceId, Time};
use annals_sources::Source;
use annals_store::{CapturedFile, RowsOwner};

/// A file to capture.
pub struct Job {
    pub instance: InstanceId,
    pub source: &'static dyn Source,
    pub found: WalkedFile,
    pub logical_path: String,
    pub known: Option<CapturedFile>,
    pub rows: RowsPlan,
    /// Another file with this logical path that has the rows now.
    pub sibling: Option<CapturedFile>,
    /// Whether the sibling is on disk as well. It may change at any time, so its rows are taken over at once.
    pub sibling_stays: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsPlan {
    /// Bytes are captured and lines become rows.
    Own,
    /// Only bytes are captured: another form of the file has the rows.
    Bytes,
}

#[derive(Default)]
pub(in crate::collect) struct Plan {
    pub jobs: Vec<Job>,
    pub unchanged: (u64, u64),
    /// Too old for this run's `--since`.
    pub put_off: u64,
    pub gone: Vec<FileId>,
}

/// What the archive has of a home, and how it names what was forgotten.
pub struct Compared {
    pub captured: Vec<CapturedFile>,
    pub names: Forgotten,
}

pub fn plan(
    instance: InstanceId,
    source: &'static dyn Source,
    survey: &mut Survey,
    Compared { captured, names }: Compared,
    since: Option<Time>,
    verify: bool,
) -> Plan {
    let found = std::mem::take(&mut survey.found);
    if all_known(&found, &captured) {
        let known = captured.into_iter().filter(is_here);
        return plan_known(instance, source, found, known, since, verify);
    }
    let on_disk: HashSet<String> = found.iter().map(|file| file.path.clone()).collect();
    let logical_paths: Vec<String> = found.iter().map(|file| source.logical_path(&file.path)).collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (at, logical_path) in logical_paths.iter().enumerate() {
        let best = first.entry(logical_path).or_insert(at);
        // Of two copies, the one that was written last continues.
        let merit = |at: usize| (found[at].rule.encoding == Encoding::Plain, found[at].stat.modified);
        if merit(at) > merit(*best) {
            *best = at;
        }
    }
    let primaries: HashSet<usize> = first.into_values().collect();
    let mut by_path: HashMap<&str, &CapturedFile> = HashMap::new();
    let mut by_logical_path: HashMap<&str, Vec<&CapturedFile>> = HashMap::new();
    for file in captured.iter().filter(|file| !file.document) {
        by_path.insert(&file.path, file);
        by_logical_path.entry(&file.logical_path).or_default().push(file);
    }
    let mut plan = Plan::default();
    let mut moved = HashSet::new();
    let has_forgotten = captured.iter().any(|file| file.path.starts_with(FORGOTTEN_FILES));
    for (at, (file, logical_path)) in found.into_iter().zip(logical_paths).enumerate() {
        let rows = if primaries.contains(&at) { RowsPlan::Own } else { RowsPlan::Bytes };
        let siblings = by_logical_path.get(logical_path.as_str()).map(Vec::as_slice).unwrap_or_default();
        let forgotten = has_forgotten.then(|| by_path.get(names.file_name(&file.path).as_str()).copied());
        let forgotten = forgotten.flatten();
        if let Some(forgotten) = forgotten {
            moved.insert(forgotten.id);
            // New lines of a transcript are new; a new state of a document has what was forgotten.
            if file.rule.framing != Framing::Lines {
                plan.unchanged = (plan.unchanged.0 + 1, plan.unchanged.1 + file.size);
                continue;
            }
        }
        let known = by_path.get(file.path.as_str()).copied().or(forgotten).or_else(|| {
            // The client moved the file.
            let from = siblings.iter().find(|sibling| {
                !on_disk.contains(&sibling.path)
                    && sibling.encoding == file.rule.encoding
                    && !moved.contains(&sibling.id)
            })?;
            moved.insert(from.id);
            Some(*from)
        });
        let sibling = siblings.iter().find(|sibling| {
            sibling.owner == RowsOwner::This && Some(sibling.id) != known.map(|known| known.id)
        });
        let sibling = sibling.filter(|_| rows == RowsPlan::Own);
        let sibling_stays = sibling.is_some_and(|sibling| on_disk.contains(&sibling.path));
        let untouched = known.is_some_and(|known| {
            (known.path == file.path || forgotten.is_some())
                && !known.gone
                && known.size == file.size
                && known.stat == Some(file.stat)
                && (rows == RowsPlan::Bytes || known.owner != RowsOwner::Nobody && !sibling_stays)
        });
        if untouched && !verify {
            plan.unchanged = (plan.unchanged.0 + 1, plan.unchanged.1 + file.size);
            continue;
        }
        if since.is_some_and(|since| file.stat.modified < since) {
            plan.put_off += 1;
            continue;
        }
        plan.jobs.push(Job {
            instance,
            source,
            found: file,
            logical_path,
            known: known.cloned(),
            rows,
            sibling: sibling.map(|sibling| (*sibling).clone()),
            sibling_stays,
        });
    }
    let absent = captured.iter().filter(|file| {
        !file.document && !file.gone && !on_disk.contains(&file.path) && !moved.contains(&file.id)
    });
    plan.gone = absent.filter(|file| !survey.hides(&file.path)).map(|file| file.id).collect();
    plan
}

/// The usual case: no file was added or moved, and no two are forms of one. Both lists are sorted by path.
fn all_known(found: &[WalkedFile], captured: &[CapturedFile]) -> bool {
    let mut here = captured.iter().filter(|file| is_here(file));
    let same = found.iter().all(|found| here.next().is_some_and(|known| known.path == found.path));
    same && here.next().is_none() && captured.iter().all(|file| file.owner == RowsOwner::This)
}

fn is_here(file: &CapturedFile) -> bool {
    !file.document && !file.gone
}

fn plan_known(
    instance: InstanceId,
    source: &'static dyn Source,
    found: Vec<WalkedFile>,
    known: impl Iterator<Item = CapturedFile>,
    since: Option<Time>,
    verify: bool,
) -> Plan {
    let mut plan = Plan::default();
    for (file, known) in found.into_iter().zip(known) {
        if known.size == file.size && known.stat == Some(file.stat) && !verify {
            plan.unchanged = (plan.unchanged.0 + 1, plan.unchanged.1 + file.size);
        } else if since.is_some_and(|since| file.stat.modified < since) {
            plan.put_off += 1;
        } else {
            plan.jobs.push(Job {
                instance,
                source,
                logical_path: source.logical_path(&file.path),
                found: file,
                known: Some(known),
                rows: RowsPlan::Own,
                sibling: None,
                sibling_stays: false,
            });
        }
    }
    plan
}
