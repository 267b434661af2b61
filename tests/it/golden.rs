//! Every fixture directory is a test: its home is synced, and records, transcripts, accounts and tapes must be as
//! expected.
//!
//! `UPDATE_EXPECT=1 cargo test --test it golden` writes the actual results; a person then reviews the diff.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use annals_testkit::checks::{assert_accounts_add_up, assert_restores_of, timeless};
use annals_testkit::{Bench, fixtures};

#[test]
fn imports_give_what_is_expected() {
    for (source, case) in fixtures::with_exports() {
        let bench = fixtures::imported(&case);
        for (name, found) in [
            ("records.jsonl", records(&bench, source)),
            ("transcript.json", transcripts(&bench)),
            ("coverage.json", coverage(&bench)),
        ] {
            compare(&case.join(name), &timeless(&found));
        }
    }
}

#[test]
fn imports_survive_a_second_import_and_a_rebuild() {
    for (_, case) in fixtures::with_exports() {
        let bench = fixtures::imported(&case);
        assert_accounts_add_up(&bench, &case);
        let before = bench.everything();
        let mut exports: Vec<PathBuf> = std::fs::read_dir(bench.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("export-"))
            .collect();
        exports.sort();
        for export in exports {
            for totals in bench.import(&[&export])["sources"].as_array().unwrap() {
                assert_eq!(
                    (&totals["new"], &totals["changed"], &totals["captured_bytes"]),
                    (&json!(0), &json!(0), &json!(0)),
                    "{}",
                    case.display()
                );
            }
        }
        assert!(bench.everything() == before, "{}: a second import changed rows", case.display());
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        let rebuilt = bench.everything();
        annals_testkit::checks::assert_same(&before, &rebuilt);
    }
}

/// Compares a text with a file; `UPDATE_EXPECT=1` writes it there.
fn compare(path: &Path, found: &str) {
    expect_test::expect_file![path].assert_eq(found);
}

#[test]
fn fixtures_give_what_is_expected() {
    for (source, case) in fixtures::with_home() {
        let bench = fixtures::synced(source, &case);
        for (name, found) in [
            ("records.jsonl", records(&bench, source)),
            ("transcript.json", transcripts(&bench)),
            ("coverage.json", coverage(&bench)),
            ("tape.jsonl", tapes(&bench)),
        ] {
            compare(&case.join(name), &found);
        }
    }
}

#[test]
fn fixtures_survive_a_second_sync_a_rebuild_and_a_restore() {
    for (source, case) in fixtures::with_home() {
        let home = case.join("home");
        let bench = Bench::with_home(source, &home);
        bench.sync();
        assert_restores_of(&bench, source, &home);
        assert_accounts_add_up(&bench, &home);
        let before = bench.everything();
        assert_eq!(bench.sync_of(source)["captured_bytes"], 0, "{}", case.display());
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        assert!(bench.everything() == before, "{}: rebuild changed rows", case.display());
    }
}

fn records(bench: &Bench, source: &str) -> String {
    let mut text = String::new();
    for name in bench.streams() {
        let Some(stream) = name.strip_prefix(source).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let ran = bench.run(&["records", &name]);
        let mut lines: Vec<String> =
            ran.stdout.lines().map(|line| format!("{{\"stream\":\"{stream}\",{}", &line[1..])).collect();
        lines.sort();
        text += &lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    }
    text
}

fn transcripts(bench: &Bench) -> String {
    let mut sessions = bench.sessions();
    sessions.sort_by_key(|session| session["session_id"].to_string());
    let all: Vec<Value> = sessions
        .iter()
        .map(|session| bench.json(&["show", session["session_id"].as_str().unwrap(), "--copies"]))
        .collect();
    serde_json::to_string_pretty(&json!(all)).unwrap() + "\n"
}

/// The tapes of all sessions, one after another.
pub fn tapes(bench: &Bench) -> String {
    let to = bench.folder.path().join("tapes");
    let ran = bench.run(&["tape", "--all", "--to", to.to_str().unwrap()]);
    assert!(ran.code < 2, "{}", ran.stderr);
    let mut text = String::new();
    if to.is_dir() {
        for path in annals_testkit::files::files_below(&to) {
            text += &std::fs::read_to_string(&path).unwrap();
        }
        std::fs::remove_dir_all(&to).unwrap();
    }
    text
}

fn coverage(bench: &Bench) -> String {
    serde_json::to_string_pretty(&json!(bench.accounts())).unwrap() + "\n"
}
