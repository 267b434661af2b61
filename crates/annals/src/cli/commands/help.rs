//! `annals help` and `annals version`, for those who type words instead of options.

use clap::{Args, Command, CommandFactory};
use serde_json::json;

use crate::cli::{Arguments, Context, Outcome, help};
use annals_core::{Error, Result, nearest_few};

#[derive(Args)]
pub struct HelpArguments {
    /// Verb to explain
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
}

#[derive(Args)]
pub struct VersionArguments {}

pub fn run(context: &mut Context, options: &HelpArguments) -> Result<Outcome> {
    let mut command = help::with_help(Arguments::command());
    command.build();
    let text = find_verb(&command, &options.verb)?.clone().render_help();
    let text = if context.output.has_colour() { text.ansi().to_string() } else { text.to_string() };
    if context.json {
        context.output.json(&json!({"help": text}))?;
        return Ok(Outcome::Done);
    }
    context.output.own(&text)?;
    Ok(Outcome::Done)
}

pub fn version(context: &mut Context, _options: &VersionArguments) -> Result<Outcome> {
    if context.json {
        let version = env!("CARGO_PKG_VERSION");
        let [commit, date] = [option_env!("ANNALS_COMMIT"), option_env!("ANNALS_DATE")];
        context.output.json(&json!({"version": version, "commit": commit, "date": date}))?;
    } else {
        context.output.line(format!("annals {}", crate::cli::VERSION))?;
    }
    Ok(Outcome::Done)
}

/// The command that words name: the program itself, a verb, or a verb of a verb.
pub fn find_verb<'c>(command: &'c Command, words: &[String]) -> Result<&'c Command> {
    let mut found = command;
    for word in words {
        found = found.find_subcommand(word).ok_or_else(|| {
            let known: Vec<&str> = found.get_subcommands().map(Command::get_name).collect();
            let near = nearest_few(word, &known);
            let hint = match near.is_empty() {
                true => "`annals help` lists all verbs".to_owned(),
                false => format!("did you mean {}?", near.join(", ")),
            };
            Error::new(format!("no verb is named {word:?}")).hint(hint)
        })?;
    }
    Ok(found)
}
