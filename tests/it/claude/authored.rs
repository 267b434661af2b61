//! What a person keeps in Claude Code's home and in repositories beside transcripts: nothing of it is lost.

use std::path::Path;

use serde_json::{Value, json};

use crate::claude::{FOLDER, ONE, answer_row, call, prompt_row, result, row, session, talk, write};
use annals_testkit::Bench;
use annals_testkit::checks::{assert_rebuilds, assert_restores_of};
use annals_testkit::codex::text_of;

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The data of every record of a stream.
fn records(bench: &Bench, stream: &str) -> Vec<Value> {
    let ran = bench.run(&["records", &format!("claude_code/{stream}")]);
    let records = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["data"].clone()).collect()
}

fn ids(bench: &Bench, stream: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        records(bench, stream).iter().map(|data| data["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn audit(bench: &Bench) -> Value {
    let audit = bench.json(&["audit"]);
    let sources = audit["sources"].as_array().unwrap();
    sources.iter().find(|audit| audit["source"] == "claude_code").unwrap().clone()
}

fn named(audit: &Value, list: &str) -> Vec<String> {
    let list = audit[list].as_array().unwrap().iter();
    list.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hooks_notes_and_unknown_texts_are_kept() {
    let bench = Bench::new();
    let home = bench.claude();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    put(&home.join("hooks/pre/check.sh"), "#!/bin/sh\nexit 0\n");
    put(&home.join("RTK.md"), "Few words.\n");
    put(&home.join("captured-insights.md"), "Gears need oil.\n");
    put(&home.join("statusline"), "#!/bin/sh\necho gears\n");
    put(&home.join("notes/ideas.txt"), "A bigger gauge.\n");
    put(&home.join("large.txt"), &"x".repeat(1_000_000));
    put(&home.join("picture"), "\u{0}\u{1}");
    for secret in ["tokens.json", "notes/.env", "notes/id_ed25519", "aws/credentials", "hooks/.env"] {
        put(&home.join(secret), "planted\n");
    }
    put(&home.join(".git/config"), "[core]\n");
    bench.sync();
    assert_eq!(ids(&bench, "hooks"), ["pre/check.sh"]);
    assert_eq!(records(&bench, "hooks")[0]["body"], "#!/bin/sh\nexit 0\n");
    assert_eq!(ids(&bench, "project_instructions"), ["RTK.md", "captured-insights.md"]);
    let audit = audit(&bench);
    assert_eq!(named(&audit, "unknown_files"), ["notes/ideas.txt", "statusline"]);
    assert_eq!(named(&audit, "unaccounted"), ["large.txt", "picture"]);
    assert!(bench.run(&["audit"]).stdout.contains("unknown file  notes/ideas.txt"));
    assert_eq!(bench.sync()["captured_bytes"], 0);
    assert_rebuilds(&bench);
    let target = bench.folder.path().join("restored");
    assert_eq!(bench.run(&["restore", "--to", target.to_str().unwrap()]).code, 0);
    let restored: Vec<String> = annals_testkit::files::files_below(&target)
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    assert!(restored.contains(&"A bigger gauge.\n".to_owned()));
    assert!(!restored.contains(&"planted\n".to_owned()));
}

/// A wrong setting must not take somebody's folder for a home.
#[test]
fn a_folder_that_is_no_home_is_left_alone() {
    let bench = Bench::new();
    put(&bench.claude().join("letters/one.txt"), "Dear Charles\n");
    bench.sync();
    assert!(!bench.json(&["sources", "--files"]).to_string().contains("one.txt"));
}

#[test]
fn repositories_are_walked_from_the_session_to_their_root() {
    let bench = Bench::new();
    let top = bench.folder.path().canonicalize().unwrap();
    let engine = top.join("engine");
    put(&top.join("CLAUDE.md"), "Not of the repository.\n");
    put(&engine.join(".git/worktrees/tree/HEAD"), "ref: refs/heads/tree\n");
    for (path, text) in [
        ("CLAUDE.md", "Oil first.\n"),
        ("CLAUDE.local.md", "Mine.\n"),
        ("AGENTS.md", "All.\n"),
        (".claude/CLAUDE.md", "Inside.\n"),
        (".claude/settings.local.json", "{}"),
        (".claude/commands/oil.md", "Oil.\n"),
        (".claude/skills/dial/SKILL.md", "---\nname: dial\n---\nDial.\n"),
        // A folder of the home with this name is never opened.
        (".claude/skills/debug/SKILL.md", "Debug.\n"),
        (".claude/agents/tester.md", "Test.\n"),
        (".claude/rules/rust.md", "Rust.\n"),
        (".claude/hooks/check.sh", "exit 0\n"),
        (".claude/skills/dial/.env", "KEY=planted\n"),
        ("gauge/CLAUDE.md", "Gauges.\n"),
        ("other/CLAUDE.md", "Nobody ran here.\n"),
        ("README.md", "No instructions.\n"),
    ] {
        put(&engine.join(path), text);
    }
    let tree = top.join("tree");
    put(&tree.join(".git"), &format!("gitdir: {}\n", engine.join(".git/worktrees/tree").display()));
    put(&tree.join("CLAUDE.md"), "A worktree.\n");
    std::fs::create_dir_all(tree.join("src")).unwrap();
    std::fs::create_dir_all(engine.join("gauge/src")).unwrap();
    for (number, folder) in [engine.join("gauge/src"), tree.join("src")].iter().enumerate() {
        let id = format!("0c1a0000-0000-4000-8000-0000000001{number:02}");
        let lines = text_of(&talk(&id)).replace("/home/ada/engine", folder.to_str().unwrap());
        write(&bench, FOLDER, &id, &lines);
    }
    bench.sync();
    let (engine, tree) = (engine.to_str().unwrap(), tree.to_str().unwrap());
    let mut expected: Vec<String> =
        [".claude/CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", "CLAUDE.md", "rules/rust.md"]
            .map(|name| format!("{engine}#{name}"))
            .to_vec();
    expected.extend([format!("{engine}/gauge#CLAUDE.md"), format!("{tree}#CLAUDE.md")]);
    expected.sort();
    assert_eq!(ids(&bench, "project_instructions"), expected);
    for (stream, name) in [
        ("settings", "settings.local.json"),
        ("slash_commands", "oil"),
        ("agents", "tester"),
        ("hooks", "check.sh"),
    ] {
        assert_eq!(ids(&bench, stream), [format!("{engine}#{name}")], "{stream}");
    }
    assert_eq!(ids(&bench, "skills"), [format!("{engine}#debug"), format!("{engine}#dial")]);
    let skills = records(&bench, "skills");
    let skill = skills.iter().find(|skill| skill["name"] == "dial").unwrap();
    assert_eq!(skill["scope"], "project");
    assert_eq!(skill["path"], format!("{engine}/.claude/skills/dial/SKILL.md"));
    assert_eq!(bench.sync()["captured_bytes"], 0);
    assert_rebuilds(&bench);
}

#[test]
fn notes_name_their_project_and_snapshots_their_content() {
    let bench = Bench::new();
    let home = bench.claude();
    let name = "0123456789abcdef@v1";
    let snapshot = json!({"messageId": "m", "trackedFileBackups": {
        "src/gear.rs": {"backupFileName": name, "version": 1, "backupTime": "2026-03-02T10:00:00.000Z"}}});
    let line = row(ONE, 9, "file-history-snapshot", json!({"messageId": "m", "snapshot": snapshot}));
    let mut lines = talk(ONE);
    lines.push(line);
    write(&bench, FOLDER, ONE, &text_of(&lines));
    put(&home.join("projects").join(FOLDER).join("memory/tabs.md"), "Tabs.\n");
    put(&home.join("projects/-nowhere/memory/deep/other.md"), "Other.\n");
    put(&home.join("file-history").join(ONE).join(name), "fn gear() {}\n");
    put(&home.join(format!("todos/{ONE}-agent-{ONE}.json")), r#"[{"content":"oil","status":"pending"}]"#);
    put(&home.join(format!("tasks/{ONE}/1.json")), r#"{"id":"1","subject":"Oil","status":"pending"}"#);
    bench.sync();
    let notes = records(&bench, "memory_notes");
    let tabs = notes.iter().find(|note| note["filename"] == "tabs.md").unwrap();
    assert_eq!(tabs["project_path"], "/home/ada/engine");
    assert!(tabs["updated_at"].is_string(), "{tabs}");
    let other = notes.iter().find(|note| note["filename"] == "deep/other.md").unwrap();
    assert_eq!(other["project_path"], Value::Null, "nobody knows");
    let shot = &records(&bench, "file_snapshots")[0];
    assert_eq!(shot["size"], 13);
    assert_eq!(shot["hash"], blake3::hash(b"fn gear() {}\n").to_hex().as_str());
    let mut todos = records(&bench, "todos");
    todos.sort_by_key(|todo| todo["id"].as_str().unwrap().to_owned());
    assert_eq!(todos[0]["id"], format!("{ONE}-agent-{ONE}"));
    assert_eq!(todos[0]["todos"][0]["content"], "oil");
    assert_eq!((&todos[1]["id"], &todos[1]["task_id"]), (&json!(format!("{ONE}/1")), &json!("1")));
    assert_restores_of(&bench, "claude_code", &home);
    assert_rebuilds(&bench);

    let without = Bench::new();
    annals_testkit::files::copy_folder(&home, &without.claude());
    let ran = without.command(&["sync"]).env("ANNALS_CLAUDE_FILE_SNAPSHOTS", "no").output().unwrap();
    assert!(ran.status.success());
    let shot = &records(&without, "file_snapshots")[0];
    assert_eq!((&shot["path"], &shot["hash"]), (&json!("src/gear.rs"), &Value::Null));
    assert!(!without.json(&["sources", "--files"]).to_string().contains("file-history/"));
}

#[test]
fn a_command_is_a_title() {
    for (text, title) in [
        (
            "<command-message>ns:hello is running…</command-message>\n<command-name>/ns:hello</command-name>\n<command-args>world</command-args>",
            "/ns:hello world",
        ),
        (
            "<command-name>/ns:hello</command-name>\n            <command-message>ns:hello</command-message>\n            <command-args>world</command-args>",
            "/ns:hello world",
        ),
        ("<command-message>review</command-message>\n<command-name>/review</command-name>", "/review"),
    ] {
        let bench = Bench::new();
        let expanded = row(
            ONE,
            2,
            "user",
            json!({"isMeta": true, "message": {"role": "user", "content": [{"type": "text", "text": "Say hello to world."}]}}),
        );
        write(&bench, FOLDER, ONE, &text_of(&[prompt_row(ONE, 1, text), expanded]));
        bench.sync();
        assert_eq!(session(&bench, ONE)["title"], title, "{text}");
    }
}

#[test]
fn a_command_that_only_reads_is_a_read() {
    let bench = Bench::new();
    let lines = [
        prompt_row(ONE, 1, "Look at the gear."),
        answer_row(ONE, 2, "msg_1", call("toolu_1", "cat gear.rs"), 9),
        result(ONE, 3, "toolu_1", "fn gear() {}"),
        answer_row(ONE, 4, "msg_2", call("toolu_2", "cat gear.rs | wc"), 9),
        result(ONE, 5, "toolu_2", "1 3 13"),
    ];
    write(&bench, FOLDER, ONE, &text_of(&lines));
    bench.sync();
    let tools = bench.json(&["tools", "--days", "all", "--source", "claude_code"])["sources"][0].clone();
    let read = tools["top_files_read"].as_array().unwrap();
    assert_eq!(read.len(), 1, "{tools}");
    assert_eq!((&read[0]["path"], &read[0]["count"]), (&json!("/home/ada/engine/gear.rs"), &json!(1)));
    assert_rebuilds(&bench);
}
