//! What live collection remembers: which source is connected, what was seen when, and where gaps lead.

use rusqlite::{OptionalExtension, params};

use super::rows::Writer;
use super::{Store, sql};
use crate::model::{Result, Scope};

impl Store {
    /// Keys and locators of a stream's gaps that are not recovered, those that were given up among them.
    pub fn gap_locators(&self, _scope: &Scope, instance: i64, stream: &str) -> Result<Vec<(String, String)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select key, locator from gap where instance = $1 and stream = $2 and status <> 'recovered'"
        ))?;
        let rows = statement.query_map(params![instance, stream], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether the owner connected the source.
    pub fn is_connected(&self, _scope: &Scope, source: &str) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(sql!("select 1 from setting where name = $1"))?;
        let found: Option<i64> =
            statement.query_row([format!("connected {source}")], |row| row.get(0)).optional()?;
        Ok(found.is_some())
    }
}

impl Writer<'_> {
    // no scope: the writer was opened with one
    pub fn connect(&mut self, source: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into setting (name, value) values ($1, $2) on conflict (name) do nothing"
        ))?;
        statement.execute(params![format!("connected {source}"), self.now.micros()])?;
        Ok(())
    }

    // no scope: the writer was opened with one
    pub fn disconnect(&mut self, source: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!("delete from setting where name = $1"))?;
        statement.execute([format!("connected {source}")])?;
        Ok(())
    }
}
