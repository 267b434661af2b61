//! Queries: rows as they are stored, text as `Raw`.

pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod export;
pub(crate) mod insights;
pub(crate) mod library;
pub(crate) mod overview;
pub(crate) mod pages;
pub(crate) mod period;
pub(crate) mod records;
pub(crate) mod sessions;
pub(crate) mod steps;
pub(crate) mod transcript;
pub(crate) mod tree;
pub(crate) mod usage;

use std::io::Read;

use rusqlite::{OptionalExtension, Row, params};

use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{
    CallKind, ContentKey, Encoding, FileId, InstanceId, LineStatus, MessageKind, Operation, Picodollars,
    Range, Raw, Role, SessionId, SourceStatus, Span, Time, Tokens,
};

#[derive(Debug, Clone)]
pub struct InstanceRow {
    pub id: InstanceId,
    pub source: String,
    pub last_scanned: Option<Time>,
    pub sessions: i64,
    pub messages: i64,
    pub last_activity: Option<Time>,
    pub files: i64,
    pub bytes: i64,
    pub gaps: i64,
}

/// A home, as of the last run.
#[derive(Debug, Clone)]
pub struct HomeRow {
    pub root: Raw,
    pub status: SourceStatus,
    pub reason: Raw,
    pub last_scanned: Option<Time>,
    pub has_sessions: bool,
}

#[derive(Debug, Clone)]
pub struct MessageRow {
    pub session: String,
    pub session_id: SessionId,
    pub file: FileId,
    pub span: Span,
    pub role: Role,
    pub kind: MessageKind,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub copied: bool,
    pub model: Option<String>,
}

