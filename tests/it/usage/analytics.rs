//! Tool analytics and gap lists: what was called when and on which files, and what could not be read.

use serde_json::{Value, json};

use crate::claude::{FOLDER, SOURCE, prompt_row, row, write};
use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, meta, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::sources::with_home;

/// A time `days` days and an hour ago, so that none is at the edge of a day.
fn days_ago(days: i64) -> String {
    let moment = annals_testkit::clock::now() - jiff::SignedDuration::from_hours(days * 24 + 1);
    format!("{moment:.3}")
}

fn session_id(number: u32) -> String {
    format!("0c1a0000-0000-4000-8000-{number:012}")
}

/// Calls of Claude Code's tools, made `days` days ago, each with its result.
struct Calls {
    session: String,
    lines: Vec<String>,
}

impl Calls {
    fn new(session: u32) -> Calls {
        let session = session_id(session);
        let first = prompt_row(&session, 1, "Oil the gears.");
        Calls { lines: vec![first], session }
    }

    fn made(self, days: i64, name: &str, input: Value) -> Calls {
        self.ended(days, name, input, json!({"content": "so it is"}))
    }

    fn failed(self, days: i64, name: &str, input: Value) -> Calls {
        self.ended(days, name, input, json!({"content": "no such thing", "is_error": true}))
    }

    fn ended(mut self, days: i64, name: &str, input: Value, mut result: Value) -> Calls {
        let number = self.lines.len() as u32 + 1;
        let id = format!("toolu_{}_{number}", self.session);
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let message = json!({
            "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [call], "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        (result["tool_use_id"], result["type"]) = (id.clone().into(), "tool_result".into());
        let answer = json!({"message": {"role": "user", "content": [result]}, "timestamp": days_ago(days)});
        let call = json!({"message": message, "timestamp": days_ago(days)});
        self.lines.push(row(&self.session, number, "assistant", call));
        self.lines.push(row(&self.session, number + 1, "user", answer));
        self
    }

    fn bash(self, days: i64, command: &str) -> Calls {
        self.made(days, "Bash", json!({"command": command}))
    }

    fn write(&self, bench: &Bench) {
        // The prompt is as old as the first call.
        let oldest = serde_json::from_str::<Value>(&self.lines[1]).unwrap()["timestamp"].clone();
        let mut first: Value = serde_json::from_str(&self.lines[0]).unwrap();
        first["timestamp"] = oldest;
        let lines = [&[first.to_string()], &self.lines[1..]].concat();
        write(bench, FOLDER, &self.session, &text_of(&lines));
    }
}

/// A Codex CLI transcript with one command, run `days` days ago, and its exit code.
fn codex_command(bench: &Bench, number: u32, days: i64, command: &str, exit_code: i32) {
    let id = format!("0199a1b2-0000-7000-8000-{number:012}");
    let line = |payload: Value| {
        json!({"timestamp": days_ago(days), "type": "response_item", "payload": payload}).to_string()
    };
    let arguments = json!({"command": ["bash", "-lc", command]}).to_string();
    let output = json!({"output": "", "metadata": {"exit_code": exit_code, "duration_seconds": 0.1}});
    let call_id = format!("call_{number}");
    let lines = [
        meta(&id).replace("2026-11-15T10:00:00.000Z", &days_ago(days)),
        line(json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call_id})),
        line(json!({"type": "function_call_output", "call_id": call_id, "output": output.to_string()})),
    ];
    bench.transcript(&rollout(&id), &lines);
}

