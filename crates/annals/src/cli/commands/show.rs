//! `annals show`: the conversation of a session.

use std::collections::HashMap;

use clap::Args;
use serde_json::Value;

use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::{cost, counted, milliseconds, number, size};
use crate::view::{
    BlockView, Branch, Entry, LibraryItem, LibraryQuery, SessionTies, SessionView, Survivor, TranscriptQuery,
    View,
};
use annals_core::{Error, Family, Result, Time};

#[derive(Args)]
pub struct ShowArguments {
    /// Session id, or the beginning of one
    #[arg(value_name = "SESSION")]
    session: String,
    /// Show complete texts instead of previews
    #[arg(long)]
    full: bool,
    /// Also show what the client added: environment, instructions, summaries
    #[arg(long)]
    context: bool,
    /// Also show messages copied from another session
    #[arg(long)]
    copies: bool,
    /// Show the branch that contains this message, or `all` branches
    #[arg(long, value_name = "MESSAGE|all")]
    branch: Option<String>,
    /// Start at this message: its id (see `annals search`), the beginning of its id, or its number
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,
    /// Show how many lines of each edit are still in the files today
    #[arg(long)]
    lineage: bool,
}

pub fn run(context: &mut Context, options: &ShowArguments) -> Result<Outcome> {
    let unknown = || {
        Error::new(format!("no session found with id {:?}", options.session))
            .hint("`annals sessions --all` lists all sessions; `annals sync` captures new ones")
    };
    let store = context.archive()?.ok_or_else(unknown)?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let session = view.find_session(&options.session)?.ok_or_else(unknown)?;
    let mut branch = Branch::parse(options.branch.as_deref());
    // A search result may be on a branch that the client does not show.
    if let (Branch::Current, Some(at)) = (&branch, &options.at)
        && view.is_off_branch(&session, at)?
    {
        branch = Branch::Through(at.clone());
    }
    let query = TranscriptQuery { full: options.full, copies: options.copies, changes: false, branch };
    let in_force = in_force(&view, &session)?;
    let ties = view.session_ties(&session)?;
    let opening = |context: &mut Context| match context.json {
        true => json_head(context, &session, &in_force, &ties),
        false => head(context, &session, &in_force),
    };
    let mut started = options.at.is_none();
    if started {
        opening(context)?;
    }
    let left = if options.lineage { left_today(&view, &session)? } else { HashMap::new() };
    let mut first = true;
    view.transcript(&session, query, &mut |entry| {
        if !started {
            // Nothing is printed until the message is known to exist.
            if !options.at.as_deref().is_some_and(|at| is_at(&entry, at)) {
                return Ok(());
            }
            started = true;
            opening(context)?;
        }
        if context.json {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let mut document = serde_json::to_value(&entry)?;
            if options.lineage {
                add_left(&mut document, &left);
            }
            return context.output.fragment(&format!("{comma}{document}"));
        }
        let is_shown = options.context || options.at.is_some() || entry.is_conversation();
        if is_shown { show(context, &entry, &left) } else { Ok(()) }
    })?;
    if !started {
        return Err(no_message(options));
    }
    if context.json {
        context.output.fragment("],\"next_cursor\":null}\n")?;
    }
    Ok(Outcome::Done)
}

/// What is left of each call's edits, by the call's id.
type Left = HashMap<String, Vec<Survivor>>;

