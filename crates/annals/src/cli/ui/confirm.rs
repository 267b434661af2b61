//! Asks before something outside of the archive is changed.

use std::io::{BufRead, IsTerminal};

use crate::cli::Context;
use annals_core::{Error, Result};

/// Whether the user agrees. Without a terminal nobody can be asked: scripts say `--yes`.
pub fn confirm(context: &mut Context, question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Error::new("nothing was changed: there is no terminal to ask on")
            .hint("run the same command with --yes, or in a terminal"));
    }
    context.output.flush()?;
    context.output.note(format!("{question} [y/N]"));
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(matches!(typed.trim().to_lowercase().as_str(), "y" | "yes"))
}
