//! Secrets in the homes and exports of every other source: those of their fixtures, with the secrets behind every text.

use std::path::Path;

use serde_json::Value;

use super::planted::{CLIENTS, Planted};
use crate::files::{copy_folder, files_below};
use crate::{Bench, fixtures};

/// Writes homes of all sources except those whose transcripts the planted world writes itself.
pub fn write_other_homes(bench: &Bench, all: &[Planted]) {
    let places: String = all.iter().map(|secret| format!("\n{}", secret.places())).collect();
    for (source, case) in fixtures::with_home() {
        if CLIENTS.contains(&source) {
            continue;
        }
        let home = bench.home_of(source);
        copy_folder(&case.join("home"), &home);
        for path in files_below(&home) {
            plant(&path, &places);
        }
    }
}

/// Imports exports of all sources except those that the planted world writes itself.
pub fn import_other_exports(bench: &Bench, all: &[Planted]) {
    let places: String = all.iter().map(|secret| format!("\n{}", secret.places())).collect();
    for (number, (source, case)) in fixtures::with_exports().into_iter().enumerate() {
        if source == "chatgpt" {
            continue;
        }
        let folder = bench.folder.path().join(format!("export-{number}"));
        copy_folder(&case.join("exports/1"), &folder);
        for path in files_below(&folder) {
            plant(&path, &places);
        }
        bench.import(&[&folder]);
    }
}

/// Adds the secrets to every sentence of a JSON document, to every line of JSON, or to the end of a text.
fn plant(path: &Path, places: &str) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let in_json = |text: &str| {
        let mut value: Value = serde_json::from_str(text).ok()?;
        add_to_texts(&mut value, places);
        Some(value.to_string())
    };
    let planted = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => in_json(&text),
        Some("jsonl") => {
            Some(text.lines().map(|line| in_json(line).unwrap_or_else(|| line.to_owned()) + "\n").collect())
        }
        Some("md") => Some(text + places),
        _ => None,
    };
    if let Some(planted) = planted {
        std::fs::write(path, planted).unwrap();
    }
}

/// Sentences are for people; names, ids and times have no blanks.
fn add_to_texts(value: &mut Value, places: &str) {
    match value {
        Value::String(text) if text.contains(' ') && !text.contains(places) => text.push_str(places),
        Value::Array(items) => items.iter_mut().for_each(|item| add_to_texts(item, places)),
        Value::Object(fields) => fields.values_mut().for_each(|field| add_to_texts(field, places)),
        _ => {}
    }
}
