//! Keeps what can still be read of a damaged archive file: copies it into a new file that takes its place.

use annals_core::FileId;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::error::{Result, StoreError};
use crate::write::DERIVED;
use crate::{Store, read_only_flags};

/// Rows that are read at once.
const STEP: i64 = 64;

/// What a salvage kept.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub rows: u64,
    /// Where the damaged file is now.
    pub damaged_file: PathBuf,
}

/// Puts a new file in place of a damaged one, with everything that can be read except rows that are rebuilt from it. The
/// damaged file stays beside it. The caller holds the lock and rebuilds the rows.
pub fn salvage(data_dir: &Path) -> Result<Salvaged> {
    let path = data_dir.join("annals.db");
    let folder = data_dir.join("salvage");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let new = Store::open(&folder)?;
    // A row that refers to a lost one is still worth keeping.
    new.connection.pragma_update(None, "foreign_keys", false)?;
    let mut salvaged = Salvaged { damaged_file: free_name(&path), ..Salvaged::default() };
    if let Some(old) = open_damaged(&path) {
        for table in tables(&new.connection)? {
            salvaged.rows += copy_table(&old, &new.connection, &table)?;
        }
    }
    // Rows are rebuilt by the next run even if this one ends here.
    new.connection.execute_batch(
        "update file set parsed = 0, search_epoch = 0;
         insert into setting (name, value) values ('rebuilding', 1) on conflict (name) do nothing;",
    )?;
    new.checkpoint()?;
    drop(new);
    for end in ["-wal", "-shm"] {
        let log = with_end(&path, end);
        if log.exists() {
            std::fs::rename(&log, with_end(&salvaged.damaged_file, end))?;
        }
    }
    // Never without an archive: the new file replaces the old one in one step.
    if std::fs::hard_link(&path, &salvaged.damaged_file).is_err() {
        std::fs::copy(&path, &salvaged.damaged_file)?;
    }
    std::fs::rename(folder.join("annals.db"), &path)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(salvaged)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn free_name(path: &Path) -> PathBuf {
    let first = with_end(path, ".damaged");
    let more = (2..).map(|number| with_end(path, &format!(".damaged-{number}")));
    std::iter::once(first.clone()).chain(more).find(|name| !name.exists()).unwrap_or(first)
}

/// The damaged file, if SQLite can make anything of it.
fn open_damaged(path: &Path) -> Option<Connection> {
    #[expect(clippy::disallowed_methods, reason = "the store opens its own database here")]
    let connection = Connection::open_with_flags(path, read_only_flags()).ok()?;
    // The schema is read even if some of it is damaged.
    connection.pragma_update(None, "writable_schema", true).ok()?;
    connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(())).ok()?;
    Some(connection)
}

/// A table that is copied, and its columns.
struct Table {
    name: String,
    columns: Vec<String>,
    /// Columns of the primary key of a table without row numbers.
    key: Option<Vec<String>>,
}

