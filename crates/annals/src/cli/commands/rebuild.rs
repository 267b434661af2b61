//! `annals rebuild`: discards all rows and rebuilds them from the archived bytes.

use clap::Args;
use serde_json::json;

use crate::cli::ui::progress::Bar;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Lock, Progress, Rebuilt, rebuild};
use crate::view::Door;
use crate::view::format::{counted, size};
use annals_core::{Result, Scope};

#[derive(Args)]
pub struct RebuildArguments {}

pub fn run(context: &mut Context, _options: &RebuildArguments) -> Result<Outcome> {
    let rebuilt = match context.archive()? {
        Some(store) => {
            let bytes: i64 =
                store.scoped(Scope::Owner).instances()?.iter().map(|instance| instance.bytes).sum();
            drop(store);
            let _lock = Lock::take(&context.config.data_dir, "rebuild")?;
            let mut bar = Bar::new(context.quiet);
            bar.begin(1, u64::try_from(bytes).unwrap_or(0));
            let rebuilt = rebuild(&context.config.data_dir, now(), &mut |bytes| bar.advance(0, bytes));
            bar.end();
            rebuilt?
        }
        None => Rebuilt::default(),
    };
    if context.json {
        context.output.json(&json!({
            "files": rebuilt.files,
            "bytes": rebuilt.bytes,
            "damaged_files": rebuilt.damaged.len(),
        }))?;
    } else {
        let files = counted(rebuilt.files, "file");
        context.output.line(format!("rebuilt from {files} ({})", size(rebuilt.bytes)))?;
    }
    if !rebuilt.damaged.is_empty() {
        let door = Door::masking_alone();
        for (path, cause) in &rebuilt.damaged {
            context.output.note(format!("not read to its end: {}", door.show(&format!("{path}: {cause}"))));
        }
        context.output.note(format!("error: {} damaged", counted(rebuilt.damaged.len(), "file")));
        context.output.note("hint: `annals repair` heals what the client or another version still has");
        return Ok(Outcome::Stopped);
    }
    Ok(if rebuilt.files == 0 { Outcome::Nothing } else { Outcome::Done })
}
