//! Claude Code's transcripts: whatever is copied, cut, joined or odd in them, every message counts once.

mod authored;
mod history;
mod homes;
mod real;
mod renamed;
mod titles;

use std::path::PathBuf;

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::checks::{
    assert_accounts_add_up, assert_like_fresh_of, assert_rebuilds, assert_restores_of, assert_same,
    assert_up_to_date_of,
};
use annals_testkit::codex::text_of;
use annals_testkit::files::append;

pub const SOURCE: &str = "claude_code";
pub const ONE: &str = "0c1a0000-0000-4000-8000-00000000000a";
pub const TWO: &str = "0c1a0000-0000-4000-8000-00000000000b";
const THREE: &str = "0c1a0000-0000-4000-8000-00000000000c";
pub const FOLDER: &str = "-home-ada-engine";

/// The envelope of a row; its id and time are derived from its number.
pub fn row(session: &str, number: u32, kind: &str, more: Value) -> String {
    let mut row = json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/home/ada/engine",
        "sessionId": session, "version": "2.1.197", "gitBranch": "main", "type": kind,
        "uuid": format!("{}-0000-4000-8000-{number:012}", &session[28..]),
        "timestamp": format!("2026-03-02T10:{:02}:{:02}.000Z", number / 60 % 60, number % 60),
    });
    for (name, value) in more.as_object().unwrap() {
        row[name] = value.clone();
    }
    row.to_string()
}

pub fn prompt_row(session: &str, number: u32, text: &str) -> String {
    row(session, number, "user", json!({"message": {"role": "user", "content": text}}))
}

/// A line of the answer `id`, with the output tokens known so far; input is always ten.
pub fn answer_row(session: &str, number: u32, id: &str, block: Value, output: u32) -> String {
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block],
        "usage": {
            "input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        },
    });
    row(session, number, "assistant", json!({"requestId": format!("req_{id}"), "message": message}))
}

pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub fn call(id: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}})
}

pub fn result(session: &str, number: u32, id: &str, output: &str) -> String {
    let block = json!({"tool_use_id": id, "type": "tool_result", "content": output});
    let detail = json!({"stdout": output, "stderr": "", "interrupted": false});
    let message = json!({"role": "user", "content": [block]});
    row(session, number, "user", json!({"message": message, "toolUseResult": detail}))
}

/// A prompt, an answer in two lines with a call, its result, and a second answer.
pub fn talk(session: &str) -> Vec<String> {
    let id = |name: &str| format!("{name}_{}", &session[24..]);
    vec![
        prompt_row(session, 1, "Oil the gears."),
        answer_row(session, 2, &id("msg_1"), text("Oiling."), 1),
        answer_row(session, 3, &id("msg_1"), call(&id("toolu_1"), "oil gears"), 25),
        result(session, 4, &id("toolu_1"), "12 gears oiled"),
        answer_row(session, 5, &id("msg_2"), text("All gears are oiled."), 7),
    ]
}

pub fn path_of(bench: &Bench, folder: &str, session: &str) -> PathBuf {
    bench.claude().join("projects").join(folder).join(format!("{session}.jsonl"))
}

