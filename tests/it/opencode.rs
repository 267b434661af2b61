//! OpenCode: conversations in files and in databases, counted independently, and databases that are not at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::assistants::Counted;
use annals_testkit::checks::{assert_rebuilds, assert_restores_of, assert_up_to_date_of};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, fixtures};

/// A message with its parts, and the session that it is in.
struct Spoken {
    session: Value,
    message: Value,
    parts: Vec<Value>,
}

/// By the rows of databases, and by the files of sessions that no database has.
pub fn count(home: &Path) -> Counted {
    let (mut spoken, mut known) = (Vec::new(), BTreeSet::new());
    let databases =
        files_below(home).into_iter().filter(|path| path.extension().is_some_and(|end| end == "db"));
    for database in databases {
        of_database(&database, &mut spoken, &mut known);
    }
    of_files(home, &mut spoken, &known);
    let (mut counted, mut sessions) = (Counted::default(), BTreeSet::new());
    for Spoken { session, message, parts } in &spoken {
        if message["role"] != "assistant" {
            continue;
        }
        sessions.insert(session["id"].to_string());
        let created = |value: &Value| value["time"]["created"].as_i64().unwrap();
        let is_fork = session["title"].as_str().unwrap().contains("(fork #");
        if is_fork && created(message) < created(session) {
            continue;
        }
        counted.answers += i64::from(message["summary"] != true);
        let kinds = |kind: &'static str| parts.iter().filter(move |part| part["type"] == kind);
        counted.calls += kinds("tool").count() as i64;
        let mut steps: Vec<&Value> = kinds("step-finish").map(|part| &part["tokens"]).collect();
        if steps.is_empty() {
            steps.push(&message["tokens"]);
        }
        let version = session["version"].as_str().unwrap();
        for tokens in steps {
            let number = |name: &str| tokens[name].as_i64().unwrap_or(0);
            let cached = |name: &str| tokens["cache"][name].as_i64().unwrap_or(0);
            let cached_apart = if version.starts_with("0.") { 0 } else { cached("read") };
            counted.prompt_tokens += number("input") + cached_apart + cached("write");
            let is_apart = tokens["total"].as_i64().is_some_and(|total| {
                total
                    == number("input")
                        + number("output")
                        + number("reasoning")
                        + cached("read")
                        + cached("write")
            });
            counted.output_tokens += number("output") + if is_apart { number("reasoning") } else { 0 };
        }
    }
    counted.sessions = sessions.len();
    counted
}

fn of_database(database: &Path, spoken: &mut Vec<Spoken>, known: &mut BTreeSet<String>) {
    let copy = tempfile::tempdir().unwrap();
    for ending in ["", "-wal"] {
        let from = format!("{}{ending}", database.display());
        if Path::new(&from).is_file() {
            std::fs::copy(from, copy.path().join(format!("copy.db{ending}"))).unwrap();
        }
    }
    let connection = Connection::open(copy.path().join("copy.db")).unwrap();
    let rows = |sql: &str, key: &str| -> Vec<(String, Value)> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([key], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
        rows.map(Result::unwrap).map(|(id, data)| (id, serde_json::from_str(&data).unwrap())).collect()
    };
    let sessions = rows(
        "select id, json_object('id', id, 'title', title, 'version', version,
                                'time', json_object('created', time_created)) from session where ?1 = ?1",
        "",
    );
    for (id, session) in sessions {
        for (message_id, message) in rows("select id, data from message where session_id = ?1", &id) {
            let parts = rows("select id, data from part where message_id = ?1", &message_id);
            let parts = parts.into_iter().map(|(_, part)| part).collect();
            spoken.push(Spoken { session: session.clone(), message, parts });
        }
        known.insert(id);
    }
}

