//! What Codex keeps beside transcripts: rules, names, tables of its databases, and the files that calls read.

use rusqlite::Connection;
use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::checks::assert_rebuilds;
use annals_testkit::codex::{ID, conversation, line, rollout};

fn records(bench: &Bench, stream: &str) -> Vec<Value> {
    let ran = bench.run(&["records", &format!("codex_cli/{stream}")]);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_rule_is_lost_and_none_allows_what_it_forbids() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "rules"));
    let rules = bench.codex().join("rules");
    std::fs::create_dir_all(&rules).unwrap();
    let text = "prefix_rule(pattern = [\"rm\", \"-rf\"], decision = \"forbidden\")\n\
        prefix_rule(\n    pattern = ['git', ['push', 'fetch']],  # both\n    decision = 'prompt',\n)\n\
        prefix_rule(pattern = SAFE)\nhost_executable(name = \"git\", paths = [\"/usr/bin/git\"])\n";
    std::fs::write(rules.join("default.rules"), text).unwrap();
    std::fs::write(rules.join("README.md"), "Call prefix_rule(pattern = [\"nothing\"]) here.\n").unwrap();
    bench.sync();
    let found: Vec<(Value, Value)> = records(&bench, "approval_rules")
        .iter()
        .map(|rule| (rule["data"]["pattern"].clone(), rule["data"]["decision"].clone()))
        .collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for rule in [
        (json!(["rm", "-rf"]), json!("forbidden")),
        (json!(["git", ["push", "fetch"]]), json!("prompt")),
        (json!(null), json!(null)),
        (json!("git"), json!(null)),
    ] {
        assert!(found.contains(&rule), "{rule:?}: {found:?}");
    }
    assert_rebuilds(&bench);
}

#[test]
fn every_table_of_the_databases_is_read_or_named() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "tables"));
    let state = Connection::open(bench.codex().join("state_5.sqlite")).unwrap();
    state
        .execute_batch(&format!(
            "create table threads (id text primary key, name text, archived integer, archived_at integer);
             insert into threads values ('{ID}', 'Engine', 1, 1772442000);
             create table agent_job_items (job_id text, item_id text, row_json text, updated_at integer);
             insert into agent_job_items values ('j', 'a/1', '{{}}', 1772442000), ('j', 'b/1', '{{}}', 1772442000);
             create table thread_dynamic_tools (thread_id text, position integer, name text, input_schema text);
             insert into thread_dynamic_tools values ('{ID}', 0, 'bell', '{{}}'), ('{ID}', 1, 'horn', '{{}}');
             create table thread_sections (id text, name text, appearance text);
             insert into thread_sections values ('s', 'Pinned', null);
             create table thread_read_receipts (thread_id text, revision integer);
             insert into thread_read_receipts values ('{ID}', 4);
             create table newcomers (id text)"
        ))
        .unwrap();
    drop(state);
    let history = Connection::open(bench.codex().join("thread_history_1.sqlite")).unwrap();
    history
        .execute_batch(
            "create table thread_turns (thread_id text, turn_id text, primary key (thread_id, turn_id));
             insert into thread_turns values ('t', '1'), ('t', '2'), ('t', '3');
             create table thread_newcomers (id text)",
        )
        .unwrap();
    drop(history);
    bench.sync();
    let session = &records(&bench, "sessions")[0]["data"];
    assert_eq!(
        (&session["name"], &session["archived_at"]),
        (&json!("Engine"), &json!("2026-03-02T09:00:00.000Z"))
    );
    assert_eq!(records(&bench, "agent_job_items").len(), 2);
    assert_eq!(records(&bench, "thread_dynamic_tools").len(), 2);
    assert_eq!(records(&bench, "thread_sections")[0]["data"]["name"], "Pinned");
    let audit = bench.json(&["audit"]);
    let audit =
        audit["sources"].as_array().unwrap().iter().find(|audit| audit["source"] == "codex_cli").unwrap();
    let line = |table: &str| {
        let lines = audit["tables"].as_array().unwrap();
        let line = lines.iter().find(|line| line["table"] == table).unwrap_or_else(|| panic!("no {table}"));
        (line["rows"].as_i64().unwrap(), line["read"].as_bool().unwrap())
    };
    assert_eq!(line("threads"), (1, true));
    assert_eq!(line("agent_job_items"), (2, true));
    assert_eq!(line("thread_read_receipts"), (1, false));
    assert_eq!(line("newcomers"), (0, false));
    assert_eq!(line("thread_turns"), (3, false));
    assert_eq!(line("thread_newcomers"), (0, false));
    let shown = bench.run(&["audit"]).stdout;
    assert!(shown.contains("table  state_5.sqlite/newcomers (0 rows, not read): unknown table"), "{shown}");
    let turns =
        "table  thread_history_1.sqlite/thread_turns (3 rows, not read): turns; derived from the transcripts";
    assert!(shown.contains(turns), "{shown}");
    let derived = "left out  thread history (1 file, ";
    assert!(shown.lines().any(|line| line.contains(derived) && line.ends_with("by the client")), "{shown}");
    assert_eq!(bench.sync()["captured_bytes"], 0);
    assert_rebuilds(&bench);
}

