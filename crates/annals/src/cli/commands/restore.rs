//! `annals restore`: writes captured files back to a directory, byte for byte, and databases with their rows.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::sync::parse_source;
use crate::cli::source_name;
use crate::cli::{Context, Outcome};
use crate::collect::{Restored, restore};
use crate::view::format::{counted, size};
use annals_core::Result;

#[derive(Args)]
#[command(
    after_help = "A client's database comes back as a new SQLite file with its schema and the rows that were captured, in their \
                        newest version; tables that are not captured are empty (see `annals audit`).\n\n\
                        An import comes back as the conversations and files that it contained, each byte for byte, not as the \
                        zip archive or directory that was imported: keep your exports if you need them."
)]
pub struct RestoreArguments {
    /// Restore only this source, directly into the directory
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Directory to write to; existing files are never overwritten
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub fn run(context: &mut Context, options: &RestoreArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        parse_source(source)?;
    }
    let (mut restored, mut masked) = (Restored::default(), 0);
    if let Some(store) = context.archive()? {
        masked = store.masked_homes()?;
        restored = restore(&store, options.source.as_deref(), &options.to)?;
        // File names may contain anything: they pass the door like all text.
        let door = context.door(&store)?;
        for failed in &mut restored.failed {
            failed.path = door.show(&failed.path).to_string();
            failed.cause = door.show(&failed.cause).to_string();
        }
        for database in &mut restored.databases {
            database.path = door.show(&database.path).to_string();
        }
    }
    if context.json {
        let failed: Vec<Value> = restored
            .failed
            .iter()
            .map(|failed| json!({"path": failed.path, "cause": failed.cause}))
            .collect();
        context.output.json(&json!({
            "files": restored.files,
            "bytes": restored.bytes,
            "already_there": restored.already_there,
            "from_imports": restored.from_imports,
            "forgotten_files": restored.forgotten_files,
            "forgotten_lines": restored.forgotten_lines,
            "databases": restored.databases.iter().map(|database| json!({
                "path": database.path,
                "tables": database.tables,
            })).collect::<Vec<_>>(),
            "without_schema": restored.without_schema,
            "failed": failed,
            "to": options.to,
        }))?;
    } else {
        let files = counted(restored.files, "file");
        let to = options.to.display();
        context.output.line(format!("{files} restored to {to} ({})", size(restored.bytes)))?;
        if restored.already_there > 0 {
            context
                .output
                .line(format!("{} already there", counted(restored.already_there, "identical file")))?;
        }
        for database in &restored.databases {
            let rows = counted(database.tables.values().sum::<u64>(), "row");
            let tables = counted(database.tables.len() as u64, "table");
            context.output.line(format!("{}: {rows} of {tables}, in a new database", database.path))?;
        }
        for pattern in &restored.without_schema {
            context.output.note(format!(
                "note: {pattern}: rows not restored, because no sync has archived the database's schema yet"
            ));
        }
        if restored.forgotten_files + restored.forgotten_lines > 0 {
            context.output.note(format!(
                "note: forgotten, and left out: {}, and {} of the files that are restored, which are blank",
                counted(restored.forgotten_files, "file"),
                counted(restored.forgotten_lines, "line")
            ));
        }
        if masked > 0 {
            let homes = counted(masked, "home");
            context.output.note(format!("note: of {homes} there are copies in which secrets are replaced"));
        }
        if restored.from_imports > 0 {
            context.output.note(format!(
                "note: {} from imports: conversations and files as they were in the exports, not the exports themselves",
                counted(restored.from_imports, "file")
            ));
        }
    }
    if !restored.failed.is_empty() {
        if !context.json {
            for failed in &restored.failed {
                context.output.note(format!("not restored: {}: {}", failed.path, failed.cause));
            }
            let files = counted(restored.failed.len(), "file");
            context.output.note(format!("error: {files} not restored"));
            context.output.note("hint: `annals repair` heals what the client or another version still has");
        }
        return Ok(Outcome::Stopped);
    }
    Ok(if restored.files + restored.already_there == 0 { Outcome::Nothing } else { Outcome::Done })
}
