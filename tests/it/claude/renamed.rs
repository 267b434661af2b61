//! The session that the lines name beats the name of their file.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{
    FOLDER, ONE, SOURCE, TALK, answer_row, assert_sound, call, counts, result, row, session, talk, text,
    write,
};
use annals_testkit::checks::{assert_like_fresh_of, assert_rebuilds};
use annals_testkit::codex::text_of;
use annals_testkit::{Bench, Ran};

/// Rows that the client writes without the id of their session.
fn nameless() -> Vec<String> {
    let snapshot =
        json!({"messageId": "m", "trackedFileBackups": {}, "timestamp": "2026-03-02T09:59:59.000Z"});
    vec![
        json!({"type": "summary", "summary": "Oiled gears", "leafUuid": "11111111-0000-4000-8000-000000000001"})
            .to_string(),
        json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": snapshot, "isSnapshotUpdate": false})
            .to_string(),
    ]
}

fn agent_lines() -> Vec<String> {
    let lines = [
        row(ONE, 11, "user", json!({"message": {"role": "user", "content": "Count the gears."}})),
        answer_row(ONE, 12, "msg_a1", call("toolu_a1", "ls gears"), 5),
        result(ONE, 13, "toolu_a1", "12 gears"),
        answer_row(ONE, 14, "msg_a2", text("Twelve."), 3),
    ];
    lines
        .iter()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            (row["isSidechain"], row["agentId"]) = (true.into(), "a140d30".into());
            row.to_string()
        })
        .collect()
}

fn piped(bench: &Bench, file: &str, path: &Path) -> Ran {
    let mut command = bench.command(&["record", file, "--format", "claude-jsonl"]);
    command.stdin(Stdio::from(std::fs::File::open(path).unwrap()));
    Ran::of(command.output().unwrap())
}

#[test]
fn a_renamed_transcript_is_its_session() {
    let lines = text_of(&[nameless(), talk(ONE)].concat());
    let usual = Bench::new();
    write(&usual, FOLDER, ONE, &lines);
    usual.sync_of(SOURCE);
    let renamed = Bench::new();
    write(&renamed, FOLDER, "full", &lines);
    renamed.sync_of(SOURCE);
    let ids: Vec<String> =
        renamed.sessions().iter().map(|session| session["session_id"].to_string()).collect();
    assert_eq!(ids, [format!("{ONE:?}")]);
    let (mut expected, mut actual) = (session(&usual, ONE), session(&renamed, ONE));
    for session in [&mut expected, &mut actual] {
        assert_eq!(session["parent_session_id"], Value::Null);
        let fields = session.as_object_mut().unwrap();
        fields.retain(|name, _| !name.contains("file") && !name.contains("path"));
    }
    assert_eq!(actual, expected);
    // What was read before the id was known belongs to the session too.
    let attachments = |bench: &Bench| {
        let ran = bench.run(&["records", "claude_code/attachments"]);
        ran.stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["key"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(attachments(&renamed), attachments(&usual));
    assert!(!attachments(&renamed).is_empty());
    assert_sound(&renamed);
}

#[test]
fn a_renamed_copy_counts_once_beside_its_original() {
    for first in [ONE, "full"] {
        let bench = Bench::new();
        let lines = text_of(&talk(ONE));
        let second = if first == ONE { "full" } else { ONE };
        write(&bench, FOLDER, first, &lines);
        bench.sync_of(SOURCE);
        write(&bench, "-home-ada-backup", second, &lines);
        bench.sync_of(SOURCE);
        assert_eq!(bench.sessions().len(), 1);
        assert_eq!(counts(&bench, ONE), TALK);
        assert_sound(&bench);
    }
}

#[test]
fn a_renamed_sub_agent_is_itself() {
    let usual = Bench::new();
    write(&usual, FOLDER, ONE, &text_of(&talk(ONE)));
    write(&usual, FOLDER, "agent-a140d30", &text_of(&agent_lines()));
    usual.sync_of(SOURCE);
    for name in ["worker", "agent-old"] {
        let renamed = Bench::new();
        write(&renamed, FOLDER, ONE, &text_of(&talk(ONE)));
        write(&renamed, FOLDER, name, &text_of(&agent_lines()));
        renamed.sync_of(SOURCE);
        assert_eq!(renamed.sessions().len(), usual.sessions().len(), "{name}");
        let agent = session(&renamed, "agent-a140d30");
        assert_eq!(
            agent["parent_session_id"],
            session(&usual, "agent-a140d30")["parent_session_id"],
            "{name}"
        );
        let tape = |bench: &Bench| bench.run(&["tape", "agent-a140d30"]).stdout;
        assert_eq!(tape(&renamed), tape(&usual), "{name}");
        assert_rebuilds(&renamed);
    }
}

#[test]
fn a_file_a_pipe_and_the_archive_give_the_same_tape() {
    let agent = text_of(&agent_lines());
    let whole = text_of(&[nameless(), talk(ONE)].concat());
    for (lines, id, names) in
        [(&whole, ONE, [ONE, "full"]), (&agent, "agent-a140d30", ["agent-a140d30", "worker"])]
    {
        let mut tapes = Vec::new();
        for name in names {
            let bench = Bench::new();
            let path = write(&bench, FOLDER, name, lines);
            let text = path.to_str().unwrap();
            tapes.push(bench.run(&["record", text, "--format", "claude-jsonl"]).stdout);
            tapes.push(piped(&bench, "--stdin", &path).stdout);
            tapes.push(piped(&bench, "-", &path).stdout);
            bench.sync_of(SOURCE);
            tapes.push(bench.run(&["tape", id]).stdout);
        }
        assert!(tapes[0].contains(&format!("\"session_id\":{id:?}")), "{}", tapes[0]);
        assert!(tapes.iter().all(|tape| *tape == tapes[0]), "{tapes:#?}");
    }
}

#[test]
fn a_renamed_transcript_may_grow_in_pieces() {
    let lines = text_of(&[nameless(), talk(ONE)].concat());
    let bench = Bench::new();
    for part in 1..=6 {
        write(&bench, FOLDER, "full", &lines[..lines.len() * part / 6]);
        bench.sync_of(SOURCE);
    }
    assert_eq!(counts(&bench, ONE), TALK);
    assert_like_fresh_of(&bench, SOURCE);
}
