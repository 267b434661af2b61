//! `annals sync`: captures new and changed files, and reports what was found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::connector;
use crate::cli::settings::Declared;
use crate::cli::ui::measure::{Clock, cpu_ms, peak_memory_bytes};
use crate::cli::ui::progress::Bar;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, git, live, now};
use crate::collect::{
    HomeState, LiveReport, Lock, Progress, SourceReport, SyncOptions, is_imported, note_failure,
    note_success, sync,
};
use crate::view::format::{counted, number, size};
use crate::view::source_named;
use annals_core::{Result, Scope};
use annals_sources::{Source, of_programs, registry};

/// Folders of sessions whose repositories are looked at.
const MOST_FOLDERS: usize = 1_000;

#[derive(Args, Default)]
pub struct SyncArguments {
    /// Sources to sync [default: all]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    /// Capture only files that changed since then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Compare every file with the archive, even if it looks unchanged, and list all conversations of providers
    #[arg(long)]
    full: bool,
    /// Retry only what could not be fetched before (see `annals gaps`)
    #[arg(long)]
    gaps_only: bool,
    /// Contact no provider, even if it is connected
    #[arg(long)]
    no_live: bool,
    /// Also download files attached to conversations
    #[arg(long)]
    with_files: bool,
    /// Keep going at the provider's pace until everything is fetched, even if it takes days
    #[arg(long)]
    wait: bool,
    /// Run the browser without a window
    #[arg(long)]
    headless: bool,
    /// Skip the instructions, skills and rules of repositories that sessions ran in [env: ANNALS_PROJECTS=no]
    #[arg(long)]
    no_projects: bool,
    /// Then keep capturing what clients write, until stopped
    #[arg(long, conflicts_with_all = ["connector", "gaps_only"])]
    watch: bool,
    /// Assign the captured homes to this member
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    #[command(flatten)]
    connector: connector::ConnectorArguments,
}

pub fn run(context: &mut Context, options: &SyncArguments) -> Result<Outcome> {
    if options.connector.is_set() {
        let SyncArguments { full, gaps_only, ref member, .. } = *options;
        let arguments = connector::ConnectorRange { full, gaps_only, member: member.as_ref() };
        return connector::run(context, &options.connector, &arguments);
    }
    let clock = Clock::start();
    let mut bar = Bar::new(context.quiet);
    let reports = collect(context, options, &mut bar)?;
    let lively = collect_live(context, options)?;
    if !context.json {
        super::retain::apply_automatically(context)?;
    }
    if context.json {
        let sources: Vec<Value> = reports.iter().map(report_json).collect();
        let document = json!({
            "sources": sources,
            "live": lively.iter().map(live::report_json).collect::<Vec<_>>(),
            "wall_ms": clock.wall_ms(),
            "cpu_ms": cpu_ms(),
            "peak_memory_bytes": peak_memory_bytes(),
        });
        context.output.json(&document)?;
    } else {
        let is_named = !options.sources.is_empty();
        let (present, absent): (Vec<_>, Vec<_>) =
            reports.iter().partition(|report| is_named || !is_absent(report));
        print(context, &present, &absent)?;
        for report in &lively {
            live::print(context, report)?;
        }
        offer_repositories(context, &reports)?;
    }
    let outcome = print_stops(context, &lively);
    if options.watch {
        context.output.flush()?;
        return super::watch::follow(context);
    }
    Ok(outcome)
}

/// Names the repositories of new sessions that keep transcripts which were not imported.
fn offer_repositories(context: &mut Context, reports: &[SourceReport]) -> Result<()> {
    let is_new = reports.iter().any(|report| report.totals.new_files + report.totals.changed_files > 0);
    let Some(store) = context.archive()?.filter(|_| is_new && !context.quiet) else { return Ok(()) };
    let door = context.door(&store)?;
    let archive = store.scoped(Scope::Owner);
    let mut found: BTreeMap<PathBuf, String> = BTreeMap::new();
    for home in archive.instances()? {
        for folder in archive.session_folders(home.id)?.into_iter().take(MOST_FOLDERS) {
            found.extend(git::checkpoint_state(Path::new(&folder)));
        }
    }
    for (repository, state) in found {
        if !is_imported(&store, &repository, &state)? {
            let repository = door.show(&repository.to_string_lossy());
            context.output.note(format!("note: {repository} keeps transcripts of sessions"));
            context.output.note(format!("hint: annals import --git {repository}"));
        }
    }
    Ok(())
}

