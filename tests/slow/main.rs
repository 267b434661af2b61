//! The slow integration tests: hostile input by the gigabyte, killed runs, every output searched for secrets, and a
//! real browser.

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

mod attacks;
mod branches;
mod browser;
mod connections;
mod consumer;
mod crash;
mod cuts;
mod damage;
mod exchange;
mod exports;
mod forget;
mod hostile;
mod live;
mod protocol;
mod secrets;
