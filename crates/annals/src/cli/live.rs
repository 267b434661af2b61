//! Live collection from the command line: runs the connected sources, shows progress, and reports the result.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use super::settings::Declared;
use crate::collect::{
    BrowserSetup, LiveOptions, LiveProgress, LiveReport, Lock, Pace, Stop, collect_live, profile_of,
    time_left,
};
use crate::config::Config;
use crate::view::format::{counted, number, wait};
use annals_core::{Error, Result};
use annals_sources::{Source, registry};

/// Time between two progress lines.
const NEWS: Duration = Duration::from_secs(10);

/// What to fetch besides conversations, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveArguments {
    pub gaps_only: bool,
    pub with_files: bool,
    pub headless: bool,
    pub full: bool,
    pub waits: bool,
}

/// Fetches from each of these sources that is connected.
pub fn collect(
    context: &mut Context,
    sources: &[&'static dyn Source],
    arguments: LiveArguments,
) -> Result<Vec<LiveReport>> {
    let Some(store) = context.archive()? else { return Ok(Vec::new()) };
    let mut reports = Vec::new();
    for source in sources.iter().copied().filter(|source| source.live().is_some()) {
        if !store.is_connected(source.manifest().source)? {
            continue;
        }
        let config = context.config.clone();
        let _lock = Lock::take(&config.data_dir, "sync")?;
        let options = match live_options(&config, source, arguments) {
            Ok(options) => options,
            Err(error) => {
                // Still report what was read from files.
                let (name, label) = (source.manifest().source, source.manifest().label);
                let stop = Some(Stop::Failed(error));
                reports.push(LiveReport { source: name, label, stop, ..LiveReport::default() });
                continue;
            }
        };
        let shown = !context.quiet && std::io::stderr().is_terminal();
        let mut last: Option<Instant> = None;
        let mut show_progress = |progress: LiveProgress| {
            if shown && last.is_none_or(|last| last.elapsed() >= NEWS) {
                last = Some(Instant::now());
                let (done, total) = (number(progress.done), number(progress.total));
                let left = wait(progress.time_left);
                let name = source.manifest().label;
                context.output.note(format!("{name}: {done} of {total} conversations, about {left} left"));
            }
        };
        let mut report = collect_live(&options, &Declared(&config).environment(), &mut show_progress)?;
        // Names from providers are masked like any other text.
        let door = context.door(&store)?;
        for warning in &mut report.warnings {
            *warning = door.show(warning).to_string();
        }
        reports.push(report);
    }
    Ok(reports)
}

pub fn live_options(
    config: &Config,
    source: &'static dyn Source,
    arguments: LiveArguments,
) -> Result<LiveOptions> {
    let browser = config.browser();
    let program = browser.program.ok_or_else(|| {
        Error::new("no Chromium or Chrome found")
            .hint("install one, or set ANNALS_BROWSER=/path/to/chromium or `program` under [browser] in config.toml")
    })?;
    let setup = BrowserSetup {
        program,
        profile: profile_of(&config.data_dir, source.manifest().source),
        visible: !arguments.headless && !browser.headless,
        arguments: browser.arguments,
    };
    let pace = Pace { second: config.second() };
    let LiveArguments { gaps_only, with_files, full, waits, headless: _ } = arguments;
    Ok(LiveOptions { source, setup, pace, gaps_only, with_files, full, waits })
}

/// How long fetching the missing conversations takes, for each connected source.
pub fn print_time_left(context: &mut Context, only: Option<&str>) -> Result<()> {
    let Some(store) = context.archive()? else { return Ok(()) };
    let config = context.config.clone();
    let settings = Declared(&config);
    for source in registry().iter().copied().filter(|source| source.live().is_some()) {
        let manifest = source.manifest();
        let is_selected = only.is_none_or(|only| only == manifest.source);
        if !is_selected || !store.is_connected(manifest.source)? {
            continue;
        }
        let pace = Pace { second: config.second() };
        let left = time_left(source, &settings.environment(), pace)?;
        if let Some((open, left)) = left {
            let (label, open, left) = (manifest.label, counted(open, "conversation"), wait(left));
            context
                .output
                .note(format!("{label}: {open} missing, about {left} at the provider's rate limit"));
        }
    }
    Ok(())
}

pub fn print(context: &mut Context, report: &LiveReport) -> Result<()> {
    let files = if report.files > 0 { format!(", {}", counted(report.files, "file")) } else { String::new() };
    context.output.line(format!(
        "{} live: {} fetched ({} recovered), {} unchanged, {}{files}, {}, {}",
        report.label,
        counted(report.fetched, "conversation"),
        number(report.recovered),
        number(report.unchanged),
        counted(report.documents, "document"),
        counted(report.new_gaps, "new gap"),
        counted(report.requests, "request"),
    ))?;
    if context.quiet {
        return Ok(());
    }
    for warning in &report.warnings {
        context.output.note(format!("warning: {}: {warning}", report.source));
    }
    if report.gaps_open > 0 {
        context.output.note(format!(
            "{} still missing, about {} at the provider's rate limit; `annals sync {}` continues, `annals gaps` lists them",
            counted(report.gaps_open, "conversation"),
            wait(report.time_left),
            report.source
        ));
    }
    Ok(())
}

/// What stopped a run, and what to do about it.
pub fn describe_stop(stop: &Stop, source: &str) -> (&'static str, String, String) {
    match stop {
        Stop::Manual { what, link } => (
            "manual_action",
            what.clone(),
            format!("run `annals connect {source}` to open {link}, then `annals sync {source}` to continue"),
        ),
        Stop::BrowserClosed => (
            "browser_closed",
            "the browser was closed".into(),
            format!("everything fetched so far is kept; `annals sync {source}` continues"),
        ),
        Stop::Unreachable => (
            "unreachable",
            "cannot reach the provider".into(),
            format!(
                "everything fetched so far is kept; `annals sync {source}` continues once the network is back"
            ),
        ),
        Stop::Failed(error) => ("failed", error.what.clone(), error.hint.clone().unwrap_or_default()),
    }
}

pub fn stop_json(stop: &Stop, source: &str) -> Value {
    let (kind, message, hint) = describe_stop(stop, source);
    let link = match stop {
        Stop::Manual { link, .. } => Some(link.as_str()),
        Stop::BrowserClosed | Stop::Unreachable | Stop::Failed(_) => None,
    };
    json!({"kind": kind, "message": message, "hint": hint, "link": link})
}

pub fn report_json(report: &LiveReport) -> Value {
    json!({
        "source": report.source,
        "fetched": report.fetched,
        "recovered": report.recovered,
        "unchanged": report.unchanged,
        "documents": report.documents,
        "files": report.files,
        "new_gaps": report.new_gaps,
        "gaps_open": report.gaps_open,
        "captured_bytes": report.captured_bytes,
        "requests": report.requests,
        "seconds_left": report.time_left.as_secs(),
        "problems": report.warnings,
        "interaction": report.stop.as_ref().map(|stop| stop_json(stop, report.source)),
    })
}
