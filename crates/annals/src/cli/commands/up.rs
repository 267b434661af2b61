//! `annals up`: syncs, lists the sources, and serves the web UI.

use clap::Args;
use serde_json::{Map, Value};

use super::{serve, sources, sync};
use crate::cli::{Context, Outcome};
use annals_core::Result;

#[derive(Args)]
pub struct UpArguments {
    #[command(flatten)]
    serve: serve::ServeArguments,
    /// Exit after listing the sources instead of serving the web UI
    #[arg(long)]
    no_serve: bool,
}

pub fn run(context: &mut Context, options: &UpArguments) -> Result<Outcome> {
    let reports = match sync::collect(context, &sync::SyncArguments::default()) {
        Ok(reports) => reports,
        // What was captured before can be served, and the server reports what fails until it can capture again.
        Err(error) if !options.no_serve && context.archive().is_ok_and(|archive| archive.is_some()) => {
            let error = crate::cli::describe(error, &context.config);
            context.output.error(&error, false);
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let cards = sources::all(context)?;
    let mut document = Map::new();
    if context.json {
        document.insert("sources".into(), serde_json::to_value(&cards)?);
        document.insert("next_cursor".into(), Value::Null);
    } else {
        sources::print(context, &cards, false)?;
        sources::print_failures(context)?;
        let captured: u64 = reports.iter().map(|report| report.totals.captured_bytes).sum();
        let archive = context.config.home.join("annals.db");
        let kept = std::fs::metadata(&archive).map_or(0, |metadata| metadata.len());
        context.output.line("")?;
        context.output.line(format!(
            "{} captured; archive: {} in {}",
            crate::view::format::size(captured),
            crate::view::format::size(kept),
            archive.display()
        ))?;
        if !context.quiet && cards.iter().any(|card| card.session_count > 0) {
            context.output.flush()?;
            context.output.note("hint: try `annals sessions`, `annals search WORDS` or `annals usage`");
        }
    }
    if !options.no_serve {
        let logs = context.verbose;
        serve::start(context, &options.serve, serve::Opening { logs, document })?;
    } else if context.json {
        context.output.json(&document)?;
    }
    Ok(Outcome::Done)
}
