//! Queries about the numbered steps of a session, and about days of activity.

use rusqlite::{OptionalExtension, params};

use super::{CALL_COLUMNS, CALL_JOINS, CallRow, MESSAGES, MessageRow, call_row, message_row};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{ContentKey, FileId, MessageKind, Raw, SessionId, Span, Time};

/// A prompt of a session: the number of its step, and its place.
#[derive(Debug, Clone, Copy)]
pub struct PromptPlace {
    pub step: i64,
    pub key: ContentKey,
    pub file: FileId,
    pub span: Span,
    pub at: Option<Time>,
}

/// The number of messages on one day.
#[derive(Debug, Clone, Copy)]
pub struct DayCount {
    pub day: i64,
    pub messages: i64,
}

/// Steps are messages and calls that are not blocks of one, ordered by place.
const STEPS: &str = "select byte_offset from message where session = ?1 and file = ?2 and not copied
     union all select byte_offset from tool_call where session = ?1 and file = ?2 and message is null and not copied";

impl Archive<'_> {
    pub fn count_steps(&self, session: SessionId) -> Result<i64> {
        let mut steps = 0;
        for file in self.transcript_files(session)? {
            let mut statement =
                self.prepare(&format!("select count(*) from ({STEPS}) where {{visible_session}}"))?;
            steps += statement.query_row(params![session, file], |row| row.get::<_, i64>(0))?;
        }
        Ok(steps)
    }

    /// The index of the file among those of the session, and the place of the step before the one with this number.
    pub fn place_before_step(&self, session: SessionId, step: i64) -> Result<(usize, i64)> {
        let mut left = step;
        let files = self.transcript_files(session)?;
        for (number, file) in files.iter().copied().enumerate() {
            if left <= 0 {
                return Ok((number, -1));
            }
            let mut statement = self.prepare(&format!(
                "select byte_offset from ({STEPS}) where {{visible_session}} order by byte_offset limit 1 offset ?3"
            ))?;
            let offset =
                statement.query_row(params![session, file, left - 1], |row| row.get(0)).optional()?;
            if let Some(offset) = offset {
                return Ok((number, offset));
            }
            let mut statement =
                self.prepare(&format!("select count(*) from ({STEPS}) where {{visible_session}}"))?;
            left -= statement.query_row(params![session, file], |row| row.get::<_, i64>(0))?;
        }
        Ok((files.len(), -1))
    }

    /// The number of the step that has this key, or that the call with this key belongs to.
    pub fn step_of_key(&self, session: SessionId, key: ContentKey) -> Result<Option<i64>> {
        let mut statement = self.prepare(sql!(
            // A document and its later form have the same steps; those that count are shown.
            "select found.file, found.step from
                 (select file, byte_offset as step, copied from message
                  where key = $2 and session = $1 and {visible_session}
                  union all
                  select file, coalesce(message, byte_offset), copied from tool_call
                  where key = $2 and session = $1 and {visible_session}) found
             order by found.copied limit 1"
        ))?;
        let found = statement
            .query_row(params![session, key.stored()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
        let Some((file, offset)) = found.optional()? else { return Ok(None) };
        Ok(Some(self.steps_before(session, file, offset as u64)?))
    }

    pub fn message_by_key(&self, session: SessionId, key: ContentKey) -> Result<Option<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.key = ?2 and message.session = ?1 and {{visible}} order by copied limit 1"
        );
        let mut statement = self.prepare(&text)?;
        Ok(statement.query_row(params![session, key.stored()], message_row).optional()?)
    }

    pub fn call_by_key(&self, session: SessionId, key: ContentKey) -> Result<Option<CallRow>> {
        let text = format!(
            "select {CALL_COLUMNS} from tool_call {CALL_JOINS}
             where tool_call.key = ?2 and tool_call.session = ?1 and {{visible}}
             order by tool_call.copied limit 1"
        );
        let mut statement = self.prepare(&text)?;
        Ok(statement.query_row(params![session, key.stored()], call_row).optional()?)
    }

    /// Prompts of a session in order; `visit` returns whether it wants more.
    pub fn each_prompt(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(PromptPlace) -> Result<bool>,
    ) -> Result<()> {
        let mut before = 0;
        for file in self.transcript_files(session)? {
            let mut statement = self.prepare(&format!(
                "select steps.byte_offset, message.length, message.key, message.at from ({STEPS}) steps
                 left join message on message.session = ?1 and message.file = ?2 and message.byte_offset = steps.byte_offset
                      and message.kind = ?3
                 where {{visible_session}}
                 order by steps.byte_offset"
            ))?;
            let mut rows = statement.query(params![session, file, MessageKind::Prompt.stored()])?;
            while let Some(row) = rows.next()? {
                let step = before;
                before += 1;
                let Some(length) = row.get::<_, Option<i64>>(1)? else { continue };
                let prompt = PromptPlace {
                    step,
                    key: ContentKey::from_stored(row.get(2)?),
                    file,
                    span: Span { offset: row.get::<_, i64>(0)? as u64, length: length as u64 },
                    at: super::time(row, 3)?,
                };
                if !visit(prompt)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Messages per UTC day since a day, without copies.
    pub fn messages_by_day(&self, since_day: i64) -> Result<Vec<DayCount>> {
        let text = sql!(
            "select message.at / 86400000000, count(*)
             from instance join session on session.instance = instance.id
             join message on message.session = session.id
             where {visible} and session.last_at >= $1 and message.at >= $1 and message.tally in (2, 3, 4)
             and message.copied = 0
             group by 1 order by 1"
        );
        let mut statement = self.prepare(text)?;
        let since = Time::from_day(since_day).micros();
        let rows = statement
            .query_map(params![since], |row| Ok(DayCount { day: row.get(0)?, messages: row.get(1)? }))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Working directories of sessions, the latest first.
    pub fn projects(&self, limit: i64) -> Result<Vec<Raw>> {
        let text = sql!(
            "select cwd from session join instance on instance.id = session.instance
             where {visible} and cwd is not null group by cwd order by max(last_at) desc limit $1"
        );
        let mut statement = self.prepare(text)?;
        let rows = statement.query_map(params![limit], |row| super::raw(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Machines whose homes are archived, ordered by name.
    pub fn machines(&self) -> Result<Vec<Raw>> {
        let mut statement =
            self.prepare(sql!("select distinct machine from instance where {visible} order by 1"))?;
        let rows = statement.query_map([], |row| super::raw(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Models that answered, ordered by name.
    pub fn models(&self) -> Result<Vec<Raw>> {
        let text = sql!(
            "select distinct name.text from usage_sum join session on session.id = usage_sum.session
             join instance on instance.id = session.instance join name on name.id = usage_sum.model
             where {visible} order by 1"
        );
        let mut statement = self.prepare(text)?;
        let rows = statement.query_map([], |row| super::raw(row, 0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
