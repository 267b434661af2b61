//! The HTTP API: one file for each family of routes, and the document that describes them.

pub(super) mod activity;
pub(super) mod archive;
pub(super) mod arrangement;
pub(super) mod docs;
pub(super) mod exchange;
pub(super) mod library;
pub(super) mod lineage;
pub(super) mod members;
pub(super) mod openapi;
pub(super) mod parameters;
pub(super) mod queries;
pub(super) mod search;
pub(super) mod secrets;
pub(super) mod sessions;
pub(super) mod status;
pub(super) mod usage;