fn of_files(home: &Path, spoken: &mut Vec<Spoken>, known: &BTreeSet<String>) {
    let mut parts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let (mut sessions, mut messages) = (BTreeMap::new(), Vec::new());
    let read = |path: &PathBuf| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).ok();
    for path in files_below(home) {
        let text = path.to_string_lossy().into_owned();
        let Some(value) = read(&path).filter(|value| value["id"].is_string()) else { continue };
        let text_of = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if text.contains("/part/") {
            parts.entry(text_of("messageID")).or_default().push(value);
        } else if text.contains("/message/") {
            messages.push(value);
        } else if text.contains("/storage/session/") {
            sessions.insert(text_of("id"), value);
        }
    }
    for message in messages {
        let session = message["sessionID"].as_str().unwrap();
        if let Some(found) = sessions.get(session).filter(|_| !known.contains(session)) {
            let parts = parts.remove(message["id"].as_str().unwrap()).unwrap_or_default();
            spoken.push(Spoken { session: found.clone(), message, parts });
        }
    }
}

fn bench_of(case: &str) -> Bench {
    fixtures::synced("opencode", &fixtures::case("opencode", case))
}

fn session(bench: &Bench, id: &str) -> Value {
    bench.sessions().into_iter().find(|session| session["session_id"] == id).unwrap()
}

#[test]
fn a_conversation_that_moved_to_the_database_counts_once() {
    let (files, both) = (bench_of("files"), bench_of("taken_over"));
    for id in ["ses_aaaa0001", "ses_bbbb0002"] {
        let (one, other) = (session(&files, id), session(&both, id));
        for name in ["user_message_count", "assistant_message_count", "tool_call_count", "tokens", "title"] {
            assert_eq!(one[name], other[name], "{id} {name}");
        }
    }
    assert_eq!(session(&both, "ses_ffff0003")["assistant_message_count"], 1, "a fork counts what is its own");
}

#[test]
fn a_directory_of_settings_beside_the_conversations_does_not_say_that_they_are_gone() {
    let bench = bench_of("files");
    let settings = bench.user().join(".config/opencode");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("AGENTS.md"), "Be brief.\n").unwrap();
    bench.sync_of("opencode");

    let cards = bench.json(&["sources"]);
    let card = cards["sources"].as_array().unwrap().iter().find(|card| card["source"] == "opencode").unwrap();
    let root = bench.home_of("opencode").display().to_string();
    assert_eq!(
        [&card["source_status"], &card["reason"], &card["source_path"]],
        ["available", "", root.as_str()]
    );
}

#[test]
fn a_conversation_is_shown_with_its_calls_and_helpers() {
    for case in ["lines", "files"] {
        let bench = bench_of(case);
        let shown = bench.json(&["show", "ses_aaaa0001"]).to_string();
        for text in ["A note is enough.", "The dial says twelve now.", "The request was refused.", "1 failed"]
        {
            assert!(shown.contains(text), "{case}: {text}");
        }
        assert!(shown.contains("\"agent_session_id\":\"ses_bbbb0002\""), "{case}");
        let agent = session(&bench, "ses_bbbb0002");
        assert_eq!(agent["parent_session_id"], "ses_aaaa0001");
        assert_eq!(agent["cwd"], "/home/ada/gauge");
        let found = bench.json(&["search", "says twelve now"]);
        assert_eq!(found["results"][0]["session_id"], "ses_aaaa0001", "{found}");
    }
}

fn database(bench: &Bench) -> PathBuf {
    bench.home_of("opencode").join("opencode.db")
}

/// The client, which keeps its connection open.
fn client(bench: &Bench) -> Connection {
    let connection = Connection::open(database(bench)).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection
}

fn add_message(client: &Connection, id: &str, session: &str, text: &str) {
    let message = r#"{"role":"user","time":{"created":1772442400000},"agent":"build"}"#;
    let part = serde_json::json!({"type": "text", "text": text}).to_string();
    client
        .execute(
            "insert into message values (?1, ?2, 1772442400000, 1772442400000, ?3)",
            [id, session, message],
        )
        .unwrap();
    client
        .execute(
            "insert into part values ('prt_' || ?1, ?1, ?2, 1772442400000, 1772442400000, ?3)",
            [id, session, &part],
        )
        .unwrap();
}