/// Fetches from the connected providers.
pub fn collect_live(context: &mut Context, options: &SyncArguments) -> Result<Vec<LiveReport>> {
    let &SyncArguments { gaps_only, with_files, headless, full, wait, .. } = options;
    let arguments = live::LiveArguments { gaps_only, with_files, headless, full, waits: wait };
    let sources = if options.no_live { Vec::new() } else { parse_sources(&options.sources)? };
    live::collect(context, &sources, arguments)
}

pub fn print_stops(context: &mut Context, reports: &[LiveReport]) -> Outcome {
    let mut answer = Outcome::Done;
    for (source, stop) in reports.iter().filter_map(|report| Some((report.source, report.stop.as_ref()?))) {
        let (_, message, hint) = live::describe_stop(stop, source);
        context.output.note(format!("stopped: {message}"));
        if !hint.is_empty() {
            context.output.note(format!("hint: {hint}"));
        }
        answer = Outcome::Stopped;
    }
    answer
}

/// The sync itself, for every verb that starts with one.
pub fn collect(
    context: &mut Context,
    options: &SyncArguments,
    progress: &mut dyn Progress,
) -> Result<Vec<SourceReport>> {
    let since = options.since.as_deref().map(|text| time::parse(text, now())).transpose()?;
    let sync_options = SyncOptions {
        sources: parse_sources(&options.sources)?,
        since,
        verify: options.full,
        repositories: !options.no_projects && context.config.reads_projects(),
        gaps_only: options.gaps_only,
        member: options.member.clone(),
        ..SyncOptions::default()
    };
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let environment = settings.environment();
    let synced = Lock::take(&config.data_dir, "sync").and_then(|lock| {
        let reports = sync(&sync_options, &environment, progress)?;
        drop(lock);
        Ok(reports)
    });
    let mut reports = match synced {
        Ok(reports) => reports,
        // While another process writes, that one captures.
        Err(error) if Lock::is_held(&config.data_dir) => return Err(error),
        Err(error) => {
            note_failure(&environment, &error);
            return Err(error);
        }
    };
    note_success(&environment);
    // File names may contain anything: they pass the door like all text.
    let has_warnings = reports.iter().any(|report| !report.warnings.is_empty());
    let archive = if has_warnings { context.archive()? } else { None };
    if let Some(store) = archive {
        let door = context.door(&store)?;
        for warning in reports.iter_mut().flat_map(|report| &mut report.warnings) {
            *warning = door.show(warning).to_string();
        }
    }
    print_warnings(context, &reports);
    Ok(reports)
}

fn parse_sources(names: &[String]) -> Result<Vec<&'static dyn Source>> {
    if names.is_empty() {
        // Connectors deliver their records when they run: there are no files to find.
        let outside = of_programs().manifest().source;
        return Ok(registry().iter().copied().filter(|source| source.manifest().source != outside).collect());
    }
    names.iter().map(|name| parse_source(name)).collect()
}

pub fn parse_source(name: &str) -> Result<&'static dyn Source> {
    source_named(name)
}

/// A run that only retries gaps.
pub fn gaps_only(source: Option<&String>) -> SyncArguments {
    SyncArguments {
        sources: source.into_iter().cloned().collect(),
        gaps_only: true,
        ..SyncArguments::default()
    }
}

fn print_warnings(context: &mut Context, reports: &[SourceReport]) {
    if context.quiet {
        return;
    }
    for report in reports {
        let shown = if context.verbose { report.warnings.len() } else { 5 };
        for warning in report.warnings.iter().take(shown) {
            context.output.note(format!("warning: {}: {warning}", report.source.manifest().source));
        }
        if report.warnings.len() > shown {
            let more = report.warnings.len() - shown;
            context
                .output
                .note(format!("warning: {} not shown; use --verbose", counted(more, "more warning")));
        }
    }
}

