//! Drives the sources: finds what changed, captures bytes, reads rows, commits both together.

mod connector;
mod discover;
mod exchange;
mod failures;
mod forget;
#[cfg(feature = "fuzzing")]
mod fuzz;
mod home;
mod import;
mod ingest;
mod live;
mod lock;
mod names;
mod options;
mod rebuild;
mod repair;
mod restore;
mod run;
mod sample;
mod sync;

pub use connector::wire::InteractionKind;
pub use connector::{ConnectorOptions, ConnectorReport, InteractionReply, Notice, run_connector};
pub use discover::unread_assistants;
pub use exchange::{
    Exchanger, FirstPush, Hub, HubAddress, HubPolicy, ImportedArchive, PullReport, PushChoice, PushOptions,
    PushReport, answer_step, archive_at, import_archive, pull, push,
};
pub use failures::{note_failure, note_success};
pub use forget::account::Account;
pub use forget::plan::{ForgetPlan, Selection, plan as plan_forgetting};
pub use forget::secret::secret_texts;
pub use forget::verify::{Verified, verify as verify_forgotten};
pub use forget::{empty_trash, finish as finish_forgetting, forget, take_from_trash};
#[cfg(feature = "fuzzing")]
pub use fuzz::{fuzz_containers, fuzz_elements, fuzz_wire};
pub use home::repositories::is_repository;
pub use home::walk::HomeState;
pub use import::report::{ContainerReport, MemberReport};
pub use import::repository::{GitBlobs, RepositoryImport, import_repository, is_imported};
pub use import::{ImportOptions, import, importing};
pub use live::browser::BrowserSetup;
pub use live::pace::Pace;
pub use live::talk::Stop;
pub use live::{
    LiveOptions, LiveProgress, LiveReport, collect_live, connect, disconnect, profile_of, time_left,
};
pub use lock::Lock;
pub use options::{Environment, Nobody, Progress, SourceReport, SyncOptions};
pub use rebuild::{Rebuilt, compare_rows, rebuild};
pub use repair::{HealSource, RepairedVersion, repair};
pub use restore::{Restored, restore};
pub use sample::compare_sample;
pub use sync::{survey_home, survey_homes, sync};
