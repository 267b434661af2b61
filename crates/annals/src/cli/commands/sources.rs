//! `annals sources`: what each source has, or how to set it up.

use clap::Args;
use serde_json::json;

use super::sync::state_words;
use crate::cli::settings::Declared;
use crate::cli::ui::table::{counted, number, size, table};
use crate::cli::ui::time;
use crate::cli::{Answer, Desk, now};
use crate::collect::survey_homes;
use crate::config::Config;
use crate::view::{DiskState, Door, SourceCard};
use crate::view::{accounts, cards};
use annals_core::Result;
use annals_sources::registry;

#[derive(Args)]
pub struct Options {
    /// Account for every captured file: lines kept, unknown, malformed and skipped
    #[arg(long)]
    files: bool,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    if options.files {
        return files(desk);
    }
    let cards = all(desk)?;
    if desk.json {
        desk.output.json(&json!({"sources": cards, "next_cursor": null}))?;
    } else {
        print(desk, &cards)?;
    }
    Ok(Answer::Done)
}

/// A card for each source of the registry, whether it has data or not.
pub fn all(desk: &Desk) -> Result<Vec<SourceCard>> {
    let store = desk.archive()?;
    let door = match &store {
        Some(store) => desk.door(store)?,
        None => Door::revealing(&desk.scope),
    };
    cards(&desk.scope, store.as_ref(), &door, &on_disk(&desk.config), now())
}

/// The homes of all sources as they are now.
pub fn on_disk(config: &Config) -> Vec<DiskState> {
    let mut disk = Vec::new();
    for source in registry() {
        for (home, state) in survey_homes(*source, &Declared(config)) {
            let (status, reason) = state_words(&state);
            let path = home.root.to_string_lossy().into_owned();
            disk.push((source.manifest().source, path, status.to_owned(), reason));
        }
    }
    disk
}

pub fn print(desk: &mut Desk, cards: &[SourceCard]) -> Result<()> {
    for card in cards {
        let name = desk.output.strong(card.provider_label);
        let path = card.source_path.as_ref().map_or("", |path| path.as_str());
        desk.output.line(format!("{name}  {}  {path}", card.source_status).trim_end())?;
        if card.session_count > 0 {
            let last = time::local_text(card.last_activity_at.as_ref());
            desk.output.line(format!(
                "  {}, {}, last {last}",
                counted(card.session_count, "session"),
                counted(card.message_count, "message")
            ))?;
            let bytes = size(u64::try_from(card.bytes).unwrap_or(0));
            desk.output.line(format!("  {bytes} safe in {}", counted(card.files, "file")))?;
        }
        if !card.reason.as_str().is_empty() {
            desk.output.line(format!("  {}", card.reason))?;
        }
        if let (Some(days), 1..) = (card.retention_days, card.deleted_soon) {
            desk.output.line(format!(
                "  {} that the client deletes within a week (it keeps {days} days), safe here",
                counted(card.deleted_soon, "session")
            ))?;
        }
        if card.gaps_open > 0 {
            let gaps = counted(card.gaps_open, "gap");
            desk.output.line(format!("  {gaps}: what could not be had yet (`annals gaps` lists it)"))?;
        }
        if card.source_status != "available" {
            desk.output.line(format!("  hint: {}", card.setup_hint))?;
        }
    }
    Ok(())
}

fn files(desk: &mut Desk) -> Result<Answer> {
    let Some(store) = desk.archive()? else { return Ok(Answer::Nothing) };
    let door = desk.door(&store)?;
    let accounts = accounts(&desk.scope, &store, &door, None)?;
    if desk.json {
        desk.output.json(&json!({"files": accounts, "next_cursor": null}))?;
        return Ok(Answer::Done);
    }
    let head = ["file", "#versions", "#bytes", "#lines", "#kept", "#unknown", "#malformed", "#skipped"];
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
    for line in table(&head, &rows) {
        desk.output.line(line)?;
    }
    Ok(Answer::Done)
}
