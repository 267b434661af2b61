//! Repositories in which other programs keep transcripts, notes and trailers explain themselves.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{CODE, SESSION, session_that_writes};
use annals_testkit::checks::assert_rebuilds;
use annals_testkit::git::Repository;
use annals_testkit::{Bench, Ran};

const OTHER: &str = "5e551011-0000-4000-8000-0000000000c2";
const AT: (&str, &str) = ("2024-03-02T09:30:00Z", "2024-03-02T09:30:00Z");
const CHECKPOINT: &str = "abcdef012345";

fn run(bench: &Bench, arguments: &[&str]) -> Ran {
    Ran::of(bench.command(arguments).env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap())
}

fn run_json(bench: &Bench, arguments: &[&str]) -> Value {
    let ran = run(bench, &[arguments, &["--json"]].concat());
    assert!(ran.code < 2, "{arguments:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn engine(bench: &Bench) -> (Repository, PathBuf) {
    let top = bench.folder.path().canonicalize().unwrap();
    let repository = Repository::create(&top.join("engine"));
    let file = repository.folder.join("gears.py");
    (repository, file)
}

/// The transcript of a session that wrote the file, without leaving it in the home.
fn transcript(bench: &Bench, session: &str, file: &Path) -> String {
    session_that_writes(bench, session, "2024-03-02T09:00", file, CODE);
    let path = bench.claude().join(format!("projects/-engine/{session}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

/// Puts files on the branch that Entire uses, as it lays them out: `<id[..2]>/<id[2..]>/<number>/`.
fn put_checkpoints(bench: &Bench, repository: &Repository, checkpoints: &[(&str, &str, &str)]) {
    let folder = bench.folder.path().join(format!("store-{}", checkpoints.len()));
    let store = Repository::create(&folder);
    let mut files = Vec::new();
    for (id, session, text) in checkpoints {
        let below = format!("{}/{}", &id[..2], &id[2..]);
        let metadata = json!({"checkpoint_id": id, "session_id": format!("2024-03-02-{session}"),
            "strategy": "manual-commit", "files_touched": ["gears.py"], "agent": "Some Agent"});
        files.push((
            format!("{below}/metadata.json"),
            json!({"checkpoint_id": id, "sessions": []}).to_string(),
        ));
        files.push((format!("{below}/0/metadata.json"), metadata.to_string()));
        files.push((format!("{below}/0/full.jsonl"), text.to_string()));
        files.push((format!("{below}/0/prompt.txt"), "Count the gears".to_owned()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    store.commit_files(&files, "Checkpoint", AT);
    let from = folder.to_str().unwrap();
    repository.git(&["fetch", "--quiet", from, "+main:refs/heads/entire/checkpoints/v1"]);
}

fn counts(report: &Value) -> [i64; 3] {
    let totals = &report["imports"][0]["sources"][0];
    ["new", "changed", "unchanged"].map(|name| totals[name].as_i64().unwrap_or(-1))
}

#[test]
fn transcripts_in_a_repository_become_sessions() {
    let bench = Bench::new();
    let (repository, file) = engine(&bench);
    let text = transcript(&bench, SESSION, &file);
    let trailer = format!("Count gears\n\nEntire-Checkpoint: {CHECKPOINT}");
    repository.commit_files(&[("gears.py", CODE)], &trailer, AT);
    let (path, top) = (file.to_str().unwrap(), repository.folder.to_str().unwrap());
    // The first lines only: a checkpoint in the middle of the session.
    let half: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    put_checkpoints(&bench, &repository, &[(CHECKPOINT, SESSION, &half)]);
    assert_eq!(counts(&run_json(&bench, &["import", "--git", top])), [1, 0, 0]);
    put_checkpoints(&bench, &repository, &[(CHECKPOINT, SESSION, &half), ("bbcdef012345", SESSION, &text)]);
    assert_eq!(counts(&run_json(&bench, &["import", "--git", top])), [0, 1, 0]);
    let again = run_json(&bench, &["import", "--git", top]);
    assert_eq!(counts(&again), [0, 0, 1], "{again}");
    assert_eq!(again["imports"][0]["sources"][0]["captured_bytes"], 0);
    let sessions = bench.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!((&sessions[0]["session_id"], &sessions[0]["message_count"]), (&SESSION.into(), &2.into()));
    let blame = run_json(&bench, &["blame", path]);
    assert_eq!(blame["lines"]["exact"], 3, "{blame}");
    assert_eq!(blame["origins"][0]["session_id"], SESSION);
    assert_eq!(
        (&blame["evidence"][0]["status"], &blame["evidence"][0]["contradicted"]),
        (&"agrees".into(), &0.into())
    );
    assert_rebuilds(&bench);
    let restored = bench.folder.path().join("restored");
    assert_eq!(run(&bench, &["restore", "--to", restored.to_str().unwrap()]).code, 0);
    let kept = restored.join(format!("claude_code/transcripts/{SESSION}.jsonl"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
}

#[test]
fn imported_transcripts_count_once_beside_their_originals() {
    let sum = |bench: &Bench| -> (i64, i64) {
        let count = |name: &str| bench.sessions().iter().map(|session| session[name].as_i64().unwrap()).sum();
        (count("message_count"), count("tool_call_count"))
    };
    for imported_first in [true, false] {
        let bench = Bench::new();
        let (repository, file) = engine(&bench);
        let text = transcript(&bench, SESSION, &file);
        repository.commit_files(&[("gears.py", CODE)], "Count gears", AT);
        // Entire masks what it takes for secrets; the client's own words are shown.
        let masked = text.replace("Count the gears", "REDACTED");
        put_checkpoints(&bench, &repository, &[(CHECKPOINT, SESSION, &masked)]);
        let top = repository.folder.to_str().unwrap();
        let import = || assert_eq!(counts(&run_json(&bench, &["import", "--git", top])), [1, 0, 0]);
        let original = bench.claude().join(format!("projects/-engine/{SESSION}.jsonl"));
        if imported_first {
            import();
        }
        std::fs::write(&original, &text).unwrap();
        bench.sync();
        if !imported_first {
            import();
        }
        assert_eq!(sum(&bench), (2, 1), "{imported_first}");
        let shown = run(&bench, &["show", SESSION]).stdout;
        assert!(
            shown.contains("Count the gears") && !shown.contains("REDACTED"),
            "{imported_first}: {shown}"
        );
        assert!(run(&bench, &["tape", SESSION]).stdout.contains("Count the gears"), "{imported_first}");
        assert_eq!(run_json(&bench, &["blame", file.to_str().unwrap()])["lines"]["exact"], 3);
        assert_rebuilds(&bench);
    }
}

#[test]
fn sync_offers_what_a_repository_keeps() {
    let bench = Bench::new();
    let (repository, file) = engine(&bench);
    let text = transcript(&bench, OTHER, &file);
    put_checkpoints(&bench, &repository, &[(CHECKPOINT, OTHER, &text)]);
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, CODE);
    let top = repository.folder.to_str().unwrap();
    let hint = format!("hint: annals import --git {top}");
    let first = run(&bench, &["sync"]);
    assert!(first.stderr.contains(&hint), "{}", first.stderr);
    assert_eq!(run(&bench, &["import", "--git", top]).code, 0);
    session_that_writes(&bench, &SESSION.replace("b1", "b3"), "2024-03-02T09:10", &file, CODE);
    assert!(!run(&bench, &["sync"]).stderr.contains(&hint));
}

/// A note as git-ai writes it: line ranges of each file, and the person behind each key.
fn note(ranges: &[(&str, &str)], session: &str) -> String {
    let lines: String = ranges.iter().map(|(key, lines)| format!("  {key} {lines}\n")).collect();
    let metadata = json!({"schema_version": "authorship/3.0.0", "git_ai_version": "1.4.0",
        "base_commit_sha": "0", "prompts": {}, "humans": {"h_dca485b1adf836": {"author": "ada"}},
        "sessions": {"s_c9883b05a2487d": {"agent_id": {"tool": "some-agent", "id": session, "model": "made-up-2"},
            "human_author": "ada"}}});
    format!("gears.py\n{lines}---\n{metadata:#}")
}

#[test]
fn notes_explain_lines_without_a_transcript() {
    let bench = Bench::new();
    bench.sync();
    let (repository, file) = engine(&bench);
    let commit = repository.commit_files(&[("gears.py", CODE)], "Count gears", AT);
    let text = note(&[("s_c9883b05a2487d::t_9f8e7d6c5b4a32", "1-2"), ("h_dca485b1adf836", "3")], OTHER);
    repository.git(&["notes", "--ref=ai", "add", "--message", &text, &commit]);
    let path = file.to_str().unwrap();
    let blame = run_json(&bench, &["blame", path]);
    let lines = &blame["lines"];
    assert_eq!((&lines["noted"], &lines["unknown"]), (&2.into(), &1.into()), "{blame}");
    let evidence = &blame["evidence"][0];
    assert_eq!((&evidence["kind"], &evidence["status"]), (&"noted".into(), &"alone".into()));
    assert_eq!((&evidence["session_id"], &evidence["model"]), (&OTHER.into(), &"made-up-2".into()));
    assert_eq!(evidence["person"], "ada");
    let part = run_json(&bench, &["blame", &format!("{path}:3")]);
    assert_eq!((&part["lines"]["noted"], &part["lines"]["unknown"]), (&0.into(), &1.into()));
    let table = run(&bench, &["blame", path]);
    assert_eq!(table.code, 0);
    assert!(table.stdout.contains("noted") && table.stdout.contains("some-agent"), "{}", table.stdout);
    assert!(run(&bench, &["blame", "--porcelain", path]).stdout.contains("evidence noted alone some-agent"));
    let report = run_json(&bench, &["import", "--git", repository.folder.to_str().unwrap()]);
    assert_eq!(report["imports"][0]["members"][0]["name"], "refs/notes/ai", "{report}");
}

#[test]
fn a_note_never_outweighs_the_text_of_an_edit() {
    let bench = Bench::new();
    let (repository, file) = engine(&bench);
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, CODE);
    // The session that the note names is known, and worked on another file.
    let pears = repository.folder.join("pears.py");
    session_that_writes(&bench, OTHER, "2024-03-02T09:01", &pears, "def count_pears(tree):\n    return 0\n");
    bench.sync();
    let commit = repository.commit_files(&[("gears.py", &format!("{CODE}# by hand\n"))], "Count gears", AT);
    let text = note(&[("s_c9883b05a2487d::t_9f8e7d6c5b4a32", "1-4")], OTHER);
    repository.git(&["notes", "--ref=ai", "add", "--message", &text, &commit]);
    let path = file.to_str().unwrap();
    let blame = run_json(&bench, &["blame", path]);
    let lines = &blame["lines"];
    assert_eq!(
        (&lines["exact"], &lines["noted"], &lines["unknown"]),
        (&3.into(), &0.into(), &1.into()),
        "{blame}"
    );
    let evidence = &blame["evidence"][0];
    assert_eq!((&evidence["status"], &evidence["contradicted"]), (&"disagrees".into(), &3.into()));
    assert!(blame["origins"].as_array().unwrap().iter().all(|origin| origin["session_id"] == SESSION));
    let table = run(&bench, &["blame", path]);
    assert!(table.stderr.contains("which never touched this file: disagrees"), "{}", table.stderr);
}

#[test]
fn trailers_have_a_grade_of_their_own() {
    let bench = Bench::new();
    let (repository, file) = engine(&bench);
    let pears = repository.folder.join("pears.py");
    session_that_writes(&bench, OTHER, "2024-03-02T09:00", &pears, "def count_pears(tree):\n    return 0\n");
    bench.sync();
    let message = "Count gears\n\nCo-Authored-By: Claude Opus 4.5 <noreply@anthropic.com>";
    repository.commit_files(&[("gears.py", CODE)], message, AT);
    let path = file.to_str().unwrap();
    let blame = run_json(&bench, &["blame", path]);
    assert_eq!((&blame["lines"]["trailer"], &blame["lines"]["unknown"]), (&3.into(), &0.into()), "{blame}");
    let evidence = &blame["evidence"][0];
    assert_eq!((&evidence["tool"], &evidence["model"]), (&"claude_code".into(), &"Claude Opus 4.5".into()));
    assert_eq!(evidence["session_id"], Value::Null);
    // A checkpoint of a session that never touched the file.
    put_checkpoints(&bench, &repository, &[(CHECKPOINT, OTHER, "{}\n")]);
    let message = format!("More\n\nEntire-Checkpoint: {CHECKPOINT}");
    repository.commit_files(&[("gears.py", &format!("{CODE}# more of it\n"))], &message, AT);
    let blame = run_json(&bench, &["blame", path]);
    assert_eq!((&blame["lines"]["trailer"], &blame["lines"]["unknown"]), (&3.into(), &1.into()), "{blame}");
    let found =
        blame["evidence"].as_array().unwrap().iter().find(|evidence| evidence["status"] == "disagrees");
    assert_eq!(found.unwrap()["session_id"], format!("2024-03-02-{OTHER}"), "{blame}");
}
