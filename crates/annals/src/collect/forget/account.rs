//! What is forgotten, in numbers: they stay when nothing else does.

use serde::{Deserialize, Serialize};

/// The account of one forgetting. Nothing in it tells what it was about, except titles while it is in the trash.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    pub sessions: u64,
    /// Of these, sessions that others started.
    pub started_sessions: u64,
    pub messages: u64,
    pub tool_calls: u64,
    pub full_outputs: u64,
    pub records: u64,
    /// Lines of other sessions that repeat the same content.
    pub copied_lines: u64,
    /// Entries in the lists where clients note what was typed.
    pub history_lines: u64,
    pub whole_files: u64,
    /// Files of which parts are blanked.
    pub changed_files: u64,
    pub versions: u64,
    pub lines: u64,
    /// Places where a text is masked.
    pub places: u64,
    pub bytes: u64,
    pub stores: Vec<StoreAccount>,
    /// Only in the trash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
}

/// The files of one kind.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreAccount {
    pub store: String,
    pub source: String,
    pub whole_files: u64,
    pub changed_files: u64,
    pub bytes: u64,
}
