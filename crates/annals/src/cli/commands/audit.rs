//! `annals audit`: found = kept + forgotten + left out + unknown + malformed + gaps, for each source.

use clap::Args;
use serde_json::json;

use crate::cli::settings::Declared;
use crate::cli::ui::table::Column;
use crate::cli::{Context, Outcome};
use crate::collect::{HomeState, survey_home, survey_homes};
use crate::view::format::{counted, local_text, number, plural, size};
use crate::view::{Audit, ForgettingAudit, IndexAudit, OnDisk, View};
use annals_core::Result;
use annals_sources::{Source, of_programs};

#[derive(Args)]
pub struct AuditArguments {
    /// Exit with code 1 if a source is below this percentage
    #[arg(long, value_name = "P")]
    fail_under: Option<f64>,

    /// Print an account of each source, also of those of which nothing was found
    #[arg(short, long)]
    all: bool,
}

pub fn run(context: &mut Context, options: &AuditArguments) -> Result<Outcome> {
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let mut audits = Vec::new();
    for source in view.used_sources()? {
        let disk = on_disk(context, &view, source)?;
        audits.push(view.audit(source, &disk)?);
    }
    let (forgotten, index) = (view.forgettings()?, view.index_audit()?);
    if context.json {
        context
            .output
            .json(&json!({"sources": audits, "forgotten": forgotten, "index": index, "next_cursor": null}))?;
    } else {
        let is_absent = |audit: &&Audit| audit.percent.is_none() && audit.files.gaps == 0;
        let (absent, present): (Vec<&Audit>, Vec<&Audit>) = audits.iter().partition(is_absent);
        if options.all || present.is_empty() {
            print(context, &audits.iter().collect::<Vec<_>>())?;
        } else {
            print(context, &present)?;
            print_absent(context, &absent)?;
        }
        print_forgotten(context, &forgotten)?;
        print_index(context, &index)?;
    }
    let below = options
        .fail_under
        .is_some_and(|bar| audits.iter().any(|audit| audit.percent.is_some_and(|percent| percent < bar)));
    Ok(if below { Outcome::Nothing } else { Outcome::Done })
}

fn on_disk(context: &Context, view: &View<'_>, source: &'static dyn Source) -> Result<OnDisk> {
    // Records of connectors exist only in the archive.
    if source.manifest().source == of_programs().manifest().source {
        return view.captured(source);
    }
    let mut disk = OnDisk::default();
    for (home, state) in survey_homes(source, &Declared(&context.config)) {
        if state != HomeState::Available {
            continue;
        }
        let survey = survey_home(source, &home)?;
        let left_out = survey.all_left_out(source.manifest()).into_iter();
        disk.left_out
            .extend(left_out.map(|left| (left.files, left.bytes, left.store.into(), left.why.into())));
        disk.found
            .extend(survey.found.into_iter().map(|found| (found.path, found.size, found.rule.store.into())));
        disk.unaccounted.extend(survey.unaccounted);
    }
    Ok(disk)
}

fn print_forgotten(context: &mut Context, forgotten: &[ForgettingAudit]) -> Result<()> {
    if forgotten.is_empty() {
        return Ok(());
    }
    let title = context.output.strong("Forgotten");
    context.output.line(title)?;
    for one in forgotten {
        let state = match (&one.expires_at, one.is_complete) {
            (Some(until), _) => format!(", in the trash until {}", local_text(Some(until))),
            (None, true) => String::new(),
            (None, false) => ", not complete: run `annals sync`".to_owned(),
        };
        let account = &one.account;
        let count = |name: &str, noun: &str| counted(account[name].as_i64().unwrap_or(0), noun);
        context.output.line(format!(
            "  {}  {}: {}, {}, {}{state}",
            local_text(Some(&one.forgotten_at)),
            one.reason,
            count("sessions", "session"),
            size(account["bytes"].as_u64().unwrap_or(0)),
            plural(one.hashes, "hash keeps it away", "hashes keep it away"),
        ))?;
    }
    Ok(())
}

fn print_index(context: &mut Context, index: &IndexAudit) -> Result<()> {
    let title = context.output.strong("Text index");
    let bytes = size(index.bytes);
    context.output.line(format!("{title}  {}, {bytes}", counted(index.passages, "passage")))?;
    for (word, list) in [("indexed", index.indexed), ("left out", index.left_out)] {
        for what in list {
            context.output.line(format!("  {word}  {what}"))?;
        }
    }
    Ok(())
}

