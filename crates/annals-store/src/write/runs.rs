//! Homes, runs, cursors and deleted files: the state of the collector besides files.

use rusqlite::{OptionalExtension, params};

use super::Writer;
use crate::error::Result;
use crate::{Store, sql};
use annals_core::{ContentKey, FileId, InstanceId, SourceStatus, Time};

/// State of the collector for the whole archive. Never read on behalf of a member.
impl Store {
    pub fn instance(&self, source: &str, machine: &str, root: &str, now: Time) -> Result<InstanceId> {
        // A write would invalidate the caches of all readers, and most homes are known.
        if let Some(known) = self.known_instance(source, machine, root)? {
            return Ok(known);
        }
        let mut statement = self.connection.prepare_cached(sql!(
            "insert into instance (source, machine, root, status, reason, first_seen)
             values ($1, $2, $3, 'available', '', $4)
             on conflict (source, machine, root) do update set root = excluded.root returning id"
        ))?;
        Ok(statement.query_row(params![source, machine, root, now.micros()], |row| row.get(0))?)
    }

    /// The home, if it was ever captured.
    pub fn known_instance(&self, source: &str, machine: &str, root: &str) -> Result<Option<InstanceId>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select id from instance where source = $1 and machine = $2 and root = $3"
        ))?;
        Ok(statement.query_row(params![source, machine, root], |row| row.get(0)).optional()?)
    }

    /// The machine and directory of a home.
    pub fn home_of(&self, instance: InstanceId) -> Result<Option<(String, String)>> {
        let mut statement =
            self.connection.prepare_cached(sql!("select machine, root from instance where id = $1"))?;
        Ok(statement.query_row(params![instance], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    pub fn last_scanned(&self, instance: InstanceId) -> Result<Option<Time>> {
        let mut statement =
            self.connection.prepare_cached(sql!("select last_scanned from instance where id = $1"))?;
        Ok(statement.query_row(params![instance], |row| crate::read::time(row, 0))?)
    }

    pub fn cursor(&self, instance: InstanceId, name: &str) -> Result<Option<String>> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select value from cursor where instance = $1 and name = $2"))?;
        Ok(statement.query_row(params![instance, name], |row| row.get(0)).optional()?)
    }

    /// Cursors of an instance whose names start with `prefix`, with the prefix removed from the names.
    pub fn cursors(&self, instance: InstanceId, prefix: &str) -> Result<Vec<(String, String)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select substr(name, length($2) + 1), value from cursor
             where instance = $1 and substr(name, 1, length($2)) = $2 order by name"
        ))?;
        let rows = statement.query_map(params![instance, prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether a record has this content and has not ended.
    pub fn has_record(
        &self,
        instance: InstanceId,
        stream: &str,
        key: &str,
        content: ContentKey,
    ) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select hash, deleted_at is null from record where instance = $1 and stream = $2 and key = $3
             order by version desc limit 1"
        ))?;
        let newest: Option<(i64, bool)> = statement
            .query_row(params![instance, stream, key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(newest == Some((content.stored(), true)))
    }

    /// A value of the archive, if it has been generated.
    pub fn setting(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut statement =
            self.connection.prepare_cached(sql!("select value from setting where name = $1"))?;
        Ok(statement.query_row(params![name], |row| row.get(0)).optional()?)
    }

    /// A value that is generated once per archive, such as the key that masks secrets. `None` if it cannot be written.
    pub fn setting_or_make(&self, name: &str, make: impl FnOnce() -> Vec<u8>) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.setting(name)? {
            return Ok(Some(value));
        }
        let insert = sql!("insert into setting (name, value) values ($1, $2) on conflict (name) do nothing");
        let reads_only: bool = self.connection.query_row("pragma query_only", [], |row| row.get(0))?;
        let Ok(writer) = (if reads_only { self.open_again() } else { Ok(None) }) else { return Ok(None) };
        let connection = writer.as_ref().map_or(&self.connection.0, |writer| &writer.connection.0);
        match connection.execute(insert, params![name, make()]) {
            Ok(_) => self.setting(name),
            Err(_) if reads_only => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a value of the archive, or removes it.
    pub fn set_setting(&self, name: &str, value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => self.connection.execute(
                sql!("insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = $2"),
                params![name, value],
            )?,
            None => self.connection.execute(sql!("delete from setting where name = $1"), params![name])?,
        };
        Ok(())
    }

    /// Another handle on the archive that may write to it.
    fn open_again(&self) -> Result<Option<Store>> {
        self.path.parent().map(Store::open).transpose()
    }

    /// Whether a rebuild was started and not finished, by a version that did so in several steps.
    pub fn is_rebuilding(&self) -> Result<bool> {
        let text = "select exists (select 1 from setting where name = 'rebuilding')";
        Ok(self.connection.query_row(text, [], |row| row.get(0))?)
    }

    /// Whether rows must be rebuilt before anything is added: a rebuild was interrupted, or readers have changed.
    pub fn needs_rebuild(&self, source: &str, reader_version: u32) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select exists (select 1 from setting where name = 'rebuilding')
                 or exists (select 1 from file join instance on instance.id = file.instance
                            where instance.source = $1 and file.reader_version < $2 and file.rows_owner is null)"
        ))?;
        Ok(statement.query_row(params![source, reader_version], |row| row.get(0))?)
    }

    pub fn start_run(&self, command: &str, now: Time) -> Result<i64> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("insert into run (started_at, process, command) values ($1, $2, $3)"))?;
        statement.execute(params![now.micros(), std::process::id(), command])?;
        Ok(self.connection.last_insert_rowid())
    }

    pub fn finish_run(&self, run: i64, report: &str, now: Time) -> Result<()> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("update run set ended_at = $2, report = $3 where id = $1"))?;
        statement.execute(params![run, now.micros(), report])?;
        Ok(())
    }

    /// Moves the write-ahead log into the database file, so that the archive is one file at rest.
    pub fn checkpoint(&self) -> Result<()> {
        self.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
        Ok(())
    }
}

