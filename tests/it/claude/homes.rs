//! Claude Code's homes: where they are found, what the client deletes from them, and the files next to transcripts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude::{FOLDER, ONE, SOURCE, TALK, THREE, TWO, counts, prompt_row, session, talk, write};
use annals_testkit::checks::{assert_rebuilds, assert_restores_of, assert_same};
use annals_testkit::codex::text_of;
use annals_testkit::files::{copy_folder, files_below};
use annals_testkit::{Bench, Ran, fixtures};

fn fixture(name: &str) -> PathBuf {
    fixtures::case(SOURCE, name).join("home")
}

fn records(bench: &Bench, stream: &str, options: &[&str]) -> Vec<Value> {
    let stream = format!("claude_code/{stream}");
    let ran = bench.run(&[&["records", stream.as_str()], options].concat());
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Deletes what the client deletes at startup: transcripts, their directories, backups, to-do lists, plans, pastes.
fn sweep(home: &Path) {
    for folder in ["file-history", "todos", "tasks", "plans", "paste-cache"] {
        let _ = std::fs::remove_dir_all(home.join(folder));
    }
    for file in files_below(&home.join("projects")) {
        if !file.components().any(|part| part.as_os_str() == "memory") {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn everything_outlives_the_clients_sweep() {
    let ended = regex::Regex::new(r#""deleted_at":"[^"]*""#).unwrap();
    for (source, case) in fixtures::with_home() {
        if source != SOURCE {
            continue;
        }
        let home = case.join("home");
        let bench = Bench::with_home(SOURCE, &home);
        bench.sync();
        let before = bench.everything();
        assert!(!before.contains(r#""source_gone": true"#));
        sweep(&bench.claude());
        bench.sync();
        // The history is not swept.
        for session in bench.sessions().iter().filter(|session| session["history_only"] == false) {
            assert_eq!(session["source_gone"], true, "{}: {session}", case.display());
        }
        let after = bench.everything();
        let still = |text: &str| {
            let text = text.replace(r#""source_gone": true"#, r#""source_gone": false"#);
            let text = text.replace(r#""source_gone":true"#, r#""source_gone":false"#);
            ended.replace_all(&text, r#""deleted_at":null"#).into_owned()
        };
        assert_same(&still(&before), &still(&after));
        assert_restores_of(&bench, SOURCE, &home);
        assert_rebuilds(&bench);
    }
}

#[test]
fn a_session_swept_away_comes_back_as_itself() {
    let bench = Bench::with_home(SOURCE, &fixture("agents_below"));
    bench.sync();
    let before = bench.sessions();
    sweep(&bench.claude());
    bench.sync();
    copy_folder(&fixture("agents_below"), &bench.claude());
    bench.sync();
    assert_eq!(bench.sessions(), before);
    assert_rebuilds(&bench);
}

#[test]
fn a_list_of_homes_is_read_as_one_source() {
    let bench = Bench::new();
    let (first, second) = (bench.folder.path().join("first"), bench.folder.path().join("second"));
    for (home, id) in [(&first, ONE), (&second, TWO)] {
        let path = home.join("projects").join(FOLDER).join(format!("{id}.jsonl"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text_of(&talk(id))).unwrap();
    }
    // One session is in both homes.
    let both = second.join("projects").join(FOLDER).join(format!("{ONE}.jsonl"));
    std::fs::write(both, text_of(&talk(ONE))).unwrap();
    // The default home is not read if another is configured.
    write(&bench, FOLDER, "0c1a0000-0000-4000-8000-00000000000d", &text_of(&talk(TWO)));
    let list = format!("{}, {}", first.display(), second.display());
    let run = |arguments: &[&str]| {
        Ran::of(bench.command(arguments).env("CLAUDE_CONFIG_DIR", &list).output().unwrap())
    };
    let ran = run(&["sync", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let sessions = bench.sessions();
    let sum = |name: &str| sessions.iter().map(|session| session[name].as_i64().unwrap()).sum::<i64>();
    assert!(sessions.iter().all(|session| session["session_id"] == ONE || session["session_id"] == TWO));
    assert_eq!(sum("message_count"), 2 * TALK[0], "{sessions:?}");
    assert_eq!(sum("tool_call_count"), 2 * TALK[3]);
    let again: Value = serde_json::from_str(&run(&["sync", "--json"]).stdout).unwrap();
    for report in again["sources"].as_array().unwrap() {
        assert_eq!(report["captured_bytes"], 0, "{report}");
    }
    assert_rebuilds(&bench);
}

#[test]
fn a_projects_folder_alone_is_enough_and_can_be_narrowed() {
    let chosen = |include: &str, exclude: &str| -> Vec<String> {
        let bench = Bench::new();
        let projects = bench.folder.path().join("somewhere");
        for (number, folder) in ["-home-ada-engine", "-home-ada-poems", "-tmp-try"].into_iter().enumerate() {
            let id = format!("0c1a0000-0000-4000-8000-{number:012}");
            let path = projects.join(folder).join(format!("{id}.jsonl"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text_of(&talk(&id))).unwrap();
        }
        let mut command = bench.command(&["sync", "--json"]);
        command.env("CLAUDE_CODE_PROJECTS_DIR", &projects);
        command.env("CLAUDE_CODE_PROJECTS_DIR_INCLUDE", include);
        command.env("CLAUDE_CODE_PROJECTS_DIR_EXCLUDE", exclude);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut folders: Vec<String> = bench
            .accounts()
            .iter()
            .map(|file| file["path"].as_str().unwrap().split('/').rev().nth(1).unwrap().to_owned())
            .collect();
        folders.sort();
        for session in bench.sessions() {
            assert_eq!(counts(&bench, session["session_id"].as_str().unwrap()), TALK);
        }
        folders
    };
    assert_eq!(chosen("", ""), ["-home-ada-engine", "-home-ada-poems", "-tmp-try"]);
    assert_eq!(chosen("-home-*", ""), ["-home-ada-engine", "-home-ada-poems"]);
    assert_eq!(chosen("", "-tmp-*,*poems"), ["-home-ada-engine"]);
    assert_eq!(chosen("-home-*, -tmp-try", "*engine"), ["-home-ada-poems", "-tmp-try"]);
    assert_eq!(chosen("/home/ada/*", ""), ["-home-ada-engine", "-home-ada-poems"]);
    assert_eq!(chosen("", "/tmp/try/"), ["-home-ada-engine", "-home-ada-poems"]);
}

/// Whatever the client keeps elsewhere of a session in such a project is left out too.
#[test]
fn an_excluded_project_leaves_nothing() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    write(&bench, "-home-ada-diary", TWO, &text_of(&talk(TWO)));
    let beside = |session: &str| {
        [
            format!("todos/{session}-agent-{session}.json"),
            format!("tasks/{session}/1.json"),
            format!("file-history/{session}/0011223344556677@v1"),
        ]
    };
    for path in [ONE, TWO].into_iter().flat_map(beside) {
        let path = bench.claude().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "[]").unwrap();
    }
    let mut command = bench.command(&["sync", "--json"]);
    command.env("CLAUDE_CODE_PROJECTS_DIR_EXCLUDE", "/home/ada/diary,no-such-*");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let paths: Vec<String> =
        bench.accounts().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths.iter().filter(|path| path.contains(ONE)).count(), 4, "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains(TWO)), "{paths:?}");
    assert!(
        ran.stdout.contains("no project matches the pattern no-such-* of the settings"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("pattern /home/ada/diary"), "{}", ran.stdout);
}

/// The history has lines of every project, and refers to pastes and images: those of an excluded project are nowhere.
#[test]
fn an_excluded_project_leaves_no_line_of_the_history() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    let diary = "DIARY_WORD";
    let typed = |session: &str, project: &str, second: i64, display: &str, paste: &str| {
        let pasted = json!({"1": {"id": 1, "type": "text", "contentHash": paste}});
        json!({"display": display, "pastedContents": pasted, "timestamp": 1_772_445_600_000_i64 + second * 1_000,
            "project": project, "sessionId": session})
        .to_string()
    };
    let history = [
        typed(ONE, "/home/ada/engine", 1, "Wind the flywheel", "aaaa"),
        typed(TWO, "/home/ada/diary", 2, &format!("Dear {diary}"), "bbbb"),
        typed(THREE, "/home/ada/lamp", 3, "Trim the wick", "cccc"),
        typed(TWO, "/home/ada/diary", 4, &format!("More {diary}"), "aaaa"),
    ];
    let put = |path: &str, text: &str| {
        let path = bench.claude().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("history.jsonl", &(history.join("\n") + "\n"));
    for paste in ["aaaa", "cccc"] {
        put(&format!("paste-cache/{paste}.txt"), "a paste");
    }
    for paste in ["bbbb", "dddd"] {
        put(&format!("paste-cache/{paste}.txt"), diary);
    }
    put(&format!("image-cache/{TWO}/1.png"), diary);
    put(&format!("image-cache/{THREE}/1.png"), "an image");
    put(&format!("todos/{TWO}-agent-{TWO}.json"), &format!("[\"{diary}\"]"));
    let run = |exclude: &str, arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("CLAUDE_CODE_PROJECTS_DIR_EXCLUDE", exclude);
        let ran = Ran::of(command.output().unwrap());
        // A search may find nothing.
        assert!(ran.code < 2, "{}", ran.stderr);
        ran.stdout
    };
    let has_diary = || {
        let target = bench.folder.path().join("restored");
        run("", &["restore", "--source", SOURCE, "--to", target.to_str().unwrap()]);
        let restored: Vec<String> = files_below(&target)
            .iter()
            .map(|path| format!("{path:?}{}", String::from_utf8_lossy(&std::fs::read(path).unwrap())))
            .collect();
        std::fs::remove_dir_all(&target).unwrap();
        let answers = [
            run("", &["search", diary]),
            run("", &["sessions", "--json"]),
            run("", &["records", "claude_code/history", "--full"]),
            restored.concat(),
        ];
        answers.map(|answer| answer.contains(diary) || answer.contains(TWO))
    };
    run("/home/ada/diary", &["sync"]);
    assert_eq!(has_diary(), [false; 4]);
    assert_eq!(records(&bench, "history", &[]).len(), 2);
    let paths: Vec<String> =
        bench.accounts().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    let elsewhere: Vec<&str> =
        paths.iter().map(String::as_str).filter(|path| path.contains("-cache/")).collect();
    let image = format!("image-cache/{THREE}/1.png");
    assert_eq!(elsewhere, [image.as_str(), "paste-cache/aaaa.txt", "paste-cache/cccc.txt"]);
    let audit = run("/home/ada/diary", &["audit", "--json"]);
    assert!(audit.contains("lines of projects that are excluded in the settings"), "{audit}");

    // Appends go on, excluded or not, and half a line waits until its project is known.
    let more = typed(TWO, "/home/ada/diary", 5, &format!("Again {diary}"), "eeee");
    let (half, rest) = more.split_at(40);
    let whole = history.join("\n") + "\n";
    put("history.jsonl", &format!("{whole}{half}"));
    run("/home/ada/diary", &["sync"]);
    assert_eq!(has_diary(), [false; 4]);
    let last = typed(ONE, "/home/ada/engine", 6, "Stop the flywheel", "aaaa");
    put("history.jsonl", &format!("{whole}{half}{rest}\n{last}\n"));
    run("/home/ada/diary", &["sync"]);
    assert_eq!(has_diary(), [false; 4]);
    assert_eq!(records(&bench, "history", &[]).len(), 3);
    assert_rebuilds(&bench);

    // Once it is no longer excluded, it is there, although no file changed.
    run("", &["sync"]);
    assert_eq!(has_diary(), [true; 4]);
    assert_eq!(records(&bench, "history", &[]).len(), 6);
    assert_rebuilds(&bench);
}

/// Plans are beside the projects, and have the name that the lines of their session have.
#[test]
fn plans_of_an_excluded_project_are_left_out() {
    let bench = Bench::new();
    let named = |session: &str, slug: &str| {
        let lines = talk(session).into_iter();
        let lines: Vec<String> =
            lines.map(|line| line.replacen('{', &format!("{{\"slug\":\"{slug}\","), 1)).collect();
        text_of(&lines)
    };
    write(&bench, FOLDER, ONE, &named(ONE, "brisk-otter"));
    write(&bench, "-home-ada-diary", TWO, &named(TWO, "quiet-deer"));
    let plans = bench.claude().join("plans");
    std::fs::create_dir_all(&plans).unwrap();
    for plan in ["brisk-otter", "quiet-deer", "quiet-deer-agent-a1", "by-hand"] {
        std::fs::write(plans.join(format!("{plan}.md")), format!("The plan of {plan}")).unwrap();
    }
    let captured = |exclude: &str| -> Vec<String> {
        let mut command = bench.command(&["sync"]);
        command.env("CLAUDE_CODE_PROJECTS_DIR_EXCLUDE", exclude);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let paths = bench.accounts().into_iter().map(|file| file["path"].as_str().unwrap().to_owned());
        paths.filter(|path| path.starts_with("plans/")).collect()
    };
    assert_eq!(captured("/home/ada/diary"), ["plans/brisk-otter.md", "plans/by-hand.md"]);
    assert_eq!(captured("").len(), 4);
}

#[test]
fn the_second_usual_place_is_read_too() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    let second = bench.user().join(".config/claude/projects").join(FOLDER).join(format!("{TWO}.jsonl"));
    std::fs::create_dir_all(second.parent().unwrap()).unwrap();
    std::fs::write(second, text_of(&talk(TWO))).unwrap();
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    assert_eq!(counts(&bench, TWO), TALK);
    assert_rebuilds(&bench);
}

#[test]
fn sessions_that_the_client_deletes_soon_are_reported() {
    let now = annals_testkit::clock::since_1970().as_secs();
    // A day as the archive itself would print it.
    let day = |ago: u64| {
        let bench = Bench::new();
        let millis = (now - ago * 86_400) * 1_000;
        std::fs::create_dir_all(bench.claude()).unwrap();
        let line = json!({"display": "x", "timestamp": millis}).to_string();
        std::fs::write(bench.claude().join("history.jsonl"), line + "\n").unwrap();
        bench.sync();
        records(&bench, "history", &[])[0]["at"].as_str().unwrap().to_owned()
    };
    let bench = Bench::new();
    let days: Vec<(u64, String)> = [1, 10, 25, 29, 58].into_iter().map(|ago| (ago, day(ago))).collect();
    for (number, (_, at)) in days.iter().enumerate() {
        let id = format!("0c1a0000-0000-4000-8000-{number:012}");
        let mut row: Value = serde_json::from_str(&prompt_row(&id, 1, "An old question.")).unwrap();
        row["timestamp"] = at.as_str().into();
        write(&bench, FOLDER, &id, &format!("{row}\n"));
    }
    bench.sync();
    let card = || {
        let cards = bench.json(&["sources"]);
        let cards = cards["sources"].as_array().unwrap().clone();
        cards.into_iter().find(|card| card["source"] == SOURCE).unwrap()
    };
    assert_eq!((&card()["retention_days"], &card()["deleted_soon"]), (&json!(30), &json!(3)));
    assert!(bench.run(&["sources"]).stdout.contains("3 sessions about to be deleted by the client"));
    for (period, soon) in [(60, 1), (365, 0), (12, 4)] {
        let settings = json!({"cleanupPeriodDays": period}).to_string();
        std::fs::write(bench.claude().join("settings.json"), settings).unwrap();
        bench.sync();
        assert_eq!((&card()["retention_days"], &card()["deleted_soon"]), (&json!(period), &json!(soon)));
    }
}

#[test]
fn files_next_to_transcripts_have_records() {
    let bench = Bench::with_home(SOURCE, &fixture("agents_below"));
    bench.sync();
    let main = "30cc0000-0000-4000-8000-000000000001";
    let full = records(&bench, "tool_results_full", &["--full"]);
    assert_eq!(full.len(), 1);
    let file = format!("projects/-home-ada-engine/{main}/tool-results/bq1x2y3z4.txt");
    let whole = std::fs::read_to_string(bench.claude().join(file)).unwrap();
    assert_eq!(full[0]["data"]["text"], *whole);
    assert_eq!(full[0]["data"]["bytes"], whole.len());
    assert_eq!(full[0]["session_id"], main);

    let snapshots = records(&bench, "file_snapshots", &[]);
    assert_eq!(snapshots.len(), 1, "repeated rows speak of one file: {snapshots:?}");
    let snapshot = &snapshots[0]["data"];
    assert_eq!((&snapshot["path"], &snapshot["version"]), (&json!("main.rs"), &json!(1)));
    assert_eq!(snapshot["message_id"], "d4d40000-0000-4000-8000-000000000002");
    assert_eq!(snapshots[0]["at"], "2026-03-02T10:00:09.000Z");
    let target = bench.folder.path().join("restored");
    assert_eq!(bench.run(&["restore", "--source", SOURCE, "--to", target.to_str().unwrap()]).code, 0);
    let kept = std::fs::read(target.join(snapshot["bytes_at"].as_str().unwrap())).unwrap();
    assert_eq!(kept, b"fn main() {}\n");

    let agents = records(&bench, "subagent_transcripts", &[]);
    assert_eq!(agents.len(), 1);
    assert_eq!(
        (&agents[0]["data"]["parent_session_id"], &agents[0]["data"]["parent_kind"]),
        (&json!(main), &json!("sub_agent"))
    );
    assert_eq!(
        (&agents[0]["data"]["agent_type"], &agents[0]["data"]["tool_use_id"]),
        (&json!("Explore"), &json!("toolu_b8"))
    );

    let kinds = |stream: &str| -> Vec<String> {
        let mut kinds: Vec<String> = records(&bench, stream, &[])
            .iter()
            .map(|record| {
                let data = &record["data"];
                [&data["attachment"]["type"], &data["subtype"], &data["type"]]
                    .iter()
                    .find_map(|kind| kind.as_str())
                    .unwrap()
                    .to_owned()
            })
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    let expected = [
        "ai-title",
        "compact_boundary",
        "file-history-snapshot",
        "hook_success",
        "last-prompt",
        "local_command",
        "permission-mode",
        "queue-operation",
        "queued_command",
        "turn_duration",
    ];
    assert_eq!(kinds("attachments"), expected);
}

#[test]
fn separately_stored_outputs_are_shown_in_full() {
    let bench = Bench::with_home(SOURCE, &fixture("agents_below"));
    bench.sync();
    let main = "30cc0000-0000-4000-8000-000000000001";
    let folder = bench.claude().join("projects/-home-ada-engine").join(main);
    let whole = std::fs::read_to_string(folder.join("tool-results/bq1x2y3z4.txt")).unwrap();
    let assert_shown = |bench: &Bench| {
        let calls = records(bench, "tool_calls", &["--key", "toolu_b6", "--full"]);
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0]["data"]["output"], *whole);
        let shown = bench.json(&["show", main, "--full"]);
        let results = shown["messages"].as_array().unwrap().iter().flat_map(|message| {
            let blocks = message["blocks"].as_array().unwrap().clone();
            blocks
                .into_iter()
                .filter(|block| block["type"] == "tool_result" && block["call_id"] == "toolu_b6")
        });
        assert_eq!(results.map(|block| block["output"].clone()).collect::<Vec<_>>(), [json!(whole)]);
    };
    assert_shown(&bench);
    // The copy of the home is not at the path in the transcript; later the client deletes it.
    sweep(&bench.claude());
    bench.sync();
    assert_shown(&bench);
    assert_rebuilds(&bench);
    assert_shown(&bench);
}

/// A file that arrives one run after the transcript that refers to it, and one of a sub-agent in its parent's
/// directory.
#[test]
fn a_separate_output_may_arrive_later_and_from_a_sub_agent() {
    let bench = Bench::new();
    let place = format!("projects/{FOLDER}/{ONE}/tool-results/b1.txt");
    let marker = format!(
        "<persisted-output>\nOutput too large. Full output saved to: /home/ada/.claude/{place}\n\nPreview\n</persisted-output>"
    );
    let lines: Vec<String> = talk(ONE)
        .iter()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            if row["message"]["content"][0]["type"] == "tool_result" {
                row["message"]["content"][0]["content"] = marker.as_str().into();
                row.as_object_mut().unwrap().remove("toolUseResult");
            }
            row["isSidechain"] = true.into();
            row["agentId"] = "a1".into();
            row.to_string()
        })
        .collect();
    let agent = format!("{ONE}/subagents/agent-a1");
    write(&bench, FOLDER, &agent, &text_of(&lines));
    write(&bench, FOLDER, ONE, &text_of(&[prompt_row(ONE, 90, "Ask a helper.")]));
    bench.sync();
    let output =
        || records(&bench, "tool_calls", &["--full"])[0]["data"]["output"].as_str().unwrap().to_owned();
    assert_eq!(output(), marker, "what there is");
    let file = bench.claude().join(&place);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "the whole output\n").unwrap();
    bench.sync();
    assert_eq!(output(), "the whole output\n");
    assert_eq!(session(&bench, "agent-a1")["parent_session_id"], ONE);
    assert_rebuilds(&bench);
}

#[test]
fn each_change_of_a_to_do_list_is_a_version() {
    let bench = Bench::with_home(SOURCE, &fixture("agents_beside"));
    bench.sync();
    let main = "20bb0000-0000-4000-8000-000000000001";
    let key = format!("{main}-agent-{main}");
    let todos = records(&bench, "todos", &[]);
    assert_eq!(todos.len(), 2);
    assert!(todos.iter().all(|list| list["session_id"] == main), "{todos:?}");
    let path = bench.claude().join("todos").join(format!("{key}.json"));
    std::fs::write(&path, r#"[{"content":"Warm up","status":"completed","activeForm":"Warming up"}]"#)
        .unwrap();
    bench.sync();
    let versions = records(&bench, "todos", &["--key", &key]);
    let status: Vec<&Value> = versions.iter().map(|version| &version["data"]["todos"][0]["status"]).collect();
    assert_eq!(status, ["pending", "completed"], "{versions:?}");
    // The list is emptied, then deleted: its content stays.
    std::fs::write(&path, "[]").unwrap();
    bench.sync();
    std::fs::remove_file(&path).unwrap();
    bench.sync();
    assert_eq!(records(&bench, "todos", &["--key", &key]).len(), 3);
    assert_rebuilds(&bench);
}
