//! Writes batches: bytes, rows, counts and cursor of a part of a file in one transaction.

pub(crate) mod changes;
mod copies;
mod dependents;
pub(crate) mod digest;
mod live;
mod projects;
mod runs;
pub(crate) mod sample;
mod sessions;
mod transcript;
mod tree;
mod typed;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{OptionalExtension, Transaction, params};

use crate::error::Result;
use crate::index::write::IndexBuilder;
use crate::{Batch, LineCount, ReadRows, Segment, Store, blobs, sql};
use annals_core::{
    Encoding, FileId, Framing, InstanceId, Item, Picodollars, SessionFacts, SessionId, Span, Time, Tokens,
};

/// Malformed lines of one file that are stored with their places; all are counted.
const MALFORMED: i64 = 100;
/// Words cached while writing; the cache is cleared when it is full.
const WORDS: usize = 50_000;

/// Tables of rows that are rebuilt from bytes.
pub(crate) const DERIVED: &[&str] = &[
    "message",
    "message_line",
    "node",
    "summary",
    "landmark",
    "project",
    "typed_prompt",
    "spoken",
    "tool_call",
    "usage",
    "usage_sum",
    "file_touch",
    "link",
    "record",
    "coverage",
    "malformed",
    "session_part",
    "session",
    "name",
    "search_segment",
    "search_block",
    "removed",
];

/// An open transaction. Dropping it without `commit` undoes everything.
pub struct Writer<'s> {
    pub(crate) transaction: Transaction<'s>,
    pub(crate) now: Time,
    sessions: HashMap<(InstanceId, Arc<str>), SessionId>,
    /// The session that was asked for last: most rows are of the same one.
    session: Option<(InstanceId, Arc<str>, SessionId)>,
    words: HashMap<Arc<str>, i64>,
    pub(crate) deltas: HashMap<SessionId, Delta>,
    pub(crate) usage_deltas: HashMap<UsagePlace, UsageDelta>,
    pub(crate) touched: BTreeSet<SessionId>,
    /// Sessions in which copies of other sessions' rows were found.
    pub(crate) copying: BTreeSet<SessionId>,
    pub(crate) index: IndexBuilder,
    /// The number of this commit.
    pub(crate) commit: i64,
    /// Rows that a reader of records may have seen were removed.
    pub(crate) removed_rows: bool,
    /// Rows of a file were dropped, and its passages with them.
    pub(crate) dropped_passages: bool,
}

/// Changes of a session's totals in this transaction.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Delta {
    pub messages: i64,
    pub user: i64,
    pub assistant: i64,
    pub calls: i64,
    pub tokens: Tokens,
}

/// The sum that a response belongs to: session, day, model, class of prompt length, and whether its cost is reported.
pub(crate) type UsagePlace = (SessionId, i64, i64, i64, bool);

/// What a response used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub tokens: Tokens,
    pub cost: Option<Picodollars>,
}

/// Changes of such a sum.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct UsageDelta {
    pub responses: i64,
    pub tokens: Tokens,
    pub cost: Picodollars,
}

impl Store {
    pub fn writer(&mut self, now: Time) -> Result<Writer<'_>> {
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        Ok(Writer {
            commit: changes::next_commit(&transaction)?,
            transaction,
            now,
            sessions: HashMap::new(),
            session: None,
            words: HashMap::new(),
            deltas: HashMap::new(),
            usage_deltas: HashMap::new(),
            touched: BTreeSet::new(),
            copying: BTreeSet::new(),
            index: IndexBuilder::default(),
            removed_rows: false,
            dropped_passages: false,
        })
    }
}

