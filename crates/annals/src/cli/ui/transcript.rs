//! Steps of a conversation as text: who speaks, what was called, what changed, and how it ended, told apart without colour.

use std::collections::HashMap;

use crate::cli::Context;
use crate::cli::ui::{table, time, wrap};
use crate::view::format::{milliseconds, number, size};
use crate::view::{BlockView, ChangeView, Entry, FileView, Survivor};
use annals_core::Result;

/// What is left of each call's edits, by the call's id.
pub type Left = HashMap<String, Vec<Survivor>>;

/// Before each line of an output, so that it cannot be taken for an answer.
const OUTPUT: &str = "   │ ";

/// Before each line of a diff, and before what else is said about a call.
const DIFF: &str = "   ";

/// How steps are printed.
#[derive(Default)]
pub struct Printing {
    pub left: Left,
    /// Also print outputs that only repeat what a diff shows.
    pub full: bool,
}

impl Printing {
    /// Prints one step.
    pub fn entry(&self, context: &mut Context, entry: &Entry) -> Result<()> {
        let clock = entry.at.as_deref().map(time::local_clock).unwrap_or_default();
        let who = match entry.kind {
            "prompt" => "user",
            "answer" => "assistant",
            other => other,
        };
        let copied = if entry.copied { " (copied)" } else { "" };
        let mut speaker = "";
        let mut changed = false;
        for block in &entry.blocks {
            let heading = match block {
                BlockView::Thinking { .. } => "thinking",
                BlockView::ToolCall { .. } | BlockView::ToolResult { .. } => "",
                _ => who,
            };
            if !heading.is_empty() && heading != speaker {
                context.output.line("")?;
                title(context, &format!("── {heading}"), &format!("{clock}{copied}"))?;
            }
            speaker = heading;
            match block {
                // The output of a call made by a script is part of the script's output.
                BlockView::ToolResult { ok, exit_code, duration_ms, .. }
                    if entry.kind == "call" && entry.parent_id.is_some() =>
                {
                    outcome(context, *ok, *exit_code, *duration_ms)?;
                }
                // The diff says it better than "the file has been updated".
                BlockView::ToolResult { ok, exit_code, duration_ms, .. }
                    if changed && !self.full && *ok != Some(false) =>
                {
                    outcome(context, *ok, *exit_code, *duration_ms)?;
                }
                BlockView::ToolCall { changes, .. } => {
                    changed = !changes.is_empty();
                    self.block(context, block, &clock)?;
                }
                _ => self.block(context, block, &clock)?,
            }
        }
        let others: Vec<&str> = entry.branches.iter().map(|branch| branch.id.as_str()).collect();
        let others: Vec<&str> = others.into_iter().filter(|id| *id != entry.id).collect();
        if others.is_empty() {
            return Ok(());
        }
        let more = entry.branch_count.unwrap_or(0).saturating_sub(others.len() + 1);
        let more = if more > 0 { format!(" and {} more", number(more)) } else { String::new() };
        let line = format!("   other branches: {}{more} (use --branch)", others.join(", "));
        let line = context.output.faint(&line);
        context.output.line(line)
    }

    fn block(&self, context: &mut Context, block: &BlockView, clock: &str) -> Result<()> {
        match block {
            BlockView::Text { text, cut } => {
                for line in wrap::prose(text.as_str(), context.output.width()) {
                    context.output.line(line)?;
                }
                truncated(context, cut.full_bytes)
            }
            BlockView::Thinking { text, cut } => {
                for line in wrap::prose(text.as_str(), context.output.width()) {
                    let line = context.output.faint(&line);
                    context.output.line(line)?;
                }
                truncated(context, cut.full_bytes)
            }
            BlockView::Image { media_type, bytes, path } => {
                let path = path.as_ref().map_or("", |path| path.as_str());
                broken(context, "", &format!("[image {media_type} {} {path}]", size(*bytes)))
            }
            BlockView::Attachment { name } => broken(context, "", &format!("[attachment {name}]")),
            BlockView::Event { name, text } => {
                for line in wrap::prose(&format!("{name}: {text}"), context.output.width()) {
                    context.output.line(line)?;
                }
                Ok(())
            }
            BlockView::ToolCall { call_id, name, kind, title, files, changes, .. } => {
                context.output.line("")?;
                let sign = if *kind == "shell" { "$".to_owned() } else { format!("{name}:") };
                self::title(context, &format!("── {sign} {title}"), clock)?;
                for file in files.iter().filter(|file| !changes.iter().any(|change| change.path == file.path))
                {
                    broken(context, DIFF, &touched(file))?;
                }
                for change in changes {
                    diff(context, change)?;
                }
                self.left_of(context, call_id.as_str())
            }
            BlockView::ToolResult { ok, exit_code, duration_ms, output, cut, .. } => {
                for line in output.as_str().lines() {
                    for part in wrap::code(line, context.output.width(), OUTPUT.chars().count()) {
                        let line = context.output.faint(&format!("{OUTPUT}{part}"));
                        context.output.line(line)?;
                    }
                }
                truncated(context, cut.full_bytes)?;
                outcome(context, *ok, *exit_code, *duration_ms)
            }
        }
    }