pub fn write(bench: &Bench, folder: &str, session: &str, bytes: &str) -> PathBuf {
    let path = path_of(bench, folder, session);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

pub fn session(bench: &Bench, id: &str) -> Value {
    let sessions = bench.sessions();
    sessions.into_iter().find(|session| session["session_id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// Messages, prompts, answers, calls, input and output tokens.
pub fn counts(bench: &Bench, id: &str) -> [i64; 6] {
    let session = session(bench, id);
    [
        &session["message_count"],
        &session["user_message_count"],
        &session["assistant_message_count"],
        &session["tool_call_count"],
        &session["tokens"]["input"],
        &session["tokens"]["output"],
    ]
    .map(|count| count.as_i64().unwrap())
}

pub const TALK: [i64; 6] = [3, 1, 2, 1, 20, 32];

fn assert_sound(bench: &Bench) {
    assert_restores_of(bench, SOURCE, &bench.claude());
    assert_accounts_add_up(bench, &bench.claude());
    assert_like_fresh_of(bench, SOURCE);
    assert_up_to_date_of(bench, SOURCE);
    assert_rebuilds(bench);
}

/// Ids of the listed copies.
fn copies(bench: &Bench) -> Vec<String> {
    let ran = bench.run(&["sessions", "--copies", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let sessions = answer["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
}

/// Number of entries shown, and how many of them are copies.
fn shown(bench: &Bench, id: &str, options: &[&str]) -> (usize, usize) {
    let shown = bench.json(&[&["show", id], options].concat());
    let messages = shown["messages"].as_array().unwrap();
    (messages.len(), messages.iter().filter(|message| message["copied"] == true).count())
}

#[test]
fn the_same_transcript_in_two_folders_counts_once() {
    for first in [FOLDER, "-home-ada-engine-tree"] {
        let bench = Bench::new();
        write(&bench, first, ONE, &text_of(&talk(ONE)));
        bench.sync();
        for folder in [FOLDER, "-home-ada-engine-tree"] {
            write(&bench, folder, ONE, &text_of(&talk(ONE)));
        }
        bench.sync();
        assert_eq!(counts(&bench, ONE), TALK);
        assert_eq!(shown(&bench, ONE, &[]), (3, 0));
        assert_eq!(shown(&bench, ONE, &["--copies"]), (6, 3));
        let parts = bench.json(&["show", ONE])["parts"].as_array().unwrap().len();
        assert_eq!(parts, 2, "both files speak of it");
        assert_sound(&bench);
    }
}

/// A fork as clients of 2026 write it: the same ids and times under another session.
fn fork_of(session: &str, copied: &[String]) -> Vec<String> {
    let mut lines = vec![
        json!({"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-03-02T12:00:00.000Z",
            "sessionId": session, "content": "And the valves?"})
        .to_string(),
    ];
    lines.extend(copied.iter().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row["sessionId"] = session.into();
        row.to_string()
    }));
    let later = |line: String| line.replace("2026-03-02T10:", "2026-03-02T12:");
    lines.push(later(prompt_row(session, 100, "And the valves?")));
    lines.push(later(answer_row(session, 101, &format!("msg_of_{session}"), text("Shut."), 3)));
    lines
}

const FORK: [i64; 6] = [2, 1, 1, 0, 10, 3];

#[test]
fn a_fork_counts_only_its_own_messages_in_every_order() {
    // Whether its name sorts before or after the original's must not matter.
    for fork in [THREE, "00000000-0000-4000-8000-000000000001"] {
        let files = [(TWO, talk(TWO)), (fork, fork_of(fork, &talk(TWO)))];
        for (order, runs) in [([0, 1], 1), ([0, 1], 2), ([1, 0], 2)] {
            let bench = Bench::new();
            for at in order {
                write(&bench, FOLDER, files[at].0, &text_of(&files[at].1));
                if runs == 2 {
                    bench.sync();
                }
            }
            bench.sync();
            assert_eq!(counts(&bench, TWO), TALK, "{fork} {order:?} {runs}");
            assert_eq!(counts(&bench, fork), FORK, "{fork} {order:?} {runs}");
            assert_eq!(copies(&bench), [fork]);
            let forked = session(&bench, fork);
            assert_eq!((&forked["parent_session_id"], &forked["copied_from"]), (&json!(TWO), &json!(TWO)));
            assert!(session(&bench, TWO)["parent_session_id"].is_null());
            assert_eq!(shown(&bench, fork, &[]), (2, 0));
            assert_eq!(shown(&bench, fork, &["--copies"]), (5, 3));
            assert_sound(&bench);
        }
    }
}

/// The original was never seen: the fork has its messages, and gives them up when the original arrives.
#[test]
fn a_fork_has_the_messages_until_the_original_arrives() {
    let bench = Bench::new();
    write(&bench, FOLDER, THREE, &text_of(&fork_of(THREE, &talk(ONE))));
    bench.sync();
    assert_eq!(counts(&bench, THREE), [5, 2, 3, 1, 30, 35]);
    assert!(copies(&bench).is_empty());
    let path = write(&bench, FOLDER, ONE, &text_of(&talk(ONE)[..3]));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [2, 1, 1, 1, 10, 25]);
    assert_eq!(counts(&bench, THREE), [3, 1, 2, 0, 20, 10]);
    append(&path, &text_of(&talk(ONE)[3..]));
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    assert_eq!(counts(&bench, THREE), FORK);
    assert_sound(&bench);
}

/// As clients of 2025 resumed: a new file, all rows again with new ids, one time and fewer fields.
#[test]
fn a_resume_into_a_new_file_counts_once() {
    let old = |line: String| line.replace("2.1.197", "1.0.44");
    let original: Vec<String> = talk(ONE).into_iter().map(old).collect();
    let mut resumed: Vec<String> = original
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row["sessionId"] = TWO.into();
            row["uuid"] = format!("0c1affff-0000-4000-8000-{number:012}").into();
            row["timestamp"] = "2026-03-02T11:00:00.000Z".into();
            row.as_object_mut().unwrap().retain(|name, _| name != "requestId" && name != "toolUseResult");
            if let Some(words) = row["message"]["content"].as_str().map(text) {
                row["message"]["content"] = json!([words]);
            }
            row.to_string()
        })
        .collect();
    let later = |line: String| old(line).replace("2026-03-02T10:", "2026-03-02T11:");
    resumed.push(later(prompt_row(TWO, 100, "And the valves?")));
    resumed.push(later(answer_row(TWO, 101, "msg_3", text("Shut."), 3)));
    for order in [[0, 1], [1, 0]] {
        let bench = Bench::new();
        for at in order {
            let (id, lines) = [(ONE, &original), (TWO, &resumed)][at];
            write(&bench, FOLDER, id, &text_of(lines));
            bench.sync();
        }
        assert_eq!(counts(&bench, ONE), TALK, "{order:?}");
        // Its prompt has a separate id in each file: a record of both, a message of one.
        let mut resumed = FORK;
        resumed[1] += 1;
        assert_eq!(counts(&bench, TWO), resumed, "{order:?}");
        assert_eq!(copies(&bench), [TWO]);
        assert_eq!(session(&bench, TWO)["parent_session_id"], ONE);
        assert_sound(&bench);
    }
}

#[test]
fn a_session_resumed_in_its_file_and_compacted_counts_once() {
    let bench = Bench::new();
    let path = write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    bench.sync();
    let boundary = json!({"subtype": "compact_boundary", "content": "Conversation compacted",
        "logicalParentUuid": "x", "compactMetadata": {"trigger": "auto", "preTokens": 100}});
    let mut lines = vec![row(ONE, 6, "system", boundary)];
    let summary =
        json!({"isCompactSummary": true, "message": {"role": "user", "content": "Gears were oiled."}});
    lines.push(row(ONE, 7, "user", summary));
    // What was preserved is written again with its ids.
    lines.push(talk(ONE).pop().unwrap());
    lines.push(prompt_row(ONE, 8, "And the valves?"));
    lines.push(answer_row(ONE, 9, "msg_3", text("Shut."), 3));
    append(&path, &text_of(&lines));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [5, 2, 3, 1, 30, 35]);
    assert!(copies(&bench).is_empty());
    assert_sound(&bench);
}

#[test]
fn a_result_finds_its_call_of_an_earlier_run() {
    let bench = Bench::new();
    let lines = talk(ONE);
    let path = write(&bench, FOLDER, ONE, &text_of(&lines[..3]));
    bench.sync();
    let calls = || -> Vec<Value> {
        let ran = bench.run(&["records", "claude_code/tool_calls"]);
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone()).collect()
    };
    assert!(calls()[0]["output"].is_null() && calls()[0]["ok"].is_null());
    append(&path, &text_of(&lines[3..]));
    bench.sync();
    assert_eq!(calls().len(), 1);
    assert_eq!(calls()[0]["output"], "12 gears oiled");
    assert_eq!((&calls()[0]["ok"], &calls()[0]["exit_code"]), (&json!(true), &json!(0)));
    assert_sound(&bench);
}

