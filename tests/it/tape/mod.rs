//! Tapes are the same bytes however their lines arrive, and report what they could not read.

mod promises;
mod replay;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::claude;
use crate::golden::tapes;
use annals_testkit::codex::{ID, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, Ran, fixtures, sources};

fn format_of(source: &str) -> &'static str {
    sources::with_tape().into_iter().find(|(of, _)| *of == source).expect("a source with tapes").1
}

fn record_stdin(bench: &Bench, format: &str, extra: &[&str], pieces: &[&[u8]]) -> Ran {
    let arguments = [&["record", "--stdin", "--format", format], extra].concat();
    let mut command = bench.command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let writer = std::thread::spawn(move || {
        for piece in pieces {
            // A program that found what it was looking for reads no further.
            if stdin.write_all(&piece).is_err() {
                return;
            }
            stdin.flush().ok();
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran::of(output)
}

/// Transcripts of a home that are the only file of their session.
fn transcripts(home: &Path) -> Vec<PathBuf> {
    let is_transcript = |path: &Path| {
        let text = path.to_str().unwrap();
        let below = text.contains("/sessions/") || text.contains("/projects/");
        let name = path.file_name().unwrap().to_str().unwrap();
        let known = name.ends_with(".jsonl") || name.starts_with("rollout-") && name.ends_with(".json");
        below && known && !name.contains('_') && !text.contains("journal")
    };
    files_below(home).into_iter().filter(|path| is_transcript(path)).collect()
}

#[test]
fn record_and_tape_give_the_same_bytes() {
    let mut compared = 0;
    for (source, case) in fixtures::with_home() {
        let bench = Bench::with_home(source, &case.join("home"));
        bench.sync();
        for path in transcripts(&bench.home_of(source)) {
            let path_text = path.to_str().unwrap();
            let recorded = bench.run(&["record", path_text, "--format", format_of(source)]);
            if path.ends_with("resume-head.jsonl") {
                // What the client notes of a resume is no transcript.
                assert_eq!((recorded.code, recorded.stdout.as_str()), (2, ""), "{}", recorded.stderr);
                assert!(recorded.stderr.contains("no line of the input is"), "{}", recorded.stderr);
                continue;
            }
            assert_eq!(recorded.code, 0, "{}", recorded.stderr);
            let again = bench.run(&["record", path_text, "--format", format_of(source)]);
            assert_eq!(recorded.stdout, again.stdout);
            let first: serde_json::Value =
                serde_json::from_str(recorded.stdout.lines().next().unwrap()).unwrap();
            let session = first["source"]["session_id"].as_str().unwrap();
            let replaced = files_below(&bench.home_of(source))
                .iter()
                .any(|other| other != &path && other.to_str().unwrap().contains(&format!("{session}_")));
            let tape = bench.run(&["tape", session]);
            if tape.code == 0 && !replaced {
                assert_eq!(recorded.stdout, tape.stdout, "{path_text}");
                compared += 1;
            }
            if path_text.ends_with(".jsonl") {
                let bytes = std::fs::read(&path).unwrap();
                let pieces: Vec<&[u8]> = bytes.chunks(997).collect();
                let piped = record_stdin(&bench, format_of(source), &[], &pieces);
                // Without a name, only the lines can say which session they are. Those of Kimi Code do not.
                let is_named = !piped.stdout.contains("\"session_id\":\"\"") && source != "kimi_code";
                let alone = |text: &str| -> Vec<String> {
                    text.lines().skip(usize::from(!is_named)).map(str::to_owned).collect()
                };
                let first: serde_json::Value =
                    serde_json::from_str(piped.stdout.lines().next().unwrap()).unwrap();
                let own = first["source"]["session_id"].as_str().unwrap();
                let piped = match source {
                    "kimi_code" => alone(&piped.stdout.replace(own, session)),
                    _ => alone(&piped.stdout),
                };
                let recorded = alone(&recorded.stdout);
                assert_eq!(piped, recorded, "{path_text}");
            }
        }
    }
    assert!(compared >= 12, "only {compared} transcripts were compared");
}

#[test]
fn pieces_and_rebuilds_change_nothing() {
    // Two archives have two keys, and so two masks for one secret.
    let mark = regex::Regex::new(r"\[secret:([a-z_]+):[0-9a-f]{4}\]").unwrap();
    for (source, case) in fixtures::with_home() {
        let home = case.join("home");
        let whole = Bench::with_home(source, &home);
        whole.sync();
        let pieces = Bench::with_home(source, &home);
        let grown: Vec<(PathBuf, Vec<u8>)> = transcripts(&pieces.home_of(source))
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
            .collect();
        for part in 1..=4 {
            for (path, bytes) in &grown {
                std::fs::write(path, &bytes[..bytes.len() * part / 4]).unwrap();
            }
            pieces.sync();
        }
        let masked = |text: String| mark.replace_all(&text, "[secret:$1]").into_owned();
        let expected = masked(tapes(&whole));
        assert_eq!(masked(tapes(&pieces)), expected, "{}", case.display());
        assert_eq!(whole.run(&["rebuild"]).code, 0);
        assert_eq!(masked(tapes(&whole)), expected, "{}", case.display());
    }
}

#[test]
fn record_does_not_create_an_archive() {
    let bench = Bench::new();
    let secret = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    let lines = [vec![meta(ID)], prompt(&format!("use {secret} please")).to_vec()].concat().join("\n") + "\n";
    let ran = record_stdin(&bench, "codex-jsonl", &[], &[lines.as_bytes()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains(&secret) && ran.stdout.contains("[secret:github:"), "{}", ran.stdout);
    assert_eq!(ran.stdout, record_stdin(&bench, "codex-jsonl", &[], &[lines.as_bytes()]).stdout);
    assert!(!bench.archive().exists());
    let revealed = record_stdin(&bench, "codex-jsonl", &["--reveal"], &[lines.as_bytes()]);
    assert!(revealed.stdout.contains(&secret));
}

#[test]
fn drift_is_reported_and_strict_stops_at_it() {
    let bench = Bench::new();
    let odd = [
        (
            r#"{"timestamp":"2026-11-15T10:00:00.000Z","type":"brand_new","payload":{}}"#,
            "unknown type \"brand_new\"",
        ),
        (
            r#"{"timestamp":"2026-11-15T10:00:00.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}"}}"#,
            "call_id is missing",
        ),
        ("{\"half\":", "not JSON"),
    ];
    for (line, expected) in odd {
        let text = format!("{}\n\n{line}\n{}\n", meta(ID), prompt("gears").join("\n"));
        let ran = record_stdin(&bench, "codex-jsonl", &[], &[text.as_bytes()]);
        assert_eq!(ran.code, 0);
        assert!(ran.stderr.contains(&format!("line 3: {expected}")), "{}", ran.stderr);
        assert!(ran.stdout.contains("\"gears\"") && ran.stdout.contains("\"coverage.tool\":\"partial\""));
        let strict = record_stdin(&bench, "codex-jsonl", &["--strict"], &[text.as_bytes()]);
        assert_eq!(strict.code, 2);
        assert!(strict.stderr.contains(&format!("error: line 3: {expected}")), "{}", strict.stderr);
        assert_eq!(strict.stdout, "");
    }
    let row = r#"{"type":"assistant","uuid":"u","sessionId":"s","timestamp":"2026-11-15T10:00:00.000Z","message":{"content":[{"type":"tool_use","name":"Edit","input":{}}]}}"#;
    let strict = record_stdin(&bench, "claude-jsonl", &["--strict"], &[row.as_bytes(), b"\n"]);
    assert!(strict.stderr.contains("line 1: tool_use.id is missing"), "{}", strict.stderr);
}

#[test]
fn hostile_input_has_a_clear_result() {
    let bench = Bench::new();
    let long = format!(
        r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"event_msg","payload":{{"type":"agent_message","message":"{}"}}}}"#,
        "gear ".repeat(20_000_000)
    );
    let inputs: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\n\n\n".to_vec(),
        b"\0\0\0\n\0".to_vec(),
        vec![0xff; 5_000],
        "[".repeat(200_000).into_bytes(),
        [meta(ID).as_bytes(), b"\n", "{\"a\":".repeat(100_000).as_bytes(), b"\n"].concat(),
        [meta(ID).as_bytes(), b"\n", &meta(ID).as_bytes()[..90]].concat(),
        [meta(ID).as_bytes(), b"\r\n", b"{}{}[]\n"].concat(),
        [meta(ID).as_bytes(), b"\n", long.as_bytes(), b"\n"].concat(),
    ];
    for (source, format) in sources::with_tape() {
        for (number, input) in inputs.iter().enumerate() {
            for extra in [&[][..], &["--strict"], &["--to-format", "agent-trace"]] {
                let ran = record_stdin(&bench, format, extra, &[input]);
                let is_unread = ran.stderr.contains("no line of the input is");
                assert!(
                    ran.code == 0 || ran.code == 2 && (extra == ["--strict"] || is_unread),
                    "{source} {number}: {}",
                    ran.stderr
                );
                assert!(!ran.stderr.contains("panicked"), "{source} {number}: {}", ran.stderr);
                let lines = ran.stdout.lines().filter(|line| line.len() < 1_000_000);
                for line in lines {
                    serde_json::from_str::<serde_json::Value>(line).unwrap();
                }
            }
        }
    }
}

#[test]
fn complete_outputs_and_earlier_texts_are_added_on_request() {
    let home = fixtures::case("claude_code", "edits").join("home");
    let bench = Bench::with_home("claude_code", &home);
    bench.sync();
    let session = "5e551011-0000-4000-8000-0000000000e1";
    let plain = bench.run(&["tape", session]).stdout;
    let resolved = bench.run(&["tape", session, "--resolve"]).stdout;
    let rest = "the rest is left out of this fixture";
    assert!(!plain.contains(rest) && resolved.contains(rest));
}

#[test]
fn edits_are_exported_as_agent_trace_records() {
    let home = fixtures::case("claude_code", "edits").join("home");
    let bench = Bench::with_home("claude_code", &home);
    bench.sync();
    let session = "5e551011-0000-4000-8000-0000000000e1";
    let ran = bench.run(&["tape", session, "--format", "agent-trace"]);
    let records: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 6, "{}", ran.stdout);
    let uuid = regex::Regex::new("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$").unwrap();
    for record in &records {
        assert_eq!(record["version"], "0.1.0");
        assert!(uuid.is_match(record["id"].as_str().unwrap()));
        assert!(record["timestamp"].as_str().unwrap().ends_with('Z'));
        for file in record["files"].as_array().unwrap() {
            assert!(!file["path"].as_str().unwrap().starts_with('/'), "{file}");
            let conversation = &file["conversations"][0];
            assert_eq!(conversation["contributor"]["type"], "ai");
            assert_eq!(conversation["contributor"]["model_id"], "claude-made-up-1");
            for range in conversation["ranges"].as_array().unwrap() {
                assert!(range["start_line"].as_u64().unwrap() >= 1);
                assert!(range["content_hash"].as_str().unwrap().starts_with("sha256:"));
            }
        }
    }
    assert_eq!(records[0]["files"][0]["conversations"][0]["ranges"][0]["start_line"], 2);
    let ids: std::collections::BTreeSet<&str> =
        records.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), records.len());
}