/// Reads the files on this machine, by the paths the session used.
fn left_today(view: &View<'_>, session: &SessionView) -> Result<Left> {
    let mut read = |path: &str| {
        let facts = std::fs::metadata(path).ok().filter(|facts| facts.is_file() && facts.len() <= 8 << 20)?;
        let bytes = std::fs::read(path).ok().filter(|_| facts.len() > 0)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut left: Left = HashMap::new();
    for survivor in view.survivors(session, &mut read)? {
        left.entry(survivor.call_id.to_string()).or_default().push(survivor);
    }
    Ok(left)
}

fn add_left(entry: &mut Value, left: &Left) {
    for block in entry["blocks"].as_array_mut().into_iter().flatten() {
        let survivors = block["call_id"].as_str().and_then(|id| left.get(id));
        if let Some(survivors) = survivors.filter(|_| block["type"] == "tool_call") {
            block["lineage"] = serde_json::json!(survivors);
        }
    }
}

fn show_left(context: &mut Context, survivors: &[Survivor]) -> Result<()> {
    for survivor in survivors {
        let lines: Vec<String> = survivor.lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
        let places = if lines.is_empty() { String::new() } else { format!(": lines {}", lines.join(", ")) };
        context.output.line(format!(
            "   {} of {} lines are still in {}{places}",
            survivor.standing, survivor.written, survivor.file
        ))?;
    }
    Ok(())
}

fn json_head(
    context: &mut Context,
    session: &SessionView,
    in_force: &[LibraryItem],
    ties: &SessionTies,
) -> Result<()> {
    context.output.fragment(&format!(
        "{{\"session\":{},\"in_force\":{},\"links\":{},\"parts\":{},\"messages\":[",
        serde_json::to_string(session)?,
        serde_json::to_string(in_force)?,
        serde_json::to_string(&ties.links)?,
        serde_json::to_string(&ties.parts)?
    ))
}

fn is_at(entry: &Entry, at: &str) -> bool {
    entry.id.starts_with(at) && at.len() >= 4 || at.parse::<usize>().is_ok_and(|number| number == entry.seq)
}

fn no_message(options: &ShowArguments) -> Error {
    let at = options.at.as_deref().unwrap_or_default();
    Error::new(format!("no message {at:?} in this session"))
        .hint("`annals search` and `annals show --json` print message ids")
}

/// Versions of instructions, skills and memory when the session ran.
fn in_force(view: &View<'_>, session: &SessionView) -> Result<Vec<LibraryItem>> {
    let Some(then) = session.first_message_at.as_deref().and_then(Time::parse) else { return Ok(Vec::new()) };
    let query = LibraryQuery {
        source: Some(session.source.clone()),
        kind: None,
        project: Some(session.cwd.as_ref().map_or_else(String::new, ToString::to_string)),
        session: Some(serde_json::to_value(&session.native)?),
    };
    let mut items = view.library(&query, then)?;
    items.retain(|item| item.family != Family::Settings);
    Ok(items)
}

fn head(context: &mut Context, session: &SessionView, in_force: &[LibraryItem]) -> Result<()> {
    let title = session.title.as_ref().map_or("(no title)", |title| title.as_str());
    let title = context.output.strong(title);
    context.output.line(title)?;
    let mut facts = vec![session.provider_label.to_owned()];
    facts.extend(session.cwd.as_ref().map(ToString::to_string));
    facts.extend(session.git_branch.as_ref().map(ToString::to_string));
    facts.push(session.models.join(", "));
    facts.push(format!(
        "{} – {}",
        time::local_text(session.first_message_at.as_ref()),
        time::local_text(session.last_message_at.as_ref())
    ));
    facts.retain(|fact| !fact.is_empty());
    context.output.line(facts.join(" · "))?;
    context.output.line(format!(
        "{} · {} · {} tokens · {} ({})",
        counted(session.message_count, "message"),
        counted(session.tool_call_count, "call"),
        number(session.tokens.total),
        cost(session.cost_usd),
        session.billing_source
    ))?;
    if let (Some(parent), Some(kind)) = (&session.parent_session_id, &session.parent_kind) {
        context.output.line(format!("{} of {parent}", kind.replace('_', "-")))?;
    }
    if session.archived {
        context.output.line("archived in the client")?;
    }
    if session.history_only {
        context.output.line("no transcript; prompts from the client's history")?;
    }
    if session.source_gone {
        context.output.line("deleted by the client; shown from the archive")?;
    }
    if !session.resume_command.is_empty() {
        context.output.line(format!("resume: {}", session.resume_command))?;
    }
    if in_force.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        in_force.iter().map(|item| format!("{} {} v{}", item.kind, item.name, item.version)).collect();
    context.output.line(format!("in effect: {}", names.join(", ")))
}

fn show(context: &mut Context, entry: &Entry, left: &Left) -> Result<()> {
    let who = match entry.kind {
        "prompt" => "user",
        "answer" => "assistant",
        other => other,
    };
    let clock = entry.at.as_deref().map(time::local_clock).unwrap_or_default();
    // An answer of only tool calls needs no heading.
    let silent = matches!(entry.blocks.first(), Some(BlockView::ToolCall { .. }));
    if entry.kind != "call" && !silent {
        context.output.line("")?;
        let who = context.output.strong(&format!("── {who}"));
        let copied = if entry.copied { " (copied)" } else { "" };
        context.output.line(format!("{who} {clock}{copied}").trim_end())?;
    }
    for block in &entry.blocks {
        match block {
            // The output of a call made by a script is part of the script's output.
            BlockView::ToolResult { ok, exit_code, duration_ms, .. }
                if entry.kind == "call" && entry.parent_id.is_some() =>
            {
                show_end(context, *ok, *exit_code, *duration_ms)?;
            }
            _ => show_block(context, block, &clock)?,
        }
        if let BlockView::ToolCall { call_id, .. } = block
            && let Some(survivors) = left.get(call_id.as_str())
        {
            show_left(context, survivors)?;
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

fn show_block(context: &mut Context, block: &BlockView, clock: &str) -> Result<()> {
    match block {
        BlockView::Text { text, cut } => {
            context.output.line(text.as_str())?;
            more(context, cut.full_bytes)
        }
        BlockView::Thinking { text, cut } => {
            let text = context.output.faint(text.as_str());
            context.output.line(text)?;
            more(context, cut.full_bytes)
        }
        BlockView::Image { media_type, bytes, path } => {
            let path = path.as_ref().map_or("", |path| path.as_str());
            context.output.line(format!("[image {media_type} {} {path}]", size(*bytes)))
        }
        BlockView::Attachment { name } => context.output.line(format!("[attachment {name}]")),
        BlockView::Event { name, text } => context.output.line(format!("{name}: {text}")),
        BlockView::ToolCall { name, kind, title, files, .. } => {
            context.output.line("")?;
            let sign = if *kind == "shell" { "$".to_owned() } else { format!("{name}:") };
            let call = context.output.strong(&format!("── {sign} {title}"));
            context.output.line(format!("{call} {clock}"))?;
            for file in files {
                let lines = file.after.or(file.before);
                let lines = lines.map(|[start, end]| format!(" lines {start}-{end}")).unwrap_or_default();
                context.output.line(format!("   {} {}{lines}", file.operation, file.path))?;
            }
            Ok(())
        }
        BlockView::ToolResult { ok, exit_code, duration_ms, output, cut, .. } => {
            for line in output.as_str().lines() {
                let line = context.output.faint(&format!("   {line}"));
                context.output.line(line)?;
            }
            more(context, cut.full_bytes)?;
            show_end(context, *ok, *exit_code, *duration_ms)
        }
    }
}

fn show_end(
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

fn more(context: &mut Context, full_bytes: Option<u64>) -> Result<()> {
    match full_bytes {
        Some(bytes) => context.output.line(format!("   … truncated; use --full to show all {}", size(bytes))),
        None => Ok(()),
    }
}
