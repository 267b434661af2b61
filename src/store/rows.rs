//! Writes batches: bytes, rows, counts and cursor of a stretch of a file in one transaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{OptionalExtension, Transaction, params};

use super::copies::Settled;
use super::{Batch, Count, Store, sql};
use crate::model::{
    Call, CallResult, Document, Encoding, Framing, Item, Key, Link, Message, MessageKind, Result, Role,
    Scope, SessionFacts, Span, Summary, Tally, Time, Touch, Usage,
};

/// Problems of one file that are kept with their places; all are counted.
const PROBLEMS: i64 = 100;
/// Words remembered while writing; beyond that the memory is emptied and filled again.
const WORDS: usize = 50_000;

/// An open transaction. Dropping it without `commit` undoes everything.
pub struct Writer<'s> {
    pub(super) transaction: Transaction<'s>,
    now: Time,
    sessions: HashMap<(i64, Arc<str>), i64>,
    words: HashMap<Arc<str>, i64>,
    pub(super) deltas: HashMap<i64, Delta>,
    pub(super) touched: BTreeSet<i64>,
    /// Sessions in which copies of other sessions' rows were found.
    pub(super) copying: BTreeSet<i64>,
}

/// How a session's totals change by this transaction.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Delta {
    pub messages: i64,
    pub user: i64,
    pub assistant: i64,
    pub calls: i64,
    pub tokens: [i64; 6],
}

impl Store {
    pub fn writer(&mut self, _scope: &Scope, now: Time) -> Result<Writer<'_>> {
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        Ok(Writer {
            transaction,
            now,
            sessions: HashMap::new(),
            words: HashMap::new(),
            deltas: HashMap::new(),
            touched: BTreeSet::new(),
            copying: BTreeSet::new(),
        })
    }
}

