//! `annals skill`: a short skill that teaches agents when to ask the archive.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::sync::parse_source;
use crate::cli::clients::replace;
use crate::cli::settings::Declared;
use crate::cli::ui::confirm::confirm;
use crate::cli::{Context, Outcome};
use crate::view::Door;
use annals_core::{Error, Result};
use annals_sources::{Source, registry};

const SKILL: &str = include_str!("skill.md");
/// A file that starts like this is ours, in whatever version.
const START: &str = "---\nname: annals\n";

#[derive(Args)]
pub struct SkillArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install the skill in one client, or in all clients on this machine
    Install(ClientArguments),
    /// Remove the skill
    Remove(ClientArguments),
    /// Print the skill
    Print,
}

#[derive(Args)]
struct ClientArguments {
    /// The client [default: all that are on this machine]
    #[arg(value_name = "CLIENT")]
    client: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(context: &mut Context, options: &SkillArguments) -> Result<Outcome> {
    match &options.action {
        Action::Install(client) => install(context, client),
        Action::Remove(client) => remove(context, client),
        Action::Print => {
            if context.json {
                context.output.json(&json!({"skill": SKILL}))?;
            } else {
                context.output.line(SKILL.trim_end())?;
            }
            Ok(Outcome::Done)
        }
    }
}

/// The file of the skill for each client.
fn places(context: &Context, options: &ClientArguments) -> Result<Vec<(&'static str, PathBuf)>> {
    let settings = Declared(&context.config);
    let folder = |source: &dyn Source| source.agent_client(&settings).and_then(|client| client.skills);
    let file = |folder: PathBuf| folder.join("annals/SKILL.md");
    if let Some(name) = &options.client {
        let source = parse_source(name)?;
        let folder = folder(source).ok_or_else(|| {
            Error::new(format!("{} has no skills that annals knows", source.manifest().label))
                .hint("`annals skill print` prints it, for a place of your choice")
        })?;
        return Ok(vec![(source.manifest().label, file(folder))]);
    }
    // A client that is not there gets no folder.
    let known = registry().iter().filter_map(|source| Some((source.manifest().label, folder(*source)?)));
    Ok(known
        .filter(|(_, folder)| folder.parent().is_some_and(|home| home.is_dir()))
        .map(|(label, folder)| (label, file(folder)))
        .collect())
}

fn install(context: &mut Context, options: &ClientArguments) -> Result<Outcome> {
    let mut wanted = Vec::new();
    for (label, file) in places(context, options)? {
        match fs::read_to_string(&file) {
            Ok(text) if text == SKILL => {}
            Ok(text) if !text.starts_with(START) => return Err(foreign(&file)),
            _ => wanted.push((label, file)),
        }
    }
    if !wanted.is_empty() && !agree(context, options, &wanted, "+", "Write the skill?")? {
        return Ok(Outcome::Nothing);
    }
    for (_, file) in &wanted {
        replace(file, SKILL.as_bytes())
            .map_err(|error| Error::new(format!("cannot write {}: {error}", file.display())))?;
    }
    report(
        context,
        &wanted,
        "installed",
        "the skill is installed already, or no client with skills was found",
    )
}

fn remove(context: &mut Context, options: &ClientArguments) -> Result<Outcome> {
    let mut wanted = Vec::new();
    for (label, file) in places(context, options)? {
        match fs::read_to_string(&file) {
            Ok(text) if text.starts_with(START) => wanted.push((label, file)),
            Ok(_) => return Err(foreign(&file)),
            Err(_) => {}
        }
    }
    if !wanted.is_empty() && !agree(context, options, &wanted, "-", "Remove the skill?")? {
        return Ok(Outcome::Nothing);
    }
    for (_, file) in &wanted {
        fs::remove_file(file)
            .map_err(|error| Error::new(format!("cannot remove {}: {error}", file.display())))?;
        // Folders that the skill alone needed; others are not empty.
        for folder in file.ancestors().skip(1).take(2) {
            drop(fs::remove_dir(folder));
        }
    }
    report(context, &wanted, "removed", "the skill is not installed")
}

fn foreign(file: &std::path::Path) -> Error {
    Error::new(format!("{} is not the skill of annals", file.display()))
        .hint("move it away; nothing was changed")
}

fn agree(
    context: &mut Context,
    options: &ClientArguments,
    files: &[(&'static str, PathBuf)],
    mark: &str,
    question: &str,
) -> Result<bool> {
    if !context.json {
        let door = Door::masking_alone();
        for (_, file) in files {
            context.output.line(format!("{mark} {}", door.show(&file.display().to_string())))?;
        }
    }
    confirm(context, question, options.yes)
}

fn report(
    context: &mut Context,
    files: &[(&'static str, PathBuf)],
    state: &str,
    none: &str,
) -> Result<Outcome> {
    let door = Door::masking_alone();
    if context.json {
        let rows = files.iter().map(|(label, file)| {
            json!({"client": label, "file": door.show(&file.display().to_string()), "state": state})
        });
        let rows: Vec<Value> = rows.collect();
        context.output.json(&json!({"skills": rows}))?;
    } else if files.is_empty() {
        context.output.line(none)?;
    } else {
        for (label, _) in files {
            context.output.line(format!("{label}: the skill is {state}"))?;
        }
    }
    Ok(Outcome::Done)
}
