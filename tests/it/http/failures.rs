//! Failures are reported: the cause of an error is in the log under the id in the response, and a server that can no
//! longer capture reports it to people and programs.

use std::process::Command;
use std::time::{Duration, Instant};

use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran, disk};
use serde_json::Value;

use super::numbered;

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

/// Asks until the server has this status, and returns the answer of `/healthz`.
fn wait_for(server: &Server, status: &str) -> Value {
    let started = Instant::now();
    loop {
        let health = server.get_with("/healthz", &[]).json();
        if health["status"] == status {
            return health;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "still {health}: {}", server.log());
        server.json("/api/v1/sessions");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A failure is on the page, in `/healthz`, in `/api/v1/status`, in the log and in `annals sources`.
fn assert_reported(bench: &Bench, server: &Server, cause: &str, file: &str) {
    let health = wait_for(server, "degraded");
    let since = health["failing_since"].as_str().unwrap();
    assert!(!health.to_string().contains(cause), "anybody can ask for it: {health}");
    let status = server.json("/api/v1/status");
    assert_eq!(
        (&status["status"], &status["failing_since"]),
        (&"degraded".into(), &since.into()),
        "{status}"
    );
    let failure = &status["failures"][0];
    assert!(failure["what"].as_str().unwrap().contains(cause), "{status}");
    assert_eq!((&failure["since"], &failure["file_count"]), (&since.into(), &1.into()), "{status}");
    assert!(failure["files"][0].as_str().unwrap().ends_with(file), "{status}");
    let page = server.page("/").text();
    for part in [since, cause, file] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let log = server.log();
    assert!(log.contains(cause) && log.contains(file), "{log}");
    let sources = bench.run(&["sources"]).stdout;
    for part in [since, cause, file, "hint: "] {
        assert!(sources.contains(part), "no {part} in {sources}");
    }
    assert_eq!(bench.json(&["sources"])["failures"][0]["since"], since);
}

fn assert_over(bench: &Bench, server: &Server) {
    let health = wait_for(server, "ok");
    assert!(health.get("failing_since").is_none(), "{health}");
    let status = server.json("/api/v1/status");
    assert_eq!((&status["status"], &status["failures"]), (&"ok".into(), &serde_json::json!([])), "{status}");
    assert!(status["last_sync_at"].is_string() && status["refreshes"] == true, "{status}");
    assert!(!server.page("/").text().contains("role=\"alert\""));
    assert_eq!(bench.json(&["sources"])["failures"], serde_json::json!([]));
    assert!(!bench.run(&["sources"]).stdout.contains("warning: "));
}

#[test]
fn a_server_that_cannot_capture_reports_it_until_it_can() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    bench.sync();
    let id = numbered(1);
    bench.transcript(&rollout(&id), &conversation(&id, "beaver"));
    // A directory cannot be locked.
    let lock = bench.archive().join("annals.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let server = Server::start(&bench);
    assert_reported(&bench, &server, "annals.lock", &rollout(&id));
    let log = server.log();
    assert_eq!(log.matches("cannot capture new data").count(), 1, "once for one cause: {log}");
    std::fs::remove_dir(&lock).unwrap();
    assert_over(&bench, &server);
    assert_eq!(server.json("/api/v1/sessions")["total"], 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_until_there_is_room() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    bench.sync();
    let server = Server::of(with_file_limit(&bench, &["serve", "--listen", "127.0.0.1:0", "--json"]));
    wait_for(&server, "ok");
    let id = numbered(1);
    let words = random_words(400_000);
    bench.transcript(&rollout(&id), &conversation(&id, &words));
    assert_reported(&bench, &server, "cannot be written", &rollout(&id));
    let failure = &server.json("/api/v1/status")["failures"][0];
    assert!(failure["what"].as_str().unwrap().contains("annals.db"), "{failure}");
    assert_eq!(server.json("/api/v1/sessions")["total"], 1, "what was captured before is served");
    // Browsers that come now learn of it as well, by a link that works once.
    let entered = server.get_with(&server.link, &[]);
    assert_eq!(entered.status, 303, "{}", server.log());
    let cookie = entered.headers["set-cookie"].split(';').next().unwrap().to_owned();
    assert_eq!(server.get_with("/", &[("Cookie", &cookie), ("Accept", "text/html")]).status, 200);
    assert_eq!(server.get_with(&server.link, &[]).status, 401);
    let process = server.process().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status().unwrap();
    assert!(lifted.success());
    assert_over(&bench, &server);
    assert_eq!(server.json("/api/v1/sessions")["total"], 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sync_on_a_full_disk_names_the_archive_and_is_remembered() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    bench.sync();
    let id = numbered(1);
    bench.transcript(&rollout(&id), &conversation(&id, &random_words(400_000)));
    let database = bench.archive().join("annals.db");
    for verb in [&["sync"][..], &["up", "--no-serve"]] {
        let ran = Ran::of(with_file_limit(&bench, verb).output().unwrap());
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(
            ran.stderr.contains(database.to_str().unwrap()) && ran.stderr.contains("hint: "),
            "{}",
            ran.stderr
        );
    }
    // `up` serves what was captured before, and says what fails.
    let server = Server::of(with_file_limit(&bench, &["up", "--listen", "127.0.0.1:0", "--json"]));
    assert_reported(&bench, &server, "cannot be written", &rollout(&id));
    assert!(server.stop().stderr.contains(database.to_str().unwrap()));
    let failures = bench.json(&["sources"])["failures"].clone();
    assert!(failures[0]["files"][0].as_str().unwrap().ends_with(&rollout(&id)), "{failures}");
    // Servers of the same archive know it from there.
    let server = Server::without_refresh(&bench);
    assert_eq!(server.json("/api/v1/status")["failures"], failures);
    let member = bench.json(&["members", "add", "sam"]);
    let token = member["token"].as_str().unwrap_or_else(|| panic!("{member}"));
    let status = server.get_as(token, "/api/v1/status").json();
    assert!(
        status["status"] == "degraded" && status["failures"][0]["files"] == serde_json::json!([]),
        "{status}"
    );
    assert!(!status.to_string().contains("annals.db"), "{status}");
    drop(server);
    bench.sync();
    assert_eq!(bench.json(&["sources"])["failures"], serde_json::json!([]));
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_read_are_reported_until_they_can() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "otter"));
    let id = numbered(1);
    let path = bench.transcript(&rollout(&id), &[]);
    std::fs::remove_file(&path).unwrap();
    // A link to itself is unreadable for everyone, root included.
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let server = Server::start(&bench);
    assert_reported(&bench, &server, "symbolic links", &rollout(&id));
    let status = server.json("/api/v1/status");
    assert_eq!(
        (&status["failures"][0]["kind"], &status["failures"][0]["source"]),
        (&"files".into(), &"codex_cli".into())
    );
    std::fs::remove_file(&path).unwrap();
    bench.transcript(&rollout(&id), &conversation(&id, "beaver"));
    assert_over(&bench, &server);
}

/// The program where the archive cannot grow.
#[cfg(target_os = "linux")]
fn with_file_limit(bench: &Bench, arguments: &[&str]) -> Command {
    disk::with_file_limit(64, &bench.command(arguments))
}

/// Words that do not compress well.
fn random_words(length: usize) -> String {
    let mut state = 20_261_116_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match (state >> 58) as u8 {
            letter @ 0..52 => char::from(b'a' + letter % 26),
            _ => ' ',
        }
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn the_log_masks_secrets_and_takes_a_filter() {
    let bench = Bench::new();
    let mut command = bench.command(&["sources"]);
    let ran = Ran::of(command.env("ANNALS_LOG", "annals=loud").output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("hint: ANNALS_LOG=debug"), "{}", ran.stderr);
    let ran = Ran::of(bench.command(&["sources"]).env("ANNALS_LOG", "debug").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
