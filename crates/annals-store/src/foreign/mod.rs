//! Reads a table of a client's own SQLite database from a private copy, so that a running client is never disturbed.

mod schema;

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Number, Value};

use crate::read_only_flags;

pub use schema::{ForeignSchema, read_schema, write_database};

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
    read_rows(&connection, table, &columns, &key_at).map_err(|error| broken(&error))
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
    let connection = Connection::open_with_flags(address, read_only_flags() | OpenFlags::SQLITE_OPEN_URI)
        .map_err(|error| broken(&error))?;
    count_rows(&connection).map_err(|error| broken(&error))
}

fn count_rows(connection: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut statement = connection.prepare(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name",
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
        let connection = match Connection::open(&self.database) {
            Ok(connection) => connection,
            Err(_) => Connection::open_with_flags(&self.database, read_only_flags())?,
        };
        Ok(connection)
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        // The next copy removes what a crash leaves behind.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("select count(*) from sqlite_schema where type = 'table'", [], |row| row.get(0))
}

fn read_rows(
    connection: &Connection,
    table: &str,
    columns: &[String],
    key_at: &[usize],
) -> rusqlite::Result<Vec<ForeignRow>> {
    let quoted: Vec<String> = columns.iter().map(|column| quote(column)).collect();
    let keys: Vec<&str> = key_at.iter().map(|at| quoted[*at].as_str()).collect();
    let text = format!("select {} from {} order by {}", quoted.join(", "), quote(table), keys.join(", "));
    let mut statement = connection.prepare(&text)?;
    let rows = statement.query_map([], |row| {
        let mut object = Map::new();
        for (at, column) in columns.iter().enumerate() {
            object.insert(column.clone(), json(row.get_ref(at)?));
        }
        let keys = key_at.iter().map(|at| match &object[&columns[*at]] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let key = keys.collect::<Vec<_>>().join(":");
        Ok(ForeignRow { key, document: Value::Object(object).to_string() })
    })?;
    rows.collect()
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
