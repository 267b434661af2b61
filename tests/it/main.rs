//! One binary for all integration tests: they drive the real program on real files.

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

/// The folder of the whole project.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

mod analytics;
mod audit;
mod blobs;
mod browser;
mod browser_axe;
mod browser_hostile;
mod browser_long;
mod browser_walk;
mod changes;
mod chatgpt;
mod chatgpt_export;
mod chatgpt_merge;
mod claude;
mod claude_homes;
#[path = "../../benches/clock.rs"]
mod clock;
mod command_line;
#[path = "../../benches/corpus.rs"]
mod corpus;
mod crash;
mod databases;
mod exits;
mod forks;
mod forms;
mod gaps;
mod golden;
mod homes;
mod hostile;
mod hostile_files;
mod http;
mod http_access;
mod http_lineage;
mod http_members;
mod http_pages;
mod http_shapes;
mod http_walk;
mod library;
mod lineage;
mod lineage_real;
#[path = "../../benches/lineage_transcripts.rs"]
mod lineage_transcripts;
#[path = "../../benches/lineage_world.rs"]
mod lineage_world;
mod live;
mod live_gaps;
mod live_hostile;
mod members;
mod never_opened;
mod openai_api;
mod openai_api_files;
mod openai_api_joins;
mod planted;
mod protocol;
mod real_claude;
mod real_homes;
mod real_usage;
mod search;
mod search_changes;
mod search_edges;
mod search_fuzz;
mod search_real;
mod server;
mod settings;
mod standin;
#[path = "../../benches/story.rs"]
mod story;
mod support;
mod tape;
mod tidy;
mod usage;
#[path = "../../benches/words.rs"]
mod words;
