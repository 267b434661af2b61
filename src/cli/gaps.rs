//! `annals gaps`: what could not be read, and what became of it.

use clap::Args;

use super::tables::{number, table};
use super::{Answer, Desk, moments};
use crate::model::Result;
use crate::view::{GapAsk, Paging, gaps};

#[derive(Args)]
pub struct Options {
    /// Only this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Also gaps that were closed
    #[arg(long)]
    all: bool,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    if let Some(source) = &options.source {
        super::sync::source_named(source)?;
    }
    let store = desk.archive_or_new()?;
    let door = desk.door(&store)?;
    let ask = GapAsk {
        source: options.source.clone(),
        status: (!options.all).then(|| "pending".to_owned()),
        page: Paging { limit: i64::MAX - 1, cursor: None },
    };
    let list = gaps(&desk.scope, &store, &door, &ask)?;
    if desk.json {
        desk.output.json(&list)?;
        return Ok(Answer::Done);
    }
    if list.gaps.is_empty() {
        desk.output.line("no gaps: everything that was found was read")?;
        return Ok(Answer::Done);
    }
    let head = ["source", "stream", "what", "status", "#tries", "last try", "reason"];
    let rows: Vec<Vec<String>> = list
        .gaps
        .iter()
        .map(|gap| {
            vec![
                gap.source.clone(),
                gap.stream.clone(),
                gap.key.to_string(),
                gap.status.clone(),
                number(gap.attempts),
                moments::local_text(Some(&gap.last_tried_at)),
                gap.reason.to_string(),
            ]
        })
        .collect();
    for line in table(&head, &rows) {
        desk.output.line(line)?;
    }
    Ok(Answer::Done)
}
