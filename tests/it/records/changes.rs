//! A consumer that loads an export and follows it: after every sync it has what the archive has, and nothing else.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::append;

use crate::claude;

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
    let transcript = claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
    let skill = bench.claude().join("skills/oil/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    let steps: [(&str, &dyn Fn()); 10] = [
        ("the first sync", &|| {}),
        ("an append", &|| append(&codex, &text_of(&prompt("more about springs")))),
        ("a skill", &|| std::fs::write(&skill, "---\nname: oil\n---\nOil it.").unwrap()),
        ("a longer answer", &|| {
            let line = claude::answer_row(claude::ONE, 6, "msg_2_0000000a", claude::text("And shiny."), 9);
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
            claude::write(&bench, "-home-ada-fork", claude::TWO, &text_of(&claude::talk(claude::ONE)));
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
    claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
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
