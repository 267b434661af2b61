//! The command line: its arguments, its help and what it prints.

mod command_line;
mod period;
mod show;
#[cfg(unix)]
mod terminal;
mod words;
