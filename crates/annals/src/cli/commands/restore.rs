//! `annals restore`: writes captured files back out, byte for byte.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::sync::source_named;
use crate::cli::ui::table::{number, size};
use crate::cli::{Answer, Desk};
use crate::collect::{Restored, restore};
use annals_core::Result;

#[derive(Args)]
pub struct Options {
    /// Only this source; its home is written straight into the folder
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// The folder to write into; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    if let Some(source) = &options.source {
        source_named(source)?;
    }
    let restored = match desk.archive()? {
        Some(store) => restore(&store, &desk.scope, options.source.as_deref(), &options.to)?,
        None => Restored::default(),
    };
    if desk.json {
        desk.output.json(&json!({
            "files": restored.files,
            "bytes": restored.bytes,
            "already_there": restored.already_there,
            "to": options.to,
        }))?;
    } else {
        let files = number(i64::try_from(restored.files).unwrap_or(i64::MAX));
        let to = options.to.display();
        desk.output.line(format!("{files} files, {} restored to {to}", size(restored.bytes)))?;
        if restored.already_there > 0 {
            desk.output.line(format!("{} were there already, identical", restored.already_there))?;
        }
    }
    Ok(if restored.files + restored.already_there == 0 { Answer::Nothing } else { Answer::Done })
}
