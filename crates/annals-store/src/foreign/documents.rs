//! Rows of several tables as documents of lines: each line is a row, with the rows that belong to it.

use std::collections::{BTreeMap, HashMap};

use annals_core::{ChildTable, LineTable};
use rusqlite::types::ValueRef;
use rusqlite::{Row, params};
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use super::rows::cannot_read;
use super::{ForeignDatabase, LARGEST_TABLE, Unreadable, broken, quote};

/// The name of the one field of a binary value in a document.
pub const BINARY: &str = "$binary";

/// Rows of a table as they go into a document.
struct Selected {
    table: &'static str,
    columns: Vec<String>,
    sql: String,
    key_at: usize,
}

impl ForeignDatabase {
    /// The keys of all documents, each with a stamp that changes with any of its rows. Reads no long values.
    pub fn document_stamps(
        &self,
        lines: &'static [LineTable],
    ) -> Result<BTreeMap<String, String>, Unreadable> {
        self.limit_time();
        let mut stamps: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (at, table) in tables_of(lines).into_iter().enumerate() {
            let columns = match self.plain_columns_of(table.name) {
                Err(Unreadable::NoTable) if at > 0 => continue,
                columns => columns?,
            };
            let has = |name: &str| columns.iter().any(|column| column == name);
            if !has(table.document_column) {
                return Err(missing(table.name, table.document_column));
            }
            let changed = match has(table.changed_column) {
                true => quote(table.changed_column),
                false => "null".into(),
            };
            // In the order of the table: an index would lead all over a large file.
            let sql = format!(
                "select {}, rowid, {changed} from {} not indexed",
                quote(table.document_column),
                quote(table.name)
            );
            let failed = |error: rusqlite::Error| cannot_read(table.name, &error);
            let mut statement = self.connection.prepare(&sql).map_err(failed)?;
            let mut rows = statement.query([]).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                let key = key_of(row, 0).map_err(failed)?;
                let mut hasher = blake3::Hasher::new();
                let number: i64 = row.get(1).map_err(failed)?;
                hasher.update(&(at as u64).to_le_bytes()).update(&number.to_le_bytes());
                hasher.update(key_of(row, 2).map_err(failed)?.as_bytes());
                let hash = hasher.finalize();
                let part: [u8; 8] = std::array::from_fn(|at| hash.as_bytes()[at]);
                let stamp = stamps.entry(key).or_default();
                *stamp = (stamp.0 + 1, stamp.1.wrapping_add(u64::from_le_bytes(part)));
            }
        }
        self.check_consistent()?;
        let stamps = stamps.into_iter();
        Ok(stamps.map(|(key, (rows, sum))| (key, format!("{rows}:{sum:016x}"))).collect())
    }

    /// The document with this key, all of it from one moment.
    pub fn document(&self, lines: &'static [LineTable], key: &str) -> Result<Vec<u8>, Unreadable> {
        self.limit_time();
        let moment = self.connection.unchecked_transaction().map_err(broken)?;
        let mut out = String::new();
        for line in lines {
            let own = (line.document_column, line.key_column, line.order);
            let Some(selected) = self.select(line.table, own)? else { continue };
            let mut below = Vec::new();
            for child in line.children {
                below.push((child.table, self.children(child, key)?));
            }
            self.each_row(&selected, key, &mut |row_key, row| {
                start_field(&mut out, '{', selected.table);
                out.push_str(&row);
                for (table, rows) in &mut below {
                    if let Some(rows) = rows.remove(&row_key) {
                        push_children(&mut out, ',', table, &rows);
                    }
                }
                out.push_str("}\n");
                within_limit(&out, selected.table)
            })?;
            // Rows whose row is not there.
            for (table, rows) in below {
                for rows in rows.into_values() {
                    push_children(&mut out, '{', table, &rows);
                    out.push_str("}\n");
                }
            }
        }
        moment.finish().map_err(broken)?;
        self.check_consistent()?;
        Ok(out.into_bytes())
    }

    /// The rows of a table that are on the lines of others, by the key of their line.
    fn children(&self, child: &ChildTable, key: &str) -> Result<BTreeMap<String, Vec<String>>, Unreadable> {
        let mut found: HashMap<String, Vec<String>> = HashMap::new();
        let own = (child.document_column, child.parent_column, child.order);
        if let Some(selected) = self.select(child.table, own)? {
            let mut size = 0;
            self.each_row(&selected, key, &mut |parent, row| {
                size += row.len();
                if size > LARGEST_TABLE {
                    return Err(too_large(child.table));
                }
                found.entry(parent).or_default().push(row);
                Ok(())
            })?;
        }
        Ok(found.into_iter().collect())
    }

    /// How to read the rows of a document; `None` if this version of the client has no such table.
    fn select(
        &self,
        table: &'static str,
        (document, key, order): (&str, &str, &str),
    ) -> Result<Option<Selected>, Unreadable> {
        let columns = match self.plain_columns_of(table) {
            Err(Unreadable::NoTable) => return Ok(None),
            columns => columns?,
        };
        let place = |name: &str| columns.iter().position(|column| column == name);
        let key_at = place(key).ok_or_else(|| missing(table, key))?;
        place(document).ok_or_else(|| missing(table, document))?;
        let order: Vec<String> = order.split(',').filter(|name| place(name).is_some()).map(quote).collect();
        let order = if order.is_empty() { "rowid".to_owned() } else { order.join(", ") };
        let names: Vec<String> = columns.iter().map(|column| quote(column)).collect();
        let sql = format!(
            "select {} from {} where {} = ?1 order by {order}",
            names.join(", "),
            quote(table),
            quote(document)
        );
        Ok(Some(Selected { table, columns, sql, key_at }))
    }

    fn each_row(
        &self,
        selected: &Selected,
        key: &str,
        emit: &mut dyn FnMut(String, String) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let failed = |error: rusqlite::Error| cannot_read(selected.table, &error);
        let mut statement = self.connection.prepare_cached(&selected.sql).map_err(failed)?;
        let mut rows = statement.query(params![key]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let mut text = String::new();
            for (at, column) in selected.columns.iter().enumerate() {
                start_field(&mut text, if at == 0 { '{' } else { ',' }, column);
                push_cell(&mut text, row.get_ref(at).map_err(failed)?);
            }
            text.push('}');
            emit(key_of(row, selected.key_at).map_err(failed)?, text)?;
        }
        Ok(())
    }
}

