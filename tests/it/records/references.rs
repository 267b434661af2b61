//! Ids lead somewhere: those in records to other records, and those in transcripts to some record.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use annals_testkit::files::files_below;

use super::StreamRecords;

/// Field of a stream, and the field of another stream that has the same value.
const REFERENCES: &[(&str, &str, &str, &str)] = &[
    ("messages", "children_ids", "messages", "id"),
    ("messages", "attachment_ids", "files", "id"),
    ("conversations", "current_node", "messages", "id"),
    ("files", "conversation_id", "conversations", "id"),
    ("files", "message_id", "messages", "id"),
    ("shared_conversations", "conversation_id", "conversations", "id"),
    ("shared_conversations", "highlighted_message_id", "messages", "id"),
    ("canvas_documents", "conversation_id", "conversations", "id"),
    ("canvas_documents", "node_id", "messages", "id"),
    ("feedback", "conversation_id", "conversations", "id"),
    ("attachments", "message_id", "messages", "id"),
    ("artifacts", "session_id", "conversations", "id"),
    ("tool_results_full", "tool_use_id", "tool_calls", "call_id"),
    ("tool_calls", "parent_call", "tool_calls", "id"),
    ("function_calls", "parent_call", "function_calls", "id"),
    ("agent_job_items", "job_id", "agent_jobs", "id"),
    ("project_roots", "project_id", "projects", "id"),
];

/// Ids of fixtures that lead nowhere on purpose.
const DANGLING: &[&str] = &["nowhere"];

/// The names under which clients write ids of calls.
const CALL_IDS: [&str; 6] = ["call_id", "callId", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id"];

/// How ids of tools start that ran at the provider.
const AT_PROVIDER: &str = "srvtoolu_";

/// Ids that a record names are ids of records. Returns how many there were.
pub fn assert_joins(streams: &BTreeMap<String, StreamRecords>, home: &str) -> usize {
    let mut joins = 0;
    let ids = |kinds: &[&str]| -> HashMap<String, HashSet<String>> {
        let mut ids: HashMap<String, HashSet<String>> = HashMap::new();
        for record in kinds.iter().filter_map(|kind| streams.get(*kind)).flat_map(|stream| &stream.records) {
            let session = record["session_id"].as_str().unwrap_or_default().to_owned();
            ids.entry(session).or_default().insert(record["data"]["id"].as_str().unwrap().to_owned());
        }
        ids
    };
    let sessions = ids(&["sessions", "conversations", "subagent_transcripts"]);
    let messages = ids(&["messages"]);
    let calls = ids(&["tool_calls", "function_calls"]);
    let all_messages: HashSet<&String> = messages.values().flatten().collect();
    let none = HashSet::new();
    for record in streams.get("messages").map(|stream| stream.records.as_slice()).unwrap_or_default() {
        let session = record["session_id"].as_str().unwrap();
        assert!(sessions.contains_key(session), "{home}: no session of {record}");
        joins += 1;
        if let Some(parent) = record["data"]["parent_id"].as_str() {
            joins += 1;
            assert!(all_messages.contains(&parent.to_owned()), "{home}: no parent of {record}");
        }
        for call in record["data"]["call_ids"].as_array().unwrap() {
            let known = calls.get(session).unwrap_or(&none);
            joins += 1;
            assert!(known.contains(call.as_str().unwrap()), "{home}: no call {call} of {record}");
        }
    }
    for kind in ["tool_calls", "function_calls"] {
        for record in streams.get(kind).map(|stream| stream.records.as_slice()).unwrap_or_default() {
            let session = record["session_id"].as_str().unwrap();
            assert!(sessions.contains_key(session), "{home}: no session of {record}");
            if let Some(message) = record["data"]["message_id"].as_str() {
                let known = messages.get(session).unwrap_or(&none);
                joins += 1;
                assert!(known.contains(message), "{home}: no message of {record}");
            }
        }
    }
    for (stream, field, target, target_field) in REFERENCES {
        let (Some(from), Some(to)) = (streams.get(*stream), streams.get(*target)) else { continue };
        let known: HashSet<&str> =
            to.records.iter().filter_map(|record| record["data"][*target_field].as_str()).collect();
        for record in &from.records {
            let value = &record["data"][*field];
            for id in value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice) {
                let Some(id) = id.as_str().filter(|id| !DANGLING.contains(id)) else { continue };
                assert!(
                    known.contains(id),
                    "{home}: {field} {id} of {stream} is no {target_field} of {target}"
                );
                joins += 1;
            }
        }
    }
    joins
}

/// Every id of a call in a line of the home is in some record, and every line of a client that gives lines ids. Returns how
/// many ids there were.
pub fn assert_lines_are_reachable(streams: &BTreeMap<String, StreamRecords>, home: &Path) -> usize {
    if streams.contains_key("tool_results_full") && streams.contains_key("todos") {
        assert_rows_are_reachable(streams, home);
    }
    let texts: Vec<String> =
        streams.values().flat_map(|stream| &stream.records).map(Value::to_string).collect();
    let text = texts.join("\n");
    let mut ids = BTreeSet::new();
    let lines =
        files_below(home).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    for path in lines {
        for line in std::fs::read(&path).unwrap().split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Value>(line) {
                collect_call_ids(&line, &mut ids);
            }
        }
    }
    for id in &ids {
        assert!(text.contains(id.as_str()), "{}: call {id} is in no record", home.display());
    }
    ids.len()
}

fn collect_call_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "toolUseResult" {
                    // A tool that ran at the provider is part of this result, and has no lines.
                    let mut within = BTreeSet::new();
                    collect_call_ids(value, &mut within);
                    ids.extend(within.into_iter().filter(|id| !id.starts_with(AT_PROVIDER)));
                    continue;
                }
                match value.as_str() {
                    Some(id) if CALL_IDS.contains(&name.as_str()) => drop(ids.insert(id.to_owned())),
                    _ => collect_call_ids(value, ids),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_call_ids(item, ids)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every line of Claude Code that has an id is part of some record, and every parent that is in the transcript too.
fn assert_rows_are_reachable(streams: &BTreeMap<String, StreamRecords>, home: &Path) {
    let mut reachable = BTreeSet::new();
    let mut with_parent = 0;
    for record in streams.values().flat_map(|stream| &stream.records) {
        let data = &record["data"];
        reachable.extend(data["line_ids"].as_array().into_iter().flatten().filter_map(Value::as_str));
        reachable.extend([&data["uuid"], &data["native"]["uuid"]].into_iter().filter_map(|id| id.as_str()));
        with_parent += usize::from(data["parent_id"].is_string());
    }
    let (mut lines, mut parents) = (0, 0);
    for path in files_below(home) {
        let name = path.to_string_lossy();
        if !(name.contains("/projects/") && name.ends_with(".jsonl")) {
            continue;
        }
        for line in std::fs::read(&path).unwrap().split(|byte| *byte == b'\n') {
            let Ok(row) = serde_json::from_slice::<Value>(line) else { continue };
            let Some(id) = row["uuid"].as_str() else { continue };
            lines += 1;
            parents += usize::from(row["parentUuid"].is_string());
            assert!(reachable.contains(id), "{name}: no record of {}", row["uuid"]);
        }
    }
    assert!(parents < 4 || with_parent > 0, "{}: no message has a parent", home.display());
    println!("{}: {lines} lines with ids, {with_parent} messages with a parent", home.display());
}
