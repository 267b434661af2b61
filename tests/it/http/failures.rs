//! Failures are reported: the cause of an error is in the log under the id in the response, and a server that can no
//! longer capture reports it to people and programs.

use std::time::{Duration, Instant};

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::Server;

#[test]
fn the_cause_of_a_500_is_in_the_log_with_its_statement() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    bench.sync();
    let database = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    database.execute_batch("drop table message").unwrap();
    drop(database);
    let server = Server::without_refresh(&bench);
    let path = format!("/api/v1/codex/sessions/{ID}/messages");
    let reply = server.get(&path);
    assert_eq!(reply.status, 500, "{}", reply.text());
    let body = reply.json();
    let id = body["request_id"].as_str().unwrap();
    assert_eq!(id.len(), 16);
    assert!(!reply.text().contains("message "), "the statement is nobody else's business: {}", reply.text());
    let page = server.page(&format!("/sessions/codex_cli/{ID}"));
    assert!(page.status == 500 && page.text().contains("Request "), "{}", page.text());
    let log = server.stop().stderr;
    let line = log.lines().find(|line| line.contains("request failed") && line.contains(id));
    let line = line.unwrap_or_else(|| panic!("no {id} in\n{log}"));
    for part in ["no such table: message", "from message", ".rs:"] {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
    let request = log.lines().find(|line| line.contains("/messages 500")).unwrap();
    assert!(request.contains(id), "{request}");
}

#[test]
fn a_server_that_cannot_capture_reports_it_until_it_can() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    bench.sync();
    // A directory cannot be locked.
    let lock = bench.archive().join("annals.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let server = Server::start(&bench);
    let wait = |status: &str| {
        let started = Instant::now();
        loop {
            let health = server.get_with("/healthz", &[]).json();
            if health["status"] == status {
                return health;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "still {health}");
            server.json("/api/v1/sessions");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let health = wait("degraded");
    assert!(health["failing_since"].is_string(), "{health}");
    assert!(!health.to_string().contains("annals.lock"), "anybody can ask for it");
    let page = server.page("/");
    assert!(page.text().contains("has not been captured since"), "{}", page.text());
    let log = server.log();
    assert_eq!(log.matches("cannot capture new data").count(), 1, "once for one cause: {log}");
    std::fs::remove_dir(&lock).unwrap();
    let health = wait("ok");
    assert!(health.get("failing_since").is_none(), "{health}");
    assert!(!server.page("/").text().contains("has not been captured since"));
}

#[test]
fn the_log_masks_secrets_and_takes_a_filter() {
    let bench = Bench::new();
    let mut command = bench.command(&["sources"]);
    let ran = annals_testkit::Ran::of(command.env("ANNALS_LOG", "annals=loud").output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("hint: ANNALS_LOG=debug"), "{}", ran.stderr);
    let ran =
        annals_testkit::Ran::of(bench.command(&["sources"]).env("ANNALS_LOG", "debug").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
