//! The record contract: one envelope, declared keys that are unique, joins that lead somewhere, and changes that can be
//! followed.

mod changes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use annals_testkit::files::files_below;
use annals_testkit::homes::Home;
use annals_testkit::{Bench, fixtures};

annals_testkit::over_homes! { records_keep_their_contract }

fn records_keep_their_contract(homes: &[Home]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for Home { source, path } in homes {
        let bench = Bench::with_home(source, path);
        bench.sync();
        let streams = read_streams(&bench, source);
        for (name, stream) in &streams {
            *counts.entry(format!("{source}/{name}")).or_default() += stream.records.len();
        }
        assert_contract(&streams, &path.display().to_string());
        if *source == "claude_code" {
            assert_lines_are_reachable(&streams, &bench.home_of(source));
        }
    }
    for (stream, count) in counts {
        println!("{stream}: {count} records");
    }
}

#[test]
fn records_of_imports_keep_their_contract() {
    for (source, case) in fixtures::with_exports() {
        let bench = fixtures::imported(&case);
        assert_contract(&read_streams(&bench, source), &case.display().to_string());
    }
}

/// What a manifest says of a stream, and its records.
struct StreamRecords {
    declared: Value,
    records: Vec<Value>,
}

fn read_streams(bench: &Bench, source: &str) -> BTreeMap<String, StreamRecords> {
    let manifest = bench.json(&["manifest", source]);
    let streams = manifest["streams"].as_array().unwrap();
    streams
        .iter()
        .map(|declared| {
            let name = declared["name"].as_str().unwrap().to_owned();
            let printed = bench.run(&["records", &format!("{source}/{name}"), "--full"]).stdout;
            let records = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            (name, StreamRecords { declared: declared.clone(), records })
        })
        .collect()
}

fn assert_contract(streams: &BTreeMap<String, StreamRecords>, home: &str) {
    for (name, StreamRecords { declared, records }) in streams {
        let text = |field: &str| declared[field].as_str().unwrap_or_default().to_owned();
        let (cursor, consent) = (text("cursor_field"), text("consent_time_field"));
        let mut seen = HashSet::new();
        let mut keys = HashSet::new();
        for record in records {
            let place = format!("{home} {name}: {record}");
            for field in ["key", "version", "session_id", "at", "deleted_at", "data"] {
                assert!(record.get(field).is_some(), "no {field} in {place}");
            }
            assert!(record["key"].is_string() && record["data"].is_object(), "{place}");
            assert!(keys.insert(record["key"].clone()), "the key is not unique: {place}");
            let data = &record["data"];
            let fields = declared["primary_key"].as_array().unwrap().iter();
            let key: Vec<&Value> = fields.map(|field| &data[field.as_str().unwrap()]).collect();
            assert!(key.iter().all(|part| part.is_string()), "primary key {key:?} of {place}");
            assert!(seen.insert(key.iter().map(ToString::to_string).collect::<String>()), "twice: {place}");
            for field in [&cursor, &consent].into_iter().filter(|field| !field.is_empty()) {
                assert!(data.get(field.as_str()).is_some(), "no {field} in {place}");
                let schema = &declared["schema"]["properties"];
                assert!(schema.get(field.as_str()).is_some(), "{field} of {name} is not declared");
            }
            for field in declared["schema"]["required"].as_array().unwrap() {
                assert!(data.get(field.as_str().unwrap()).is_some(), "no {field} in {place}");
            }
        }
    }
    assert_joins(streams, home);
}

