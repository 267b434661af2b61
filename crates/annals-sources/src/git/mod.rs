//! What other programs keep in a git repository about sessions: transcripts (Entire), line attribution (git-ai) and
//! trailers of commits. Pure: the caller runs git.

mod checkpoints;
mod notes;
mod trailers;

pub use checkpoints::{
    CHECKPOINT_BRANCH, CHECKPOINT_REFS, StoredTranscript, TreeEntry, metadata_place, read_metadata,
    transcripts_in,
};
pub use notes::{AUTHORSHIP_NOTES, AuthorshipNote, read_note};
pub use trailers::{Trailer, read_trailers};

/// Whom a note or a trailer names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Attribution {
    /// The program, as its author calls it.
    pub tool: Option<String>,
    pub session: Option<String>,
    pub model: Option<String>,
    pub person: Option<String>,
}

impl Attribution {
    /// Whether an assistant is named, and not only a person.
    pub fn is_assistant(&self) -> bool {
        self.tool.is_some() || self.session.is_some() || self.model.is_some()
    }
}
