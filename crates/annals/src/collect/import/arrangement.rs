//! Arrangements in records that an archive exported: they keep their times, so that the same versions count everywhere.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::report::{ContainerReport, ImportTotals, MemberReport};
use crate::collect::names::text_of;
use annals_core::arrangement::{LONGEST_NOTE, STREAM};
use annals_core::{Arrangement, Error, Result, Scope};
use annals_store::Store;

/// Longer lines are no arrangements: a note has at most six bytes of JSON for each of its own.
const LONGEST_LINE: u64 = 8 * LONGEST_NOTE as u64;
/// Versions that are stored at once.
const AT_ONCE: usize = 1_000;
/// Messages of an export.
const MESSAGES: [&str; 5] = ["SCHEMA", "RECORD", "STATE", "START", "DONE"];

/// Imports the arrangements of an export of records; none if the path is something else.
pub fn import_arrangement(
    path: &Path,
    store: &mut Store,
    member: Option<&str>,
) -> Result<Option<ContainerReport>> {
    let Some(mut input) = File::open(path).ok().filter(|_| path.is_file()).map(BufReader::new) else {
        return Ok(None);
    };
    let mut line = Vec::new();
    if !next_line(&mut input, &mut line)? || !is_message(&line) {
        return Ok(None);
    }
    let scope = match member {
        Some(name) => store.scope_of_name(name)?.ok_or_else(|| {
            Error::new(format!("no member named {name:?}")).hint("`annals members list` lists all members")
        })?,
        None => Scope::Owner,
    };
    let (mut versions, mut totals, mut elements) = (Vec::new(), ImportTotals::default(), 0);
    loop {
        match version_of(&line) {
            Found::Version(version) => {
                elements += 1;
                versions.push(*version);
            }
            Found::Odd => totals.aside += 1,
            Found::Other => {}
        }
        let more = next_line(&mut input, &mut line)?;
        if !more || versions.len() == AT_ONCE {
            let added = store.arrange(scope, &versions)? as u64;
            totals.new += added;
            totals.unchanged += versions.len() as u64 - added;
            versions.clear();
        }
        if !more {
            break;
        }
    }
    let (name, _) = STREAM.split_once('/').unwrap_or((STREAM, ""));
    let member = MemberReport {
        name: path.file_name().map(text_of).unwrap_or_default(),
        bytes: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
        verdict: "taken",
        source: Some(name),
        what: "arrangements".to_owned(),
        elements,
        aside: totals.aside,
    };
    let mut report = ContainerReport {
        path: path.to_owned(),
        kind: "records",
        members: vec![member],
        ..ContainerReport::default()
    };
    if totals.aside > 0 {
        report.warnings.push(format!("{} records of {STREAM} cannot be read", totals.aside));
    }
    report.totals.insert(name, totals);
    Ok(Some(report))
}

enum Found {
    Version(Box<Arrangement>),
    /// A record of the stream that is no arrangement.
    Odd,
    Other,
}

fn version_of(line: &[u8]) -> Found {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return Found::Other };
    if message["type"] != "RECORD" || message["stream"] != STREAM {
        return Found::Other;
    }
    match Arrangement::of_record(&message["data"]) {
        Some(version) => Found::Version(Box::new(version)),
        None => Found::Odd,
    }
}

fn is_message(line: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    message["type"].as_str().is_some_and(|kind| MESSAGES.contains(&kind))
}

/// Reads the start of the next line, and skips the rest of it. False at the end.
fn next_line(input: &mut BufReader<File>, line: &mut Vec<u8>) -> Result<bool> {
    line.clear();
    let read = input.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    if line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}
