//! `annals repair`: heals damaged files of the archive, or says which can be healed.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::settings::Declared;
use crate::cli::{Context, Outcome};
use crate::collect::{HealSource, Lock, RepairedVersion, repair};
use crate::view::Door;
use crate::view::format::counted;
use annals_core::Result;

#[derive(Args)]
#[command(
    after_help = "Damaged bytes are taken from the client's file if it still has them, or from another version of the \
                  file. What cannot be repaired is listed and stays as it is; the rest of the file can still be read."
)]
pub struct RepairArguments {
    /// Report what is damaged and what can be repaired, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(context: &mut Context, options: &RepairArguments) -> Result<Outcome> {
    if !context.config.data_dir.join("annals.db").is_file() {
        return Ok(Outcome::Nothing);
    }
    let _lock = Lock::take(&context.config.data_dir, "repair")?;
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let report = repair(&settings.environment(), options.dry_run)?;
    let door = Door::masking_alone();
    let can_be_healed = |version: &&RepairedVersion| {
        if options.dry_run { version.source.is_some() } else { version.is_healed }
    };
    let healed = report.versions.iter().filter(can_be_healed).count();
    let lost = report.versions.len() - healed;
    if context.json {
        let versions: Vec<Value> = report
            .versions
            .iter()
            .map(|version| {
                json!({
                    "path": door.show(&version.path),
                    "version": version.version,
                    "damages": version.damages,
                    "source": version.source.map(source_name),
                    "healed": version.is_healed,
                })
            })
            .collect();
        context.output.json(&json!({
            "dry_run": options.dry_run,
            "database": report.broken,
            "rows": report.rows.iter().map(|rows| door.show(rows)).collect::<Vec<_>>(),
            "damaged_file": report.damaged_file,
            "healed": healed,
            "lost": lost,
            "versions": versions,
        }))?;
    } else {
        for broken in &report.broken {
            let state = if options.dry_run { "can be rebuilt" } else { "rebuilt" };
            context.output.line(format!("{state}: annals.db: {broken}"))?;
        }
        for rows in &report.rows {
            let state = if options.dry_run { "can be rebuilt" } else { "rebuilt" };
            context.output.line(format!("{state}: {}", door.show(rows)))?;
        }
        if let Some(file) = &report.damaged_file {
            context.output.line(format!("the damaged archive is now {}", file.display()))?;
        }
        for version in &report.versions {
            let state = match (can_be_healed(&version), options.dry_run) {
                (true, true) => "can be healed",
                (true, false) => "healed",
                (false, _) => "cannot be healed",
            };
            let from = match version.source {
                Some(source) if can_be_healed(&version) => format!(" from {}", describe_source(source)),
                _ => String::new(),
            };
            let what = door.show(&format!("{} version {}", version.path, version.version));
            context.output.line(format!("{state}{from}: {what}: {}", version.damages.join("; ")))?;
        }
        if report.versions.is_empty() && report.broken.is_empty() && report.rows.is_empty() {
            context.output.line("no damage found")?;
        } else if lost > 0 {
            context.output.note(format!("error: {} cannot be healed", counted(lost, "version")));
            context
                .output
                .note("hint: restore annals.db from a backup, or keep the rest: `annals restore --to DIR`");
        }
    }
    Ok(if lost > 0 { Outcome::Stopped } else { Outcome::Done })
}

fn describe_source(source: HealSource) -> &'static str {
    match source {
        HealSource::ClientFile => "the client's file",
        HealSource::ClientDatabase => "the client's database",
        HealSource::OtherVersion => "another version",
    }
}

fn source_name(source: HealSource) -> &'static str {
    match source {
        HealSource::ClientFile => "client_file",
        HealSource::ClientDatabase => "client_database",
        HealSource::OtherVersion => "other_version",
    }
}
