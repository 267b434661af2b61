//! Every fixture folder is a test: its home is synced, and records, transcripts, accounts and tapes must be as expected.
//!
//! `UPDATE_EXPECT=1 cargo test --test it golden` writes what came out; the difference is then read by a person.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Bench, SOURCES, assert_accounts_add_up, assert_restores_of};

/// All fixture folders, each with its source.
pub fn fixtures() -> Vec<(String, PathBuf)> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sources");
    let mut cases = Vec::new();
    for source in SOURCES {
        let folders = std::fs::read_dir(sources.join(source).join("fixtures")).unwrap();
        cases.extend(folders.map(|case| (source.to_owned(), case.unwrap().path())));
    }
    cases.sort();
    for source in SOURCES {
        assert!(cases.iter().any(|(of, _)| of == source), "{source} has no fixtures");
    }
    cases
}

#[test]
fn fixtures_give_what_is_expected() {
    let mut wrong = Vec::new();
    for (source, case) in fixtures() {
        let bench = Bench::with_home(&source, &case.join("home"));
        // Clients without times in their lines: the file's own time stands in, so it must be a fixed one.
        for file in crate::support::files_below(&bench.user()) {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_772_450_000);
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_times(std::fs::FileTimes::new().set_modified(time)).unwrap();
        }
        bench.sync();
        for (name, found) in [
            ("records.jsonl", records(&bench, &source)),
            ("transcript.json", transcripts(&bench)),
            ("coverage.json", coverage(&bench)),
            ("tape.jsonl", tapes(&bench)),
        ] {
            let path = case.join(name);
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::write(&path, &found).unwrap();
            }
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            if let Some((number, (was, is))) =
                expected.lines().zip(found.lines()).enumerate().find(|(_, (was, is))| was != is)
            {
                wrong.push(format!(
                    "{} line {}:\n  expected {was}\n  found    {is}",
                    path.display(),
                    number + 1
                ));
            } else if expected != found {
                wrong.push(format!("{}: one is longer than the other", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fixtures_survive_a_second_sync_a_rebuild_and_a_restore() {
    for (source, case) in fixtures() {
        let home = case.join("home");
        let bench = Bench::with_home(&source, &home);
        bench.sync();
        assert_restores_of(&bench, &source, &home);
        assert_accounts_add_up(&bench, &home);
        let before = bench.everything();
        assert_eq!(bench.sync_of(&source)["captured_bytes"], 0, "{}", case.display());
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
        for path in crate::support::files_below(&to) {
            text += &std::fs::read_to_string(&path).unwrap();
        }
        std::fs::remove_dir_all(&to).unwrap();
    }
    text
}

fn coverage(bench: &Bench) -> String {
    serde_json::to_string_pretty(&json!(bench.accounts())).unwrap() + "\n"
}
