//! One file for each command.

pub(super) mod audit;
pub(super) mod blame;
pub(super) mod config;
pub(super) mod connect;
pub(super) mod connector;
pub(super) mod doctor;
pub(super) mod gaps;
pub(super) mod import;
pub(super) mod library;
pub(super) mod manifest;
pub(super) mod members;
pub(super) mod rebuild;
pub(super) mod record;
pub(super) mod records;
pub(super) mod restore;
pub(super) mod search;
pub(super) mod secrets;
pub(super) mod serve;
pub(super) mod sessions;
pub(super) mod show;
pub(super) mod sources;
pub(super) mod sync;
pub(super) mod tape;
pub(super) mod tools;
pub(super) mod up;
pub(super) mod usage;
