//! Conversations that a client keeps in many files: each becomes one document of the archived files, made again when
//! one of them changed.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::pending::PendingDocuments;
use crate::collect::ingest::documents::{is_same, replace, without_forgotten};
use crate::collect::ingest::target::Target;
use annals_core::{FileId, Forgotten, Framing, InstanceId, Result};
use annals_sources::Source;
use annals_store::{CapturedFile, Packer, Store};

/// The documents of groups are below this folder of the archive, which no home contains. Facts of databases, whose names
/// come before it, win over those of files that were moved to them.
pub const GROUPS: &str = "together";

/// The cursor with the state of all archived files of a home.
const STATE: &str = "together";

/// Files that belong to conversations are small; of larger ones only the bytes are kept.
const LARGEST_FILE: u64 = 64 << 20;

#[derive(Default)]
pub struct GroupsReport {
    pub new: u64,
    pub gone: Vec<FileId>,
    pub cursor: Option<(String, String)>,
}

/// Makes the documents of a home whose files changed. `ending` are files that this run marks as gone.
pub fn read_groups(
    store: &Store,
    (instance, source): (InstanceId, &'static dyn Source),
    ending: &[FileId],
    forgotten: &Forgotten,
    pending: &mut PendingDocuments<'_>,
) -> Result<GroupsReport> {
    let mut report = GroupsReport::default();
    let Some(grouping) = source.grouping() else { return Ok(report) };
    let ending: HashSet<FileId> = ending.iter().copied().collect();
    let (documents, files): (Vec<CapturedFile>, Vec<CapturedFile>) =
        store.captured_files(instance)?.into_iter().partition(|file| file.document);
    let is_there = |file: &&CapturedFile| !file.gone && !ending.contains(&file.id);
    let files: HashMap<&str, &CapturedFile> =
        files.iter().filter(is_there).map(|file| (file.path.as_str(), file)).collect();
    let mut paths: Vec<&str> = files.keys().copied().collect();
    paths.sort_unstable();
    let state = state_of(paths.iter().filter_map(|path| files.get(path)).copied());
    if store.cursor(instance, STATE)?.as_deref() == Some(state.as_str()) {
        return Ok(report);
    }
    let prefix = format!("stamp {GROUPS}/");
    let before: HashMap<String, String> = store.cursors(instance, &prefix)?.into_iter().collect();
    let mut known: HashMap<&str, &CapturedFile> = documents
        .iter()
        .filter_map(|file| Some((file.path.strip_prefix(GROUPS)?.strip_prefix('/')?, file)))
        .collect();
    let mut packer = Packer::new()?;
    for group in grouping.groups(&paths) {
        let members: Vec<&CapturedFile> =
            group.files.iter().filter_map(|path| files.get(path.as_str())).copied().collect();
        let stamp = state_of(members.iter().copied());
        let captured = known.remove(group.name.as_str());
        if before.get(&group.name) == Some(&stamp) && captured.is_some_and(|file| !file.gone) {
            continue;
        }
        let mut contents = Vec::new();
        for file in members.iter().filter(|file| file.size <= LARGEST_FILE) {
            let mut bytes = Vec::new();
            // What is damaged is reported by the checks of the archive, and missing here.
            if store.bytes(file.id, file.version).read_to_end(&mut bytes).is_ok() {
                contents.push((file.path.as_str(), bytes));
            }
        }
        let bytes = grouping.document(&contents);
        let path = format!("{GROUPS}/{}", group.name);
        let target = Target::archived(instance, source, &path, "conversations", grouping.reader());
        let target = target.framed(Framing::Lines).mutable().database_row();
        let Some(bytes) = without_forgotten(store, &target, captured, forgotten, bytes)? else { continue };
        let is_known = match captured.filter(|file| !file.gone) {
            Some(file) => is_same(store, file, &bytes)?,
            None => false,
        };
        let batch = match is_known {
            true => None,
            false => Some(replace(&target, captured, &bytes, &mut packer)?),
        };
        report.new += u64::from(batch.is_some());
        pending.add(batch, Some((format!("{prefix}{}", group.name), stamp)))?;
    }
    report.gone = known.values().filter(|file| !file.gone).map(|file| file.id).collect();
    report.cursor = Some((STATE.to_owned(), state));
    Ok(report)
}

/// Changes with each new version of one of the files.
fn state_of<'f>(files: impl Iterator<Item = &'f CapturedFile>) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.path.as_bytes()).update(&[0]);
        hasher.update(&file.version.to_le_bytes()).update(&file.size.to_le_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
