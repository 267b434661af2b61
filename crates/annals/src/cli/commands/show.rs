//! `annals show`: the conversation of a session.

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::cli::follow::{Followed, follow};
use crate::cli::ui::resume::resume_line;
use crate::cli::ui::time;
use crate::cli::ui::transcript::{Left, Printing};
use crate::cli::ui::wrap;
use crate::cli::{Context, Outcome};
use crate::view::format::{cost, counted, number};
use crate::view::{
    Branch, Entry, LibraryItem, LibraryQuery, Narrowing, SessionTies, SessionView, TranscriptQuery, View,
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
    /// Show only these steps: prompts and answers, edits, or what failed
    #[arg(long, value_name = "VIEW", value_enum, default_value_t = Part::All)]
    view: Part,
    /// Show how many lines of each edit are still in the files today
    #[arg(long)]
    lineage: bool,
    /// Keep printing new steps of a live session until you press Ctrl-C
    #[arg(long, short, conflicts_with_all = ["json", "at", "branch"])]
    follow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    All,
    Prompts,
    Edits,
    Failures,
}

impl Part {
    fn narrowing(self) -> Narrowing {
        match self {
            Part::All => Narrowing::All,
            Part::Prompts => Narrowing::Prompts,
            Part::Edits => Narrowing::Edits,
            Part::Failures => Narrowing::Failures,
        }
    }
}

impl ShowArguments {
    pub fn is_followed(&self) -> bool {
        self.follow
    }
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
    // Text shows edits as diffs; JSON has the calls themselves.
    let changes = !context.json;
    let query = TranscriptQuery { full: options.full, copies: options.copies, changes, branch };
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
    let left = if options.lineage { left_today(&view, &session)? } else { Left::new() };
    let printing = Printing { left, full: options.full };
    let narrowing = options.view.narrowing();
    if options.follow {
        return follow(context, &store, &door, &Followed { session: &session, query, printing, narrowing });
    }
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
        let Some(entry) = narrowing.narrow(entry) else { return Ok(()) };
        if context.json {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let mut document = serde_json::to_value(&entry)?;
            if options.lineage {
                add_left(&mut document, &printing.left);
            }
            return context.output.fragment(&format!("{comma}{document}"));
        }
        let is_shown = options.context || options.at.is_some() || entry.is_conversation();
        if is_shown { printing.entry(context, &entry) } else { Ok(()) }
    })?;
    if !started {
        return Err(no_message(options));
    }
    if context.json {
        context.output.fragment("],\"next_cursor\":null}\n")?;
    }
    Ok(Outcome::Done)
}

/// Reads the files on this machine, by the paths the session used.
fn left_today(view: &View<'_>, session: &SessionView) -> Result<Left> {
    let mut read = |path: &str| {
        let facts = std::fs::metadata(path).ok().filter(|facts| facts.is_file() && facts.len() <= 8 << 20)?;
        let bytes = std::fs::read(path).ok().filter(|_| facts.len() > 0)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut left = Left::new();
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
    let title = session.heading().map_or("(no title)", |title| title.as_str());
    for line in wrap::prose(title, context.output.width()) {
        let line = context.output.strong(&line);
        context.output.line(line)?;
    }
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
    for line in wrap::prose(&facts.join(" · "), context.output.width()) {
        context.output.line(line)?;
    }
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
        context.output.line(format!("resume: {}", resume_line(session)))?;
    }
    if in_force.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        in_force.iter().map(|item| format!("{} {} v{}", item.kind, item.name, item.version)).collect();
    for line in wrap::prose(&format!("in effect: {}", names.join(", ")), context.output.width()) {
        context.output.line(line)?;
    }
    Ok(())
}
