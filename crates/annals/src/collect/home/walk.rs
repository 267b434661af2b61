//! Lists a home: every file matches a declared rule or is unaccounted. Only files of unknown kind are opened, to check
//! whether they are text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::{Chosen, EXCLUDED};
use super::patterns::Patterns;
use super::unknown::{UnknownFile, classify, sounds_secret};
use crate::collect::names::text_of;
use annals_core::{Manifest, Result, Rule, SourceStatus, Time, Treatment};
use annals_sources::Home;
use annals_store::{HomeSurvey, LeftOutFiles, Stat};

/// More files of unknown kind than this are not notes.
const MOST_UNKNOWN: usize = 2_000;

/// Whether a home can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeState {
    Available,
    /// It exists, but contains nothing of this source.
    Empty,
    Missing,
    Unreadable(String),
}

impl HomeState {
    /// The status, and why the home is not available.
    pub fn status(&self, was_captured: bool) -> (SourceStatus, &str) {
        match self {
            HomeState::Available => (SourceStatus::Available, ""),
            HomeState::Empty => (SourceStatus::Empty, "no files of this source in it"),
            HomeState::Missing if was_captured => (SourceStatus::Unavailable, "directory no longer exists"),
            HomeState::Missing => (SourceStatus::Unavailable, "directory not found"),
            HomeState::Unreadable(why) => (SourceStatus::Error, why),
        }
    }
}

#[derive(Debug)]
pub struct WalkedFile {
    /// Relative to the home, with `/` on every system.
    pub path: String,
    pub disk: PathBuf,
    pub size: u64,
    pub stat: Stat,
    pub rule: &'static Rule,
    /// Set if some of its lines are excluded in the settings.
    pub chosen: Option<Arc<Chosen>>,
}

/// How much detail to collect about what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Names,
    /// Measures folders that are left out, but not those that are never opened.
    Weighed,
}

