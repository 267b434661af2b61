//! The nouns that every crate shares: ids, time, raw and shown text, scope, manifest and transcript.

pub mod arrangement;
mod calls;
mod compose;
mod cost;
mod encode;
mod error;
mod fingerprints;
mod forgotten;
mod gaps;
mod hidden;
mod ids;
mod key;
mod manifest;
mod moment;
mod named_time;
mod nearest;
mod retry;
mod scope;
mod status;
mod stems;
mod stored;
mod stream;
mod terms;
mod text;
mod time;
mod tokens;
mod transcript;
mod work;
mod zone;

pub use arrangement::{Arranged, ArrangedField, ArrangedKind, Arrangement};
pub use calls::{Call, CallKind, CallResult, Operation, Range, Touch};
pub use compose::composed;
pub use cost::Picodollars;
pub use encode::{from_address, from_base64, from_hex, in_address, to_base64, to_hex};
pub use error::{Error, ErrorKind, Result};
pub use fingerprints::{
    FingerprintTerm, GRAM_MARK, LINE_MARK, LineFingerprint, each_gram_term, each_line_term,
    each_sampled_line_term, line_fingerprint,
};
pub use forgotten::{BLANK, FORGOTTEN_FILES, Forgotten, ForgottenHash, ForgottenText, LineKind, MASK};
pub use gaps::GapStream;
pub use hidden::{is_hidden, visible_json};
pub use ids::{FileId, InstanceId, MemberId, OrganisationId, SessionId};
pub use key::ContentKey;
pub use manifest::{
    ChildTable, Database, DatabaseFiles, Encoding, Footprint, Framing, LineTable, Manifest, Retention, Rule,
    Surface, SurfaceState, Treatment, UNKNOWN_FILES, ValueKind, Variable,
};
pub use moment::{Calendar, Period, current_period, parse_moment, parse_period};
pub use named_time::{NamedTime, find_time};
pub use nearest::{nearest, nearest_few};
pub use retry::{Attempts, FailureKind, RetryStep, next_step, urgency};
pub use scope::{AccessKind, MemberRole, Scope};
pub use status::{LineStatus, SourceStatus};
pub use stems::{irregular_forms, stem_of, stem_start};
pub use stream::{Coverage, Family, Field, Rows, Semantics, Stream};
pub use terms::{
    FILE_MARK, LONGEST_TEXT, MODEL_MARK, SECRET_MARK, TOOL_MARK, TermSet, Terms, each_embedded_text,
    each_term, each_text, each_whole_term, hash_term, is_unspaced,
};
pub use text::{Raw, Shown, ShownJson};
pub use time::Time;
pub use tokens::{LONG_PROMPTS, Tokens};
pub use transcript::{
    Block, Document, Item, Landmark, Link, LinkKind, Message, MessageKind, Passage, PassageKind, ProjectPath,
    Role, SessionFacts, Span, Summary, Tally, Tree, TreeNode, TypedPrompt, Usage, Verdict,
};
pub use work::{Around, FileRegion, FileWork};
pub use zone::{day_number, is_utc, use_utc, zone, zoned};
