//! `annals man`: manual pages, made from the definitions of the command line.

use std::path::{Path, PathBuf};

use clap::builder::Styles;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use serde_json::json;

use super::help::find_verb;
use crate::cli::{Arguments, Context, Outcome, help};
use crate::view::format::counted;
use annals_core::{Error, Result};

#[derive(Args)]
pub struct ManArguments {
    /// Print the page of this verb instead of the main one
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// Write all pages to this directory: annals.1, annals-show.1, …
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    to: Option<PathBuf>,
}

pub fn run(context: &mut Context, options: &ManArguments) -> Result<Outcome> {
    let command = pages();
    if let Some(folder) = &options.to {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::new(format!("cannot create {}: {error}", folder.display())))?;
        let written = write_all(&command, folder)?;
        if context.json {
            context.output.json(&json!({"pages": written, "to": folder}))?;
        } else if !context.quiet {
            context.output.note(format!("{} written to {}", counted(written, "page"), folder.display()));
        }
        return Ok(Outcome::Done);
    }
    let page = render(find_verb(&command, &options.verb)?)?;
    let wrote = context.output.stream().write_all(&page);
    context.output.check_write(wrote)?;
    Ok(Outcome::Done)
}

/// The command line as pages show it: complete names, no colours.
fn pages() -> Command {
    let mut command = help::with_help(Arguments::command().styles(Styles::plain()));
    command.build();
    command
}

fn render(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Writes the page of a command and those of its verbs.
fn write_all(command: &Command, folder: &Path) -> Result<usize> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, render(command)?)
        .map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))?;
    let mut written = 1;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        written += write_all(verb, folder)?;
    }
    Ok(written)
}
