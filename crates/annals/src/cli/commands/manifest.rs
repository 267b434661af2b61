//! `annals manifest`: which files a source reads, keeps and never opens.

use clap::Args;

use super::sync::parse_source;
use crate::cli::{Context, Outcome};
use annals_core::Result;

#[derive(Args)]
pub struct ManifestArguments {
    /// Source to describe (`annals sources` lists them)
    #[arg(value_name = "SOURCE")]
    source: String,
}

pub fn run(context: &mut Context, options: &ManifestArguments) -> Result<Outcome> {
    let manifest = parse_source(&options.source)?.manifest();
    if context.json {
        context.output.json(manifest)?;
    } else {
        context.output.fragment(&serde_json::to_string_pretty(manifest)?)?;
        context.output.fragment("\n")?;
    }
    Ok(Outcome::Done)
}