/// The other way round: a result before its call, with the same effect.
#[test]
fn a_result_may_come_before_its_call() {
    let shown_calls = |cut: Option<usize>, swap: bool| -> Vec<Value> {
        let bench = Bench::new();
        let block = json!({"type": "tool_use", "id": "toolu_e", "name": "Edit",
            "input": {"file_path": "/home/ada/engine/a.rs", "old_string": "a", "new_string": "b"}});
        let patch =
            json!([{"oldStart": 4, "oldLines": 1, "newStart": 4, "newLines": 1, "lines": ["-a", "+b"]}]);
        let message = json!({"role": "user", "content":
            [{"tool_use_id": "toolu_e", "type": "tool_result", "content": "updated"}]});
        let detail = json!({"filePath": "/home/ada/engine/a.rs", "structuredPatch": patch});
        let failed = json!({"tool_use_id": "toolu_b", "type": "tool_result", "content": "Exit code 3\nno",
            "is_error": true});
        let mut pairs = [
            answer_row(ONE, 2, "msg_1", block, 5),
            row(ONE, 3, "user", json!({"message": message, "toolUseResult": detail})),
            answer_row(ONE, 4, "msg_2", call("toolu_b", "false"), 5),
            row(ONE, 5, "user", json!({"message": {"role": "user", "content": [failed]}})),
        ];
        if swap {
            pairs.swap(0, 1);
            pairs.swap(2, 3);
        }
        let lines = [vec![prompt_row(ONE, 1, "Edit.")], pairs.to_vec()].concat();
        let path = write(&bench, FOLDER, ONE, &text_of(&lines[..cut.unwrap_or(lines.len())]));
        bench.sync();
        append(&path, &text_of(&lines[cut.unwrap_or(lines.len())..]));
        bench.sync();
        assert_sound(&bench);
        let ran = bench.run(&["records", "claude_code/tool_calls"]);
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone()).collect()
    };
    let usual = shown_calls(None, false);
    assert_eq!(usual[0]["files"][0]["after"], json!([4, 4]));
    assert_eq!((&usual[1]["ok"], &usual[1]["exit_code"]), (&json!(false), &json!(3)));
    for cut in [None, Some(2), Some(4)] {
        assert_eq!(shown_calls(cut, true), usual, "{cut:?}");
    }
}

