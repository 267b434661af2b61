//! `annals gaps`: what could not be fetched, and when it is retried; `gaps retry` retries now.

use clap::{Args, Subcommand};
use serde_json::json;

use super::sync::{collect, collect_live, gaps_only, parse_source, print_stops};
use crate::cli::live::print_time_left;
use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Lock, Nobody};
use crate::view::format::{counted, number};
use crate::view::{GapQuery, GapView, MISSING, OPEN, Paging};
use annals_core::{Error, Result, Scope};
use annals_store::GapFilter;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GapsArguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// List only gaps of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Also list gaps that were recovered or given up
    #[arg(long)]
    all: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Retry open gaps now; gaps of connectors are retried on their next run
    Retry {
        /// Retry only these gaps, even if they were given up
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
        /// Also retry gaps that were given up
        #[arg(long, conflicts_with = "keys")]
        all: bool,
        /// Retry only gaps of this source
        #[arg(long, value_name = "SOURCE", value_parser = source_name)]
        source: Option<String>,
    },
}

pub fn run(context: &mut Context, options: &GapsArguments) -> Result<Outcome> {
    match &options.action {
        Some(Action::Retry { keys, all, source }) => retry(context, keys, *all, source.as_ref()),
        None => list(context, options),
    }
}

fn list(context: &mut Context, options: &GapsArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        parse_source(source)?;
    }
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let statuses = if options.all { Vec::new() } else { OPEN.iter().map(ToString::to_string).collect() };
    let page = Paging { limit: i64::MAX - 1, cursor: None };
    let query = GapQuery { source: options.source.clone(), statuses, page };
    let list = view.gaps(&query)?;
    if context.json {
        context.output.json(&list)?;
        return Ok(Outcome::Done);
    }
    if list.gaps.is_empty() {
        context.output.line("no gaps: everything that was found is archived")?;
    } else {
        let columns = [
            Column::text("source").leave_out(3),
            Column::text("stream").leave_out(4),
            Column::text("key").cut_front(16),
            Column::text("cause").cut_end(8),
            Column::text("status"),
            Column::number("tries").leave_out(2),
            Column::text("last try").leave_out(5),
            Column::text("next try"),
            Column::text("reason").cut_end(16).leave_out(1),
        ];
        let rows: Vec<Vec<String>> = list.gaps.iter().map(row).collect();
        context.output.table("", &columns, &rows)?;
    }
    if !context.quiet {
        print_time_left(context, options.source.as_deref())?;
    }
    let filter = GapFilter { source: options.source.as_deref(), statuses: &["terminal"] };
    let given_up = store.scoped(Scope::Owner).gaps(&filter, 0, i64::MAX, now())?.len();
    if given_up > 0 && !options.all && !context.quiet {
        context
            .output
            .note(format!("note: {} given up; use --all to list them", counted(given_up, "more gap")));
    }
    Ok(Outcome::Done)
}

fn row(gap: &GapView) -> Vec<String> {
    vec![
        gap.source.clone(),
        gap.stream.clone(),
        gap.key.to_string(),
        gap.why.replace('_', " "),
        gap.ended.as_ref().map_or(gap.status.clone(), |ended| format!("{}, {ended}", gap.status)),
        number(gap.attempts),
        time::local_text(Some(&gap.last_tried_at)),
        gap.eta.clone(),
        gap.reason.to_string(),
    ]
}

/// Gaps of files and providers are retried here; those of connectors on their next run.
fn retry(context: &mut Context, keys: &[String], all: bool, source: Option<&String>) -> Result<Outcome> {
    if let Some(source) = source {
        parse_source(source)?;
    }
    let mut store = context.archive_or_new()?;
    let door = context.door(&store)?;
    let statuses = if all || !keys.is_empty() { MISSING } else { OPEN };
    let page = Paging { limit: i64::MAX - 1, cursor: None };
    let statuses = statuses.iter().map(ToString::to_string).collect();
    let query = GapQuery { source: source.cloned(), statuses, page };
    let mut due = 0;
    {
        let _lock = Lock::take(&context.config.data_dir, "gaps retry")?;
        // Keys are given as they are shown.
        let selected = context.view(&store, &door).gaps(&query)?.gaps.into_iter();
        let selected: Vec<i64> = selected
            .filter(|gap| keys.is_empty() || keys.iter().any(|key| key == gap.key.as_str()))
            .map(|gap| gap.id)
            .collect();
        let mut writer = store.writer(now())?;
        for id in selected {
            writer.retry_gap(id)?;
            due += 1;
        }
        writer.commit()?;
    }
    if due == 0 && !keys.is_empty() {
        return Err(Error::new(format!("no gap with the key {}", keys.join(", ")))
            .hint("`annals gaps --all` lists the keys"));
    }
    let open = GapFilter { source: source.map(String::as_str), statuses: OPEN };
    let before = store.scoped(Scope::Owner).gaps(&open, 0, i64::MAX, now())?.len();
    let mut outcome = Outcome::Done;
    if before > 0 {
        let options = gaps_only(source);
        collect(context, &options, &mut Nobody)?;
        let reports = collect_live(context, &options)?;
        outcome = print_stops(context, &reports);
    }
    let left = store.scoped(Scope::Owner).gaps(&open, 0, i64::MAX, now())?.len();
    let recovered = before.saturating_sub(left);
    if context.json {
        context.output.json(&json!({"due": due, "recovered": recovered, "open": left}))?;
    } else {
        context.output.line(format!("{due} due, {recovered} recovered, {left} open"))?;
    }
    Ok(outcome)
}
