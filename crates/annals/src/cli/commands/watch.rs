//! `annals watch`: captures what clients write as they write it, without a server.

use clap::Args;
use serde_json::json;

use super::push::push_in_background;
use super::serve::{homes, refresh};
use crate::cli::{Context, Outcome, now};
use crate::serve::{WatchSetup, watch};
use annals_core::Result;

#[derive(Args)]
pub struct WatchArguments {}

pub fn run(context: &mut Context, _options: &WatchArguments) -> Result<Outcome> {
    follow(context)
}

/// Captures until it is stopped; at rest it uses no processor time.
pub fn follow(context: &mut Context) -> Result<Outcome> {
    // A folder that cannot be written is reported now, not in a log that nobody reads.
    drop(context.archive_or_new()?);
    let homes = homes(&context.config);
    let watched: Vec<String> =
        homes.iter().filter(|home| home.is_dir()).map(|home| home.display().to_string()).collect();
    let setup = WatchSetup { refresh: refresh(context.config.clone(), None), homes, now };
    let config = context.config.clone();
    watch(setup, || {
        push_in_background(config);
        if context.json {
            context.output.json(&json!({"watching": watched}))?;
        } else if !context.quiet {
            for home in &watched {
                context.output.note(format!("watching {home}"));
            }
            context.output.note("Press Ctrl-C to stop.");
        }
        context.output.flush()
    })?;
    Ok(Outcome::Done)
}
