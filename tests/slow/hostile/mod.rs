//! Homes that break readers: endless lines, deep nesting, odd bytes, absurd values.
#![cfg(unix)]

mod files;
mod sources;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use annals_testkit::checks::{assert_accounts_add_up, assert_restores};
use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout};
use annals_testkit::{Bench, Ran};

const HEALTHY: &str = "0199a1b2-0000-7000-8000-0000000000fe";
pub const MEGABYTE: usize = 1 << 20;
/// The most memory a sync may use, whatever it reads.
pub const MEMORY: u64 = 300 << 20;
/// Longer than this is a hang.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn a_line_of_100_megabytes_is_read() {
    let bench = bench();
    let words = r"long words\n".repeat(100 * MEGABYTE / 12);
    let mut lines = vec![meta(ID)];
    lines.push(format!(
        r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{words}"}}]}}}}"#
    ));
    lines.push(format!(
        r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"event_msg","payload":{{"type":"user_message","message":"{words}"}}}}"#
    ));
    lines.extend(answer("after the long line"));
    bench.transcript(&rollout(ID), &lines);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["skipped"], 0);
    let session = session(&bench, ID);
    assert_eq!((&session["user_message_count"], &session["assistant_message_count"]), (&1.into(), &1.into()));
    assert!(show(&bench, ID).contains("after the long line"));
    assert_sound(&bench);
}

#[test]
fn a_line_of_200_megabytes_is_kept_and_counted() {
    let bench = bench();
    let mut lines = vec![meta(ID)];
    let [item, _] = prompt(&"w".repeat(200 * MEGABYTE));
    lines.push(item);
    lines.extend(prompt("after the endless line"));
    bench.transcript(&rollout(ID), &lines);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["skipped"], 1);
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    assert!(show(&bench, ID).contains("after the endless line"));
    assert_sound(&bench);
}

