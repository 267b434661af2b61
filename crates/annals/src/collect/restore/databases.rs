//! Databases of clients: new files with the archived schema and the newest rows that were not deleted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value};

use super::{Failure, Restored, RestoredDatabase, below_target, free_place};
use crate::collect::home::databases::SCHEMA;
use crate::collect::home::file_groups::GROUPS;
use annals_core::{Error, Result};
use annals_sources::json::{Json, unescape};
use annals_store::{BINARY, FileRow, ForeignSchema, Store, write_database};

/// Writes the databases of one home into `folder`.
pub fn restore(store: &Store, rows: &[&FileRow], folder: &Path, restored: &mut Restored) -> Result<()> {
    let mut databases: BTreeMap<&str, Vec<(&str, &FileRow)>> = BTreeMap::new();
    let is_group = |row: &&&FileRow| row.path.strip_prefix(GROUPS).is_some_and(|rest| rest.starts_with('/'));
    for row in rows.iter().filter(|row| !is_group(row)) {
        let (name, rest) = split(rows, &row.path);
        databases.entry(name).or_default().push((rest, row));
    }
    for (name, rows) in databases {
        let Some((_, schema)) = rows.iter().find(|(name, _)| *name == SCHEMA) else {
            restored.without_schema.push(name.to_owned());
            continue;
        };
        let schema: std::result::Result<ForeignSchema, _> =
            serde_json::from_reader(store.bytes(schema.id, schema.version));
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => {
                restored.add(name, Err(Failure::File(format!("its schema is damaged: {error}"))))?;
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

/// The database that a row is of, and the rest of the path: a database may be in a folder, as its schema says.
fn split<'p>(rows: &[&FileRow], path: &'p str) -> (&'p str, &'p str) {
    let folders = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    let has_schema = |name: &str| {
        let is_schema = |row: &&FileRow| row.path.strip_prefix(name).is_some_and(|rest| rest[1..] == *SCHEMA);
        rows.iter().any(|row| row.path.len() == name.len() + 1 + SCHEMA.len() && is_schema(row))
    };
    let mut folders = folders.peekable();
    let first = folders.peek().copied().unwrap_or((path, ""));
    folders.find(|(name, _)| has_schema(name)).unwrap_or(first)
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
            let mut add = |table: &str, cells: &Map<String, Value>| -> annals_store::Result<()> {
                emit(table, cells)?;
                *tables.entry(table.to_owned()).or_default() += 1;
                Ok(())
            };
            if schema.documents.contains(table) {
                for line in BufReader::new(store.bytes(row.id, row.version)).split(b'\n') {
                    for (table, cells) in rows_of_line(&line.map_err(Error::from)?) {
                        add(&table, &cells)?;
                    }
                }
                continue;
            }
            let mut bytes = Vec::new();
            store.bytes(row.id, row.version).read_to_end(&mut bytes).map_err(Error::from)?;
            let cells = Json::parse(&bytes).filter(|json| json.is_object()).map(cells_of);
            let cells = cells.ok_or_else(|| Error::new("a row is damaged in the archive"))?;
            add(table, &cells)?;
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

/// The rows of a line, with their tables.
fn rows_of_line(line: &[u8]) -> Vec<(String, Map<String, Value>)> {
    let mut rows = Vec::new();
    for (table, value) in Json::parse(line).into_iter().flat_map(Json::fields) {
        let table = unescape(table);
        if value.is_object() {
            rows.push((table, cells_of(value)));
        } else {
            rows.extend(value.items().map(|item| (table.clone(), cells_of(item))));
        }
    }
    rows
}

/// The values of a row. What is an object or a list was text in the database, unless it is marked as binary; a real number
/// is read exactly.
fn cells_of(row: Json<'_>) -> Map<String, Value> {
    let cells = row.fields().map(|(name, value)| {
        let text = || String::from_utf8_lossy(value.bytes());
        let is_text = value.is_array() || value.is_object() && value.get(BINARY).is_none();
        let real = || text().parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number);
        let cell = match value.bytes().first() {
            _ if is_text => Value::from(text()),
            Some(b'-' | b'0'..=b'9') if text().parse::<i64>().is_err() => real().unwrap_or_default(),
            _ => value.value(),
        };
        (unescape(name), cell)
    });
    cells.collect()
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
