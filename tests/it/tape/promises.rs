//! What other programs rely on in a tape: its first event, and hashes that they can compute themselves.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use annals_testkit::codex::{ID, prompt, rollout, text_of};
use annals_testkit::homes::{ClientHome, regular};
use annals_testkit::{Bench, fixtures};

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn tape(bench: &Bench, session: &str) -> Vec<Value> {
    let ran = bench.run(&["tape", session]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ids of all sessions with a transcript: prompts that only a history has make no tape.
fn ids(bench: &Bench) -> Vec<String> {
    let sessions = bench.sessions();
    let with_transcript = sessions.iter().filter(|session| session["history_only"] == false);
    with_transcript.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn events_have_what_their_schema_says() {
    let (mut edits, mut reads) = (0, 0);
    for (source, case) in fixtures::with_home() {
        let bench = fixtures::synced(source, &case);
        for id in ids(&bench) {
            let events = tape(&bench, &id);
            let place = format!("{} {id}", case.display());
            let meta = &events[0];
            assert!(meta["k"] == "meta" && !meta["model"].as_str().unwrap().is_empty(), "{place}: {meta}");
            for grade in ["coverage.read", "coverage.edit", "coverage.tool"] {
                let known = ["full", "partial", "none"].contains(&meta[grade].as_str().unwrap());
                assert!(known, "{place}: {meta}");
            }
            let flags = meta["adapter_flags"].as_object().unwrap();
            assert!(flags.values().all(Value::is_boolean), "{place}: {meta}");
            for event in &events {
                let has = |field: &str| event[field].is_string();
                assert!(
                    has("t") && has("k") && event["source"]["session_id"] == id.as_str(),
                    "{place}: {event}"
                );
                if event["k"] == "code.read" {
                    let range = event["range"].as_array().unwrap();
                    assert!(
                        range[0].as_u64() >= Some(1) && range[0].as_u64() <= range[1].as_u64(),
                        "{event}"
                    );
                    assert!(event["range_basis"] == "line" && has("text_hash"), "{place}: {event}");
                    reads += 1;
                }
                if event["k"] == "code.edit" {
                    edits += assert_hashes(event);
                }
            }
        }
    }
    assert!(edits > 20 && reads > 10, "{edits} {reads}");
}

/// A file with several sessions makes a tape of each, and no session with messages an empty one.
#[test]
fn each_session_of_a_file_has_its_own_tape() {
    let mut shared = 0;
    for (source, case) in fixtures::with_home() {
        let bench = fixtures::synced(source, &case);
        let mut owners: HashMap<String, String> = HashMap::new();
        for session in bench.sessions().iter().filter(|session| session["history_only"] == false) {
            let id = session["session_id"].as_str().unwrap();
            let events = tape(&bench, id);
            let place = format!("{} {id}", case.display());
            let empty = events.len() == 1 && session["message_count"].as_u64() > Some(0);
            assert!(!empty, "{place}: {session}");
            if session["parent_session_id"].is_null() {
                continue;
            }
            shared += 1;
            for call in events.iter().filter(|event| event["k"] == "tool.call") {
                let earlier =
                    owners.insert(call["call_id"].to_string() + &call["args"].to_string(), id.into());
                assert!(earlier.is_none_or(|earlier| earlier == id), "{place}: {call}");
            }
        }
    }
    assert!(shared > 5, "{shared}");
}

/// Hashes of the lines are those of the event's texts.
fn assert_hashes(event: &Value) -> usize {
    let mut hashed = 0;
    for side in ["before", "after"] {
        let field = |name: &str| event[format!("{side}_{name}")].as_str();
        let hash = field("lines_hash").or_else(|| field("hash"));
        if let (Some(text), Some(hash)) = (field("text").filter(|text| !text.contains("[secret:")), hash) {
            assert_eq!(sha256(text), hash, "{side} of {event}");
            hashed += 1;
        }
    }
    hashed
}

/// `Edit` hashes the texts that it was given, `Write` the content.
#[test]
fn edits_hash_what_the_call_gave() {
    let (mut edited, mut written) = (0, 0);
    for (source, case) in fixtures::with_home().into_iter().filter(|(source, _)| *source == "claude_code") {
        let bench = fixtures::synced(source, &case);
        for id in ids(&bench) {
            let events = tape(&bench, &id);
            let calls = events.iter().filter(|event| event["k"] == "tool.call");
            let calls: HashMap<&str, (&str, Value)> = calls
                .map(|call| {
                    let arguments = serde_json::from_str(call["args"].as_str().unwrap()).unwrap_or_default();
                    (call["call_id"].as_str().unwrap(), (call["tool"].as_str().unwrap(), arguments))
                })
                .collect();
            for edit in events.iter().filter(|event| event["k"] == "code.edit") {
                let Some((tool, given)) = edit["call_id"].as_str().and_then(|id| calls.get(id)) else {
                    continue;
                };
                let hash_of = |field: &str| Value::from(given[field].as_str().map(sha256));
                match *tool {
                    "Edit" => {
                        assert_eq!(edit["before_hash"], hash_of("old_string"), "{edit} of {given}");
                        assert_eq!(edit["after_hash"], hash_of("new_string"), "{edit} of {given}");
                        edited += 1;
                    }
                    "Write" => {
                        assert_eq!(edit["after_hash"], hash_of("content"), "{edit} of {given}");
                        written += 1;
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(edited > 3 && written > 1, "{edited} {written}");
}

/// A transcript may end before its client names a model.
#[test]
fn a_tape_without_a_model_names_the_provider() {
    let bench = Bench::new();
    bench.transcript(
        &rollout(ID),
        &[&[annals_testkit::codex::meta(ID)], &prompt("Turn the dial")[..]].concat(),
    );
    bench.sync();
    let events = tape(&bench, ID);
    assert!(!events[0]["model"].as_str().unwrap().is_empty(), "{}", events[0]);
}

/// The lines that calls wrote: of a session's calls by id, as `show` has them.
fn written_lines(bench: &Bench, session: &str) -> HashMap<String, Vec<Value>> {
    let shown = bench.json(&["show", session, "--full", "--copies"]);
    let blocks =
        shown["messages"].as_array().unwrap().iter().flat_map(|step| step["blocks"].as_array().unwrap());
    let calls = blocks.filter(|block| block["type"] == "tool_call" && block["files"].is_array());
    let mut written: HashMap<String, Vec<Value>> = HashMap::new();
    for call in calls {
        let files = call["files"].as_array().unwrap().iter().filter(|file| file["operation"] != "read");
        let lines = files.map(|file| file["after"].clone()).filter(|after| !after.is_null());
        written.entry(call["call_id"].as_str().unwrap().to_owned()).or_default().extend(lines);
    }
    written
}

/// Asserts that calls have the lines that their edits on the tape have, and returns how many whole files were written.
fn assert_lines_agree(bench: &Bench, name: &str) -> usize {
    let mut whole = 0;
    for id in ids(bench) {
        let written = written_lines(bench, &id);
        for event in tape(bench, &id).iter().filter(|event| event["k"] == "code.edit") {
            let (Some(call), range) = (event["call_id"].as_str(), &event["after_range"]) else { continue };
            // Of an insertion, a tape also has the line beside it.
            if range[0] != 1 || !event["before_range"].is_null() || !event["before_text"].is_null() {
                continue;
            }
            let lines = written.get(call).unwrap_or_else(|| panic!("{name} {id}: no files of {event}"));
            assert!(lines.contains(range), "{name} {id}: {lines:?} has no {range} of {event}");
            whole += 1;
        }
    }
    whole
}

fn calls_have_the_lines_that_their_tape_has(homes: &[ClientHome]) {
    let mut whole: HashMap<&str, usize> = HashMap::new();
    for ClientHome { source, path } in regular(homes) {
        let bench = Bench::with_home(source, path);
        bench.sync();
        *whole.entry(source).or_default() += assert_lines_agree(&bench, &path.display().to_string());
    }
    assert!(whole.values().filter(|count| **count > 0).count() >= 6, "{whole:?}");
}

annals_testkit::over_homes! { calls_have_the_lines_that_their_tape_has }

#[test]
fn a_whole_file_has_all_its_lines_whatever_the_client_noted_of_it() {
    let bench = Bench::new();
    let one = crate::claude::ONE;
    let path = "/home/ada/engine/gears.py";
    let write = json!({"type": "tool_use", "id": "toolu_w", "name": "Write",
        "input": {"file_path": path, "content": "a\nb\nc\n"}});
    let done = json!({"type": "tool_result", "tool_use_id": "toolu_w", "content": "File written"});
    let message = json!({"role": "user", "content": [done]});
    let lines = [
        crate::claude::prompt_row(one, 1, "Write the gears."),
        crate::claude::answer_row(one, 2, "msg_w", write, 9),
        // Some results have no record of what was written.
        crate::claude::row(one, 3, "user", json!({"message": message})),
    ];
    crate::claude::write(&bench, crate::claude::FOLDER, one, &text_of(&lines));
    let folder = bench.home_of("pi").join("sessions/--home-ada-engine--");
    std::fs::create_dir_all(&folder).unwrap();
    let message = |id: &str, parent: &str, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-03-02T09:00:02.000Z", "message": message});
    let call = json!({"type": "toolCall", "id": "call_long", "name": "write",
        "arguments": {"path": "/home/ada/engine/long.py", "content": "gear = 12\n".repeat(4_000)}});
    let talk = [
        json!({"type": "session", "version": 3, "id": "0199aa00-0000-7000-8000-00000000000f",
            "timestamp": "2026-03-02T09:00:00.000Z", "cwd": "/home/ada/engine"}),
        message(
            "1",
            "0",
            json!({"role": "assistant", "content": [call], "model": "m", "stopReason": "toolUse"}),
        ),
        message(
            "2",
            "1",
            json!({"role": "toolResult", "toolCallId": "call_long", "toolName": "write",
            "content": [{"type": "text", "text": "Written."}], "isError": false}),
        ),
    ];
    let talk: String = talk.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("2026-03-02T09-00-00-000Z_0199aa00-0000-7000-8000-00000000000f.jsonl"), talk)
        .unwrap();
    bench.sync();
    assert_eq!(written_lines(&bench, one)["toolu_w"], [json!([1, 3])]);
    let long = written_lines(&bench, "0199aa00-0000-7000-8000-00000000000f");
    assert_eq!(long["call_long"], [json!([1, 4000])]);
    assert_eq!(assert_lines_agree(&bench, "both"), 2);
}
