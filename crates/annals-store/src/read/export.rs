//! Queries for exports: what changed, in which months rows are, and the rows of one session for typed tables.

use std::collections::HashMap;

use rusqlite::params;

use super::{CALL_COLUMNS, CALL_JOINS, CallRow, TouchRow, call_row, offset, time, touch_row};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{ContentKey, FileId, SessionId, Tally, Time};

/// Rows of transcripts that have a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedRows {
    Messages,
    Calls,
    Usage,
    Touches,
}

/// How a message counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCount {
    /// A copy of a message of another session, or of another member.
    pub is_copy: bool,
    /// A message as people count them, in this session.
    pub is_counted: bool,
}

/// A file that a call touched, with its call.
#[derive(Debug, Clone)]
pub struct CallTouch {
    pub touch: TouchRow,
    pub call: ContentKey,
    pub at: Option<Time>,
    pub is_copy: bool,
}

impl Archive<'_> {
    /// The last commit that changed each session or one of its records.
    pub fn session_changes(&self) -> Result<HashMap<SessionId, i64>> {
        let mut statement = self.prepare(sql!(
            "select session.id, max(session.changed, coalesce(of_records.changed, 0))
             from session join instance on instance.id = session.instance
             left join (select session as key, max(changed) as changed from record
                        where session is not null group by session) of_records on of_records.key = session.key
             where {visible}"
        ))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The days of each session's rows since 1970; none for rows without a time.
    pub fn session_days(&self, rows: TimedRows) -> Result<Vec<(SessionId, Option<i64>)>> {
        let table = match rows {
            TimedRows::Messages => "message",
            TimedRows::Calls => "tool_call",
            TimedRows::Usage => "usage",
            TimedRows::Touches => {
                "(select file_touch.session, at from file_touch join tool_call
                    on tool_call.session = file_touch.session and tool_call.file = file_touch.file
                    and tool_call.byte_offset = file_touch.byte_offset)"
            }
        };
        // Rounds down before 1970 too.
        let mut statement = self.prepare(&format!(
            "select distinct row.session,
                    (row.at - ((row.at % 86400000000) + 86400000000) % 86400000000) / 86400000000
             from {table} row join session on session.id = row.session
             join instance on instance.id = session.instance where {{visible}} order by 1, 2"
        ))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// How each message of a session counts, by its place.
    pub fn message_counts(&self, session: SessionId) -> Result<HashMap<(FileId, u64), MessageCount>> {
        let [message, rewritten, aside] = [Tally::Message, Tally::Rewritten, Tally::Aside].map(Tally::stored);
        let mut statement = self.prepare(&format!(
            "select message.file, message.byte_offset, message.copied or {{twin:message}},
                    message.tally in ({message}, {rewritten}, {aside})
             from message join session on session.id = message.session
             join instance on instance.id = session.instance
             where message.session = ?1 and {{visible}}"
        ))?;
        let rows = statement.query_map(params![session], |row| {
            let (is_copy, is_message): (bool, bool) = (row.get(2)?, row.get(3)?);
            let count = MessageCount { is_copy, is_counted: is_message && !is_copy };
            Ok(((row.get(0)?, offset(row, 1)?), count))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Visits the calls of a session in order, each with whether it is a copy.
    pub fn each_call_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(CallRow, bool) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.prepare(&format!(
            "select {CALL_COLUMNS}, tool_call.copied or {{twin:tool_call}} from tool_call {CALL_JOINS}
             where tool_call.session = ?1 and {{visible}} order by tool_call.file, tool_call.byte_offset"
        ))?;
        let mut rows = statement.query(params![session])?;
        while let Some(row) = rows.next()? {
            visit(call_row(row)?, row.get(22)?)?;
        }
        Ok(())
    }

    /// Visits the files that calls of a session touched, in order.
    pub fn each_touch_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(CallTouch) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.prepare(sql!(
            "select name.text, file_touch.operation, before_start, before_end, after_start, after_end, tool_call.key,
                    tool_call.at, tool_call.copied or {twin:tool_call}
             from file_touch join name on name.id = file_touch.path
             join tool_call on tool_call.session = file_touch.session and tool_call.file = file_touch.file
                  and tool_call.byte_offset = file_touch.byte_offset
             join session on session.id = file_touch.session join instance on instance.id = session.instance
             where file_touch.session = $1 and {visible}
             order by file_touch.file, file_touch.byte_offset, file_touch.number"
        ))?;
        let mut rows = statement.query(params![session])?;
        while let Some(row) = rows.next()? {
            visit(CallTouch {
                touch: touch_row(row)?,
                call: ContentKey::from_stored(row.get(6)?),
                at: time(row, 7)?,
                is_copy: row.get(8)?,
            })?;
        }
        Ok(())
    }
}
