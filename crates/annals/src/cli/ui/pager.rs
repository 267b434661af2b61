//! The pager: long answers are read in `less`, or in what the person prefers.

use std::process::{Child, ChildStdin, Command, Stdio};

use crate::config::PagerSettings;

/// For `less`: end if everything fits on one screen, show colours, leave the text on the screen, and end with Ctrl-C, as
/// this program does.
const OPTIONS: &str = "FRXK";

/// A pager that runs.
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Starts the command in a shell, as others do with `$PAGER`; none if that fails.
    pub fn start(settings: &PagerSettings) -> Option<(Pager, ChildStdin)> {
        let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut command = Command::new(shell);
        command.arg(option).arg(&settings.command).stdin(Stdio::piped());
        if !settings.has_options {
            command.env("LESS", OPTIONS);
        }
        let mut child = command.spawn().ok()?;
        let input = child.stdin.take()?;
        Some((Pager { child }, input))
    }

    /// Waits until the person has finished reading.
    pub fn wait(mut self) {
        let _ = self.child.wait();
    }
}
