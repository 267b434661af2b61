//! Writes a home back from the archive: files byte for byte, databases with their captured rows. A file gets its name
//! once it is complete, so an interrupted restore can be repeated.

mod databases;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, FileTimes};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::collect::names::path_of;
use annals_core::{Error, FORGOTTEN_FILES, FileId, InstanceId, LineStatus, Result, Scope, Time};
use annals_sources::by_name;
use annals_store::{FileRow, Store};

/// Permissions of files whose own are not known.
#[cfg(unix)]
const PRIVATE: u32 = 0o600;

#[derive(Debug, Default, Clone)]
pub struct Restored {
    pub files: u64,
    pub bytes: u64,
    pub already_there: u64,
    /// Of all these, files that were taken out of imports.
    pub from_imports: u64,
    /// Databases of clients, which are new files; also counted as files.
    pub databases: Vec<RestoredDatabase>,
    /// Databases whose schema is not archived, so that their rows cannot be written.
    pub without_schema: Vec<String>,
    /// Files that were forgotten, and forgotten lines of the others.
    pub forgotten_files: u64,
    pub forgotten_lines: u64,
    pub failed: Vec<FailedRestore>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredDatabase {
    pub path: String,
    /// Rows of each table that is captured.
    pub tables: BTreeMap<String, u64>,
}

/// A file that was not restored.
#[derive(Debug, Clone)]
pub struct FailedRestore {
    /// As the archive has it.
    pub path: String,
    pub cause: String,
}

/// Restores the newest version of every captured file. One home goes directly into `target`; several get a folder each.
/// Files that cannot be restored are listed in the result.
pub fn restore(store: &Store, source: Option<&str>, target: &Path) -> Result<Restored> {
    refuse_archive(store, target)?;
    let mut restored = Restored::default();
    // A file whose row cannot be found would be left out without a word.
    for cause in store.check_catalogue()? {
        restored.failed.push(FailedRestore { path: store.path().display().to_string(), cause });
    }
    let (mut rows, mut files): (Vec<FileRow>, Vec<FileRow>) =
        store.scoped(Scope::Owner).files(source)?.into_iter().partition(|file| file.document);
    let all = files.len() + rows.len();
    let is_forgotten = |file: &FileRow| file.path.starts_with(FORGOTTEN_FILES);
    files.retain(|file| !is_forgotten(file));
    rows.retain(|file| !is_forgotten(file));
    restored.forgotten_files = (all - files.len() - rows.len()) as u64;
    let kept: BTreeSet<FileId> = files.iter().map(|file| file.id).collect();
    let coverage = store.scoped(Scope::Owner).coverage(source)?.into_iter();
    let blanked = coverage.filter(|row| row.status == LineStatus::Forgotten && kept.contains(&row.file));
    restored.forgotten_lines = blanked.map(|row| u64::try_from(row.lines).unwrap_or(0)).sum();
    let mut homes: Vec<InstanceId> = files.iter().chain(&rows).map(|file| file.instance).collect();
    homes.sort_unstable();
    homes.dedup();
    let folder_of = |file: &FileRow| {
        let mut folder = target.to_path_buf();
        if source.is_none() {
            folder.push(&file.source);
        }
        if homes.len() > 1 {
            folder.push(format!("home-{}", file.instance));
        }
        folder
    };
    // If a file and a folder had the same name at different times, the one that still exists gets it.
    files.sort_by_key(|file| file.gone);
    for file in &files {
        let written = restore_file(store, file, folder_of(file));
        if restored.add(&file.path, written)? {
            restored.from_imports +=
                u64::from(by_name(&file.source).is_some_and(|source| source.import().is_some()));
        }
    }
    for instance in &homes {
        let rows: Vec<&FileRow> = rows.iter().filter(|row| row.instance == *instance && !row.gone).collect();
        if let Some(first) = rows.first() {
            databases::restore(store, &rows, &folder_of(first), &mut restored)?;
        }
    }
    Ok(restored)
}

impl Restored {
    /// Counts a file, and returns whether it is there now.
    fn add(&mut self, path: &str, written: std::result::Result<Option<u64>, Failure>) -> Result<bool> {
        match written {
            Ok(Some(bytes)) => {
                self.files += 1;
                self.bytes += bytes;
            }
            Ok(None) => self.already_there += 1,
            // Every other file would fail as well.
            Err(Failure::Target(error)) => return Err(error),
            Err(Failure::File(cause)) => {
                self.failed.push(FailedRestore { path: path.to_owned(), cause });
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Why a file was not restored.
enum Failure {
    /// Only this file is concerned.
    File(String),
    /// Nothing can be written.
    Target(Error),
}

impl Failure {
    fn of_write(path: &Path, error: io::Error) -> Failure {
        let what = format!("cannot write {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem => {
                let hint =
                    "free up space or use another directory with --to, and run it again: it continues there";
                Failure::Target(Error::new(what).hint(hint).source(error))
            }
            _ => Failure::File(what),
        }
    }
}

/// The archive and its files would mix.
fn refuse_archive(store: &Store, target: &Path) -> Result<()> {
    let absolute = std::path::absolute(target)?;
    let existing = absolute.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let Some((folder, canonical)) = existing else { return Ok(()) };
    let rest = absolute.strip_prefix(folder).unwrap_or(Path::new(""));
    let archive = store.path().parent().and_then(|folder| folder.canonicalize().ok());
    if archive.is_some_and(|archive| canonical.join(rest).starts_with(archive)) {
        return Err(Error::bad_request(format!(
            "cannot restore to {}: the archive is there",
            target.display()
        ))
        .hint("use --to with an empty directory"));
    }
    Ok(())
}

/// A free path for the file below `folder`. A component that is a file where a folder is needed, or vice versa, is
/// renamed.
fn free_place(folder: PathBuf, relative: &Path) -> PathBuf {
    let count = relative.components().count();
    relative.components().enumerate().fold(folder, |folder, (at, part)| {
        let mut name = part.as_os_str().to_owned();
        let taken = |path: PathBuf| if at + 1 < count { path.is_file() } else { path.is_dir() };
        while taken(folder.join(&name)) {
            name.push(".gone");
        }
        folder.join(name)
    })
}

/// Writes a file and returns its size; `None` if it is already there.
fn restore_file(store: &Store, file: &FileRow, folder: PathBuf) -> std::result::Result<Option<u64>, Failure> {
    let unnamed = |error: Error| Failure::File(error.what);
    let path = free_place(folder, &relative_path(file).map_err(unnamed)?);
    if std::fs::symlink_metadata(&path).is_ok() {
        return match has_content(store, file, &path) {
            Ok(true) => Ok(None),
            Ok(false) => Err(Failure::File(format!("a different file exists at {}", path.display()))),
            Err(error) => Err(Failure::File(Error::from(error).what)),
        };
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(parent).map_err(|error| Failure::of_write(parent, error))?;
    let unfinished = parent.join(format!(".annals-restore-{}", file.id));
    let written =
        write(store, file, &unfinished).and_then(|bytes| match std::fs::rename(&unfinished, &path) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) => Err(Failure::of_write(&path, error)),
        });
    if written.is_err() {
        // What is left of it would look like a file of the home.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// Writes the content, permissions and time of a file to `path`, which a killed restore may have left.
fn write(store: &Store, file: &FileRow, path: &Path) -> std::result::Result<u64, Failure> {
    let cannot_write = |error| Failure::of_write(path, error);
    let _ = std::fs::remove_file(path);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    let mut out = options.open(path).map_err(cannot_write)?;
    let mut bytes = store.bytes(file.id, file.version);
    let mut piece = vec![0; 256 << 10];
    let mut total = 0;
    loop {
        let read = bytes.read(&mut piece).map_err(|error| Failure::File(Error::from(error).what))?;
        if read == 0 {
            break;
        }
        total += read as u64;
        io::Write::write_all(&mut out, &piece[..read]).map_err(cannot_write)?;
    }
    check_size(file, total).map_err(Failure::File)?;
    if let Some(modified) = file.modified.map(Time::micros).and_then(|micros| u64::try_from(micros).ok()) {
        let times = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_micros(modified));
        out.set_times(times).map_err(cannot_write)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Programs that change their user are not restored as such.
        let mode = file.mode.unwrap_or(PRIVATE) & 0o777;
        out.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(cannot_write)?;
    }
    Ok(total)
}

fn check_size(file: &FileRow, total: u64) -> std::result::Result<(), String> {
    if i64::try_from(total) == Ok(file.size) {
        return Ok(());
    }
    Err(format!("the archive has {total} of its {} bytes", file.size))
}

fn has_content(store: &Store, file: &FileRow, path: &Path) -> io::Result<bool> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Ok(false);
    }
    let (mut there, mut bytes) = (File::open(path)?, store.bytes(file.id, file.version));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut total = 0;
    loop {
        left.clear();
        right.clear();
        Read::by_ref(&mut there).take(1 << 20).read_to_end(&mut left)?;
        bytes.by_ref().take(1 << 20).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        total += left.len() as u64;
        if left.is_empty() {
            return check_size(file, total).map(|()| true).map_err(io::Error::other);
        }
    }
}

/// A relative path that stays below the target, whatever the archive contains.
fn relative_path(file: &FileRow) -> Result<PathBuf> {
    let logical = by_name(&file.source).map(|source| source.logical_path(&file.path));
    if file.logical_path != file.path && logical.as_ref() != Some(&file.logical_path) {
        return Err(Error::new("its path is damaged in the archive"));
    }
    below_target(&file.path)
}

fn below_target(path: &str) -> Result<PathBuf> {
    let named = path_of(path);
    let plain = named.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.is_empty() {
        Ok(named)
    } else {
        Err(Error::new("its path leads out of the directory; the archive may have been tampered with"))
    }
}

#[cfg(test)]
mod tests {
    use super::below_target;

    #[test]
    fn paths_stay_below_the_target() {
        assert!(below_target("sessions/2026/a.jsonl").is_ok());
        for path in ["../a", "a/../../b", "/etc/passwd", ""] {
            assert!(below_target(path).is_err(), "{path}");
        }
    }
}