/// Ids that a record names are ids of records.
fn assert_joins(streams: &BTreeMap<String, StreamRecords>, home: &str) {
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
        if let Some(parent) = record["data"]["parent_id"].as_str() {
            assert!(all_messages.contains(&parent.to_owned()), "{home}: no parent of {record}");
        }
        for call in record["data"]["call_ids"].as_array().unwrap() {
            let known = calls.get(session).unwrap_or(&none);
            assert!(known.contains(call.as_str().unwrap()), "{home}: no call {call} of {record}");
        }
    }
    for kind in ["tool_calls", "function_calls"] {
        for record in streams.get(kind).map(|stream| stream.records.as_slice()).unwrap_or_default() {
            let session = record["session_id"].as_str().unwrap();
            assert!(sessions.contains_key(session), "{home}: no session of {record}");
            if let Some(message) = record["data"]["message_id"].as_str() {
                let known = messages.get(session).unwrap_or(&none);
                assert!(known.contains(message), "{home}: no message of {record}");
            }
        }
    }
}

/// Every line of a transcript that has an id is part of some record, and every parent that is in the transcript too.
fn assert_lines_are_reachable(streams: &BTreeMap<String, StreamRecords>, home: &Path) {
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

/// A page reads only what it needs, and says the same as the whole list and as the transcript.
#[test]
fn parents_are_the_same_in_records_pages_and_transcripts() {
    let mut with_parent = 0;
    for (source, case) in fixtures::with_home() {
        let bench = fixtures::synced(source, &case);
        let stream = format!("{source}/messages");
        if bench.run(&["records", stream.as_str()]).stdout.is_empty() {
            continue;
        }
        let list = |options: &[&str]| bench.json(&[&["records", stream.as_str()], options].concat());
        let all = list(&[]);
        let (mut pages, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = match &cursor {
                Some(cursor) => list(&["--limit", "3", "--cursor", cursor]),
                None => list(&["--limit", "3"]),
            };
            pages.extend(page["records"].as_array().unwrap().clone());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(Value::from(pages.clone()), all["records"], "{}", case.display());
        let mut parents: BTreeMap<(String, String), Value> = BTreeMap::new();
        for record in &pages {
            let data = &record["data"];
            let key = |name: &str| data[name].as_str().unwrap().to_owned();
            with_parent += usize::from(data["parent_id"].is_string());
            parents.insert((key("session_id"), key("id")), data["parent_id"].clone());
        }
        for session in bench.sessions() {
            let id = session["session_id"].as_str().unwrap();
            let shown = bench.json(&["show", id, "--copies"]);
            for entry in shown["messages"].as_array().unwrap().iter().filter(|entry| entry["kind"] != "call")
            {
                let message = entry["id"].as_str().unwrap();
                let known = parents.get(&(id.to_owned(), message.to_owned()));
                assert_eq!(known, Some(&entry["parent_id"]), "{}: {id} {message}", case.display());
            }
        }
    }
    assert!(with_parent > 50, "{with_parent}");
}

/// `message_count` is the number of prompts and answers. Claude Code has other rows on either side, and some clients write
/// the task of a sub-agent as its user's message.
#[test]
fn counts_of_messages_add_up() {
    let homes =
        fixtures::with_home().into_iter().map(|(source, case)| (source, fixtures::synced(source, &case)));
    let mut counted = 0;
    for (source, bench) in homes {
        for session in bench.sessions() {
            let number = |name: &str| session[name].as_i64().unwrap();
            let shown = bench.json(&["show", session["session_id"].as_str().unwrap()]);
            let of_kind = |kind: &str| {
                let entries = shown["messages"].as_array().unwrap().iter();
                entries.filter(|entry| entry["kind"] == kind).count() as i64
            };
            let (prompts, answers) = (of_kind("prompt"), of_kind("answer"));
            assert_eq!(number("message_count"), prompts + answers, "{session}");
            if source != "claude_code" {
                let has_tasks = ["gemini_cli", "opencode", "copilot_cli"].contains(&source);
                let tasks = if has_tasks { of_kind("agent") } else { 0 };
                assert_eq!(number("user_message_count"), prompts + tasks, "{session}");
                assert_eq!(number("assistant_message_count"), answers, "{session}");
            }
            counted += 1;
        }
    }
    assert!(counted > 30, "{counted}");
}
