//! Queries about library items: the version in effect at a time, and all versions of one.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{span, time};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{FileId, Span, Time};

/// One version of a library item.
#[derive(Debug, Clone)]
pub struct ItemRow {
    pub key: String,
    pub version: i64,
    pub versions: i64,
    /// When this version began: the modification time of the file, or when it was first seen.
    pub changed_at: Time,
    pub deleted_at: Option<Time>,
    pub path: String,
    pub file: FileId,
    pub file_version: i64,
    pub span: Span,
}

impl Archive<'_> {
    /// Working directories of all sessions in the home of a file.
    pub fn session_folders_of_home(&self, file: FileId) -> Result<Vec<String>> {
        let mut statement = self.prepare(sql!(
            "select distinct session.cwd from session
             where session.instance = (select instance from file where id = $1) and session.cwd is not null
             and {visible_file} order by session.cwd"
        ))?;
        let rows = statement.query_map(params![file], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Size and BLAKE3 hash of another file in the same home, as last captured.
    pub fn content_in_home(&self, file: FileId, path: &str) -> Result<Option<(u64, String)>> {
        let mut statement = self.prepare(sql!(
            "select other.id, version.version, version.size from file other
             join version on version.file = other.id
             where other.instance = (select instance from file where id = $1) and other.path = $2 and {visible_file}
             order by version.version desc limit 1"
        ))?;
        let row = statement.query_row(params![file, path], |row| {
            Ok((row.get::<_, FileId>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let Some((other, version, size)) = row.optional()? else { return Ok(None) };
        let segments = self.store().segment_hashes(other, version)?;
        let hash = match segments.as_slice() {
            [(_, _, hash)] => annals_core::to_hex(hash),
            _ => {
                let mut hasher = blake3::Hasher::new();
                std::io::copy(&mut self.store().bytes(other, version), &mut hasher)?;
                hasher.finalize().to_hex().to_string()
            }
        };
        Ok(Some((u64::try_from(size).unwrap_or(0), hash)))
    }

    /// Items in effect at a time, ordered by key.
    pub fn items_in_force(&self, source: &str, stream: &str, then: Time) -> Result<Vec<ItemRow>> {
        let mut statement = self.prepare(sql!(
            "select record.key, record.version,
                    (select count(*) from record other where other.instance = record.instance
                     and other.stream = record.stream and other.key = record.key),
                    coalesce(record.at, record.seen_at), record.deleted_at, file.path, record.file,
                    record.file_version, record.byte_offset, record.length
             from record join instance on instance.id = record.instance join file on file.id = record.file
             where {visible} and instance.source = $1 and record.stream = $2
             and (record.deleted_at is null or record.deleted_at > $3)
             and record.version = (select max(version) from record newest where newest.instance = record.instance
                                   and newest.stream = record.stream and newest.key = record.key
                                   and coalesce(newest.at, newest.seen_at) <= $3)
             order by record.key, record.instance"
        ))?;
        let rows = statement.query_map(params![source, stream, then.micros()], item_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// All keys of a stream, including those of deleted items.
    pub fn item_keys(&self, source: &str, stream: &str) -> Result<Vec<String>> {
        let mut statement = self.prepare(sql!(
            "select distinct record.key from record join instance on instance.id = record.instance
             where {visible} and instance.source = $1 and record.stream = $2 order by record.key"
        ))?;
        let rows = statement.query_map(params![source, stream], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Times at which records of these streams changed or ended, oldest first, limited to the latest.
    pub fn item_moments(&self, streams: &[&str], limit: i64) -> Result<Vec<Time>> {
        let streams = serde_json::to_string(streams)?;
        let mut statement = self.prepare(sql!(
            "select moment from (
                    select coalesce(record.at, record.seen_at) as moment
                    from record join instance on instance.id = record.instance
                    where {visible} and record.stream in (select value from json_each($1))
                    union
                    select record.deleted_at from record join instance on instance.id = record.instance
                    where {visible} and record.stream in (select value from json_each($1))
                    and record.deleted_at is not null)
                 order by moment desc limit $2"
        ))?;
        let rows = statement.query_map(params![streams, limit], |row| row.get(0))?;
        let mut moments = rows.collect::<rusqlite::Result<Vec<i64>>>()?;
        moments.reverse();
        Ok(moments.into_iter().map(Time::from_micros).collect())
    }

    /// All versions of an item, oldest first.
    pub fn item_versions(&self, source: &str, stream: &str, key: &str) -> Result<Vec<ItemRow>> {
        let mut statement = self.prepare(sql!(
            "select record.key, record.version, 0, coalesce(record.at, record.seen_at), record.deleted_at, file.path,
                    record.file, record.file_version, record.byte_offset, record.length
             from record join instance on instance.id = record.instance join file on file.id = record.file
             where {visible} and instance.source = $1 and record.stream = $2 and record.key = $3
             order by record.instance, record.version"
        ))?;
        let rows = statement.query_map(params![source, stream, key], item_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

fn item_row(row: &Row<'_>) -> rusqlite::Result<ItemRow> {
    Ok(ItemRow {
        key: row.get(0)?,
        version: row.get(1)?,
        versions: row.get(2)?,
        changed_at: Time::from_micros(row.get(3)?),
        deleted_at: time(row, 4)?,
        path: row.get(5)?,
        file: row.get(6)?,
        file_version: row.get(7)?,
        span: span(row, 8)?,
    })
}
