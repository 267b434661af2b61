//! The doctor: checks that the archive is intact, with hints if it is not.

use serde::Serialize;

use crate::view::door::Door;
use annals_core::{Result, Shown};
use annals_store::{Damage, Store};

#[derive(Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub ok: bool,
    pub what: Shown,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

/// Checks the database, segments against their hashes and rows against their bytes; in all homes, for the local user.
pub fn examine(store: &Store, door: &Door) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let broken = store.check_integrity()?;
    findings.push(finding(
        "database",
        broken.is_empty(),
        if broken.is_empty() { "intact".to_owned() } else { broken.join("; ") },
        "restore annals.db from a backup; `annals restore --to DIR` still writes what can be read",
    ));
    let mut damages: Vec<Damage> = Vec::new();
    let checked = store.check_segments(&mut |damage| damages.push(damage))?;
    if damages.is_empty() {
        findings.push(finding("segments", true, format!("{checked} segments match their hashes"), ""));
    }
    for damage in damages {
        let what =
            format!("{} version {} at byte {}: {}", damage.path, damage.version, damage.place, damage.what);
        let hint = "annals sync --full (if the client still has the file)";
        findings.push(Finding { check: "segments", ok: false, what: door.text(&what), hint: Some(hint) });
    }
    let lost = store.rows_without_bytes()?;
    let what = if lost.is_empty() { "all rows have their bytes".to_owned() } else { lost.join(", ") };
    let mut rows = finding("rows", lost.is_empty(), String::new(), "annals rebuild");
    rows.what = door.text(&what);
    findings.push(rows);
    Ok(findings)
}

/// A finding without archived content.
fn finding(check: &'static str, ok: bool, what: String, hint: &'static str) -> Finding {
    Finding { check, ok, what: Shown::new(what), hint: Some(hint).filter(|_| !ok) }
}