#[derive(Debug, Clone)]
pub struct CallRow {
    pub session: String,
    pub session_id: SessionId,
    pub file: FileId,
    pub span: Span,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub copied: bool,
    pub call_id: String,
    pub name: String,
    pub kind: CallKind,
    pub title: Raw,
    pub parent: Option<u64>,
    pub full_output: Option<String>,
    pub model: Option<String>,
    pub output: Option<Span>,
    pub detail: Option<Span>,
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct TouchRow {
    pub path: Raw,
    pub operation: Operation,
    pub before: Option<Range>,
    pub after: Option<Range>,
}

#[derive(Debug, Clone)]
pub struct RecordRow {
    pub id: i64,
    pub key: String,
    pub version: i64,
    pub session: Option<String>,
    pub at: Option<Time>,
    pub file: FileId,
    pub file_version: i64,
    pub encoding: Encoding,
    pub span: Span,
    pub deleted_at: Option<Time>,
}

#[derive(Debug, Clone)]
pub struct FileRow {
    pub id: FileId,
    pub source: String,
    pub instance: InstanceId,
    pub path: String,
    pub logical_path: String,
    pub store: String,
    pub version: i64,
    pub size: i64,
    pub content_size: i64,
    pub parsed: i64,
    pub document: bool,
    pub twin: bool,
    pub gone: bool,
    pub modified: Option<Time>,
    /// Its permissions, if they were captured.
    pub mode: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct CoverageRow {
    pub file: FileId,
    pub status: LineStatus,
    pub kind: String,
    pub lines: i64,
    pub bytes: i64,
}

impl Archive<'_> {
    pub fn instances(&self) -> Result<Vec<InstanceRow>> {
        let mut statement = self.prepare(sql!(
            "select id, source, last_scanned,
                    (select count(*) from session where instance = instance.id),
                    (select cast(coalesce(sum(messages), 0) as bigint)
                     from session where instance = instance.id),
                    (select max(last_at) from session where instance = instance.id),
                    (select count(*) from file where instance = instance.id and not document),
                    (select cast(coalesce(sum(version.size), 0) as bigint) from file
                     join version on version.file = file.id where file.instance = instance.id),
                    (select count(*) from gap where instance = instance.id
                     and status in ('pending', 'in_progress'))
             from instance where {visible} order by source, id"
        ))?;
        let rows = statement.query_map([], |row| {
            Ok(InstanceRow {
                id: row.get(0)?,
                source: row.get(1)?,
                last_scanned: time(row, 2)?,
                sessions: row.get(3)?,
                messages: row.get(4)?,
                last_activity: time(row, 5)?,
                files: row.get(6)?,
                bytes: row.get(7)?,
                gaps: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The homes of a source, or of all sources.
    pub fn homes(&self, source: Option<&str>) -> Result<Vec<HomeRow>> {
        let mut statement = self.prepare(sql!(
            "select root, status, reason, last_scanned,
                    exists (select 1 from session where session.instance = instance.id)
             from instance where ($1 is null or source = $1) and {visible} order by source, id"
        ))?;
        let rows = statement.query_map(params![source], |row| {
            Ok(HomeRow {
                root: raw(row, 0)?,
                status: SourceStatus::from_name(row.get_ref(1)?.as_str().unwrap_or_default())
                    .unwrap_or_default(),
                reason: raw(row, 2)?,
                last_scanned: time(row, 3)?,
                has_sessions: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The newest version of a small file.
    pub fn newest_content(&self, instance: InstanceId, path: &str) -> Result<Option<Raw>> {
        let mut statement = self.prepare(sql!(
            "select id, version from file where instance = $1 and path = $2 and {visible_instance}"
        ))?;
        let found = statement
            .query_row(params![instance, path], |row| Ok((row.get::<_, FileId>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        let Some((file, version)) = found else { return Ok(None) };
        let mut bytes = Vec::new();
        self.store().bytes(file, version).take(1 << 20).read_to_end(&mut bytes)?;
        Ok(Some(Raw::new(bytes)))
    }

    /// Spans of the further lines of a message.
    pub fn message_lines(&self, session: SessionId, file: FileId, offset: u64) -> Result<Vec<Span>> {
        let mut statement = self.prepare(sql!(
            "select line, length from message_line
             where session = $1 and file = $2 and byte_offset = $3 and {visible_session} order by line"
        ))?;
        let rows = statement.query_map(params![session, file, offset as i64], |row| span(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn touches(&self, session: SessionId, file: FileId, call: u64) -> Result<Vec<TouchRow>> {
        let mut statement = self.prepare(sql!(
            "select name.text, operation, before_start, before_end, after_start, after_end
             from file_touch join name on name.id = file_touch.path
             where session = $1 and file = $2 and byte_offset = $3 and {visible_session} order by number"
        ))?;
        let rows = statement.query_map(params![session, file, call as i64], touch_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn files(&self, source: Option<&str>) -> Result<Vec<FileRow>> {
        let mut statement = self.prepare(sql!(
            "select file.id, instance.source, instance.id, path, store, version, size, content_size, parsed,
                    document, rows_owner is not null, gone_at is not null, modified, mode, logical_path
             from file join instance on instance.id = file.instance
             where ($1 is null or instance.source = $1) and {visible} order by instance.id, path"
        ))?;
        let rows = statement.query_map(params![source], |row| {
            Ok(FileRow {
                id: row.get(0)?,
                source: row.get(1)?,
                instance: row.get(2)?,
                path: row.get(3)?,
                store: row.get(4)?,
                version: row.get(5)?,
                size: row.get(6)?,
                content_size: row.get(7)?,
                parsed: row.get(8)?,
                document: row.get(9)?,
                twin: row.get(10)?,
                gone: row.get(11)?,
                modified: time(row, 12)?,
                mode: row.get(13)?,
                logical_path: row.get(14)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn coverage(&self, source: Option<&str>) -> Result<Vec<CoverageRow>> {
        let mut statement = self.prepare(sql!(
            "select coverage.file, coverage.status, coverage.kind, coverage.lines, coverage.bytes from coverage
             join file on file.id = coverage.file join instance on instance.id = file.instance
             where ($1 is null or instance.source = $1) and {visible} order by coverage.file, coverage.status, coverage.kind"
        ))?;
        let rows = statement.query_map(params![source], |row| {
            Ok(CoverageRow {
                file: row.get(0)?,
                status: LineStatus::from_name(row.get_ref(1)?.as_str().unwrap_or_default())
                    .unwrap_or(LineStatus::Unknown),
                kind: row.get(2)?,
                lines: row.get(3)?,
                bytes: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

pub(crate) const MESSAGES: &str =
    "select session.key, message.file, message.byte_offset, message.length, message.role, message.kind,
    message.at, message.key, message.copied, name.text, message.session
    from message join session on session.id = message.session join instance on instance.id = session.instance
    join file on file.id = message.file left join name on name.id = message.model";

pub(crate) const CALL_COLUMNS: &str =
    "session.key, tool_call.file, tool_call.byte_offset, tool_call.length, tool_call.at,
    tool_call.key, tool_call.copied, tool_call.call_id, name.text, tool_call.kind, tool_call.title,
    tool_call.parent, model.text, output_offset, output_length, detail_offset, detail_length, ok, exit_code,
    duration_ms, session.id, full_output";

pub(crate) const CALL_JOINS: &str = "join session on session.id = tool_call.session
    join instance on instance.id = session.instance join file on file.id = tool_call.file
    join name on name.id = tool_call.name left join name model on model.id = tool_call.model";

pub(crate) const RECORD_COLUMNS: &str =
    "record.key, record.version, record.session, record.at, record.file, record.file_version, file.encoding,
    record.byte_offset, record.length, record.deleted_at, record.id";

/// Expects the columns of `RECORD_COLUMNS`.
pub(crate) fn record_row(row: &Row<'_>) -> rusqlite::Result<RecordRow> {
    Ok(RecordRow {
        key: row.get(0)?,
        version: row.get(1)?,
        session: row.get(2)?,
        at: time(row, 3)?,
        file: row.get(4)?,
        file_version: row.get(5)?,
        encoding: crate::files::encoding(row.get_ref(6)?.as_str().unwrap_or_default()),
        span: span(row, 7)?,
        deleted_at: time(row, 9)?,
        id: row.get(10)?,
    })
}

pub(crate) fn touch_row(row: &Row<'_>) -> rusqlite::Result<TouchRow> {
    Ok(TouchRow {
        path: raw(row, 0)?,
        operation: Operation::from_stored(row.get(1)?),
        before: range(row, 2)?,
        after: range(row, 4)?,
    })
}

pub(crate) fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        session: row.get(0)?,
        file: row.get(1)?,
        span: span(row, 2)?,
        role: Role::from_stored(row.get(4)?),
        kind: MessageKind::from_stored(row.get(5)?),
        at: time(row, 6)?,
        key: ContentKey::from_stored(row.get(7)?),
        copied: row.get(8)?,
        model: row.get(9)?,
        session_id: row.get(10)?,
    })
}

pub(crate) fn call_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        session: row.get(0)?,
        file: row.get(1)?,
        span: span(row, 2)?,
        at: time(row, 4)?,
        key: ContentKey::from_stored(row.get(5)?),
        copied: row.get(6)?,
        call_id: row.get(7)?,
        name: row.get(8)?,
        kind: CallKind::from_stored(row.get(9)?),
        title: raw(row, 10)?,
        parent: row.get::<_, Option<i64>>(11)?.map(|offset| offset as u64),
        model: row.get(12)?,
        output: optional_span(row, 13)?,
        detail: optional_span(row, 15)?,
        ok: row.get(17)?,
        exit_code: row.get(18)?,
        duration_ms: row.get(19)?,
        session_id: row.get(20)?,
        full_output: row.get(21)?,
    })
}

pub(crate) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Time::from_micros))
}

pub(crate) fn raw(row: &Row<'_>, at: usize) -> rusqlite::Result<Raw> {
    Ok(Raw::new(row.get_ref(at)?.as_bytes_or_null()?.unwrap_or_default()))
}

pub(crate) fn optional_raw(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Raw>> {
    Ok(row.get_ref(at)?.as_bytes_or_null()?.map(Raw::new))
}

/// Reads six columns in the order of the fields.
pub(crate) fn tokens(row: &Row<'_>, at: usize) -> rusqlite::Result<Tokens> {
    Ok(Tokens {
        input: row.get(at)?,
        output: row.get(at + 1)?,
        cache_read: row.get(at + 2)?,
        cache_write: row.get(at + 3)?,
        cache_write_hour: row.get(at + 4)?,
        reasoning: row.get(at + 5)?,
    })
}

pub(crate) fn cost(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Picodollars>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Picodollars::from_stored))
}

pub(crate) fn span(row: &Row<'_>, at: usize) -> rusqlite::Result<Span> {
    Ok(Span { offset: row.get::<_, i64>(at)? as u64, length: row.get::<_, i64>(at + 1)? as u64 })
}

/// A byte offset.
pub(crate) fn offset(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(at)? as u64)
}

fn optional_span(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Span>> {
    let (offset, length): (Option<i64>, Option<i64>) = (row.get(at)?, row.get(at + 1)?);
    Ok(offset.zip(length).map(|(offset, length)| Span { offset: offset as u64, length: length as u64 }))
}

fn range(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Range>> {
    let (start, end): (Option<u32>, Option<u32>) = (row.get(at)?, row.get(at + 1)?);
    Ok(start.zip(end).map(|(start, end)| Range { start, end }))
}
