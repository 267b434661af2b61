//! The only SQL: one SQLite file with the bytes, and the rows that point into them.

mod accesses;
mod archive;
mod arrangement;
mod blobs;
mod browsers;
mod contents;
mod damage;
mod database;
mod error;
mod exchange;
mod failure;
mod files;
mod foreign;
mod forget;
mod gaps;
mod index;
mod members;
mod read;
mod salvage;
mod write;

pub use accesses::{AccessRow, ViewerRow};
pub use archive::Archive;
pub use arrangement::ArrangementRow;
pub use blobs::{BaseBlob, Packer, Packing, SEGMENT, Segment};
pub use browsers::{BrowserHolder, BrowserRow, BrowserSession, NewBrowser};
pub use contents::{Contents, SpanRequest};
pub use damage::{Damage, DamagedVersion, ExpectedSegment};
pub use error::{Result, StoreError};
pub use exchange::{
    ContentHash, ExchangeFile, ExchangeVersion, HomeName, HubState, IncomingFile, KnownFile, OfferedHome,
    OwnerName, PackedBlob, ReceivedHome, SessionPlace, StampedFile,
};
pub use failure::{CaptureFailure, forget_failure, remember_failure, remembered_failure, reserve_failure};
pub use files::{Batch, CapturedFile, FilePart, LineCount, ReadRows, RowsOwner, Stat, VersionRow};
pub use foreign::{
    BINARY, ForeignDatabase, ForeignRow, ForeignSchema, Unreadable, estimate_tables, write_database,
};
pub use forget::{
    FORGET_KEY, ForgettingRow, ForgettingState, IndexCheck, NewForgetting, RelatedLine, SessionCounts,
};
pub use gaps::{DueGap, Failure, GapFilter, GapRow, Lease};
#[cfg(feature = "fuzzing")]
pub use index::fuzz::fuzz_index;
pub use index::lineage::{FingerprintHits, MOST_HOLDERS, PlaceWork, PlacedCalls, TouchedFile, WorkFilter};
pub use index::search::{Matches, PassageHit, TermGroup, TermQuery};
pub use members::{MemberRow, NewMember, NewToken};
pub use read::audit::{FailedCaptures, HomeSurvey, LeftOutFiles, SURVEY, TABLES};
pub use read::calls::{CallOrder, CallPart, ListedCall};
pub use read::export::{CallTouch, MessageCount, TimedRows};
pub use read::insights::{Between, EditRow, FailureRow, InSession, MomentRow, TurnRow};
pub use read::library::ItemRow;
pub use read::overview::{Facet, Measure, SessionTally};
pub use read::pages::{StepParts, StepRow};
pub use read::period::{PeriodCall, PeriodTouch};
pub use read::records::{ArchiveState, RemovedRow, RowPlace, RowsQuery};
pub use read::sessions::{Hiding, Page, SessionFilter, SessionRow, SessionTexts};
pub use read::steps::PromptPlace;
pub use read::transcript::{PlacedRecord, Stretch, TranscriptFile};
pub use read::tree::NodeRow;
pub use read::usage::{CallFilter, NameId, ResponseFilter, ResponseRow, SessionTotal, UsageBy, UsageSum};
pub use read::{CallRow, CoverageRow, FileRow, MessageRow, RecordRow, TouchRow};
pub use salvage::{Salvaged, salvage};
pub use write::Writer;
pub use write::changes::RemovedKind;
pub use write::digest::RowDigests;
pub use write::sample::FileDigests;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use database::Database;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// Rewrites `$1` to `?1` while compiling. One SQL text serves SQLite and PostgreSQL; SQLite numbers `$n` by first
/// appearance and would silently swap parameters. Indentation is left out: the cache of statements hashes every text
/// that it is asked for.
macro_rules! sql {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const NUMBERED: ([u8; TEXT.len()], usize) = $crate::numbered(TEXT);
        const SQL: &str = match std::str::from_utf8(NUMBERED.0.split_at(NUMBERED.1).0) {
            Ok(sql) => sql,
            Err(_) => "",
        };
        SQL
    }};
}
use sql;

/// The text and its length.
const fn numbered<const N: usize>(text: &str) -> ([u8; N], usize) {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let (mut at, mut length) = (0, 0);
    let mut quoted = false;
    while at < N {
        let parameter = bytes[at] == b'$' && at + 1 < N && bytes[at + 1].is_ascii_digit();
        quoted ^= bytes[at] == b'\'';
        let blank = bytes[at].is_ascii_whitespace() && !quoted;
        if !blank || length == 0 || out[length - 1] != b' ' {
            out[length] = match bytes[at] {
                _ if parameter => b'?',
                _ if blank => b' ',
                byte => byte,
            };
            length += 1;
        }
        at += 1;
    }
    (out, length)
}