#[test]
fn a_name_given_in_the_index_is_the_sessions() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "names"));
    let name = json!({"id": ID, "thread_name": "Gauge", "updated_at": "2026-11-15T10:00:00.000000000Z"});
    std::fs::write(bench.codex().join("session_index.jsonl"), format!("{name}\n")).unwrap();
    bench.sync();
    assert_eq!(records(&bench, "sessions")[0]["data"]["name"], "Gauge");
}

#[test]
fn reads_count_wherever_they_are_proven() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "reads");
    let call = |second: u32, id: &str, name: &str, arguments: Value| {
        let payload =
            json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments.to_string()});
        line(second, "response_item", &payload.to_string())
    };
    let output = |second: u32, id: &str, text: &str| {
        let payload = json!({"type": "function_call_output", "call_id": id, "output": text});
        line(second, "response_item", &payload.to_string())
    };
    lines.extend([
        call(10, "a", "read_file", json!({"file_path": "/home/ada/engine/gear.rs", "offset": 3, "limit": 2})),
        output(11, "a", "L3: fn gear() {\nL4: }"),
        call(12, "b", "shell_command", json!({"command": "sed -n '1,2p' dial.rs"})),
        output(13, "b", "Exit code: 0\nWall time: 0 seconds\nOutput:\none\ntwo\n"),
        call(14, "c", "shell_command", json!({"command": "cat dial.rs | head"})),
        output(15, "c", "Exit code: 0\nWall time: 0 seconds\nOutput:\none\n"),
        call(16, "d", "shell_command", json!({"command": "cat gone.rs"})),
        output(17, "d", "Exit code: 1\nWall time: 0 seconds\nOutput:\ncat: gone.rs: No such file\n"),
        call(18, "e", "read_file", json!({"file_path": "/home/ada/engine/gone.rs"})),
        output(19, "e", "failed to read file: No such file or directory"),
    ]);
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let tools = bench.json(&["tools", "--days", "all", "--source", "codex_cli"])["sources"][0].clone();
    let mut read: Vec<&str> = tools["top_files_read"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read, ["/home/ada/engine/dial.rs", "/home/ada/engine/gear.rs"], "{tools}");
    let tape = bench.run(&["tape", ID]).stdout;
    for path in read {
        assert!(tape.contains(path), "{tape}");
    }
    let calls: Vec<Value> =
        records(&bench, "function_calls").iter().map(|call| call["data"].clone()).collect();
    let gear = calls.iter().find(|call| call["call_id"] == "a").unwrap();
    assert_eq!(gear["kind"], "read");
    assert!(gear["files"][0].to_string().contains('3'), "{gear}");
    assert_rebuilds(&bench);
}
