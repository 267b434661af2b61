//! `annals import`: imports exports and traces, and reports what each path was recognised as.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::settings::Declared;
use crate::cli::ui::measure::{Clock, cpu_ms, peak_memory_bytes};
use crate::cli::ui::progress::Bar;
use crate::cli::{Context, Outcome, git};
use crate::collect::{
    ContainerReport, Environment, ImportOptions, ImportedArchive, Lock, MemberReport, RepositoryImport,
    archive_at, import, import_archive, import_repository, importing,
};
use crate::view::Door;
use crate::view::format::{counted, number, size};
use annals_core::{Error, Result};
use annals_sources::git::{AUTHORSHIP_NOTES, transcripts_in};
use annals_sources::{IntakeOptions, by_name};

/// Members of one kind that are listed by name without --verbose.
const LISTED: usize = 3;

#[derive(Args)]
#[command(
    after_help = "Nothing is imported twice: a newer export adds what is new, an older one only what was missing. \
                  Nothing is removed because an export does not contain it."
)]
pub struct ImportArguments {
    /// Exports and traces: files, directories or zip archives; or the `annals.db` of another archive
    #[arg(value_name = "PATH", required_unless_present = "git")]
    paths: Vec<PathBuf>,
    /// Import the transcripts that Entire keeps in this git repository
    #[arg(long, value_name = "REPO", conflicts_with_all = ["paths", "with_files"])]
    git: Option<PathBuf>,
    /// Also import attached images, audio and other files
    #[arg(long)]
    with_files: bool,
    /// Assign the imported data to this member
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
}

