//! Sessions: the list, the transcript, its outline and its original bytes.

pub(super) mod branches;
pub(super) mod bytes;
pub(super) mod changes;
pub(super) mod entry_builder;
mod filter;
pub(super) mod lines;
pub(super) mod list;
pub(super) mod narrowing;
pub(super) mod outline;
pub(super) mod overview;
pub(super) mod short;
pub(super) mod transcript;