#[test]
fn lines_of_an_answer_may_come_in_two_runs() {
    let bench = Bench::new();
    let lines = talk(ONE);
    let path = write(&bench, FOLDER, ONE, &text_of(&lines[..2]));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [2, 1, 1, 0, 10, 1]);
    append(&path, &text_of(&lines[2..3]));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [2, 1, 1, 1, 10, 25], "the last line has the numbers");
    let answer = &bench.json(&["show", ONE])["messages"][1];
    assert_eq!(answer["blocks"].as_array().unwrap().len(), 2, "{answer}");
    assert_like_fresh_of(&bench, SOURCE);
    // Another answer comes between its lines.
    append(
        &path,
        &text_of(&[
            lines[3].clone(),
            lines[4].clone(),
            answer_row(ONE, 6, "msg_1_00000000000a", text("Done."), 40),
        ]),
    );
    bench.sync();
    assert_eq!(counts(&bench, ONE), [3, 1, 2, 1, 20, 47]);
    assert_sound(&bench);
}

#[test]
fn answers_are_identified_by_their_ids() {
    let bench = Bench::new();
    let mut lines = vec![prompt_row(ONE, 1, "Run.")];
    // A record without a message id counts by its own id.
    let bare =
        json!({"message": {"role": "assistant", "model": "claude-sonnet-4-5", "content": [text("bare")]}});
    lines.push(row(ONE, 2, "assistant", bare));
    // Messages of the client itself are not turns of the model and cost nothing.
    let synthetic = json!({"isApiErrorMessage": true, "message": {"id": "5f5f0000-0000-4000-8000-000000000001",
        "model": "<synthetic>", "role": "assistant", "content": [text("API Error")],
        "usage": {"input_tokens": 5, "output_tokens": 5}}});
    lines.push(row(ONE, 3, "assistant", synthetic));
    lines.push(answer_row(ONE, 4, "msg_1", text("one"), 9));
    lines.push(answer_row(ONE, 5, "msg_1", text("two"), 9));
    write(&bench, FOLDER, ONE, &text_of(&lines));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [3, 1, 3, 0, 10, 9]);
    let archive = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    let written: (i64, i64) = archive
        .query_row("select sum(cache_write), sum(cache_write_hour) from usage", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(written, (10, 20), "cache writes by their lifetime");
    assert_sound(&bench);
}

