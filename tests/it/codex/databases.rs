//! The client's thread table and prompt history: rows that change, vanish and come back, and a write-ahead log that
//! is not merged.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::checks::{assert_rebuilds, assert_same_rows, assert_up_to_date};
use annals_testkit::codex::{ID, conversation, rollout};

const OTHER: &str = "0199a1b2-0000-7000-8000-00000000000b";

fn open(bench: &Bench, name: &str) -> Connection {
    std::fs::create_dir_all(bench.codex()).unwrap();
    let connection = Connection::open(bench.codex().join(name)).unwrap();
    connection
        .execute_batch(
            "create table if not exists threads (id text primary key, title text, name text, archived integer,
             tokens_used integer, model text, updated_at integer, color_of_tomorrow text, odd blob)",
        )
        .unwrap();
    connection
}

fn put(connection: &Connection, id: &str, title: &str, name: Option<&str>) {
    connection
        .execute(
            "insert or replace into threads values (?1, ?2, ?3, 1, 1234, 'gpt-5.5', 1794736900, 'teal', x'00ff')",
            rusqlite::params![id, title, name],
        )
        .unwrap();
}

/// All versions of one record.
fn versions(bench: &Bench, id: &str) -> Vec<Value> {
    let ran = bench.run(&["records", "codex_cli/threads", "--key", id]);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn session(bench: &Bench, id: &str) -> Value {
    bench.sessions().into_iter().find(|session| session["session_id"] == id).unwrap()
}

/// One transcript and one database whose only connection is closed after `fill`.
fn bench_with(fill: impl FnOnce(&Connection)) -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "first prompt"));
    fill(&open(&bench, "state_5.sqlite"));
    bench
}

#[test]
fn the_thread_table_wins_over_the_transcript() {
    let bench = bench_with(|connection| put(connection, ID, "title of the table", None));
    bench.sync();
    let titled = session(&bench, ID);
    assert_eq!(titled["title"], "title of the table");
    assert_eq!(titled["archived"], true);
    assert_eq!(titled["native"]["tokens_used"], 1234);
    assert_eq!(titled["message_count"], 2);
    put(&open(&bench, "state_5.sqlite"), ID, "title of the table", Some("chosen name"));
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "chosen name");
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_changed_row_is_a_new_version_and_unknown_columns_stay() {
    let bench = bench_with(|connection| {
        put(connection, ID, "one", None);
        put(connection, OTHER, "not changed", None);
    });
    bench.sync();
    put(&open(&bench, "state_5.sqlite"), ID, "two", None);
    let report = bench.sync();
    assert_eq!(report["new_documents"], 1, "{report}");
    let both = versions(&bench, ID);
    assert_eq!(both.len(), 2, "{both:?}");
    assert_eq!((&both[0]["version"], &both[0]["data"]["title"]), (&Value::from(1), &Value::from("one")));
    assert_eq!((&both[1]["version"], &both[1]["data"]["title"]), (&Value::from(2), &Value::from("two")));
    assert_eq!(both[1]["data"]["color_of_tomorrow"], "teal");
    assert_eq!(both[1]["data"]["odd"], "00ff");
    assert_eq!(versions(&bench, OTHER).len(), 1);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    assert_eq!(versions(&bench, ID), both, "a rebuild keeps every version");
}

#[test]
fn a_vanished_row_has_an_end_and_may_come_back() {
    let bench = bench_with(|connection| {
        put(connection, ID, "stays", None);
        put(connection, OTHER, "goes", None);
    });
    bench.sync();
    open(&bench, "state_5.sqlite").execute("delete from threads where id = ?1", [OTHER]).unwrap();
    bench.sync();
    let gone = versions(&bench, OTHER);
    assert_eq!(gone.len(), 1);
    assert!(gone[0]["deleted_at"].is_string(), "{gone:?}");
    assert_eq!(gone[0]["data"]["title"], "goes", "its content stays");
    assert!(versions(&bench, ID)[0]["deleted_at"].is_null());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    assert_eq!(versions(&bench, OTHER), gone, "a rebuild keeps the end");
    put(&open(&bench, "state_5.sqlite"), OTHER, "goes", None);
    bench.sync();
    let back = versions(&bench, OTHER);
    assert_eq!(back.len(), 2, "{back:?}");
    assert!(back[0]["deleted_at"].is_string() && back[1]["deleted_at"].is_null(), "{back:?}");
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    assert_eq!(versions(&bench, OTHER), back);
}