/// All tables but those of rows that are rebuilt. Files come before what belongs to them.
fn tables(new: &Connection) -> Result<Vec<Table>> {
    let mut statement = new.prepare(
        "select name, wr from pragma_table_list where type = 'table' and schema = 'main'
         and name not like 'sqlite\\_%' escape '\\' order by name <> 'file', name",
    )?;
    let names = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?;
    let mut tables = Vec::new();
    for row in names {
        let (name, without_rowid) = row?;
        if DERIVED.contains(&name.as_str()) || name == "reader_state" {
            continue;
        }
        let mut statement = new.prepare("select name, pk from pragma_table_info(?1)")?;
        let columns = statement
            .query_map(params![&name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        let columns: Vec<(String, i64)> = columns.collect::<rusqlite::Result<_>>()?;
        let mut key: Vec<&(String, i64)> = columns.iter().filter(|(_, offset)| *offset > 0).collect();
        key.sort_by_key(|(_, offset)| *offset);
        let key = without_rowid.then(|| key.iter().map(|(name, _)| name.clone()).collect());
        tables.push(Table { name, columns: columns.into_iter().map(|(name, _)| name).collect(), key });
    }
    Ok(tables)
}

fn copy_table(old: &Connection, new: &Connection, table: &Table) -> Result<u64> {
    // An older archive lacks columns, and a damaged one tables.
    let known: Vec<String> = match old.prepare("select name from pragma_table_info(?1)") {
        Ok(mut statement) => {
            let names = statement.query_map(params![&table.name], |row| row.get(0));
            names.map(|names| names.map_while(rusqlite::Result::ok).collect()).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    };
    let columns: Vec<&str> =
        table.columns.iter().filter(|column| known.contains(column)).map(String::as_str).collect();
    if columns.is_empty() {
        return Ok(0);
    }
    let list = columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("insert or ignore into {} ({list}) values ({places})", table.name);
    let transaction = new.unchecked_transaction()?;
    let mut count = 0;
    {
        let mut insert = new.prepare(&insert)?;
        let mut keep = |row: Vec<Value>| -> Result<()> {
            // A row with a value that its table does not allow is damaged.
            match insert.execute(params_from_iter(row)) {
                Ok(kept) => {
                    count += kept as u64;
                    Ok(())
                }
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                    Ok(())
                }
                Err(error) => Err(StoreError::from(error)),
            }
        };
        match &table.key {
            None => copy_by_number(old, &table.name, &list, columns.len(), &mut keep)?,
            Some(key) if key.first().is_some_and(|column| column == "file") => {
                let mut files = new.prepare("select id from file order by id")?;
                let files: Vec<FileId> =
                    files.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                let select = format!("select {list} from {} where file = ?1", table.name);
                for file in files {
                    copy_while_readable(old, &select, Some(file), columns.len(), &mut keep)?;
                }
            }
            Some(key) => {
                let backwards =
                    key.iter().map(|column| format!("\"{column}\" desc")).collect::<Vec<_>>().join(", ");
                for order in [String::new(), format!(" order by {backwards}")] {
                    let select = format!("select {list} from {}{order}", table.name);
                    copy_while_readable(old, &select, None, columns.len(), &mut keep)?;
                }
            }
        }
    }
    transaction.commit()?;
    Ok(count)
}

/// Copies rows in the order of their numbers and skips those that cannot be read.
fn copy_by_number(
    old: &Connection,
    table: &str,
    list: &str,
    width: usize,
    keep: &mut dyn FnMut(Vec<Value>) -> Result<()>,
) -> Result<()> {
    let forwards = format!("select rowid, {list} from {table} where rowid > ?1 order by rowid limit ?2");
    let backwards =
        format!("select rowid, {list} from {table} where rowid > ?1 and rowid < ?2 order by rowid desc");
    let mut last = i64::MIN;
    // How far to seek behind damage: further while nothing is read, so that the end is reached in few steps.
    let mut reach = 0;
    loop {
        let before = last;
        let read = visit(old, &forwards, &[last, STEP], width + 1, &mut |row| {
            let (number, row) = split(row);
            // In a damaged table rows may be in any order.
            last = number.map_or(last, |number| last.max(number));
            keep(row)
        })?;
        reach = if last > before { 0 } else { reach + 1 };
        match read {
            Visited::All if last == before => return Ok(()),
            Visited::All => {}
            Visited::Damaged => {
                // Seek behind the damaged page, then fetch what is between from behind.
                let mut next = None;
                for distance in reach..62 {
                    let from = last.max(0).saturating_add(1 << distance);
                    let found = visit(old, &forwards, &[from, 1], width + 1, &mut |row| {
                        next = split(row).0.filter(|number| *number > from);
                        Ok(())
                    })?;
                    if matches!(found, Visited::All) {
                        break;
                    }
                }
                let Some(next) = next else { return Ok(()) };
                visit(old, &backwards, &[last, next], width + 1, &mut |row| keep(split(row).1))?;
                last = next - 1;
            }
        }
    }
}

fn split(mut row: Vec<Value>) -> (Option<i64>, Vec<Value>) {
    let rest = row.split_off(1);
    match row.first() {
        Some(Value::Integer(number)) => (Some(*number), rest),
        _ => (None, rest),
    }
}

enum Visited {
    All,
    /// A row could not be read.
    Damaged,
}

fn visit(
    old: &Connection,
    select: &str,
    parameters: &[i64],
    width: usize,
    keep: &mut dyn FnMut(Vec<Value>) -> Result<()>,
) -> Result<Visited> {
    let Ok(mut statement) = old.prepare_cached(select) else { return Ok(Visited::Damaged) };
    let Ok(mut rows) = statement.query(params_from_iter(parameters)) else { return Ok(Visited::Damaged) };
    loop {
        match rows.next() {
            Ok(None) => return Ok(Visited::All),
            Err(_) => return Ok(Visited::Damaged),
            Ok(Some(row)) => {
                let values: rusqlite::Result<Vec<Value>> = (0..width).map(|at| row.get(at)).collect();
                // Text that is no text is damage of this row only.
                if let Ok(values) = values {
                    keep(values)?;
                }
            }
        }
    }
}

fn copy_while_readable(
    old: &Connection,
    select: &str,
    file: Option<FileId>,
    width: usize,
    keep: &mut dyn FnMut(Vec<Value>) -> Result<()>,
) -> Result<()> {
    let parameters: Vec<i64> = file.into_iter().map(|file| file.0).collect();
    visit(old, select, &parameters, width, keep)?;
    Ok(())
}
