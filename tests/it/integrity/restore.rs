//! A restore is atomic, can be repeated, and lists what it could not write.

use std::os::unix::fs::PermissionsExt;

use annals_testkit::codex::{ID, rollout};
use annals_testkit::files::files_below;

use super::{OTHER, bench, connect, flip, restore_to, same};

#[test]
fn a_damaged_file_is_listed_and_the_others_are_restored() {
    let bench = bench();
    flip(&bench, &rollout(ID));
    let (target, ran) = restore_to(&bench, "restored");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(&rollout(ID)) && ran.stderr.contains("hash"), "{}", ran.stderr);
    let relative = std::path::Path::new("sessions/2026/11/15").join(rollout(OTHER));
    assert!(same(&target.join(&relative), &bench.codex().join(&relative)));
    let names: Vec<String> = files_below(&target).iter().map(|path| path.display().to_string()).collect();
    assert_eq!(names.len(), 2, "no half file is left: {names:?}");
    let ran = bench.run(&["restore", "--to", bench.folder.path().join("again").to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, 2);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(document["failed"][0]["path"].as_str().unwrap().ends_with(&rollout(ID)), "{document}");
    assert!(!document["failed"][0]["cause"].as_str().unwrap().is_empty());
}

/// Each is a way to lose bytes without a wrong hash.
#[test]
fn missing_segments_and_versions_are_never_restored_as_whole() {
    for damage in [
        "delete from segment where byte_offset = 262144",
        "delete from segment where byte_offset = 524288",
        "delete from version where size = 600000",
        "update version set size = 262144 where size = 600000",
        "update segment set length = 200000 where byte_offset = 262144",
        "update blob set hash = randomblob(32) where length = 262144",
        "update segment set length = 9223372036854775807 where byte_offset = 262144",
        "update blob set packing = 7 where length = 262144",
        "update file set size = 262144 where size = 600000",
        "update file set path = 'attachments/small.txt' where size = 600000",
        "update segment set blob = 1000000 where byte_offset = 524288",
    ] {
        let bench = bench();
        assert!(connect(&bench).execute(damage, []).unwrap() > 0, "{damage}");
        let (target, ran) = restore_to(&bench, "restored");
        assert_eq!(ran.code, 2, "{damage}: {}", ran.stdout);
        assert!(ran.stderr.contains("attachments/"), "{damage}: {}", ran.stderr);
        assert!(
            !target.join("attachments/large.txt").exists() && !target.join("attachments/small.txt").exists()
        );
        let doctor = bench.run(&["doctor"]);
        let found = doctor.stdout.contains("FAILED  segments  attachments/") || damage.contains("set path");
        assert!(doctor.code == 1 && found || damage.contains("set path"), "{damage}: {}", doctor.stdout);
    }
}

#[test]
fn an_interrupted_restore_is_continued() {
    let bench = bench();
    let (target, ran) = restore_to(&bench, "restored");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // As a kill leaves it: a file that is not there yet, and the start of it under another name.
    let large = target.join("attachments/large.txt");
    let id: i64 = connect(&bench)
        .query_row("select id from file where path = 'attachments/large.txt'", [], |row| row.get(0))
        .unwrap();
    std::fs::remove_file(&large).unwrap();
    let unfinished = large.with_file_name(format!(".annals-restore-{id}"));
    std::fs::write(&unfinished, "half").unwrap();
    let (_, ran) = restore_to(&bench, "restored");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("1 file restored") && ran.stdout.contains("2 identical files"),
        "{}",
        ran.stdout
    );
    assert!(same(&large, &bench.codex().join("attachments/large.txt")) && !unfinished.exists());
    // A different file is never overwritten, and the others are still restored.
    std::fs::write(&large, "mine").unwrap();
    std::fs::remove_file(target.join("sessions/2026/11/15").join(rollout(ID))).unwrap();
    let (_, ran) = restore_to(&bench, "restored");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("a different file exists"), "{}", ran.stderr);
    assert_eq!(std::fs::read(&large).unwrap(), b"mine");
    assert!(target.join("sessions/2026/11/15").join(rollout(ID)).exists());
}

#[test]
fn restored_files_have_their_permissions_and_times() {
    let bench = bench();
    let path = bench.codex().join("sessions/2026/11/15").join(rollout(ID));
    for mode in [0o640, 0o400] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        bench.sync();
        let (target, ran) = restore_to(&bench, &format!("restored-{mode:o}"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let restored = target.join("sessions/2026/11/15").join(rollout(ID)).metadata().unwrap();
        assert_eq!(restored.permissions().mode() & 0o7777, mode);
        let then = path.metadata().unwrap().modified().unwrap();
        let apart = restored.modified().unwrap().duration_since(then);
        let apart = apart.unwrap_or_else(|error| error.duration());
        assert!(apart.as_millis() < 1, "{apart:?}");
    }
    connect(&bench).execute("update file set mode = null", []).unwrap();
    let (target, _) = restore_to(&bench, "restored-unknown");
    let restored = target.join("sessions/2026/11/15").join(rollout(ID)).metadata().unwrap();
    assert_eq!(restored.permissions().mode() & 0o7777, 0o600, "private if it is not known");
}

#[test]
fn the_directory_of_the_archive_is_no_target() {
    let bench = bench();
    let link = bench.folder.path().join("link");
    std::os::unix::fs::symlink(bench.archive(), &link).unwrap();
    for target in [bench.archive(), bench.archive().join("restored/here"), link.join("below")] {
        let ran = bench.run(&["restore", "--to", target.to_str().unwrap()]);
        assert_eq!(ran.code, 2);
        assert!(
            ran.stderr.contains("the archive is there") && ran.stderr.contains("hint:"),
            "{}",
            ran.stderr
        );
        assert!(!bench.archive().join("restored").exists());
    }
}
