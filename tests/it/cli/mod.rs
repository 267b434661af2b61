//! The command line: its arguments, its help and what it prints.

mod command_line;
mod show;
