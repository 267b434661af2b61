//! Tool calls: input, outcome, and the files they touched.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{FromRepr, IntoStaticStr};

use super::{ContentKey, Span, Time};
use crate::stored::stored_by_number;

/// One invocation of a tool; its result is a separate item, perhaps in a later run.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub session: Arc<str>,
    pub span: Span,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub inherited: bool,
    pub call_id: String,
    pub name: Arc<str>,
    pub kind: CallKind,
    /// The command, path or query on one line; at most 200 characters.
    pub title: String,
    /// The call whose script made this one; such calls are not counted again.
    pub parent: Option<u64>,
    /// The message that this call is a block of.
    pub message: Option<u64>,
    pub model: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, FromRepr, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum CallKind {
    Function = 0,
    Shell = 1,
    Edit = 2,
    Read = 3,
    Search = 4,
    Web = 5,
    Mcp = 6,
    Agent = 7,
    Script = 8,
    /// A result whose call is not in the file.
    Orphan = 9,
}

/// The result of a call. Fields that are `None` keep what an earlier result said.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub session: Arc<str>,
    /// Offset of the call's line, which identifies it within the file.
    pub call: u64,
    /// The line with the output for the model.
    pub output: Option<Span>,
    /// Another line with more details (the client's own record of the command).
    pub detail: Option<Span>,
    pub at: Option<Time>,
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
    /// Key of the record with the complete output, if the line has only its start.
    pub full: Option<String>,
}

/// A file that a successful call read or changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Touch {
    pub session: Arc<str>,
    /// Offset of the call's line.
    pub call: u64,
    pub path: String,
    pub operation: Operation,
    pub before: Option<Range>,
    pub after: Option<Range>,
}

/// Lines, 1-based and inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, FromRepr, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum Operation {
    Read = 0,
    Create = 1,
    Update = 2,
    Delete = 3,
    /// The path is the file's new path.
    MoveTo = 4,
    /// The path is the file's old path.
    MoveFrom = 5,
}

stored_by_number!(CallKind else Function, Operation else Read);
