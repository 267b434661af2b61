//! What happened between two moments: calls that failed, and files that were changed.

use rusqlite::params;

use super::{optional_raw, raw};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{Operation, Raw, SessionId, Time};

/// A call that failed.
#[derive(Debug)]
pub struct PeriodCall {
    pub session: SessionId,
    /// The session's working directory.
    pub cwd: Option<Raw>,
    pub tool: Raw,
    /// The command, or what else says what was called.
    pub title: Raw,
    pub exit_code: Option<i64>,
}

/// A file that a call wrote.
#[derive(Debug)]
pub struct PeriodTouch {
    pub session: SessionId,
    pub cwd: Option<Raw>,
    pub path: Raw,
}

impl Archive<'_> {
    /// Visits calls that failed from one moment to before another, without copies and without those of scripts, which
    /// fail with their script.
    pub fn failed_calls_between(
        &self,
        from: Time,
        to: Time,
        visit: &mut dyn FnMut(PeriodCall),
    ) -> Result<()> {
        let mut statement = self.prepare(sql!(
            "select tool_call.session, session.cwd, name.text, tool_call.title, tool_call.exit_code
             from session join instance on instance.id = session.instance
             join tool_call on tool_call.session = session.id join name on name.id = tool_call.name
             where {visible} and session.last_at >= $1 and tool_call.at >= $1 and tool_call.at < $2
             and tool_call.ok = 0 and tool_call.parent is null and tool_call.copied = 0 and not {twin:tool_call}"
        ))?;
        let mut rows = statement.query(params![from.micros(), to.micros()])?;
        while let Some(row) = rows.next()? {
            visit(PeriodCall {
                session: row.get(0)?,
                cwd: optional_raw(row, 1)?,
                tool: raw(row, 2)?,
                title: raw(row, 3)?,
                exit_code: row.get(4)?,
            });
        }
        Ok(())
    }

    /// Visits files that calls wrote from one moment to before another, without those of copied and failed calls.
    pub fn changes_between(&self, from: Time, to: Time, visit: &mut dyn FnMut(PeriodTouch)) -> Result<()> {
        let text = sql!(
            "select tool_call.session, session.cwd, name.text
             from session join instance on instance.id = session.instance
             join tool_call on tool_call.session = session.id
             join file_touch on file_touch.session = tool_call.session and file_touch.file = tool_call.file
                  and file_touch.byte_offset = tool_call.byte_offset
             join name on name.id = file_touch.path
             where {visible} and session.last_at >= $1 and tool_call.at >= $1 and tool_call.at < $2
             and file_touch.operation <> $3 and coalesce(tool_call.ok, 1) = 1
             and tool_call.copied = 0 and not {twin:tool_call}"
        );
        let mut statement = self.prepare(text)?;
        let read = Operation::Read.stored();
        let mut rows = statement.query(params![from.micros(), to.micros(), read])?;
        while let Some(row) = rows.next()? {
            visit(PeriodTouch { session: row.get(0)?, cwd: optional_raw(row, 1)?, path: raw(row, 2)? });
        }
        Ok(())
    }
}
