//! The record contract: one envelope, declared keys that are unique, values of the declared types, lists that continue where
//! they stopped, joins that lead somewhere, and changes that can be followed.

mod changes;
mod growth;
mod order;
mod references;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use annals_testkit::homes::ClientHome;
use annals_testkit::{Bench, fixtures};

annals_testkit::over_homes! { records_keep_their_contract }

fn records_keep_their_contract(homes: &[ClientHome]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut lists, mut joins, mut lines) = (0, 0, 0);
    for ClientHome { source, path } in homes {
        let bench = Bench::with_home(source, path);
        bench.sync();
        let streams = read_streams(&bench, source);
        for (name, stream) in &streams {
            *counts.entry(format!("{source}/{name}")).or_default() += stream.records.len();
        }
        let home = path.display().to_string();
        assert_contract(&streams, &home);
        lists += order::assert_lists_continue(&bench, source, &streams);
        joins += references::assert_joins(&streams, &home);
        lines += references::assert_lines_are_reachable(&streams, &bench.home_of(source));
    }
    for (stream, count) in &counts {
        println!("{stream}: {count} records");
    }
    let records: usize = counts.values().sum();
    println!(
        "{} homes: {records} records, {lists} lists continued, {joins} references and {lines} ids of lines followed",
        homes.len()
    );
    assert!(records > 0 && lists > 0 && joins > 0 && lines > 0);
}

#[test]
fn records_of_imports_keep_their_contract() {
    let (mut lists, mut joins) = (0, 0);
    for (source, case) in fixtures::with_exports() {
        let bench = fixtures::imported(&case);
        let streams = read_streams(&bench, source);
        let name = case.display().to_string();
        assert_contract(&streams, &name);
        lists += order::assert_lists_continue(&bench, source, &streams);
        joins += references::assert_joins(&streams, &name);
    }
    println!("{lists} lists continued, {joins} references followed");
    assert!(lists > 0 && joins > 0);
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
            for (field, property) in declared["schema"]["properties"].as_object().unwrap() {
                let fits = data.get(field).is_none_or(|value| fits(value, &property["type"]));
                assert!(fits, "{field} is not of the type {} in {place}", property["type"]);
            }
        }
    }
}

/// Whether a value is of one of the types of a JSON schema.
fn fits(value: &Value, kinds: &Value) -> bool {
    let is_of = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    kinds.as_array().map_or_else(|| is_of(kinds), |kinds| kinds.iter().any(is_of))
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

/// A card counts the sessions that a list has, sub-agents in neither, and their messages. Costs have at most six decimals.
#[test]
fn cards_count_what_lists_have() {
    let mut with_agents = 0;
    for (source, case) in fixtures::with_home() {
        let bench = fixtures::synced(source, &case);
        let cards = bench.json(&["sources", "--all"]);
        let card = cards["sources"].as_array().unwrap().iter().find(|card| card["source"] == source).unwrap();
        // An empty list ends with exit code 1.
        let list = bench.run(&["sessions", "--limit", "500", "--json"]).stdout;
        let list: Value = serde_json::from_str(&list).unwrap();
        let sessions = list["sessions"].as_array().unwrap();
        let messages: i64 = sessions.iter().map(|session| session["message_count"].as_i64().unwrap()).sum();
        let name = case.display();
        assert_eq!(
            (&card["session_count"], &list["total"]),
            (&sessions.len().into(), &sessions.len().into()),
            "{name}"
        );
        assert_eq!(card["message_count"], messages, "{name}");
        with_agents += usize::from(bench.sessions().len() > sessions.len());
        for session in bench.sessions() {
            let cost = session["cost_usd"].to_string();
            let decimals = cost.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert!(decimals <= 6, "{name}: {cost}");
        }
    }
    assert!(with_agents > 3, "{with_agents}");
}