/// What is deliberately not kept.
#[derive(Debug, Clone)]
pub struct LeftOut {
    pub path: String,
    pub store: &'static str,
    pub why: &'static str,
    pub files: u64,
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub struct Survey {
    pub found: Vec<WalkedFile>,
    pub databases: Vec<WalkedFile>,
    /// Files and bytes by reason and path.
    pub left_out: Vec<LeftOut>,
    pub unaccounted: Vec<(String, u64)>,
    /// Folders and files that could not be read: nothing below them counts as gone.
    pub unreadable: Vec<(String, String)>,
    pub outside: Vec<String>,
    /// Patterns of the settings that match no folder.
    pub unmatched: Vec<String>,
}

impl Survey {
    /// True for anything unreadable and everything below it.
    pub fn hides(&self, path: &str) -> bool {
        self.unreadable.iter().any(|(at, _)| {
            at.is_empty()
                || path == at
                || path.strip_prefix(at.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

impl Survey {
    /// Everything that is left out, with its reason. Of databases only rows are kept.
    pub fn all_left_out(&self, manifest: &Manifest) -> Vec<LeftOut> {
        let is_read = |pattern: &str| {
            let mut databases = manifest.databases.iter().filter(|declared| declared.pattern == pattern);
            databases.any(|declared| declared.is_read())
        };
        let databases = self.databases.iter().map(|found| {
            let why =
                if is_read(found.rule.pattern) { "kept as rows, not as a file" } else { found.rule.why };
            LeftOut { path: found.path.clone(), store: found.rule.store, why, files: 1, bytes: found.size }
        });
        let outside = self.outside.iter().map(|path| {
            let (store, why) = ("links", "link to outside of the home");
            LeftOut { path: path.clone(), store, why, files: 1, bytes: 0 }
        });
        databases.chain(self.left_out.iter().cloned()).chain(outside).collect()
    }

    /// For readers of the archive, who may not see the disk.
    pub fn summary(&self, manifest: &Manifest) -> HomeSurvey {
        let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for left in self.all_left_out(manifest) {
            let sum = sums.entry((left.store, left.why)).or_default();
            *sum = (sum.0 + left.files, sum.1 + left.bytes);
        }
        let left_out = sums.into_iter().map(|((store, why), (files, bytes))| LeftOutFiles {
            store: store.to_owned(),
            why: why.to_owned(),
            files,
            bytes,
        });
        HomeSurvey { left_out: left_out.collect(), unaccounted: self.unaccounted.clone() }
    }
}

/// The rules of one source; the first match counts.
pub struct Rules {
    rules: &'static [Rule],
    patterns: Patterns,
}

impl Rules {
    pub fn of(manifest: &'static Manifest) -> Rules {
        let rules = manifest.footprint.rules;
        Rules { rules, patterns: Patterns::of(rules.iter().map(|rule| rule.pattern)) }
    }

    fn decide(&self, path: &str) -> Option<&'static Rule> {
        self.patterns.first(path).map(|at| &self.rules[at])
    }

    /// True for what is never opened, wherever it is.
    pub fn bars(&self, path: &str) -> bool {
        self.decide(path).is_some_and(|rule| rule.treatment == Treatment::Never)
    }
}

pub fn state_of(home: &Home) -> HomeState {
    match std::fs::metadata(&home.root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => HomeState::Missing,
        Err(error) => HomeState::Unreadable(error.to_string()),
        Ok(metadata) if !metadata.is_dir() => HomeState::Unreadable("not a directory".into()),
        Ok(_) => match std::fs::read_dir(&home.root) {
            Ok(_) => HomeState::Available,
            Err(error) => HomeState::Unreadable(error.to_string()),
        },
    }
}

/// Walks the home without recursion on the stack and without following links out of it.
pub fn survey(home: &Home, rules: &Rules, detail: Detail) -> Result<Survey> {
    let root = home.root.canonicalize()?;
    let mut survey = Survey::default();
    let chosen = home.choice.as_ref().map(Chosen::of).transpose()?.map(Arc::new);
    let place = WalkRoot {
        root: &root,
        prefix: home.prefix,
        rules,
        chosen,
        detail,
        follows_links: home.follows_links,
        without: home.without,
    };
    let mut folders = vec![(root.clone(), home.prefix.to_owned())];
    while let Some((folder, at)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                survey.unreadable.push((at, error.to_string()));
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    survey.unreadable.push((at.clone(), error.to_string()));
                    continue;
                }
            };
            let path = join(&at, &entry.file_name());
            classify_entry(&place, &entry, path, &mut survey, &mut folders);
        }
    }
    if let Some(chosen) = &place.chosen {
        survey.unmatched = chosen.unmatched_patterns(&survey);
        chosen.leave_excluded(home.prefix, &root, &mut survey);
    }
    survey.found.sort_by(|a, b| a.path.cmp(&b.path));
    survey.databases.sort_by(|a, b| a.path.cmp(&b.path));
    limit_unknown(&mut survey);
    survey.unaccounted.sort();
    Ok(survey)
}

/// Keeps files of unknown kind only in a home of the client, and only a limited number.
fn limit_unknown(survey: &mut Survey) {
    let is_unknown = |found: &WalkedFile| found.rule.treatment == Treatment::Unknown;
    let is_home = !survey.databases.is_empty() || survey.found.iter().any(|found| !is_unknown(found));
    let mut room = if is_home { MOST_UNKNOWN } else { 0 };
    let unaccounted = &mut survey.unaccounted;
    survey.found.retain(|found| {
        let stays = !is_unknown(found) || room > 0;
        if !stays {
            unaccounted.push((found.path.clone(), found.size));
        }
        room -= usize::from(stays && is_unknown(found));
        stays
    });
}

/// The home that is listed.
struct WalkRoot<'a> {
    root: &'a Path,
    prefix: &'a str,
    rules: &'a Rules,
    chosen: Option<Arc<Chosen>>,
    detail: Detail,
    follows_links: bool,
    without: &'static [&'static str],
}

