//! State of live collection: connected sources, what was seen when, and locators of gaps.

use annals_core::{GapStream, InstanceId};
use rusqlite::{OptionalExtension, params};

use super::Writer;
use crate::error::Result;
use crate::{Archive, Store, sql};

/// Counts of conversations, documents and files of live collection, by outcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveAccount {
    pub things: u64,
    pub bytes: u64,
    pub gaps: u64,
    pub given_up: u64,
}

/// State of the collector.
impl Store {
    /// Keys and locators of a stream's gaps that are not recovered, including those that were given up.
    pub fn gap_locators(&self, instance: InstanceId, stream: GapStream<'_>) -> Result<Vec<(String, String)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select key, locator from gap where instance = $1 and stream = $2 and status <> 'recovered'"
        ))?;
        let rows =
            statement.query_map(params![instance, stream.name()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether the owner connected the source.
    pub fn is_connected(&self, source: &str) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!("select 1 from setting where name = $1"))?;
        let found: Option<i64> =
            statement.query_row(params![format!("connected {source}")], |row| row.get(0)).optional()?;
        Ok(found.is_some())
    }
}

impl Archive<'_> {
    /// What live collection of a source fetched, and what it could not fetch.
    pub fn live_account(&self, source: &str) -> Result<LiveAccount> {
        let mut statement = self.prepare(sql!(
                "select (select count(*) from cursor own where own.instance = instance.id and name like 'seen %'),
                    (select count(*) from file own where own.instance = instance.id and path like 'live/%'),
                    (select cast(value as integer) from cursor own where own.instance = instance.id and name = 'live bytes'),
                    (select count(*) from gap own where own.instance = instance.id and stream <> 'imports'
                     and status in ('pending', 'in_progress')),
                    (select count(*) from gap own where own.instance = instance.id and stream <> 'imports'
                     and status = 'terminal')
             from instance where source = $1 and {visible}"
            ),
        )?;
        let mut rows = statement.query(params![source])?;
        let mut account = LiveAccount::default();
        while let Some(row) = rows.next()? {
            let number = |column: usize| -> rusqlite::Result<u64> {
                Ok(u64::try_from(row.get::<_, Option<i64>>(column)?.unwrap_or(0)).unwrap_or(0))
            };
            account.things += number(0)? + number(1)?;
            account.bytes += number(2)?;
            account.gaps += number(3)?;
            account.given_up += number(4)?;
        }
        Ok(account)
    }
}

impl Writer<'_> {
    pub fn connect(&mut self, source: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into setting (name, value) values ($1, $2) on conflict (name) do nothing"
        ))?;
        statement.execute(params![format!("connected {source}"), self.now.micros()])?;
        Ok(())
    }

    pub fn disconnect(&mut self, source: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!("delete from setting where name = $1"))?;
        statement.execute(params![format!("connected {source}")])?;
        Ok(())
    }
}
