//! Databases of clients: new files with the archived schema and the newest rows that were not deleted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Failure, Restored, RestoredDatabase, below_target, free_place};
use crate::collect::home::databases::SCHEMA;
use annals_core::{Error, Result};
use annals_store::{FileRow, ForeignSchema, Store, write_database};

/// Writes the databases of one home into `folder`.
pub fn restore(store: &Store, rows: &[&FileRow], folder: &Path, restored: &mut Restored) -> Result<()> {
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
        let schema: std::result::Result<ForeignSchema, _> =
            serde_json::from_reader(store.bytes(schema.id, schema.version));
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => {
                restored.add(pattern, Err(Failure::File(format!("its schema is damaged: {error}"))))?;
                continue;
            }
        };
        let mut tables = BTreeMap::new();
        let written = write(store, &schema, &rows, folder, &mut tables);
        if restored.add(&schema.database, written)? {
            restored.databases.push(RestoredDatabase { path: schema.database, tables });
        }
    }
    Ok(())
}

/// Writes a database and returns its size; `None` if it is already there.
fn write(
    store: &Store,
    schema: &ForeignSchema,
    rows: &[(&str, &FileRow)],
    folder: &Path,
    tables: &mut BTreeMap<String, u64>,
) -> std::result::Result<Option<u64>, Failure> {
    let relative = below_target(&schema.database).map_err(|error| Failure::File(error.what))?;
    let path = free_place(folder.to_owned(), &relative);
    let parent = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(parent).map_err(|error| Failure::of_write(parent, error))?;
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(".partial");
    let unfinished = Unfinished(unfinished.into());
    let cannot_write = |error| Failure::of_write(&path, error);
    unfinished.remove().map_err(cannot_write)?;
    let filled = write_database(&unfinished.0, schema, |emit| {
        for (name, row) in rows {
            let Some((table, _)) = name.split_once('/') else { continue };
            let cells: Map<String, Value> =
                serde_json::from_reader(store.bytes(row.id, row.version)).map_err(Error::from)?;
            emit(table, &cells)?;
            *tables.entry(table.to_owned()).or_default() += 1;
        }
        Ok(())
    });
    filled.map_err(|error| Failure::File(Error::from(error).what))?;
    if std::fs::symlink_metadata(&path).is_ok() {
        // Equal rows give equal bytes.
        return match have_equal_content(&path, &unfinished.0) {
            Ok(true) => Ok(None),
            Ok(false) => Err(Failure::File(format!("a different file exists at {}", path.display()))),
            Err(error) => Err(Failure::File(error.to_string())),
        };
    }
    let size = std::fs::metadata(&unfinished.0).map_err(cannot_write)?.len();
    std::fs::rename(&unfinished.0, &path).map_err(cannot_write)?;
    Ok(Some(size))
}

fn have_equal_content(left: &Path, right: &Path) -> io::Result<bool> {
    let (mut left, mut right) = (File::open(left)?, File::open(right)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        ours.clear();
        theirs.clear();
        Read::by_ref(&mut left).take(1 << 20).read_to_end(&mut ours)?;
        Read::by_ref(&mut right).take(1 << 20).read_to_end(&mut theirs)?;
        if ours != theirs || ours.is_empty() {
            return Ok(ours == theirs);
        }
    }
}

/// A database that is not complete yet, removed on drop.
struct Unfinished(PathBuf);

impl Unfinished {
    fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}
