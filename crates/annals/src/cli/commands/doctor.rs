//! `annals doctor`: checks the archive, the sources, retention and free space.

use std::borrow::Cow;

use clap::Args;
use serde_json::json;

use super::sources;
use crate::cli::ui::progress::Bar;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Lock, Progress, compare_rows, compare_sample};
use crate::view::format::{counted, size};
use crate::view::{Door, Finding, SourceCard, View, examine};
use annals_core::{Result, Shown, SourceStatus, Time};
use annals_store::Store;

/// Less free space than this is too little for the next syncs.
const LITTLE_SPACE: u64 = 1 << 30;
/// Most unknown kinds listed.
const MOST_KINDS: usize = 10;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

#[derive(Args)]
pub struct DoctorArguments {
    /// Compare all rows with the archived files instead of a sample, which takes as long as a rebuild
    #[arg(long)]
    deep: bool,
}

pub fn run(context: &mut Context, options: &DoctorArguments) -> Result<Outcome> {
    let mut findings = match context.archive() {
        Ok(Some(store)) => {
            // A damaged archive may not have its key.
            let door = context.door(&store).unwrap_or_else(|_| Door::masking_alone());
            let mut findings = examine(&store, &door)?;
            let view = context.view(&store, &door);
            // What cannot be counted is among the findings already.
            findings.extend(new_kinds(&view).unwrap_or_default());
            if !options.deep && findings.iter().all(|finding| finding.ok) {
                findings.push(sample(&store, &door));
            }
            findings
        }
        Err(error) => vec![Finding {
            check: "archive",
            ok: false,
            what: Door::masking_alone().show(&error.what),
            hint: Some(error.hint.map_or(Cow::Borrowed("annals repair"), Cow::Owned)),
        }],
        Ok(None) => vec![Finding {
            check: "archive",
            ok: true,
            what: Shown::new("no archive yet"),
            hint: Some("annals sync".into()),
        }],
    };
    if options.deep && findings.iter().all(|finding| finding.ok || finding.check == "segments") {
        findings.extend(compare(context)?);
    }
    // The cards are made of the same archive.
    for card in sources::all(context).unwrap_or_default() {
        let reachable = card.source_status != SourceStatus::Error;
        let mut what = format!("{}: {}", card.provider_label, card.source_status);
        if let Some(days) = card.retention_days {
            what.push_str(&format!("; the client deletes sessions after {}", counted(days, "day")));
        }
        let hint = Some(card.setup_hint.into()).filter(|_| !reachable);
        findings.push(Finding { check: "homes", ok: reachable, what: Shown::new(what), hint });
        findings.extend(late_capture(&card));
    }
    findings.extend(free_space(context));
    let well = findings.iter().all(|finding| finding.ok);
    if context.json {
        context.output.json(&json!({"ok": well, "findings": findings}))?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok    " } else { "FAILED" };
            context.output.line(format!("{mark}  {}  {}", finding.check, finding.what))?;
            if let Some(hint) = &finding.hint {
                context.output.line(format!("        hint: {hint}"))?;
            }
        }
    }
    Ok(if well { Outcome::Done } else { Outcome::Nothing })
}

/// Nothing was captured for so long that the client deletes, or has deleted, what is not in the archive.
fn late_capture(card: &SourceCard) -> Option<Finding> {
    let last = card.last_scanned_at.as_deref().and_then(Time::parse)?;
    let days = now().micros().saturating_sub(last.micros()) / DAY;
    let retention = card.retention_days?;
    if days * 2 < retention.max(1) {
        return None;
    }
    let (label, client) = (card.provider_label, counted(retention, "day"));
    let lost = if days >= retention { "; some may be lost" } else { "" };
    let what = format!(
        "{label}: nothing was captured for {}, and the client deletes sessions after {client}{lost}",
        counted(days, "day")
    );
    let hint = Some("`annals sync` captures now; `annals service install` keeps capturing".into());
    Some(Finding { check: "capture", ok: false, what: Shown::new(what), hint })
}

/// Compares the rows of some files with those that their archived bytes give.
fn sample(store: &Store, door: &Door) -> Finding {
    let mut seed = [0; 32];
    // Without randomness the sample is the same every time.
    let _ = getrandom::fill(&mut seed);
    let (ok, what) = match compare_sample(store, seed, now()) {
        Ok(sampled) if sampled.differing.is_empty() => {
            let all = counted(sampled.files, "file");
            (true, format!("rows of {} of {all} match their content (--deep compares all)", sampled.compared))
        }
        Ok(sampled) => (false, sampled.differing.join("; ")),
        // Rows that cannot be read differ.
        Err(error) => (false, error.what),
    };
    let hint = Some("annals rebuild".into()).filter(|_| !ok);
    Finding { check: "sample", ok, what: door.show(&what), hint }
}

/// Compares all rows with those that the archived files give.
fn compare(context: &Context) -> Result<Vec<Finding>> {
    let _lock = Lock::take(&context.config.data_dir, "doctor")?;
    let mut bar = Bar::new(context.quiet);
    let differing = compare_rows(&context.config.data_dir, now(), &mut |bytes| bar.advance(0, bytes));
    // Rows that cannot be read differ.
    let differing = differing.unwrap_or_else(|error| vec![error.what]);
    let door = Door::masking_alone();
    if differing.is_empty() {
        let what = Shown::new("all rows are those of the archived files");
        return Ok(vec![Finding { check: "content", ok: true, what, hint: None }]);
    }
    let findings = differing.iter().map(|what| Finding {
        check: "content",
        ok: false,
        what: door.show(what),
        hint: Some("annals rebuild".into()),
    });
    Ok(findings.collect())
}

/// Data of a client that this version does not know: it is kept, and a later version may show more of it.
fn new_kinds(view: &View<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for source in view.used_sources()? {
        let kinds = view.unknown_kinds(source)?;
        let named: Vec<String> = kinds.iter().take(MOST_KINDS).map(|kind| kind.kind.to_string()).collect();
        let more = kinds.len().saturating_sub(MOST_KINDS);
        if named.is_empty() {
            continue;
        }
        let mut what = format!(
            "{}: {} that this version does not know, kept as they are: {}",
            source.manifest().label,
            counted(kinds.len(), "kind"),
            named.join(", ")
        );
        if more > 0 {
            what.push_str(&format!(" and {more} more"));
        }
        let hint = Some("`annals audit` lists them with client versions".into());
        findings.push(Finding { check: "formats", ok: true, what: Shown::new(what), hint });
    }
    Ok(findings)
}

#[cfg(unix)]
fn free_space(context: &Context) -> Option<Finding> {
    let home = context.config.data_dir.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(home).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    Some(Finding {
        check: "space",
        ok: free >= LITTLE_SPACE,
        what: Shown::new(format!("{} free on the disk of the archive", size(free))),
        hint: Some("free up space, or move the archive and use --home DIR".into())
            .filter(|_| free < LITTLE_SPACE),
    })
}

#[cfg(not(unix))]
fn free_space(_context: &Context) -> Option<Finding> {
    None
}