impl Writer<'_> {
    /// Writes as if it were `now`, so that rebuilt rows keep the times of their first reading.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Applies a batch and returns the file's id.
    pub fn apply(&mut self, batch: Batch) -> Result<FileId> {
        let (file, version) = self.file_row(&batch)?;
        if batch.drops_rows {
            self.forget_rows(file)?;
        }
        if let Some(other) = batch.supersedes {
            self.forget_rows(other)?;
            // If it owns rows again later, they are read from its start.
            let mut statement = self.transaction.prepare_cached(sql!(
                "update file set rows_owner = $2, parsed = 0, content_size = 0 where id = $1"
            ))?;
            statement.execute(params![other, file])?;
        }
        for segment in &batch.segments {
            self.write_segment(file, version, segment)?;
        }
        self.cut_segments(file, version, batch.size)?;
        if let Some((stream, key)) = &batch.described_by
            && batch.new_bytes > 0
        {
            self.mark_record(batch.instance, stream, key)?;
        }
        for capture in &batch.captures {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into capture (file, hash) values ($1, $2) on conflict (file, hash) do nothing"
            ))?;
            statement.execute(params![file, capture.as_slice()])?;
        }
        if let Some(rows) = batch.rows {
            self.apply_counts(file, &rows.counts, &rows.malformed)?;
            self.apply_items(batch.instance, file, version, rows.items, rows.facts)?;
        }
        if batch.part.mutable && batch.new_version {
            self.end_unseen_records(file, version, self.now)?;
        }
        Ok(file)
    }

    pub(crate) fn write_segment(&self, file: FileId, version: i64, segment: &Segment) -> Result<()> {
        let offset = segment.offset as i64;
        let blob = blobs::blob_of(&self.transaction, segment)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "select blob from segment where file = $1 and version = $2 and byte_offset = $3"
        ))?;
        let before: Option<i64> =
            statement.query_row(params![file, version, offset], |row| row.get(0)).optional()?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into segment (file, version, byte_offset, length, blob) values ($1, $2, $3, $4, $5)
             on conflict (file, version, byte_offset) do update set length = excluded.length, blob = excluded.blob"
        ))?;
        statement.execute(params![file, version, offset, segment.length as i64, blob])?;
        // The last segment of a version grows with the file.
        match before.filter(|before| *before != blob) {
            Some(before) => blobs::remove_unused(&self.transaction, before),
            None => Ok(()),
        }
    }

    /// Removes what is behind the end of a version: its file may shrink while it is read.
    fn cut_segments(&self, file: FileId, version: i64, size: u64) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "delete from segment where file = $1 and version = $2 and byte_offset >= $3 returning blob"
        ))?;
        let blobs = statement.query_map(params![file, version, size as i64], |row| row.get(0))?;
        let blobs: Vec<i64> = blobs.collect::<rusqlite::Result<_>>()?;
        blobs.into_iter().try_for_each(|blob| blobs::remove_unused(&self.transaction, blob))
    }

    /// Applies rows of a part of a file whose bytes are in the archive.
    pub fn apply_rows(
        &mut self,
        instance: InstanceId,
        file: FileId,
        version: i64,
        rows: ReadRows,
        reader_version: u32,
    ) -> Result<()> {
        self.apply_counts(file, &rows.counts, &rows.malformed)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set parsed = $2, content_size = $3, reader_version = $4 where id = $1"
        ))?;
        statement.execute(params![file, rows.parsed as i64, rows.content_size as i64, reader_version])?;
        drop(statement);
        self.save_state(file, &rows.state)?;
        self.apply_items(instance, file, version, rows.items, rows.facts)
    }

    /// Applies only items, of a version that was replaced.
    pub fn apply_items(
        &mut self,
        instance: InstanceId,
        file: FileId,
        version: i64,
        items: Vec<Item>,
        facts: Vec<(Arc<str>, u8, SessionFacts)>,
    ) -> Result<()> {
        let epoch = self.epoch(file)?;
        for item in items {
            match item {
                Item::Passage(passage) => self.write_passage(instance, file, epoch, &passage)?,
                item => self.write_item(instance, file, version, item)?,
            }
        }
        for (session, rank, facts) in facts {
            let session = self.session_id(instance, &session)?;
            self.touched.insert(session);
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into session_part (session, file, rank, facts) values ($1, $2, $3, $4)
                 on conflict (session, file) do update set rank = excluded.rank, facts = excluded.facts"
            ))?;
            statement.execute(params![session, file, rank, serde_json::to_string(&facts)?])?;
        }
        Ok(())
    }

    fn apply_counts(
        &mut self,
        file: FileId,
        counts: &[LineCount],
        malformed: &[(Span, String)],
    ) -> Result<()> {
        for count in counts {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into coverage (file, status, kind, lines, bytes) values ($1, $2, $3, $4, $5)
                 on conflict (file, status, kind) do update
                 set lines = coverage.lines + excluded.lines, bytes = coverage.bytes + excluded.bytes"
            ))?;
            statement.execute(params![
                file,
                count.status.name(),
                count.kind,
                count.lines as i64,
                count.bytes as i64
            ])?;
        }
        for (span, what) in malformed {
            let mut statement = self.transaction.prepare_cached(sql!(
                "insert into malformed (file, byte_offset, length, what)
                 select $1, $2, $3, $4 where (select count(*) from malformed where file = $1) < $5
                 on conflict (file, byte_offset) do nothing"
            ))?;
            statement.execute(params![file, span.offset as i64, span.length as i64, what, MALFORMED])?;
        }
        Ok(())
    }

    fn save_state(&self, file: FileId, state: &str) -> Result<()> {
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

    /// Updates sessions and totals from the rows, as a commit does, and frees the memory they took.
    pub fn flush(&mut self) -> Result<()> {
        self.update_sessions()?;
        self.write_index()?;
        self.forget_sessions();
        Ok(())
    }

    fn forget_sessions(&mut self) {
        self.sessions.clear();
        self.session = None;
    }

    /// Updates sessions and totals from the rows, and commits.
    pub fn commit(mut self) -> Result<()> {
        self.flush()?;
        self.save_commit()?;
        self.transaction.commit()?;
        Ok(())
    }

    /// Discards all rows that came from files, so that they can be rebuilt from the bytes.
    pub fn forget_everything(&mut self) -> Result<()> {
        for table in DERIVED {
            self.transaction.execute_batch(&format!("delete from {table}"))?;
        }
        self.transaction.execute_batch(
            "update file set parsed = 0, search_epoch = 0;
             delete from reader_state;
             insert into setting (name, value) values ('rebuilding', 1) on conflict (name) do nothing;
             insert into setting (name, value) values ('rebuilds', 1)
             on conflict (name) do update set value = setting.value + 1",
        )?;
        self.forget_sessions();
        self.words.clear();
        Ok(())
    }

    /// Marks a rebuild as complete.
    pub fn finish_rebuild(&mut self) -> Result<()> {
        self.transaction.execute_batch("delete from setting where name = 'rebuilding'")?;
        Ok(())
    }

    fn file_row(&mut self, batch: &Batch) -> Result<(FileId, i64)> {
        let part = &batch.part;
        let framing = match part.framing {
            Framing::Lines => "lines",
            Framing::Sequence => "sequence",
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
                    "insert into file (instance, path, logical_path, store, reader, framing, encoding, document, mutable, version,
                                       rows_version, size, content_size, parsed, reader_version, first_seen)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $10, 0, 0, 0, 0, 0, 0, $9)"
                ))?;
                statement.execute(params![
                    batch.instance,
                    part.path,
                    part.logical_path,
                    part.store,
                    part.reader,
                    framing,
                    encoding,
                    part.document,
                    now,
                    part.mutable
                ])?;
                FileId(self.transaction.last_insert_rowid())
            }
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set path = $2, version = version + $3,
                    rows_version = case when $4 then version + $3 else rows_version end,
                    size = $5, content_size = case when $4 then $6 else content_size end,
                    parsed = case when $4 then $7 else parsed end,
                    inode = $8, modified = $9, changed = $10, reader_version = $11, rows_owner = $12, gone_at = null,
                    mode = coalesce($13, mode),
                    logical_path = case when substr(logical_path, 1, 10) = 'forgotten/' then $14 else logical_path end
             where id = $1 returning version"
        ))?;
        let version: i64 = statement.query_row(
            params![
                file,
                part.path,
                batch.new_version,
                batch.rows.is_some(),
                batch.size as i64,
                batch.rows.as_ref().map(|rows| rows.content_size as i64),
                batch.rows.as_ref().map(|rows| rows.parsed as i64),
                batch.stat.map(|stat| stat.inode),
                batch.stat.map(|stat| stat.modified.micros()),
                batch.stat.map(|stat| stat.changed.micros()),
                batch.reader_version,
                batch.owner.stored(),
                batch.stat.and_then(|stat| stat.mode),
                // A file that was forgotten has a name again once it has new content.
                part.logical_path,
            ],
            |row| row.get(0),
        )?;
        if let Some(rows) = &batch.rows {
            self.save_state(file, &rows.state)?;
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into version (file, version, size, modified, captured_at) values ($1, $2, $3, $4, $5)
             on conflict (file, version) do update set size = excluded.size, modified = excluded.modified"
        ))?;
        let modified = batch.stat.map(|stat| stat.modified.micros());
        statement.execute(params![file, version, batch.size as i64, modified, now])?;
        Ok((file, version))
    }

    pub(crate) fn session_id(&mut self, instance: InstanceId, key: &Arc<str>) -> Result<SessionId> {
        if let Some((of, last, id)) = &self.session
            && *of == instance
            && Arc::ptr_eq(last, key)
        {
            return Ok(*id);
        }
        let id = self.find_session(instance, key)?;
        self.session = Some((instance, Arc::clone(key), id));
        Ok(id)
    }

    fn find_session(&mut self, instance: InstanceId, key: &Arc<str>) -> Result<SessionId> {
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

    /// The id of a repeated word.
    pub(crate) fn word_id(&mut self, word: Option<&Arc<str>>) -> Result<Option<i64>> {
        let Some(word) = word else { return Ok(None) };
        if let Some(id) = self.words.get(word) {
            return Ok(Some(*id));
        }
        let mut statement = self.transaction.prepare_cached(sql!("select id from name where text = $1"))?;
        let known: Option<i64> = statement.query_row(params![word.as_ref()], |row| row.get(0)).optional()?;
        drop(statement);
        let id = match known {
            Some(id) => id,
            None => {
                let mut statement =
                    self.transaction.prepare_cached(sql!("insert into name (text) values ($1)"))?;
                statement.execute(params![word.as_ref()])?;
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