#[test]
fn nesting_10_000_deep_is_only_a_line() {
    let bench = bench();
    let (arrays, objects) = ("[".repeat(10_000), r#"{"a":"#.repeat(10_000));
    let whole = [format!("{arrays}{}", "]".repeat(10_000)), format!("{objects}1{}", "}".repeat(10_000))];
    let torn = [arrays, objects, format!("{}{}", "[".repeat(10_000), "}".repeat(10_000))];
    let mut lines = vec![meta(ID).replace(r#""source":"cli""#, &format!(r#""source":{}"#, whole[1]))];
    for nested in &whole {
        let text = serde_json::to_string(nested).unwrap();
        for payload in [
            format!(r#"{{"type":"message","role":"user","content":{nested}}}"#),
            format!(r#"{{"type":"function_call","call_id":"a","name":"shell","arguments":{text}}}"#),
            format!(r#"{{"type":"function_call","call_id":"b","name":"shell","arguments":{nested}}}"#),
            format!(r#"{{"type":"function_call_output","call_id":"b","output":{nested}}}"#),
            format!(r#"{{"type":"local_shell_call","call_id":"c","action":{nested}}}"#),
            nested.clone(),
        ] {
            lines.push(response_item(&payload));
        }
    }
    lines.extend(torn.iter().map(|nested| response_item(nested)));
    lines.extend(
        torn.iter().map(|nested| {
            response_item(&format!(r#"{{"type":"message","role":"user","content":{nested}}}"#))
        }),
    );
    lines.extend(prompt("after the depths"));
    bench.transcript(&rollout(ID), &lines);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["malformed"], 6);
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    assert!(show(&bench, ID).contains("after the depths"));
    assert_sound(&bench);
}

#[test]
fn control_bytes_are_kept_and_do_not_reach_the_terminal() {
    let bench = bench();
    let mut bytes = line(&meta(ID));
    let harm = "\u{0}bell\u{7}\u{1b}]0;owned\u{7}\u{1b}[31mred\u{1b}[1mbold\u{1b}[0m\u{9b}2J";
    bytes.extend(prompt(harm).iter().flat_map(|text| line(text)));
    // The same bytes unescaped, which JSON forbids and clients wrote anyway.
    for text in answer("RAW") {
        bytes.extend(line(&text.replace("RAW", harm)));
    }
    bytes.extend(line(&response_item(
        r#"{"type":"function_call","call_id":"\u001b[2m","name":"\u001b[1mshell","arguments":"{\"command\":\"\u001b[1m\u0000\"}"}"#,
    )));
    bytes.extend(b"\0\0\0\x1b[2J\n");
    bytes.extend(b"{\"type\":\"event_msg\"\0,\"payload\":{}}\n");
    bytes.extend(prompt("after the bytes").iter().flat_map(|text| line(text)));
    raw_transcript(&bench, &rollout(ID), &bytes);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["malformed"], 2);
    assert_eq!(session(&bench, ID)["user_message_count"], 2);
    for arguments in [&["show", ID, "--full"][..], &["sessions", "--all"], &["sources", "--files"]] {
        let output = bench.command(arguments).output().unwrap();
        assert!(output.status.success());
        for printed in [&output.stdout, &output.stderr] {
            let bad = printed.iter().position(|byte| *byte < b' ' && !b"\n\t".contains(byte));
            assert_eq!(bad, None, "{arguments:?}: {}", String::from_utf8_lossy(printed).escape_debug());
        }
        assert!(!String::from_utf8(output.stdout).unwrap().contains('\u{9b}'), "{arguments:?}");
    }
    assert!(show(&bench, ID).contains("after the bytes"));
    assert_sound(&bench);
}

#[test]
fn invalid_utf8_is_kept_and_shown_as_a_mark() {
    let bench = bench();
    let mut bytes = line(&meta(ID));
    for text in prompt("BAD words") {
        let at = text.find("BAD").unwrap();
        bytes.extend(
            text[..at].bytes().chain(*b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf0\x9f").chain(text[at..].bytes()),
        );
        bytes.push(b'\n');
    }
    bytes.extend(b"\xff\xfe\x00{\x00\n");
    bytes.extend(b"{\"ty\xffpe\":\"event_msg\",\"type\":\"\xc3\x28\",\"payload\":{\"type\":\"\xff\"}}\n");
    bytes.extend(answer("after the damage").iter().flat_map(|text| line(text)));
    raw_transcript(&bench, &rollout(ID), &bytes);
    let report = sync_within(&bench, MEMORY);
    assert_eq!((&report["lines"]["malformed"], &report["lines"]["unknown"]), (&1.into(), &1.into()));
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    let shown = show_json(&bench, ID);
    assert!(shown["messages"][0].to_string().contains("BAD words"));
    assert!(show(&bench, ID).contains("after the damage"));
    assert_sound(&bench);
}

#[test]
fn lone_surrogates_are_prompts_like_any_other() {
    let bench = bench();
    let mut lines = vec![meta(ID)];
    for broken in [r"\ud83d", r"\ude00 tail", r"\ud83d\ud83d", r"\ud83dx", r"\ud83d\n", r"\uD8", r"\uzzzz"] {
        lines.extend(prompt("MARK").map(|text| text.replace("MARK", broken)));
    }
    lines.extend(prompt("whole \u{1f600}"));
    bench.transcript(&rollout(ID), &lines);
    sync_within(&bench, MEMORY);
    assert_eq!(session(&bench, ID)["user_message_count"], 8);
    let shown = show_json(&bench, ID);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 8);
    assert!(shown.to_string().contains('\u{1f600}'));
    for line in run(bench.command(&["records", "codex_cli/messages"])).stdout.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert_sound(&bench);
}

#[test]
fn garbage_lines_are_counted_and_nothing_more() {
    let bench = bench();
    let mut bytes = line(&meta(ID));
    for (number, chunk) in noise(5, 1_000_000).chunks(100).enumerate() {
        bytes.extend(chunk.iter().map(|byte| if *byte == b'\n' || *byte == b'\r' { b'.' } else { *byte }));
        bytes.extend([b'\n', b'\n'].iter().take(1 + number % 2));
    }
    bytes.extend(prompt("after the garbage").iter().flat_map(|text| line(text)));
    raw_transcript(&bench, &rollout(ID), &bytes);
    let report = sync_within(&bench, MEMORY);
    assert_eq!((&report["lines"]["malformed"], &report["lines"]["skipped"]), (&10_000.into(), &5_000.into()));
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    assert!(show(&bench, ID).contains("after the garbage"));
    assert_sound(&bench);
}

#[test]
fn millions_of_tiny_lines_do_not_fill_the_memory() {
    let bench = bench();
    let mut bytes = line(&meta(ID));
    bytes.extend(b"x\n".repeat(8 * MEGABYTE));
    bytes.extend(prompt("after the grains").iter().flat_map(|text| line(text)));
    raw_transcript(&bench, &rollout(ID), &bytes);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["malformed"], 8 * MEGABYTE);
    assert!(show(&bench, ID).contains("after the grains"));
    assert_sound(&bench);
}

#[test]
fn a_type_of_any_length_is_counted_under_a_short_name() {
    let bench = bench();
    let mut lines = vec![meta(ID)];
    lines.push(format!(r#"{{"type":"{}","payload":{{}}}}"#, "\u{e9}".repeat(2 * MEGABYTE)));
    lines.push(response_item(&format!(r#"{{"type":"{}"}}"#, "t".repeat(4 * MEGABYTE))));
    lines.extend((0..10_000).map(|number| format!(r#"{{"type":"kind {number}","payload":{{}}}}"#)));
    lines.extend(prompt("after the kinds"));
    bench.transcript(&rollout(ID), &lines);
    let report = sync_within(&bench, MEMORY);
    assert_eq!(report["lines"]["unknown"], 10_002);
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    let database = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    let longest: i64 = database
        .query_row("select max(length(cast(kind as blob))) from coverage", [], |row| row.get(0))
        .unwrap();
    assert!(longest <= 300, "{longest}");
    assert_sound(&bench);
}

#[test]
fn absurd_numbers_and_times_are_only_values() {
    let bench = bench();
    let mut lines = vec![meta(ID).replace("2026-11-15T10:00:00.000Z", "9999-12-31T23:59:60.999Z")];
    for number in
        ["9223372036854775807", "-9223372036854775808", "1e308", "1e999", "99999999999999999999", "0.5", "-1"]
    {
        let usage = format!(
            r#"{{"input_tokens":{number},"cached_input_tokens":{number},"output_tokens":{number},"reasoning_output_tokens":{number},"total_tokens":{number}}}"#
        );
        for total in 0..3 {
            lines.push(format!(
                r#"{{"timestamp":"2026-11-15T10:00:02.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total}}},"last_token_usage":{usage}}}}}}}"#
            ));
        }
        lines.push(format!(
            r#"{{"timestamp":"{number}","type":"token_usage_record","payload":{{"response_id":"r{number}","usage":{usage}}}}}"#
        ));
        lines.push(response_item(&format!(
            r#"{{"type":"function_call_output","call_id":"c","output":"{{\"output\":\"x\",\"metadata\":{{\"exit_code\":{number},\"duration_seconds\":{number}}}}}"}}"#
        )));
        lines.push(format!(
            r#"{{"timestamp":"0000-01-01T00:00:00Z","type":"event_msg","payload":{{"type":"exec_command_end","call_id":"c","exit_code":{number},"duration":{{"secs":{number},"nanos":{number}}},"aggregated_output":""}}}}"#
        ));
    }
    lines.extend(
        prompt("after the numbers").map(|text| text.replace("2026-11-15T10:00:01", "-9999-99-99T99:99:99")),
    );
    let path = bench.transcript(&rollout(ID), &lines);
    let history: String = ["9223372036854775807", "-9223372036854775808", "1e15", "0"]
        .iter()
        .map(|number| format!("{{\"session_id\":\"gone\",\"ts\":{number},\"text\":\"typed\"}}\n"))
        .collect();
    std::fs::write(bench.codex().join("history.jsonl"), history).unwrap();
    let database = rusqlite::Connection::open(bench.codex().join("state_5.sqlite")).unwrap();
    database
        .execute_batch(
            "create table threads (id text, title text, created_at integer, updated_at_ms integer, archived integer);
             insert into threads values ('a', 'b', 9223372036854775807, 9223372036854775807, -9223372036854775808);
             insert into threads values ('c', 'd', -9223372036854775808, -9223372036854775808, 1.5)",
        )
        .unwrap();
    drop(database);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    // Not every file system supports such a date.
    let _ = file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1 << 55));
    sync_within(&bench, MEMORY);
    assert_eq!(session(&bench, ID)["user_message_count"], 1);
    for arguments in
        [&["sessions", "--all"][..], &["sources"], &["show", ID], &["records", "codex_cli/history"]]
    {
        run(bench.command(arguments));
    }
    assert_sound(&bench);
}

/// A home with one healthy session.
pub fn bench() -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(HEALTHY), &conversation(HEALTHY, "healthy words"));
    bench
}

/// Runs a command that must succeed, in time, and without a panic.
pub fn run(mut command: Command) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
    let open = |path: &Path| Stdio::from(std::fs::File::create(path).unwrap());
    let mut child = command.stdout(open(&stdout)).stderr(open(&stderr)).stdin(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if started.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{command:?} hangs");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let read = |path: &Path| std::fs::read(path).unwrap();
    let ran = Ran::of(std::process::Output { status, stdout: read(&stdout), stderr: read(&stderr) });
    assert!(!ran.stderr.contains("panicked"), "{command:?}: {}", ran.stderr);
    assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
    ran
}

/// Syncs within bounds and returns the report of the first source.
pub fn sync_within(bench: &Bench, memory: u64) -> Value {
    let ran = run(bench.command(&["sync", "--json"]));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let peak = report["peak_memory_bytes"].as_u64();
    assert!(peak.is_none_or(|peak| peak <= memory), "{} MB", peak.unwrap_or_default() >> 20);
    report["sources"][0].clone()
}

/// Nothing lost, everything counted, the healthy session is readable, and a rebuild gives the same.
pub fn assert_sound(bench: &Bench) {
    assert_accounts_add_up(bench, &bench.codex());
    assert_restores(bench, &bench.codex());
    let healthy = session(bench, HEALTHY);
    assert_eq!((&healthy["title"], &healthy["message_count"]), (&"healthy words".into(), &2.into()));
    assert!(show(bench, HEALTHY).contains("about healthy words"));
    let sessions = || {
        let mut sessions = bench.sessions();
        sessions.sort_by_key(|session| session["session_id"].to_string());
        sessions
    };
    let before = (sessions(), bench.accounts());
    run(bench.command(&["rebuild"]));
    assert_eq!(sessions(), before.0, "a rebuild finds the same sessions");
    assert_eq!(bench.accounts(), before.1, "a rebuild counts the same lines");
}

pub fn session(bench: &Bench, id: &str) -> Value {
    let sessions = bench.sessions();
    sessions
        .into_iter()
        .find(|session| session["session_id"] == id)
        .unwrap_or_else(|| panic!("no session {id}"))
}

pub fn show(bench: &Bench, id: &str) -> String {
    run(bench.command(&["show", id])).stdout
}

fn show_json(bench: &Bench, id: &str) -> Value {
    let output = bench.command(&["show", id, "--json", "--full"]).output().unwrap();
    assert!(output.status.success());
    serde_json::from_str(std::str::from_utf8(&output.stdout).unwrap()).unwrap()
}

fn response_item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"response_item","payload":{payload}}}"#)
}

pub fn line(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\n"].concat()
}

pub fn raw_transcript(bench: &Bench, name: &str, bytes: &[u8]) -> PathBuf {
    let path = bench.codex().join("sessions/2026/11/15").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

/// Incompressible bytes, the same in every run.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn blake3_text(seed: u64, length: usize) -> String {
    noise(seed, length / 2).iter().map(|byte| format!("{byte:02x}")).collect()
}
