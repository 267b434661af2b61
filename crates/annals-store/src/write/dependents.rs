//! Rows whose records have fields that come from other rows: they have changed once those were written.

use rusqlite::{OptionalExtension, params};

use super::Writer;
use crate::error::Result;
use crate::sql;
use annals_core::InstanceId;

/// Cursor: the directories of sessions when records that name a project were last marked.
const FOLDERS: &str = "folders of records";

impl Writer<'_> {
    /// A full output (`stream/key`) names the call whose output it is.
    pub(crate) fn mark_full_output(&self, instance: InstanceId, record: &str) -> Result<()> {
        match record.split_once('/') {
            Some((stream, key)) => self.mark_record(instance, stream, key),
            None => Ok(()),
        }
    }

    /// A call has the output that is stored in this record.
    pub(crate) fn mark_calls_with_output(&self, instance: InstanceId, stream: &str, key: &str) -> Result<()> {
        let record = format!("{stream}/{key}");
        let mut statement = self.transaction.prepare_cached(sql!(
            "update tool_call set changed = $3 where full_output = $1
             and session in (select id from session where instance = $2)"
        ))?;
        let marked = statement.execute(params![record, instance, self.commit])?;
        drop(statement);
        if marked > 0 {
            // Changed calls are looked for in changed sessions.
            let mut statement = self.transaction.prepare_cached(sql!(
                "update session set changed = $3 where instance = $2
                 and id in (select session from tool_call where full_output = $1)"
            ))?;
            statement.execute(params![record, instance, self.commit])?;
        }
        Ok(())
    }

    /// Marks the versions of a record as changed by this commit.
    pub(crate) fn mark_record(&self, instance: InstanceId, stream: &str, key: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update record set changed = $4 where instance = $1 and stream = $2 and key = $3"
        ))?;
        statement.execute(params![instance, stream, key, self.commit])?;
        Ok(())
    }

    /// Marks records that name the project they belong to, if sessions ran in other directories than the last time.
    pub fn mark_records_of_projects(&mut self, instance: InstanceId, streams: &[&str]) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select cwd from session where instance = $1 and cwd is not null group by cwd order by cwd"
        ))?;
        let mut hasher = blake3::Hasher::new();
        let mut rows = statement.query(params![instance])?;
        while let Some(row) = rows.next()? {
            hasher.update(row.get::<_, String>(0)?.as_bytes());
            hasher.update(b"\n");
        }
        drop(rows);
        drop(statement);
        let folders = hasher.finalize().to_hex().to_string();
        let mut statement = self
            .transaction
            .prepare_cached(sql!("select value from cursor where instance = $1 and name = $2"))?;
        let before: Option<String> =
            statement.query_row(params![instance, FOLDERS], |row| row.get(0)).optional()?;
        drop(statement);
        if before.as_deref() == Some(folders.as_str()) {
            return Ok(());
        }
        for stream in streams {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("update record set changed = $3 where instance = $1 and stream = $2"))?;
            statement.execute(params![instance, stream, self.commit])?;
        }
        self.set_cursor(instance, FOLDERS, &folders)
    }
}
