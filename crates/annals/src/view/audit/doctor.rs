//! The doctor: checks that the archive is intact, with hints if it is not.

use std::borrow::Cow;

use serde::Serialize;

use crate::view::door::Door;
use annals_core::{Result, Shown};
use annals_store::Store;

#[derive(Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub ok: bool,
    pub what: Shown,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
}

/// Checks the database, segments against their hashes and rows against their bytes; in all homes, for the local user.
pub fn examine(store: &Store, door: &Door) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    // What cannot be checked is damaged: one check that fails must not hide the others.
    let broken = store.check_integrity().unwrap_or_else(|error| vec![error.to_string()]);
    let what = if broken.is_empty() { "intact".to_owned() } else { broken.join("; ") };
    let hint = "annals repair (keeps what can be read; the damaged file stays beside it)";
    findings.push(finding("database", broken.is_empty(), what, hint));
    match store.damaged_versions() {
        Ok(damaged) if damaged.is_empty() => {
            let checked = store.count_segments().unwrap_or_default();
            findings.push(finding("segments", true, format!("{checked} segments match their hashes"), ""));
        }
        Ok(damaged) => {
            for damage in damaged.into_iter().flat_map(|version| version.damages) {
                let what = door.text(&damage.to_string());
                findings.push(Finding {
                    check: "segments",
                    ok: false,
                    what,
                    hint: Some("annals repair".into()),
                });
            }
        }
        Err(error) => findings.push(finding("segments", false, error.to_string(), "annals repair")),
    }
    let lost = store.rows_without_bytes().unwrap_or_else(|error| vec![error.to_string()]);
    let what = if lost.is_empty() { "all rows have their bytes".to_owned() } else { lost.join(", ") };
    let mut rows = finding("rows", lost.is_empty(), String::new(), "annals rebuild");
    rows.what = door.text(&what);
    findings.push(rows);
    if store.is_rebuilding().unwrap_or_default() {
        let what = "a rebuild was interrupted: answers are incomplete".to_owned();
        findings.push(finding("rebuild", false, what, "annals rebuild"));
    }
    Ok(findings)
}

/// A finding without archived content.
fn finding(check: &'static str, ok: bool, what: String, hint: &'static str) -> Finding {
    Finding { check, ok, what: Shown::new(what), hint: Some(hint.into()).filter(|_| !ok) }
}
