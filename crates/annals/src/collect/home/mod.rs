//! Clients' homes: their files, what changed, and their databases.

pub(super) mod choice;
pub(super) mod databases;
pub(super) mod patterns;
pub(super) mod plan;
pub(super) mod repositories;
pub(super) mod unknown;
pub(super) mod walk;
