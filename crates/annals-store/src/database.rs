//! The connection to the database: failures to prepare a statement carry its text.

use std::ops::{Deref, DerefMut};

use rusqlite::{CachedStatement, Connection, Statement};

use crate::error::{Result, StoreError};

/// SQLite names the statement only for some errors, and the log is to name it for all.
pub(crate) struct Database(pub(crate) Connection);

impl Database {
    #[track_caller]
    pub(crate) fn prepare_cached(&self, sql: &str) -> Result<CachedStatement<'_>> {
        match self.0.prepare_cached(sql) {
            Ok(statement) => Ok(statement),
            Err(error) => Err(StoreError::of_statement(error, sql)),
        }
    }

    #[track_caller]
    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        match self.0.prepare(sql) {
            Ok(statement) => Ok(statement),
            Err(error) => Err(StoreError::of_statement(error, sql)),
        }
    }
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Database {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
