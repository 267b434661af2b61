//! `annals connect`: one login in a dedicated browser profile, after which `sync` fetches new conversations.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::sync::parse_source;
use crate::cli::live::{LiveArguments, describe_stop, live_options, stop_json};
use crate::cli::settings::Declared;
use crate::cli::{Context, Outcome};
use crate::collect::{Lock, Stop, connect, disconnect};
use annals_core::{Error, Result};
use annals_sources::registry;

#[derive(Args)]
pub struct ConnectArguments {
    /// Source to connect
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Disconnect and delete the browser profile; the archive keeps what it has
    #[arg(long)]
    remove: bool,
    /// Run the browser without a window (for tests: nobody can log in)
    #[arg(long, hide = true)]
    headless: bool,
    /// Wait this long for the login
    #[arg(long, value_name = "MINUTES", default_value_t = 15)]
    wait: u64,
}

pub fn run(context: &mut Context, options: &ConnectArguments) -> Result<Outcome> {
    let source = parse_source(&options.source)?;
    let (name, label) = (source.manifest().source, source.manifest().label);
    if source.live().is_none() {
        let connectable = registry().iter().filter(|source| source.live().is_some());
        let names: Vec<&str> = connectable.map(|source| source.manifest().source).collect();
        return Err(Error::new(format!("cannot connect {label}: it is read from files"))
            .hint(format!("annals connect {}", names.join("|"))));
    }
    let config = context.config.clone();
    let _lock = Lock::take(&config.data_dir, "connect")?;
    let settings = Declared(&config);
    let environment = settings.environment();
    if options.remove {
        context.archive_or_new()?;
        disconnect(source, &environment)?;
        return print_status(context, name, "removed", format!("{label} disconnected"));
    }
    let arguments = LiveArguments { headless: options.headless, ..LiveArguments::default() };
    let live = live_options(&config, source, arguments)?;
    if !context.quiet {
        context.output.note(format!("opening a browser: log in to {label} there; it closes by itself"));
        context.output.note("annals uses your session at the provider's pace and solves no captchas for you");
    }
    let patience = Duration::from_secs(60 * options.wait);
    match connect(&live, &environment, patience)? {
        None => print_status(
            context,
            name,
            "connected",
            format!("{label} connected; `annals sync {name}` fetches new conversations"),
        ),
        Some(Stop::Failed(error)) => Err(error),
        Some(stop) if context.json => {
            context
                .output
                .json(&json!({"source": name, "status": "stopped", "interaction": stop_json(&stop, name)}))?;
            Ok(Outcome::Stopped)
        }
        Some(stop) => {
            let (_, message, _) = describe_stop(&stop, name);
            context.output.note(format!("stopped: {message}"));
            context.output.note(format!("hint: annals connect {name}"));
            Ok(Outcome::Stopped)
        }
    }
}

fn print_status(context: &mut Context, source: &str, status: &str, message: String) -> Result<Outcome> {
    match context.json {
        true => context.output.json(&json!({"source": source, "status": status}))?,
        false => context.output.line(message)?,
    }
    Ok(Outcome::Done)
}
