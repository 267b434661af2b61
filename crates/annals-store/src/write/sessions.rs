//! Session rows: merged from all files, with totals that follow the rows.

use rusqlite::{OptionalExtension, params};

use super::{UsageDelta, Writer};
use crate::error::Result;
use crate::sql;
use annals_core::{ContentKey, InstanceId, LinkKind, Picodollars, SessionFacts, SessionId, Time};

impl Writer<'_> {
    /// Joins data about the session of another file: titles, and prompts that no transcript has.
    pub fn resolve(&mut self) -> Result<()> {
        self.resolve_summaries()?;
        self.resolve_typed()
    }

    /// Assigns titles to the sessions they name, once both are known. Forks have the named row too: as with messages,
    /// a session's own row wins over an inherited one, then the session's name decides.
    fn resolve_summaries(&mut self) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update summary set session =
                 (select landmark.session from landmark
                  join session on session.id = landmark.session
                  join file on file.id = summary.file and file.instance = session.instance
                  where landmark.row_key = summary.row_key
                  order by landmark.inherited, session.key limit 1)
             where session is null
             and exists (select 1 from landmark where landmark.row_key = summary.row_key)
             returning session"
        ))?;
        let named: Vec<Option<SessionId>> =
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        self.touched.extend(named.into_iter().flatten());
        self.update_sessions()
    }

    /// Takes back the titles that name a row which another session has too; `resolve` assigns them again.
    pub(crate) fn unassign_summaries_of(&mut self, row: ContentKey) -> Result<()> {
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select session from summary where row_key = $1 and session is not null"))?;
        let named: Vec<SessionId> =
            statement.query_map(params![row.stored()], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        if !named.is_empty() {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("update summary set session = null where row_key = $1"))?;
            statement.execute(params![row.stored()])?;
            drop(statement);
            self.touched.extend(named);
        }
        Ok(())
    }

    /// Updates every session that this transaction touched.
    pub(crate) fn update_sessions(&mut self) -> Result<()> {
        for (session, delta) in std::mem::take(&mut self.deltas) {
            let mut statement = self.transaction.prepare_cached(sql!(
                "update session set messages = messages + $11, user_messages = user_messages + $2,
                        assistant_messages = assistant_messages + $3, tool_calls = tool_calls + $4,
                        input_tokens = input_tokens + $5, output_tokens = output_tokens + $6,
                        cache_read_tokens = cache_read_tokens + $7, cache_write_tokens = cache_write_tokens + $8,
                        cache_write_hour_tokens = cache_write_hour_tokens + $9,
                        reasoning_tokens = reasoning_tokens + $10
                 where id = $1"
            ))?;
            let tokens = delta.tokens;
            statement.execute(params![
                session,
                delta.user,
                delta.assistant,
                delta.calls,
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write,
                tokens.cache_write_hour,
                tokens.reasoning,
                delta.messages,
            ])?;
        }
        self.add_usage_sums()?;
        self.link_copies()?;
        for session in std::mem::take(&mut self.touched) {
            self.merge_session(session)?;
        }
        Ok(())
    }

    fn add_usage_sums(&mut self) -> Result<()> {
        for ((session, day, model, class, reported), sums) in std::mem::take(&mut self.usage_deltas) {
            let UsageDelta { responses, tokens, cost } = sums;
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into usage_sum (session, day, model, prompt_class, reported, responses, input, output,
                                        cache_read, cache_write, cache_write_hour, reasoning, cost)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                 on conflict (session, day, model, prompt_class, reported) do update
                 set responses = usage_sum.responses + excluded.responses,
                     input = usage_sum.input + excluded.input, output = usage_sum.output + excluded.output,
                     cache_read = usage_sum.cache_read + excluded.cache_read,
                     cache_write = usage_sum.cache_write + excluded.cache_write,
                     cache_write_hour = usage_sum.cache_write_hour + excluded.cache_write_hour,
                     reasoning = usage_sum.reasoning + excluded.reasoning,
                     cost = usage_sum.cost + excluded.cost"
            ))?;
            statement.execute(params![
                session,
                day,
                model,
                class,
                reported,
                responses,
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write,
                tokens.cache_write_hour,
                tokens.reasoning,
                reported.then(|| cost.stored())
            ])?;
            drop(statement);
            if responses <= 0 {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "delete from usage_sum where session = $1 and day = $2 and model = $3 and prompt_class = $4
                     and reported = $5 and responses = 0"
                ))?;
                statement.execute(params![session, day, model, class, reported])?;
            }
        }
        Ok(())
    }

    fn merge_session(&mut self, session: SessionId) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select part.rank, part.facts from session_part part join file on file.id = part.file
             where part.session = $1 order by part.rank desc, file.path"
        ))?;
        let parts: Vec<(i64, String)> = statement
            .query_map(params![session], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        if parts.is_empty() {
            // No file mentions it any more: one was rewritten with another session's name.
            let mut statement = self.transaction.prepare_cached(sql!(
                "delete from session where id = $1
                 and not exists (select 1 from message where session = $1)
                 and not exists (select 1 from tool_call where session = $1)
                 and not exists (select 1 from usage where session = $1)
                 returning instance, key"
            ))?;
            let gone = statement
                .query_row(params![session], |row| {
                    Ok((row.get::<_, InstanceId>(0)?, row.get::<_, String>(1)?))
                })
                .optional()?;
            drop(statement);
            return match gone {
                Some((instance, key)) => self.note_removed_session(instance, &key),
                None => Ok(()),
            };
        }
        let mut facts = merge(&parts);
        self.fill_directory(session, &mut facts)?;
        if facts.parent.is_none() {
            // A fork without a parent in its facts; its copied rows show it.
            let mut statement = self
                .transaction
                .prepare_cached(sql!("select other from link where session = $1 and kind = 'copy'"))?;
            facts.parent = statement.query_row(params![session], |row| row.get(0)).optional()?;
            facts.parent_kind = facts.parent.as_ref().map(|_| LinkKind::Fork);
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "select text from summary join file on file.id = summary.file
             where session = $1 order by file.path desc, byte_offset desc limit 1"
        ))?;
        let summary: Option<String> = statement.query_row(params![session], |row| row.get(0)).optional()?;
        drop(statement);
        let title = facts.name.clone().or(facts.title.clone()).or(summary).or(facts.first_prompt.clone());
        let mut statement = self.transaction.prepare_cached(sql!(
            "update session set title = $2, cwd = $3, git_branch = $4, parent = $5, parent_kind = $6, models = $7,
                    archived = $8, started_at = $9, last_at = $10, facts = $11, changed = $12,
                    cost = $13
             where id = $1"
        ))?;
        statement.execute(params![
            session,
            title,
            facts.cwd,
            facts.git_branch,
            facts.parent,
            facts.parent_kind.map(|kind| kind.name()),
            serde_json::to_string(&facts.models)?,
            facts.archived.unwrap_or(false),
            facts.started_at.map(Time::micros),
            facts.last_at.map(Time::micros),
            serde_json::to_string(&facts)?,
            self.commit,
            facts.cost_usd.and_then(Picodollars::from_dollars).map(Picodollars::stored),
        ])?;
        drop(statement);
        if parts.iter().any(|(rank, _)| *rank == 0) {
            self.recheck_typed(session, &facts)?;
        }
        Ok(())
    }
}

