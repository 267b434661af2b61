//! `annals show`: a conversation that can be read without colour, its views, and a live session that is followed.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::codex::{ID, call, line, meta, output, prompt, rollout};

const SESSION: &str = "5e551011-0000-4000-8000-0000000000c1";

fn row(kind: &str, number: usize, message: Value) -> Value {
    json!({"type": kind, "uuid": format!("{SESSION}-{number}"), "sessionId": SESSION, "cwd": "/home/ada/engine",
        "version": "2.1.112", "timestamp": format!("2024-03-02T09:00:{number:02}.000Z"), "message": message})
}

fn answer(number: usize, block: Value) -> Value {
    let id = format!("msg_{number}");
    row("assistant", number, json!({"id": id, "role": "assistant", "model": "made-up-1", "content": [block]}))
}

fn result(number: usize, id: &str, text: &str, detail: Value, failed: bool) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed});
    let mut row = row("user", number, json!({"role": "user", "content": [block]}));
    row["toolUseResult"] = detail;
    row
}

/// Thinking, an edit, a command that fails, and an answer.
fn rows() -> Vec<Value> {
    let edit = json!({"file_path": "/home/ada/engine/gears.py", "old_string": "\treturn 1\n", "new_string": "\treturn 2\n\treturn 3\n"});
    let patch = json!({"filePath": "/home/ada/engine/gears.py", "oldString": "\treturn 1\n", "newString": "\treturn 2\n\treturn 3\n",
        "originalFile": "def gears():\n\treturn 1\n", "userModified": false, "replaceAll": false,
        "structuredPatch": [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3,
            "lines": [" def gears():", "-    return 1", "+    return 2", "+    return 3"]}]});
    vec![
        row("user", 1, json!({"role": "user", "content": "Count the gears"})),
        answer(2, json!({"type": "thinking", "thinking": "One is too few.", "signature": "x"})),
        answer(3, json!({"type": "text", "text": "Two, then."})),
        answer(4, json!({"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": edit})),
        result(5, "toolu_1", "The file has been updated successfully.", patch, false),
        answer(
            6,
            json!({"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "make gears"}}),
        ),
        result(7, "toolu_2", "Exit code 2\nno such gear", json!("Error: Exit code 2\nno such gear"), true),
        answer(8, json!({"type": "text", "text": "It does not build."})),
    ]
}

fn write(bench: &Bench, rows: &[Value]) -> std::path::PathBuf {
    let path = bench.claude().join(format!("projects/-home-ada-engine/{SESSION}.jsonl"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    path
}

fn shown(bench: &Bench, options: &[&str]) -> String {
    let ran = bench.run(&[&["show", SESSION], options].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let from = ran.stdout.find("\n──").unwrap_or(ran.stdout.len());
    ran.stdout[from..].to_owned()
}

#[test]
fn a_conversation_is_readable_without_colour() {
    let bench = Bench::new();
    write(&bench, &rows());
    bench.sync();
    expect![[r#"

        ── user 09:00:01
        Count the gears

        ── thinking 09:00:02
        One is too few.

        ── assistant 09:00:03
        Two, then.

        ── Edit: /home/ada/engine/gears.py 09:00:04
           update /home/ada/engine/gears.py
           @@ -2 +2 @@
           -	return 1
           +	return 2
           +	return 3

        ── $ make gears 09:00:06
           │ Exit code 2
           │ no such gear
           (exit 2)

        ── assistant 09:00:08
        It does not build.
    "#]]
    .assert_eq(&shown(&bench, &[]));
    // What the diff replaces is still there for those who want everything.
    assert!(shown(&bench, &["--full"]).contains("   │ The file has been updated successfully."));
}

#[test]
fn views_keep_prompts_edits_or_failures() {
    let bench = Bench::new();
    write(&bench, &rows());
    bench.sync();
    let headings = |view: &str| -> Vec<String> {
        let text = shown(&bench, &["--view", view]);
        let headings = text.lines().filter_map(|line| line.strip_prefix("── "));
        headings.map(|heading| heading.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(headings("prompts"), ["user", "assistant", "assistant"]);
    assert_eq!(headings("edits"), ["Edit:"]);
    assert_eq!(headings("failures"), ["$"]);
    assert_eq!(headings("all"), ["user", "thinking", "assistant", "Edit:", "$", "assistant"]);
    let json = bench.json(&["show", SESSION, "--view", "failures"]);
    let blocks: Vec<&Value> = json["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|entry| entry["blocks"].as_array().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2, "{json}");
    assert_eq!((&blocks[0]["type"], &blocks[1]["ok"]), (&json!("tool_call"), &json!(false)));
}

#[test]
fn a_patch_of_codex_is_a_diff() {
    let bench = Bench::new();
    let patch = "*** Begin Patch\n*** Update File: gears.py\n@@\n-one\n+two\n*** End Patch\n";
    let made =
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_p", "input": patch});
    let done = json!({"type": "custom_tool_call_output", "call_id": "call_p",
        "output": "{\"output\":\"Success. Updated the following files:\\nM gears.py\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.0}}"});
    let mut lines = vec![meta(ID)];
    lines.extend(prompt("two, please"));
    lines
        .extend([line(20, "response_item", &made.to_string()), line(21, "response_item", &done.to_string())]);
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let text = bench.run(&["show", ID]).stdout;
    assert!(text.contains("\n   -one\n   +two\n") && !text.contains("Success."), "{text}");
}

#[test]
fn a_live_session_is_followed() {
    let bench = Bench::new();
    let mut lines = vec![meta(ID)];
    lines.extend(prompt("an old question"));
    lines.extend(annals_testkit::codex::answer("an old answer"));
    lines.extend(prompt("a new question"));
    lines.push(call(30, "call_f"));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let mut child = bench.command(&["show", ID, "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let (sender, printed) = mpsc::channel();
    let stdout = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut text = String::new();
    let mut wait_for = |word: &str| {
        while !text.contains(word) {
            match printed.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => text.push_str(&format!("{line}\n")),
                Err(_) => panic!("{word:?} was never printed:\n{text}"),
            }
        }
        text.clone()
    };
    wait_for("── $ ls call_f");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(file, "{}", output(31, "call_f")).unwrap();
    wait_for("out of call_f");
    for line in annals_testkit::codex::answer("the newest answer") {
        writeln!(file, "{line}").unwrap();
    }
    let text = wait_for("the newest answer");
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, steps) = text.split_once("──").unwrap();
    assert!(!steps.contains("an old question"), "it starts at the last prompt: {text}");
    assert_eq!(text.matches("── $ ls call_f").count(), 1, "{text}");
}
