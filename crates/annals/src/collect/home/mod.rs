//! Clients' homes: their files, what changed, and their databases.

pub(super) mod choice;
pub(super) mod databases;
pub(super) mod documents;
pub(super) mod file_groups;
pub(super) mod patterns;
mod pending;
pub(super) mod plan;
pub(super) mod repositories;
mod row_documents;
pub(super) mod unknown;
pub(super) mod walk;
