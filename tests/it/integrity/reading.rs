//! Archives that cannot be written, or are none, are read or refused with a hint.

use annals_testkit::codex::ID;
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran, disk};

use super::{bench, connect};

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

/// Runs the program where it cannot write to the archive.
fn run_read_only(bench: &Bench, arguments: &[&str]) -> Ran {
    let mut command = disk::read_only(&bench.archive(), &bench.command(arguments));
    let ran = Ran::of(command.output().unwrap());
    disk::writable(&bench.archive());
    ran
}

#[test]
fn a_read_only_archive_is_read_by_every_verb() {
    let bench = bench();
    assert_eq!(bench.run(&["sessions"]).code, 0);
    let verbs: [&[&str]; 13] = [
        &["sessions"],
        &["show", ID],
        &["search", "gears"],
        &["usage", "--days", "all"],
        &["tools", "--days", "all"],
        &["records", "codex_cli/messages"],
        &["export", "--format", "records"],
        &["sources"],
        &["audit"],
        &["gaps"],
        &["doctor"],
        &["secrets"],
        &["tape", ID],
    ];
    let writable: Vec<(i32, String)> = verbs.iter().map(|verb| in_short(bench.run(verb))).collect();
    let connection = connect(&bench);
    let _: i64 = connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0)).unwrap();
    drop(connection);
    for (verb, writable) in verbs.iter().zip(writable) {
        let ran = run_read_only(&bench, verb);
        assert_eq!(ran.code, writable.0, "{verb:?}: {}", ran.stderr);
        assert_eq!(in_short(ran), writable, "{verb:?}");
    }
    let refused = run_read_only(&bench, &["sync"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(refused.stderr.contains(bench.archive().to_str().unwrap()), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint:"), "{}", refused.stderr);
}

/// The output without what depends on the time or the disk.
fn in_short(ran: Ran) -> (i32, String) {
    let varies = ["free on the disk", "ago", "emitted_at", "STATE"];
    let lines = ran.stdout.lines().filter(|line| !varies.iter().any(|word| line.contains(word)));
    (ran.code, lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn an_archive_that_was_never_read_is_read_only_as_well() {
    let bench = bench();
    connect(&bench).execute("delete from setting where name = 'mask_key'", []).unwrap();
    let ran = run_read_only(&bench, &["show", ID]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("gears"), "{}", ran.stdout);
}

/// Leaves something in the log that is not in the database yet, as a killed process does.
fn leave_in_log(bench: &Bench, statement: &str) {
    let folder = bench.archive();
    let connection = connect(bench);
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    assert!(connection.execute(statement, []).unwrap() > 0);
    let files = ["annals.db", "annals.db-wal"];
    let bytes = files.map(|name| std::fs::read(folder.join(name)).unwrap());
    drop(connection);
    for (name, bytes) in files.into_iter().zip(bytes) {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let _ = std::fs::remove_file(folder.join("annals.db-shm"));
    assert!(std::fs::metadata(folder.join("annals.db-wal")).unwrap().len() > 0);
}

/// What is committed is read, even if it is in the log and nothing can be written beside it.
#[test]
fn the_log_of_a_read_only_archive_is_read() {
    let bench = bench();
    assert_eq!(bench.run(&["sessions"]).code, 0);
    leave_in_log(&bench, "update session set title = 'kept in the log'");
    let ran = run_read_only(&bench, &["sessions"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("kept in the log"), "{}", ran.stdout);
    assert!(
        std::fs::metadata(bench.archive().join("annals.db-wal")).unwrap().len() > 0,
        "nothing was written"
    );
}

#[test]
fn a_read_only_archive_is_served() {
    for log in [false, true] {
        let bench = bench();
        if log {
            leave_in_log(&bench, "update session set title = 'kept in the log'");
        }
        let id = "0199a1b2-0000-7000-8000-000000000009";
        bench.transcript(
            &annals_testkit::codex::rollout(id),
            &annals_testkit::codex::conversation(id, "pulleys"),
        );
        let inner = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let server = Server::of(disk::read_only(&bench.archive(), &inner));
        let sessions = server.json("/api/v1/sessions");
        assert_eq!(sessions["total"], 2, "{sessions}");
        assert_eq!(sessions.to_string().contains("kept in the log"), log, "{sessions}");
        assert!(server.json("/api/v1/search?q=gears")["total"].as_i64().unwrap() > 0);
        for path in ["/", "/sessions", "/search?q=gears", "/usage", "/audit", "/secrets"] {
            assert_eq!(server.page(path).status, 200, "{path}: {}", server.log());
        }
        // A browser logs in with its link, once.
        let entered = server.get_with(&server.link, &[]);
        assert_eq!((entered.status, server.get_with(&server.link, &[]).status), (303, 401));
        let status = server.json("/api/v1/status");
        assert_eq!(status["status"], "degraded", "{status}");
        let files = status["failures"][0]["files"].to_string();
        assert!(files.contains(id), "{status}");
        drop(server);
        disk::writable(&bench.archive());
        assert_eq!(bench.run(&["sync"]).code, 0);
        assert_eq!(bench.sessions().len(), 3);
    }
}
