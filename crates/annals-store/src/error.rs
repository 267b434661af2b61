//! Errors of the archive: statement and source line for the log, the plain cause for the user.

use std::fmt;
use std::panic::Location;

use rusqlite::ErrorCode;

use crate::Damage;

pub type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("archive: {}", .0.short())]
    Sql(#[source] SqlCause),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Archived bytes that cannot be read or are not what was captured.
    #[error("{0}")]
    Damaged(Damage),
    /// An error that is already written for the user.
    #[error(transparent)]
    Core(#[from] annals_core::Error),
}

/// The error of SQLite and the line of source that ran the statement.
#[derive(Debug)]
pub struct SqlCause {
    error: rusqlite::Error,
    at: &'static Location<'static>,
    statement: Option<String>,
}

impl SqlCause {
    /// Without the statement, which means nothing to a user.
    fn short(&self) -> String {
        match &self.error {
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            error => describe(error),
        }
    }
}

impl fmt::Display for SqlCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, at {}", self.error, self.at)?;
        match &self.statement {
            Some(statement) => write!(out, ", in {statement}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SqlCause {}

impl StoreError {
    /// An error of a statement, with its text.
    #[track_caller]
    pub(crate) fn of_statement(error: rusqlite::Error, statement: &str) -> StoreError {
        let statement = Some(statement.to_owned());
        StoreError::Sql(SqlCause { error, at: Location::caller(), statement })
    }
}

/// The cause of an error of SQLite, for the user.
pub(crate) fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(cause) if cause.code == ErrorCode::DiskFull => {
            "cannot be written: no space left on the disk".into()
        }
        Some(cause) if is_of_writing(cause.extended_code) => format!("cannot be written: {error}"),
        _ => error.to_string(),
    }
}

/// Whether SQLite failed to write, for a reason that it does not tell apart: a limit, a quota or a failing disk.
fn is_of_writing(extended_code: i32) -> bool {
    use rusqlite::ffi::{
        SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE,
    };
    [SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_SHMSIZE]
        .contains(&extended_code)
}

/// What to do about an error of SQLite.
pub(crate) fn hint_of(error: &rusqlite::Error) -> Option<&'static str> {
    const DAMAGED: &str =
        "`annals doctor` lists the damage, and `annals repair` keeps what can still be read";
    // Nothing that annals wrote is of the wrong type.
    if matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    ) {
        return Some(DAMAGED);
    }
    Some(match error.sqlite_error_code()? {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => DAMAGED,
        ErrorCode::DiskFull => "the disk is full: free up space, or copy the archive and use --home DIR",
        ErrorCode::ReadOnly => {
            "the archive cannot be written here: copy it to a writable directory and use --home DIR"
        }
        ErrorCode::SystemIoFailure
            if error.sqlite_error().is_some_and(|cause| is_of_writing(cause.extended_code)) =>
        {
            "check free space, quotas and limits on file sizes, or copy the archive and use --home DIR"
        }
        ErrorCode::SystemIoFailure => "check the disk, or copy the archive elsewhere and use --home DIR",
        _ => return None,
    })
}

impl From<rusqlite::Error> for StoreError {
    #[track_caller]
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Sql(SqlCause { error, at: Location::caller(), statement: None })
    }
}

impl From<StoreError> for annals_core::Error {
    fn from(error: StoreError) -> annals_core::Error {
        match error {
            StoreError::Sql(cause) => {
                let hint = hint_of(&cause.error);
                let error = annals_core::Error::new(format!("archive: {}", cause.short())).source(cause);
                match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            }
            StoreError::Io(error) => error.into(),
            StoreError::Damaged(damage) => annals_core::Error::new(damage.to_string())
                .hint("`annals repair --dry-run` lists what is damaged and what can be healed"),
            StoreError::Core(error) => error,
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> StoreError {
        StoreError::Core(error.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::Store;

    #[test]
    fn a_full_disk_is_named_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let pages: i64 = store.connection.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
        store.connection.query_row(&format!("pragma max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        let full = store.connection.execute("insert into setting values ('x', zeroblob(100000))", []);
        let error: annals_core::Error = super::StoreError::from(full.unwrap_err()).into();
        assert_eq!(error.what, "archive: cannot be written: no space left on the disk");
        assert!(error.hint.unwrap().contains("free up space"));
    }
}
