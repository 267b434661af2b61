//! annals keeps a person's whole history with AI assistants and lets them search it.

mod cli;
mod collect;
mod config;
mod serve;
mod view;

pub use cli::run;
#[cfg(feature = "fuzzing")]
pub use collect::{fuzz_containers, fuzz_elements, fuzz_wire};
#[cfg(feature = "fuzzing")]
pub use view::{fuzz_query, fuzz_record};