fn print_absent(context: &mut Context, audits: &[&Audit]) -> Result<()> {
    let labels: Vec<&str> = audits.iter().map(|audit| audit.provider_label).collect();
    if labels.is_empty() {
        return Ok(());
    }
    context.output.line(format!("Not found: {} (see `annals audit --all`)", labels.join(", ")))
}

fn print(context: &mut Context, audits: &[&Audit]) -> Result<()> {
    for audit in audits {
        let title = context.output.strong(audit.provider_label);
        let accounted = match audit.percent {
            Some(percent) => format!("{percent} % accounted for"),
            None => "nothing found".to_owned(),
        };
        context.output.line(format!("{title}  {accounted}"))?;
        let columns = [
            Column::text(""),
            Column::number("found"),
            Column::number("kept"),
            Column::number("forgotten").leave_out(2),
            Column::number("left out").leave_out(1),
            Column::number("unaccounted"),
            Column::number("gaps"),
        ];
        let (files, bytes) = (audit.files, audit.bytes);
        let count = |value: u64| number(value);
        let row = |name: &str, values: [u64; 6], form: &dyn Fn(u64) -> String| {
            std::iter::once(name.to_owned()).chain(values.map(form)).collect::<Vec<_>>()
        };
        let rows = [
            row(
                "files",
                [files.found, files.kept, files.forgotten, files.left_out, files.unaccounted, files.gaps],
                &count,
            ),
            row(
                "bytes",
                [bytes.found, bytes.kept, bytes.forgotten, bytes.left_out, bytes.unaccounted, bytes.gaps],
                &size,
            ),
        ];
        context.output.table("  ", &columns, &rows)?;
        let lines = &audit.lines;
        context.output.line(format!(
            "  lines  {} found = {} kept + {} unknown + {} malformed + {} skipped + {} forgotten",
            number(lines.found),
            number(lines.kept.lines),
            number(lines.unknown.lines),
            number(lines.malformed.lines),
            number(lines.skipped.lines),
            number(lines.forgotten.lines)
        ))?;
        for store in &audit.stores {
            let why =
                if store.reason.as_str().is_empty() { String::new() } else { format!(": {}", store.reason) };
            let treatment = store.treatment.replace('_', " ");
            context.output.line(format!(
                "  {treatment}  {} ({}, {}){why}",
                store.store,
                counted(store.files, "file"),
                size(store.bytes)
            ))?;
        }
        for file in &audit.unaccounted {
            context.output.line(format!("  unaccounted  {} ({})", file.path, size(file.bytes)))?;
        }
        for file in &audit.unknown_files {
            context.output.line(format!("  unknown file  {} ({})", file.path, size(file.bytes)))?;
        }
        for kind in &audit.unknown {
            let version =
                kind.client_version.as_ref().map(|version| format!(" since {version}")).unwrap_or_default();
            context.output.line(format!(
                "  unknown  {} ({}{version})",
                kind.kind,
                counted(kind.lines, "line")
            ))?;
        }
        for broken in audit.malformed.iter().take(10) {
            context
                .output
                .line(format!("  malformed  {} at byte {}: {}", broken.path, broken.offset, broken.what))?;
        }
        for line in &audit.tables {
            let state = if line.read { "read" } else { "not read" };
            context.output.line(format!(
                "  table  {}/{} ({}, {state}): {}",
                line.database,
                line.table,
                counted(line.rows, "row"),
                line.reason
            ))?;
        }
        for stream in &audit.streams {
            for field in stream
                .undeclared
                .iter()
                .map(|name| format!("undeclared {name}"))
                .chain(stream.other_type.iter().cloned())
            {
                context.output.line(format!("  field  {}: {field}", stream.stream))?;
            }
        }
        for line in &audit.surface {
            let state = line.surface.state.label();
            let reason = if line.surface.reason.is_empty() {
                String::new()
            } else {
                format!(": {}", line.surface.reason)
            };
            context.output.line(format!(
                "  {state}  {} ({}){reason}",
                line.surface.item,
                number(line.count)
            ))?;
        }
    }
    Ok(())
}
