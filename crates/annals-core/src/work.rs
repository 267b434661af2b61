//! What a tool call read from or wrote to a file, with its text: the basis of tapes and lineage.

use super::{Operation, Range};

/// One changed region of a file, or one read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWork {
    pub path: String,
    pub operation: Operation,
    /// The previous path of a moved file.
    pub moved_from: Option<String>,
    pub before: FileRegion,
    /// What is there now, or what was read.
    pub after: FileRegion,
    /// The same for lines that were only inserted, with the lines around them.
    pub around: Option<Box<Around>>,
    /// The whole file after the call, if the client reports it; with the last place that the call changed.
    pub whole: Option<String>,
}

/// Inserted lines and their neighbours, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    pub before: FileRegion,
    pub after: FileRegion,
}

/// Lines of a file, as far as they are known. Texts contain complete lines if the client reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileRegion {
    pub range: Option<Range>,
    pub text: Option<String>,
    /// The text that the call itself gave, where `text` has the lines it is in.
    pub given: Option<String>,
}

impl FileWork {
    pub fn new(path: impl Into<String>, operation: Operation) -> FileWork {
        FileWork {
            path: path.into(),
            operation,
            moved_from: None,
            before: FileRegion::default(),
            after: FileRegion::default(),
            around: None,
            whole: None,
        }
    }

    pub fn is_read(&self) -> bool {
        self.operation == Operation::Read
    }
}

impl FileRegion {
    /// A complete file, or lines of it from `start` on.
    pub fn lines(start: u32, text: String) -> FileRegion {
        let count = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let end = start.saturating_add(count).saturating_sub(1);
        let range = (count > 0 && start > 0).then_some(Range { start, end });
        FileRegion { range, text: Some(text), given: None }
    }

    pub fn text(text: impl Into<String>) -> FileRegion {
        FileRegion { text: Some(text.into()), ..FileRegion::default() }
    }
}
