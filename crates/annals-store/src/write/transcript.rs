//! Writes what readers found: messages, calls, usage, file touches, links and records.

use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::copies::CopyCandidate;
use super::{Used, Writer};
use crate::error::Result;
use crate::sql;
use annals_core::{
    Call, CallResult, Document, FileId, InstanceId, Item, Landmark, Link, Message, MessageKind, Picodollars,
    Role, SessionId, Span, Summary, Tally, Time, Touch, Usage,
};

impl Writer<'_> {
    pub(crate) fn write_item(
        &mut self,
        instance: InstanceId,
        file: FileId,
        version: i64,
        item: Item,
    ) -> Result<()> {
        match item {
            Item::Message(message) => self.write_message(instance, file, &message),
            Item::Amend { session, offset, kind } => {
                self.amend_message(instance, file, &session, offset, kind)
            }
            Item::Rekey { session, offset, key } => self.rekey(instance, file, &session, offset, key),
            Item::Extend { session, message, span } => {
                self.extend_message(instance, file, &session, message, span)
            }
            Item::Summary(summary) => self.write_summary(file, &summary),
            Item::Landmark(landmark) => self.write_landmark(instance, file, &landmark),
            Item::Call(call) => self.write_call(instance, file, &call),
            Item::Result(result) => self.write_result(instance, file, &result),
            Item::Usage(usage) => self.write_usage(instance, file, &usage),
            Item::Touch(touch) => self.write_touch(instance, file, &touch),
            Item::Link(link) => self.write_link(instance, file, &link),
            Item::Document(document) => self.write_record(instance, file, version, &document),
            Item::Ended { stream, key, at } => self.end_record(instance, stream, &key, at),
            Item::Forget { session, offset } => self.forget_message(instance, file, &session, offset),
            Item::Recount { session, offset, tally } => {
                self.recount_message(instance, file, &session, offset, tally)
            }
            Item::Typed(prompt) => self.write_typed_prompt(instance, file, &prompt),
            Item::Spoken { session, offset, words } => {
                self.write_spoken(instance, file, &session, offset, words)
            }
            Item::Tree(tree) => self.write_tree(instance, file, &tree),
            Item::Project(project) => self.write_project(instance, file, &project),
            // Passages go into the index; drift is counted with the lines.
            Item::Passage(_) | Item::Drift(_) => Ok(()),
        }
    }

    fn write_message(&mut self, instance: InstanceId, file: FileId, message: &Message) -> Result<()> {
        let session = self.session_id(instance, &message.session)?;
        self.write_message_of(session, file, message)
    }

    /// Writes a message of a session whose row is known.
    pub(crate) fn write_message_of(
        &mut self,
        session: SessionId,
        file: FileId,
        message: &Message,
    ) -> Result<()> {
        let model = self.word_id(message.model.as_ref())?;
        let offset = message.span.offset as i64;
        let is_copy = self.resolve_original(
            "message",
            message.key,
            &CopyCandidate { session, file, offset, inherited: message.inherited, at: message.at },
        )?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into message (session, file, byte_offset, length, role, kind, at, key, inherited, copied, tally, model,
                                  changed)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        ))?;
        statement.execute(params![
            session,
            file,
            offset,
            message.span.length as i64,
            message.role.stored(),
            message.kind.stored(),
            message.at.map(Time::micros),
            message.key.stored(),
            message.inherited,
            is_copy,
            message.tally.stored(),
            model,
            self.commit,
        ])?;
        drop(statement);
        if !is_copy {
            self.count_message(session, message.role, message.tally, 1);
        }
        Ok(())
    }

    fn amend_message(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        offset: u64,
        kind: MessageKind,
    ) -> Result<()> {
        let session = self.session_id(instance, session)?;
        let counted = self.counted_message(session, file, offset)?;
        let Some((role, before, copied)) = counted else { return Ok(()) };
        let tally = Tally::of(kind);
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set kind = $4, tally = $5, changed = $6
             where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        let row = params![session, file, offset as i64, kind.stored(), tally.stored(), self.commit];
        statement.execute(row)?;
        drop(statement);
        if !copied {
            self.count_message(session, role, before, -1);
            self.count_message(session, role, tally, 1);
        }
        Ok(())
    }

    /// The side of a message, how it was counted, and whether it is a copy.
    pub(super) fn counted_message(
        &self,
        session: SessionId,
        file: FileId,
        offset: u64,
    ) -> Result<Option<(Role, Tally, bool)>> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select role, tally, copied from message where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        let message = statement.query_row(params![session, file, offset as i64], |row| {
            let (role, tally) = (Role::from_stored(row.get(0)?), Tally::from_stored(row.get(1)?));
            Ok((role, tally, row.get::<_, bool>(2)?))
        });
        Ok(message.optional()?)
    }

    fn extend_message(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        message: u64,
        span: Span,
    ) -> Result<()> {
        let session = self.session_id(instance, session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into message_line (session, file, byte_offset, line, length) values ($1, $2, $3, $4, $5)"
        ))?;
        statement.execute(params![session, file, message as i64, span.offset as i64, span.length as i64])?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set changed = $4 where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![session, file, message as i64, self.commit])?;
        Ok(())
    }

    fn write_summary(&mut self, file: FileId, summary: &Summary) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into summary (file, byte_offset, row_key, text) values ($1, $2, $3, $4)"
        ))?;
        statement.execute(params![file, summary.offset as i64, summary.row.stored(), summary.text])?;
        Ok(())
    }

    fn write_landmark(&mut self, instance: InstanceId, file: FileId, landmark: &Landmark) -> Result<()> {
        let session = self.session_id(instance, &landmark.session)?;
        let row = landmark.row;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into landmark (row_key, session, file, inherited) values ($1, $2, $3, $4)
             on conflict (row_key, session, file) do nothing"
        ))?;
        let added = statement.execute(params![row.stored(), session, file, landmark.inherited])?;
        drop(statement);
        if added > 0 { self.unassign_summaries_of(row) } else { Ok(()) }
    }

    pub(crate) fn count_message(&mut self, session: SessionId, role: Role, tally: Tally, by: i64) {
        let delta = self.deltas.entry(session).or_default();
        let (message, record) = match tally {
            Tally::Nothing => (0, 0),
            Tally::Record | Tally::RewrittenRecord => (0, by),
            Tally::Message | Tally::Rewritten => (by, by),
            Tally::Aside => (by, 0),
        };
        delta.messages += message;
        match role {
            Role::User => delta.user += record,
            Role::Assistant => delta.assistant += record,
            Role::System | Role::Developer | Role::Tool => {}
        }
    }

    fn write_call(&mut self, instance: InstanceId, file: FileId, call: &Call) -> Result<()> {
        let session = self.session_id(instance, &call.session)?;
        let name = self.word_id(Some(&call.name))?;
        let model = self.word_id(call.model.as_ref())?;
        let offset = call.span.offset as i64;
        let is_copy = self.resolve_original(
            "tool_call",
            call.key,
            &CopyCandidate { session, file, offset, inherited: call.inherited, at: call.at },
        )?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into tool_call (session, file, byte_offset, length, at, key, inherited, copied, call_id, name, kind,
                                    title, parent, message, model, changed)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        ))?;
        statement.execute(params![
            session,
            file,
            offset,
            call.span.length as i64,
            call.at.map(Time::micros),
            call.key.stored(),
            call.inherited,
            is_copy,
            call.call_id,
            name,
            call.kind.stored(),
            call.title,
            call.parent.map(|parent| parent as i64),
            call.message.map(|message| message as i64),
            model,
            self.commit,
        ])?;
        drop(statement);
        if !is_copy && call.parent.is_none() {
            self.deltas.entry(session).or_default().calls += 1;
        }
        Ok(())
    }

    fn write_result(&mut self, instance: InstanceId, file: FileId, result: &CallResult) -> Result<()> {
        let session = self.session_id(instance, &result.session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "update tool_call
             set output_offset = coalesce($4, output_offset), output_length = coalesce($5, output_length),
                 detail_offset = coalesce($6, detail_offset), detail_length = coalesce($7, detail_length),
                 ended_at = coalesce($8, ended_at), ok = coalesce($9, ok), exit_code = coalesce($10, exit_code),
                 duration_ms = coalesce($11, duration_ms), full_output = coalesce($12, full_output),
                 changed = $13
             where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![
            session,
            file,
            result.call as i64,
            result.output.map(|span| span.offset as i64),
            result.output.map(|span| span.length as i64),
            result.detail.map(|span| span.offset as i64),
            result.detail.map(|span| span.length as i64),
            result.at.map(Time::micros),
            result.ok,
            result.exit_code,
            result.duration_ms.map(|millis| millis as i64),
            result.full,
            self.commit,
        ])?;
        drop(statement);
        match &result.full {
            Some(full) => self.mark_full_output(instance, full),
            None => Ok(()),
        }
    }

    fn write_usage(&mut self, instance: InstanceId, file: FileId, usage: &Usage) -> Result<()> {
        let session = self.session_id(instance, &usage.session)?;
        let model = self.word_id(usage.model.as_ref())?;
        let offset = usage.span.offset as i64;
        if usage.again {
            return self.recount_usage(session, file, usage);
        }
        let is_copy = self.resolve_original(
            "usage",
            usage.key,
            &CopyCandidate { session, file, offset, inherited: usage.inherited, at: usage.at },
        )?;
        let tokens = usage.tokens;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into usage (session, file, byte_offset, length, at, key, inherited, copied, model, input, output,
                                cache_read, cache_write, cache_write_hour, reasoning, cost)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        ))?;
        statement.execute(params![
            session,
            file,
            offset,
            usage.span.length as i64,
            usage.at.map(Time::micros),
            usage.key.stored(),
            usage.inherited,
            is_copy,
            model,
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.cache_write_hour,
            tokens.reasoning,
            usage.cost.map(Picodollars::stored),
        ])?;
        drop(statement);
        if !is_copy {
            self.count_usage(session, usage.at, model, Used { tokens, cost: usage.cost }, 1);
        }
        Ok(())
    }

    /// Replaces the numbers of a response: early records are partial, the last one is complete.
    fn recount_usage(&mut self, session: SessionId, file: FileId, usage: &Usage) -> Result<()> {
        let row =
            CopyCandidate { session, file, offset: usage.span.offset as i64, inherited: false, at: None };
        let mut statement = self.transaction.prepare_cached(sql!(
            "select copied from usage where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        let copied: Option<bool> =
            statement.query_row(params![session, file, row.offset], |row| row.get(0)).optional()?;
        drop(statement);
        let Some(copied) = copied else { return Ok(()) };
        if !copied {
            self.count_row("usage", &row, -1)?;
        }
        let tokens = usage.tokens;
        let mut statement = self.transaction.prepare_cached(sql!(
            "update usage set input = $4, output = $5, cache_read = $6, cache_write = $7, cache_write_hour = $8,
                    reasoning = $9, cost = coalesce($10, cost)
             where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![
            session,
            file,
            row.offset,
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.cache_write_hour,
            tokens.reasoning,
            usage.cost.map(Picodollars::stored)
        ])?;
        drop(statement);
        if copied { Ok(()) } else { self.count_row("usage", &row, 1) }
    }

    /// Adds a response to the totals of its session, or subtracts it.
    pub(crate) fn count_usage(
        &mut self,
        session: SessionId,
        at: Option<Time>,
        model: Option<i64>,
        used: Used,
        by: i64,
    ) {
        let Used { tokens, cost } = used;
        let delta = self.deltas.entry(session).or_default();
        let day = at.map_or(0, Time::day);
        let group = (session, day, model.unwrap_or(0), tokens.prompt_class(), cost.is_some());
        delta.tokens += tokens * by;
        let sums = self.usage_deltas.entry(group).or_default();
        sums.responses += by;
        sums.tokens += tokens * by;
        sums.cost += cost.unwrap_or_default() * by;
    }

    fn write_touch(&mut self, instance: InstanceId, file: FileId, touch: &Touch) -> Result<()> {
        let session = self.session_id(instance, &touch.session)?;
        let path = self.word_id(Some(&touch.path.as_str().into()))?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into file_touch (session, file, byte_offset, number, path, operation, before_start, before_end,
                                     after_start, after_end)
             select $1, $2, $3, (select count(*) from file_touch where session = $1 and file = $2 and byte_offset = $3),
                    $4, $5, $6, $7, $8, $9"
        ))?;
        statement.execute(params![
            session,
            file,
            touch.call as i64,
            path,
            touch.operation.stored(),
            touch.before.map(|range| range.start),
            touch.before.map(|range| range.end),
            touch.after.map(|range| range.start),
            touch.after.map(|range| range.end),
        ])?;
        Ok(())
    }

    fn write_link(&mut self, instance: InstanceId, file: FileId, link: &Link) -> Result<()> {
        let session = self.session_id(instance, &link.session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into link (session, file, kind, other, position) values ($1, $2, $3, $4, $5)
             on conflict (session, file, kind, other) do update set position = excluded.position"
        ))?;
        statement.execute(params![session, file, link.kind.name(), link.other, link.position])?;
        Ok(())
    }

    /// Writes a record. The same content is the same version; other content is the next version.
    fn write_record(
        &mut self,
        instance: InstanceId,
        file: FileId,
        version: i64,
        document: &Document,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select version, hash, deleted_at from record
             where instance = $1 and stream = $2 and key = $3 order by version desc limit 1"
        ))?;
        let last: Option<(i64, i64, Option<i64>)> = statement
            .query_row(params![instance, document.stream, document.key], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        drop(statement);
        let number = match last {
            Some((number, hash, None)) if hash == document.content.stored() => {
                return self.mark_seen(instance, document, number, version);
            }
            Some((number, _, _)) => number + 1,
            None => 1,
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into record (instance, stream, key, version, session, at, file, file_version, byte_offset, length,
                                 hash, seen_at, seen_version, changed)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $8, $13)"
        ))?;
        statement.execute(params![
            instance,
            document.stream,
            document.key,
            number,
            document.session.as_deref(),
            document.at.map(Time::micros),
            file,
            version,
            document.span.offset as i64,
            document.span.length as i64,
            document.content.stored(),
            self.now.micros(),
            self.commit,
        ])?;
        drop(statement);
        // Full outputs are whole files.
        match document.span.offset {
            0 => self.mark_calls_with_output(instance, document.stream, &document.key),
            _ => Ok(()),
        }
    }

    fn end_record(&mut self, instance: InstanceId, stream: &str, key: &str, at: Option<Time>) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update record set deleted_at = $4, changed = $5 where instance = $1 and stream = $2 and key = $3
             and deleted_at is null
             and not exists (select 1 from record newer where newer.instance = record.instance
                             and newer.stream = record.stream and newer.key = record.key
                             and newer.version > record.version)"
        ))?;
        statement.execute(params![instance, stream, key, at.unwrap_or(self.now).micros(), self.commit])?;
        Ok(())
    }

    /// Notes that a record has the same content in a newer version of its file.
    fn mark_seen(
        &mut self,
        instance: InstanceId,
        document: &Document,
        number: i64,
        version: i64,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update record set seen_version = $5 where instance = $1 and stream = $2 and key = $3 and version = $4"
        ))?;
        statement.execute(params![instance, document.stream, document.key, number, version])?;
        Ok(())
    }
}