#[test]
fn sub_agents_name_their_parent() {
    for (source, case) in fixtures::with_home() {
        let bench = Bench::with_home(source, &case.join("home"));
        bench.sync();
        let text = tapes(&bench);
        for line in text.lines().filter(|line| line.contains("\"k\":\"meta\"")) {
            let meta: serde_json::Value = serde_json::from_str(line).unwrap();
            let session = meta["source"]["session_id"].as_str().unwrap();
            if session.starts_with("agent-") {
                assert_eq!(meta["parent"]["kind"], "sub_agent", "{line}");
                assert!(!meta["parent"]["session_id"].as_str().unwrap().is_empty());
            }
        }
    }
    assert!(rollout(ID).ends_with(".jsonl"));
}

/// A transcript of another client is refused: an empty tape would look like a session in which nothing happened.
#[test]
fn lines_of_another_client_are_an_error() {
    let bench = Bench::new();
    let codex = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let ran = bench.run(&["record", codex.to_str().unwrap(), "--format", "claude-jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: use --format codex-jsonl"), "{}", ran.stderr);
    let claude = claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
    let ran = bench.run(&["record", claude.to_str().unwrap(), "--format", "codex-jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
}

/// Garbage has no tape; a transcript that its client only began has an empty one.
#[test]
fn an_input_without_any_line_of_the_format_is_an_error() {
    let bench = Bench::new();
    for (source, format) in sources::with_tape() {
        for input in ["garbage\n", "{\"a\":1}\n", "\u{1}\u{2}\n\u{3}\n", "{\"half\":"] {
            let ran = record_stdin(&bench, format, &[], &[input.as_bytes()]);
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{source} {input:?}: {}", ran.stderr);
            let names_it = ran.stderr.contains(&format!("no line of the input is {format}: line 1: "));
            assert!(names_it, "{source} {input:?}: {}", ran.stderr);
        }
        assert_eq!(record_stdin(&bench, format, &[], &[b""]).code, 0, "{source}");
    }
}

/// A line that a client wrote twice is no second call; a result whose call is missing makes the tape incomplete.
#[test]
fn repeated_lines_and_lone_results_are_told_apart() {
    let bench = Bench::new();
    let call = claude::answer_row(
        claude::ONE,
        2,
        "msg_1",
        serde_json::json!({"type": "tool_use", "id": "toolu_1", "name": "Write",
            "input": {"file_path": "/w/a", "content": "x\n"}}),
        1,
    );
    let result = |id: &str| {
        claude::row(
            claude::ONE,
            3,
            "user",
            serde_json::json!({"message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": "created"}]},
                "toolUseResult": {"type": "create", "filePath": "/w/a", "content": "x\n", "structuredPatch": []}}),
        )
    };
    let tape_of = |lines: &[&String]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let ran = record_stdin(&bench, format_of(claude::SOURCE), &[], &[text.as_bytes()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let events: Vec<serde_json::Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<String> =
            events[1..].iter().map(|event| event["k"].as_str().unwrap().to_owned()).collect();
        (kinds, events[0]["coverage.tool"].as_str().unwrap().to_owned())
    };
    let answer = result("toolu_1");
    let expected = (vec!["tool.call".into(), "tool.result".into(), "code.edit".into()], "full".to_owned());
    assert_eq!(tape_of(&[&call, &answer]), expected);
    assert_eq!(tape_of(&[&call, &call, &answer]), expected);
    assert_eq!(tape_of(&[&call, &answer, &call, &answer]), expected);
    assert_eq!(tape_of(&[&call, &answer, &result("toolu_9")]).1, "partial");
}
