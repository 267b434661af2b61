//! Writes a home back from the archive, byte for byte.

use std::fs::{File, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::names::path_of;
use annals_core::{Error, Result, Scope, Time};
use annals_sources::by_name;
use annals_store::{FileRow, Store};

#[derive(Debug, Default, Clone, Copy)]
pub struct Restored {
    pub files: u64,
    pub bytes: u64,
    pub already_there: u64,
    /// Of all these, files that were taken out of imports.
    pub from_imports: u64,
}

/// Restores the newest version of every captured file. One home goes directly into `target`; several get a folder each.
pub fn restore(store: &Store, source: Option<&str>, target: &Path) -> Result<Restored> {
    let mut files: Vec<FileRow> =
        store.scoped(Scope::Owner).files(source)?.into_iter().filter(|file| !file.document).collect();
    let mut homes: Vec<i64> = files.iter().map(|file| file.instance).collect();
    homes.dedup();
    // If a file and a folder had the same name at different times, the one that still exists gets it.
    files.sort_by_key(|file| file.gone);
    let mut restored = Restored::default();
    for file in &files {
        let mut path = target.to_path_buf();
        if source.is_none() {
            path.push(&file.source);
        }
        if homes.len() > 1 {
            path.push(format!("home-{}", file.instance));
        }
        let path = free_place(path, &relative_path(&file.path)?);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write(store, file, &path, &mut restored)?;
        restored.from_imports +=
            u64::from(by_name(&file.source).is_some_and(|source| source.import().is_some()));
    }
    Ok(restored)
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

fn write(store: &Store, file: &FileRow, path: &Path, restored: &mut Restored) -> Result<()> {
    let mut bytes = store.bytes(file.id, file.version);
    let made = File::options().write(true).create_new(true).open(path);
    let mut out = match made {
        Ok(out) => out,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !has_content(path, bytes)? {
                return Err(Error::new(format!(
                    "cannot restore {}: a different file exists",
                    path.display()
                ))
                .hint("use --to with an empty directory; nothing was overwritten"));
            }
            restored.already_there += 1;
            return Ok(());
        }
        Err(error) => return Err(Error::new(format!("cannot write {}: {error}", path.display()))),
    };
    restored.bytes += io::copy(&mut bytes, &mut out)?;
    out.flush()?;
    if let Some(modified) = file.modified.map(Time::micros).and_then(|micros| u64::try_from(micros).ok()) {
        out.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_micros(modified)))?;
    }
    restored.files += 1;
    Ok(())
}

fn has_content(path: &Path, mut bytes: impl Read) -> Result<bool> {
    let mut there = File::open(path)?;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        Read::by_ref(&mut there).take(1 << 20).read_to_end(&mut left)?;
        bytes.by_ref().take(1 << 20).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

/// A relative path that stays below the target, whatever the archive contains.
fn relative_path(path: &str) -> Result<PathBuf> {
    let named = path_of(path);
    let plain = named.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.is_empty() {
        Ok(named)
    } else {
        Err(Error::new(format!("cannot restore {path:?}: the path leads out of the directory"))
            .hint("the archive may have been tampered with"))
    }
}

#[cfg(test)]
mod tests {
    use super::relative_path;

    #[test]
    fn paths_stay_below_the_target() {
        assert!(relative_path("sessions/2026/a.jsonl").is_ok());
        for path in ["../a", "a/../../b", "/etc/passwd", ""] {
            assert!(relative_path(path).is_err(), "{path}");
        }
    }
}
