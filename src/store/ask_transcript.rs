//! Questions about one session's conversation: its rows in order, a stretch at a time.

use rusqlite::params;

use super::Store;
use super::ask::{CALLS, CallRow, MESSAGES, MessageRow, call_row, message_row};
use crate::model::{Result, Scope};

/// Rows of one file of a session behind a place.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub session: i64,
    pub file: i64,
    pub after: i64,
    pub limit: i64,
    /// Also what was copied from another session.
    pub copies: bool,
}

impl Store {
    /// The files that a session's rows stand in, by name (which begins with their start).
    pub fn transcript_files(&self, _scope: &Scope, session: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(super::sql!(
            "select part.file from session_part part join file on file.id = part.file
             where part.session = $1 order by file.unit, file.id"
        ))?;
        let rows = statement.query_map([session], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn messages_in(&self, _scope: &Scope, stretch: &Stretch) -> Result<Vec<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.session = ?1 and message.file = ?2 and message.place > ?3
             and (?5 or not message.copied) order by message.place limit ?4"
        );
        let mut statement = self.connection.prepare_cached(&text)?;
        let Stretch { session, file, after, limit, copies } = *stretch;
        let rows = statement.query_map(params![session, file, after, limit, copies], message_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Tokens of responses that stand at or behind a place and before another.
    pub fn usage_between(
        &self,
        _scope: &Scope,
        session: i64,
        file: i64,
        from: i64,
        until: i64,
    ) -> Result<Option<[i64; 6]>> {
        let mut statement = self.connection.prepare_cached(super::sql!(
            "select input, output, cache_read, cache_write, cache_write_hour, reasoning from usage
             where session = $1 and file = $2 and place >= $3 and place < $4"
        ))?;
        let mut rows = statement.query([session, file, from, until])?;
        let mut sums: Option<[i64; 6]> = None;
        while let Some(row) = rows.next()? {
            let sums = sums.get_or_insert_default();
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum += row.get::<_, i64>(at)?;
            }
        }
        Ok(sums)
    }

    /// Calls that are not blocks of a message.
    pub fn lone_calls_in(&self, _scope: &Scope, stretch: &Stretch) -> Result<Vec<CallRow>> {
        let text = format!(
            "{CALLS} where tool_call.session = ?1 and tool_call.file = ?2 and tool_call.place > ?3
             and tool_call.message is null and (?5 or not tool_call.copied) order by tool_call.place limit ?4"
        );
        let mut statement = self.connection.prepare_cached(&text)?;
        let Stretch { session, file, after, limit, copies } = *stretch;
        let rows = statement.query_map(params![session, file, after, limit, copies], call_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls that are blocks of a message, whose last line ends at `end`.
    pub fn calls_of_message(&self, _scope: &Scope, message: &MessageRow, end: u64) -> Result<Vec<CallRow>> {
        let text = format!(
            "{CALLS} where tool_call.session = ?1 and tool_call.file = ?2 and tool_call.place >= ?3
             and tool_call.place < ?4 and tool_call.message = ?3 order by tool_call.place"
        );
        let mut statement = self.connection.prepare_cached(&text)?;
        let place = message.span.offset as i64;
        let rows =
            statement.query_map(params![message.session_id, message.file, place, end as i64], call_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
