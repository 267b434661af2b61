//! Archives that cannot be written, or are none, are read or refused with a hint.

use annals_testkit::Bench;

use super::bench;

#[test]
fn an_empty_file_is_no_archive() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.archive()).unwrap();
    std::fs::write(bench.archive().join("annals.db"), "").unwrap();
    let doctor = bench.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains("FAILED  archive") && doctor.stdout.contains("is empty"),
        "{}",
        doctor.stdout
    );
    let sessions = bench.run(&["sessions"]);
    assert_eq!(sessions.code, 2);
    assert!(sessions.stderr.contains("is empty") && sessions.stderr.contains("hint:"), "{}", sessions.stderr);
}

#[test]
fn a_file_that_is_no_archive_is_refused_with_its_path_and_a_hint() {
    let bench = bench();
    let database = bench.archive().join("annals.db");
    std::fs::write(&database, "not a database, however long it may be".repeat(1_000)).unwrap();
    for verb in ["sessions", "usage", "sync", "rebuild"] {
        let ran = bench.run(&[verb]);
        assert_eq!(ran.code, 2, "{verb}");
        assert!(ran.stderr.contains(database.to_str().unwrap()), "{verb}: {}", ran.stderr);
        assert!(ran.stderr.contains("annals repair"), "{verb}: {}", ran.stderr);
    }
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("FAILED  archive"), "{}", doctor.stdout);
}
