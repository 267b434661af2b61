//! `annals up`: serves the web UI at once, captures in the background, and lists the sources.

use std::io::IsTerminal;

use clap::Args;
use serde_json::{Map, Value};

use super::{serve, service, sources, sync};
use crate::cli::ui::confirm::confirm;
use crate::cli::ui::progress::Bar;
use crate::cli::{Context, Outcome};
use crate::collect::{Progress, SourceReport};
use crate::view::format::size;
use annals_core::Result;

#[derive(Args)]
pub struct UpArguments {
    #[command(flatten)]
    serve: serve::ServeArguments,
    /// Capture, list the sources and exit instead of serving the web UI
    #[arg(long)]
    no_serve: bool,
}

pub fn run(context: &mut Context, options: &UpArguments) -> Result<Outcome> {
    if options.no_serve {
        let mut bar = Bar::new(context.quiet);
        let reports = sync::collect(context, &sync::SyncArguments::default(), &mut bar)?;
        if context.json {
            let document = cards(context)?;
            context.output.json(&document)?;
        } else {
            print(context, &reports)?;
        }
        return Ok(Outcome::Done);
    }
    offer_service(context)?;
    let document = if context.json { cards(context)? } else { Map::new() };
    let first = (!options.serve.no_sync).then(|| first_capture(context.for_thread()));
    let opening = serve::Opening { logs: context.verbose, document, first };
    serve::start(context, &options.serve, opening)?;
    Ok(Outcome::Done)
}

/// What the first capture finds is printed when it ends. Until then, the server answers from what is there already.
fn first_capture(mut context: Context) -> serve::FirstCapture {
    Box::new(move |page| {
        let mut progress = BarAndPage { bar: Bar::new(context.quiet), page };
        let reports = sync::collect(&mut context, &sync::SyncArguments::default(), &mut progress)?;
        if !context.json {
            print(&mut context, &reports)?;
            context.output.flush()?;
        }
        Ok(reports)
    })
}

fn cards(context: &Context) -> Result<Map<String, Value>> {
    let cards = serde_json::to_value(sources::all(context)?)?;
    Ok(Map::from_iter([("sources".to_owned(), cards), ("next_cursor".to_owned(), Value::Null)]))
}

fn print(context: &mut Context, reports: &[SourceReport]) -> Result<()> {
    let cards = sources::all(context)?;
    sources::print(context, &cards, false)?;
    sources::print_failures(context)?;
    let captured: u64 = reports.iter().map(|report| report.totals.captured_bytes).sum();
    let archive = context.config.data_dir.join("annals.db");
    let kept = std::fs::metadata(&archive).map_or(0, |metadata| metadata.len());
    context.output.line("")?;
    context.output.line(format!(
        "{} captured; archive: {} in {}",
        size(captured),
        size(kept),
        archive.display()
    ))?;
    if !context.quiet && cards.iter().any(|card| card.session_count > 0) {
        context.output.flush()?;
        context.output.note("hint: try `annals sessions`, `annals search WORDS` or `annals usage`");
    }
    Ok(())
}

/// Progress on the terminal and on open pages.
struct BarAndPage<'p> {
    bar: Bar,
    page: &'p mut dyn Progress,
}

impl Progress for BarAndPage<'_> {
    fn begin(&mut self, files: u64, bytes: u64) {
        self.bar.begin(files, bytes);
        self.page.begin(files, bytes);
    }

    fn advance(&mut self, files: u64, bytes: u64) {
        self.bar.advance(files, bytes);
        self.page.advance(files, bytes);
    }

    fn end(&mut self) {
        self.bar.end();
        self.page.end();
    }
}

/// The setting of the archive with the answer to the offer.
const OFFER: &str = "service_offer";

/// Offers once to keep capturing in the background; whatever the answer is, it is not asked again.
fn offer_service(context: &mut Context) -> Result<()> {
    let interactive = context.output.is_terminal() && std::io::stdin().is_terminal();
    if !interactive || context.quiet || context.json || service::is_installed() {
        return Ok(());
    }
    let Some(archive) = context.archive()? else { return Ok(()) };
    if archive.setting(OFFER)?.is_some() || !service::is_possible() {
        return Ok(());
    }
    let question =
        "Keep capturing in the background, also after `annals up` ends? This installs a user service.";
    let agrees = confirm(context, question, false)?;
    context.archive_or_new()?.set_setting(OFFER, Some(if agrees { b"yes" } else { b"no" }))?;
    if !agrees {
        context.output.note("hint: `annals service install` does it later");
        return Ok(());
    }
    // Whoever wants the pages has them now; a service that fails is no reason not to serve them.
    if let Err(error) = service::install_watch(context) {
        let error = crate::cli::describe(error, &context.config);
        context.output.error(&error, false);
    }
    Ok(())
}
