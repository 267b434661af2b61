//! `annals restore`: writes captured files back out, byte for byte.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::sync::source_named;
use crate::cli::ui::table::{number, size};
use crate::cli::{Context, Outcome};
use crate::collect::{Restored, restore};
use annals_core::Result;

#[derive(Args)]
pub struct RestoreArguments {
    /// Only this source; its home is written straight into the folder
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// The folder to write into; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub fn run(context: &mut Context, options: &RestoreArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        source_named(source)?;
    }
    let restored = match context.archive()? {
        Some(store) => restore(&store, &context.scope, options.source.as_deref(), &options.to)?,
        None => Restored::default(),
    };
    if context.json {
        context.output.json(&json!({
            "files": restored.files,
            "bytes": restored.bytes,
            "already_there": restored.already_there,
            "to": options.to,
        }))?;
    } else {
        let files = number(i64::try_from(restored.files).unwrap_or(i64::MAX));
        let to = options.to.display();
        context.output.line(format!("{files} files, {} restored to {to}", size(restored.bytes)))?;
        if restored.already_there > 0 {
            context.output.line(format!("{} were there already, identical", restored.already_there))?;
        }
    }
    Ok(if restored.files + restored.already_there == 0 { Outcome::Nothing } else { Outcome::Done })
}
