//! What tests and benches share: made-up homes and work, a sandbox that the program runs in, a server and a browser.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests set the environment, report, and fail loudly"
)]
#![allow(
    clippy::new_without_default,
    clippy::should_implement_trait,
    reason = "a bench is a folder on the disk, not a value that stands for nothing; `next` of a generator never ends"
)]

pub mod agent;
mod bench;
pub mod browser;
pub mod checks;
pub mod clock;
pub mod codex;
pub mod corpora;
#[cfg(unix)]
pub mod disk;
pub mod files;
pub mod fixtures;
pub mod git;
pub mod homes;
#[cfg(target_os = "linux")]
pub mod memory;
mod program;
pub mod server;
pub mod sources;
pub mod standin;
#[cfg(unix)]
pub mod terminal;
pub mod worlds;

pub use bench::{Bench, Ran};
pub use program::program;

/// The root directory of the project.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
