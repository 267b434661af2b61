//! The quick integration tests: they drive the real program on real files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests set the environment, report, and fail loudly"
)]

mod active;
mod agents;
mod arrange;
mod arrival;
mod assistants;
mod audit;
mod blobs;
mod chatgpt;
mod claude;
mod claude_ai;
mod cli;
mod codex;
mod copilot;
mod exchange;
mod exports;
mod forget;
mod forget_homes;
mod gaps;
mod golden;
mod http;
mod integrity;
mod library;
mod lineage;
mod members;
mod never_opened;
mod new_kinds;
mod openai_api;
mod opencode;
mod people;
mod records;
mod search;
mod settings;
mod tape;
mod tidy;
mod usage;
