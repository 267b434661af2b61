//! A consumer that loads an export and follows it: after every sync it has what the archive has, and nothing else.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::append;

use crate::claude::{self, FOLDER, ONE, answer_row, prompt_row, row, text, write};

/// What an outside program keeps: records by stream and declared key, and the STATE of each stream.
#[derive(Default)]
struct Consumer {
    records: BTreeMap<(String, String), Value>,
    states: BTreeMap<String, String>,
}

impl Consumer {
    /// Reads one export; returns how many records it had.
    fn follow(&mut self, bench: &Bench) -> u64 {
        let saved = bench.folder.path().join("consumer-state.jsonl");
        let mut file = std::fs::File::create(&saved).unwrap();
        for (stream, cursor) in &self.states {
            let state = serde_json::json!({"type": "STATE", "stream": stream, "cursor": cursor});
            writeln!(file, "{state}").unwrap();
        }
        let printed = export(bench, Some(&saved));
        let (mut keys, mut count, mut total) = (BTreeMap::new(), 0, 0);
        for line in printed.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let stream = message["stream"].as_str().unwrap_or_default().to_owned();
            match message["type"].as_str().unwrap() {
                "SCHEMA" => {
                    if message["mode"] == "full" {
                        self.records.retain(|(of, _), _| *of != stream);
                    }
                    keys.insert(stream, message["primary_key"].clone());
                }
                "RECORD" => {
                    let fields = keys[&stream].as_array().unwrap().iter();
                    let key: Vec<String> =
                        fields.map(|field| message["data"][field.as_str().unwrap()].to_string()).collect();
                    let place = (stream, key.join(" "));
                    match message["op"].as_str().unwrap() {
                        "delete" => drop(self.records.remove(&place)),
                        _ => drop(self.records.insert(place, message["data"].clone())),
                    }
                    count += 1;
                }
                "STATE" => {
                    self.states.insert(stream, message["cursor"].as_str().unwrap().to_owned());
                }
                "DONE" => total = message["records_emitted"].as_u64().unwrap(),
                other => panic!("{other}"),
            }
        }
        assert_eq!(total, count);
        count
    }

    fn assert_like_archive(&self, bench: &Bench, when: &str) {
        let mut fresh = Consumer::default();
        fresh.follow(bench);
        let mine: Vec<_> = self.records.iter().map(|(key, data)| format!("{key:?} {data}")).collect();
        let theirs: Vec<_> = fresh.records.iter().map(|(key, data)| format!("{key:?} {data}")).collect();
        annals_testkit::checks::assert_same(&mine.join("\n"), &theirs.join("\n"));
        assert!(!fresh.records.is_empty(), "{when}");
    }
}

fn export(bench: &Bench, state: Option<&Path>) -> String {
    let mut arguments = vec!["export", "--format", "records"];
    arguments.extend(state.map(|path| ["--state", path.to_str().unwrap()]).into_iter().flatten());
    let ran = bench.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

#[test]
fn a_consumer_follows_ten_syncs() {
    let bench = Bench::new();
    let mut consumer = Consumer::default();
    let codex = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let transcript = write(&bench, FOLDER, ONE, &text_of(&claude::talk(ONE)));
    let skill = bench.claude().join("skills/oil/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    let steps: [(&str, &dyn Fn()); 10] = [
        ("the first sync", &|| {}),
        ("an append", &|| append(&codex, &text_of(&prompt("more about springs")))),
        ("a skill", &|| std::fs::write(&skill, "---\nname: oil\n---\nOil it.").unwrap()),
        ("a longer answer", &|| {
            let line = answer_row(ONE, 6, "msg_2_0000000a", text("And shiny."), 9);
            append(&transcript, &format!("{line}\n"));
        }),
        ("a rewritten transcript", &|| {
            let mut lines = vec![meta(ID)];
            lines.extend(prompt("another beginning"));
            lines.extend(answer("another end"));
            std::fs::write(&codex, text_of(&lines)).unwrap();
        }),
        ("a skill that changed", &|| std::fs::write(&skill, "---\nname: oil\n---\nOil it well.").unwrap()),
        ("a copy in another folder", &|| {
            write(&bench, "-home-ada-fork", claude::TWO, &text_of(&claude::talk(ONE)));
        }),
        ("a skill that is gone", &|| std::fs::remove_file(&skill).unwrap()),
        ("a transcript that is gone", &|| std::fs::remove_file(&transcript).unwrap()),
        ("a history", &|| {
            let entry = serde_json::json!({"session_id": "gone", "ts": 1_763_200_000, "text": "wind it"});
            std::fs::write(bench.codex().join("history.jsonl"), format!("{entry}\n")).unwrap();
        }),
    ];
    for (when, step) in steps {
        step();
        bench.sync();
        assert!(consumer.follow(&bench) > 0, "{when}");
        consumer.assert_like_archive(&bench, when);
        assert_eq!(consumer.follow(&bench), 0, "{when}: nothing changed since");
    }
    // Rows that were rebuilt are sent again.
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert!(consumer.follow(&bench) > 0);
    consumer.assert_like_archive(&bench, "a rebuild");
}

#[test]
fn pages_and_states_lead_to_every_record() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&claude::talk(ONE)));
    bench.sync();
    let page = |cursor: Option<&str>| {
        let mut arguments = vec!["records", "claude_code/messages", "--limit", "1"];
        arguments.extend(cursor.map(|cursor| ["--cursor", cursor]).into_iter().flatten());
        let ran = bench.run(&[&arguments[..], &["--json"]].concat());
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    let state = loop {
        let answer = page(cursor.as_deref());
        assert_eq!(answer["mode"], "full");
        let records = answer["records"].as_array().unwrap();
        seen.extend(records.iter().map(|record| record["key"].as_str().unwrap().to_owned()));
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break answer["state"].as_str().unwrap().to_owned(),
        }
    };
    assert_eq!(seen.len(), 3);
    let nothing = page(Some(&state));
    assert_eq!((&nothing["mode"], nothing["records"].as_array().unwrap().len()), (&"changes".into(), 0));
    let refused = bench.run(&["records", "claude_code/messages", "--cursor", "nonsense"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let none = bench.run(&["records", "claude_code/messages", "--since", "2026-03-03"]);
    assert_eq!(none.stdout, "");
    let all = bench.run(&["records", "claude_code/messages", "--since", "2026-03-02"]);
    assert_eq!(all.stdout.lines().count(), 3);
}

/// A list that starts in the middle of a transcript finds parents before it, however far away they are.
#[test]
fn a_parent_far_before_is_found_from_a_state_and_from_a_key() {
    let bench = Bench::new();
    let id = |number: u32| format!("{}-0000-4000-8000-{number:012}", &ONE[28..]);
    let after = |parent: u32, line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row["parentUuid"] = id(parent).into();
        row.to_string()
    };
    let long = json!({"attachment": {"type": "hook_success", "content": "oil ".repeat(50_000)}});
    let lines = [
        prompt_row(ONE, 1, "Oil the gears."),
        after(1, &row(ONE, 2, "attachment", long)),
        after(2, &answer_row(ONE, 3, "msg_1", text("Oiled."), 1)),
    ];
    write(&bench, FOLDER, ONE, &text_of(&lines[..1]));
    bench.sync();
    let list = |options: &[&str]| bench.json(&[&["records", "claude_code/messages"], options].concat());
    let first = list(&[]);
    write(&bench, FOLDER, ONE, &text_of(&lines));
    bench.sync();
    let prompt = &first["records"][0]["data"]["id"];
    let answer_of = |list: &Value| {
        let records = list["records"].as_array().unwrap();
        records.iter().find(|record| record["data"]["kind"] == "answer").unwrap().clone()
    };
    let whole = answer_of(&list(&[]));
    assert_eq!(&whole["data"]["parent_id"], prompt);
    assert_eq!(answer_of(&list(&["--cursor", first["state"].as_str().unwrap()])), whole);
    assert_eq!(answer_of(&list(&["--key", whole["key"].as_str().unwrap()])), whole);
}

