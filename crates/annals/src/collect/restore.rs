//! Writes a home back from the archive: files byte for byte, databases with their captured rows.

use std::collections::BTreeMap;
use std::fs::{File, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::home::databases::SCHEMA;
use super::names::path_of;
use annals_core::{Error, Result, Scope, Time};
use annals_sources::by_name;
use annals_store::{FileRow, ForeignSchema, Store, write_database};

#[derive(Debug, Default, Clone)]
pub struct Restored {
    pub files: u64,
    pub bytes: u64,
    pub already_there: u64,
    /// Of all these, files that were taken out of imports.
    pub from_imports: u64,
    /// Databases of clients, written anew; also counted as files.
    pub databases: Vec<RestoredDatabase>,
    /// Databases whose schema is not archived, so that their rows cannot be written.
    pub without_schema: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredDatabase {
    pub path: String,
    /// Rows of each table that is captured.
    pub tables: BTreeMap<String, u64>,
}

/// Restores the newest version of every captured file. One home goes directly into `target`; several get a folder each.
pub fn restore(store: &Store, source: Option<&str>, target: &Path) -> Result<Restored> {
    let (rows, mut files): (Vec<FileRow>, Vec<FileRow>) =
        store.scoped(Scope::Owner).files(source)?.into_iter().partition(|file| file.document);
    let mut homes: Vec<i64> = files.iter().chain(&rows).map(|file| file.instance).collect();
    homes.sort_unstable();
    homes.dedup();
    let folder_of = |file: &FileRow| {
        let mut path = target.to_path_buf();
        if source.is_none() {
            path.push(&file.source);
        }
        if homes.len() > 1 {
            path.push(format!("home-{}", file.instance));
        }
        path
    };
    // If a file and a folder had the same name at different times, the one that still exists gets it.
    files.sort_by_key(|file| file.gone);
    let mut restored = Restored::default();
    for file in &files {
        let path = free_place(folder_of(file), &relative_path(&file.path)?);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write(store, file, &path, &mut restored)?;
        restored.from_imports +=
            u64::from(by_name(&file.source).is_some_and(|source| source.import().is_some()));
    }
    for instance in homes.iter().copied() {
        let rows: Vec<&FileRow> = rows.iter().filter(|row| row.instance == instance && !row.gone).collect();
        let Some(folder) = rows.first().map(|row| folder_of(row)) else { continue };
        restore_databases(store, &rows, &folder, &mut restored)?;
    }
    Ok(restored)
}

/// Writes the databases of one home: rows that were not deleted, in their newest version.
fn restore_databases(store: &Store, rows: &[&FileRow], folder: &Path, restored: &mut Restored) -> Result<()> {
    let mut by_pattern: BTreeMap<&str, Vec<(&str, &FileRow)>> = BTreeMap::new();
    for row in rows {
        if let Some((pattern, rest)) = row.path.split_once('/') {
            by_pattern.entry(pattern).or_default().push((rest, row));
        }
    }
    for (pattern, rows) in by_pattern {
        let Some((_, schema)) = rows.iter().find(|(name, _)| *name == SCHEMA) else {
            restored.without_schema.push(pattern.to_owned());
            continue;
        };
        let schema: ForeignSchema = serde_json::from_reader(store.bytes(schema.id, schema.version))?;
        let path = free_place(folder.to_owned(), &relative_path(&schema.database)?);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let partial = Partial(partial.into());
        partial.remove()?;
        let mut tables = BTreeMap::new();
        write_database(&partial.0, &schema, |emit| {
            for (name, row) in &rows {
                let Some((table, _)) = name.split_once('/') else { continue };
                let cells: Map<String, Value> =
                    serde_json::from_reader(store.bytes(row.id, row.version)).map_err(Error::from)?;
                emit(table, &cells)?;
                *tables.entry(table.to_owned()).or_default() += 1;
            }
            Ok(())
        })?;
        let size = std::fs::metadata(&partial.0)?.len();
        if path.is_file() {
            // Equal rows give equal bytes.
            if !has_content(&path, File::open(&partial.0)?)? {
                return Err(different(&path));
            }
            restored.already_there += 1;
        } else {
            std::fs::rename(&partial.0, &path)?;
            (restored.files, restored.bytes) = (restored.files + 1, restored.bytes + size);
        }
        restored.databases.push(RestoredDatabase { path: schema.database, tables });
    }
    Ok(())
}

/// A database that is not complete yet, removed on drop.
struct Partial(PathBuf);

impl Partial {
    fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

fn different(path: &Path) -> Error {
    Error::new(format!("cannot restore {}: a different file exists", path.display()))
        .hint("use --to with an empty directory; nothing was overwritten")
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
                return Err(different(path));
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
