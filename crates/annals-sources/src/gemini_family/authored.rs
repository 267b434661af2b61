//! Authored files of the family: those of most clients, saved conversations and lists of projects.

use serde_json::{Value, json};

use super::projects;
use crate::FileContext;
use crate::home::authored::WholeFileReader;
use crate::home::places::{self, Names};

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, names: &Names, bytes: &[u8]) -> Option<Value> {
    match stream {
        "projects" => Some(projects::record(key, bytes)),
        "checkpoints" => Some(checkpoint(key, bytes)),
        _ => places::record(stream, key, names, bytes),
    }
}

/// `checkpoint-<tag>.json`: a conversation that the user saved.
pub fn checkpoint_reader(file: &FileContext) -> WholeFileReader {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let tag = name.strip_prefix("checkpoint-").and_then(|name| name.strip_suffix(".json")).unwrap_or(name);
    let project = projects::name_in(&file.path).unwrap_or_default();
    WholeFileReader::new("checkpoints", format!("{project}/{tag}"), file)
}

fn checkpoint(key: &str, bytes: &[u8]) -> Value {
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let history = document.get("history").unwrap_or(&document);
    let messages = history.as_array().map_or(0, Vec::len);
    let tag = key.rsplit('/').next().unwrap_or(key);
    let history = if history.is_array() { history.clone() } else { Value::Array(Vec::new()) };
    json!({"id": key, "tag": tag, "messages": messages, "history": history, "bytes": bytes.len()})
}
