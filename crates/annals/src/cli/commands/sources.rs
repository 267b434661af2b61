//! `annals sources`: the status of each source, or how to set it up.

use clap::Args;
use serde_json::json;

use crate::cli::settings::Declared;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::collect::{survey_homes, unread_assistants};
use crate::config::Config;
use crate::view::format::{counted, number, size};
use crate::view::{DiskState, Door, FailureView, SourceCard, archive_failure, cards_without_archive};
use annals_core::{Result, SourceStatus};
use annals_sources::registry;
use annals_store::remembered_failure;

#[derive(Args)]
pub struct SourcesArguments {
    /// List every captured file with its lines: kept, unknown, malformed and skipped
    #[arg(long)]
    files: bool,
    /// Also list sources that were not found on this machine, with how to set them up
    #[arg(long, short)]
    all: bool,
    /// List assistants on this machine that annals cannot read yet, with their size; opens no file
    #[arg(long, conflicts_with_all = ["files", "all"])]
    discover: bool,
}

pub fn run(context: &mut Context, options: &SourcesArguments) -> Result<Outcome> {
    if options.files {
        return files(context);
    }
    if options.discover {
        return discover(context);
    }
    let cards = all(context)?;
    if context.json {
        let failures = failures(context)?;
        context.output.json(&json!({"sources": cards, "failures": failures, "next_cursor": null}))?;
    } else {
        print(context, &cards, options.all)?;
        print_failures(context)?;
    }
    Ok(Outcome::Done)
}

/// A card for each registered source, whether it has data or not.
pub fn all(context: &Context) -> Result<Vec<SourceCard>> {
    let disk = on_disk(&context.config);
    match context.archive()? {
        Some(store) => context.view(&store, &context.door(&store)?).with_disk(&disk).cards(),
        None => Ok(cards_without_archive(&Door::revealing(), &disk)),
    }
}

/// What could not be captured when a sync or a server last tried.
fn failures(context: &Context) -> Result<Vec<FailureView>> {
    let of_archive = remembered_failure(&context.config.data_dir);
    // An archive that cannot be opened is what fails.
    match context.archive() {
        Ok(Some(store)) => context.view(&store, &context.door(&store)?).failures(of_archive.as_ref()),
        Ok(None) | Err(_) => {
            let door = Door::masking_alone();
            Ok(of_archive.iter().map(|failure| archive_failure(&door, failure)).collect())
        }
    }
}

pub fn print_failures(context: &mut Context) -> Result<()> {
    for failure in failures(context)? {
        context.output.line(format!("warning: {}", failure.sentence()))?;
        if let Some(hint) = &failure.hint {
            context.output.line(format!("  hint: {hint}"))?;
        }
    }
    Ok(())
}

/// The current state of the homes of all sources.
pub fn on_disk(config: &Config) -> Vec<DiskState> {
    let mut disk = Vec::new();
    for source in registry() {
        for (home, state) in survey_homes(*source, &Declared(config)) {
            let (status, reason) = state.status(false);
            let path = home.root.to_string_lossy().into_owned();
            disk.push((source.manifest().source, path, status, reason.to_owned()));
        }
    }
    disk
}

pub fn print(context: &mut Context, cards: &[SourceCard], all: bool) -> Result<()> {
    let (shown, folded) = if all { (cards.iter().collect(), Vec::new()) } else { SourceCard::fold(cards) };
    for card in shown {
        let name = context.output.strong(card.provider_label);
        let path = card.source_path.as_ref().map_or("", |path| path.as_str());
        context.output.line(format!("{name}  {}  {path}", card.source_status).trim_end())?;
        if card.session_count > 0 {
            let last = time::local_text(card.last_activity_at.as_ref());
            context.output.line(format!(
                "  {}, {}, last active {last}",
                counted(card.session_count, "session"),
                counted(card.message_count, "message")
            ))?;
            let bytes = size(card.bytes);
            context.output.line(format!("  {bytes} archived from {}", counted(card.files, "file")))?;
        }
        if !card.reason.as_str().is_empty() {
            context.output.line(format!("  {}", card.reason))?;
        }
        if let (Some(days), 1..) = (card.retention_days, card.deleted_soon) {
            context.output.line(format!(
                "  {} about to be deleted by the client (after {days} days), kept in the archive",
                counted(card.deleted_soon, "session")
            ))?;
        }
        if card.gaps_open > 0 {
            let gaps = counted(card.gaps_open, "gap");
            context.output.line(format!("  {gaps}: could not be fetched yet (see `annals gaps`)"))?;
        }
        if card.source_status != SourceStatus::Available {
            context.output.line(format!("  hint: {}", card.setup_hint))?;
        }
    }
    if !folded.is_empty() {
        let labels: Vec<&str> = folded.iter().map(|card| card.provider_label).collect();
        context.output.line(format!("Not found: {} (see `annals sources --all`)", labels.join(", ")))?;
    }
    Ok(())
}

/// Assistants whose homes exist and that no source reads.
fn discover(context: &mut Context) -> Result<Outcome> {
    let found = unread_assistants(&Declared(&context.config));
    let door = Door::masking_alone();
    if context.json {
        let assistants: Vec<_> = found
            .iter()
            .map(|one| {
                let path = door.show(&one.path.to_string_lossy());
                json!({"label": one.label, "path": path, "files": one.files, "bytes": one.bytes})
            })
            .collect();
        context.output.json(&json!({"assistants": assistants, "next_cursor": null}))?;
    } else {
        for one in &found {
            let name = context.output.strong(one.label);
            let (bytes, files) = (size(one.bytes), counted(one.files, "file"));
            let path = door.show(&one.path.to_string_lossy());
            context.output.line(format!("{name}  {bytes} in {files}  {path}"))?;
        }
        if !found.is_empty() {
            context.output.note("note: annals cannot read these yet; none of their files was opened");
        }
    }
    Ok(if found.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn files(context: &mut Context) -> Result<Outcome> {
    let Some(store) = context.archive()? else { return Ok(Outcome::Nothing) };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let accounts = view.accounts(None)?;
    if context.json {
        context.output.json(&json!({"files": accounts, "next_cursor": null}))?;
        return Ok(Outcome::Done);
    }
    let columns = [
        Column::text("file").cut_front(20),
        Column::number("versions").leave_out(4),
        Column::number("bytes").leave_out(3),
        Column::number("lines"),
        Column::number("kept").leave_out(1),
        Column::number("unknown"),
        Column::number("malformed"),
        Column::number("skipped").leave_out(2),
    ];
    let rows: Vec<Vec<String>> = accounts
        .iter()
        .map(|file| {
            vec![
                file.path.to_string(),
                number(file.versions),
                number(file.content_bytes),
                number(file.lines),
                number(file.kept.lines),
                number(file.unknown.lines),
                number(file.malformed.lines),
                number(file.skipped.lines),
            ]
        })
        .collect();
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}
