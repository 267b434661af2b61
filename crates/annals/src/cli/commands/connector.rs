//! `annals sync --connector`: runs an outside program, shows its messages, and reports the result.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::settings::Declared;
use crate::cli::{Context, Outcome};
use crate::collect::{
    ConnectorOptions, ConnectorReport, InteractionKind, InteractionReply, Lock, Notice, run_connector,
};
use crate::view::format::{counted, number};
use annals_core::{Error, Result};
use annals_store::Store;

#[derive(Args, Default)]
#[group(skip)]
pub struct ConnectorArguments {
    /// Run this program and keep the records it prints; all further words are its arguments (see docs/protocol.md)
    #[arg(long, value_names = ["PROGRAM", "ARG"], num_args = 1.., allow_hyphen_values = true,
          conflicts_with_all = ["sources", "since", "no_projects"])]
    connector: Vec<String>,
    /// Name of the connector [default: the program's file name without its extension]
    #[arg(long, value_name = "NAME", requires = "connector")]
    connector_name: Option<String>,
    /// Stop the connector if it prints nothing for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "connector",
          value_parser = clap::value_parser!(u64).range(1..))]
    connector_silence: u64,
}

/// The other options of `sync`.
pub struct ConnectorRange<'w> {
    pub full: bool,
    pub gaps_only: bool,
    pub member: Option<&'w String>,
}

impl ConnectorArguments {
    pub fn is_set(&self) -> bool {
        !self.connector.is_empty()
    }
}

pub fn run(
    context: &mut Context,
    options: &ConnectorArguments,
    range: &ConnectorRange<'_>,
) -> Result<Outcome> {
    let Some((program, arguments)) = options.connector.split_first() else { return Ok(Outcome::Nothing) };
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let run_options = ConnectorOptions {
        program: program.clone(),
        arguments: arguments.to_vec(),
        name: options.connector_name.clone().or(stem).unwrap_or_default(),
        full: range.full,
        gaps_only: range.gaps_only,
        silence: Duration::from_secs(options.connector_silence),
        hidden: context.config.own_variables(),
        member: range.member.cloned(),
    };
    let _lock = Lock::take(&context.config.data_dir, "sync --connector")?;
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let environment = settings.environment();
    // The program can print anything: it passes the door like all text.
    let door = context.door(&Store::open(&config.data_dir)?)?;
    let shown = |text: &str| door.show(text).to_string();
    // A private key that spans several lines can only be masked as a whole.
    let mut held = String::new();
    let report = run_connector(&run_options, &environment, &mut |notice| {
        if let Notice::Output(text) = notice {
            if !holds_back(&mut held, text) {
                show(context, &shown, &Notice::Output(&std::mem::take(&mut held)));
            }
            return InteractionReply::NotDone;
        }
        show(context, &shown, &notice)
    })?;
    if !held.is_empty() {
        context.output.note("(incomplete private key)");
    }
    if !context.quiet {
        let listed = if context.verbose { report.warnings.len() } else { 5 };
        for warning in report.warnings.iter().take(listed) {
            context.output.note(format!("warning: {}", shown(warning)));
        }
        if report.warning_count > 0 {
            context.output.note(format!("warning: {} not understood", counted(report.warning_count, "line")));
        }
    }
    if let Some(failure) = report.failure {
        let failed = Error::new(shown(&failure.what));
        return Err(match failure.hint {
            Some(hint) => failed.hint(hint),
            None => failed,
        });
    }
    print_report(context, &report, &shown)?;
    Ok(Outcome::Done)
}

/// Adds a line to what is held back; false if it can be shown now.
fn holds_back(held: &mut String, line: &str) -> bool {
    if !held.is_empty() {
        held.push('\n');
    }
    held.push_str(line);
    held.len() < 1 << 16 && held.contains("-----BEGIN ") && !held.contains("-----END ")
}

fn show(context: &mut Context, shown: &dyn Fn(&str) -> String, notice: &Notice<'_>) -> InteractionReply {
    match notice {
        Notice::Interaction(interaction) => {
            context.output.note(format!("action needed: {}", shown(&interaction.message)));
            if let Some(link) = &interaction.link {
                context.output.note(format!("link: {}", shown(link)));
            }
            let answers = interaction.kind == InteractionKind::ManualAction && std::io::stdin().is_terminal();
            if !answers {
                return InteractionReply::NotDone;
            }
            context.output.note("press Enter when done");
            let read = std::io::stdin().lock().read_line(&mut String::new());
            return if read.is_ok_and(|length| length > 0) {
                InteractionReply::Done
            } else {
                InteractionReply::NotDone
            };
        }
        Notice::Output(_) | Notice::Progress { .. } | Notice::SecondsLeft(_) if context.quiet => {}
        Notice::Output(text) => context.output.note(shown(text)),
        Notice::Progress { message, count, total } => {
            let part = match (count, total) {
                (Some(count), Some(total)) => format!(" ({count} of {total})"),
                (Some(count), None) => format!(" ({count})"),
                (None, _) => String::new(),
            };
            context.output.note(format!("{}{part}", shown(message)));
        }
        Notice::SecondsLeft(seconds) => {
            context.output.note(format!("about {} min left", number(seconds.div_ceil(60))));
        }
    }
    InteractionReply::NotDone
}

fn print_report(
    context: &mut Context,
    report: &ConnectorReport,
    shown: &dyn Fn(&str) -> String,
) -> Result<()> {
    if context.json {
        return context.output.json(&json!({"connector": {
            "name": report.name,
            "records": report.records,
            "new": report.new,
            "unchanged": report.unchanged,
            "skipped": report.skipped,
            "gaps_opened": report.gaps_opened,
            "gaps_recovered": report.gaps_recovered,
            "commits": report.commits,
            "problems": report.warnings.iter().map(|warning| shown(warning)).collect::<Vec<_>>(),
            "problem_count": report.warning_count,
        }}));
    }
    context.output.line(format!(
        "{}: {}, {} new, {} unchanged, {} skipped, {} opened, {} recovered",
        report.name,
        counted(report.records, "record"),
        number(report.new),
        number(report.unchanged),
        number(report.skipped),
        counted(report.gaps_opened, "gap"),
        number(report.gaps_recovered),
    ))
}
