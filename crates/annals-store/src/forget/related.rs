//! Everything that belongs to sessions: other sessions, lines, documents, and the same lines elsewhere.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;
use crate::write::Writer;
use crate::{Archive, Store, sql};
use annals_core::{FileId, SessionId, Time};

/// A place in the rows version of a file that belongs to a session.
#[derive(Debug, Clone, Copy)]
pub struct RelatedLine {
    pub file: FileId,
    pub offset: u64,
    /// It has a time of its own.
    pub is_timed: bool,
    /// The original is in another session.
    pub is_copy: bool,
}

/// What the rows of sessions amount to.
#[derive(Debug, Default, Clone, Copy)]
pub struct SessionCounts {
    pub messages: i64,
    pub calls: i64,
    pub full_outputs: i64,
    pub records: i64,
}

/// For the owner, who decides what to forget.
impl Store {
    /// The sessions with those that they started, and the same sessions in other homes.
    pub fn with_related_sessions(&self, sessions: &BTreeSet<SessionId>) -> Result<BTreeSet<SessionId>> {
        self.with_more(
            sessions,
            sql!(
                "select started.id from session own
                 join session started on started.instance = own.instance and started.parent = own.key
                      and started.parent_kind in ('sub_agent', 'review')
                 where own.id in (select value from json_each($1))
                 union
                 select same.id from session own join instance home on home.id = own.instance
                 join session same on same.key = own.key
                 join instance other on other.id = same.instance and other.source = home.source
                 where own.id in (select value from json_each($1))"
            ),
        )
    }

    /// With the sessions whose messages they repeat.
    pub fn with_origins(&self, sessions: &BTreeSet<SessionId>) -> Result<BTreeSet<SessionId>> {
        self.with_more(
            sessions,
            sql!(
                "select origin.id from session own join instance home on home.id = own.instance
                 join link on link.session = own.id and link.kind = 'copy'
                 join session origin on origin.key = link.other
                 join instance other on other.id = origin.instance and other.source = home.source
                 where own.id in (select value from json_each($1))"
            ),
        )
    }

    /// Adds what a statement finds for sessions, and for what it found, until it finds nothing new.
    fn with_more(&self, sessions: &BTreeSet<SessionId>, text: &str) -> Result<BTreeSet<SessionId>> {
        let mut all = sessions.clone();
        let mut newest = all.clone();
        let mut statement = self.connection.prepare_cached(text)?;
        while !newest.is_empty() {
            let found = statement.query_map(params![serde_json::to_string(&newest)?], |row| row.get(0))?;
            let found: BTreeSet<SessionId> = found.collect::<rusqlite::Result<_>>()?;
            newest = found.difference(&all).copied().collect();
            all.extend(&newest);
        }
        Ok(all)
    }

