//! One binary for all integration tests: they drive the real program on real files.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests set the environment and report")]

mod command_line;
mod golden;
mod hostile;
mod never_opened;
mod real_homes;
mod support;
mod tidy;