/// Prints a row for each source that is present, and the others in one line.
fn print(context: &mut Context, present: &[&SourceReport], absent: &[&SourceReport]) -> Result<()> {
    let columns = [
        Column::text("source"),
        Column::number("found").leave_out(2),
        Column::number("bytes").leave_out(3),
        Column::number("captured"),
        Column::number("new"),
        Column::number("changed"),
        Column::number("unchanged").leave_out(4),
        Column::number("gone").leave_out(1),
        Column::number("unknown"),
        Column::number("broken"),
    ];
    let rows: Vec<Vec<String>> = present.iter().map(|report| row(report)).collect();
    if !rows.is_empty() {
        context.output.table("", &columns, &rows)?;
    }
    for report in present {
        let totals = &report.totals;
        if totals.unaccounted_files > 0 {
            let count = totals.unaccounted_files;
            context.output.note(format!("note: {} of unknown kinds not opened", counted(count, "file")));
        }
        for (path, state) in &report.homes {
            if *state != HomeState::Available && !context.quiet {
                let manifest = report.source.manifest();
                context.output.note(format!(
                    "{}: {} ({})",
                    manifest.label,
                    path.display(),
                    state.status(false).0.name()
                ));
                context.output.note(format!("hint: {}", manifest.setup_hint));
            }
        }
    }
    if !absent.is_empty() && !context.quiet {
        let labels: Vec<_> = absent.iter().map(|report| report.source.manifest().label).collect();
        context.output.note(format!("Not found: {} (see `annals sources --all`)", labels.join(", ")));
    }
    Ok(())
}

/// Whether there is nothing of a source on this machine, and this sync changed nothing in the archive.
fn is_absent(report: &SourceReport) -> bool {
    let totals = &report.totals;
    report.homes.iter().all(|(_, state)| *state == HomeState::Missing)
        && totals.found_files + totals.new_documents + totals.gone_files + totals.failed_files == 0
        && report.warnings.is_empty()
}

fn row(report: &SourceReport) -> Vec<String> {
    let totals = &report.totals;
    vec![
        report.source.manifest().source.to_owned(),
        number(totals.found_files),
        size(totals.found_bytes),
        size(totals.captured_bytes),
        number(totals.new_files + totals.new_documents),
        number(totals.changed_files),
        number(totals.unchanged_files),
        number(totals.gone_files),
        number(totals.unknown_lines),
        number(totals.malformed_lines + totals.failed_files),
    ]
}

fn report_json(report: &SourceReport) -> Value {
    let totals = &report.totals;
    let homes: Vec<Value> = report
        .homes
        .iter()
        .map(|(path, state)| {
            let (status, reason) = state.status(false);
            json!({"path": path, "source_status": status, "reason": reason})
        })
        .collect();
    json!({
        "source": report.source.manifest().source,
        "provider_label": report.source.manifest().label,
        "homes": homes,
        "setup_hint": report.source.manifest().setup_hint,
        "found_files": totals.found_files,
        "found_bytes": totals.found_bytes,
        "captured_bytes": totals.captured_bytes,
        "new_files": totals.new_files,
        "changed_files": totals.changed_files,
        "unchanged_files": totals.unchanged_files,
        "healed_files": totals.healed_files,
        "put_off_files": totals.put_off_files,
        "failed_files": totals.failed_files,
        "gone_files": totals.gone_files,
        "documents": totals.documents,
        "new_documents": totals.new_documents,
        "lines": {
            "kept": totals.kept_lines,
            "unknown": totals.unknown_lines,
            "malformed": totals.malformed_lines,
            "skipped": totals.skipped_lines,
            "forgotten": totals.forgotten_lines,
        },
        "left_out_files": totals.left_out_files,
        "unaccounted_files": totals.unaccounted_files,
        "problems": report.warnings,
    })
}
