//! An outside program with a separate database follows an archive: after each of ten syncs it resumes from its saved
//! states and has exactly the rows of the archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::{Bench, ROOT, Ran};

/// Runs the consumer once; returns how many records it read.
fn follow(bench: &Bench, database: &Path) -> u64 {
    let annals = bench.command(&[]);
    let mut consumer = Command::new("python3");
    consumer.arg(PathBuf::from(ROOT).join("tests/slow/consumer.py")).arg(database);
    consumer.arg(annals.get_program()).args(annals.get_args());
    // The environment of the program under test, and of nothing else.
    consumer.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
    for (name, value) in annals.get_envs() {
        if let Some(value) = value {
            consumer.env(name, value);
        }
    }
    let ran = Ran::of(consumer.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    ran.stdout.trim().parse().unwrap()
}

fn rows(database: &Path) -> Vec<(String, String, String)> {
    let database = rusqlite::Connection::open(database).unwrap();
    let mut rows = database.prepare("select stream, key, data from record order by stream, key").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// What the archive has now, by stream and key: what ended or is gone is not there.
fn rows_of_archive(bench: &Bench) -> BTreeMap<(String, String), Value> {
    let mut rows = BTreeMap::new();
    let manifest = bench.json(&["manifest", "codex_cli"]);
    for stream in manifest["streams"].as_array().unwrap() {
        let name = format!("codex_cli/{}", stream["name"].as_str().unwrap());
        let printed = bench.run(&["records", &name, "--full"]).stdout;
        for record in printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            if record["deleted_at"].is_null() {
                let fields = stream["primary_key"].as_array().unwrap().iter();
                let key: Vec<&Value> = fields.map(|field| &record["data"][field.as_str().unwrap()]).collect();
                rows.insert((name.clone(), json!(key).to_string()), record["data"].clone());
            }
        }
    }
    rows
}

/// The same, from the consumer's database.
fn rows_of_consumer(rows: &[(String, String, String)]) -> BTreeMap<(String, String), Value> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let rows = rows.iter().map(|(stream, key, data)| ((stream.clone(), parse(key).to_string()), parse(data)));
    rows.collect()
}

#[test]
fn a_consumer_in_another_process_follows_ten_syncs() {
    let bench = Bench::new();
    let codex = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let skill = bench.codex().join("skills/oil/SKILL.md");
    let agents = bench.codex().join("AGENTS.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    let other = ID.replace("00000000000a", "00000000000b");
    let steps: [(&str, &dyn Fn()); 10] = [
        ("the first sync", &|| {}),
        ("an append", &|| append(&codex, &text_of(&prompt("more about springs")))),
        ("a skill", &|| std::fs::write(&skill, "---\nname: oil\n---\nOil it.").unwrap()),
        ("instructions", &|| std::fs::write(&agents, "Be brief.").unwrap()),
        ("a rewritten transcript", &|| {
            let mut lines = vec![meta(ID)];
            lines.extend(prompt("another beginning"));
            lines.extend(answer("another end"));
            std::fs::write(&codex, text_of(&lines)).unwrap();
        }),
        ("a skill that changed", &|| std::fs::write(&skill, "---\nname: oil\n---\nOil it well.").unwrap()),
        ("another session", &|| {
            bench.transcript(&rollout(&other), &conversation(&other, "springs"));
        }),
        ("a skill that is gone", &|| std::fs::remove_file(&skill).unwrap()),
        ("a transcript that is gone", &|| std::fs::remove_file(&codex).unwrap()),
        ("a history", &|| {
            let entry = json!({"session_id": "gone", "ts": 1_763_200_000, "text": "wind it"});
            std::fs::write(bench.codex().join("history.jsonl"), format!("{entry}\n")).unwrap();
        }),
    ];
    let mine = bench.folder.path().join("consumer.db");
    let (mut most, mut last) = (0, 0);
    for (number, (when, step)) in steps.into_iter().enumerate() {
        step();
        bench.sync();
        assert!(follow(&bench, &mine) > 0, "{when}");
        // A consumer that begins now has the same rows.
        let fresh = bench.folder.path().join(format!("fresh-{number}.db"));
        follow(&bench, &fresh);
        let (rows, expected) = (rows(&mine), rows(&fresh));
        assert_eq!(rows, expected, "{when}");
        let archived = rows_of_archive(&bench);
        assert_eq!(rows_of_consumer(&rows), archived, "{when}");
        assert_eq!(follow(&bench, &mine), 0, "{when}: nothing changed since");
        (most, last) = (most.max(rows.len()), rows.len());
    }
    println!("{most} rows at most, {last} at the end");
    assert!(last > 0);
    // Rows that were rebuilt are sent again.
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert!(follow(&bench, &mine) > 0);
    let fresh = bench.folder.path().join("fresh.db");
    follow(&bench, &fresh);
    assert_eq!(rows(&mine), rows(&fresh));
}