/// Names, archive marks, pins and goals come back in databases that the client opens.
#[test]
fn databases_are_restored_with_their_rows() {
    let bench = bench_with(|connection| {
        connection
            .execute_batch(
                "pragma user_version = 3;
                 create table _sqlx_migrations (version bigint primary key, description text not null,
                     success boolean not null, checksum blob not null);
                 insert into _sqlx_migrations values (1, 'threads', 1, x'c0ffee'), (2, 'edges', 1, x'00');
                 create table thread_spawn_edges (parent_thread_id text not null, child_thread_id text primary key,
                     status text not null);
                 create table logs (id integer primary key autoincrement, message text);
                 insert into logs (message) values ('a line of the log');
                 create index threads_by_time on threads (updated_at desc);
                 create trigger touch after insert on threads begin
                     update threads set tokens_used = tokens_used + 1 where id = new.id; end;",
            )
            .unwrap();
        put(connection, ID, "first title", None);
        put(connection, OTHER, "goes", None);
        connection.execute("insert into thread_spawn_edges values (?1, ?2, 'open')", [ID, OTHER]).unwrap();
    });
    let goals = Connection::open(bench.codex().join("goals_1.sqlite")).unwrap();
    goals
        .execute_batch("create table thread_goals (thread_id text primary key, share real, objective text)")
        .unwrap();
    goals.execute("insert into thread_goals values (?1, 0.5, 'Oil every gear')", [ID]).unwrap();
    bench.sync();
    put(&open(&bench, "state_5.sqlite"), ID, "second title", Some("chosen name"));
    open(&bench, "state_5.sqlite").execute("delete from threads where id = ?1", [OTHER]).unwrap();
    bench.sync();

    let target = bench.folder.path().join("restored");
    let restore = || {
        let ran =
            bench.run(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap(), "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let report = restore();
    let databases = serde_json::json!([
        {"path": "goals_1.sqlite", "tables": {"thread_goals": 1}},
        {"path": "state_5.sqlite", "tables": {"thread_spawn_edges": 1, "threads": 1}},
    ]);
    assert_eq!((&report["databases"], &report["without_schema"]), (&databases, &serde_json::json!([])));
    for name in ["state_5.sqlite", "goals_1.sqlite"] {
        assert_same_rows(&target.join(name), &bench.codex().join(name));
    }
    let restored = Connection::open(target.join("state_5.sqlite")).unwrap();
    let one = |sql: &str| restored.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(one("select name || ' ' || archived || ' ' || hex(odd) from threads"), "chosen name 1 00FF");
    assert_eq!(one("select group_concat(hex(checksum)) from _sqlx_migrations"), "C0FFEE,00");
    assert_eq!(
        one("select cast(count(*) as text) from logs"),
        "0",
        "rows that are not captured are not there"
    );
    drop(restored);
    let again = restore();
    assert_eq!((&again["files"], &again["already_there"]), (&Value::from(0), &report["files"]));
    let names: Vec<PathBuf> = annals_testkit::files::files_below(&target);
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("partial")), "{names:?}");
    assert_rebuilds(&bench);
}

#[test]
fn the_newest_database_wins() {
    let bench = bench_with(|connection| put(connection, ID, "of five", None));
    put(&open(&bench, "state_4.sqlite"), ID, "of four", None);
    put(&open(&bench, "state_4.sqlite"), OTHER, "only in four", None);
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "of five");
    assert_eq!(versions(&bench, ID).len(), 1);
    put(&open(&bench, "state_10.sqlite"), ID, "of ten", None);
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "of ten");
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn an_unmerged_log_is_read_and_left_alone() {
    let bench = bench_with(|connection| {
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        put(connection, ID, "merged", None);
    });
    let client = open(&bench, "state_5.sqlite");
    client.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    let state = |suffix: &str| -> Option<Vec<u8>> {
        let path: PathBuf = bench.codex().join(format!("state_5.sqlite{suffix}"));
        Path::new(&path).is_file().then(|| std::fs::read(path).unwrap())
    };
    for title in ["in the log", "in the log again"] {
        put(&client, ID, title, None);
        let before = (state(""), state("-wal"), state("-shm"));
        assert!(before.1.as_ref().is_some_and(|log| !log.is_empty()), "the log holds the row");
        bench.sync();
        assert_eq!(session(&bench, ID)["title"], title);
        assert!((state(""), state("-wal"), state("-shm")) == before, "the client's files are as they were");
        assert_up_to_date(&bench);
    }
    // The client may be in the middle of a change.
    client.execute_batch("begin immediate; update threads set title = 'not yet'").unwrap();
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "in the log again");
    client.execute_batch("commit").unwrap();
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "not yet");
    assert!(!bench.archive().join("scratch").join("copy").exists(), "no copy stays behind");
    assert_rebuilds(&bench);
}

