//! Codex CLI: transcripts as they change, fork and differ between versions, and its databases.

mod authored;
mod changes;
mod databases;
mod forks;
mod forms;
mod real;
