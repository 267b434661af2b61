//! Forgetting: `kill -9` at any moment, no page or route has what was forgotten, and the space is given back.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use annals_testkit::Bench;
use annals_testkit::corpora::codex::{Plan, write_codex_home};
use annals_testkit::files::copy_folder;
use serde_json::{Value, json};

/// The sessions of a home, oldest first.
fn ids(bench: &Bench) -> Vec<String> {
    let mut sessions = bench.sessions();
    sessions.sort_by_key(|session| session["last_message_at"].to_string());
    sessions.iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
}

/// Puts the archive back as it was.
fn reset(bench: &Bench, saved: &Path) {
    std::fs::remove_dir_all(bench.archive()).unwrap();
    copy_folder(saved, &bench.archive());
}

fn size(bench: &Bench) -> u64 {
    let size = |name: &str| std::fs::metadata(bench.archive().join(name)).map_or(0, |file| file.len());
    size("annals.db") + size("annals.db-wal")
}

/// What a session answers: all of it, or nothing.
fn answer(bench: &Bench, id: &str) -> Option<String> {
    let ran = bench.run(&["show", id, "--json", "--full"]);
    (ran.code == 0).then_some(ran.stdout)
}

fn home(bytes: u64, files: usize) -> Bench {
    let bench = Bench::new();
    write_codex_home(&bench.codex(), &Plan { seed: 7, bytes, files }).unwrap();
    bench
}

#[test]
fn a_killed_forgetting_is_finished_by_the_next_run() {
    let bench = home(6_000_000, 9);
    bench.sync();
    let saved = bench.folder.path().join("saved");
    copy_folder(&bench.archive(), &saved);
    let all = ids(&bench);
    let (chosen, kept) = (all[1].clone(), all[2].clone());
    let whole = answer(&bench, &chosen).unwrap();
    let other = answer(&bench, &kept).unwrap();
    let start = Instant::now();
    bench.json(&["forget", &chosen, "--yes"]);
    let duration = start.elapsed();
    let done = bench.sessions().len();
    let mut hits = 0;
    for number in 0..50_u32 {
        reset(&bench, &saved);
        let arguments = ["forget", chosen.as_str(), "--yes"];
        let mut child =
            bench.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(duration * number / 50 + Duration::from_millis(u64::from(number * 7 % 11)));
        hits += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        match answer(&bench, &chosen) {
            Some(answered) => assert_eq!(answered, whole, "half a session answers"),
            None => assert_eq!(bench.run(&["search", &chosen]).code, 1),
        }
        assert_eq!(answer(&bench, &kept).as_ref(), Some(&other), "another session changed");
        let started = !bench.json(&["audit"])["forgotten"].as_array().unwrap().is_empty();
        bench.sync();
        if started {
            assert_eq!(answer(&bench, &chosen), None, "the next run finishes it");
            assert_eq!(bench.sessions().len(), done);
            let account = &bench.json(&["audit"])["forgotten"][0];
            assert_eq!(account["is_complete"], true, "{account}");
            assert_eq!(bench.json(&["forget", "--verify"])["found"], json!([]));
        } else {
            assert_eq!(answer(&bench, &chosen).as_ref(), Some(&whole));
        }
    }
    assert!(hits >= 10, "only {hits} kills hit");
}

#[test]
fn forgetting_gives_space_back() {
    let bench = home(30_000_000, 30);
    let captured = bench.json(&["sync"])["cpu_ms"].clone();
    let before = size(&bench);
    let all = ids(&bench);
    let chosen: Vec<&str> = all.iter().take(all.len() / 3).map(String::as_str).collect();
    let arguments = [&["forget", "--yes"][..], &chosen].concat();
    let forgotten = bench.json(&arguments);
    let share = forgotten["plan"]["bytes"].as_u64().unwrap() as f64 / 30_000_000.0;
    assert!(share > 0.1, "{forgotten}");
    let after = size(&bench);
    let cost = &forgotten["cpu_ms"];
    println!("{share:.2} of the bytes: {cost} ms, capturing all {captured} ms; {before} bytes, then {after}");
    assert!((after as f64) < before as f64 * (1.0 - share * 0.5), "{before} bytes, then {after}");
}

#[test]
fn no_page_and_no_route_has_what_was_forgotten() {
    let bench = home(400_000, 4);
    let path = bench.codex().join("history.jsonl");
    bench.sync();
    let all_before = ids(&bench);
    let entry = json!({"session_id": all_before[0], "ts": 1_772_359_201, "text": "plantedwobble prompt"});
    append(&path, &entry);
    bench.sync();
    let forgotten = bench.run(&["forget", &all_before[0], "--yes", "--verify", "--json"]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stdout);
    let server = annals_testkit::server::Server::start(&bench);
    for address in [
        "/",
        "/sessions",
        "/search?q=plantedwobble",
        "/audit",
        "/library",
        "/tools",
        "/usage",
        "/api/v1/audit",
    ] {
        let text = server.page(address).text();
        let text = text.replace("q=plantedwobble", "").replace("value=\"plantedwobble\"", "");
        assert!(!text.contains("plantedwobble prompt"), "{address}");
        assert!(!text.contains(&all_before[0]), "{address}");
    }
}

fn append(path: &Path, entry: &Value) {
    let mut text = std::fs::read_to_string(path).unwrap_or_default();
    text.push_str(&format!("{entry}\n"));
    std::fs::write(path, text).unwrap();
}