/// Thirteen lines that cover what a cut could break.
fn busy(session: &str) -> String {
    let id = |name: &str| format!("{name}_{}", &session[24..]);
    let mut lines = talk(session);
    lines.insert(1, r#"{"type":"ai-title","aiTitle":"größer → 設定 🚀"}"#.into());
    lines.push(result(session, 6, &id("toolu_2"), "early"));
    lines.push(answer_row(session, 7, &id("msg_3"), call(&id("toolu_2"), "late"), 4));
    lines.push(r#"{"type":"brand-new-row","deep":[{"a":{}}]}"#.into());
    lines.push(r#"{"type":"user","mess"#.into());
    lines.push(String::new());
    lines.push(format!("{}\r", prompt_row(session, 8, "with a carriage return")));
    lines.push(answer_row(session, 9, &id("msg_1"), text("a late line"), 50));
    lines.push(prompt_row(session, 10, "last words"));
    text_of(&lines)
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let name = |number: usize| format!("0c1a0000-0000-4000-8000-{number:012}");
    let whole = busy(&name(0));
    let mut cuts: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    let mut random = 20_260_302_u64;
    cuts.extend((0..100).map(|_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % whole.len()
    }));
    let bench = Bench::new();
    for (number, cut) in cuts.iter().enumerate() {
        let bytes = busy(&name(number)).into_bytes();
        let path = write(&bench, FOLDER, &name(number), "");
        std::fs::write(path, &bytes[..*cut]).unwrap();
    }
    bench.sync();
    for number in 0..cuts.len() {
        write(&bench, FOLDER, &name(number), &busy(&name(number)));
    }
    bench.sync();
    for (number, cut) in cuts.iter().enumerate() {
        assert_eq!(counts(&bench, &name(number)), [6, 3, 3, 2, 30, 61], "{cut}");
    }
    assert_restores_of(&bench, SOURCE, &bench.claude());
    assert_accounts_add_up(&bench, &bench.claude());
    assert_like_fresh_of(&bench, SOURCE);
    assert_rebuilds(&bench);
}

#[test]
fn folders_that_share_a_name_are_separated_by_their_rows() {
    let bench = Bench::new();
    // `/home/ada/engine.v2` and `/home/ada/engine/v2` share one directory.
    let moved = |lines: Vec<String>, cwd: &str| -> Vec<String> {
        lines.into_iter().map(|line| line.replace("/home/ada/engine", cwd)).collect()
    };
    write(&bench, "-home-ada-engine-v2", ONE, &text_of(&moved(talk(ONE), "/home/ada/engine.v2")));
    write(&bench, "-home-ada-engine-v2", TWO, &text_of(&moved(talk(TWO), "/home/ada/engine/v2")));
    bench.sync();
    assert_eq!(session(&bench, ONE)["cwd"], "/home/ada/engine.v2");
    assert_eq!(session(&bench, TWO)["project_dir"], "/home/ada/engine/v2");
    let listed = bench.json(&["sessions", "--project", "/home/ada/engine/v2"]);
    assert_eq!(listed["total"], 1);
    assert_sound(&bench);
}

#[test]
fn a_folder_that_starts_with_a_dash_is_no_option() {
    let bench = Bench::new();
    for (folder, id) in [("-", ONE), ("--json", TWO), ("-rf -home", THREE)] {
        write(&bench, folder, id, &text_of(&talk(id)));
    }
    bench.sync();
    assert_eq!(bench.sessions().len(), 3);
    for id in [ONE, TWO, THREE] {
        assert_eq!(counts(&bench, id), TALK);
    }
    assert_sound(&bench);
}

#[test]
fn a_folder_with_a_long_name_is_read() {
    let bench = Bench::new();
    let cwd = format!("/home/ada/{}", "deep-folder/".repeat(20));
    let whole = format!("-home-ada-{}", "deep-folder-".repeat(20));
    let cut = format!("{}-1x2y3z", &whole[..200]);
    for (folder, id) in [(whole, ONE), (cut, TWO)] {
        assert!(folder.len() > 200);
        let lines: Vec<String> = talk(id).iter().map(|line| line.replace("/home/ada/engine", &cwd)).collect();
        write(&bench, &folder, id, &text_of(&lines));
    }
    bench.sync();
    for id in [ONE, TWO] {
        assert_eq!(counts(&bench, id), TALK);
        assert_eq!(session(&bench, id)["cwd"], *cwd);
    }
    assert_sound(&bench);
}

#[test]
fn an_empty_session_is_a_session_and_may_grow() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, "");
    bench.sync();
    assert_eq!(counts(&bench, ONE), [0; 6]);
    assert_sound(&bench);
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    assert_sound(&bench);
}

