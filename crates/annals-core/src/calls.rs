//! Tool calls: input, outcome, and the files they touched.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContentKey, Span, Time};

/// One invocation of a tool; its result comes as its own item, perhaps in a later run.
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
    /// The command, path or query in a line; at most 200 characters.
    pub title: String,
    /// The call whose script made this one; such calls are not counted again.
    pub parent: Option<u64>,
    /// The message that this call is a block of.
    pub message: Option<u64>,
    pub model: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    Function,
    Shell,
    Edit,
    Read,
    Search,
    Web,
    Mcp,
    Agent,
    Script,
    /// A result whose call is nowhere in the file.
    Orphan,
}

impl CallKind {
    const ALL: [CallKind; 10] = [
        CallKind::Function,
        CallKind::Shell,
        CallKind::Edit,
        CallKind::Read,
        CallKind::Search,
        CallKind::Web,
        CallKind::Mcp,
        CallKind::Agent,
        CallKind::Script,
        CallKind::Orphan,
    ];

    pub fn stored(self) -> i64 {
        self as i64
    }

    pub fn from_stored(stored: i64) -> CallKind {
        usize::try_from(stored).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or(CallKind::Function)
    }

    pub fn name(self) -> &'static str {
        match self {
            CallKind::Function => "function",
            CallKind::Shell => "shell",
            CallKind::Edit => "edit",
            CallKind::Read => "read",
            CallKind::Search => "search",
            CallKind::Web => "web",
            CallKind::Mcp => "mcp",
            CallKind::Agent => "agent",
            CallKind::Script => "script",
            CallKind::Orphan => "orphan",
        }
    }
}

/// What became of a call. Fields that are `None` leave what an earlier result said.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub session: Arc<str>,
    /// Offset of the call's line: its identity within the file.
    pub call: u64,
    /// The line that holds the output for the model.
    pub output: Option<Span>,
    /// A second line that tells more (the client's own record of the command).
    pub detail: Option<Span>,
    pub at: Option<Time>,
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
    /// Key of the record that holds the whole output, when the line has only its start.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Read,
    Create,
    Update,
    Delete,
    /// The path is where the file went.
    MoveTo,
    /// The path is where the file was.
    MoveFrom,
}

impl Operation {
    const ALL: [Operation; 6] = [
        Operation::Read,
        Operation::Create,
        Operation::Update,
        Operation::Delete,
        Operation::MoveTo,
        Operation::MoveFrom,
    ];

    pub fn stored(self) -> i64 {
        self as i64
    }

    pub fn from_stored(stored: i64) -> Operation {
        usize::try_from(stored).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or(Operation::Read)
    }

    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::MoveTo => "move_to",
            Operation::MoveFrom => "move_from",
        }
    }
}
