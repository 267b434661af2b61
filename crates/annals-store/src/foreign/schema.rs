//! The schema of a client's database, and a new database made of it and of archived rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::rows::{columns, kind, read_rows};
use super::{BINARY, ForeignDatabase, Unreadable, broken, quote};
use crate::error::Result;

/// What a database needs besides the rows of captured tables, so that its client opens it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignSchema {
    /// The path of the database in the home.
    pub database: String,
    pub application_id: i64,
    pub user_version: i64,
    /// The statements that created its objects: tables, then indexes, views and triggers.
    pub tables: Vec<ForeignObject>,
    pub others: Vec<ForeignObject>,
    /// Columns with binary values, by table: rows that are documents have these as hexadecimal text.
    pub binary: BTreeMap<String, BTreeSet<String>>,
    /// Names of documents that are lines of rows of several tables.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub documents: BTreeSet<String>,
    /// Rows of tables in which the client notes the state of the database itself, such as its migrations.
    pub rows: BTreeMap<String, Vec<Map<String, Value>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignObject {
    pub name: String,
    pub sql: String,
}

impl ForeignDatabase {
    /// The schema of the database at the path `name` of a home, with the rows of the tables in `state`. Values of
    /// `captured` tables are checked for their types.
    pub fn schema(
        &self,
        name: &str,
        captured: &[&str],
        state: &[&str],
    ) -> std::result::Result<ForeignSchema, Unreadable> {
        self.limit_time();
        let connection = &self.connection;
        let mut schema = schema_of(connection, name, &[captured, state].concat()).map_err(broken)?;
        for table in state {
            let columns = plain_columns(connection, table).map_err(broken)?;
            if !columns.is_empty() {
                let rows = read_rows(connection, table, &columns, &[0])?.into_iter();
                let rows = rows.filter_map(|row| serde_json::from_str(&row.document).ok()).collect();
                schema.rows.insert((*table).to_owned(), rows);
            }
        }
        self.check_consistent()?;
        if schema.tables.is_empty() { Err(Unreadable::NoTable) } else { Ok(schema) }
    }
}

fn schema_of(connection: &Connection, name: &str, tables: &[&str]) -> rusqlite::Result<ForeignSchema> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let objects = |condition: &str| -> rusqlite::Result<Vec<ForeignObject>> {
        let mut statement = connection.prepare(&format!(
            "select name, sql from sqlite_schema
             where sql is not null and name not like 'sqlite\\_%' escape '\\' and {condition} order by rowid"
        ))?;
        statement.query_map([], |row| Ok(ForeignObject { name: row.get(0)?, sql: row.get(1)? }))?.collect()
    };
    let mut schema = ForeignSchema {
        database: name.to_owned(),
        application_id: number("application_id")?,
        user_version: number("user_version")?,
        tables: objects("type = 'table'")?,
        others: objects("type <> 'table'")?,
        ..ForeignSchema::default()
    };
    for table in tables {
        for column in &plain_columns(connection, table)? {
            let binary = format!(
                "select exists (select 1 from {} where typeof({}) = 'blob')",
                quote(table),
                quote(column)
            );
            if connection.query_row(&binary, [], |row| row.get(0))? {
                schema.binary.entry((*table).to_owned()).or_default().insert(column.clone());
            }
        }
    }
    Ok(schema)
}

/// The columns of a plain table; none for a view or a virtual table.
fn plain_columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let is_plain = kind(connection, table)?.as_deref() == Some("table");
    if is_plain { columns(connection, table) } else { Ok(Vec::new()) }
}

/// Writes a new database with this schema. `fill` emits the captured rows of every table. Equal input gives equal bytes.
pub fn write_database(
    path: &Path,
    schema: &ForeignSchema,
    fill: impl FnOnce(&mut dyn FnMut(&str, &Map<String, Value>) -> Result<()>) -> Result<()>,
) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a new database for a client")]
    let connection = Connection::open(path)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "application_id", schema.application_id)?;
    connection.pragma_update(None, "user_version", schema.user_version)?;
    connection.execute_batch("begin")?;
    // A virtual table creates the tables that it consists of.
    let is_virtual = |object: &&ForeignObject| {
        let start: Vec<String> = object.sql.split_whitespace().take(2).map(str::to_ascii_lowercase).collect();
        start == ["create", "virtual"]
    };
    let virtual_tables = schema.tables.iter().filter(is_virtual);
    for table in virtual_tables.chain(schema.tables.iter().filter(|table| !is_virtual(table))) {
        if columns(&connection, &table.name)?.is_empty() {
            create(&connection, &table.sql)?;
        }
    }
    for (table, rows) in &schema.rows {
        for row in rows {
            insert(&connection, schema, table, row)?;
        }
    }
    fill(&mut |table, row| insert(&connection, schema, table, row))?;
    for object in &schema.others {
        create(&connection, &object.sql)?;
    }
    connection.execute_batch("commit")?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Runs the statement that created an object. A schema that was tampered with may hold anything else.
