//! Reads clients' own SQLite databases without holding their clients up.
//!
//! A database is data, whoever wrote it: only plain tables are read, never views or virtual tables, and sizes and time
//! are limited. Nothing is written to it or beside it.

mod documents;
mod open;
mod rows;
mod schema;

use std::path::Path;
use std::time::Duration;

pub use documents::BINARY;
pub use open::{ForeignDatabase, estimate_tables};
pub use schema::{ForeignSchema, write_database};

/// What a client's databases stay far below, if they have to be copied.
const LARGEST_COPY: u64 = 4 << 30;
const LARGEST_VALUE: i32 = 64 << 20;
const LARGEST_TABLE: usize = 512 << 20;
const MOST_ROWS: usize = 1_000_000;
/// For each table or document.
const LONGEST: Duration = Duration::from_secs(20);

/// One row: its key, and all columns as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRow {
    pub key: String,
    pub document: String,
}

/// Why a database has no rows to read. All but the first are reported to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The table does not exist: another version of the client.
    NoTable,
    /// Locked, corrupt, or not readable.
    Broken(String),
}

fn broken(error: impl std::fmt::Display) -> Unreadable {
    Unreadable::Broken(error.to_string())
}

/// The file beside a database whose name has this ending.
fn beside(database: &Path, ending: &str) -> std::path::PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
