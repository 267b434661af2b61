//! `annals mcp`: answers agents over the Model Context Protocol, and tells clients that it does.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use super::serve::refresh;
use super::sync::parse_source;
use crate::cli::clients::{self, Added, Change};
use crate::cli::settings::Declared;
use crate::cli::ui::confirm::confirm;
use crate::cli::{Context, Outcome, now};
use crate::collect::is_repository;
use crate::serve::{AgentSetup, serve_agent};
use crate::view::Door;
use annals_core::{Error, Result};
use annals_sources::{ServerList, Source, registry};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Without a command, `annals mcp` speaks MCP on standard input and output: clients start it, people do not. \
                  `annals serve` offers the same at /mcp, over HTTP with a token."
)]
pub struct McpArguments {
    /// Answer from the archive as it is, without refreshing it
    #[arg(long)]
    no_sync: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Add annals to the MCP servers of a client, after showing the change
    Install(ClientArguments),
    /// Remove annals from the MCP servers of a client
    Remove(ClientArguments),
}

#[derive(Args)]
pub struct ClientArguments {
    /// The client, as `annals sources` names it, or the start of its name
    #[arg(value_name = "CLIENT")]
    client: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only show the change
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

pub fn run(context: &mut Context, options: &McpArguments) -> Result<Outcome> {
    match &options.action {
        Some(Action::Install(client)) => return install(context, client),
        Some(Action::Remove(client)) => return remove(context, client),
        None => {}
    }
    serve_agent(AgentSetup {
        data_dir: context.config.data_dir.clone(),
        folder: working_folder(),
        refresh: (!options.no_sync).then(|| refresh(context.config.clone(), None)),
        now,
    })?;
    Ok(Outcome::Done)
}

/// The repository that the client was started in, or the folder.
fn working_folder() -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let root = here.ancestors().find(|folder| is_repository(folder)).unwrap_or(&here);
    root.to_str().map(str::to_owned)
}

/// The path of this program, which clients start from anywhere, and its arguments.
pub fn own_command(context: &Context, arguments: &[&str]) -> Result<(String, Vec<String>)> {
    let program =
        std::env::current_exe().map_err(|error| Error::new(format!("cannot find annals itself: {error}")))?;
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| Error::new(format!("{} is not UTF-8", path.display())))
    };
    let mut all = Vec::new();
    if !context.config.is_default_home() {
        let home = std::path::absolute(&context.config.data_dir)?;
        all.extend(["--home".to_owned(), text(&home)?]);
    }
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    Ok((text(&program)?, all))
}

fn server_list(context: &Context, name: &str) -> Result<(&'static dyn Source, ServerList)> {
    let source = parse_source(name)?;
    let settings = Declared(&context.config);
    let list = source.agent_client(&settings).and_then(|client| client.servers);
    let list = list.ok_or_else(|| {
        let has_list = |source: &&&dyn Source| {
            source.agent_client(&settings).is_some_and(|client| client.servers.is_some())
        };
        let known: Vec<&str> =
            registry().iter().filter(has_list).map(|source| source.manifest().source).collect();
        Error::new(format!("{} has no list of MCP servers that annals knows", source.manifest().label))
            .hint(format!("clients that have one: {}", known.join(", ")))
    })?;
    Ok((source, list))
}

fn install(context: &mut Context, options: &ClientArguments) -> Result<Outcome> {
    let (source, list) = server_list(context, &options.client)?;
    let (command, arguments) = own_command(context, &["mcp"])?;
    let label = source.manifest().label;
    let Some(change) = clients::install(&list, &command, &arguments)? else {
        return report(context, label, &list, "unchanged", "annals is installed already");
    };
    if !agree(context, options, &list, &change)? {
        return Ok(Outcome::Nothing);
    }
    // First what undoes it: without the record nothing is lost but an empty list that stays.
    let store = context.archive_or_new()?;
    let record = record_of(source);
    if store.setting(&record)?.is_none() {
        store.set_setting(&record, Some(<&str>::from(change.undo).as_bytes()))?;
    }
    change.write()?;
    report(
        context,
        label,
        &list,
        "installed",
        "annals is installed; restart the client, and ask it what you did last",
    )
}

fn remove(context: &mut Context, options: &ClientArguments) -> Result<Outcome> {
    let (source, list) = server_list(context, &options.client)?;
    let label = source.manifest().label;
    let archive = context.archive()?;
    let record = record_of(source);
    let added = archive.as_ref().map(|store| store.setting(&record)).transpose()?.flatten();
    let added = added.and_then(|added| String::from_utf8_lossy(&added).parse().ok()).unwrap_or(Added::Entry);
    let Some(change) = clients::remove(&list, added)? else {
        return report(context, label, &list, "unchanged", "annals is not installed");
    };
    if !agree(context, options, &list, &change)? {
        return Ok(Outcome::Nothing);
    }
    change.write()?;
    if archive.is_some() {
        context.archive_or_new()?.set_setting(&record, None)?;
    }
    report(context, label, &list, "removed", "annals is removed")
}

/// The setting of the archive that says what was added.
fn record_of(source: &dyn Source) -> String {
    format!("mcp_installed.{}", source.manifest().source)
}

/// Shows a change and asks. Only lines that are annals' own are shown: the rest of the file may be secret.
fn agree(
    context: &mut Context,
    options: &ClientArguments,
    list: &ServerList,
    change: &Change,
) -> Result<bool> {
    // JSON is for the result; people read the change.
    if !context.json {
        let door = Door::masking_alone();
        context.output.line(door.show(&list.file.display().to_string()).as_str())?;
        for (mark, lines) in [("-", &change.removed), ("+", &change.added)] {
            for line in lines {
                let line = format!("{mark} {}", door.show(line));
                let line =
                    if mark == "+" { context.output.added(&line) } else { context.output.removed(&line) };
                context.output.line(line)?;
            }
        }
        if list.holds_credentials && !context.quiet {
            context
                .output
                .note("note: the file also has credentials; nothing else in it is shown or changed");
        }
    }
    Ok(!options.dry_run && confirm(context, "Write this change?", options.yes)?)
}

fn report(
    context: &mut Context,
    label: &str,
    list: &ServerList,
    state: &str,
    words: &str,
) -> Result<Outcome> {
    if context.json {
        let file = Door::masking_alone().show(&list.file.display().to_string());
        context.output.json(&json!({"client": label, "file": file, "state": state}))?;
    } else {
        context.output.line(format!("{label}: {words}"))?;
    }
    Ok(Outcome::Done)
}