fn create(connection: &Connection, statement: &str) -> Result<()> {
    let creates = statement.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("create"));
    if creates {
        // More than one statement is an error.
        connection.execute(statement, [])?;
    }
    Ok(())
}

fn insert(
    connection: &Connection,
    schema: &ForeignSchema,
    table: &str,
    row: &Map<String, Value>,
) -> Result<()> {
    let known = columns(connection, table)?;
    let binary = schema.binary.get(table);
    let (mut names, mut cells) = (Vec::new(), Vec::new());
    for (name, value) in row.iter().filter(|(name, _)| known.contains(name)) {
        names.push(quote(name));
        cells.push(cell(value, binary.is_some_and(|columns| columns.contains(name))));
    }
    let marks = vec!["?"; names.len()].join(", ");
    let statement = format!("insert into {} ({}) values ({marks})", quote(table), names.join(", "));
    connection.prepare_cached(&statement)?.execute(params_from_iter(cells))?;
    Ok(())
}

fn cell(value: &Value, is_binary: bool) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Integer((*flag).into()),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Cell::Integer(integer),
            None => number.as_f64().map_or(Cell::Null, Cell::Real),
        },
        Value::String(text) => match annals_core::from_hex(text).filter(|_| is_binary) {
            Some(bytes) => Cell::Blob(bytes),
            None => Cell::Text(text.clone()),
        },
        Value::Object(fields) => {
            match fields.get(BINARY).and_then(Value::as_str).and_then(annals_core::from_hex) {
                Some(bytes) => Cell::Blob(bytes),
                None => Cell::Text(value.to_string()),
            }
        }
        Value::Array(_) => Cell::Text(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::write_database;
    use crate::foreign::ForeignDatabase;

    #[expect(clippy::disallowed_methods, reason = "a client's database")]
    fn open(path: &Path) -> Connection {
        Connection::open(path).unwrap()
    }

    #[test]
    fn a_database_is_made_of_its_schema_and_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (folder.path().join("a.sqlite"), folder.path().join("b.sqlite"));
        let client = open(&theirs);
        client
            .execute_batch(
                "pragma user_version = 7; pragma foreign_keys = off;
                 create table parent (id text primary key, \"odd name\" real, bytes blob, loose);
                 create table child (id integer primary key autoincrement, parent text references parent(id),
                                     twice integer generated always as (id * 2) virtual);
                 create table state (version bigint primary key, checksum blob not null) without rowid;
                 create virtual table words using fts5(word);
                 create index by_name on parent (\"odd name\");
                 create trigger grow after insert on parent begin insert into child (parent) values (new.id); end;
                 insert into parent values ('a', 1.0, x'00ff', '00ff'), ('b', null, null, 12);
                 insert into child (parent) values ('gone');
                 insert into state values (1, x'abcd');",
            )
            .unwrap();
        drop(client);
        let scratch = folder.path().join("scratch");
        let read = |database: &Path| ForeignDatabase::open(database, &scratch).unwrap();
        let schema = read(&theirs).schema("a.sqlite", &["parent", "child"], &["state", "none"]).unwrap();
        let rows = |database: &Path, table: &str, key: &str| read(database).rows(table, key).unwrap();
        write_database(&ours, &schema, |emit| {
            for table in ["child", "parent"] {
                for row in rows(&theirs, table, "id") {
                    emit(table, &serde_json::from_str(&row.document).unwrap())?;
                }
            }
            Ok(())
        })
        .unwrap();
        let made = open(&ours);
        let dump = |table: &str, key: &str| (rows(&ours, table, key), rows(&theirs, table, key));
        for (table, key) in [("parent", "id"), ("child", "id"), ("state", "version")] {
            let (ours, theirs) = dump(table, key);
            assert_eq!(ours, theirs, "{table}");
        }
        let one = |sql: &str| made.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(one("pragma integrity_check"), "ok");
        let types = "select group_concat(typeof(\"odd name\") || typeof(bytes) || typeof(loose)) from parent";
        assert_eq!(one(types), "realblobtext,nullnullinteger");
        assert_eq!(one("select cast(user_version as text) from pragma_user_version"), "7");
        let again = read(&ours).schema("a.sqlite", &["parent", "child"], &["state", "none"]).unwrap();
        assert_eq!(again.others, schema.others);
        assert_eq!(again.rows, schema.rows);
    }
}
