//! The command line: its arguments, and that no verb prints a secret.

mod command_line;
mod exits;
