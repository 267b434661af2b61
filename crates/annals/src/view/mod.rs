//! The questions annals answers: kept facts turned into answers, every text through the door.

mod access;
mod audit;
mod door;
mod library;
mod lineage;
mod paging;
mod records;
mod search;
mod session;
mod tape;
mod usage;

pub use access::{TokenKey, local_token, new_token};
pub use audit::accounts::accounts;
pub use audit::cards::{SourceCard, cards};
pub use audit::doctor::{Finding, examine};
pub use audit::gaps::{GapAsk, GapList, GapView, LACKING, OPEN, gaps};
pub use audit::secrets::{SecretView, secrets, secrets_watched};
pub use audit::status::{
    DiskState, SourceState, source_labels, source_named, source_routes, source_state, used_sources,
};
pub use audit::{Audit, IndexAudit, OnDisk, audit, captured, index_audit};
pub use door::Door;
pub use library::{ItemVersion, LibraryAsk, LibraryItem, history, library, library_kinds, library_moments};
pub use lineage::known::{Lineage, LineageAsk, lineage, lineage_with_text};
pub use lineage::surviving_lines::{Survivor, survivors};
pub use lineage::{Blame, BlameSums, CodeFile, Origin, Share, blame, blame_sums, shown_lines};
pub use paging::Paging;
pub use records::{RecordPage, RecordsAsk, record_page, records};
#[cfg(feature = "fuzzing")]
pub use search::fuzz::fuzz_query;
pub use search::{PassageView, SearchAnswer, SearchAsk, SearchResult, find_in_session, search};
pub use session::branches::{Branch, is_off_branch};
pub use session::bytes::{LineView, lines, picture, whole_output};
pub use session::list::{
    SessionAsk, SessionList, SessionTies, SessionView, exact_session, find_session, session_ties, sessions,
};
pub use session::outline::{Outline, count_steps, outline, step_of, steps_from};
pub use session::transcript::{
    BlockView, Entry, FileView, TranscriptAsk, TranscriptPage, transcript, transcript_page,
};
#[cfg(feature = "fuzzing")]
pub use tape::fuzz::fuzz_record;
pub use tape::{Recording, TapeAsk, TapeEnd, TapeFormat, has_tape, record, tape};
pub use usage::activity::{Activity, Choices, DailyUsage, ModelUsage, activity, choices, daily_usage};
pub use usage::tools::{ToolAnalytics, ToolsAsk, tools};
pub use usage::{ResponsePage, UsageAsk, UsageReport, UsageRow, responses, usage};
