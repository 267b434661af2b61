//! Reads a table of a client's own SQLite database from a private copy, so that a running client is never disturbed.
//!
//! A database is data, whoever wrote it: only plain tables are read, never views or virtual tables, and sizes and time
//! are limited.

mod schema;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use serde_json::{Map, Number, Value};

use crate::read_only_flags;

pub use schema::{ForeignSchema, read_schema, write_database};

/// What a client's databases stay far below.
const LARGEST_DATABASE: u64 = 4 << 30;
const LARGEST_VALUE: i32 = 64 << 20;
const LARGEST_TABLE: usize = 512 << 20;
const MOST_ROWS: usize = 1_000_000;
const LONGEST: Duration = Duration::from_secs(20);

/// One row: its key, and all columns as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRow {
    pub key: String,
    pub document: String,
}

/// Why a database has no rows to read. All but the first are reported to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The table does not exist: another version of the client.
    NoTable,
    /// Locked, corrupt, or not readable.
    Broken(String),
}

/// All rows of `table`, read from a copy of the database, its write-ahead log and its index in `scratch`.
pub fn read_table(
    database: &Path,
    table: &str,
    key_column: &str,
    scratch: &Path,
) -> Result<Vec<ForeignRow>, Unreadable> {
    let broken = |error: &dyn std::fmt::Display| Unreadable::Broken(error.to_string());
    let copy = DatabaseCopy::make(database, scratch).map_err(|error| broken(&error))?;
    let connection = copy.open().map_err(|error| broken(&error))?;
    match kind(&connection, table).map_err(|error| broken(&error))?.as_deref() {
        Some("table") | None => {}
        Some(kind) => return Err(Unreadable::Broken(format!("{table} is a {kind}, not a table"))),
    }
    let columns = columns(&connection, table).map_err(|error| broken(&error))?;
    let place = |name: &str| columns.iter().position(|column| column == name);
    let Some(key_at) = key_column.split(',').map(place).collect::<Option<Vec<_>>>() else {
        let tables = tables(&connection).map_err(|error| broken(&error))?;
        return Err(match (columns.is_empty(), tables) {
            (true, 1..) => Unreadable::NoTable,
            (true, _) => Unreadable::Broken("contains no tables".into()),
            (false, _) => Unreadable::Broken(format!("table {table} has no column {key_column}")),
        });
    };
    read_rows(&connection, table, &columns, &key_at)
}

/// The number of rows in every table.
pub fn count_tables(database: &Path, scratch: &Path) -> Result<Vec<(String, i64)>, Unreadable> {
    let broken = |error: &dyn std::fmt::Display| Unreadable::Broken(error.to_string());
    let copy = DatabaseCopy::make(database, scratch).map_err(|error| broken(&error))?;
    let connection = copy.open().map_err(|error| broken(&error))?;
    count_rows(&connection).map_err(|error| broken(&error))
}

/// Like `count_tables`, of a database that may be large and whose rows are not read: without a copy and without locks.
/// What is still in its log is not counted.
pub fn estimate_tables(database: &Path) -> Result<Vec<(String, i64)>, Unreadable> {
    let broken = |error: &dyn std::fmt::Display| Unreadable::Broken(error.to_string());
    let path = database.canonicalize().map_err(|error| broken(&error))?;
    let address = format!("file:{}?immutable=1", annals_core::in_address(&path.to_string_lossy()));
    #[expect(clippy::disallowed_methods, reason = "a client's database, which nothing is written to")]
    let mut connection = Connection::open_with_flags(address, read_only_flags() | OpenFlags::SQLITE_OPEN_URI)
        .map_err(|error| broken(&error))?;
    restrict(&mut connection).map_err(|error| broken(&error))?;
    count_rows(&connection).map_err(|error| broken(&error))
}

fn count_rows(connection: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut statement = connection.prepare(
        "select name from pragma_table_list where schema = 'main' and type = 'table'
         and name not like 'sqlite\\_%' escape '\\' order by name",
    )?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut counts = Vec::new();
    for name in names {
        let count = format!("select count(*) from {}", quote(&name));
        let rows = connection.query_row(&count, [], |row| row.get(0))?;
        counts.push((name, rows));
    }
    Ok(counts)
}

/// A copy of a database, deleted on drop.
struct DatabaseCopy {
    folder: PathBuf,
    database: PathBuf,
}