pub fn join(folder: &str, name: &OsStr) -> String {
    let name = text_of(name);
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

fn classify_entry(
    place: &WalkRoot<'_>,
    entry: &DirEntry,
    path: String,
    survey: &mut Survey,
    folders: &mut Vec<(PathBuf, String)>,
) {
    let excluded = place.chosen.as_ref().is_some_and(|chosen| !chosen.includes(&path));
    if excluded || place.without.contains(&path.as_str()) {
        let (store, why) = EXCLUDED;
        survey.left_out.push(LeftOut { path, store, why, files: 1, bytes: 0 });
        return;
    }
    let rule = place.rules.decide(&path);
    let barred = rule.filter(|rule| matches!(rule.treatment, Treatment::Never | Treatment::LeftOut));
    let barred = barred.map(|rule| (rule.treatment == Treatment::Never, rule.store, rule.why));
    // The directory listing has the file type: files need one `stat`, folders none, links more.
    let kind = entry.file_type().ok();
    let link = kind.is_some_and(|kind| kind.is_symlink());
    let barred = barred.or_else(|| if link { never_behind(place, &entry.path()) } else { None });
    if let Some((never, store, why)) = barred {
        let (files, bytes) = match place.detail {
            Detail::Weighed if !never => weigh(entry),
            Detail::Weighed | Detail::Names => (1, entry.metadata().map_or(0, |metadata| metadata.len())),
        };
        survey.left_out.push(LeftOut { path, store, why, files, bytes });
        return;
    }
    if kind.is_some_and(|kind| kind.is_dir()) {
        folders.push((entry.path(), path));
        return;
    }
    let metadata = if link { resolve(place, &entry.path()) } else { entry.metadata().map(Some) };
    let metadata = match metadata {
        Ok(Some(metadata)) => metadata,
        Ok(None) => {
            survey.outside.push(path);
            return;
        }
        Err(error) => {
            survey.unreadable.push((path, error.to_string()));
            return;
        }
    };
    if metadata.is_dir() {
        // A link to a folder inside the home points to what is walked anyway.
        if !link {
            folders.push((entry.path(), path));
        }
        return;
    }
    let Some(rule) = rule.filter(|_| metadata.is_file()) else {
        if metadata.is_file() {
            survey.unaccounted.push((path, metadata.len()));
        }
        return;
    };
    // The target of a link inside the home is captured there.
    let disk = entry.path();
    let disk = if link { disk.canonicalize().unwrap_or(disk) } else { disk };
    if rule.treatment == Treatment::Unknown {
        match classify(&path, &disk, metadata.len()) {
            UnknownFile::Keep => {}
            UnknownFile::Leave => {
                survey.unaccounted.push((path, metadata.len()));
                return;
            }
            UnknownFile::Secret => {
                let (_, store, why) = SOUNDS_SECRET;
                survey.left_out.push(LeftOut { path, store, why, files: 1, bytes: metadata.len() });
                return;
            }
        }
    }
    let chosen = place.chosen.clone().filter(|chosen| chosen.shares(&path));
    let found = WalkedFile { path, disk, size: metadata.len(), stat: stat_of(&metadata), rule, chosen };
    match rule.treatment {
        Treatment::Database => survey.databases.push(found),
        Treatment::Capture | Treatment::Unknown | Treatment::LeftOut | Treatment::Never => {
            survey.found.push(found);
        }
    }
}

/// Counts the files and bytes of a file or folder.
fn weigh(entry: &DirEntry) -> (u64, u64) {
    let Ok(metadata) = entry.metadata() else { return (1, 0) };
    if !metadata.is_dir() {
        return (1, metadata.len());
    }
    let (mut files, mut bytes) = (0, 0);
    let mut left = vec![entry.path()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => left.push(entry.path()),
                Ok(metadata) => (files, bytes) = (files + 1, bytes + metadata.len()),
                Err(_) => files += 1,
            }
        }
    }
    (files, bytes)
}

