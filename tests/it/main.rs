//! One binary for all integration tests: they drive the real program on real files.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests set the environment and report")]

mod changes;
mod command_line;
#[path = "../../benches/corpus.rs"]
mod corpus;
mod crash;
mod databases;
mod forks;
mod forms;
mod golden;
mod real_homes;
mod support;
mod tidy;
