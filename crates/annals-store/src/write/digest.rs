//! Digests of all rows, independent of the numbers that rows have: equal digests mean equal answers.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::Writer;
use crate::error::Result;

/// For each table: what a row is about, and its values, with keys and words in place of numbers. Times of capture and
/// numbers of commits are not in it: a rebuild does not know them all.
const ROWS: &[(&str, &str)] = &[
    (
        "session",
        "select source || ' session ' || key, title, cwd, git_branch, parent, parent_kind, models, archived, started_at,
                last_at, facts, messages, user_messages, assistant_messages, tool_calls, input_tokens, output_tokens,
                cache_read_tokens, cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, gone_at is null
         from session join instance on instance.id = session.instance",
    ),
    (
        "session_part",
        "select path, session.key, rank, part.facts from session_part part
         left join session on session.id = part.session left join file on file.id = part.file",
    ),
    (
        "message",
        "select path, session.key, byte_offset, length, role, kind, at, row.key, inherited, copied, tally, text
         from message row left join session on session.id = row.session left join file on file.id = row.file
         left join name on name.id = row.model",
    ),
    (
        "message_line",
        "select path, session.key, byte_offset, line, length from message_line row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    (
        "tool_call",
        "select path, session.key, byte_offset, length, at, row.key, inherited, copied, call_id, name.text, kind, row.title,
                row.parent, message, model.text, full_output, output_offset, output_length, detail_offset, detail_length,
                ended_at, ok, exit_code, duration_ms
         from tool_call row left join session on session.id = row.session left join file on file.id = row.file
         left join name on name.id = row.name left join name model on model.id = row.model",
    ),
    (
        "usage",
        "select path, session.key, byte_offset, length, at, row.key, inherited, copied, text, input, output, cache_read,
                cache_write, cache_write_hour, reasoning, row.cost
         from usage row left join session on session.id = row.session left join file on file.id = row.file
         left join name on name.id = row.model",
    ),
    (
        "usage_sum",
        "select source || ' session ' || key, day, text, prompt_class, reported, responses, input, output, cache_read,
                cache_write, cache_write_hour, reasoning, row.cost
         from usage_sum row left join session on session.id = row.session
         left join instance on instance.id = session.instance left join name on name.id = row.model",
    ),
    (
        "file_touch",
        "select file.path, session.key, byte_offset, number, text, operation, before_start, before_end, after_start, after_end
         from file_touch row left join session on session.id = row.session left join file on file.id = row.file
         left join name on name.id = row.path",
    ),
    (
        "link",
        "select path, session.key, kind, other, position from link row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    (
        "node",
        "select path, session.key, byte_offset, row.position, row.key, row.parent, current, shown from node row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    (
        "record",
        "select path, stream, row.key, row.version, session, at, file_version, byte_offset, length, hash, deleted_at is null
         from record row left join file on file.id = row.file",
    ),
    (
        "summary",
        "select path, byte_offset, row_key, text, session.key from summary row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    (
        "landmark",
        "select path, row_key, session.key, inherited from landmark row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    ("project", "select file.path, name, row.path from project row left join file on file.id = row.file"),
    (
        "typed_prompt",
        "select path, byte_offset, length, row.session_key, project, at, kind, words, row.title, session.key, checked
         from typed_prompt row left join session on session.id = row.session left join file on file.id = row.file",
    ),
    (
        "spoken",
        "select path, session.key, byte_offset, at, words from spoken row
         left join session on session.id = row.session left join file on file.id = row.file",
    ),
    ("coverage", "select path, status, kind, lines, bytes from coverage row left join file on file.id = row.file"),
    ("malformed", "select path, byte_offset, length, what from malformed row left join file on file.id = row.file"),
    ("reader_state", "select path, state from reader_state row left join file on file.id = row.file"),
    (
        "file",
        "select path, content_size, parsed from file where rows_owner is null",
    ),
];

/// Digests by table and by what rows are about.
pub type RowDigests = BTreeMap<(&'static str, String), u128>;

impl Writer<'_> {
    /// Digests of all rows as this transaction sees them.
    pub fn digest_rows(&self) -> Result<RowDigests> {
        let mut digests = RowDigests::new();
        for (table, select) in ROWS {
            let mut statement = self.transaction.prepare(select)?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let about = row.get_ref(0)?.as_str().unwrap_or("nothing").to_owned();
                let sum = digests.entry((table, about)).or_default();
                *sum = sum.wrapping_add(digest_row(row, 1..columns)?);
            }
        }
        self.digest_index(&mut digests)?;
        Ok(digests)
    }
}

/// The digest of some columns of a row.
pub(crate) fn digest_row(row: &Row<'_>, columns: Range<usize>) -> Result<u128> {
    let mut hasher = blake3::Hasher::new();
    for at in columns {
        let (kind, bytes): (u8, &[u8]) = match row.get_ref(at)? {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()),
            ValueRef::Real(number) => (2, &number.to_le_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(bytes) => (4, bytes),
        };
        hasher.update(&[kind]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    Ok(short_digest(hasher.finalize().as_bytes()))
}

fn short_digest(row: &[u8]) -> u128 {
    let mut digest = [0; 16];
    for (to, from) in digest.iter_mut().zip(blake3::hash(row).as_bytes()) {
        *to = *from;
    }
    u128::from_le_bytes(digest)
}

/// Adds one row: the sum does not depend on the order of rows.
pub(crate) fn add_digest(digests: &mut RowDigests, table: &'static str, about: &str, row: &[u8]) {
    let sum = digests.entry((table, about.to_owned())).or_default();
    *sum = sum.wrapping_add(short_digest(row));
}
