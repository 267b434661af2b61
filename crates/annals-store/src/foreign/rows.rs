//! Rows of plain tables as JSON objects.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde_json::{Map, Number, Value};

use super::{ForeignDatabase, ForeignRow, LARGEST_TABLE, LONGEST, MOST_ROWS, Unreadable, broken, quote};

impl ForeignDatabase {
    /// All rows of `table`, in the order of their keys.
    pub fn rows(&self, table: &str, key_column: &str) -> Result<Vec<ForeignRow>, Unreadable> {
        let columns = self.plain_columns_of(table)?;
        let place = |name: &str| columns.iter().position(|column| column == name);
        let Some(key_at) = key_column.split(',').map(place).collect::<Option<Vec<_>>>() else {
            return Err(Unreadable::Broken(format!("table {table} has no column {key_column}")));
        };
        self.limit_time();
        let rows = read_rows(&self.connection, table, &columns, &key_at)?;
        self.check_consistent()?;
        Ok(rows)
    }

    /// The number of rows in every table.
    pub fn count(&self) -> Result<Vec<(String, i64)>, Unreadable> {
        self.limit_time();
        count_rows(&self.connection).map_err(broken)
    }

    /// The columns of a table that rows can be read of.
    pub(super) fn plain_columns_of(&self, table: &str) -> Result<Vec<String>, Unreadable> {
        match kind(&self.connection, table).map_err(broken)?.as_deref() {
            Some("table") | None => {}
            Some(kind) => return Err(Unreadable::Broken(format!("{table} is a {kind}, not a table"))),
        }
        let columns = columns(&self.connection, table).map_err(broken)?;
        match (columns.is_empty(), tables(&self.connection).map_err(broken)?) {
            (true, 1..) => Err(Unreadable::NoTable),
            (true, _) => Err(Unreadable::Broken("contains no tables".into())),
            (false, _) => Ok(columns),
        }
    }
}

pub(super) fn count_rows(connection: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
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

pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
    statement.query_map(params![table], |row| row.get(0))?.collect()
}

fn tables(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("select count(*) from sqlite_schema where type = 'table'", [], |row| row.get(0))
}

/// Whether a name belongs to a table, a view, a virtual table or one of its parts.
pub(super) fn kind(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection
        .prepare("select type from pragma_table_list where schema = 'main' and name = ?1 collate nocase")?;
    statement.query_row(params![name], |row| row.get(0)).optional()
}

pub(super) fn read_rows(
    connection: &Connection,
    table: &str,
    columns: &[String],
    key_at: &[usize],
) -> Result<Vec<ForeignRow>, Unreadable> {
    let broken = |error: rusqlite::Error| cannot_read(table, &error);
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

/// Why a statement on a table failed.
pub(super) fn cannot_read(table: &str, error: &rusqlite::Error) -> Unreadable {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            Unreadable::Broken(format!("table {table} takes more than {} s to read", LONGEST.as_secs()))
        }
        _ => broken(error),
    }
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

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => Value::from(annals_core::to_hex(bytes)),
    }
}
