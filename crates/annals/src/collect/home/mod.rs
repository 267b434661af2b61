//! Clients' homes: what is in them, what changed since, and their databases.

pub(super) mod databases;
pub(super) mod patterns;
pub(super) mod plan;
pub(super) mod repositories;
pub(super) mod walk;
