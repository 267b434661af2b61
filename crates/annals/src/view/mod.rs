//! The queries annals answers: rows turned into answers, with every text through the door.

mod access;
mod arrangement;
mod audit;
mod context;
mod door;
mod export;
mod filters;
pub mod format;
mod insights;
mod library;
mod lineage;
mod members;
mod paging;
mod period;
mod preferences;
mod records;
mod search;
mod session;
mod tape;
mod usage;

pub use access::{
    TokenKey, local_token, new_link, new_link_with, new_token, rotate_local_token, stored_local_token,
};
pub use arrangement::{ArrangementPatch, ArrangementView, SavedSearch};
pub use audit::cards::{SourceCard, cards_without_archive};
pub use audit::doctor::{Finding, examine};
pub use audit::failures::{FailureView, archive_failure};
pub use audit::gaps::{GapList, GapQuery, GapView, MISSING, OPEN};
pub use audit::secret_trace::{SecretTrace, revoke_at};
pub use audit::secrets::{ScannedArchive, SecretView};
pub use audit::status::{
    DiskState, SourceState, find_recorded_source, find_source, source_by_common_name, source_labels,
    source_routes,
};
pub use audit::{Audit, ForgettingAudit, IndexAudit, OnDisk, Unaccounted};
pub use context::View;
pub use door::{Door, random_bytes};
pub use export::{
    ExportOptions, ExportQuery, ExportTable, ExportedSession, JsonSessions, KeepPicture, Links,
    write_json_lines, write_markdown,
};
pub use filters::{source_named, time_named};
pub use insights::{InsightKind, Insights, Moment};
pub use library::{ItemVersion, LibraryItem, LibraryQuery, library_kinds};
pub use lineage::files::{FileEdit, FileList, FolderEntry, UnseenFile};
pub use lineage::history::FileHistory;
pub use lineage::known::{FoundFile, Lineage, LineageQuery};
pub use lineage::over_time::{
    CommittedLine, FileState, MonthShares, MonthSums, SURVIVAL_DAYS, Survival, WrittenByMonth, follow,
};
pub use lineage::surviving_lines::Survivor;
pub use lineage::{
    Blame, BlameSpan, BlameSums, CodeFile, Evidence, EvidenceKind, LineGrades, Origin, Share, Statement,
    blame_sums,
};
pub use members::{AccessList, AccessQuery, AccessView, Accesses, MemberView, ViewerView};
pub use paging::Paging;
pub use period::markdown::{PeriodMarkdown, PeriodPart, period_title};
pub use period::{PeriodCommit, PeriodProject, PeriodReport};
pub use preferences::{Editor, Preferences, parse_budget};
pub use records::{RecordPage, RecordsQuery};
#[cfg(feature = "fuzzing")]
pub use search::fuzz::fuzz_query;
#[cfg(feature = "test-clock")]
pub use search::question::content_words;
#[cfg(feature = "test-clock")]
pub use search::weights::Weights;
pub use search::{PassageView, SearchAnswer, SearchFacets, SearchQuery, SearchResult};
pub use session::branches::Branch;
pub use session::bytes::{LineView, Picture};
pub use session::list::{SessionList, SessionQuery, SessionTies, SessionView};
pub use session::narrowing::Narrowing;
pub use session::outline::Outline;
pub use session::overview::{SessionOrder, WeekHours};
pub use session::short::ShortIds;
pub use session::transcript::{BlockView, ChangeView, Entry, FileView, TranscriptPage, TranscriptQuery};
#[cfg(feature = "fuzzing")]
pub use tape::fuzz::fuzz_record;
pub use tape::{Recording, TapeEnd, TapeFormat, TapeOptions, has_tape, record};
pub use usage::activity::{Activity, Choices, DailyUsage, UsageArea, UsagePoint};
pub use usage::calls::CallLine;
pub use usage::tools::{CallTimes, ToolAnalytics, ToolsQuery};
pub use usage::{ResponsePage, UsageQuery, UsageReport, UsageRow};
