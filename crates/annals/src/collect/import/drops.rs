//! Drop directories: files in them are imported by the next sync, and not opened again until they change.

use std::path::{Path, PathBuf};

use super::{ImportOptions, import, instance_of};
use crate::collect::home::walk::stat_of;
use crate::collect::options::{Environment, Progress, SourceReport};
use annals_core::Result;
use annals_sources::{IntakeOptions, Source};
use annals_store::Store;

/// Imports what is new in the drop directories of a source; returns whether there was anything.
pub fn import_drops(
    source: &'static dyn Source,
    environment: &Environment<'_>,
    member: Option<&str>,
    report: &mut SourceReport,
    progress: &mut dyn Progress,
) -> Result<bool> {
    let Some(importing) = source.import() else { return Ok(false) };
    let folders = importing.drop_folders(environment.settings);
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for folder in &folders {
        list(folder, &mut files, report);
    }
    if files.is_empty() {
        return Ok(false);
    }
    let store = Store::open(environment.data_dir)?;
    let now = (environment.now)();
    let instance = instance_of(&store, source, environment, member)?;
    let mut new = Vec::new();
    for (path, stat) in files {
        let name = cursor_name(&path);
        match store.cursor(instance, &name)? {
            Some(known) if known == stat => report.totals.unchanged_files += 1,
            _ => new.push((path, name, stat)),
        }
    }
    if new.is_empty() {
        return Ok(false);
    }
    drop(store);
    let options = ImportOptions {
        paths: new.iter().map(|(path, _, _)| path.clone()).collect(),
        intake_options: IntakeOptions::default(),
        member: member.map(str::to_owned),
        sources: vec![source],
    };
    for container in import(&options, environment, progress)? {
        let totals = container.totals.get(source.manifest().source).copied().unwrap_or_default();
        report.totals.captured_bytes += totals.captured_bytes;
        report.totals.new_documents += totals.new + totals.changed;
        report.totals.documents += totals.new + totals.changed + totals.unchanged;
        if !container.is_recognised() && !container.failed {
            report.warnings.push(format!("{}: nothing recognised", container.path.display()));
        }
        let name = container.path.display().to_string();
        report.warnings.extend(container.warnings.iter().map(|warning| format!("{name}: {warning}")));
        if container.failed {
            report.totals.failed_files += 1;
        } else {
            report.totals.new_files += 1;
        }
    }
    // Unrecognised files are not opened again either, until they change.
    let mut store = Store::open(environment.data_dir)?;
    let mut writer = store.writer(now)?;
    for (_, name, stat) in new {
        writer.set_cursor(instance, &name, &stat)?;
    }
    writer.commit()?;
    Ok(true)
}

fn cursor_name(path: &Path) -> String {
    format!("drop {}", path.display())
}

/// The files below a directory, each with a text that changes when the file does. A file being written is read once
/// it is complete.
fn list(folder: &Path, files: &mut Vec<(PathBuf, String)>, report: &mut SourceReport) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                report.warnings.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() && !entry.file_name().to_string_lossy().starts_with('.') {
                report.totals.found_files += 1;
                report.totals.found_bytes += metadata.len();
                let stat = stat_of(&metadata);
                let state = format!("{} {} {}", metadata.len(), stat.modified.micros(), stat.inode);
                files.push((entry.path(), state));
            }
        }
    }
    files.sort();
}