pub fn run(context: &mut Context, options: &ImportArguments) -> Result<Outcome> {
    let clock = Clock::start();
    let (archives, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        options.paths.iter().cloned().partition(|path| archive_at(path).is_some());
    let import_options = ImportOptions {
        paths,
        intake_options: IntakeOptions { with_files: options.with_files },
        member: options.member.clone(),
        sources: Vec::new(),
    };
    let _lock = Lock::take(&context.config.data_dir, "import")?;
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let environment = settings.environment();
    let mut bar = Bar::new(context.quiet);
    let mut merged = Vec::new();
    for folder in archives.iter().filter_map(|path| archive_at(path)) {
        merged.push(import_archive(&folder, options.member.as_deref(), &environment, &mut bar)?);
    }
    let reports = match &options.git {
        Some(repository) => vec![import_git(repository, options, &environment, &mut bar)?],
        None if import_options.paths.is_empty() => Vec::new(),
        None => import(&import_options, &environment, &mut bar)?,
    };
    let store = context.archive_or_new()?;
    let door = context.door(&store)?;
    if context.json {
        let containers = merged.iter().map(|archive| archive_json(&door, archive));
        let containers: Vec<Value> =
            containers.chain(reports.iter().map(|report| report_json(&door, report))).collect();
        context.output.json(&json!({
            "imports": containers,
            "wall_ms": clock.wall_ms(),
            "cpu_ms": cpu_ms(),
            "peak_memory_bytes": peak_memory_bytes(),
            "next_cursor": null,
        }))?;
    } else {
        for archive in &merged {
            print_archive(context, &door, archive)?;
        }
        for report in &reports {
            print(context, &door, report)?;
        }
    }
    let unknown = merged.is_empty() && reports.iter().all(|report| !report.is_recognised());
    if let (true, false, Some(repository)) = (unknown, context.quiet, &options.git) {
        let repository = door.show(&repository.to_string_lossy());
        context.output.note(format!("no transcripts, notes or trailers of assistants in {repository}"));
    } else if unknown && !context.quiet {
        let known: Vec<&str> = importing().map(|source| source.manifest().label).collect();
        let (last, others) = known.split_last().map_or(("", [].as_slice()), |(last, others)| (*last, others));
        let known = format!("{} and {last}", others.join(", "));
        context.output.note(format!("nothing recognised; annals imports data from {known}"));
        for source in importing() {
            context.output.note(format!("hint: {}", source.manifest().setup_hint));
        }
    }
    Ok(if unknown { Outcome::Nothing } else { Outcome::Done })
}

/// Imports transcripts from a repository, and reports the notes and trailers that `annals blame` reads there.
fn import_git(
    repository: &Path,
    options: &ImportArguments,
    environment: &Environment<'_>,
    bar: &mut Bar,
) -> Result<ContainerReport> {
    let folder = repository
        .canonicalize()
        .map_err(|error| Error::new(format!("cannot read {}: {error}", repository.display())))?;
    let top = git::top_of(&folder).ok_or_else(|| {
        Error::new(format!("not in a git repository: {}", repository.display()))
            .hint("--git needs git and a repository")
    })?;
    let mut transcripts = Vec::new();
    for reference in git::checkpoint_refs(&top) {
        transcripts.extend(transcripts_in(&git::tree_of(&top, &reference)));
    }
    let blobs = git::Blobs { folder: &top };
    let member = options.member.as_deref();
    let state = git::checkpoint_state(&top).map(|(_, state)| state);
    let import = RepositoryImport { path: &top, state, transcripts, blobs: &blobs, member };
    let mut report = import_repository(&import, environment, bar)?;
    let notes = git::notes_of(&top, AUTHORSHIP_NOTES).len();
    let trailers = git::commits_with_trailers(&top);
    for (name, count, unit) in [(AUTHORSHIP_NOTES, notes, "note"), ("trailers", trailers, "commit")] {
        if count > 0 {
            report.members.push(MemberReport {
                name: name.to_owned(),
                bytes: 0,
                verdict: "evidence",
                source: None,
                what: counted(count, unit),
                elements: count as u64,
                aside: 0,
            });
        }
    }
    Ok(report)
}

fn print_archive(context: &mut Context, door: &Door, archive: &ImportedArchive) -> Result<()> {
    let received = &archive.received;
    context.output.line(format!("{} (archive)", door.show(&archive.path.to_string_lossy())))?;
    let counts = [
        (received.new_files, "new"),
        (received.changed_files, "changed"),
        (received.unchanged_files, "unchanged"),
    ];
    let counts = counts.map(|(count, word)| format!("{} {word}", number(count)));
    let homes = counted(archive.homes, "home");
    context.output.line(format!(
        "  {homes}, files: {} ({} added)",
        counts.join(", "),
        size(archive.bytes)
    ))?;
    if archive.arrangements.0 > 0 {
        let (all, new) = archive.arrangements;
        context.output.line(format!("  {}, {} new", counted(all, "arrangement"), number(new)))?;
    }
    if context.quiet {
        return Ok(());
    }
    if received.forgotten_files > 0 {
        let files = counted(received.forgotten_files, "file");
        context.output.note(format!("{files} not imported: they were forgotten here"));
    }
    for path in archive.left_out.iter().take(10) {
        context.output.note(format!("warning: {}: damaged in that archive, left out", door.show(path)));
    }
    for (path, cause) in received.damaged.iter().take(10) {
        context.output.note(format!("warning: {}: {}", door.show(path), door.show(cause)));
    }
    Ok(())
}

fn archive_json(door: &Door, archive: &ImportedArchive) -> Value {
    let received = &archive.received;
    json!({
        "path": door.show(&archive.path.to_string_lossy()),
        "kind": "archive",
        "recognised": true,
        "homes": archive.homes,
        "new_files": received.new_files,
        "changed_files": received.changed_files,
        "unchanged_files": received.unchanged_files,
        "forgotten_files": received.forgotten_files,
        "damaged_files": archive.left_out.len(),
        "captured_bytes": archive.bytes,
        "arrangements": archive.arrangements.0,
        "new_arrangements": archive.arrangements.1,
    })
}

fn print(context: &mut Context, door: &Door, report: &ContainerReport) -> Result<()> {
    let shown = |text: &str| door.show(text).to_string();
    let path = shown(&report.path.to_string_lossy());
    let mut lines = vec![format!("{path} ({})", if report.failed { "not read" } else { report.kind })];
    for (source, totals) in &report.totals {
        let label = by_name(source).map_or(*source, |source| source.manifest().label);
        let counts = [(totals.new, "new"), (totals.changed, "changed"), (totals.unchanged, "unchanged")];
        let counts = counts.map(|(count, word)| format!("{} {word}", number(count)));
        lines.push(format!("  {label}: {} ({} captured)", counts.join(", "), size(totals.captured_bytes)));
    }
    let mut kinds: Vec<(&str, &str, Vec<&MemberReport>)> = Vec::new();
    for member in &report.members {
        match kinds.iter_mut().find(|(verdict, what, _)| *verdict == member.verdict && *what == member.what) {
            Some((_, _, members)) => members.push(member),
            None => kinds.push((member.verdict, &member.what, vec![member])),
        }
    }
    for (verdict, what, members) in kinds {
        let description = match verdict {
            "taken" => format!("imported as {what}"),
            "opened" => "opened".to_owned(),
            "evidence" => format!("read by `annals blame` from the repository, {what}"),
            "left_out" => format!("skipped, {what}"),
            "refused" => format!("refused, {what}"),
            _ => "not recognised, skipped".to_owned(),
        };
        let count = if context.verbose { members.len() } else { LISTED };
        let names: Vec<String> = members.iter().take(count).map(|member| shown(&member.name)).collect();
        let more = members.len().saturating_sub(count);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("  {description}: {}{more}", names.join(", ")));
    }
    for line in lines {
        context.output.line(line)?;
    }
    if context.quiet {
        return Ok(());
    }
    let listed = if context.verbose { report.warnings.len() } else { 10 };
    for warning in report.warnings.iter().take(listed) {
        let warning = door.show(warning);
        context.output.note(format!("warning: {warning}"));
    }
    if report.warnings.len() > listed {
        let more = counted(report.warnings.len() - listed, "more warning");
        context.output.note(format!("warning: {more} not shown; use --verbose"));
    }
    if report.failed {
        context.output.note(
            "hint: check that the path exists, is readable and is a complete file, directory or zip archive",
        );
    }
    Ok(())
}

fn report_json(door: &Door, report: &ContainerReport) -> Value {
    let shown = |text: &str| door.show(text);
    let members: Vec<Value> = report
        .members
        .iter()
        .map(|member| {
            json!({
                "name": shown(&member.name),
                "bytes": member.bytes,
                "verdict": member.verdict,
                "source": member.source,
                "what": member.what,
                "elements": member.elements,
                "kept_aside": member.aside,
            })
        })
        .collect();
    let sources: Vec<Value> = report
        .totals
        .iter()
        .map(|(source, totals)| {
            json!({
                "source": source,
                "new": totals.new,
                "changed": totals.changed,
                "unchanged": totals.unchanged,
                "kept_aside": totals.aside,
                "captured_bytes": totals.captured_bytes,
            })
        })
        .collect();
    let warnings: Vec<_> = report.warnings.iter().map(|warning| shown(warning)).collect();
    json!({
        "path": shown(&report.path.to_string_lossy()),
        "kind": report.kind,
        "recognised": report.is_recognised(),
        "sources": sources,
        "members": members,
        "problems": warnings,
    })
}