/// The analytics of one source; exit code 1 if and only if there are no calls.
fn tools(bench: &Bench, source: &str, days: &str) -> Value {
    let ran = bench.run(&["tools", "--source", source, "--days", days, "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let analytics = answer["sources"][0].clone();
    assert_eq!(analytics["source"], source);
    assert_eq!(ran.code, i32::from(analytics["tool_call_count"] == 0), "{}", ran.stderr);
    analytics
}

/// Names with counts, in order.
fn counts(list: &Value, name: &str) -> Vec<(String, i64)> {
    let count = |entry: &Value| (entry[name].as_str().unwrap().to_owned(), entry["count"].as_i64().unwrap());
    list.as_array().unwrap().iter().map(count).collect()
}

fn tool_counts(analytics: &Value) -> Vec<(&str, i64)> {
    let counts = analytics["tool_counts"].as_object().unwrap().iter();
    counts.map(|(name, count)| (name.as_str(), count.as_i64().unwrap())).collect()
}

#[test]
fn calls_count_in_the_days_they_were_made() {
    let bench = Bench::new();
    for (number, days) in (1..).zip([0, 6, 20, 40, 80, 200]) {
        Calls::new(number).bash(days, "oil gears").write(&bench);
        codex_command(&bench, number, days, "oil gears", 0);
    }
    // What a session did long ago does not count for what it does now.
    Calls::new(7).bash(40, "old").bash(1, "new").write(&bench);
    bench.sync();
    for (days, codex, claude) in [("7", 2, 3), ("30", 3, 4), ("90", 5, 7), ("all", 6, 8)] {
        for (source, calls) in [("codex_cli", codex), (SOURCE, claude)] {
            let analytics = tools(&bench, source, days);
            assert_eq!(analytics["tool_call_count"], calls, "{source} {days}");
            let sum: i64 = tool_counts(&analytics).iter().map(|(_, count)| count).sum();
            let commands = counts(&analytics["top_commands"], "command");
            assert_eq!((sum, commands.iter().map(|(_, count)| count).sum()), (calls, calls), "{analytics}");
            let range = days.parse::<i64>().map_or(Value::Null, Value::from);
            assert_eq!(analytics["date_range_days"], range);
            assert_eq!(commands.iter().any(|(command, _)| command == "old"), source == SOURCE && claude > 4);
        }
    }
    assert_eq!(tools(&bench, SOURCE, "7")["session_count"], 3);
    assert_eq!(tools(&bench, SOURCE, "all")["session_count"], 7);
    let by_default = bench.json(&["tools"]);
    assert_eq!(by_default["sources"][1], tools(&bench, SOURCE, "30"));
    assert_eq!(by_default["next_cursor"], Value::Null);
}

#[test]
fn counts_by_tool_are_the_calls_of_all_sessions() {
    for (source, case) in annals_testkit::fixtures::with_home() {
        let home = case.join("home");
        let bench = Bench::with_home(source, &home);
        bench.sync();
        let called: i64 =
            bench.sessions().iter().map(|session| session["tool_call_count"].as_i64().unwrap()).sum();
        let analytics = tools(&bench, source, "all");
        assert_eq!(analytics["tool_call_count"], called, "{}", home.display());
        let counts = tool_counts(&analytics);
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<i64>(), called, "{}", home.display());
        assert!(counts.is_sorted_by_key(|(name, count)| (-count, *name)), "{counts:?}");
    }
    // Copies in a fork are calls of another session.
    let bench = Bench::new();
    let first = Calls::new(1).bash(2, "oil gears").bash(1, "oil more");
    first.write(&bench);
    let [own, other] = [1, 2].map(|number| format!(r#""{}""#, session_id(number)));
    let copied = first.lines.iter().map(|line| line.replace(&own, &other)).collect();
    let fork = Calls { session: session_id(2), lines: copied };
    fork.bash(0, "oil gears").write(&bench);
    bench.sync();
    let analytics = tools(&bench, SOURCE, "all");
    assert_eq!(tool_counts(&analytics), [("Bash", 3)]);
    assert_eq!(
        counts(&analytics["top_commands"], "command"),
        [("oil gears".into(), 2), ("oil more".into(), 1)]
    );
}

#[test]
fn files_and_commands_come_most_first_then_by_name() {
    let bench = Bench::new();
    let path = |name: &str| json!({"file_path": format!("/home/ada/engine/{name}")});
    let mut calls = Calls::new(1);
    for name in ["gear.rs", "axle.rs", "gear.rs", "wheel.rs", "gear.rs"] {
        calls = calls.made(0, "Read", path(name));
    }
    for name in ["wheel.rs", "axle.rs", "wheel.rs"] {
        let mut input = path(name);
        input["content"] = "round".into();
        calls = calls.made(0, "Write", input);
    }
    let mut input = path("axle.rs");
    (input["old_string"], input["new_string"]) = ("round".into(), "straight".into());
    calls = calls.made(0, "Edit", input);
    for command in ["make oil", "ls", "make oil", "cargo test", "ls", "zig build"] {
        calls = calls.bash(0, command);
    }
    calls.failed(0, "Bash", json!({"command": "false"})).failed(0, "Read", path("none.rs")).write(&bench);
    codex_command(&bench, 1, 0, "exit 3", 3);
    codex_command(&bench, 2, 0, "exit 0", 0);
    bench.sync();
    let analytics = tools(&bench, SOURCE, "7");
    assert_eq!(tool_counts(&analytics), [("Bash", 7), ("Read", 6), ("Write", 3), ("Edit", 1)]);
    assert_eq!(analytics["failed_call_count"], 2);
    let files = |list: &str| -> Vec<(String, i64)> {
        let files = counts(&analytics[list], "path").into_iter();
        files.map(|(path, count)| (path.replace("/home/ada/engine/", ""), count)).collect()
    };
    // A read that failed read nothing.
    let read = [("gear.rs", 3), ("axle.rs", 1), ("wheel.rs", 1)];
    assert_eq!(files("top_files_read"), read.map(|(name, count)| (name.to_owned(), count)));
    let written = [("axle.rs", 2), ("wheel.rs", 2)];
    assert_eq!(files("top_files_written"), written.map(|(name, count)| (name.to_owned(), count)));
    let commands = [("ls", 2), ("make oil", 2), ("cargo test", 1), ("false", 1), ("zig build", 1)];
    let commands = commands.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(counts(&analytics["top_commands"], "command"), commands);
    assert_eq!(tools(&bench, "codex_cli", "7")["failed_call_count"], 1);
    let shown = bench.run(&["tools"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for words in ["Claude Code", "17 calls, 2 failed", "make oil", "gear.rs", "Codex CLI"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
}

#[test]
fn long_lists_end_after_the_twenty_most() {
    let bench = Bench::new();
    let mut calls = Calls::new(1);
    for number in 0..30 {
        let path = format!("/home/ada/engine/{number:02}.rs");
        calls = calls.bash(0, &format!("make {number:02}")).made(0, "Read", json!({"file_path": path}));
    }
    calls.bash(0, "make 29").write(&bench);
    bench.sync();
    let analytics = tools(&bench, SOURCE, "7");
    assert_eq!(tool_counts(&analytics), [("Bash", 31), ("Read", 30)]);
    let commands = counts(&analytics["top_commands"], "command");
    assert_eq!((commands.len(), &commands[0]), (20, &("make 29".into(), 2)));
    assert_eq!(commands[19], ("make 18".into(), 1));
    let files = counts(&analytics["top_files_read"], "path");
    assert_eq!((files.len(), files[19].0.as_str()), (20, "/home/ada/engine/19.rs"));
}

#[test]
fn an_archive_without_calls_gives_hints() {
    let bench = Bench::new();
    for prepare in [false, true] {
        if prepare {
            bench.transcript(&rollout(ID), &conversation(ID, "gears"));
            bench.sync();
        }
        let ran = bench.run(&["tools"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        assert!(ran.stderr.contains("no tool calls") && ran.stderr.contains("hint: "), "{}", ran.stderr);
        let ran = bench.run(&["tools", "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let status = if prepare { "available" } else { "unavailable" };
        let sources = answer["sources"].as_array().unwrap();
        assert!(
            with_home().iter().all(|source| sources.iter().any(|source_row| source_row["source"] == *source)),
            "{answer}"
        );
        let codex = sources.iter().find(|source_row| source_row["source"] == "codex_cli").unwrap();
        assert_eq!(codex["source_status"], status, "{answer}");
        for source_row in sources {
            assert!(!source_row["source_status"].as_str().unwrap().is_empty(), "{source_row}");
            assert_eq!((&source_row["tool_call_count"], &source_row["tool_counts"]), (&0.into(), &json!({})));
            assert_eq!(
                (&source_row["top_commands"], &source_row["top_files_read"]),
                (&json!([]), &json!([]))
            );
        }
    }
}

#[test]
fn days_that_are_no_number_are_refused_with_a_hint() {
    let bench = Bench::new();
    for verb in ["tools", "usage"] {
        for days in ["0", "-1", "x", "", "1.5", "ALL", "7d", "99999999999999999999"] {
            let ran = bench.run(&[verb, &format!("--days={days}")]);
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb} {days}");
            assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("all"), "{}", ran.stderr);
        }
    }
    let ran = bench.run(&["tools", "--source", "nobody"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}

#[test]
fn unreadable_files_are_listed_until_they_can_be_read() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.sync();
    assert_eq!(bench.json(&["gaps"]), json!({"gaps": [], "next_cursor": null}));
    assert!(bench.run(&["gaps"]).stdout.contains("no gaps"));

    let other = "0199a1b2-0000-7000-8000-00000000000f";
    let name = format!("{}.zst", rollout(other));
    let whole = zstd::stream::encode_all(text_of(&conversation(other, "axles")).as_bytes(), 3).unwrap();
    let path = bench.transcript(&name, &[]);
    append(&path, "no archive of any kind");
    bench.sync();
    let gaps = bench.json(&["gaps"]);
    let [gap] = gaps["gaps"].as_array().unwrap().as_slice() else { panic!("{gaps}") };
    assert_eq!((&gap["source"], &gap["status"]), (&"codex_cli".into(), &"pending".into()));
    assert!(gap["key"].as_str().unwrap().ends_with(&name), "{gap}");
    assert!(!gap["reason"].as_str().unwrap().is_empty() && gap["attempts"].as_i64().unwrap() >= 1, "{gap}");
    let shown = bench.run(&["gaps"]);
    assert!(shown.code == 0 && shown.stdout.contains("pending"), "{}", shown.stdout);
    assert_eq!(bench.json(&["gaps", "--source", SOURCE])["gaps"], json!([]));

    std::fs::write(&path, whole).unwrap();
    bench.sync();
    assert_eq!(bench.json(&["gaps"])["gaps"], json!([]));
    let all = bench.json(&["gaps", "--all"]);
    assert_eq!(all["gaps"][0]["status"], "recovered", "{all}");
    assert_eq!(bench.sessions().len(), 2);
    let ran = bench.run(&["gaps", "--source", "nobody"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}
