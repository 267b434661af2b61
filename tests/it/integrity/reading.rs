//! Archives that cannot be written, or are none, are read or refused with a hint.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use annals_testkit::codex::ID;
use annals_testkit::{Bench, Ran};

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

/// Runs the program where it cannot write to the archive: on a read-only file system if mounts are allowed here, else
/// by permissions, which root obeys only without its capabilities.
fn run_read_only(bench: &Bench, arguments: &[&str]) -> Ran {
    let inner = bench.command(arguments);
    let mut command = match can_mount() {
        true => {
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", MOUNTED]).arg(bench.archive());
            command
        }
        false => {
            for (path, mode) in [(bench.archive().join("annals.db"), 0o400), (bench.archive(), 0o500)] {
                std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            }
            let mut command = Command::new(if is_root() { "setpriv" } else { "env" });
            command.args(is_root().then_some("--bounding-set=-all"));
            command
        }
    };
    command.arg(inner.get_program()).args(inner.get_args());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let ran = Ran::of(command.output().unwrap());
    std::fs::set_permissions(bench.archive(), Permissions::from_mode(0o700)).unwrap();
    ran
}

const MOUNTED: &str = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";

fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let tried =
        Command::new("unshare").args(["-rm", "sh", "-c", MOUNTED]).arg(folder.path()).arg("true").output();
    tried.is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
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
