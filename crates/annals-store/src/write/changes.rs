//! Numbers commits and remembers removed rows, so that a reader of records can resume where it stopped.

use rusqlite::{OptionalExtension, Transaction, params};

use super::Writer;
use crate::error::Result;
use crate::sql;
use annals_core::{ContentKey, FileId, InstanceId, SessionId};

/// The kind of a removed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedKind {
    Session = 0,
    Message = 1,
    Call = 2,
}

impl RemovedKind {
    fn of_table(table: &str) -> Option<RemovedKind> {
        match table {
            "message" => Some(RemovedKind::Message),
            "tool_call" => Some(RemovedKind::Call),
            _ => None,
        }
    }
}

/// The number of the commit that this transaction will be.
pub(crate) fn next_commit(transaction: &Transaction<'_>) -> Result<i64> {
    let mut statement =
        transaction.prepare_cached(sql!("select value from setting where name = 'commits'"))?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(last.unwrap_or(0) + 1)
}

/// Remembers the number of the commit.
pub(crate) fn save_commit(transaction: &Transaction<'_>, commit: i64) -> Result<()> {
    let mut statement = transaction.prepare_cached(sql!(
        "insert into setting (name, value) values ('commits', $1)
         on conflict (name) do update set value = excluded.value"
    ))?;
    statement.execute(params![commit])?;
    Ok(())
}

impl Writer<'_> {
    pub(crate) fn save_commit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.removed_rows) {
            self.prune_removed()?;
        }
        save_commit(&self.transaction, self.commit)
    }

    /// Records that the rows of a file of a session, or one of them, are about to be removed.
    pub(crate) fn note_removed(
        &mut self,
        table: &'static str,
        session: SessionId,
        file: FileId,
        offset: Option<i64>,
    ) -> Result<()> {
        let Some(kind) = RemovedKind::of_table(table) else { return Ok(()) };
        let text = format!(
            "insert into removed (changed, instance, kind, session, key, at)
             select ?1, session.instance, ?2, session.key, row.key, ?6 from {table} row
             join session on session.id = row.session
             where row.session = ?3 and row.file = ?4 and (?5 is null or row.byte_offset = ?5)"
        );
        let mut statement = self.transaction.prepare_cached(&text)?;
        let count =
            statement.execute(params![self.commit, kind as i64, session, file, offset, self.now.micros()])?;
        drop(statement);
        self.removed_rows |= count > 0;
        Ok(())
    }

    pub(crate) fn note_removed_session(&mut self, instance: InstanceId, key: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into removed (changed, instance, kind, session, key, at) values ($1, $2, $4, $3, 0, $5)"
        ))?;
        statement.execute(params![
            self.commit,
            instance,
            key,
            RemovedKind::Session as i64,
            self.now.micros()
        ])?;
        drop(statement);
        // A session with this name that reappears in this transaction gets another row.
        self.sessions.retain(|(of, known), _| *of != instance || known.as_ref() != key);
        self.session = None;
        self.removed_rows = true;
        Ok(())
    }

    /// Records that a message gets another key.
    pub(crate) fn note_rekeyed(&mut self, session: SessionId, before: ContentKey) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into removed (changed, instance, kind, session, key, at)
             select $1, instance, 1, key, $3, $4 from session where id = $2"
        ))?;
        statement.execute(params![self.commit, session, before.stored(), self.now.micros()])?;
        self.removed_rows = true;
        Ok(())
    }

    /// Forgets removed rows that reappeared in this commit or a later one.
    fn prune_removed(&self) -> Result<()> {
        self.transaction.execute_batch(
            "delete from removed where kind = 0 and exists (
                 select 1 from session where session.instance = removed.instance and session.key = removed.session);
             delete from removed where kind = 1 and exists (
                 select 1 from message join session on session.id = message.session
                 where message.key = removed.key and session.instance = removed.instance
                 and session.key = removed.session);
             delete from removed where kind = 2 and exists (
                 select 1 from tool_call join session on session.id = tool_call.session
                 where tool_call.key = removed.key and session.instance = removed.instance
                 and session.key = removed.session)",
        )?;
        Ok(())
    }
}
