//! Archives that exchange bytes: files with their versions come from another archive, rows are read here.

mod choice;
mod client;
mod environments;
mod hub;
mod import;
mod masked;
mod merge;
mod pull;
mod push;
mod receive;
mod wire;

pub use choice::PushChoice;
pub use client::{Hub, HubAddress};
pub use hub::{Exchanger, HubPolicy, answer_step};
pub use import::{ImportedArchive, archive_at, import_archive};
pub use pull::{PullReport, pull};
pub use push::{FirstPush, PushOptions, PushReport, push};