#[test]
fn only_the_conversation_that_changed_is_read_again() {
    let bench = bench_of("lines");
    let client = client(&bench);
    add_message(&client, "msg_9001", "ses_ffff0003", "Is the log read?");
    let report = bench.sync_of("opencode");
    assert_eq!(report["new_documents"], 1, "{report}");
    assert!(bench.json(&["show", "ses_ffff0003"]).to_string().contains("Is the log read?"));
    assert_up_to_date_of(&bench, "opencode");
    assert_rebuilds(&bench);
}

#[test]
fn a_client_that_writes_is_neither_held_up_nor_read_half() {
    let bench = bench_of("lines");
    let client = client(&bench);
    client.execute_batch("begin immediate").unwrap();
    add_message(&client, "msg_9001", "ses_aaaa0001", "Not committed yet");
    let report = bench.sync_of("opencode");
    assert_eq!(report["problems"], serde_json::json!([]), "{report}");
    assert!(!bench.json(&["show", "ses_aaaa0001"]).to_string().contains("Not committed yet"));
    client.execute_batch("commit").unwrap();
    bench.sync_of("opencode");
    assert!(bench.json(&["show", "ses_aaaa0001"]).to_string().contains("Not committed yet"));
    let folder = bench.home_of("opencode");
    drop(client);
    let left = |name: &str| folder.join(name).exists();
    assert!(!left("opencode.db-wal") && !left("opencode.db-shm"), "the last connection was the client's");
}

#[test]
fn a_corrupt_database_is_reported_and_what_was_read_stays() {
    let bench = bench_of("lines");
    let bytes = std::fs::read(database(&bench)).unwrap();
    std::fs::write(database(&bench), &bytes[..bytes.len() / 3]).unwrap();
    let report = bench.sync_of("opencode");
    assert_ne!(report["problems"], serde_json::json!([]), "{report}");
    assert_eq!(session(&bench, "ses_aaaa0001")["title"], "Oil the dial");
    std::fs::write(database(&bench), &bytes).unwrap();
    let report = bench.sync_of("opencode");
    assert_eq!(report["problems"], serde_json::json!([]), "{report}");
}

#[test]
fn binary_values_come_back_as_such() {
    let bench = bench_of("lines");
    let client = client(&bench);
    client.execute("update session set permission = x'00ff7b7d' where id = 'ses_bbbb0002'", []).unwrap();
    client
        .execute("update session set slug = '00ff', time_updated = 9 where id = 'ses_bbbb0002'", [])
        .unwrap();
    drop(client);
    bench.sync_of("opencode");
    assert_restores_of(&bench, "opencode", &bench.home_of("opencode"));
}

#[test]
fn a_deleted_conversation_stays_and_is_marked() {
    let bench = bench_of("lines");
    let client = client(&bench);
    for table in ["part", "message", "todo"] {
        client.execute(&format!("delete from {table} where session_id = 'ses_bbbb0002'"), []).unwrap();
    }
    client.execute("delete from session where id = 'ses_bbbb0002'", []).unwrap();
    bench.sync_of("opencode");
    let gone = session(&bench, "ses_bbbb0002");
    assert_eq!((&gone["source_gone"], &gone["assistant_message_count"]), (&true.into(), &2.into()));
    assert_eq!(session(&bench, "ses_aaaa0001")["source_gone"], false);
    let bench = bench_of("files");
    std::fs::remove_dir_all(bench.home_of("opencode").join("storage/message/ses_bbbb0002")).unwrap();
    std::fs::remove_dir_all(bench.home_of("opencode").join("storage/session")).unwrap();
    bench.sync_of("opencode");
    assert_eq!(session(&bench, "ses_bbbb0002")["source_gone"], true);
    assert_up_to_date_of(&bench, "opencode");
}