impl DatabaseCopy {
    fn make(database: &Path, scratch: &Path) -> std::io::Result<DatabaseCopy> {
        // Only one collector runs at a time, so existing files are left over from a killed one, and SQLite would merge
        // an old log into a new database.
        match std::fs::remove_dir_all(scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let folder = scratch.join("copy");
        let size = std::fs::metadata(database)?.len();
        if size > LARGEST_DATABASE {
            return Err(std::io::Error::other(format!("{size} bytes are more than a client's database has")));
        }
        std::fs::create_dir_all(&folder)?;
        crate::set_mode(&folder, 0o700)?;
        let copy = DatabaseCopy { database: folder.join("copy.sqlite"), folder };
        std::fs::copy(database, &copy.database)?;
        for suffix in ["-wal", "-shm"] {
            let mut side = database.as_os_str().to_owned();
            side.push(suffix);
            let mut target = copy.database.as_os_str().to_owned();
            target.push(suffix);
            match std::fs::symlink_metadata(&side) {
                Ok(metadata) if metadata.is_file() => {
                    std::fs::copy(&side, &target)?;
                }
                // A link may point anywhere and a pipe never ends: neither is the log of this database.
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copy)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        #[expect(clippy::disallowed_methods, reason = "a private copy of a client's database")]
        let mut connection = match Connection::open(&self.database) {
            Ok(connection) => connection,
            Err(_) => Connection::open_with_flags(&self.database, read_only_flags())?,
        };
        restrict(&mut connection)?;
        Ok(connection)
    }
}

/// Nothing that a schema names is run, and no statement takes forever.
fn restrict(connection: &mut Connection) -> rusqlite::Result<()> {
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_VALUE)?;
    let deadline = Instant::now() + LONGEST;
    connection.progress_handler(10_000, Some(move || Instant::now() >= deadline))?;
    Ok(())
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        // The next copy removes what a crash leaves behind.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
    statement.query_map(params![table], |row| row.get(0))?.collect()
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("select count(*) from sqlite_schema where type = 'table'", [], |row| row.get(0))
}

/// Whether a name belongs to a table, a view, a virtual table or one of its parts.
fn kind(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection
        .prepare("select type from pragma_table_list where schema = 'main' and name = ?1 collate nocase")?;
    statement.query_row(params![name], |row| row.get(0)).optional()
}

fn read_rows(
    connection: &Connection,
    table: &str,
    columns: &[String],
    key_at: &[usize],
) -> Result<Vec<ForeignRow>, Unreadable> {
    let broken = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            Unreadable::Broken(format!("table {table} takes more than {} s to read", LONGEST.as_secs()))
        }
        _ => Unreadable::Broken(error.to_string()),
    };
    let quoted: Vec<String> = columns.iter().map(|column| quote(column)).collect();
    // Sorted here: SQLite would first write the whole table to the disk.
    let text = format!("select {} from {}", quoted.join(", "), quote(table));
    let mut statement = connection.prepare(&text).map_err(broken)?;
    let mut found = statement.query([]).map_err(broken)?;
    let (mut rows, mut size) = (Vec::new(), 0);
    while let Some(row) = found.next().map_err(broken)? {
        let mut object = Map::new();
        for (at, column) in columns.iter().enumerate() {
            object.insert(column.clone(), json(row.get_ref(at).map_err(broken)?));
        }
        let keys: Vec<Key> = key_at.iter().map(|at| Key::of(&object[&columns[*at]])).collect();
        let key = keys.iter().map(Key::text).collect::<Vec<_>>().join(":");
        let document = Value::Object(object).to_string();
        size += document.len();
        if size > LARGEST_TABLE || rows.len() >= MOST_ROWS {
            return Err(Unreadable::Broken(format!("table {table} is larger than a client's")));
        }
        rows.push((keys, ForeignRow { key, document }));
    }
    rows.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// A part of a row's key, in SQLite's order: numbers by value, then texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i64),
    Text(String),
}

impl Key {
    fn of(value: &Value) -> Key {
        match (value.as_i64(), value) {
            (Some(number), _) => Key::Number(number),
            (None, Value::String(text)) => Key::Text(text.clone()),
            (None, other) => Key::Text(other.to_string()),
        }
    }

    fn text(&self) -> String {
        match self {
            Key::Number(number) => number.to_string(),
            Key::Text(text) => text.clone(),
        }
    }
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => Value::from(annals_core::to_hex(bytes)),
    }
}