/// Merges facts, highest rank first. Times come from transcripts if there are any: a table's row changes even when a
/// thread is only renamed.
fn merge(parts: &[(i64, String)]) -> SessionFacts {
    let read = |text: &str| serde_json::from_str::<SessionFacts>(text).unwrap_or_default();
    let mut merged = SessionFacts::default();
    for (_, text) in parts {
        merged.fill_from(&read(text));
    }
    merged.history_only = parts.iter().all(|(rank, _)| *rank < 0);
    let lowest: Vec<SessionFacts> =
        parts.iter().filter(|(rank, _)| *rank == 0).map(|(_, text)| read(text)).collect();
    if !lowest.is_empty() {
        // A history file contains prompts of sessions that never started.
        let first = lowest.iter().filter_map(|facts| facts.first_message_at).min();
        merged.first_message_at = first.or(merged.first_message_at);
        merged.started_at = lowest.iter().filter_map(|facts| facts.started_at).min();
        merged.last_at = lowest.iter().filter_map(|facts| facts.last_at).max();
        // It ended if it did in the file that was written last.
        merged.ended_at = lowest.iter().max_by_key(|facts| facts.last_at).and_then(|facts| facts.ended_at);
        // Models in the order of their use; the table has the last one first.
        let mut models = Vec::new();
        for model in lowest.iter().flat_map(|facts| &facts.models).chain(&merged.models) {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        merged.models = models;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::merge;
    use annals_core::{SessionFacts, Time};

    fn part(rank: i64, facts: &SessionFacts) -> (i64, String) {
        (rank, serde_json::to_string(facts).unwrap())
    }

    #[test]
    fn stronger_parts_win_and_times_come_from_transcripts() {
        let table = SessionFacts {
            title: Some("table".into()),
            models: vec!["b".into()],
            last_at: Some(Time::from_seconds(99)),
            ..SessionFacts::default()
        };
        let transcript = SessionFacts {
            title: Some("first prompt".into()),
            cwd: Some("/w".into()),
            models: vec!["a".into(), "b".into()],
            last_at: Some(Time::from_seconds(5)),
            ..SessionFacts::default()
        };
        let merged = merge(&[part(10, &table), part(0, &transcript)]);
        assert_eq!(merged.title.as_deref(), Some("table"));
        assert_eq!(merged.cwd.as_deref(), Some("/w"));
        assert_eq!(merged.models, ["a", "b"]);
        assert_eq!(merged.last_at, Some(Time::from_seconds(5)));
        assert_eq!(merge(&[part(10, &table)]).last_at, Some(Time::from_seconds(99)));
    }

    #[test]
    fn a_session_that_goes_on_in_another_file_has_not_ended() {
        let ended = SessionFacts {
            last_at: Some(Time::from_seconds(5)),
            ended_at: Some(Time::from_seconds(5)),
            ..SessionFacts::default()
        };
        let newer = SessionFacts { last_at: Some(Time::from_seconds(7)), ..SessionFacts::default() };
        assert_eq!(merge(&[part(0, &ended), part(0, &newer)]).ended_at, None);
        let older = SessionFacts { last_at: Some(Time::from_seconds(3)), ..SessionFacts::default() };
        assert_eq!(merge(&[part(0, &older), part(0, &ended)]).ended_at, ended.ended_at);
    }
}
