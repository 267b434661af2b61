//! `kill -9` at any moment of a run: the next run resumes, nothing is lost and nothing is counted twice.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use annals_testkit::Bench;
use annals_testkit::checks::{assert_accounts_add_up, assert_restores, assert_same, assert_up_to_date};
use annals_testkit::codex::{ID, meta, prompt, rollout, text_of};
use annals_testkit::corpora::codex::{Plan, append_turns, write_codex_home};
use annals_testkit::files::files_below;

/// Seeded by number, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    /// A random part of `whole`.
    fn part(&mut self, whole: Duration) -> Duration {
        whole * (self.next() >> 44) as u32 / (1 << 20)
    }

    /// Characters that do not compress well.
    fn letters(&mut self, length: usize) -> String {
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        (0..length).map(|_| char::from(letters[(self.next() >> 58) as usize])).collect()
    }
}

/// A home with some files much larger than others, several commits in total.
fn large_home(home: &Path, seed: u64) -> Vec<PathBuf> {
    let plan = Plan { seed, bytes: 30_000_000, files: 45 };
    write_codex_home(home, &plan).unwrap();
    let files = files_below(&home.join("sessions"));
    for (number, file) in files.iter().enumerate().filter(|(number, _)| number % 15 == 3) {
        append_turns(file, seed + number as u64, 11_000_000).unwrap();
    }
    let large = files.iter().filter(|file| std::fs::metadata(file).unwrap().len() > 10_000_000).count();
    assert_eq!(large, 3);
    files
}

/// Runs the command and kills it after the delay; true if it was still running.
fn kill_after(bench: &Bench, command: &str, delay: Duration) -> bool {
    let mut child = bench.command(&[command]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

#[test]
fn a_killed_sync_resumes_where_it_was() {
    let calm = Bench::new();
    large_home(&calm.codex(), 1);
    let disturbed = Bench::with_home("codex_cli", &calm.codex());
    let whole = timed(|| drop(calm.sync()));
    let mut random = Random(1);
    let mut hits = 0;
    for number in 0..10 {
        let delay = (whole * number + random.part(whole)) / 10;
        let hit = kill_after(&disturbed, "sync", delay);
        println!("kill {number} after {delay:?} of {whole:?}: {}", if hit { "hit" } else { "too late" });
        hits += u32::from(hit);
        // Whatever is committed is consistent: readers find nothing half-written.
        assert!([0, 1].contains(&disturbed.run(&["sessions"]).code));
    }
    assert!(hits >= 3, "only {hits} kills hit");
    disturbed.sync();
    assert_same(&calm.everything(), &disturbed.everything());
    assert_accounts_add_up(&disturbed, &disturbed.codex());
    assert_restores(&disturbed, &disturbed.codex());
    assert_up_to_date(&disturbed);
    let before = disturbed.everything();
    assert_eq!(disturbed.run(&["rebuild"]).code, 0);
    assert_same(&before, &disturbed.everything());
}

#[test]
fn kills_between_appends_lose_nothing() {
    let bench = Bench::new();
    let files = large_home(&bench.codex(), 2);
    bench.sync();
    let mut random = Random(2);
    let (mut hits, mut whole) = (0, Duration::from_millis(400));
    for number in 0..10 {
        for file in files.iter().skip(number % 5).step_by(5) {
            append_turns(file, number as u64, 150_000).unwrap();
        }
        if number == 0 {
            whole = timed(|| drop(bench.sync()));
            continue;
        }
        let delay = random.part(whole);
        let hit = kill_after(&bench, "sync", delay);
        println!("kill {number} after {delay:?} of {whole:?}: {}", if hit { "hit" } else { "too late" });
        hits += u32::from(hit);
    }
    assert!(hits >= 3, "only {hits} kills hit");
    bench.sync();
    let fresh = Bench::with_home("codex_cli", &bench.codex());
    fresh.sync();
    assert_same(&fresh.everything(), &bench.everything());
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
}

#[test]
fn a_killed_rebuild_leaves_the_old_answers() {
    let bench = Bench::new();
    large_home(&bench.codex(), 3);
    bench.sync();
    let before = bench.everything();
    let whole = timed(|| assert_eq!(bench.run(&["rebuild"]).code, 0));
    let mut random = Random(3);
    let mut hits = 0;
    for number in 0..4 {
        let delay = (whole * number + random.part(whole)) / 4;
        let hit = kill_after(&bench, "rebuild", delay);
        // The old answers stay in place.
        assert_same(&before, &bench.everything());
        println!("kill {number} after {delay:?} of {whole:?}: {}", if hit { "hit" } else { "too late" });
        hits += u32::from(hit);
        if number % 2 == 1 {
            assert_eq!(bench.sync()["captured_bytes"], 0);
            assert_same(&before, &bench.everything());
        }
    }
    assert!(hits >= 2, "only {hits} kills hit");
    assert_up_to_date(&bench);
}

/// Files that cannot be resumed in the middle: a partial capture is completed and does not become a separate version.
#[test]
fn a_killed_capture_leaves_no_half_version() {
    let bench = Bench::new();
    let mut random = Random(4);
    let mut lines = vec![meta(ID)];
    // Letters only: among that many random characters, some would look like a key.
    let mut words = |length| random.letters(length).replace(['-', '_'], "x");
    (0..130).for_each(|_| lines.push(prompt(&words(400_000))[1].clone()));
    let path = bench.transcript(&rollout(ID), &[]);
    let packed = zstd::encode_all(text_of(&lines).as_bytes(), 1).unwrap();
    assert!(packed.len() > 32 << 20, "{} bytes are committed at once", packed.len());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(path.with_extension("jsonl.zst"), packed).unwrap();
    let attachments = bench.codex().join("attachments");
    std::fs::create_dir_all(&attachments).unwrap();
    std::fs::write(attachments.join("large.bin"), random.letters(36 << 20)).unwrap();
    let calm = Bench::with_home("codex_cli", &bench.codex());
    let whole = timed(|| drop(calm.sync()));
    let mut hits = 0;
    for number in 0..8 {
        let delay = (whole * number + random.part(whole)) / 8;
        let hit = kill_after(&bench, "sync", delay);
        println!("kill {number} after {delay:?} of {whole:?}: {}", if hit { "hit" } else { "too late" });
        hits += u32::from(hit);
    }
    assert!(hits >= 3, "only {hits} kills hit");
    bench.sync();
    assert_same(&calm.everything(), &bench.everything());
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
}
