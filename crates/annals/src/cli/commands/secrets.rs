//! `annals secrets`: which secrets appear where, by their marks.

use clap::Args;
use serde_json::json;

use crate::cli::source_name;
use crate::cli::ui::table::{fit, table};
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::Door;
use crate::view::format::number;
use annals_core::{Error, Result};
use annals_store::SessionFilter;

#[derive(Args)]
pub struct SecretsArguments {
    /// List only secrets in this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// List only secrets in sessions that ran in this directory or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// List only secrets in sessions active since then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

pub fn run(context: &mut Context, options: &SecretsArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::parse_source(source)?;
    }
    let since = options.since.as_deref().map(|text| time::parse(text, now())).transpose()?;
    let store = context.archive()?.ok_or_else(|| Error::new("no archive yet").hint("annals sync"))?;
    let filter = SessionFilter {
        source: options.source.clone(),
        project: options.project.as_deref().map(super::sessions::absolute),
        since,
        with_agents: true,
        ..SessionFilter::default()
    };
    // Values are never listed, not even with --reveal.
    let door = Door::masking(&store)?;
    let found = context.view(&store, &door).secrets(&filter)?;
    if context.json {
        context.output.json(&json!({"secrets": found, "next_cursor": null}))?;
    } else if found.is_empty() {
        context.output.line("no secrets found")?;
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|secret| {
                let tools: Vec<&str> = secret.tools.iter().map(|tool| tool.as_str()).collect();
                vec![
                    secret.mark.clone(),
                    number(secret.occurrences),
                    time::local_text(secret.first_seen_at.as_ref()),
                    number(secret.session_count),
                    secret.sessions.first().map_or_else(String::new, |id| fit(id, 13)),
                    fit(&tools.join(", "), 40),
                    secret.places.join(", "),
                ]
            })
            .collect();
        let head = ["mark", "#count", "first seen", "#sessions", "session", "tools", "found in"];
        for line in table(&head, &rows) {
            context.output.line(line)?;
        }
        if !context.quiet {
            context.output.flush()?;
            context.output.note("hint: rotate every key that is still valid: an assistant has seen it");
        }
    }
    Ok(Outcome::Done)
}