/// A step from one schema version to the next.
enum Migration {
    Sql(&'static str),
    /// Runs in many transactions and resumes where it stopped.
    MoveSegments,
}

const MIGRATIONS: &[Migration] = &[
    Migration::Sql(include_str!("migrations/0001_archive.sql")),
    Migration::Sql(include_str!("migrations/0002_usage_and_members.sql")),
    Migration::Sql(include_str!("migrations/0003_search.sql")),
    Migration::Sql(include_str!("migrations/0004_imports.sql")),
    Migration::Sql(include_str!("migrations/0005_gaps.sql")),
    Migration::Sql(include_str!("migrations/0006_looks.sql")),
    Migration::Sql(include_str!("migrations/0007_blobs.sql")),
    Migration::MoveSegments,
    Migration::Sql(include_str!("migrations/0008_segments.sql")),
    Migration::Sql(include_str!("migrations/0009_typed_prompts.sql")),
    Migration::Sql(include_str!("migrations/0010_changes.sql")),
    Migration::Sql(include_str!("migrations/0011_titles.sql")),
    Migration::Sql(include_str!("migrations/0013_modes.sql")),
    Migration::Sql(include_str!("migrations/0014_doors.sql")),
    Migration::Sql(include_str!("migrations/0015_names.sql")),
    Migration::Sql(include_str!("migrations/0022_projects.sql")),
    Migration::Sql(include_str!("migrations/0024_record_places.sql")),
    Migration::Sql(include_str!("migrations/0029_typed_words.sql")),
    Migration::Sql(include_str!("migrations/0030_node_names.sql")),
    Migration::Sql(include_str!("migrations/0034_forgotten.sql")),
    Migration::Sql(include_str!("migrations/0038_arrangement.sql")),
    Migration::Sql(include_str!("migrations/0050_exchange.sql")),
    Migration::Sql(include_str!("migrations/0051_reported_costs.sql")),
    Migration::Sql(include_str!("migrations/0052_access.sql")),
];

/// The open archive file. Collectors write to it and keep their state in it; an [`Archive`] reads its content.
/// Readers never wait for the writer.
pub struct Store {
    connection: Database,
    path: PathBuf,
    counted: RefCell<Option<read::sessions::CachedCount>>,
}

impl Store {
    /// Opens the archive for writing and migrates it. Creates directory and file if they do not exist.
    pub fn open(data_dir: &Path) -> Result<Store> {
        Store::open_watched(data_dir, &mut |_, _| {})
    }

    /// Like [`Store::open`]. `advance` gets the progress of a long migration: steps done and total steps.
    pub fn open_watched(data_dir: &Path, advance: &mut dyn FnMut(u64, u64)) -> Result<Store> {
        make_private_folder(data_dir)?;
        let path = data_dir.join("annals.db");
        #[expect(clippy::disallowed_methods, reason = "the store opens its own database here")]
        let connection = Connection::open(&path).map_err(|error| cannot_open(&path, error))?;
        make_private_file(&path)?;
        connection.pragma_update(None, "page_size", 8192)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        Store::with_connection(connection, path, advance)
    }

    fn with_connection(
        connection: Connection,
        path: PathBuf,
        advance: &mut dyn FnMut(u64, u64),
    ) -> Result<Store> {
        let mut store = Store { connection: Database(connection), path, counted: RefCell::default() };
        store.tune()?;
        store.migrate(advance)?;
        Ok(store)
    }

    /// Opens an existing archive; `None` if there is none.
    pub fn open_existing(data_dir: &Path) -> Result<Option<Store>> {
        if data_dir.join("annals.db").is_file() { Store::open(data_dir).map(Some) } else { Ok(None) }
    }

    /// Opens a read-only handle on an archive that was opened before. Cheap enough to have many of them.
    pub fn open_reader(data_dir: &Path) -> Result<Store> {
        let store = Store::open_unwritten(data_dir)?;
        store.connection.pragma_update(None, "cache_size", -4_096)?;
        Ok(store)
    }

    /// Opens an existing archive without changing anything, so that one on a read-only or full disk can be read. `None`
    /// if it has to be migrated first.
    pub fn open_to_read(data_dir: &Path) -> Result<Option<Store>> {
        let path = data_dir.join("annals.db");
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0) {
            return Err(annals_core::Error::new(format!(
                "{} is empty: there is no archive in it",
                path.display()
            ))
            .hint("restore it from a backup, or delete it and run `annals sync`")
            .into());
        }
        let store = Store::open_unwritten(data_dir)?;
        let done = store.migrations_done()?;
        Ok(Some(store).filter(|_| done == MIGRATIONS.len()))
    }

