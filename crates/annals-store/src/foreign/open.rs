//! Opens a client's database: directly while that is safe, otherwise as a private copy.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::rows::count_rows;
use super::{LARGEST_COPY, LARGEST_VALUE, LONGEST, Unreadable, beside, broken};
use crate::read_only_flags;

/// A client's database, open for reading.
pub struct ForeignDatabase {
    // Closed before the copy is removed.
    pub(super) connection: Connection,
    deadline: Deadline,
    _copy: Option<DatabaseCopy>,
    /// The database and its state, if only its not changing makes it consistent.
    still: Option<(PathBuf, FileStates)>,
}

/// When the statements that run now have taken too long.
type Deadline = Arc<Mutex<Instant>>;

/// Size and time of a database, its log and its journal.
type FileStates = [Option<(u64, Option<SystemTime>)>; 3];

impl ForeignDatabase {
    /// Opens a database that its client may be writing to, without a lock that would stop it and without a file beside
    /// it: its log is read through the client's own index of it. Where that is not possible, a copy in `scratch` is read.
    pub fn open(database: &Path, scratch: &Path) -> Result<ForeignDatabase, Unreadable> {
        // A copy that a killed run left behind.
        let _ = std::fs::remove_dir_all(scratch);
        let database = database.canonicalize().map_err(broken)?;
        let has = |ending: &str| is_plain_and_not_empty(&beside(&database, ending));
        let state = states(&database);
        if has("-journal") || has("-wal") && !has("-shm") {
            return ForeignDatabase::of_copy(&database, scratch);
        }
        if has("-wal") {
            let live = connect(&database, "mode=ro&readonly_shm=1").ok();
            return match live.filter(|(connection, _)| is_readable(connection)) {
                Some((connection, deadline)) => {
                    Ok(ForeignDatabase { connection, deadline, _copy: None, still: None })
                }
                None => ForeignDatabase::of_copy(&database, scratch),
            };
        }
        let (connection, deadline) = connect(&database, "immutable=1").map_err(broken)?;
        Ok(ForeignDatabase { connection, deadline, _copy: None, still: Some((database, state)) })
    }

    fn of_copy(database: &Path, scratch: &Path) -> Result<ForeignDatabase, Unreadable> {
        let copy = DatabaseCopy::make(database, scratch).map_err(broken)?;
        #[expect(clippy::disallowed_methods, reason = "a private copy of a client's database")]
        let opened = Connection::open(&copy.database)
            .or_else(|_| Connection::open_with_flags(&copy.database, read_only_flags()));
        let mut connection = opened.map_err(broken)?;
        let deadline = restrict(&mut connection).map_err(broken)?;
        Ok(ForeignDatabase { connection, deadline, _copy: Some(copy), still: None })
    }

    /// Fails if what was read may be of two states of the database: its client wrote to it meanwhile.
    pub fn check_consistent(&self) -> Result<(), Unreadable> {
        match &self.still {
            Some((database, before)) if states(database) != *before => {
                Err(Unreadable::Broken("was written to while it was read; the next sync reads it".into()))
            }
            _ => Ok(()),
        }
    }

    /// Starts the time that the next statements may take.
    pub(super) fn limit_time(&self) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + LONGEST;
    }
}

/// The number of rows in every table of a database that may be large and whose rows are not read: without a copy and
/// without locks. What is still in its log is not counted.
pub fn estimate_tables(database: &Path) -> Result<Vec<(String, i64)>, Unreadable> {
    let path = database.canonicalize().map_err(broken)?;
    let (connection, _) = connect(&path, "immutable=1").map_err(broken)?;
    count_rows(&connection).map_err(broken)
}

fn connect(database: &Path, options: &str) -> rusqlite::Result<(Connection, Deadline)> {
    let address = format!("file:{}?{options}", annals_core::in_address(&database.to_string_lossy()));
    #[expect(clippy::disallowed_methods, reason = "a client's database, which nothing is written to")]
    let mut connection =
        Connection::open_with_flags(address, read_only_flags() | OpenFlags::SQLITE_OPEN_URI)?;
    let deadline = restrict(&mut connection)?;
    // A client that writes a checkpoint holds readers up for moments only.
    connection.busy_timeout(Duration::from_secs(2))?;
    Ok((connection, deadline))
}

fn is_readable(connection: &Connection) -> bool {
    connection.query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0)).is_ok()
}

/// A link may point anywhere and a pipe never ends: neither is a log of this database.
fn is_plain_and_not_empty(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
}

fn states(database: &Path) -> FileStates {
    ["", "-wal", "-journal"].map(|ending| {
        let metadata = std::fs::symlink_metadata(beside(database, ending)).ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    })
}

/// Nothing that a schema names is run, and no statement takes forever.
fn restrict(connection: &mut Connection) -> rusqlite::Result<Deadline> {
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_VALUE)?;
    let deadline = Deadline::new(Mutex::new(Instant::now() + LONGEST));
    let watched = deadline.clone();
    let is_over = move || Instant::now() >= *watched.lock().unwrap_or_else(PoisonError::into_inner);
    connection.progress_handler(10_000, Some(is_over))?;
    Ok(deadline)
}

/// A copy of a database, deleted on drop.
struct DatabaseCopy {
    folder: PathBuf,
    database: PathBuf,
}

impl DatabaseCopy {
    fn make(database: &Path, scratch: &Path) -> std::io::Result<DatabaseCopy> {
        // Only one collector runs at a time, so existing files are left over from a killed one, and SQLite would merge
        // an old log into a new database.
        match std::fs::remove_dir_all(scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let folder = scratch.join("copy");
        let size = std::fs::metadata(database)?.len();
        if size > LARGEST_COPY {
            return Err(std::io::Error::other(format!("{size} bytes are more than a client's database has")));
        }
        std::fs::create_dir_all(&folder)?;
        crate::set_mode(&folder, 0o700)?;
        let copy = DatabaseCopy { database: folder.join("copy.sqlite"), folder };
        std::fs::copy(database, &copy.database)?;
        // Without the index of the log: SQLite makes it of the log that was copied.
        for ending in ["-wal", "-journal"] {
            if is_plain_and_not_empty(&beside(database, ending)) {
                std::fs::copy(beside(database, ending), beside(&copy.database, ending))?;
            }
        }
        Ok(copy)
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        // The next copy removes what a crash leaves behind.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
