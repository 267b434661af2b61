//! `annals doctor`: checks the archive, the sources, retention and free space.

use clap::Args;
use serde_json::json;

use super::sources;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, size};
use crate::view::{Finding, View, examine};
use annals_core::{Result, Shown, SourceStatus};

/// Less free space than this is too little for the next syncs.
const LITTLE_SPACE: u64 = 1 << 30;
/// Most unknown kinds listed.
const MOST_KINDS: usize = 10;

#[derive(Args)]
pub struct DoctorArguments {}

pub fn run(context: &mut Context, _options: &DoctorArguments) -> Result<Outcome> {
    let mut findings = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            let mut findings = examine(&store, &door)?;
            findings.extend(new_kinds(&context.view(&store, &door))?);
            findings
        }
        None => vec![Finding {
            check: "archive",
            ok: true,
            what: Shown::new("no archive yet"),
            hint: Some("annals sync"),
        }],
    };
    for card in sources::all(context)? {
        let reachable = card.source_status != SourceStatus::Error;
        let mut what = format!("{}: {}", card.provider_label, card.source_status);
        if let Some(days) = card.retention_days {
            what.push_str(&format!("; the client deletes sessions after {}", counted(days, "day")));
        }
        let hint = Some(card.setup_hint).filter(|_| !reachable);
        findings.push(Finding { check: "homes", ok: reachable, what: Shown::new(what), hint });
    }
    findings.extend(free_space(context));
    let well = findings.iter().all(|finding| finding.ok);
    if context.json {
        context.output.json(&json!({"ok": well, "findings": findings}))?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok    " } else { "FAILED" };
            context.output.line(format!("{mark}  {}  {}", finding.check, finding.what))?;
            if let Some(hint) = finding.hint {
                context.output.line(format!("        hint: {hint}"))?;
            }
        }
    }
    Ok(if well { Outcome::Done } else { Outcome::Nothing })
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
        let hint = Some("`annals audit` lists them with client versions");
        findings.push(Finding { check: "formats", ok: true, what: Shown::new(what), hint });
    }
    Ok(findings)
}

#[cfg(unix)]
fn free_space(context: &Context) -> Option<Finding> {
    let home = context.config.home.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(home).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    Some(Finding {
        check: "space",
        ok: free >= LITTLE_SPACE,
        what: Shown::new(format!("{} free on the disk of the archive", size(free))),
        hint: Some("free up space, or move the archive and use --home DIR").filter(|_| free < LITTLE_SPACE),
    })
}

#[cfg(not(unix))]
fn free_space(_context: &Context) -> Option<Finding> {
    None
}