    fn open_unwritten(data_dir: &Path) -> Result<Store> {
        let path = data_dir.join("annals.db");
        let open = |name: &Path, flags: OpenFlags| -> rusqlite::Result<Connection> {
            #[expect(clippy::disallowed_methods, reason = "the store opens its own database here")]
            let connection = Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(std::time::Duration::from_secs(10))?;
            if flags.contains(OpenFlags::SQLITE_OPEN_URI) {
                // With one user, the index of the log is in memory. The log stays what it is.
                connection.pragma_update(None, "locking_mode", "exclusive")?;
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            }
            connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = match open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
            Ok(connection) => connection,
            // There is no room for the index of the log beside a file that nobody can write.
            Err(error) if is_of_log(&path, &error) => {
                let name = unwritable_name(&path, has_log(&path));
                let flags = read_only_flags() | OpenFlags::SQLITE_OPEN_URI;
                open(&name, flags).map_err(|error| cannot_open(&path, error))?
            }
            Err(error) => return Err(cannot_open(&path, error)),
        };
        let store = Store { connection: Database(connection), path, counted: RefCell::default() };
        store.tune()?;
        store.connection.pragma_update(None, "query_only", true)?;
        Ok(store)
    }

    /// The archive file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn tune(&self) -> Result<()> {
        self.connection.pragma_update(None, "synchronous", "normal")?;
        self.connection.pragma_update(None, "cache_size", -16_384)?;
        self.connection.pragma_update(None, "temp_store", "memory")?;
        self.connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
        self.connection.busy_timeout(std::time::Duration::from_secs(10))?;
        self.connection.set_prepared_statement_cache_capacity(128);
        // Without this, SQLite replans a statement when another value is bound: a tenth of the time of a first sync.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(())
    }

    /// The number of migrations that the archive has. Those of a newer version are an error.
    fn migrations_done(&self) -> Result<usize> {
        let done: i64 = self.connection.query_row("pragma user_version", [], |row| row.get(0))?;
        let done = usize::try_from(done).unwrap_or(0);
        if done > MIGRATIONS.len() {
            return Err(annals_core::Error::new(format!(
                "{} was written by a newer annals",
                self.path.display()
            ))
            .hint("update annals; the archive was not changed")
            .into());
        }
        Ok(done)
    }

    fn migrate(&mut self, advance: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let done = self.migrations_done()?;
        for (number, migration) in MIGRATIONS.iter().enumerate().skip(done) {
            if let Migration::MoveSegments = migration {
                blobs::move_segments(&mut self.connection, advance)?;
            }
            let transaction =
                self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            // Another process may have migrated already.
            let done: i64 = transaction.query_row("pragma user_version", [], |row| row.get(0))?;
            if done > number as i64 {
                continue;
            }
            if let Migration::Sql(text) = migration {
                transaction.execute_batch(text)?;
            }
            transaction.pragma_update(None, "user_version", (number + 1) as i64)?;
            transaction.commit()?;
        }
        Ok(())
    }
}

fn cannot_open(path: &Path, error: rusqlite::Error) -> StoreError {
    let hint = error::hint_of(&error).unwrap_or("check the permissions of the directory, or use --home DIR");
    annals_core::Error::new(format!("cannot open {}: {}", path.display(), error::describe(&error)))
        .hint(hint)
        .source(error)
        .into()
}

/// Whether a failure to open may be one of the write-ahead log.
fn is_of_log(path: &Path, error: &rusqlite::Error) -> bool {
    let concerned =
        [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::DiskFull, ErrorCode::SystemIoFailure];
    path.is_file() && error.sqlite_error_code().is_some_and(|code| concerned.contains(&code))
}

/// Whether something is in the write-ahead log.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > 0)
}

/// The address of a file that SQLite may take to be unchanging: without locks, which need files that can be written. What
/// is in the log is read as well, where SQLite can do so without locks.
fn unwritable_name(path: &Path, has_log: bool) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let text = absolute.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let how = if has_log && cfg!(unix) { "vfs=unix-none" } else { "immutable=1" };
    PathBuf::from(format!("file:{text}?{how}"))
}

/// Creates the archive's directory, accessible only to its owner.
pub fn make_private_folder(folder: &Path) -> Result<()> {
    let hint = "use a writable directory with --home DIR or ANNALS_HOME";
    let failed = |error: std::io::Error| {
        annals_core::Error::new(format!("cannot create {}: {error}", folder.display())).hint(hint)
    };
    if !folder.is_dir() {
        std::fs::create_dir_all(folder).map_err(failed)?;
        set_mode(folder, 0o700).map_err(failed)?;
    }
    Ok(())
}

fn make_private_file(path: &Path) -> Result<()> {
    set_mode(path, 0o600).map_err(|error| {
        annals_core::Error::new(format!("cannot write {}: {error}", path.display()))
            .hint("use a writable directory with --home DIR or ANNALS_HOME")
    })?;
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

fn read_only_flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

#[cfg(test)]
mod tests {
    #[test]
    fn parameters_are_numbered_while_compiling() {
        assert_eq!(sql!("select $2, $1, '$.path'"), "select ?2, ?1, '$.path'");
    }

    #[test]
    fn only_indentation_is_left_out() {
        assert_eq!(sql!("select '  a\n '\n             from b"), "select '  a\n ' from b");
    }
}
