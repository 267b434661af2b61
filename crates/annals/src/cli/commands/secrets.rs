//! `annals secrets`: which secrets appear where, by their marks.

use clap::Args;
use serde_json::json;

use super::forget::{Manner, forget_selection, texts_of_secret};
use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::collect::Selection;
use crate::view::format::{counted, number};
use crate::view::{Door, SecretTrace};
use annals_core::{Error, Result, Shown};
use annals_store::SessionFilter;

#[derive(Args)]
pub struct SecretsArguments {
    /// Follow the secret with this mark: where it entered, who saw it, where it was written
    #[arg(value_name = "MARK", conflicts_with_all = ["source", "project", "since"])]
    mark: Option<String>,
    /// Mask the secret everywhere in the archive, for good
    #[arg(long, requires = "mark")]
    forget: bool,
    /// Do not ask
    #[arg(long, requires = "forget")]
    yes: bool,
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
    if let Some(mark) = &options.mark {
        return follow(context, mark, options);
    }
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
    let view = context.view(&store, &door);
    let found = view.secrets(&filter)?;
    if context.json {
        context.output.json(&json!({"secrets": found, "next_cursor": null}))?;
    } else if found.is_empty() {
        context.output.line("no secrets found")?;
    } else {
        let ids = context.short_ids(&view)?;
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|secret| {
                let tools: Vec<&str> = secret.tools.iter().map(|tool| tool.as_str()).collect();
                vec![
                    secret.mark.clone(),
                    number(secret.occurrences),
                    time::local_text(secret.first_seen_at.as_ref()),
                    number(secret.session_count),
                    secret.sessions.first().map_or_else(String::new, |id| ids.of(id).to_owned()),
                    tools.join(", "),
                    secret.places.join(", "),
                ]
            })
            .collect();
        let columns = [
            Column::text("mark"),
            Column::number("count"),
            Column::text("first seen").leave_out(2),
            Column::number("sessions").leave_out(1),
            Column::text("session"),
            Column::text("tools").cut_end(10).leave_out(4),
            Column::text("found in").cut_end(10).leave_out(3),
        ];
        context.output.table("", &columns, &rows)?;
        if !context.quiet {
            context.output.flush()?;
            context.output.note("hint: rotate every key that is still valid: an assistant has seen it");
        }
    }
    Ok(Outcome::Done)
}

fn follow(context: &mut Context, mark: &str, options: &SecretsArguments) -> Result<Outcome> {
    let mark = if mark.starts_with('[') { mark.to_owned() } else { format!("[{mark}]") };
    let store = context.archive()?.ok_or_else(|| Error::new("no archive yet").hint("annals sync"))?;
    if options.forget {
        let texts = texts_of_secret(&store, &mark)?;
        let manner = Manner { expires_at: None, verify: true, dry_run: false, yes: options.yes };
        return forget_selection(context, store, &Selection::Texts(texts), "secret", &manner);
    }
    let door = Door::masking(&store)?;
    let trace = context.view(&store, &door).trace_secret(&mark, None)?;
    let Some(trace) = trace else {
        return Err(
            Error::new(format!("no session contains a secret with the mark {mark}")).hint("annals secrets")
        );
    };
    if context.json {
        context.output.json(&trace)?;
    } else {
        print_trace(context, &trace)?;
    }
    Ok(Outcome::Done)
}

fn print_trace(context: &mut Context, trace: &SecretTrace) -> Result<()> {
    let title = context.output.strong(&trace.mark);
    let seen = counted(i64::try_from(trace.occurrences).unwrap_or(i64::MAX), "time");
    let (first, last) =
        (time::local_text(trace.first_seen_at.as_ref()), time::local_text(trace.last_seen_at.as_ref()));
    context.output.line(format!("{title}  {}, seen {seen}, {first} – {last}", trace.kind))?;
    if let Some(entered) = &trace.entered {
        let tool = entered.tool.as_ref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        let at = time::local_text(entered.at.as_ref());
        context
            .output
            .line(format!("entered by  {}{tool} in {}, {at}", entered.place, entered.session_id))?;
        for file in &entered.files {
            context.output.line(format!("            {file}"))?;
        }
    }
    for provider in &trace.providers {
        let at = time::local_text(provider.first_received_at.as_ref());
        let label = provider.provider_label;
        context
            .output
            .line(format!("sent to     {label}, first {at}, in {}", counted(provider.sessions, "session")))?;
    }
    let machines: Vec<&str> = trace.machines.iter().map(String::as_str).collect();
    context.output.line(format!("machines    {}", machines.join(", ")))?;
    let files: Vec<&str> = trace.written_files.iter().map(Shown::as_str).collect();
    let files = if files.is_empty() { "no file that is known".to_owned() } else { files.join(", ") };
    context.output.line(format!("written to  {files}"))?;
    let commands = if trace.in_commands { "yes" } else { "no" };
    context.output.line(format!("in commands {commands}"))?;
    let rows: Vec<Vec<String>> = trace
        .sessions
        .iter()
        .map(|session| {
            let places: Vec<&str> = session.places.iter().map(String::as_str).collect();
            vec![
                time::local_text(session.first_seen_at.as_ref()),
                session.session_id.clone(),
                session.parent_kind.as_ref().map(|kind| kind.replace('_', "-")).unwrap_or_default(),
                session.title.as_ref().map(ToString::to_string).unwrap_or_default(),
                places.join(", "),
            ]
        })
        .collect();
    let columns = [
        Column::text("first seen"),
        Column::text("session"),
        Column::text("kind").leave_out(1),
        Column::text("title").cut_end(16),
        Column::text("found in").cut_end(10),
    ];
    context.output.table("", &columns, &rows)?;
    match trace.revoke_at {
        Some(address) => context.output.line(format!("revoke it at {address}"))?,
        None => context.output.line("revoke it where it was issued")?,
    }
    if !context.quiet {
        context.output.flush()?;
        context.output.note(format!("hint: annals secrets \"{}\" --forget", trace.mark));
    }
    Ok(())
}
