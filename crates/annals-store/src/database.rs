//! The connection to the database: failures to prepare a statement carry its text.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{CachedStatement, Connection, Statement};

use crate::Store;
use crate::error::{Result, StoreError};

/// SQLite names the statement only for some errors; the log should name it for all.
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

impl Store {
    /// Counts statements from now on. Tests use it to check that a page needs only a handful of them.
    pub fn count_statements(&mut self) -> Result<Arc<AtomicU64>> {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let count_one = move |_: TraceEvent<'_>| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        self.connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count_one))?;
        Ok(count)
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