#[test]
fn an_invalid_database_is_a_warning() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "first prompt"));
    std::fs::write(bench.codex().join("state_5.sqlite"), "this is no database, only words ".repeat(100))
        .unwrap();
    let report = bench.sync();
    assert!(report["problems"][0].as_str().unwrap().contains("state_5.sqlite"), "{report}");
    assert_eq!(session(&bench, ID)["message_count"], 2);
    std::fs::remove_file(bench.codex().join("state_5.sqlite")).unwrap();
    put(&open(&bench, "state_5.sqlite"), ID, "whole again", None);
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "whole again");
    assert_rebuilds(&bench);
}

/// Whatever a database calls a table: only plain tables are read, and nothing in its schema is computed.
#[test]
fn a_database_is_read_as_data() {
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n)
                   select i as id, printf('%.*c', 1000000, 'x') as title, '' as name from n";
    for (schema, expected) in [
        (format!("create view threads as {endless}"), Some("threads is a view, not a table")),
        ("create virtual table threads using fts5(id, title, name)".to_owned(), Some("threads is a virtual")),
        // Values that the schema computes are not asked for.
        (
            "create table threads (id text, title text, name text, updated_at integer,
             bomb text generated always as (printf('%.*c', 900000000, id)) virtual);
             insert into threads (id, title) values ('someone', 'plain')"
                .to_owned(),
            None,
        ),
    ] {
        let bench = Bench::new();
        bench.transcript(&rollout(ID), &conversation(ID, "first prompt"));
        Connection::open(bench.codex().join("state_5.sqlite")).unwrap().execute_batch(&schema).unwrap();
        let report = bench.sync();
        let problem = report["problems"][0].as_str();
        match expected {
            Some(expected) => assert!(problem.unwrap().contains(expected), "{report}"),
            None => assert_eq!((problem, versions(&bench, "someone").len()), (None, 1), "{report}"),
        }
        assert_eq!(session(&bench, ID)["message_count"], 2);
        let audit = bench.run(&["audit"]);
        assert!(audit.code < 2, "{}", audit.stderr);
    }
}

/// A run that was killed leaves its copy of a database; the next one must neither read nor keep it.
#[test]
fn leftovers_of_a_killed_run_are_removed() {
    let bench = bench_with(|connection| put(connection, ID, "title of the table", None));
    let left = bench.archive().join("scratch/copy-1");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("copy.sqlite"), "left over").unwrap();
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "title of the table");
    assert!(!left.exists());
}

#[test]
fn prompts_trimmed_from_the_history_stay() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "first prompt"));
    let path = bench.codex().join("history.jsonl");
    let line = |number: u32| {
        format!("{{\"session_id\":\"{ID}\",\"ts\":{},\"text\":\"typed {number}\"}}\n", 1_794_736_900 + number)
    };
    let lines = |numbers: std::ops::Range<u32>| numbers.map(line).collect::<String>();
    let records = || bench.run(&["records", "codex_cli/history"]).stdout.lines().count();
    std::fs::write(&path, lines(0..20)).unwrap();
    bench.sync();
    assert_eq!(records(), 20);
    std::fs::write(&path, lines(8..20)).unwrap();
    bench.sync();
    assert_eq!(records(), 20, "trimmed from the front");
    std::fs::write(&path, lines(12..25)).unwrap();
    bench.sync();
    assert_eq!(records(), 25, "trimmed and grown");
    std::fs::write(&path, "").unwrap();
    bench.sync();
    std::fs::write(&path, lines(30..31)).unwrap();
    bench.sync();
    assert_eq!(records(), 26);
    std::fs::remove_file(&path).unwrap();
    bench.sync();
    assert_eq!(records(), 26, "and when the file is gone");
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    assert_eq!(records(), 26);
}

#[test]
fn the_last_name_wins_however_the_names_came() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "first prompt"));
    let path = bench.codex().join("session_index.jsonl");
    let name = |name: &str, minute: u32| {
        format!(
            "{{\"id\":\"{ID}\",\"thread_name\":\"{name}\",\"updated_at\":\"2026-11-15T10:{minute:02}:00Z\"}}\n"
        )
    };
    std::fs::write(&path, name("one", 1)).unwrap();
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "one");
    annals_testkit::files::append(&path, &name("two", 2));
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "two");
    std::fs::write(&path, name("three", 3)).unwrap();
    bench.sync();
    assert_eq!(session(&bench, ID)["title"], "three");
    assert_eq!(bench.run(&["records", "codex_cli/session_index"]).stdout.lines().count(), 3);
    assert_rebuilds(&bench);
}