/// Never opened, what it is, and why: decided by its name.
const SOUNDS_SECRET: (bool, &str, &str) = (true, "credentials", "name suggests credentials; never opened");

/// Checks the target of a link: a file that must never be opened stays so under another name.
fn never_behind(place: &WalkRoot<'_>, disk: &Path) -> Option<(bool, &'static str, &'static str)> {
    let target = disk.canonicalize().ok()?;
    let mut path = place.prefix.to_owned();
    let mut treatment = None;
    for part in target.strip_prefix(place.root).ok()?.components() {
        path = join(&path, part.as_os_str());
        let rule = place.rules.decide(&path);
        if let Some(rule) = rule.filter(|rule| rule.treatment == Treatment::Never) {
            return Some((true, rule.store, rule.why));
        }
        treatment = rule.map(|rule| rule.treatment);
    }
    let is_secret = treatment == Some(Treatment::Unknown) && !target.is_dir() && sounds_secret(&path);
    is_secret.then_some(SOUNDS_SECRET)
}

/// The target of a link; `None` if it is outside of the root and following links is not enabled.
fn resolve(place: &WalkRoot<'_>, disk: &Path) -> io::Result<Option<Metadata>> {
    let target = disk.canonicalize()?;
    let metadata = std::fs::metadata(&target)?;
    let name = target.file_name().map(text_of).unwrap_or_default();
    let never = |rule: &Rule| matches!(rule.treatment, Treatment::Never);
    let barred = place.rules.decide(&name).is_some_and(never) || sounds_secret(&name);
    let followed = place.follows_links && metadata.is_file() && !barred;
    Ok(Some(metadata).filter(|_| target.starts_with(place.root) || followed))
}

#[cfg(unix)]
pub fn stat_of(metadata: &Metadata) -> Stat {
    use std::os::unix::fs::MetadataExt;
    let micros = |seconds: i64, nanos: i64| {
        Time::from_micros(Time::from_seconds(seconds).micros().saturating_add(nanos / 1_000))
    };
    Stat {
        inode: metadata.ino() as i64,
        modified: micros(metadata.mtime(), metadata.mtime_nsec()),
        changed: micros(metadata.ctime(), metadata.ctime_nsec()),
        mode: Some(metadata.mode() & 0o7777),
    }
}

#[cfg(not(unix))]
pub fn stat_of(metadata: &Metadata) -> Stat {
    let modified = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_micros() as i64);
    let modified = Time::from_micros(modified);
    Stat { inode: 0, modified, changed: modified, mode: None }
}

#[cfg(test)]
mod tests {
    use super::Rules;
    use annals_core::Treatment;
    use annals_sources::registry;

    /// The treatment of a path by the rules of the source with a `sessions` folder.
    fn treatment(path: &str) -> Option<Treatment> {
        let rules = Rules::of(registry()[0].manifest());
        rules.decide(path).map(|rule| rule.treatment)
    }

    #[test]
    fn credentials_and_environments_are_never_opened() {
        for path in
            ["auth.json", ".credentials.json", "secrets", "keys/a.age", "logs_2.sqlite", "logs_2.sqlite-wal"]
        {
            assert_eq!(treatment(path), Some(Treatment::Never), "{path}");
        }
        assert_eq!(treatment("shell_snapshots"), Some(Treatment::Never));
    }

    #[test]
    fn transcripts_are_kept_wherever_they_are() {
        for path in [
            "sessions/2026/11/15/rollout-x.jsonl",
            "sessions/rollout-x.jsonl",
            "sessions/rollout-x.json",
            "archived_sessions/rollout-x.jsonl.zst",
        ] {
            assert_eq!(treatment(path), Some(Treatment::Capture), "{path}");
        }
        assert_eq!(treatment("newthing.db"), Some(Treatment::Unknown));
        assert_eq!(treatment("state_5.sqlite"), Some(Treatment::Database));
    }
}
