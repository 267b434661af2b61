//! Tables in a directory: one Parquet file for each table, source and month.

use std::collections::BTreeSet;
use std::path::Path;

use super::Job;
use super::folder::{About, Fate, Folder};
use super::report::Report;
use crate::cli::ui::progress::StepBar;
use crate::cli::{Context, Outcome};
use crate::view::ExportTable;
use annals_core::Result;

pub fn run(context: &mut Context, job: &Job<'_>, root: &Path, source: Option<&str>) -> Result<Outcome> {
    let partitions = job.view.partitions(&job.sessions, source)?;
    let mut report = Report {
        format: job.format.name(),
        to: root.display().to_string(),
        dry_run: job.dry_run,
        sessions: job.sessions.len(),
        ..Report::default()
    };
    let mut folder = if job.dry_run { Folder::read(root)? } else { Folder::open(root)? };
    let mut bar = StepBar::new(context.quiet || job.dry_run, "Writing tables");
    let mut paths = BTreeSet::new();
    for (done, partition) in partitions.iter().enumerate() {
        let path = partition.path();
        paths.insert(path.clone());
        if folder.is_current(&path, &partition.stamp) {
            report.add(&path, Fate::Unchanged);
            continue;
        }
        if job.dry_run {
            report.add(&path, folder.fate_of(&path)?);
            continue;
        }
        let mut draft = folder.draft()?;
        job.view.write_partition(partition, &job.sessions, &mut draft)?;
        let fate = folder.keep(draft, &path, &partition.stamp, About::default())?;
        report.add(&path, fate);
        bar.set(done as u64 + 1, partitions.len() as u64);
    }
    // A month that has no rows any more has no file: rows must not count twice.
    let is_table = |path: &str| {
        ExportTable::ALL.iter().any(|table| path.starts_with(&format!("{}/source=", table.name())))
    };
    let stale: Vec<String> = folder
        .files()
        .map(|file| file.path.clone())
        .filter(|path| is_table(path) && !paths.contains(path))
        .collect();
    for path in stale {
        if job.dry_run || folder.remove(&path)? {
            report.removed.push(path);
        } else {
            report.left_alone.push(path);
        }
    }
    if !job.dry_run {
        folder.finish()?;
    }
    report.print(context, &|text| job.view.show(text))
}