/// A table of a document, for its stamp.
struct StampedTable {
    name: &'static str,
    document_column: &'static str,
    changed_column: &'static str,
}

fn tables_of(lines: &'static [LineTable]) -> Vec<StampedTable> {
    let mut tables = Vec::new();
    for line in lines {
        let (document_column, changed_column) = (line.document_column, line.changed_column);
        tables.push(StampedTable { name: line.table, document_column, changed_column });
        tables.extend(line.children.iter().map(|child| StampedTable {
            name: child.table,
            document_column: child.document_column,
            changed_column: child.changed_column,
        }));
    }
    tables
}

fn missing(table: &str, column: &str) -> Unreadable {
    Unreadable::Broken(format!("table {table} has no column {column}"))
}

fn too_large(table: &str) -> Unreadable {
    Unreadable::Broken(format!("table {table} is larger than a client's"))
}

fn within_limit(document: &str, table: &str) -> Result<(), Unreadable> {
    if document.len() > LARGEST_TABLE { Err(too_large(table)) } else { Ok(()) }
}

fn key_of(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Blob(bytes) => annals_core::to_hex(bytes),
        ValueRef::Null => String::new(),
    })
}

fn start_field(out: &mut String, before: char, name: &str) {
    out.push(before);
    out.push_str(&Value::from(name).to_string());
    out.push(':');
}

fn push_children(out: &mut String, before: char, table: &str, rows: &[String]) {
    start_field(out, before, table);
    out.push('[');
    out.push_str(&rows.join(","));
    out.push(']');
}

/// A value as JSON. JSON in a text is part of the document as it is, so that it can be read in place; binary values are
/// marked as such, so that they come back as what they were.
fn push_cell(out: &mut String, value: ValueRef<'_>) {
    let value = match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            if is_plain_json(&text) {
                out.push_str(&text);
                return;
            }
            Value::from(text)
        }
        ValueRef::Blob(bytes) => {
            start_field(out, '{', BINARY);
            out.push_str(&Value::from(annals_core::to_hex(bytes)).to_string());
            out.push('}');
            return;
        }
    };
    out.push_str(&value.to_string());
}

