//! Queries for lists of records: every row of a stream in a stable order, or what changed since a commit.

use rusqlite::{OptionalExtension, Row, params};

use super::sessions::{SESSION_COLUMNS, SessionRow, session_row};
use super::{
    CALL_COLUMNS, CALL_JOINS, CallRow, MESSAGES, MessageRow, RECORD_COLUMNS, RecordRow, call_row,
    message_row, record_row, time,
};
use crate::error::Result;
use crate::write::changes::RemovedKind;
use crate::{Archive, sql};
use annals_core::{ContentKey, FileId, SessionId, Time};

/// Where a row is in the order of its stream: session, file and offset of a transcript row, or the number of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowPlace(pub i64, pub i64, pub i64);

/// Selects rows of a source.
#[derive(Debug, Clone, Copy)]
pub struct RowsQuery<'q> {
    pub source: &'q str,
    /// The id of a session, or the key or the client's id of a message or call.
    pub key: Option<&'q str>,
    /// Only rows of the session with this id.
    pub session: Option<&'q str>,
    /// Only rows changed by a later commit; all if 0.
    pub changed_after: i64,
    pub after: RowPlace,
}

/// A row that was removed.
#[derive(Debug, Clone)]
pub struct RemovedRow {
    pub id: i64,
    pub session: String,
    pub key: ContentKey,
    /// The client's own id, where messages have one.
    pub name: Option<String>,
    pub at: Option<Time>,
}

/// The last commit, and how often the rows were rebuilt: reading cannot resume from a commit before the last rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveState {
    pub commit: i64,
    pub rebuilds: i64,
}

