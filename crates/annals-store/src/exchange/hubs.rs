//! The archives that this one sends to and fetches from, and what they have of it.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use super::holder;
use crate::error::Result;
use crate::{Store, sql};
use annals_core::{FileId, InstanceId, MemberId, SessionId, Time};

/// What is known of another archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubState {
    pub archive: Vec<u8>,
    pub url: String,
    /// What its owner was told before the first push, and agreed to.
    pub policy: String,
    pub confirmed_at: Option<Time>,
    pub pushed_at: Option<Time>,
    /// The last commit of this archive that was sent as a whole.
    pub pushed_commit: i64,
    /// What was chosen to be sent.
    pub choice: String,
    /// The last commit of the other archive that was fetched as a whole.
    pub pulled_commit: i64,
}

impl Store {
    /// Homes that another archive sent without their secrets.
    pub fn masked_homes(&self) -> Result<i64> {
        let text = "select count(*) from received_home where policy = 'masked'";
        Ok(self.connection.query_row(text, [], |row| row.get(0))?)
    }

    pub fn hub(&self, archive: &[u8]) -> Result<Option<HubState>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select url, policy, confirmed_at, pushed_at, pushed_commit, choice, pulled_commit from hub
             where archive = $1"
        ))?;
        let found = statement.query_row(params![archive], |row| {
            Ok(HubState {
                archive: archive.to_vec(),
                url: row.get(0)?,
                policy: row.get(1)?,
                confirmed_at: row.get::<_, Option<i64>>(2)?.map(Time::from_micros),
                pushed_at: row.get::<_, Option<i64>>(3)?.map(Time::from_micros),
                pushed_commit: row.get(4)?,
                choice: row.get(5)?,
                pulled_commit: row.get(6)?,
            })
        });
        Ok(found.optional()?)
    }

    pub fn save_hub(&self, hub: &HubState) -> Result<()> {
        self.connection.execute(
            sql!(
                "insert into hub (archive, url, policy, confirmed_at, pushed_at, pushed_commit, choice, pulled_commit)
                 values ($1, $2, $3, $4, $5, $6, $7, $8)
                 on conflict (archive) do update set url = $2, policy = $3, confirmed_at = $4, pushed_at = $5,
                     pushed_commit = $6, choice = $7, pulled_commit = $8"
            ),
            params![
                hub.archive,
                hub.url,
                hub.policy,
                hub.confirmed_at.map(Time::micros),
                hub.pushed_at.map(Time::micros),
                hub.pushed_commit,
                hub.choice,
                hub.pulled_commit
            ],
        )?;
        Ok(())
    }

    /// The stamps of the files of a home as they were sent.
    pub fn pushed_stamps(&self, archive: &[u8], instance: InstanceId) -> Result<HashMap<FileId, String>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select file, stamp from pushed_file join file on file.id = pushed_file.file
             where pushed_file.archive = $1 and file.instance = $2"
        ))?;
        let rows = statement.query_map(params![archive, instance], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn save_pushed(&mut self, archive: &[u8], stamps: &[(FileId, String)]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for (file, stamp) in stamps {
            transaction
                .prepare_cached(sql!(
                    "insert into pushed_file (archive, file, stamp) values ($1, $2, $3)
                     on conflict (archive, file) do update set stamp = excluded.stamp"
                ))?
                .execute(params![archive, file, stamp])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The source of a home, if it is this member's.
    pub fn home_source(&self, instance: InstanceId, member: Option<MemberId>) -> Result<Option<String>> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select source from instance where id = $1 and coalesce(member, 0) = $2"))?;
        Ok(statement.query_row(params![instance, holder(member)], |row| row.get(0)).optional()?)
    }

    /// The name that a client gave a session.
    pub fn session_key_of(&self, session: SessionId) -> Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(sql!("select key from session where id = $1"))?;
        Ok(statement.query_row(params![session], |row| row.get(0)).optional()?)
    }

    pub fn member_name(&self, member: MemberId) -> Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(sql!("select name from member where id = $1"))?;
        Ok(statement.query_row(params![member], |row| row.get(0)).optional()?)
    }
}
