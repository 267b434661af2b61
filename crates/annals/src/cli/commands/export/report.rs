//! What an export wrote, for people and programs.

use serde::Serialize;

use super::folder::Fate;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, number};
use annals_core::{Result, Shown};

/// What became of each file.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub format: &'static str,
    pub to: String,
    pub dry_run: bool,
    pub sessions: usize,
    pub written: Vec<String>,
    pub unchanged: usize,
    pub removed: Vec<String>,
    /// Files at a place where an export would write, but did not.
    pub left_alone: Vec<String>,
}

impl Report {
    pub fn add(&mut self, path: &str, fate: Fate) {
        match fate {
            Fate::Written => self.written.push(path.to_owned()),
            Fate::Unchanged => self.unchanged += 1,
            Fate::LeftAlone => self.left_alone.push(path.to_owned()),
        }
    }

    /// Prints it; files left alone are for the user to decide.
    pub fn print(self, context: &mut Context, show: &dyn Fn(&str) -> Shown) -> Result<Outcome> {
        let outcome = if self.left_alone.is_empty() { Outcome::Done } else { Outcome::Stopped };
        if context.json {
            context.output.json(&self)?;
            return Ok(outcome);
        }
        if self.dry_run {
            for path in &self.written {
                context.output.line(format!("would write {}", show(path)))?;
            }
            for path in &self.removed {
                context.output.line(format!("would remove {}", show(path)))?;
            }
        }
        let verb = if self.dry_run { "to write" } else { "written" };
        let mut facts = vec![
            counted(self.sessions, "session"),
            format!("{} {verb}", counted(self.written.len(), "file")),
            format!("{} unchanged", number(self.unchanged as i64)),
        ];
        if !self.removed.is_empty() {
            facts.push(format!("{} removed", number(self.removed.len() as i64)));
        }
        context.output.line(format!("{}: {}", show(&self.to), facts.join(", ")))?;
        context.output.flush()?;
        for path in &self.left_alone {
            context.output.note(format!("left alone: {}, which is not as an export wrote it", show(path)));
        }
        if !self.left_alone.is_empty() {
            context.output.note("hint: move these files away and export again");
        }
        Ok(outcome)
    }
}
