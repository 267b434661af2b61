//! Attacks with fixed seeds on every verb that writes: kills at random moments, disks that are full at random sizes, and
//! clients that rewrite their files while they are captured. Nothing is lost or doubled, and every failure has a hint.
//!
//! `ANNALS_TEST_ATTACKS=N` multiplies the number of cases.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use annals_testkit::checks::{assert_restores, assert_same, assert_up_to_date, timeless, without_versions};
use annals_testkit::codex::{ID, answer, busy_transcript, prompt, rollout, text_of};
use annals_testkit::corpora::chatgpt::{Conversation, Generation};
use annals_testkit::corpora::codex::{Plan, write_codex_home};
use annals_testkit::files::{append, files_below};
use annals_testkit::{Bench, Ran, disk};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

fn cases(count: u64) -> u64 {
    let times = std::env::var("ANNALS_TEST_ATTACKS").ok().and_then(|text| text.parse().ok());
    count * times.unwrap_or(1)
}

/// A home with some sessions, and an export that is not imported yet.
fn home(seed: u64) -> (Bench, PathBuf) {
    let bench = Bench::new();
    write_codex_home(&bench.codex(), &Plan { seed, bytes: 1_500_000, files: 9 }).unwrap();
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(path, busy_transcript(ID)).unwrap();
    let mut conversation = Conversation::new("6a000000-0000-4000-8000-000000000001", "Gears");
    let mut parent = "client-created-root".to_owned();
    for turn in 0..200 {
        conversation.turn(&parent, &format!("turn{turn}"), &format!("gear {turn} {}", "oil ".repeat(50)));
        parent = format!("turn{turn}-assistant");
    }
    let export = bench.folder.path().join("conversations.json");
    let text = serde_json::to_string(&[conversation.json(Generation::Second)]).unwrap();
    std::fs::write(&export, text).unwrap();
    (bench, export)
}

/// An archive that has nothing yet.
fn make_archive(bench: &Bench) {
    let nowhere = bench.folder.path().join("nowhere");
    assert!(bench.command(&["sync"]).env("CODEX_HOME", nowhere).output().unwrap().status.success());
}

/// Every verb that writes to the archive or beside it, with its arguments. None of them changes what is captured, once
/// everything is.
fn writers(bench: &Bench, export: &Path) -> Vec<Vec<String>> {
    let restored = bench.folder.path().join("restored");
    let texts = [
        "sync",
        "sync --full",
        "up --no-serve",
        "rebuild",
        "repair",
        "doctor --deep",
        "gaps retry",
        "members list",
        "secrets",
    ];
    let mut verbs: Vec<Vec<String>> =
        texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect();
    verbs.push(vec!["import".to_owned(), export.to_str().unwrap().to_owned()]);
    let restore = ["restore", "--source", "codex_cli", "--to", restored.to_str().unwrap()];
    verbs.push(restore.map(str::to_owned).to_vec());
    verbs
}

/// Everything is there once, as in an archive that nobody attacked.
fn assert_unharmed(bench: &Bench, export: &Path, expected: &str, what: &str) {
    for verb in [&["sync"][..], &["import", export.to_str().unwrap()]] {
        let ran = bench.run(verb);
        assert_eq!(ran.code, 0, "{what}: {verb:?}: {}", ran.stderr);
    }
    let doctor = bench.run(&["doctor", "--deep"]);
    assert_eq!(doctor.code, 0, "{what}: {}", doctor.stdout);
    assert_same(&answers(bench), expected);
    assert_restores(bench, &bench.codex());
}

/// All answers, without what depends on when and how often files were captured.
fn answers(bench: &Bench) -> String {
    timeless(&without_versions(&bench.everything()))
}

/// What an archive has that nobody attacked.
fn calm_answers(seed: u64) -> String {
    let (bench, export) = home(seed);
    bench.sync();
    bench.import(&[&export]);
    answers(&bench)
}