/// An object or a list on one line.
fn is_plain_json(text: &str) -> bool {
    let is_marked = text.get(1..).is_some_and(|rest| rest.trim_start().starts_with("\"$binary\""));
    text.starts_with(['{', '['])
        && text.ends_with(['}', ']'])
        && !is_marked
        && !text.bytes().any(|byte| byte < b' ')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use annals_core::{ChildTable, LineTable};
    use rusqlite::Connection;

    use super::is_plain_json;
    use crate::foreign::ForeignDatabase;

    const LINES: &[LineTable] = &[LineTable {
        table: "message",
        document_column: "session_id",
        key_column: "id",
        order: "time_created,id",
        changed_column: "time_updated",
        children: &[ChildTable {
            table: "part",
            document_column: "session_id",
            parent_column: "message_id",
            order: "id",
            changed_column: "time_updated",
        }],
    }];

    #[expect(clippy::disallowed_methods, reason = "a client's database")]
    fn client(folder: &std::path::Path) -> Connection {
        let client = Connection::open(folder.join("a.db")).unwrap();
        client
            .execute_batch(
                r#"create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
                create table part (id text primary key, message_id text, session_id text, time_updated integer, data text);
                insert into message values ('m2', 's', 2, 2, '{"a": 1}'), ('m1', 's', 1, 1, 'no json'), ('m3', 't', 1, 1, x'00ff');
                insert into part values ('p2', 'm1', 's', 1, '[1]'), ('p1', 'm1', 's', 1, '{"x":
                1}'), ('p3', 'gone', 's', 1, '{');"#,
            )
            .unwrap();
        client
    }

    #[test]
    fn rows_become_lines_with_what_belongs_to_them() {
        let folder = tempfile::tempdir().unwrap();
        drop(client(folder.path()));
        let scratch = folder.path().join("scratch");
        let database = ForeignDatabase::open(&folder.path().join("a.db"), &scratch).unwrap();
        let document = String::from_utf8(database.document(LINES, "s").unwrap()).unwrap();
        let lines: Vec<&str> = document.lines().collect();
        assert!(lines[0].contains(r#""data":"no json"},"part":[{"id":"p1""#), "{document}");
        assert!(
            lines[0].contains(r#""data":"{\"x\":\n"#) && lines[0].ends_with(r#""data":[1]}]}"#),
            "{document}"
        );
        assert!(lines[1].contains(r#""data":{"a": 1}}"#), "{document}");
        assert!(lines[2].starts_with(r#"{"part":[{"id":"p3""#), "{document}");
        let other = String::from_utf8(database.document(LINES, "t").unwrap()).unwrap();
        assert!(other.contains(r#""data":{"$binary":"00ff"}"#), "{other}");
        assert!(!scratch.exists(), "no copy is needed");
    }

    #[test]
    fn stamps_change_with_their_rows_only() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(folder.path());
        client.pragma_update(None, "journal_mode", "wal").unwrap();
        let read = || {
            let scratch = folder.path().join("scratch");
            let database = ForeignDatabase::open(&folder.path().join("a.db"), &scratch).unwrap();
            database.document_stamps(LINES).unwrap()
        };
        let before = read();
        client.execute("update part set time_updated = 9 where id = 'p3'", []).unwrap();
        let after = read();
        assert_ne!(before["s"], after["s"]);
        assert_eq!(before["t"], after["t"]);
        client.execute("delete from message where id = 'm3'", []).unwrap();
        assert!(!read().contains_key("t"));
    }

    #[test]
    fn a_database_is_read_while_its_client_writes() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(folder.path());
        client.pragma_update(None, "journal_mode", "wal").unwrap();
        // There is something in the log already, as there is while a client runs.
        client.execute("update message set id = id", []).unwrap();
        client.execute_batch("begin immediate; insert into message values ('m4', 'u', 1, 1, '{}')").unwrap();
        let scratch = folder.path().join("scratch");
        let database = ForeignDatabase::open(&folder.path().join("a.db"), &scratch).unwrap();
        assert!(!database.document_stamps(LINES).unwrap().contains_key("u"), "not committed");
        client.execute_batch("commit").unwrap();
        assert!(database.document_stamps(LINES).unwrap().contains_key("u"));
        assert!(!scratch.exists(), "no copy is needed");
    }

    #[test]
    fn what_is_left_of_a_killed_client_is_read_from_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(folder.path());
        client.pragma_update(None, "journal_mode", "wal").unwrap();
        client.execute("insert into message values ('m4', 'u', 1, 1, '{}')", []).unwrap();
        let left = folder.path().join("left");
        std::fs::create_dir(&left).unwrap();
        for name in ["a.db", "a.db-wal"] {
            std::fs::copy(folder.path().join(name), left.join(name)).unwrap();
        }
        let scratch = folder.path().join("scratch");
        let database = ForeignDatabase::open(&left.join("a.db"), &scratch).unwrap();
        assert!(database.document_stamps(LINES).unwrap().contains_key("u"));
        drop(database);
        let files = || std::fs::read_dir(&left).unwrap().count();
        assert_eq!(files(), 2, "nothing is written beside it");
    }

    #[test]
    fn only_json_on_one_line_is_part_of_the_document() {
        assert!(is_plain_json("{\"a\":[1, 2]}") && is_plain_json("[]"));
        for text in ["{", "1", "\"a\"", "{}\n", "{\n}", "{\"$binary\":\"00\"}", "{} []"] {
            assert!(!is_plain_json(text), "{text}");
        }
    }
}
