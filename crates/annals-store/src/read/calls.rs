//! Lists of calls over all sessions: those of a tool, those that failed, and the slowest ones.

use rusqlite::params;

use super::usage::CallFilter;
use super::{optional_raw, raw};
use crate::Archive;
use crate::error::Result;
use annals_core::{ContentKey, Raw, SessionId, Time};

/// Which calls are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPart {
    All,
    Failed,
}

/// The order of a list of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOrder {
    Latest,
    /// Calls of unknown duration are left out.
    Slowest,
}

/// A call in a list.
#[derive(Debug)]
pub struct ListedCall {
    pub session: SessionId,
    /// The step that contains it.
    pub step: ContentKey,
    pub tool: Raw,
    pub title: Raw,
    /// The working directory of its session.
    pub cwd: Option<Raw>,
    pub at: Option<Time>,
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
    pub milliseconds: Option<i64>,
}

impl Archive<'_> {
    /// The first calls in an order, of one tool or of all, without copies and without those that a script made.
    pub fn listed_calls(
        &self,
        filter: &CallFilter<'_>,
        tool: Option<&str>,
        (part, order): (CallPart, CallOrder),
        limit: i64,
    ) -> Result<Vec<ListedCall>> {
        let failed = match part {
            CallPart::All => "",
            CallPart::Failed => "and tool_call.ok = 0",
        };
        let (timed, order) = match order {
            CallOrder::Latest => ("", "coalesce(tool_call.at, 0) desc"),
            CallOrder::Slowest => (
                "and coalesce(tool_call.duration_ms, tool_call.ended_at - tool_call.at) is not null",
                "milliseconds desc",
            ),
        };
        let text = format!(
            "select tool_call.session, coalesce((select message.key from message where message.session = tool_call.session
                        and message.file = tool_call.file and message.byte_offset = tool_call.message), tool_call.key),
                    name.text, tool_call.title, session.cwd, tool_call.at, tool_call.ok, tool_call.exit_code,
                    coalesce(tool_call.duration_ms, (tool_call.ended_at - tool_call.at) / 1000) as milliseconds
             from instance join session on session.instance = instance.id
             join tool_call on tool_call.session = session.id join name on name.id = tool_call.name
             where instance.source = ?1 and {{visible}} and tool_call.copied = 0 and not {{twin:tool_call}}
             and tool_call.parent is null and (?6 is null or name.text = ?6) {failed} {timed}
             and coalesce(session.last_at, ?2) >= ?2 and coalesce(tool_call.at, session.last_at) >= ?2
             and coalesce(tool_call.at, session.last_at, ?2) < ?4 and (?5 is null or instance.machine = ?5)
             and (?3 is null or session.cwd = ?3 or substr(session.cwd, 1, length(?3) + 1) = ?3 || '/')
             order by {order}, tool_call.session, tool_call.file, tool_call.byte_offset limit ?7"
        );
        let mut statement = self.prepare(&text)?;
        let (source, since, project, until, machine) = filter.values();
        let mut rows = statement.query(params![source, since, project, until, machine, tool, limit])?;
        let mut calls = Vec::new();
        while let Some(row) = rows.next()? {
            calls.push(ListedCall {
                session: row.get(0)?,
                step: ContentKey::from_stored(row.get(1)?),
                tool: raw(row, 2)?,
                title: raw(row, 3)?,
                cwd: optional_raw(row, 4)?,
                at: row.get::<_, Option<i64>>(5)?.map(Time::from_micros),
                ok: row.get(6)?,
                exit_code: row.get(7)?,
                milliseconds: row.get(8)?,
            });
        }
        Ok(calls)
    }
}