impl Archive<'_> {
    pub fn state(&self) -> Result<ArchiveState> {
        let number = |name: &str| -> Result<i64> {
            let mut statement =
                self.store().connection.prepare_cached(sql!("select value from setting where name = $1"))?;
            Ok(statement.query_row(params![name], |row| row.get(0)).optional()?.unwrap_or(0))
        };
        Ok(ArchiveState { commit: number("commits")?, rebuilds: number("rebuilds")? })
    }

    /// Row ids of sessions that a later commit changed, or a record of them; all if the commit is negative.
    pub fn session_rows_after(&self, commit: i64) -> Result<Vec<SessionId>> {
        let mut statement = self.prepare(sql!(
            "select session.id from session join instance on instance.id = session.instance
             where {visible} and (session.changed > $1 or session.key in
                 (select record.session from record where record.changed > $1 and record.session is not null))
             order by session.id"
        ))?;
        let rows = statement.query_map([commit], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Visits sessions, ordered by row id.
    pub fn each_session(
        &self,
        query: &RowsQuery<'_>,
        only_agents: bool,
        visit: &mut dyn FnMut(SessionRow) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.prepare(&format!(
            "select {SESSION_COLUMNS} from session join instance on instance.id = session.instance
             where instance.source = ?1 and {{visible}} and (?2 is null or session.key = ?2)
             and session.changed >= ?3 and session.id > ?4 and (not ?5 or parent_kind in ('sub_agent', 'review'))
             order by session.id"
        ))?;
        let changed = if query.changed_after == 0 { 0 } else { query.changed_after + 1 };
        let values = params![query.source, query.key.or(query.session), changed, query.after.0, only_agents];
        each(statement.query(values)?, session_row, &mut |mut row| {
            self.count_once(&mut row)?;
            visit(row)
        })
    }

    /// Visits messages, ordered by place. A message that is in a session twice is visited once.
    pub fn each_message(
        &self,
        query: &RowsQuery<'_>,
        visit: &mut dyn FnMut(MessageRow) -> Result<bool>,
    ) -> Result<()> {
        let key = query.key.map(|key| ContentKey::from_hex(key).unwrap_or(ContentKey::of(&[key.as_bytes()])));
        let text = format!(
            "{MESSAGES} where instance.source = ?1 and {{visible}} 
             and (?2 is null or message.key = ?2 or message.key in (select key from node_name where name = ?7))
             and (message.session, message.file, message.byte_offset) > (?3, ?4, ?5)
             and (?6 is null or session.key = ?6) {}
             and not exists (select 1 from message twin where twin.key = message.key
                             and twin.session = message.session
                             and (twin.copied, twin.file, twin.byte_offset) < (message.copied, message.file, message.byte_offset))
             order by message.session, message.file, message.byte_offset",
            changed("message", query.changed_after)
        );
        let mut statement = self.prepare(&text)?;
        let RowPlace(session, file, offset) = query.after;
        let key = key.map(ContentKey::stored);
        let values = params![query.source, key, session, file, offset, query.session, query.key];
        each(statement.query(values)?, message_row, visit)
    }

    /// Visits calls, ordered by place. A call that is in a session twice is visited once.
    pub fn each_call(
        &self,
        query: &RowsQuery<'_>,
        visit: &mut dyn FnMut(CallRow) -> Result<bool>,
    ) -> Result<()> {
        let hex = query.key.and_then(ContentKey::from_hex).map(ContentKey::stored);
        let text = format!(
            "select {CALL_COLUMNS} from tool_call {CALL_JOINS} where instance.source = ?1 and {{visible}}
             and (?2 is null or tool_call.call_id = ?2 or tool_call.key = ?3
                  or tool_call.key in (select key from node_name where name = ?2))
             and (tool_call.session, tool_call.file, tool_call.byte_offset) > (?4, ?5, ?6)
             and (?7 is null or session.key = ?7) {}
             and not exists (select 1 from tool_call twin where twin.key = tool_call.key
                             and twin.session = tool_call.session
                             and (twin.copied, twin.file, twin.byte_offset)
                                 < (tool_call.copied, tool_call.file, tool_call.byte_offset))
             order by tool_call.session, tool_call.file, tool_call.byte_offset",
            changed("tool_call", query.changed_after)
        );
        let mut statement = self.prepare(&text)?;
        let RowPlace(session, file, offset) = query.after;
        let values = params![query.source, query.key, hex, session, file, offset, query.session];
        each(statement.query(values)?, call_row, visit)
    }

    /// Visits records of a plain stream, ordered by id: all versions of one key, or the newest of every key.
    pub fn each_record(
        &self,
        source: &str,
        stream: &str,
        key: Option<&str>,
        (changed_after, after): (i64, i64),
        visit: &mut dyn FnMut(RecordRow) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.prepare(&format!(
            "select {RECORD_COLUMNS}
             from record join instance on instance.id = record.instance join file on file.id = record.file
             where instance.source = ?1 and record.stream = ?2 and record.id > ?4 and {{visible}} {}
             and (record.key = ?3 or (?3 is null and record.version =
                  (select max(version) from record newest where newest.instance = record.instance
                   and newest.stream = record.stream and newest.key = record.key)))
             order by record.id",
            if changed_after == 0 { String::new() } else { format!("and record.changed > {changed_after}") }
        ))?;
        each(statement.query(params![source, stream, key, after])?, record_row, visit)
    }

    /// Rows of a source that later commits removed, ordered by id.
    pub fn removed_rows(
        &self,
        source: &str,
        kind: RemovedKind,
        changed_after: i64,
        after: i64,
    ) -> Result<Vec<RemovedRow>> {
        let mut statement = self.prepare(sql!(
            "select removed.id, removed.session, removed.key, removed.at, node_name.name
             from removed join instance on instance.id = removed.instance
             left join node_name on node_name.key = removed.key and removed.kind > 0
             where instance.source = $1 and removed.kind = $2 and removed.changed > $3 and removed.id > $4
             and {visible} order by removed.id limit 1000"
        ))?;
        let rows = statement.query_map(params![source, kind as i64, changed_after, after], |row| {
            Ok(RemovedRow {
                id: row.get(0)?,
                session: row.get(1)?,
                key: ContentKey::from_stored(row.get(2)?),
                at: time(row, 3)?,
                name: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The same message at other places of its session.
    pub fn duplicates(&self, message: &MessageRow) -> Result<Vec<MessageRow>> {
        let mut statement = self.prepare(&format!(
            "{MESSAGES} where message.key = ?1 and message.session = ?2 and {{visible}}
             and (message.file, message.byte_offset) <> (?3, ?4) order by message.file, message.byte_offset"
        ))?;
        let offset = message.span.offset as i64;
        let values = params![message.key.stored(), message.session_id, message.file, offset];
        let rows = statement.query_map(values, message_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The keys of calls that are blocks of a message.
    pub fn calls_in(&self, message: &MessageRow) -> Result<Vec<ContentKey>> {
        let mut statement = self.prepare(sql!(
            "select key from tool_call where session = $1 and file = $2 and byte_offset >= $3 and message = $3
             and {visible_session} order by byte_offset"
        ))?;
        let values = params![message.session_id, message.file, message.span.offset as i64];
        let rows = statement.query_map(values, |row| Ok(ContentKey::from_stored(row.get(0)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Offsets of the lines of messages and of the results of their calls in a part of a file of a session, each with
    /// its message. A result long after its call is not among them: its line names its parent.
    pub fn line_owners(
        &self,
        session: SessionId,
        file: FileId,
        (from, until): (u64, u64),
    ) -> Result<Vec<(u64, ContentKey)>> {
        let mut statement = self.prepare(sql!(
            "select byte_offset, key from message
             where session = $1 and file = $2 and byte_offset >= $3 and byte_offset < $4 and {visible_session}
             union select line, message.key from message_line
             join message on message.session = message_line.session and message.file = message_line.file
                  and message.byte_offset = message_line.byte_offset
             where message_line.session = $1 and message_line.file = $2 and message_line.byte_offset >= $3 - $5
             and message_line.byte_offset < $4 and line >= $3 and line < $4 and {visible_session}
             union select coalesce(output_offset, detail_offset), message.key from tool_call
             join message on message.session = tool_call.session and message.file = tool_call.file
                  and message.byte_offset = tool_call.message
             where tool_call.session = $1 and tool_call.file = $2 and tool_call.byte_offset >= $3 - $5
             and tool_call.byte_offset < $4 and {visible_session}
             and coalesce(output_offset, detail_offset) >= $3 and coalesce(output_offset, detail_offset) < $4
             order by 1"
        ))?;
        let bounds = params![session, file, from as i64, until as i64, LONGEST_WAIT];
        let rows = statement.query_map(bounds, |row| {
            Ok((row.get::<_, i64>(0)? as u64, ContentKey::from_stored(row.get(1)?)))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// The bytes between the first line of a message or call and its last line or result.
const LONGEST_WAIT: i64 = 16 << 20;

/// A condition on changed rows. They are in changed sessions, which are few and found first.
fn changed(table: &str, after: i64) -> String {
    match after {
        0 => String::new(),
        after => format!(
            "and {table}.session in (select id from session where changed > {after}) and {table}.changed > {after}"
        ),
    }
}

fn each<T>(
    mut rows: rusqlite::Rows<'_>,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
    visit: &mut dyn FnMut(T) -> Result<bool>,
) -> Result<()> {
    while let Some(row) = rows.next()? {
        if !visit(read(row)?)? {
            break;
        }
    }
    Ok(())
}