/// After `/clear`, clients of 2025 continued in the same file under another id.
#[test]
fn a_file_with_several_session_ids_is_one_session() {
    let bench = Bench::new();
    let mut lines = talk(ONE);
    let caveat = json!({"isMeta": true, "message": {"role": "user", "content": "Caveat: local commands"}});
    let mut repeated: Value = serde_json::from_str(&row(ONE, 6, "user", caveat.clone())).unwrap();
    repeated["sessionId"] = TWO.into();
    lines.extend([row(ONE, 6, "user", caveat), repeated.to_string()]);
    lines.push(prompt_row(TWO, 7, "After the clearing."));
    lines.push(answer_row(TWO, 8, "msg_3", text("Clean."), 3));
    write(&bench, FOLDER, ONE, &text_of(&lines));
    bench.sync();
    assert_eq!(bench.sessions().len(), 1);
    assert_eq!(counts(&bench, ONE), [5, 2, 3, 1, 30, 35]);
    let found = session(&bench, ONE);
    assert_eq!(found["native"]["session_ids"], json!([TWO]));
    assert!(found["parent_session_id"].is_null(), "nothing was forked: {found}");
    assert_sound(&bench);
}

/// Older forks keep the other session's id on copied rows.
#[test]
fn leading_rows_with_another_id_indicate_a_fork() {
    let bench = Bench::new();
    let mut lines = talk(ONE);
    lines.push(prompt_row(TWO, 100, "And the valves?"));
    lines.push(answer_row(TWO, 101, "msg_3", text("Shut."), 3));
    write(&bench, FOLDER, TWO, &text_of(&lines));
    bench.sync();
    let found = session(&bench, TWO);
    assert_eq!((&found["parent_session_id"], &found["parent_kind"]), (&json!(ONE), &json!("fork")));
    assert_eq!(counts(&bench, TWO), [5, 2, 3, 1, 30, 35], "nobody else has the words");
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    assert_eq!(counts(&bench, TWO), FORK);
    assert_sound(&bench);
}

#[test]
fn carriage_returns_end_lines_too() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)).replace('\n', "\r\n"));
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    let unix = Bench::new();
    write(&unix, FOLDER, ONE, &text_of(&talk(ONE)));
    unix.sync();
    let show = |bench: &Bench| bench.run(&["show", ONE]).stdout;
    assert_same(&show(&bench), &show(&unix));
    assert_sound(&bench);
}

#[test]
fn a_last_line_without_newline_is_read_once() {
    let bench = Bench::new();
    let whole = text_of(&talk(ONE));
    let path = write(&bench, FOLDER, ONE, whole.trim_end());
    bench.sync();
    assert_eq!(counts(&bench, ONE), TALK);
    assert_sound(&bench);
    append(&path, "\n");
    bench.sync();
    append(&path, &text_of(&[prompt_row(ONE, 9, "More.")]));
    bench.sync();
    assert_eq!(counts(&bench, ONE), [4, 2, 2, 1, 20, 32]);
    assert_sound(&bench);
}
