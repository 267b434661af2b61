//! Codex CLI: transcripts as they change, fork and differ between versions, and its databases.

mod changes;
mod databases;
mod forks;
mod forms;
mod real;