    /// The last time of each session, the source of its home, and its key.
    pub fn session_names(
        &self,
        sessions: &BTreeSet<SessionId>,
    ) -> Result<Vec<(String, String, Option<Time>)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select instance.source, session.key, session.last_at from session
             join instance on instance.id = session.instance
             where session.id in (select value from json_each($1)) order by session.id"
        ))?;
        let rows = statement.query_map(params![serde_json::to_string(sessions)?], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?.map(Time::from_micros)))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Sessions that people starred, in themselves or in one of their messages.
    pub fn starred_sessions(&self) -> Result<BTreeSet<SessionId>> {
        if !has_arrangements(&self.connection)? {
            return Ok(BTreeSet::new());
        }
        let mut statement = self.connection.prepare_cached(sql!(
            "select session.id from arrangement join instance on instance.source = arrangement.source
             join session on session.instance = instance.id and session.key = arrangement.target
             where arrangement.field = 'star' and arrangement.newest = 1 and arrangement.value is not null"
        ))?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn session_counts(&self, sessions: &BTreeSet<SessionId>) -> Result<SessionCounts> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select (select count(*) from message where session in (select value from json_each($1))),
                    (select count(*) from tool_call where session in (select value from json_each($1))),
                    (select count(*) from tool_call where session in (select value from json_each($1))
                     and full_output is not null),
                    (select count(*) from record join session on session.instance = record.instance
                     and session.key = record.session where session.id in (select value from json_each($1)))"
        ))?;
        Ok(statement.query_row(params![serde_json::to_string(sessions)?], |row| {
            Ok(SessionCounts {
                messages: row.get(0)?,
                calls: row.get(1)?,
                full_outputs: row.get(2)?,
                records: row.get(3)?,
            })
        })?)
    }

    /// Files that say something about these sessions, and whether they say nothing about others.
    pub fn files_of_sessions(&self, sessions: &BTreeSet<SessionId>) -> Result<Vec<(FileId, bool)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select part.file,
                    not exists (select 1 from session_part other where other.file = part.file
                                and other.session not in (select value from json_each($1)))
                    and not exists (select 1 from typed_prompt entry left join session own
                                    on own.instance = entry.instance and own.key = entry.session_key
                                    where entry.file = part.file
                                    and (own.id is null or own.id not in (select value from json_each($1))))
             from session_part part where part.session in (select value from json_each($1))
             group by part.file"
        ))?;
        let rows = statement
            .query_map(params![serde_json::to_string(sessions)?], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Files with records or full outputs of these sessions, with the place of each record.
    pub fn records_of_sessions(&self, sessions: &BTreeSet<SessionId>) -> Result<Vec<RelatedLine>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select record.file, record.byte_offset, 0, 0 from session
             join record on record.instance = session.instance and record.session = session.key
             where session.id in (select value from json_each($1))
             union
             select record.file, record.byte_offset, 0, 0 from tool_call
             join session on session.id = tool_call.session
             join record on record.instance = session.instance
                  and record.stream || '/' || record.key = tool_call.full_output
             where tool_call.session in (select value from json_each($1)) and tool_call.full_output is not null
             and not exists (select 1 from tool_call other join session owner on owner.id = other.session
                             where other.full_output = tool_call.full_output
                             and owner.instance = session.instance
                             and other.session not in (select value from json_each($1)))"
        ))?;
        let rows = statement.query_map(params![serde_json::to_string(sessions)?], related_line)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The lines of a session, in whatever file they are.
    pub fn lines_of_session(&self, session: SessionId) -> Result<Vec<RelatedLine>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select file, byte_offset, at is not null, copied from message where session = $1
             union all
             select line.file, line.line, message.at is not null, message.copied from message_line line
             join message on message.session = line.session and message.file = line.file
                  and message.byte_offset = line.byte_offset
             where line.session = $1
             union all
             select file, byte_offset, at is not null, copied from tool_call where session = $1
             union all
             select file, output_offset, at is not null, copied from tool_call
             where session = $1 and output_offset is not null
             union all
             select file, detail_offset, at is not null, copied from tool_call
             where session = $1 and detail_offset is not null
             union all
             select file, byte_offset, at is not null, copied from usage where session = $1
             union all
             select file, byte_offset, 0, 0 from node where session = $1
             union all
             select file, byte_offset, 0, 0 from summary where session = $1
             union all
             select entry.file, entry.byte_offset, 1, 0 from typed_prompt entry where entry.session = $1
             union all
             select entry.file, entry.byte_offset, 1, 0 from session own
             join typed_prompt entry on entry.instance = own.instance and entry.session_key = own.key
             where own.id = $1
             union all
             select entry.file, entry.byte_offset, 1, 0 from spoken
             join typed_prompt entry on entry.instance = spoken.instance and entry.words = spoken.words
                  and entry.session_key is null
                  and (spoken.at = 0 or entry.at between spoken.at - 60000000 and spoken.at + 60000000)
             where spoken.session = $1"
        ))?;
        let rows = statement.query_map(params![session], related_line)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The lines of other sessions that repeat lines of this one.
    pub fn copies_of_session(&self, session: SessionId) -> Result<Vec<RelatedLine>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select copy.file, copy.byte_offset, copy.at is not null, 0 from message own
             join message copy on copy.key = own.key and copy.session <> own.session
             where own.session = $1 and own.copied = 0
             union all
             select line.file, line.line, copy.at is not null, 0 from message own
             join message copy on copy.key = own.key and copy.session <> own.session
             join message_line line on line.session = copy.session and line.file = copy.file
                  and line.byte_offset = copy.byte_offset
             where own.session = $1 and own.copied = 0
             union all
             select copy.file, copy.byte_offset, copy.at is not null, 0 from tool_call own
             join tool_call copy on copy.key = own.key and copy.session <> own.session
             where own.session = $1 and own.copied = 0
             union all
             select copy.file, copy.output_offset, copy.at is not null, 0 from tool_call own
             join tool_call copy on copy.key = own.key and copy.session <> own.session
             where own.session = $1 and own.copied = 0 and copy.output_offset is not null
             union all
             select copy.file, copy.detail_offset, copy.at is not null, 0 from tool_call own
             join tool_call copy on copy.key = own.key and copy.session <> own.session
             where own.session = $1 and own.copied = 0 and copy.detail_offset is not null"
        ))?;
        let rows = statement.query_map(params![session], related_line)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl Archive<'_> {
    /// The machine that a session was captured on.
    pub fn session_machine(&self, source: &str, key: &str) -> Result<Option<String>> {
        let mut statement = self.prepare(sql!(
            "select instance.machine from session join instance on instance.id = session.instance
             where instance.source = $1 and session.key = $2 and {visible} order by instance.id limit 1"
        ))?;
        Ok(statement.query_row(params![source, key], |row| row.get(0)).optional()?)
    }
}

/// Whether the archive has stars, names and notes: older ones have not.
fn has_arrangements(connection: &Connection) -> Result<bool> {
    let mut statement = connection.prepare_cached(sql!(
        "select exists (select 1 from pragma_table_list where name = 'arrangement' and schema = 'main')"
    ))?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

impl Writer<'_> {
    /// Removes what people said about sessions that were removed.
    pub fn remove_orphaned_arrangements(&mut self) -> Result<()> {
        if has_arrangements(&self.transaction)? {
            self.transaction.execute_batch(
                "delete from arrangement where kind in ('session', 'message')
                 and exists (select 1 from removed join instance on instance.id = removed.instance
                             where removed.kind = 0 and removed.session = arrangement.target
                             and instance.source = arrangement.source)
                 and not exists (select 1 from session join instance on instance.id = session.instance
                                 where session.key = arrangement.target and instance.source = arrangement.source)",
            )?;
        }
        Ok(())
    }
}

fn related_line(row: &Row<'_>) -> rusqlite::Result<RelatedLine> {
    Ok(RelatedLine {
        file: row.get(0)?,
        offset: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
        is_timed: row.get(2)?,
        is_copy: row.get(3)?,
    })
}