#[test]
fn every_verb_may_be_killed_at_any_moment() {
    let expected = calm_answers(31);
    let (bench, export) = home(31);
    let mut random = Random(31);
    let mut hits = 0;
    make_archive(&bench);
    for verb in writers(&bench, &export) {
        let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
        // How long it takes is measured by a complete run on another archive.
        let (calm, other) = home(31);
        calm.sync();
        let arguments = verb
            .iter()
            .map(|word| if *word == export.to_str().unwrap() { other.to_str().unwrap() } else { *word });
        let arguments: Vec<&str> = arguments.collect();
        let started = Instant::now();
        calm.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let whole = started.elapsed().max(Duration::from_millis(20));
        for _ in 0..cases(3) {
            let mut child = bench.command(&verb).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random.below(whole.as_micros() as u64)));
            hits += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            let ran = bench.run(&["sessions"]);
            assert!([0, 1].contains(&ran.code), "{verb:?}: {}", ran.stderr);
        }
        let doctor = bench.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{verb:?}: {}", doctor.stdout);
    }
    println!("{hits} kills hit");
    assert_unharmed(&bench, &export, &expected, "killed");
    assert_up_to_date(&bench);
}

#[test]
fn every_verb_says_that_the_disk_is_full_and_goes_on_later() {
    let expected = calm_answers(32);
    let (bench, export) = home(32);
    let mut random = Random(32);
    let mut refused = 0;
    make_archive(&bench);
    for round in 0..cases(3) {
        for verb in writers(&bench, &export) {
            let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
            let limit = 4 + random.below(900);
            let ran = Ran::of(disk::with_file_limit(limit, &bench.command(&verb)).output().unwrap());
            let what = format!("{verb:?} with {limit} KiB, round {round}");
            assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
            assert!([0, 1, 2].contains(&ran.code), "{what}: {}", ran.stderr);
            if ran.code == 2 {
                refused += 1;
                assert!(ran.stderr.contains("hint: "), "{what}: {}", ran.stderr);
            }
            // What is there can be read, however full the disk is.
            let read = Ran::of(disk::with_file_limit(limit, &bench.command(&["sessions"])).output().unwrap());
            assert!([0, 1].contains(&read.code), "{what}: {}", read.stderr);
        }
    }
    assert!(refused > 0, "no limit was reached");
    assert_unharmed(&bench, &export, &expected, "full");
}

/// What is shown of every session.
fn read_conversations(bench: &Bench) -> String {
    let mut ids: Vec<String> =
        bench.sessions().iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids.iter().map(|id| bench.run(&["show", id, "--full", "--context"]).stdout).collect()
}

#[test]
fn clients_may_rewrite_their_files_while_they_are_captured() {
    let (bench, _) = home(33);
    bench.sync();
    let files = files_below(&bench.codex().join("sessions"));
    let stop = AtomicBool::new(false);
    let changes = std::thread::scope(|threads| {
        let client = threads.spawn(|| {
            let (mut random, mut changes) = (Random(33), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let path = &files[random.below(files.len() as u64) as usize];
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                changes += 1;
                match random.below(5) {
                    0 | 1 => append(path, &text_of(&prompt(&format!("change {changes}")))),
                    // In place, the same length: the last digit of a word changes.
                    2 => std::fs::write(path, text.replacen("change 1", "change 2", 1)).unwrap(),
                    // Truncated to its first half, and at once longer again.
                    3 if lines.len() > 4 => {
                        std::fs::write(path, lines[..lines.len() / 2].join("\n") + "\n").unwrap();
                        append(path, &text_of(&answer(&format!("answer {changes}"))));
                    }
                    // Replaced by another file of this name.
                    _ => {
                        let other = path.with_extension("new");
                        std::fs::write(&other, &text).unwrap();
                        append(&other, &text_of(&answer(&format!("replaced {changes}"))));
                        std::fs::rename(&other, path).unwrap();
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            changes
        });
        for round in 0..cases(25) {
            let verb: &[&str] = if round % 5 == 4 { &["sync", "--full"] } else { &["sync"] };
            let ran = bench.run(verb);
            assert_eq!(ran.code, 0, "{verb:?}: {}", ran.stderr);
        }
        stop.store(true, Ordering::Relaxed);
        client.join().unwrap()
    });
    println!("{changes} changes");
    assert!(changes > 0);
    assert_eq!(bench.run(&["sync", "--full"]).code, 0);
    let doctor = bench.run(&["doctor", "--deep"]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert_restores(&bench, &bench.codex());
    let fresh = Bench::with_home("codex_cli", &bench.codex());
    fresh.sync();
    assert_same(&read_conversations(&fresh), &read_conversations(&bench));
}
