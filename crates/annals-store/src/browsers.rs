//! Sessions of browsers: short, renewed by use, and ended by their owner; and the links that start one, once.

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::{Store, sql};
use annals_core::{MemberId, Scope, Time};

/// A session as the owner sees it. The cookie itself is not stored.
#[derive(Debug, Clone)]
pub struct BrowserRow {
    pub id: i64,
    /// None for the owner of the machine.
    pub member: Option<String>,
    pub port: i64,
    /// What the browser calls itself.
    pub agent: String,
    pub started_at: Time,
    pub last_used: Time,
    pub expires_at: Time,
}

/// Who a browser or a link belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserHolder {
    pub member: Option<MemberId>,
    pub scope: Scope,
    /// When the token expires that all of it came from.
    pub ends_at: Option<Time>,
}

/// A valid session.
#[derive(Debug, Clone, Copy)]
pub struct BrowserSession {
    pub id: i64,
    pub holder: BrowserHolder,
    pub last_used: Time,
}

#[derive(Debug, Clone, Copy)]
pub struct NewBrowser<'a> {
    pub hash: &'a [u8; 32],
    pub member: Option<MemberId>,
    pub port: u16,
    pub agent: &'a str,
    pub expires_at: Time,
    /// When it ends, however much it is used.
    pub ends_at: Option<Time>,
}

impl Store {
    /// Adds a link that works once, until it expires.
    pub fn add_browser_link(
        &self,
        hash: &[u8; 32],
        member: Option<MemberId>,
        expires_at: Time,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql!(
            "insert into browser_link (hash, member, expires_at) values ($1, $2, $3)"
        ))?;
        statement.execute(params![hash.as_slice(), member, expires_at.micros()])?;
        Ok(())
    }

    /// Uses up a link. None if it does not exist, was used or has expired.
    pub fn use_browser_link(&self, hash: &[u8; 32], now: Time) -> Result<Option<BrowserHolder>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "delete from browser_link where hash = $1 or expires_at <= $2 returning hash = $1 and expires_at > $2, member"
        ))?;
        let found: Vec<(bool, Option<MemberId>)> = statement
            .query_map(params![hash.as_slice(), now.micros()], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        match found.into_iter().find(|(valid, _)| *valid) {
            Some((_, member)) => self.browser_holder(member),
            None => Ok(None),
        }
    }

    /// Whose link it is, without using it up: where nothing can be written, the server remembers that it was used.
    pub fn browser_link(&self, hash: &[u8; 32], now: Time) -> Result<Option<BrowserHolder>> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select member from browser_link where hash = $1 and expires_at > $2"))?;
        let member: Option<Option<MemberId>> =
            statement.query_row(params![hash.as_slice(), now.micros()], |row| row.get(0)).optional()?;
        member.map_or(Ok(None), |member| self.browser_holder(member))
    }

    pub fn start_browser(&self, browser: &NewBrowser<'_>, now: Time) -> Result<()> {
        let mut statement =
            self.connection.prepare_cached(sql!("delete from browser where expires_at <= $1"))?;
        statement.execute(params![now.micros()])?;
        let mut statement = self.connection.prepare_cached(sql!(
            "insert into browser (hash, member, port, agent, started_at, last_used, expires_at, ends_at)
             values ($1, $2, $3, $4, $5, $5, $6, $7)"
        ))?;
        let NewBrowser { hash, member, port, agent, expires_at, ends_at } = *browser;
        statement.execute(params![
            hash.as_slice(),
            member,
            port,
            agent,
            now.micros(),
            ends_at.map_or(expires_at.micros(), |ends_at| ends_at.micros().min(expires_at.micros())),
            ends_at.map(Time::micros)
        ])?;
        Ok(())
    }

    /// The session of a cookie, on the port that set it.
    pub fn browser_session(&self, hash: &[u8; 32], port: u16, now: Time) -> Result<Option<BrowserSession>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select id, member, last_used from browser where hash = $1 and port = $2 and expires_at > $3"
        ))?;
        let found = statement
            .query_row(params![hash.as_slice(), port, now.micros()], |row| {
                Ok((row.get(0)?, row.get(1)?, Time::from_micros(row.get(2)?)))
            })
            .optional()?;
        let Some((id, member, last_used)) = found else { return Ok(None) };
        Ok(self.browser_holder(member)?.map(|holder| BrowserSession { id, holder, last_used }))
    }

    pub fn renew_browser(&self, id: i64, now: Time, expires_at: Time) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql!(
            "update browser set last_used = $2, expires_at = min($3, coalesce(ends_at, $3)) where id = $1"
        ))?;
        statement.execute(params![id, now.micros(), expires_at.micros()])?;
        Ok(())
    }

    /// Valid sessions, the last used first.
    pub fn browsers(&self, now: Time) -> Result<Vec<BrowserRow>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select browser.id, member.name, port, agent, started_at, last_used, expires_at
             from browser left join member on member.id = browser.member
             where expires_at > $1 and member.removed_at is null order by last_used desc, browser.id desc"
        ))?;
        let rows = statement.query_map(params![now.micros()], |row| {
            Ok(BrowserRow {
                id: row.get(0)?,
                member: row.get(1)?,
                port: row.get(2)?,
                agent: row.get(3)?,
                started_at: Time::from_micros(row.get(4)?),
                last_used: Time::from_micros(row.get(5)?),
                expires_at: Time::from_micros(row.get(6)?),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Ends a session, or all of them. Returns how many.
    pub fn end_browsers(&self, id: Option<i64>) -> Result<usize> {
        let mut statement =
            self.connection.prepare_cached(sql!("delete from browser where $1 is null or id = $1"))?;
        let ended = statement.execute(params![id])?;
        if id.is_none() {
            self.connection.execute("delete from browser_link", [])?;
        }
        Ok(ended)
    }

    /// Replaces the token of the owner, and ends the owner's sessions.
    pub fn replace_local_token(&self, token: &[u8]) -> Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        transaction.execute(
            sql!(
                "insert into setting (name, value) values ('local_token', $1)
                  on conflict (name) do update set value = excluded.value"
            ),
            params![token],
        )?;
        transaction.execute("delete from browser where member is null", [])?;
        transaction.execute("delete from browser_link where member is null", [])?;
        transaction.commit()?;
        Ok(())
    }

    fn browser_holder(&self, member: Option<MemberId>) -> Result<Option<BrowserHolder>> {
        match member {
            None => Ok(Some(BrowserHolder { member, scope: Scope::Owner, ends_at: None })),
            Some(id) => {
                Ok(self.scope_of_member(id)?.map(|scope| BrowserHolder { member, scope, ends_at: None }))
            }
        }
    }
}
