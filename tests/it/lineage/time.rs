//! No line is credited to an edit that came after it.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::{CODE, SESSION, session_that_writes};
use annals_testkit::Bench;
use annals_testkit::git::Repository;

const LATER: &str = "5e551011-0000-4000-8000-0000000000b2";

/// Two sessions that wrote the same text into the same file, days apart.
fn written_twice() -> (Bench, Repository) {
    let bench = Bench::new();
    let repository = Repository::create(&bench.folder.path().canonicalize().unwrap().join("engine"));
    let file = repository.folder.join("gears.py");
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, CODE);
    session_that_writes(&bench, LATER, "2024-03-28T09:00", &file, &format!("{CODE}print('rewritten')\n"));
    bench.sync();
    (bench, repository)
}

fn blame(bench: &Bench, words: &[&str]) -> Value {
    let mut command = bench.command(&[&["blame", "--json"], words].concat());
    let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
    assert!(output.status.code().unwrap() < 2, "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The session of each line: `1`, `2`, or `-`.
fn sessions(blame: &Value) -> String {
    let mut found = String::new();
    for span in blame["spans"].as_array().unwrap() {
        let origin = span["origin"].as_u64().map(|origin| &blame["origins"][origin as usize]);
        let mark = match origin.filter(|_| span["grade"] != "read").map(|origin| &origin["session_id"]) {
            Some(session) if session == SESSION => "1",
            Some(session) if session == LATER => "2",
            Some(other) => panic!("{other}"),
            None => "-",
        };
        let lines = span["end"].as_u64().unwrap() + 1 - span["start"].as_u64().unwrap();
        found += &mark.repeat(lines as usize);
    }
    found
}

fn path_in(repository: &Repository, name: &str) -> String {
    repository.folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_committed_line_belongs_to_who_wrote_it_before() {
    let (bench, repository) = written_twice();
    let file = path_in(&repository, "gears.py");
    let first = repository.commit("gears.py", CODE, "2024-03-02T09:30:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "111");
    assert_eq!(sessions(&blame(&bench, &["--no-git", &file])), "222", "without git, the latest");
    // A line that was committed after the second session is its own; so is one that is not committed.
    repository.commit("gears.py", &format!("{CODE}print('rewritten')\n"), "2024-03-28T10:00:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "1112");
    std::fs::write(&file, format!("{CODE}by_hand = None\nprint('rewritten')\n")).unwrap();
    let traced = blame(&bench, &[&file]);
    assert_eq!(sessions(&traced), "111-2");
    assert!(traced["commits"][3].is_null() && traced["commits"][4].is_string(), "{traced}");
    // Any old state, and sums of a whole directory.
    assert_eq!(sessions(&blame(&bench, &["--at", &first, &file])), "111");
    assert_eq!(sessions(&blame(&bench, &["--at", "HEAD~1", &file])), "111");
    let sums = blame(&bench, &["--stat", repository.folder.to_str().unwrap()]);
    let shares: Vec<(&str, u64)> = sums["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|share| (share["name"].as_str().unwrap(), share["lines"].as_u64().unwrap()))
        .collect();
    assert_eq!(shares, [(SESSION, 3), (LATER, 1)]);
    assert_eq!(sums["files"][0]["file"], "gears.py");
    let old = blame(&bench, &["--stat", repository.folder.to_str().unwrap(), "--at", &first]);
    assert_eq!((&old["lines"]["total"], &old["lines"]["exact"]), (&Value::from(3), &Value::from(3)));
}

#[test]
fn a_line_from_before_all_sessions_is_nobodys() {
    let (bench, repository) = written_twice();
    repository.commit("gears.py", CODE, "2024-03-02T08:00:00Z");
    assert_eq!(sessions(&blame(&bench, &[&path_in(&repository, "gears.py")])), "---");
    // Neither in a file that another one quotes.
    repository.commit("notes.py", CODE, "2024-03-02T08:00:00Z");
    assert_eq!(sessions(&blame(&bench, &[&path_in(&repository, "notes.py")])), "---");
}

/// A rebase keeps the author's time and has a new committer's; an amended commit may be dated back.
#[test]
fn the_later_of_both_times_counts() {
    let (bench, repository) = written_twice();
    let file = path_in(&repository, "gears.py");
    repository.commit_by("gears.py", CODE, "2024-03-01T08:00:00Z", "2024-03-02T09:30:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "111");
    repository.git(&["checkout", "--quiet", "--orphan", "other"]);
    repository.commit_by("gears.py", CODE, "2024-03-02T09:30:00Z", "2024-03-01T08:00:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "111");
    // Five minutes for clocks that differ.
    repository.git(&["checkout", "--quiet", "--orphan", "third"]);
    repository.commit("gears.py", CODE, "2024-03-02T08:56:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "111");
    repository.git(&["checkout", "--quiet", "--orphan", "fourth"]);
    repository.commit("gears.py", CODE, "2024-03-02T08:54:00Z");
    assert_eq!(sessions(&blame(&bench, &[&file])), "---");
}

#[test]
fn without_git_the_file_was_saved_before() {
    let (bench, repository) = written_twice();
    let file = repository.folder.join("gears.py");
    std::fs::write(&file, CODE).unwrap();
    for (saved, expected) in
        [("2024-03-02T09:10:00Z", "111"), ("2024-03-02T08:00:00Z", "---"), ("2024-04-01T00:00:00Z", "222")]
    {
        save_at(&file, saved);
        assert_eq!(sessions(&blame(&bench, &["--no-git", file.to_str().unwrap()])), expected, "{saved}");
    }
}

fn save_at(file: &Path, at: &str) {
    let at = annals_core::Time::parse(at).unwrap();
    let modified = UNIX_EPOCH + Duration::from_micros(at.micros() as u64);
    File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_times(FileTimes::new().set_modified(modified))
        .unwrap();
}

#[test]
fn a_passage_belongs_to_who_wrote_it_first() {
    let (bench, _) = written_twice();
    assert_eq!(sessions(&blame(&bench, &["--text", CODE])), "111");
    assert_eq!(sessions(&blame(&bench, &["--text", "print('rewritten')"])), "2");
}

#[test]
fn a_part_of_a_file_has_its_own_origins_and_sums() {
    let (bench, repository) = written_twice();
    repository.commit("gears.py", CODE, "2024-03-02T09:30:00Z");
    repository.commit("gears.py", &format!("{CODE}print('rewritten')\n"), "2024-03-28T10:00:00Z");
    let part = blame(&bench, &[&format!("{}:2-3", path_in(&repository, "gears.py"))]);
    assert_eq!((&part["lines"]["total"], &part["lines"]["exact"]), (&Value::from(2), &Value::from(2)));
    assert_eq!(part["origins"].as_array().unwrap().len(), 1);
    let span = &part["spans"][0];
    assert_eq!((&span["start"], &span["end"], &span["written_at_line"]), (&2.into(), &3.into(), &2.into()));
    assert_eq!(part["commits"].as_array().unwrap().len(), 2);
}

#[test]
fn an_unknown_commit_is_an_error() {
    let (bench, repository) = written_twice();
    repository.commit("gears.py", CODE, "2024-03-02T09:30:00Z");
    let file = path_in(&repository, "gears.py");
    for (words, expected) in [
        (["blame", "--at", "--output=/dev/null", &file], "unexpected argument"),
        (["blame", "--at", "no-such-commit", &file], "no such commit"),
    ] {
        let mut command = bench.command(&words);
        let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(warnings.contains(expected) || warnings.contains("a value is required"), "{warnings}");
    }
}
