//! Rows and tables that are damaged are found and rebuilt from the archived files.

use annals_testkit::codex::{ID, rollout};

use super::{bench, connect, flip};

const THIRD: &str = "0199a1b2-0000-7000-8000-000000000003";

/// Rows that were changed behind the program's back are those of the files again.
#[test]
fn wrong_rows_are_found_by_a_deep_check_and_rebuilt() {
    for damage in [
        "update message set at = at + 1 where byte_offset = (select max(byte_offset) from message)",
        "update session set title = 'something else'",
        "delete from tool_call",
        "delete from message",
        "update search_block set data = x'00'",
        "update name set text = text || '!'",
    ] {
        let bench = bench();
        let path = bench.transcript(&rollout(THIRD), &[]);
        std::fs::write(path, annals_testkit::codex::busy_transcript(THIRD)).unwrap();
        bench.sync();
        let before = bench.everything();
        let well = bench.run(&["doctor", "--deep"]);
        assert_eq!(well.code, 0, "{}", well.stdout);
        assert!(connect(&bench).execute(damage, []).unwrap() > 0, "{damage}");
        let doctor = bench.run(&["doctor", "--deep"]);
        assert_eq!(doctor.code, 1, "{damage}: {}", doctor.stdout);
        assert!(doctor.stdout.contains("FAILED  content"), "{damage}: {}", doctor.stdout);
        let dry = bench.run(&["repair", "--dry-run"]);
        assert!(dry.stdout.contains("can be rebuilt"), "{damage}: {}", dry.stdout);
        assert_eq!(bench.run(&["repair"]).code, 0, "{damage}");
        assert_eq!(bench.run(&["doctor", "--deep"]).code, 0, "{damage}");
        annals_testkit::checks::assert_same(&before, &bench.everything());
    }
}

/// A plain check compares rows with bytes as well, of as many files as time allows, and says how many those were.
#[test]
fn wrong_rows_are_found_on_a_sample() {
    for damage in [
        "update message set at = at + 1 where byte_offset = (select max(byte_offset) from message)",
        "delete from tool_call",
        "delete from message",
        "update usage set input = input + 1",
        "update coverage set lines = lines + 1",
        "update file set parsed = parsed - 1 where parsed > 0",
        "update name set text = text || '!'",
    ] {
        let bench = bench();
        let path = bench.transcript(&rollout(THIRD), &[]);
        std::fs::write(path, annals_testkit::codex::busy_transcript(THIRD)).unwrap();
        bench.sync();
        let well = bench.run(&["doctor"]);
        assert!(well.code == 0 && well.stdout.contains("rows of 4 of 4 files match"), "{}", well.stdout);
        assert!(connect(&bench).execute(damage, []).unwrap() > 0, "{damage}");
        let doctor = bench.run(&["doctor"]);
        assert!(doctor.code == 1 && doctor.stdout.contains("FAILED  sample"), "{damage}: {}", doctor.stdout);
        assert_eq!(bench.run(&["rebuild"]).code, 0, "{damage}");
        let doctor = bench.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{damage}: {}", doctor.stdout);
    }
}

/// A table that SQLite cannot read is written again; the damaged file stays beside the archive.
#[test]
fn a_rebuild_survives_damaged_tables() {
    let bench = bench();
    let before = bench.everything();
    let database = bench.archive().join("annals.db");
    let page: i64 = connect(&bench)
        .query_row("select rootpage from sqlite_schema where name = 'message'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = std::fs::read(&database).unwrap();
    let at = (page as usize - 1) * 8_192;
    bytes[at..at + 64].fill(0xff);
    std::fs::write(&database, bytes).unwrap();
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("FAILED  database"), "{}", doctor.stdout);
    let ran = bench.run(&["rebuild"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(bench.archive().join("annals.db.damaged").is_file());
    annals_testkit::checks::assert_same(&before, &bench.everything());
    assert_eq!(bench.run(&["doctor", "--deep"]).code, 0);
}

/// A rebuild of an older version was interrupted after it had removed the rows.
#[test]
fn an_interrupted_rebuild_is_found() {
    let bench = bench();
    connect(&bench).execute("insert into setting (name, value) values ('rebuilding', 1)", []).unwrap();
    let doctor = bench.run(&["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.stdout.contains("FAILED  rebuild"), "{}", doctor.stdout);
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(bench.run(&["doctor"]).code, 0);
}

#[test]
fn a_rebuild_of_damaged_content_lists_it() {
    let bench = bench();
    flip(&bench, &rollout(ID));
    let ran = bench.run(&["rebuild"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains(&rollout(ID)) && ran.stderr.contains("annals repair"), "{}", ran.stderr);
    assert_eq!(bench.run(&["repair"]).code, 0);
    annals_testkit::checks::assert_like_fresh(&bench);
}
