//! What was forgotten: when, why and how far it got, and the hashes that keep it away.

mod related;
mod scrub;
mod trash;

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::write::Writer;
use crate::{Archive, Store, sql};
use annals_core::{FileId, Forgotten, ForgottenHash, ForgottenText, Time};

pub use related::{RelatedLine, SessionCounts};
pub use scrub::IndexCheck;

/// The setting with the key of the hashes.
pub const FORGET_KEY: &str = "forget_key";

/// How far a forgetting got. The numbers are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForgettingState {
    /// It is known what to forget.
    Begun = 0,
    /// No answer has it any more.
    Applied = 1,
    /// Its bytes are gone from the database file.
    Done = 2,
}

impl ForgettingState {
    fn from_stored(number: i64) -> ForgettingState {
        match number {
            0 => ForgettingState::Begun,
            1 => ForgettingState::Applied,
            _ => ForgettingState::Done,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ForgettingRow {
    pub id: i64,
    pub at: Time,
    pub reason: String,
    pub state: ForgettingState,
    /// Until then it is in the trash.
    pub expires_at: Option<Time>,
    /// JSON.
    pub account: String,
    /// Hashes of what it was.
    pub hashes: i64,
}

/// What is about to be forgotten.
#[derive(Debug)]
pub struct NewForgetting<'a> {
    pub at: Time,
    pub reason: &'a str,
    pub expires_at: Option<Time>,
    pub account: &'a str,
    /// Of the hashes.
    pub key: [u8; 32],
    pub lines: &'a [(u64, ForgottenHash)],
    pub texts: &'a [ForgottenText],
    /// Files to forget as a whole.
    pub files: &'a [FileId],
}

impl Store {
    /// The hashes of everything that was forgotten.
    pub fn forgotten(&self) -> Result<Forgotten> {
        let mut forgotten = Forgotten::new(self.forget_key()?.unwrap_or_default());
        let mut statement =
            self.connection.prepare_cached(sql!("select length, hash from forgotten_line"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            forgotten.add_line(row.get::<_, i64>(0)? as u64, hash_of(row, 1)?);
        }
        let mut statement =
            self.connection.prepare_cached(sql!("select length, rolling, hash from forgotten_text"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let length = row.get::<_, i64>(0)? as usize;
            forgotten.add_text(ForgottenText {
                length,
                rolling: row.get::<_, i64>(1)? as u64,
                hash: hash_of(row, 2)?,
            });
        }
        Ok(forgotten)
    }

    /// Recognises the names of forgotten files.
    pub fn forgotten_names(&self) -> Result<Forgotten> {
        Ok(Forgotten::new(self.forget_key()?.unwrap_or_default()))
    }

    /// The key of the hashes; none as long as nothing was forgotten.
    pub fn forget_key(&self) -> Result<Option<[u8; 32]>> {
        Ok(self.setting(FORGET_KEY)?.and_then(|key| key.try_into().ok()))
    }

    /// Everything that was forgotten, oldest first.
    pub fn forgettings(&self) -> Result<Vec<ForgettingRow>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select id, at, reason, state, expires_at, account,
                    (select count(*) from forgotten_line where forgetting = forgetting.id)
                    + (select count(*) from forgotten_text where forgetting = forgetting.id)
                    + (select count(*) from forgotten_file where forgetting = forgetting.id)
             from forgetting order by id"
        ))?;
        let rows = statement.query_map([], |row| {
            Ok(ForgettingRow {
                id: row.get(0)?,
                at: Time::from_micros(row.get(1)?),
                reason: row.get(2)?,
                state: ForgettingState::from_stored(row.get(3)?),
                expires_at: row.get::<_, Option<i64>>(4)?.map(Time::from_micros),
                account: row.get(5)?,
                hashes: row.get(6)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether something is not forgotten to its end, or its time in the trash is over.
    pub fn has_unfinished_forgetting(&self, now: Time) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select exists (select 1 from forgetting where state < 2 or expires_at <= $1)"
        ))?;
        Ok(statement.query_row(params![now.micros()], |row| row.get(0))?)
    }

    /// Files that were forgotten as a whole by one forgetting.
    pub fn forgotten_files(&self, forgetting: i64) -> Result<Vec<FileId>> {
        let mut statement =
            self.connection.prepare_cached(sql!("select file from forgotten_file where forgetting = $1"))?;
        let rows = statement.query_map(params![forgetting], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl Archive<'_> {
    /// Recognises the names of forgotten files.
    pub fn forgotten_names(&self) -> Result<Forgotten> {
        self.store().forgotten_names()
    }

    /// What was forgotten; only for who sees the whole archive.
    pub fn forgettings(&self) -> Result<Vec<ForgettingRow>> {
        if self.is_whole() { self.store().forgettings() } else { Ok(Vec::new()) }
    }
}

impl Writer<'_> {
    /// Records what is to be forgotten, before anything is.
    pub fn begin_forgetting(&mut self, new: &NewForgetting<'_>) -> Result<i64> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into setting (name, value) values ($1, $2) on conflict (name) do nothing"
        ))?;
        statement.execute(params![FORGET_KEY, new.key.as_slice()])?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into forgetting (at, reason, state, expires_at, account) values ($1, $2, 0, $3, $4) returning id"
        ))?;
        let expires_at = new.expires_at.map(Time::micros);
        let id: i64 = statement
            .query_row(params![new.at.micros(), new.reason, expires_at, new.account], |row| row.get(0))?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into forgotten_line (hash, forgetting, length) values ($1, $2, $3)
             on conflict (hash, forgetting) do nothing"
        ))?;
        for (length, hash) in new.lines {
            statement.execute(params![hash.as_slice(), id, *length as i64])?;
        }
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into forgotten_text (hash, forgetting, length, rolling) values ($1, $2, $3, $4)
             on conflict (hash, forgetting) do nothing"
        ))?;
        for text in new.texts {
            let (length, rolling) = (text.length as i64, text.rolling.cast_signed());
            statement.execute(params![text.hash.as_slice(), id, length, rolling])?;
        }
        drop(statement);
        let mut statement = self
            .transaction
            .prepare_cached(sql!("insert into forgotten_file (file, forgetting) values ($1, $2)"))?;
        for file in new.files {
            statement.execute(params![*file, id])?;
        }
        drop(statement);
        Ok(id)
    }

    pub fn set_forgetting_state(&mut self, forgetting: i64, state: ForgettingState) -> Result<()> {
        let mut statement =
            self.transaction.prepare_cached(sql!("update forgetting set state = $2 where id = $1"))?;
        statement.execute(params![forgetting, state as i64])?;
        Ok(())
    }

    /// Takes the name from a file that is forgotten as a whole. In the trash it is remembered.
    pub fn hide_file(&mut self, forgetting: i64, file: FileId, name: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update forgotten_file set path = (select path from file where file.id = forgotten_file.file),
                    logical_path = (select logical_path from file where file.id = forgotten_file.file)
             where file = $1 and forgetting = $2
             and exists (select 1 from forgetting where id = $2 and expires_at is not null)"
        ))?;
        statement.execute(params![file, forgetting])?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "delete from gap where instance = (select instance from file where id = $1)
             and key = (select path from file where id = $1)"
        ))?;
        statement.execute(params![file])?;
        drop(statement);
        let mut statement = self
            .transaction
            .prepare_cached(sql!("update file set path = $2, logical_path = $2 where id = $1"))?;
        statement.execute(params![file, name])?;
        Ok(())
    }

    /// Drops everything that was read from a file, also its records, so that it can be read again from its start.
    pub fn discard_rows(&mut self, file: FileId) -> Result<()> {
        self.forget_rows(file)?;
        for text in [
            sql!("delete from record where file = $1"),
            sql!("delete from reader_state where file = $1"),
            sql!("update file set parsed = 0, content_size = 0 where id = $1"),
        ] {
            self.transaction.prepare_cached(text)?.execute(params![file])?;
        }
        Ok(())
    }

    /// The path of a file now.
    pub fn path_of(&self, file: FileId) -> Result<Option<String>> {
        let mut statement = self.transaction.prepare_cached(sql!("select path from file where id = $1"))?;
        Ok(statement.query_row(params![file], |row| row.get(0)).optional()?)
    }
}

fn hash_of(row: &rusqlite::Row<'_>, at: usize) -> Result<ForgottenHash> {
    let stored = row.get_ref(at)?.as_blob().unwrap_or_default();
    let mut hash = [0; 16];
    for (to, from) in hash.iter_mut().zip(stored) {
        *to = *from;
    }
    Ok(hash)
}
