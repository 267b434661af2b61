//! Counts rows once: of rows with one key, one is the original and the others are copies.
//!
//! Forks, resumes, sub-agents and replays repeat history. Which row is the original must not depend on the order in
//! which files arrive: a line in its own session's part of a file wins over one that may be inherited, then the earlier
//! one, then the session's name decides.
//!
//! The original is chosen among the homes of one member, so what another member synced takes nothing away. Whoever sees
//! several members counts a row once when reading it (see `Archive::prepare`).

use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::{Used, Writer};
use crate::error::Result;
use crate::sql;
use annals_core::{ContentKey, FileId, InstanceId, Role, SessionId, Tally, Time};

/// The place of a row among rows with one key, and what decides whether it is the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyCandidate {
    pub session: SessionId,
    pub file: FileId,
    pub offset: i64,
    pub inherited: bool,
    pub at: Option<Time>,
}

impl Writer<'_> {
    /// Returns whether the new row is a copy. If it is the original instead, the previous original becomes a copy.
    pub(crate) fn resolve_original(
        &mut self,
        table: &'static str,
        key: ContentKey,
        new: &CopyCandidate,
    ) -> Result<bool> {
        let Some(old) = self.original(table, key, new.session)? else { return Ok(false) };
        if self.precedence(new)? < self.precedence(&old)? {
            self.mark(table, &old, true)?;
            // All copies now have another original.
            let copies = self.copies(table, key, new.session)?;
            self.copying.extend(copies.iter().map(|copy| copy.session));
            return Ok(false);
        }
        self.copying.insert(new.session);
        Ok(true)
    }

    /// Removes the rows of a file. The best copy of each removed original becomes the original.
    pub(crate) fn forget_rows(&mut self, file: FileId) -> Result<()> {
        let mut statement =
            self.transaction.prepare_cached(sql!("select session from session_part where file = $1"))?;
        let sessions: Vec<SessionId> =
            statement.query_map(params![file], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for session in &sessions {
            for table in ["message", "tool_call", "usage"] {
                self.forget_in(table, *session, file)?;
            }
            for table in ["message_line", "file_touch", "link", "landmark", "node", "session_part"] {
                let text = format!("delete from {table} where session = ?1 and file = ?2");
                self.transaction.prepare_cached(&text)?.execute(params![*session, file])?;
            }
            self.forget_typed(*session, file)?;
            let mut statement = self
                .transaction
                .prepare_cached(sql!("update summary set session = null where session = $1"))?;
            statement.execute(params![*session])?;
            drop(statement);
            self.touched.insert(*session);
            self.copying.insert(*session);
        }
        let mut statement = self
            .transaction
            .prepare_cached(sql!("update file set search_epoch = search_epoch + 1 where id = $1"))?;
        statement.execute(params![file])?;
        self.dropped_passages = true;
        drop(statement);
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select session from summary where file = $1 and session is not null"))?;
        let named: Vec<SessionId> =
            statement.query_map(params![file], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        self.touched.extend(named);
        self.forget_projects(file)?;
        for table in ["coverage", "malformed", "summary", "typed_prompt"] {
            let text = format!("delete from {table} where file = ?1");
            self.transaction.prepare_cached(&text)?.execute(params![file])?;
        }
        Ok(())
    }

    /// Links each session to the one that most of its copies come from.
    pub(crate) fn link_copies(&mut self) -> Result<()> {
        for session in std::mem::take(&mut self.copying) {
            let mut statement = self.transaction.prepare_cached(sql!(
                "select origin.key from message copy
                 join message original on original.key = copy.key and original.copied = 0
                      and original.session <> copy.session
                 join session origin on origin.id = original.session
                 join instance home on home.id = origin.instance
                 where copy.session = $1 and copy.copied = 1
                 and home.member is not distinct from
                     (select instance.member from session own join instance on instance.id = own.instance
                      where own.id = $1)
                 group by origin.key order by count(*) desc, origin.key limit 1"
            ))?;
            let origin: Option<String> =
                statement.query_row(params![session], |row| row.get(0)).optional()?;
            drop(statement);
            let mut statement = self
                .transaction
                .prepare_cached(sql!("delete from link where session = $1 and kind = 'copy'"))?;
            statement.execute(params![session])?;
            drop(statement);
            if let Some(origin) = origin {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "insert into link (session, file, kind, other) values ($1, 0, 'copy', $2)"
                ))?;
                statement.execute(params![session, origin])?;
            }
            self.touched.insert(session);
        }
        Ok(())
    }

    fn forget_in(&mut self, table: &'static str, session: SessionId, file: FileId) -> Result<()> {
        let text = format!(
            "select byte_offset, key, inherited, at from {table} where session = ?1 and file = ?2 and copied = 0"
        );
        let mut statement = self.transaction.prepare_cached(&text)?;
        let originals: Vec<(ContentKey, CopyCandidate)> = statement
            .query_map(params![session, file], |row| {
                let key = ContentKey::from_stored(row.get(1)?);
                Ok((key, candidate(session, file, row.get(0)?, row.get(2)?, row.get(3)?)))
            })?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for (_, row) in &originals {
            self.count_row(table, row, -1)?;
        }
        if table == "message" {
            self.count_copies_out(session, file)?;
        }
        self.note_removed(table, session, file, None)?;
        let text = format!("delete from {table} where session = ?1 and file = ?2");
        self.transaction.prepare_cached(&text)?.execute(params![session, file])?;
        for (key, _) in originals {
            self.promote(table, key, session)?;
        }
        Ok(())
    }

    /// Removes a row. If it was an original, the best of its copies becomes the original.
    pub(crate) fn forget_row(
        &mut self,
        table: &'static str,
        session: SessionId,
        file: FileId,
        offset: i64,
    ) -> Result<()> {
        let text = format!(
            "select key, inherited, at, copied from {table} where session = ?1 and file = ?2 and byte_offset = ?3"
        );
        let mut statement = self.transaction.prepare_cached(&text)?;
        let found = statement
            .query_row(params![session, file, offset], |row| {
                let row_at = candidate(session, file, offset, row.get(1)?, row.get(2)?);
                Ok((ContentKey::from_stored(row.get(0)?), row_at, row.get::<_, bool>(3)?))
            })
            .optional()?;
        drop(statement);
        let Some((key, row, copied)) = found else { return Ok(()) };
        if !copied {
            self.count_row(table, &row, -1)?;
        } else if table == "message" {
            let (role, tally) = self.tally_of(&row)?;
            self.count_message(session, role, tally.parts().1, -1);
        }
        self.note_removed(table, session, file, Some(offset))?;
        let text = format!("delete from {table} where session = ?1 and file = ?2 and byte_offset = ?3");
        self.transaction.prepare_cached(&text)?.execute(params![session, file, offset])?;
        if copied { Ok(()) } else { self.promote(table, key, session) }
    }

    /// Subtracts what is counted for copies as well.
    fn count_copies_out(&mut self, session: SessionId, file: FileId) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select role, tally, count(*) from message where session = $1 and file = $2 and copied = 1
             group by role, tally"
        ))?;
        let copies: Vec<(Role, Tally, i64)> = statement
            .query_map(params![session, file], |row| {
                Ok((Role::from_stored(row.get(0)?), Tally::from_stored(row.get(1)?), row.get(2)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for (role, tally, count) in copies {
            let (_, everywhere) = tally.parts();
            self.count_message(session, role, everywhere, -count);
        }
        Ok(())
    }

    /// Makes the best copy the original, after the original with this key was removed from a session.
    fn promote(&mut self, table: &'static str, key: ContentKey, session: SessionId) -> Result<()> {
        let mut heirs = self.copies(table, key, session)?;
        self.copying.extend(heirs.iter().map(|heir| heir.session));
        let mut best: Option<CopyCandidate> = None;
        for heir in heirs.drain(..) {
            let better = match &best {
                None => true,
                Some(best) => self.precedence(&heir)? < self.precedence(best)?,
            };
            if better {
                best = Some(heir);
            }
        }
        match best {
            Some(heir) => self.mark(table, &heir, false),
            None => Ok(()),
        }
    }

    /// Changes the key of a message, which may make it a copy or the original of copies.
    pub(crate) fn rekey(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        offset: u64,
        key: ContentKey,
    ) -> Result<()> {
        let (session, offset) = (self.session_id(instance, session)?, offset as i64);
        let mut statement = self.transaction.prepare_cached(sql!(
            "select key, inherited, at, copied from message where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        let found = statement
            .query_row(params![session, file, offset], |row| {
                let row_at = candidate(session, file, offset, row.get(1)?, row.get(2)?);
                Ok((ContentKey::from_stored(row.get(0)?), row_at, row.get::<_, bool>(3)?))
            })
            .optional()?;
        drop(statement);
        let Some((before, row, copied)) = found else { return Ok(()) };
        self.mark_rewritten(&row)?;
        if !copied {
            self.mark("message", &row, true)?;
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set key = $4, changed = $5 where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![session, file, offset, key.stored(), self.commit])?;
        drop(statement);
        self.note_rekeyed(session, before)?;
        if !copied {
            self.promote("message", before, session)?;
        }
        if !self.resolve_original("message", key, &row)? {
            self.mark("message", &row, false)?;
        }
        Ok(())
    }

    /// Marks a message as rewritten: from now on its record counts in copies as well.
    fn mark_rewritten(&mut self, row: &CopyCandidate) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select role, tally, copied from message where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        let (role, tally, copied) =
            statement.query_row(params![row.session, row.file, row.offset], |row| {
                let (role, tally) = (Role::from_stored(row.get(0)?), Tally::from_stored(row.get(1)?));
                Ok((role, tally, row.get::<_, bool>(2)?))
            })?;
        drop(statement);
        let rewritten = tally.rewritten();
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set tally = $4 where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![row.session, row.file, row.offset, rewritten.stored()])?;
        drop(statement);
        if copied && rewritten != tally {
            let (_, everywhere) = rewritten.parts();
            self.count_message(row.session, role, everywhere, 1);
        }
        Ok(())
    }

    /// The original among the rows of the member whose session this is.
    fn original(
        &self,
        table: &'static str,
        key: ContentKey,
        session: SessionId,
    ) -> Result<Option<CopyCandidate>> {
        let mut statement = self.transaction.prepare_cached(select_by_key(table, false))?;
        let found = statement
            .query_row(params![key.stored(), session], |row| {
                Ok(candidate(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .optional()?;
        Ok(found)
    }

    fn copies(&self, table: &'static str, key: ContentKey, session: SessionId) -> Result<Vec<CopyCandidate>> {
        let mut statement = self.transaction.prepare_cached(select_by_key(table, true))?;
        let rows = statement.query_map(params![key.stored(), session], |row| {
            Ok(candidate(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn mark(&mut self, table: &'static str, row: &CopyCandidate, copied: bool) -> Result<()> {
        let changed = if table == "usage" { "" } else { ", changed = ?5" };
        let text = format!(
            "update {table} set copied = ?4{changed} where session = ?1 and file = ?2 and byte_offset = ?3"
        );
        let mut statement = self.transaction.prepare_cached(&text)?;
        let values = params![row.session, row.file, row.offset, copied, self.commit];
        let count = if table == "usage" { 4 } else { 5 };
        statement.execute(&values[..count])?;
        drop(statement);
        self.touched.insert(row.session);
        let by = if copied { -1 } else { 1 };
        if table == "message" {
            let (role, tally) = self.tally_of(row)?;
            let (once, _) = tally.parts();
            self.count_message(row.session, role, once, by);
            return Ok(());
        }
        self.count_row(table, row, by)
    }

    fn tally_of(&self, row: &CopyCandidate) -> Result<(Role, Tally)> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select role, tally from message where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        Ok(statement.query_row(params![row.session, row.file, row.offset], |row| {
            Ok((Role::from_stored(row.get(0)?), Tally::from_stored(row.get(1)?)))
        })?)
    }

    /// Adds a row to its session's totals, or subtracts it.
    pub(crate) fn count_row(&mut self, table: &'static str, row: &CopyCandidate, by: i64) -> Result<()> {
        let offset = params![row.session, row.file, row.offset];
        match table {
            "message" => {
                let (role, tally) = self.tally_of(row)?;
                self.count_message(row.session, role, tally, by);
            }
            "tool_call" => {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "select parent from tool_call where session = $1 and file = $2 and byte_offset = $3"
                ))?;
                let parent: Option<i64> = statement.query_row(offset, |row| row.get(0))?;
                drop(statement);
                if parent.is_none() {
                    self.deltas.entry(row.session).or_default().calls += by;
                }
            }
            _ => {
                let mut statement = self.transaction.prepare_cached(sql!(
                    "select input, output, cache_read, cache_write, cache_write_hour, reasoning, at, model, cost
                     from usage where session = $1 and file = $2 and byte_offset = $3"
                ))?;
                let (used, at, model) = statement.query_row(offset, |row| {
                    let used =
                        Used { tokens: crate::read::tokens(row, 0)?, cost: crate::read::cost(row, 8)? };
                    Ok((used, row.get::<_, Option<i64>>(6)?, row.get(7)?))
                })?;
                drop(statement);
                self.count_usage(row.session, at.map(Time::from_micros), model, used, by);
            }
        }
        Ok(())
    }

    /// The smaller is the original.
    fn precedence(&self, row: &CopyCandidate) -> Result<(bool, i64, String, i64)> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select session.key || ' ' || file.path || ' ' || instance.root from session, file, instance
             where session.id = $1 and file.id = $2 and instance.id = file.instance"
        ))?;
        let name = statement.query_row(params![row.session, row.file], |row| row.get(0))?;
        Ok((row.inherited, row.at.map_or(i64::MAX, Time::micros), name, row.offset))
    }
}

fn candidate(
    session: SessionId,
    file: FileId,
    offset: i64,
    inherited: bool,
    at: Option<i64>,
) -> CopyCandidate {
    CopyCandidate { session, file, offset, inherited, at: at.map(Time::from_micros) }
}

/// Selects rows by their key, among the homes of the member whose session `$2` is.
macro_rules! by_key {
    ($table:literal, $copied:literal) => {
        sql!(concat!(
            "select session, file, byte_offset, inherited, at from ",
            $table,
            " where key = $1 and copied = ",
            $copied,
            " and (select home.member from session other join instance home on home.id = other.instance
                   where other.id = ",
            $table,
            ".session)
              is not distinct from
              (select home.member from session own join instance home on home.id = own.instance where own.id = $2)"
        ))
    };
}

fn select_by_key(table: &str, copied: bool) -> &'static str {
    match (table, copied) {
        ("message", false) => by_key!("message", 0),
        ("message", true) => by_key!("message", 1),
        ("tool_call", false) => by_key!("tool_call", 0),
        ("tool_call", true) => by_key!("tool_call", 1),
        (_, false) => by_key!("usage", 0),
        (_, true) => by_key!("usage", 1),
    }
}
