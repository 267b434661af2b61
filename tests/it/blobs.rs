//! Bytes by content: equal bytes are stored once, small changes cost little, and archives of 0.1.0 are migrated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use annals_testkit::files::files_below;
use annals_testkit::{Bench, ROOT};

const FIXTURE: &str = "tests/fixtures/archive-0.1.0";
/// The tables that 0.1.0 created.
const MIGRATIONS_THEN: i64 = 6;

fn fixture(name: &str) -> PathBuf {
    Path::new(ROOT).join(FIXTURE).join(name)
}

/// A bench with the archive that 0.1.0 wrote.
fn old_archive() -> Bench {
    let bench = Bench::new();
    let packed = std::fs::read(fixture("annals.db.zst")).unwrap();
    std::fs::create_dir_all(bench.archive()).unwrap();
    std::fs::write(database(&bench), zstd::stream::decode_all(packed.as_slice()).unwrap()).unwrap();
    bench
}

fn database(bench: &Bench) -> PathBuf {
    bench.archive().join("annals.db")
}

/// Sessions without what depends on the time of the query.
fn lasting(sessions: &[Value]) -> Vec<Value> {
    let mut sessions = sessions.to_vec();
    for session in &mut sessions {
        let fields = session.as_object_mut().unwrap();
        fields.remove("is_active");
        // Later versions have a separate field for the start of a session.
        fields.remove("started_at");
        fields.remove("first_message_at");
        fields.remove("history_only");
        for arranged in ["name", "starred", "tags", "has_note", "hidden"] {
            fields.remove(arranged);
        }
        fields.sort_keys();
    }
    sessions
}

