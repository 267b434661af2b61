//! `annals manifest`: what a source reads, keeps and never opens.

use clap::Args;

use super::sync::source_named;
use crate::cli::{Answer, Desk};
use annals_core::Result;

#[derive(Args)]
pub struct Options {
    #[arg(value_name = "SOURCE")]
    source: String,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    let manifest = source_named(&options.source)?.manifest();
    if desk.json {
        desk.output.json(manifest)?;
    } else {
        desk.output.piece(&serde_json::to_string_pretty(manifest)?)?;
        desk.output.piece("\n")?;
    }
    Ok(Answer::Done)
}
