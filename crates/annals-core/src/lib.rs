//! The nouns that every crate shares: ids, time, raw and shown text, scope, manifest and transcript.

mod calls;
mod encode;
mod error;
mod fingerprints;
mod gaps;
mod hidden;
mod ids;
mod key;
mod manifest;
mod moment;
mod retry;
mod scope;
mod status;
mod stored;
mod terms;
mod text;
mod time;
mod tokens;
mod transcript;
mod work;

pub use calls::{Call, CallKind, CallResult, Operation, Range, Touch};
pub use encode::{from_base64, from_hex, in_address, to_hex};
pub use error::{Error, ErrorKind, Result};
pub use fingerprints::{
    FingerprintTerm, GRAM_MARK, LINE_MARK, LineFingerprint, each_gram_term, each_line_term,
    each_sampled_line_term, line_fingerprint,
};
pub use gaps::GapStream;
pub use hidden::{is_hidden, visible_json};
pub use ids::{FileId, InstanceId, MemberId, OrganisationId, SessionId};
pub use key::ContentKey;
pub use manifest::{
    Coverage, Database, Encoding, Family, Field, Footprint, Framing, Manifest, Retention, Rows, Rule,
    Semantics, Stream, Surface, Treatment, UNKNOWN_FILES, ValueKind, Variable,
};
pub use moment::parse_moment;
pub use retry::{Attempts, FailureKind, RetryStep, next_step, urgency};
pub use scope::{MemberRole, Scope};
pub use status::{LineStatus, SourceStatus};
pub use terms::{
    FILE_MARK, LONGEST_TEXT, MODEL_MARK, SECRET_MARK, TOOL_MARK, TermSet, Terms, each_embedded_text,
    each_text, each_whole_term, hash_term,
};
pub use text::{Raw, Shown, ShownJson};
pub use time::Time;
pub use tokens::{LONG_PROMPTS, Tokens};
pub use transcript::{
    Block, Document, Item, Landmark, Link, LinkKind, Message, MessageKind, Passage, PassageKind, ProjectPath,
    Role, SessionFacts, Span, Summary, Tally, Tree, TreeNode, TypedPrompt, Usage, Verdict,
};
pub use work::{Around, FileRegion, FileWork};
