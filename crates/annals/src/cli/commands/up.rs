//! `annals up`: brings the archive up to date, shows what it has, and serves it.

use clap::Args;
use serde_json::{Map, Value};

use super::{serve, sources, sync};
use crate::cli::{Answer, Desk};
use annals_core::Result;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    serve: serve::Options,
    /// Stop after showing what there is
    #[arg(long)]
    no_serve: bool,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    let reports = sync::collect(desk, &sync::Options::default())?;
    let cards = sources::all(desk)?;
    let mut document = Map::new();
    if desk.json {
        document.insert("sources".into(), serde_json::to_value(&cards)?);
        document.insert("next_cursor".into(), Value::Null);
    } else {
        sources::print(desk, &cards)?;
        let captured: u64 = reports.iter().map(|report| report.totals.captured_bytes).sum();
        let archive = desk.config.home.join("annals.db");
        let kept = std::fs::metadata(&archive).map_or(0, |metadata| metadata.len());
        desk.output.line("")?;
        desk.output.line(format!(
            "{} captured now; the archive is {} in {}",
            crate::cli::ui::table::size(captured),
            crate::cli::ui::table::size(kept),
            archive.display()
        ))?;
        if !desk.quiet && cards.iter().any(|card| card.session_count > 0) {
            desk.output.flush()?;
            desk.output.note("next: annals sessions, annals show SESSION, annals usage");
        }
    }
    if !options.no_serve {
        let logs = desk.verbose;
        serve::start(desk, &options.serve, serve::Opening { logs, document })?;
    } else if desk.json {
        desk.output.json(&document)?;
    }
    Ok(Answer::Done)
}
