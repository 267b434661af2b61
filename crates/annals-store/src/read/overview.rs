//! Queries about many sessions at once: their order by a measure, tallies of those on a page, counts by what they have
//! in common, and the hours in which people work.

use rusqlite::ToSql;

use super::optional_raw;
use super::sessions::{SessionFilter, session_conditions};
use super::usage::{TOTAL_OF, UsageSum, usage_sum};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{MessageKind, Raw, SessionId, Time};

/// What sessions can be ordered by, besides their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Messages,
    Failures,
    /// From the start to the last message.
    Duration,
}

/// What a list shows of a session besides its own row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTally {
    pub failed_calls: i64,
    /// Sessions that it started.
    pub agents: i64,
}

/// What sessions have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet {
    Source,
    Project,
    Machine,
}

impl Archive<'_> {
    /// All sessions that fit, those with the largest measure first and the latest among equals; those without any of it
    /// are left out.
    pub fn sessions_by(&self, measure: Measure, filter: &SessionFilter) -> Result<Vec<SessionId>> {
        let (conditions, values) = session_conditions(filter);
        let measure = match measure {
            Measure::Messages => "session.messages",
            Measure::Failures => {
                "(select count(*) from tool_call failed where failed.session = session.id and failed.ok = 0
                  and failed.copied = 0)"
            }
            Measure::Duration => "session.last_at - session.started_at",
        };
        let text = format!(
            "select id from (select session.id, {measure} as measure, coalesce(last_at, 0) as latest
             from session join instance on instance.id = session.instance where {{visible}} and {conditions}) as measured
             where measure > 0 order by measure desc, latest desc, id"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The sums of tokens of all sessions that fit, by session.
    pub fn usage_of_sessions(&self, filter: &SessionFilter) -> Result<Vec<(SessionId, UsageSum)>> {
        let (conditions, values) = session_conditions(filter);
        let text = format!(
            "select null, '', day, name.text, prompt_class, responses, usage_sum.input, usage_sum.output,
                    usage_sum.cache_read, usage_sum.cache_write, usage_sum.cache_write_hour, usage_sum.reasoning,
                    usage_sum.cost, {TOTAL_OF}, session.id
             from usage_sum join session on session.id = usage_sum.session
             join instance on instance.id = session.instance left join name on name.id = usage_sum.model
             where {{visible}} and {conditions} order by session.id"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), |row| Ok((row.get(14)?, usage_sum(row)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn session_tally(&self, session: SessionId) -> Result<SessionTally> {
        let mut statement = self.prepare(sql!(
            "select (select count(*) from tool_call where tool_call.session = session.id and ok = 0 and copied = 0),
                    (select count(*) from session child where child.instance = session.instance
                     and child.parent = session.key and child.parent_kind in ('sub_agent', 'review'))
             from session where session.id = $1 and {visible_session}"
        ))?;
        let mut rows = statement.query([session])?;
        Ok(match rows.next()? {
            Some(row) => SessionTally { failed_calls: row.get(0)?, agents: row.get(1)? },
            None => SessionTally::default(),
        })
    }

    /// How many sessions that fit have what in common, most first.
    pub fn session_counts(&self, facet: Facet, filter: &SessionFilter) -> Result<Vec<(Raw, i64)>> {
        let (conditions, values) = session_conditions(filter);
        let column = match facet {
            Facet::Source => "instance.source",
            Facet::Project => "session.cwd",
            Facet::Machine => "instance.machine",
        };
        let text = format!(
            "select {column}, count(*) from session join instance on instance.id = session.instance
             where {{visible}} and {conditions} and {column} is not null group by 1 order by 2 desc, 1"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let mut rows = statement.query(values.as_slice())?;
        let mut counts = Vec::new();
        while let Some(row) = rows.next()? {
            if let Some(value) = optional_raw(row, 0)? {
                counts.push((value, row.get(1)?));
            }
        }
        Ok(counts)
    }

    /// How many sessions of each source fit, and how many messages these have.
    pub fn source_totals(&self, filter: &SessionFilter) -> Result<Vec<(String, i64, i64)>> {
        let (conditions, values) = session_conditions(filter);
        let text = format!(
            "select instance.source, count(*), cast(sum(session.messages) as bigint)
             from session join instance on instance.id = session.instance
             where {{visible}} and {conditions} group by 1 order by 1"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows =
            statement.query_map(values.as_slice(), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Prompts by hour since 1970, from a moment on.
    pub fn prompts_by_hour(&self, since: Time) -> Result<Vec<(i64, i64)>> {
        let text = sql!(
            "select message.at / 3600000000, count(*)
             from instance join session on session.instance = instance.id
             join message on message.session = session.id
             where {visible} and session.last_at >= $1 and message.at >= $1 and message.kind = $2
             and message.copied = 0 and (session.parent_kind is null or session.parent_kind not in ('sub_agent', 'review'))
             group by 1 order by 1"
        );
        let mut statement = self.prepare(text)?;
        let kind = MessageKind::Prompt.stored();
        let rows = statement
            .query_map(rusqlite::params![since.micros(), kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
