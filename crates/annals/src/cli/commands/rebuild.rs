//! `annals rebuild`: throws rows away and reads them anew from the archived bytes.

use clap::Args;
use serde_json::json;

use crate::cli::ui::progress::Bar;
use crate::cli::ui::table::{number, size};
use crate::cli::{Answer, Desk, now};
use crate::collect::{Lock, Progress, Rebuilt, rebuild};
use annals_core::Result;

#[derive(Args)]
pub struct Options {}

pub fn run(desk: &mut Desk, _options: &Options) -> Result<Answer> {
    let rebuilt = match desk.archive()? {
        Some(store) => {
            let bytes: i64 = store.instances(&desk.scope)?.iter().map(|instance| instance.bytes).sum();
            drop(store);
            let _lock = Lock::take(&desk.config.home, "rebuild")?;
            let mut bar = Bar::new(desk.quiet);
            bar.begin(1, u64::try_from(bytes).unwrap_or(0));
            let rebuilt = rebuild(&desk.config.home, &desk.scope, now(), &mut |bytes| bar.advance(0, bytes));
            bar.end();
            rebuilt?
        }
        None => Rebuilt::default(),
    };
    if desk.json {
        desk.output.json(&json!({"files": rebuilt.files, "bytes": rebuilt.bytes}))?;
    } else {
        let files = number(i64::try_from(rebuilt.files).unwrap_or(i64::MAX));
        desk.output.line(format!("{files} files, {} read anew", size(rebuilt.bytes)))?;
    }
    Ok(if rebuilt.files == 0 { Answer::Nothing } else { Answer::Done })
}