    fn left_of(&self, context: &mut Context, call: &str) -> Result<()> {
        for survivor in self.left.get(call).into_iter().flatten() {
            let lines: Vec<String> = survivor.lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
            let places =
                if lines.is_empty() { String::new() } else { format!(": lines {}", lines.join(", ")) };
            let (standing, written, file) = (survivor.standing, survivor.written, &survivor.file);
            broken(context, DIFF, &format!("{standing} of {written} lines are still in {file}{places}"))?;
        }
        Ok(())
    }
}

/// A line that may be longer than the terminal is wide, such as one with a path.
fn broken(context: &mut Context, indent: &str, text: &str) -> Result<()> {
    let parts = wrap::code(text, context.output.width(), indent.len());
    parts.iter().try_for_each(|part| context.output.line(format!("{indent}{part}")))
}

fn touched(file: &FileView) -> String {
    let lines = file.after.or(file.before);
    let lines = lines.map(|[start, end]| format!(" lines {start}-{end}")).unwrap_or_default();
    format!("{} {}{lines}", file.operation, file.path)
}

fn diff(context: &mut Context, change: &ChangeView) -> Result<()> {
    broken(context, DIFF, &format!("{} {}", change.operation, change.path))?;
    for line in change.diff.as_str().lines() {
        for (number, part) in wrap::code(line, context.output.width(), DIFF.len() + 1).iter().enumerate() {
            // What follows a break starts below the text, not below its sign.
            let sign = if number > 0 { " " } else { "" };
            let shown = format!("{DIFF}{sign}{part}");
            let shown = match line.as_bytes().first() {
                Some(b'+') => context.output.added(&shown),
                Some(b'-') => context.output.removed(&shown),
                Some(b'@') => context.output.faint(&shown),
                _ => shown,
            };
            context.output.line(shown)?;
        }
    }
    Ok(())
}

/// A heading with its time: one line of the terminal, unless a command has several.
fn title(context: &mut Context, heading: &str, time: &str) -> Result<()> {
    let room = context.output.width().map(|width| width.saturating_sub(time.chars().count() + 1).max(20));
    let lines: Vec<String> = match room {
        Some(room) if !heading.contains('\n') => vec![table::fit(&heading.replace('\t', " "), room)],
        Some(room) => heading.lines().flat_map(|line| wrap::code(line, Some(room), 0)).collect(),
        None => vec![heading.to_owned()],
    };
    let heading = context.output.strong(&lines.join("\n"));
    context.output.line(format!("{heading} {time}").trim_end())
}

fn outcome(
    context: &mut Context,
    ok: Option<bool>,
    exit_code: Option<i64>,
    duration_ms: Option<i64>,
) -> Result<()> {
    let mut end = Vec::new();
    end.extend(exit_code.map(|code| format!("exit {code}")));
    if exit_code.is_none() && ok == Some(false) {
        end.push("failed".to_owned());
    }
    end.extend(duration_ms.map(milliseconds));
    if end.is_empty() { Ok(()) } else { context.output.line(format!("   ({})", end.join(", "))) }
}

fn truncated(context: &mut Context, full_bytes: Option<u64>) -> Result<()> {
    match full_bytes {
        Some(bytes) => context.output.line(format!("   … truncated; use --full to show all {}", size(bytes))),
        None => Ok(()),
    }
}
