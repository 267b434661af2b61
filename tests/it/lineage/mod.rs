//! Every line of a made-up repository is traced to its author, whatever was done to the repository since.

mod over_time;
mod real;
mod repositories;
mod stores;
mod time;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::files::copy_folder;
use annals_testkit::worlds::lineage::dated::write_dated_world;
use annals_testkit::worlds::lineage::{GRADES, LineagePlan, Score, World, write_world};

/// A bench with the homes of a world.
fn bench_of(plan: &LineagePlan) -> (Bench, World) {
    let bench = Bench::new();
    let world = write_world(bench.folder.path(), plan).unwrap();
    copy_folder(&bench.folder.path().join("codex"), &bench.codex());
    copy_folder(&bench.folder.path().join("claude"), &bench.claude());
    bench.sync();
    (bench, world)
}

pub fn blamed(bench: &Bench, file: &Path) -> Value {
    let ran = bench.run(&["blame", "--no-git", "--json", file.to_str().unwrap()]);
    assert!(ran.code < 2, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Old checkouts, and sessions that quoted or rewrote the same lines weeks later.
#[test]
fn no_line_is_credited_to_a_later_edit() {
    let (bench, mut score) = (Bench::new(), Score::default());
    let plan = LineagePlan { seed: 5, sessions: 15, edits: 12 };
    let (repository, states) = write_dated_world(bench.folder.path(), &plan).unwrap();
    copy_folder(&bench.folder.path().join("codex"), &bench.codex());
    copy_folder(&bench.folder.path().join("claude"), &bench.claude());
    bench.sync();
    assert_eq!(states.len(), 3);
    for state in &states {
        for path in state.files.keys() {
            let file = repository.folder.join(path);
            let mut command =
                bench.command(&["blame", "--json", "--at", &state.commit, file.to_str().unwrap()]);
            let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
            // Files of older states may be in directories that are gone.
            if output.status.code() == Some(2) {
                assert!(!file.parent().unwrap().is_dir(), "{}", String::from_utf8_lossy(&output.stderr));
                continue;
            }
            state.score(path, &serde_json::from_slice(&output.stdout).unwrap(), &mut score);
        }
    }
    println!("{score:?}");
    assert_eq!(score.late, 0, "{score:?}");
    assert!(score.unmodified.all > 1_500, "{score:?}");
    assert!(score.graded[0].share() >= 0.995, "exact: {score:?}");
    assert!(score.graded[1].share() >= 0.98, "moved: {score:?}");
    assert!(score.unmodified.share() >= 0.95, "recall: {score:?}");
    assert!(score.human.share() >= 0.99, "human: {score:?}");
}

#[test]
fn lines_are_traced_through_renames_moves_and_formatting() {
    let mut score = Score::default();
    for seed in [3, 77] {
        let (bench, world) = bench_of(&LineagePlan { seed, sessions: 20, edits: 14 });
        for (path, truth) in &world.files {
            score.add(truth, &blamed(&bench, &world.folder.join(path)));
        }
    }
    let summary: Vec<String> = GRADES
        .iter()
        .zip(score.graded)
        .map(|(grade, count)| format!("{grade} {:.4} of {}", count.share(), count.all))
        .collect();
    println!("{}", summary.join(", "));
    assert!(score.unmodified.all > 3_000, "{score:?}");
    assert!(score.graded[0].share() >= 0.99, "exact: {score:?}");
    assert!(score.graded[1].share() >= 0.99, "moved: {score:?}");
    assert!(score.unmodified.share() >= 0.95, "recall: {score:?}");
    assert!(score.human.share() >= 0.99, "human: {score:?}");
}

/// A small session that writes one file, and the file itself in a separate repository.
pub fn small(text: &str) -> (Bench, PathBuf) {
    small_at(text, "engine/gears.py")
}

/// The same, but the file is outside the directory that the session ran in.
pub fn small_elsewhere(text: &str) -> (Bench, PathBuf) {
    small_at(text, "elsewhere/gears.py")
}

fn small_at(text: &str, place: &str) -> (Bench, PathBuf) {
    let bench = Bench::new();
    let file = bench.folder.path().canonicalize().unwrap().join(place);
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, text);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    bench.sync();
    (bench, file)
}

/// The transcript of a session in `engine` that writes one file in one call, at a minute.
fn session_that_writes(bench: &Bench, session: &str, minute: &str, file: &Path, text: &str) {
    let input = json!({"file_path": file, "content": text});
    session_with_call(bench, session, minute, ("Write", input), Value::Null);
}

/// The transcript of a session in `engine` with one call and its record of the result.
pub fn session_with_call(bench: &Bench, session: &str, minute: &str, call: (&str, Value), detail: Value) {
    let folder = bench.folder.path().canonicalize().unwrap().join("engine");
    std::fs::create_dir_all(&folder).unwrap();
    let row = |kind: &str, number: usize, message: Value| {
        json!({"type": kind, "uuid": format!("{session}-{number}"), "sessionId": session, "cwd": folder,
            "version": "2.1.112", "timestamp": format!("{minute}:0{number}.000Z"), "message": message})
    };
    let call_id = format!("toolu_{}", &session[session.len() - 1..]);
    let (name, input) = call;
    let call = json!({"id": format!("msg_{session}"), "role": "assistant", "model": "made-up-1", "content": [
        {"type": "tool_use", "id": call_id, "name": name, "input": input}]});
    let done = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call_id, "content": "created"}]});
    let mut rows = [
        row("user", 1, json!({"role": "user", "content": "Count the gears"})),
        row("assistant", 2, call),
        row("user", 3, done),
    ];
    if !detail.is_null() {
        rows[2]["toolUseResult"] = detail;
    }
    let path = bench.claude().join(format!("projects/-engine/{session}.jsonl"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
}

pub const SESSION: &str = "5e551011-0000-4000-8000-0000000000b1";
pub const CODE: &str = "def count_gears(engine):\n    total = len(engine.gears)\n    return total\n";

#[test]
fn all_output_formats_agree() {
    let (bench, file) = small(CODE);
    std::fs::write(&file, format!("# a note of mine\n{CODE}print('by hand, and not traced')\n")).unwrap();
    let path = file.to_str().unwrap();
    let blame = blamed(&bench, &file);
    let grades: Vec<&str> =
        blame["spans"].as_array().unwrap().iter().map(|span| span["grade"].as_str().unwrap()).collect();
    assert_eq!(grades, ["unknown", "exact", "unknown"]);
    assert_eq!((&blame["spans"][1]["start"], &blame["spans"][1]["end"]), (&Value::from(2), &Value::from(4)));
    assert_eq!(blame["spans"][1]["written_at_line"], 1);
    let origin = &blame["origins"][0];
    assert_eq!((&origin["session_id"], &origin["call_id"]), (&Value::from(SESSION), &Value::from("toolu_1")));
    assert_eq!(
        (&origin["prompt"], &origin["model"]),
        (&Value::from("Count the gears"), &Value::from("made-up-1"))
    );
    let listed = &bench.json(&["sessions"])["sessions"][0];
    assert!(origin["title"].is_string() && origin["title"] == listed["title"], "{origin}");
    let ran = bench.run(&["blame", "--no-git", path]);
    assert!(ran.stdout.lines().nth(1).unwrap().contains("Write"), "{}", ran.stdout);
    assert!(ran.stdout.lines().next().unwrap().starts_with("- "), "{}", ran.stdout);
    assert!(ran.stderr.contains("Count the gears") && ran.stderr.contains("annals show"), "{}", ran.stderr);
    let porcelain = bench.run(&["blame", "--no-git", "--porcelain", &format!("{path}:3-3")]).stdout;
    let id = origin["id"].as_str().unwrap();
    assert!(porcelain.starts_with(&format!("{id} 2 3\ngrade exact\nsource claude_code\n")), "{porcelain}");
    assert!(porcelain.ends_with("\t    total = len(engine.gears)\n"), "{porcelain}");
    let lines = bench.json(&["blame", "--no-git", &format!("{path}:2")]);
    assert_eq!(lines["spans"].as_array().unwrap().len(), 1);
    assert_eq!(bench.run(&["blame", "--no-git", &format!("{path}:1")]).code, 1);
    assert_eq!(bench.run(&["blame", "--no-git", &format!("{path}:99")]).code, 2);
    assert_eq!(bench.run(&["blame", "--no-git", "/no/such/file"]).code, 2);
    // The step that the answer refers to can be opened.
    let step = origin["message_id"].as_str().unwrap();
    assert_eq!(bench.run(&["show", SESSION, "--at", step]).code, 0);
}

#[test]
fn passages_and_folders_are_traced_too() {
    let (bench, file) = small(CODE);
    let text = bench.json(&["blame", "--text", "total = len(engine.gears)"]);
    assert_eq!(text["origins"][0]["call_id"], "toolu_1");
    let ran = bench.run(&["blame", "--text", "nobody ever wrote this line"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("1 line: 0 exact"), "{}", ran.stderr);
    std::fs::write(file.with_file_name("mine.py"), "only_mine = 'and nobody else'\n").unwrap();
    std::fs::write(file.with_file_name("picture.bin"), b"\0\x01\x02").unwrap();
    let folder = file.parent().unwrap().to_str().unwrap();
    let sums = bench.json(&["blame", "--no-git", "--stat", folder]);
    assert_eq!(sums["lines"]["total"], 4);
    assert_eq!((&sums["lines"]["exact"], &sums["lines"]["unknown"]), (&Value::from(3), &Value::from(1)));
    assert_eq!(sums["sessions"][0]["name"], SESSION);
    assert_eq!(sums["sessions"][0]["share"], 0.75);
    assert_eq!(
        (&sums["sources"][0]["name"], &sums["models"][0]["name"]),
        (&"claude_code".into(), &"made-up-1".into())
    );
    let shown = bench.run(&["blame", "--no-git", "--stat", folder]).stdout;
    assert!(shown.contains("75 %") && shown.contains("4 lines in 2 files: 3 exact"), "{shown}");
}

#[test]
fn a_session_reports_what_is_left_of_its_edits() {
    let (bench, file) = small(CODE);
    std::fs::write(&file, "def count_gears(engine):\n    return total\n").unwrap();
    let shown = bench.run(&["show", SESSION, "--lineage"]).stdout;
    assert!(shown.contains(&format!("2 of 3 lines are still in {}: lines 1-2", file.display())), "{shown}");
    let blame = bench.json(&["show", SESSION, "--lineage"]);
    assert!(blame.to_string().contains(r#""lineage":[{"call_id":"toolu_1""#), "{blame}");
    std::fs::remove_file(&file).unwrap();
    assert!(bench.run(&["show", SESSION, "--lineage"]).stdout.contains("0 of 3 lines are still in"));
    assert!(!bench.run(&["show", SESSION]).stdout.contains("still in"));
}

#[test]
fn failed_or_copied_edits_have_no_lines() {
    let home = annals_testkit::fixtures::case("codex_cli", "patches").join("home");
    let bench = Bench::with_home("codex_cli", &home);
    bench.sync();
    assert_eq!(bench.run(&["blame", "--text", "never"]).code, 1);
    let (bench, file) = small(CODE);
    let before = blamed(&bench, &file);
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(blamed(&bench, &file), before);
}

#[test]
fn files_a_client_snapshotted_count_as_read() {
    let (bench, file) = small(CODE);
    let mine = "# people wrote this long before\nlegacy_ratio = compute_ratio(old_engine)\nprint(legacy_ratio, 'rpm')\n\
                assert legacy_ratio > lowest_ratio_of_all\nstore_ratio(legacy_ratio, place='shelf')\n\
                report_ratio(legacy_ratio, to='ada')\n";
    let copy = bench.claude().join(format!("file-history/{SESSION}/0123456789abcdef@v1"));
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::write(copy, mine).unwrap();
    let transcript = bench.claude().join(format!("projects/-engine/{SESSION}.jsonl"));
    let row = serde_json::json!({"type": "file-history-snapshot", "messageId": "u1", "isSnapshotUpdate": false,
        "snapshot": {"messageId": "u1", "timestamp": "2026-03-02T09:00:01.000Z", "trackedFileBackups":
            {"gears.py": {"backupFileName": "0123456789abcdef@v1", "version": 1,
                "backupTime": "2026-03-02T09:00:01.000Z"}}}});
    let before = std::fs::read_to_string(&transcript).unwrap();
    std::fs::write(&transcript, format!("{before}{row}\n")).unwrap();
    std::fs::write(&file, format!("{mine}{CODE}")).unwrap();
    bench.sync();
    let blame = blamed(&bench, &file);
    assert_eq!(
        (&blame["lines"]["read"], &blame["lines"]["exact"]),
        (&Value::from(6), &Value::from(3)),
        "{blame}"
    );
    let read = blame["spans"].as_array().unwrap().iter().find(|span| span["grade"] == "read").unwrap();
    let origin = &blame["origins"][read["origin"].as_u64().unwrap() as usize];
    assert_eq!(origin["session_id"], SESSION);
    assert_eq!(bench.sessions().len(), 1);
}