impl Writer<'_> {
    /// Everything of this batch or nothing; answers the file's id.
    // no scope: the writer was opened with one
    pub fn apply(&mut self, batch: Batch) -> Result<i64> {
        let (file, version) = self.file_row(&batch)?;
        if batch.replace_rows {
            self.forget_rows(file)?;
        }
        if let Some(other) = batch.supersedes {
            self.forget_rows(other)?;
            // Should it have rows again one day, they are read from its start.
            let mut statement = self.transaction.prepare_cached(sql!(
                "update file set twin_of = $2, parsed = 0, content_size = 0 where id = $1"
            ))?;
            statement.execute([other, file])?;
        }
        for segment in &batch.segments {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into segment (file, version, place, length, hash, packing, data)
                 values ($1, $2, $3, $4, $5, $6, $7)
                 on conflict (file, version, place) do update
                 set length = excluded.length, hash = excluded.hash, packing = excluded.packing,
                     data = excluded.data"
            ))?;
            statement.execute(params![
                file,
                version,
                segment.place as i64,
                segment.length as i64,
                segment.hash.as_slice(),
                segment.packed,
                segment.data,
            ])?;
        }
        self.apply_rows(batch.instance, file, version, batch.items, batch.facts)?;
        self.apply_counts(file, &batch.counts, &batch.problems)?;
        Ok(file)
    }

    /// Rows of a stretch of a file that is in the archive.
    // no scope: the writer was opened with one
    pub fn apply_rows(
        &mut self,
        instance: i64,
        file: i64,
        version: i64,
        items: Vec<Item>,
        facts: Vec<(Arc<str>, u8, SessionFacts)>,
    ) -> Result<()> {
        for item in items {
            self.item(instance, file, version, item)?;
        }
        for (session, rank, facts) in facts {
            let session = self.session(instance, &session)?;
            self.touched.insert(session);
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into session_part (session, file, rank, facts) values ($1, $2, $3, $4)
                 on conflict (session, file) do update set rank = excluded.rank, facts = excluded.facts"
            ))?;
            statement.execute(params![session, file, rank, serde_json::to_string(&facts)?])?;
        }
        Ok(())
    }

    // no scope: the writer was opened with one
    pub fn apply_counts(&mut self, file: i64, counts: &[Count], problems: &[(Span, String)]) -> Result<()> {
        for count in counts {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into coverage (file, status, kind, lines, bytes) values ($1, $2, $3, $4, $5)
                 on conflict (file, status, kind) do update
                 set lines = coverage.lines + excluded.lines, bytes = coverage.bytes + excluded.bytes"
            ))?;
            statement.execute(params![
                file,
                count.status,
                count.kind,
                count.lines as i64,
                count.bytes as i64
            ])?;
        }
        for (span, what) in problems {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into problem (file, place, length, what)
                 select $1, $2, $3, $4 where (select count(*) from problem where file = $1) < $5
                 on conflict (file, place) do nothing"
            ))?;
            statement.execute(params![file, span.offset as i64, span.length as i64, what, PROBLEMS])?;
        }
        Ok(())
    }

    /// Where reading of a file's rows stands.
    // no scope: the writer was opened with one
    pub fn apply_place(
        &mut self,
        file: i64,
        parsed: u64,
        content_size: u64,
        state: &str,
        reader_version: u32,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set parsed = $2, content_size = $3, reader_version = $4 where id = $1"
        ))?;
        statement.execute(params![file, parsed as i64, content_size as i64, reader_version])?;
        self.save_state(file, state)
    }

    fn save_state(&self, file: i64, state: &str) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into reader_state (file, state) values ($1, $2)
             on conflict (file) do update set state = excluded.state"
        ))?;
        statement.execute(params![file, state])?;
        Ok(())
    }

    /// Makes sessions and totals agree with the rows, and commits.
    // no scope: the writer was opened with one
    pub fn commit(mut self) -> Result<()> {
        self.settle_sessions()?;
        self.transaction.commit()?;
        Ok(())
    }

    /// Throws away all rows that came from files, so that they can be read again from the bytes.
    // no scope: the writer was opened with one
    pub fn forget_everything(&mut self) -> Result<()> {
        for table in [
            "message",
            "message_line",
            "summary",
            "landmark",
            "tool_call",
            "usage",
            "file_touch",
            "link",
            "record",
            "coverage",
            "problem",
            "session_part",
            "session",
            "name",
        ] {
            self.transaction.execute_batch(&format!("delete from {table}"))?;
        }
        self.transaction.execute_batch(
            "update file set parsed = 0;
             delete from reader_state;
             insert into setting (name, value) values ('rebuilding', 1) on conflict (name) do nothing",
        )?;
        self.sessions.clear();
        self.words.clear();
        Ok(())
    }

    /// All rows are there again.
    // no scope: the writer was opened with one
    pub fn rebuilt(&mut self) -> Result<()> {
        self.transaction.execute_batch("delete from setting where name = 'rebuilding'")?;
        Ok(())
    }

    fn file_row(&mut self, batch: &Batch) -> Result<(i64, i64)> {
        let part = &batch.part;
        let framing = match part.framing {
            Framing::Lines => "lines",
            Framing::Whole => "whole",
        };
        let encoding = match part.encoding {
            Encoding::Plain => "plain",
            Encoding::Zstd => "zstd",
        };
        let now = self.now.micros();
        let known = match batch.file {
            Some(file) => Some(file),
            None => {
                let mut statement = self
                    .transaction
                    .prepare_cached(sql!("select id from file where instance = $1 and path = $2"))?;
                statement.query_row(params![batch.instance, part.path], |row| row.get(0)).optional()?
            }
        };
        let file = match known {
            Some(file) => file,
            None => {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "insert into file (instance, path, unit, store, reader, framing, encoding, document, version,
                                       rows_version, size, content_size, parsed, reader_version, first_seen)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, 0, $9)"
                ))?;
                statement.execute(params![
                    batch.instance,
                    part.path,
                    part.unit,
                    part.store,
                    part.reader,
                    framing,
                    encoding,
                    part.document,
                    now
                ])?;
                self.transaction.last_insert_rowid()
            }
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set path = $2, version = version + $3,
                    rows_version = case when $4 then version + $3 else rows_version end,
                    size = $5, content_size = case when $4 then $6 else content_size end,
                    parsed = case when $4 then $7 else parsed end,
                    inode = $8, modified = $9, changed = $10, reader_version = $11, twin_of = $12, gone_at = null
             where id = $1 returning version"
        ))?;
        let version: i64 = statement.query_row(
            params![
                file,
                part.path,
                batch.new_version,
                batch.follows_rows,
                batch.size as i64,
                batch.content_size as i64,
                batch.parsed as i64,
                batch.stat.map(|stat| stat.inode),
                batch.stat.map(|stat| stat.modified.micros()),
                batch.stat.map(|stat| stat.changed.micros()),
                batch.reader_version,
                batch.twin_of,
            ],
            |row| row.get(0),
        )?;
        if batch.follows_rows {
            self.save_state(file, &batch.state)?;
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into version (file, version, size, modified, captured_at) values ($1, $2, $3, $4, $5)
             on conflict (file, version) do update set size = excluded.size, modified = excluded.modified"
        ))?;
        let modified = batch.stat.map(|stat| stat.modified.micros());
        statement.execute(params![file, version, batch.size as i64, modified, now])?;
        Ok((file, version))
    }

    fn item(&mut self, instance: i64, file: i64, version: i64, item: Item) -> Result<()> {
        match item {
            Item::Message(message) => self.message(instance, file, &message),
            Item::Amend { session, offset, kind } => self.amend(instance, file, &session, offset, kind),
            Item::Extend { session, message, span } => self.extend(instance, file, &session, message, span),
            Item::Summary(summary) => self.summary(file, &summary),
            Item::Landmark { session, row } => self.landmark(instance, file, &session, row),
            Item::Call(call) => self.call(instance, file, &call),
            Item::Result(result) => self.result(instance, file, &result),
            Item::Usage(usage) => self.usage(instance, file, &usage),
            Item::Touch(touch) => self.touch(instance, file, &touch),
            Item::Link(link) => self.link(instance, file, &link),
            Item::Document(document) => self.document(instance, file, version, &document),
        }
    }

    fn message(&mut self, instance: i64, file: i64, message: &Message) -> Result<()> {
        let session = self.session(instance, &message.session)?;
        let model = self.word(message.model.as_ref())?;
        let place = message.span.offset as i64;
        let settled = self.settle(
            "message",
            message.key,
            &Settled { session, file, place, inherited: message.inherited, at: message.at },
        )?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into message (session, file, place, length, role, kind, at, key, inherited, copied, tally, model)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        ))?;
        statement.execute(params![
            session,
            file,
            place,
            message.span.length as i64,
            message.role.stored(),
            message.kind.stored(),
            message.at.map(Time::micros),
            message.key.stored(),
            message.inherited,
            settled,
            message.tally.stored(),
            model,
        ])?;
        drop(statement);
        if !settled {
            self.count_message(session, message.role, message.tally, 1);
        }
        Ok(())
    }

    fn amend(
        &mut self,
        instance: i64,
        file: i64,
        session: &Arc<str>,
        offset: u64,
        kind: MessageKind,
    ) -> Result<()> {
        let session = self.session(instance, session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "select role, tally, copied from message where session = $1 and file = $2 and place = $3"
        ))?;
        let before = statement
            .query_row(params![session, file, offset as i64], |row| {
                let (role, tally) = (Role::from_stored(row.get(0)?), Tally::from_stored(row.get(1)?));
                Ok((role, tally, row.get::<_, bool>(2)?))
            })
            .optional()?;
        drop(statement);
        let Some((role, before, copied)) = before else { return Ok(()) };
        let tally = Tally::of(kind);
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set kind = $4, tally = $5 where session = $1 and file = $2 and place = $3"
        ))?;
        statement.execute(params![session, file, offset as i64, kind.stored(), tally.stored()])?;
        drop(statement);
        if !copied {
            self.count_message(session, role, before, -1);
            self.count_message(session, role, tally, 1);
        }
        Ok(())
    }

    fn extend(
        &mut self,
        instance: i64,
        file: i64,
        session: &Arc<str>,
        message: u64,
        span: Span,
    ) -> Result<()> {
        let session = self.session(instance, session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into message_line (session, file, place, line, length) values ($1, $2, $3, $4, $5)"
        ))?;
        statement.execute(params![session, file, message as i64, span.offset as i64, span.length as i64])?;
        Ok(())
    }

    fn summary(&mut self, file: i64, summary: &Summary) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into summary (file, place, row_key, text) values ($1, $2, $3, $4)"
        ))?;
        statement.execute(params![file, summary.offset as i64, summary.row.stored(), summary.text])?;
        Ok(())
    }

    fn landmark(&mut self, instance: i64, file: i64, session: &Arc<str>, row: Key) -> Result<()> {
        let session = self.session(instance, session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into landmark (row_key, session, file) values ($1, $2, $3)
             on conflict (row_key, session, file) do nothing"
        ))?;
        statement.execute(params![row.stored(), session, file])?;
        Ok(())
    }

    pub(super) fn count_message(&mut self, session: i64, role: Role, tally: Tally, by: i64) {
        let delta = self.deltas.entry(session).or_default();
        let (message, record) = match tally {
            Tally::Nothing => (0, 0),
            Tally::Record => (0, by),
            Tally::Message => (by, by),
            Tally::Aside => (by, 0),
        };
        delta.messages += message;
        match role {
            Role::User => delta.user += record,
            Role::Assistant => delta.assistant += record,
            Role::System | Role::Developer | Role::Tool => {}
        }
    }

    fn call(&mut self, instance: i64, file: i64, call: &Call) -> Result<()> {
        let session = self.session(instance, &call.session)?;
        let name = self.word(Some(&call.name))?;
        let model = self.word(call.model.as_ref())?;
        let place = call.span.offset as i64;
        let settled = self.settle(
            "tool_call",
            call.key,
            &Settled { session, file, place, inherited: call.inherited, at: call.at },
        )?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into tool_call (session, file, place, length, at, key, inherited, copied, call_id, name, kind,
                                    title, parent, message, model)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
        ))?;
        statement.execute(params![
            session,
            file,
            place,
            call.span.length as i64,
            call.at.map(Time::micros),
            call.key.stored(),
            call.inherited,
            settled,
            call.call_id,
            name,
            call.kind.stored(),
            call.title,
            call.parent.map(|parent| parent as i64),
            call.message.map(|message| message as i64),
            model,
        ])?;
        drop(statement);
        if !settled && call.parent.is_none() {
            self.deltas.entry(session).or_default().calls += 1;
        }
        Ok(())
    }

    fn result(&mut self, instance: i64, file: i64, result: &CallResult) -> Result<()> {
        let session = self.session(instance, &result.session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "update tool_call
             set output_place = coalesce($4, output_place), output_length = coalesce($5, output_length),
                 detail_place = coalesce($6, detail_place), detail_length = coalesce($7, detail_length),
                 ended_at = coalesce($8, ended_at), ok = coalesce($9, ok), exit_code = coalesce($10, exit_code),
                 duration_ms = coalesce($11, duration_ms), full_output = coalesce($12, full_output)
             where session = $1 and file = $2 and place = $3"
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
        ])?;
        Ok(())
    }

    fn usage(&mut self, instance: i64, file: i64, usage: &Usage) -> Result<()> {
        let session = self.session(instance, &usage.session)?;
        let model = self.word(usage.model.as_ref())?;
        let place = usage.span.offset as i64;
        if usage.again {
            return self.recount(session, file, usage);
        }
        let settled = self.settle(
            "usage",
            usage.key,
            &Settled { session, file, place, inherited: usage.inherited, at: usage.at },
        )?;
        let tokens = tokens_of(usage);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into usage (session, file, place, length, at, key, inherited, copied, model, input, output,
                                cache_read, cache_write, cache_write_hour, reasoning)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
        ))?;
        statement.execute(params![
            session,
            file,
            place,
            usage.span.length as i64,
            usage.at.map(Time::micros),
            usage.key.stored(),
            usage.inherited,
            settled,
            model,
            tokens[0],
            tokens[1],
            tokens[2],
            tokens[3],
            tokens[4],
            tokens[5],
        ])?;
        drop(statement);
        if !settled {
            self.count_tokens(session, tokens, 1);
        }
        Ok(())
    }

    /// Early records of a response are partial: the last one has its numbers.
    fn recount(&mut self, session: i64, file: i64, usage: &Usage) -> Result<()> {
        let row = Settled { session, file, place: usage.span.offset as i64, inherited: false, at: None };
        let mut statement = self.transaction.prepare_cached(sql!(
            "select copied from usage where session = $1 and file = $2 and place = $3"
        ))?;
        let copied: Option<bool> =
            statement.query_row(params![session, file, row.place], |row| row.get(0)).optional()?;
        drop(statement);
        let Some(copied) = copied else { return Ok(()) };
        if !copied {
            self.count_row("usage", &row, -1)?;
        }
        let tokens = tokens_of(usage);
        let mut statement = self.transaction.prepare_cached(sql!(
            "update usage set input = $4, output = $5, cache_read = $6, cache_write = $7, cache_write_hour = $8,
                    reasoning = $9
             where session = $1 and file = $2 and place = $3"
        ))?;
        statement.execute(params![
            session, file, row.place, tokens[0], tokens[1], tokens[2], tokens[3], tokens[4], tokens[5]
        ])?;
        drop(statement);
        if !copied {
            self.count_tokens(session, tokens, 1);
        }
        Ok(())
    }

    pub(super) fn count_tokens(&mut self, session: i64, tokens: [i64; 6], by: i64) {
        let delta = self.deltas.entry(session).or_default();
        for (sum, tokens) in delta.tokens.iter_mut().zip(tokens) {
            *sum += by * tokens;
        }
    }

    fn touch(&mut self, instance: i64, file: i64, touch: &Touch) -> Result<()> {
        let session = self.session(instance, &touch.session)?;
        let path = self.word(Some(&touch.path.as_str().into()))?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into file_touch (session, file, place, number, path, operation, before_start, before_end,
                                     after_start, after_end)
             select $1, $2, $3, (select count(*) from file_touch where session = $1 and file = $2 and place = $3),
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

    fn link(&mut self, instance: i64, file: i64, link: &Link) -> Result<()> {
        let session = self.session(instance, &link.session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into link (session, file, kind, other, position) values ($1, $2, $3, $4, $5)
             on conflict (session, file, kind, other) do update set position = excluded.position"
        ))?;
        statement.execute(params![session, file, link.kind.name(), link.other, link.position])?;
        Ok(())
    }

    /// A record seen again with the same content is the same version; with other content it is the next one.
    fn document(&mut self, instance: i64, file: i64, version: i64, document: &Document) -> Result<()> {
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
            Some((_, hash, None)) if hash == document.content.stored() => return Ok(()),
            Some((number, _, _)) => number + 1,
            None => 1,
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into record (instance, stream, key, version, session, at, file, file_version, place, length,
                                 hash, seen_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
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
        ])?;
        Ok(())
    }

    pub(super) fn session(&mut self, instance: i64, key: &Arc<str>) -> Result<i64> {
        if let Some(id) = self.sessions.get(&(instance, Arc::clone(key))) {
            return Ok(*id);
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into session (instance, key, models, archived, facts, messages, user_messages, assistant_messages,
                                  tool_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
                                  cache_write_hour_tokens, reasoning_tokens)
             values ($1, $2, '[]', 0, '{}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
             on conflict (instance, key) do update set key = excluded.key returning id"
        ))?;
        let id = statement.query_row(params![instance, key.as_ref()], |row| row.get(0))?;
        drop(statement);
        if self.sessions.len() >= WORDS {
            self.sessions.clear();
        }
        self.sessions.insert((instance, Arc::clone(key)), id);
        self.touched.insert(id);
        Ok(id)
    }

    /// The number of a word that repeats.
    fn word(&mut self, word: Option<&Arc<str>>) -> Result<Option<i64>> {
        let Some(word) = word else { return Ok(None) };
        if let Some(id) = self.words.get(word) {
            return Ok(Some(*id));
        }
        let mut statement = self.transaction.prepare_cached(sql!("select id from name where text = $1"))?;
        let known: Option<i64> = statement.query_row([word.as_ref()], |row| row.get(0)).optional()?;
        drop(statement);
        let id = match known {
            Some(id) => id,
            None => {
                let mut statement =
                    self.transaction.prepare_cached(sql!("insert into name (text) values ($1)"))?;
                statement.execute([word.as_ref()])?;
                self.transaction.last_insert_rowid()
            }
        };
        if self.words.len() >= WORDS {
            self.words.clear();
        }
        self.words.insert(Arc::clone(word), id);
        Ok(Some(id))
    }
}

fn tokens_of(usage: &Usage) -> [i64; 6] {
    [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_hour, usage.reasoning]
}
