//! Digests of the rows of one file, as far as they depend on that file alone: for checks that must not write.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::Writer;
use super::digest::digest_row;
use crate::error::Result;
use crate::{CapturedFile, Store, sql};
use annals_core::{FileId, InstanceId};

/// Whether a row is a copy, and titles, totals and typed prompts, depend on other files: only a rebuild can compare them.
const ROWS_OF_FILE: &[(&str, &str)] = &[
    (
        "message",
        "select byte_offset, length, role, row.kind, at, row.key, text from message row
         left join name on name.id = row.model where row.file = ?1",
    ),
    ("message_line", "select byte_offset, line, length from message_line where file = ?1"),
    (
        "tool_call",
        "select byte_offset, length, at, row.key, call_id, name.text, kind, row.title, message, model.text, output_offset,
                output_length, detail_offset, detail_length, ended_at, ok, exit_code, duration_ms
         from tool_call row left join name on name.id = row.name left join name model on model.id = row.model
         where row.file = ?1",
    ),
    (
        "usage",
        "select byte_offset, length, at, row.key, text, input, output, cache_read, cache_write, cache_write_hour, reasoning,
                cost
         from usage row left join name on name.id = row.model where row.file = ?1",
    ),
    (
        "file_touch",
        "select byte_offset, number, text, operation, before_start, before_end, after_start, after_end
         from file_touch row left join name on name.id = row.path where row.file = ?1",
    ),
    ("coverage", "select status, kind, lines, bytes from coverage where file = ?1"),
    ("file", "select content_size, parsed from file where id = ?1"),
];

/// Sums of the digests of a file's rows, by table.
pub type FileDigests = BTreeMap<&'static str, u128>;

impl Store {
    /// An archive in memory, for rows that are compared and thrown away.
    pub fn in_memory() -> Result<Store> {
        #[expect(clippy::disallowed_methods, reason = "the store opens its own database here")]
        let connection = Connection::open_in_memory()?;
        Store::with_connection(connection, std::path::PathBuf::new(), &mut |_, _| {})
    }

    pub fn digest_file(&self, file: FileId) -> Result<FileDigests> {
        digest_file(&self.connection, file)
    }

    /// Whether rows of the file depend on other files: prompts that only a history has go to sessions of others.
    pub fn has_typed_prompts(&self, file: FileId) -> Result<bool> {
        let text = sql!("select exists (select 1 from typed_prompt where file = $1)");
        Ok(self.connection.query_row(text, [file], |row| row.get(0))?)
    }
}

impl Writer<'_> {
    pub fn digest_file(&self, file: FileId) -> Result<FileDigests> {
        digest_file(&self.transaction, file)
    }

    /// Makes room for the rows of a file of another archive, under its number. Returns the number of its home.
    pub fn adopt_file(&mut self, source: &str, file: &CapturedFile) -> Result<InstanceId> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into instance (source, machine, root, status, reason, first_seen)
             values ($1, '', '', 'available', '', 0)
             on conflict (source, machine, root) do update set root = excluded.root returning id"
        ))?;
        let instance: InstanceId = statement.query_row([source], |row| row.get(0))?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into file (id, instance, path, logical_path, store, reader, framing, encoding, document, mutable, version,
                               rows_version, size, content_size, parsed, reader_version, first_seen)
             values ($1, $2, $3, $4, '', $5, '', '', $6, $7, $8, $9, $10, 0, 0, 0, 0)"
        ))?;
        statement.execute(params![
            file.id,
            instance,
            file.path,
            file.logical_path,
            file.reader,
            file.document,
            file.mutable,
            file.version,
            file.rows_version,
            file.size as i64
        ])?;
        Ok(instance)
    }
}

fn digest_file(connection: &Connection, file: FileId) -> Result<FileDigests> {
    let mut digests = FileDigests::new();
    for (table, select) in ROWS_OF_FILE {
        let mut statement = connection.prepare(select)?;
        let columns = statement.column_count();
        let mut rows = statement.query([file])?;
        while let Some(row) = rows.next()? {
            let sum = digests.entry(table).or_default();
            *sum = sum.wrapping_add(digest_row(row, 0..columns)?);
        }
    }
    Ok(digests)
}
