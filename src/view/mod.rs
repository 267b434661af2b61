//! The questions annals answers: kept facts turned into answers, every text through the door.

mod accounts;
mod activity;
mod audit;
mod branches;
mod bytes;
mod cards;
mod changes;
mod doctor;
mod door;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod gaps;
mod imports;
mod library;
mod lineage;
mod lineage_alike;
mod lineage_hunks;
mod lineage_known;
mod lineage_match;
mod outline;
mod paging;
mod passages;
mod prices;
mod query;
mod records;
mod search;
mod search_show;
mod search_terms;
mod secrets;
mod sessions;
mod status;
mod survivors;
mod tape;
mod tape_event;
mod tape_grades;
mod tape_lines;
mod tape_maker;
mod teller;
mod tokens;
mod tools;
mod trace;
mod transcript;
mod usage;

pub use accounts::accounts;
pub use activity::{Activity, Choices, DailyUsage, ModelUsage, activity, choices, daily_usage};
pub use audit::{Audit, IndexAudit, OnDisk, audit, captured, index_audit};
pub use branches::{Branch, is_off_branch};
pub use bytes::{LineView, lines, picture, whole_output};
pub use cards::{SourceCard, cards};
pub use doctor::{Finding, examine};
pub use door::Door;
#[cfg(feature = "fuzzing")]
pub use fuzz::fuzz_record;
pub use gaps::{GapAsk, GapList, GapView, LACKING, OPEN, gaps};
pub use library::{ItemVersion, LibraryAsk, LibraryItem, history, library, library_kinds, library_moments};
pub use lineage::{Blame, BlameSums, CodeFile, Origin, Share, blame, blame_sums, shown_lines};
pub use lineage_known::{Lineage, LineageAsk, lineage, lineage_with_text};
pub use outline::{Outline, count_steps, outline, step_of, steps_from};
pub use paging::Paging;
pub use records::{RecordPage, RecordsAsk, record_page, records};
pub use search::{PassageView, SearchAnswer, SearchAsk, SearchResult, find_in_session, search};
pub use secrets::{SecretView, secrets, secrets_watched};
pub use sessions::{
    SessionAsk, SessionList, SessionTies, SessionView, exact_session, find_session, session_ties, sessions,
};
pub use status::{
    DiskState, SourceState, source_labels, source_named, source_routes, source_state, used_sources,
};
pub use survivors::{Survivor, survivors};
pub use tape::{Recording, TapeAsk, TapeEnd, TapeFormat, has_tape, record, tape};
pub use tokens::{TokenKey, local_token, new_token};
pub use tools::{ToolAnalytics, ToolsAsk, tools};
pub use transcript::{
    BlockView, Entry, FileView, TranscriptAsk, TranscriptPage, transcript, transcript_page,
};
pub use usage::{ResponsePage, UsageAsk, UsageReport, UsageRow, responses, usage};