/// All bytes match their hashes.
fn assert_intact(bench: &Bench) {
    let ran = bench.run(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let segments: Vec<&Value> = findings.iter().filter(|finding| finding["check"] == "segments").collect();
    assert!(!segments.is_empty() && segments.iter().all(|finding| finding["ok"] == true), "{document}");
}

fn assert_whole(bench: &Bench) {
    let then: Vec<Value> = serde_json::from_slice(&std::fs::read(fixture("sessions.json")).unwrap()).unwrap();
    assert_eq!(lasting(&bench.sessions()), lasting(&then));
    assert_intact(bench);
    let target = bench.folder.path().join("restored");
    let mut found = BTreeMap::new();
    for (source, folder) in [("codex_cli", ".codex"), ("claude_code", ".claude")] {
        let to = target.join(folder);
        let ran = bench.run(&["restore", "--source", source, "--to", to.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    for file in files_below(&target) {
        use sha2::Digest;
        let hash: String = sha2::Sha256::digest(std::fs::read(&file).unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        found.insert(file.strip_prefix(&target).unwrap().to_str().unwrap().to_owned(), hash);
    }
    let listed = std::fs::read_to_string(fixture("home.sha256")).unwrap();
    let listed: BTreeMap<String, String> = listed
        .lines()
        .map(|line| line.split_once("  ").unwrap())
        .map(|(hash, path)| (path.to_owned(), hash.to_owned()))
        .collect();
    // Captured files are as they were; the client's locks are left out.
    assert!(found.len() + 2 >= listed.len(), "{} of {}", found.len(), listed.len());
    for (path, hash) in &found {
        assert_eq!(listed.get(path), Some(hash), "{path}");
    }
    std::fs::remove_dir_all(&target).unwrap();
    // Readers have changed since then.
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    let before = bench.everything();
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert!(bench.everything() == before, "a rebuild changes nothing");
    let connection = Connection::open(database(bench)).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("select count(*) from segment"), 20, "as 0.1.0 had them");
    assert_eq!(number("select count(*) from blob"), 18, "equal ones are one");
    assert_eq!(
        connection.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
}

#[test]
fn an_archive_of_0_1_0_is_migrated_in_place() {
    assert_whole(&old_archive());
}

/// As if the program had been killed after any number of steps.
#[test]
fn an_interrupted_migration_is_finished_by_the_next_start() {
    let first = include_str!("../../crates/annals-store/src/migrations/0007_blobs.sql");
    for moved in [0, 1, 7, 20] {
        let bench = old_archive();
        let connection = Connection::open(database(&bench)).unwrap();
        connection.execute_batch(first).unwrap();
        connection.pragma_update(None, "user_version", MIGRATIONS_THEN + 1).unwrap();
        connection
            .execute_batch(&format!(
                "insert into blob (hash, length, packing, data)
                 select hash, length, packing, data from segment where id in (select id from segment limit {moved})
                 on conflict (hash) do nothing;
                 update segment set blob = (select blob.id from blob where blob.hash = segment.hash), data = x''
                 where id in (select id from segment limit {moved});"
            ))
            .unwrap();
        drop(connection);
        assert_whole(&bench);
    }
}

#[test]
fn a_killed_migration_is_resumed() {
    let bench = old_archive();
    // Enough segments that a kill hits the middle.
    let connection = Connection::open(database(&bench)).unwrap();
    for copy in 0..60 {
        connection
            .execute(
                "insert into segment (file, version, place, length, hash, packing, data)
                 select file, version + 100 + ?1, place, length, randomblob(32), 0, randomblob(length) from segment
                 where version = 1",
                [copy],
            )
            .unwrap();
    }
    let count = |connection: &Connection, sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let all = count(&connection, "select count(*) from segment");
    drop(connection);
    for wait in [5, 20, 40, 80] {
        let mut child =
            bench.command(&["sessions", "--json"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(bench.run(&["sessions", "--json"]).code, 0);
    let connection = Connection::open(database(&bench)).unwrap();
    assert_eq!(count(&connection, "select count(*) from segment where blob is not null"), all);
    assert_eq!(count(&connection, "select count(*) from blob"), all - 2);
}

/// A file that gains a few bytes, at its end or start, before each of eight syncs.
#[test]
fn a_file_that_changes_a_little_costs_a_little() {
    for at_start in [false, true] {
        let bench = Bench::new();
        let path = bench.claude().join("skills/oil/drawing.svg");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_file_name("SKILL.md"), "---\nname: oil\n---\nSee the drawing.\n").unwrap();
        let mut text = noise(2_700_000);
        let mut states = Vec::new();
        let mut size = 0;
        for step in 0..9 {
            if step > 0 {
                let gained = format!("<g {step}/>\n");
                text = if at_start { gained + &text } else { text + &gained };
            }
            std::fs::write(&path, &text).unwrap();
            assert_eq!(bench.run(&["sync"]).code, 0);
            let connection = Connection::open(database(&bench)).unwrap();
            let _: i64 =
                connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0)).unwrap();
            if step == 0 {
                size = database(&bench).metadata().unwrap().len();
            }
            states.push(text.clone());
        }
        let grown = database(&bench).metadata().unwrap().len() - size;
        assert!(grown < 400_000, "at its start {at_start}: {grown} bytes more");
        let target = bench.folder.path().join("restored");
        let ran = bench.run(&["restore", "--source", "claude_code", "--to", target.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(std::fs::read_to_string(target.join("skills/oil/drawing.svg")).unwrap() == text);
        assert_intact(&bench);
        let connection = Connection::open(database(&bench)).unwrap();
        let versions: i64 = connection
            .query_row(
                "select count(*) from version join file on file.id = version.file where file.path like '%drawing.svg'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(versions, 9, "each state is a version");
    }
}

/// Lines of text that does not compress well.
fn noise(length: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let letter =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 58) as usize];
        text.push(char::from(letter));
        if text.len() % 77 == 76 {
            text.push('\n');
        }
    }
    text
}

#[test]
fn equal_files_of_two_sources_are_stored_once() {
    let bench = Bench::new();
    let text = noise(600_000);
    for folder in [bench.claude(), bench.codex()] {
        std::fs::create_dir_all(folder.join("skills/oil")).unwrap();
        std::fs::write(folder.join("skills/oil/SKILL.md"), format!("---\nname: oil\n---\n{text}")).unwrap();
    }
    assert_eq!(bench.run(&["sync"]).code, 0);
    let connection = Connection::open(database(&bench)).unwrap();
    let stored: i64 =
        connection.query_row("select sum(length(data)) from blob", [], |row| row.get(0)).unwrap();
    assert!(stored < 600_000, "{stored} bytes");
}
