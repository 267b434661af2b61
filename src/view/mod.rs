//! The questions annals answers: kept facts turned into answers, every text through the door.

mod accounts;
mod audit;
mod branches;
mod cards;
mod doctor;
mod door;
mod gaps;
mod imports;
mod library;
mod paging;
mod passages;
mod prices;
mod query;
mod records;
mod search;
mod secrets;
mod sessions;
mod status;
mod tokens;
mod tools;
mod transcript;
mod usage;

pub use accounts::accounts;
pub use audit::{Audit, IndexAudit, OnDisk, audit, captured, index_audit};
pub use branches::{Branch, is_off_branch};
pub use cards::{SourceCard, cards};
pub use doctor::{Finding, examine};
pub use door::Door;
pub use gaps::{GapAsk, GapList, gaps};
pub use library::{LibraryAsk, LibraryItem, history, library};
pub use paging::Paging;
pub use records::{RecordPage, RecordsAsk, record_page, records};
pub use search::{PassageView, SearchAnswer, SearchAsk, SearchResult, search};
pub use secrets::secrets;
pub use sessions::{
    SessionAsk, SessionList, SessionTies, SessionView, exact_session, find_session, session_ties, sessions,
};
pub use status::{DiskState, SourceState, source_named, source_routes, source_state};
pub use tokens::{TokenKey, local_token, new_token};
pub use tools::{ToolAnalytics, tools};
pub use transcript::{BlockView, Entry, TranscriptAsk, TranscriptPage, transcript, transcript_page};
pub use usage::{ResponsePage, UsageAsk, UsageReport, UsageRow, responses, usage};