impl Writer<'_> {
    pub fn set_instance_status(
        &mut self,
        instance: InstanceId,
        status: SourceStatus,
        reason: &str,
        now: Time,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update instance set status = $2, reason = $3, last_scanned = $4 where id = $1"
        ))?;
        statement.execute(params![instance, status.name(), reason, now.micros()])?;
        Ok(())
    }

    /// Whether a home has sessions, and whether it has transcripts.
    pub fn has_sessions_or_transcripts(&self, instance: InstanceId) -> Result<(bool, bool)> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select exists (select 1 from session where instance = $1),
                    exists (select 1 from file where instance = $1 and store = 'transcripts' and content_size > 0)"
        ))?;
        Ok(statement.query_row(params![instance], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    pub fn set_cursor(&mut self, instance: InstanceId, name: &str, value: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into cursor (instance, name, value) values ($1, $2, $3)
             on conflict (instance, name) do update set value = excluded.value"
        ))?;
        statement.execute(params![instance, name, value])?;
        Ok(())
    }

    /// Marks files as deleted by the client. Their bytes and rows stay; mutable records end.
    pub fn mark_gone(&mut self, files: &[FileId], now: Time) -> Result<()> {
        for file in files {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("update file set gone_at = $2 where id = $1 and gone_at is null"))?;
            statement.execute(params![*file, now.micros()])?;
            drop(statement);
            // Rows can be rebuilt from the bytes; that their source ended cannot.
            let mut statement = self.transaction.prepare_cached(sql!(
                "update version set gone_at = $2 where file = $1 and gone_at is null
                 and version = (select version from file where id = $1 and mutable)"
            ))?;
            let ended = statement.execute(params![*file, now.micros()])?;
            drop(statement);
            if ended > 0 {
                self.end_records(*file, now)?;
            }
        }
        Ok(())
    }

    /// Ends records that a new version of their file no longer contains.
    pub fn end_unseen_records(&mut self, file: FileId, version: i64, at: Time) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update record set deleted_at = $3, changed = $4 where file = $1 and deleted_at is null and seen_version < $2
             and not exists (select 1 from record newer where newer.instance = record.instance
                             and newer.stream = record.stream and newer.key = record.key
                             and newer.version > record.version)"
        ))?;
        statement.execute(params![file, version, at.micros(), self.commit])?;
        Ok(())
    }

    /// Ends the records of a mutable file; their content stays.
    pub fn end_records(&mut self, file: FileId, at: Time) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update record set deleted_at = $2, changed = $3 where file = $1 and deleted_at is null
             and not exists (select 1 from record newer where newer.instance = record.instance
                             and newer.stream = record.stream and newer.key = record.key
                             and newer.version > record.version)"
        ))?;
        statement.execute(params![file, at.micros(), self.commit])?;
        Ok(())
    }

    /// Marks sessions as gone if all their transcripts are, and as present if one is back. `gone` are the files of this
    /// run.
    pub fn mark_sessions(&mut self, instance: InstanceId, gone: &[FileId], now: Time) -> Result<()> {
        for file in gone {
            let mut statement = self.transaction.prepare_cached(sql!(
                "update session set gone_at = $2, changed = $3
                 where gone_at is null
                 and id in (select part.session from session_part part where part.rank = 0 and part.file in
                            (select $1 union select rows_owner from file where id = $1))
                 and not exists (select 1 from session_part part
                                 join file on file.id = part.file
                                 join file other on other.instance = file.instance and other.logical_path = file.logical_path
                                 where part.session = session.id and part.rank = 0 and other.gone_at is null)"
            ))?;
            statement.execute(params![*file, now.micros(), self.commit])?;
        }
        let mut statement = self.transaction.prepare_cached(sql!(
            "update session set gone_at = null, changed = $2
             where instance = $1 and gone_at is not null
             and exists (select 1 from session_part part
                         join file on file.id = part.file
                         join file other on other.instance = file.instance and other.logical_path = file.logical_path
                         where part.session = session.id and part.rank = 0 and other.gone_at is null)"
        ))?;
        statement.execute(params![instance, self.commit])?;
        Ok(())
    }

    /// Updates the path and metadata of a file whose content did not change.
    pub fn restat(&mut self, file: FileId, path: &str, stat: crate::Stat) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update file set path = $2, inode = $3, modified = $4, changed = $5, mode = coalesce($6, mode), gone_at = null
             where id = $1"
        ))?;
        let (modified, changed) = (stat.modified.micros(), stat.changed.micros());
        statement.execute(params![file, path, stat.inode, modified, changed, stat.mode])?;
        Ok(())
    }
}
