//! `annals up`: brings the archive up to date and shows what it has.

use clap::Args;
use serde_json::json;

use super::{Answer, Desk, sources, sync};
use crate::model::Result;

#[derive(Args)]
pub struct Options {}

pub fn run(desk: &mut Desk, _options: &Options) -> Result<Answer> {
    let reports = sync::collect(desk, &sync::Options::default())?;
    let cards = sources::all(desk)?;
    if desk.json {
        desk.output.json(&json!({"sources": cards, "next_cursor": null}))?;
        return Ok(Answer::Done);
    }
    sources::print(desk, &cards)?;
    let captured: u64 = reports.iter().map(|report| report.totals.captured_bytes).sum();
    let archive = desk.config.home.join("annals.db");
    let kept = std::fs::metadata(&archive).map_or(0, |metadata| metadata.len());
    desk.output.line("")?;
    desk.output.line(format!(
        "{} captured now; the archive is {} in {}",
        super::tables::size(captured),
        super::tables::size(kept),
        archive.display()
    ))?;
    if !desk.quiet && cards.iter().any(|card| card.session_count > 0) {
        desk.output.flush()?;
        desk.output.note("next: annals sessions, annals show SESSION");
    }
    Ok(Answer::Done)
}
