//! Drives the sources: finds what changed, captures bytes, reads rows, commits both together.

mod append;
mod capture;
mod connector;
mod containers;
mod databases;
mod drops;
mod elements;
mod import;
mod import_report;
mod judging;
mod lock;
mod names;
mod parse;
mod passages;
mod plan;
mod program;
mod rebuild;
mod repositories;
mod restore;
mod sync;
mod walk;
mod wire;

pub use connector::{ConnectorAsk, ConnectorReport, Notice, Reply, run_connector};
pub use import::{ImportAsk, import, importing};
pub use import_report::{ContainerReport, MemberReport};
pub use lock::Lock;
pub use rebuild::{Rebuilt, rebuild};
pub use restore::{Restored, restore};
pub use sync::{Ask, Environment, Progress, SourceReport, look_at, survey_homes, sync};
pub use walk::HomeState;
pub use wire::InteractionKind;