/// Fields of a record that come from elsewhere change it: a consumer that follows has them whatever arrives first.
#[test]
fn records_change_with_what_they_name() {
    let home = |bench: &Bench, path: &str, text: &str| {
        let path = bench.claude().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let transcript = |bench: &Bench| {
        let output = format!("projects/{FOLDER}/{ONE}/tool-results/b1.txt");
        let marker = format!(
            "<persisted-output>\nOutput too large. Full output saved to: /home/ada/.claude/{output}\n\nPreview\n</persisted-output>"
        );
        let mut lines = claude::talk(ONE);
        let mut result: Value = serde_json::from_str(&lines[3]).unwrap();
        result["message"]["content"][0]["content"] = marker.into();
        result.as_object_mut().unwrap().remove("toolUseResult");
        lines[3] = result.to_string();
        let backup = json!({"backupFileName": "0123456789abcdef@v1", "version": 1, "backupTime": "2026-03-02T10:00:00.000Z"});
        let snapshot = json!({"messageId": "m", "trackedFileBackups": {"src/gear.rs": backup}});
        lines.push(row(ONE, 9, "file-history-snapshot", json!({"messageId": "m", "snapshot": snapshot})));
        write(bench, FOLDER, ONE, &text_of(&lines));
    };
    let output =
        |bench: &Bench| home(bench, &format!("projects/{FOLDER}/{ONE}/tool-results/b1.txt"), "whole\n");
    let note = |bench: &Bench| home(bench, &format!("projects/{FOLDER}/memory/tabs.md"), "Tabs.\n");
    let backup =
        |bench: &Bench| home(bench, &format!("file-history/{ONE}/0123456789abcdef@v1"), "fn gear() {}\n");
    let steps: [&dyn Fn(&Bench); 4] = [&transcript, &output, &note, &backup];
    let streams = ["tool_calls", "tool_results_full", "memory_notes", "file_snapshots"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]] {
        let bench = Bench::new();
        let list = |stream: &str, options: &[&str]| -> Value {
            let stream = format!("claude_code/{stream}");
            let ran = bench.run(&[&["records", &stream, "--full", "--json"], options].concat());
            serde_json::from_str(&ran.stdout).unwrap()
        };
        let mut followed: BTreeMap<String, (Value, String)> = BTreeMap::new();
        for step in order {
            steps[step](&bench);
            bench.sync();
            for stream in streams {
                let changes = match followed.get(stream) {
                    Some((_, state)) => list(stream, &["--cursor", state]),
                    None => list(stream, &[]),
                };
                let state = changes["state"].as_str().unwrap().to_owned();
                let before = followed.remove(stream).map_or(Value::Null, |(record, _)| record);
                let record = changes["records"].get(0).map_or(before, |record| record["data"].clone());
                followed.insert(stream.to_owned(), (record, state));
            }
        }
        for stream in streams {
            let now = &list(stream, &[])["records"][0]["data"];
            assert_eq!(&followed[stream].0, now, "{stream} {order:?}");
        }
        let field = |stream: &str, name: &str| followed[stream].0[name].clone();
        assert_eq!(field("tool_calls", "output"), "whole\n");
        assert_eq!(field("tool_results_full", "tool_use_id"), field("tool_calls", "call_id"));
        assert_eq!(field("memory_notes", "project_path"), "/home/ada/engine");
        assert_eq!(field("file_snapshots", "size"), 13);
    }
}
