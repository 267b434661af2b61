//! How the server behaves: responses are current, pages complete, the log has no content, and it stops and idles.

mod access;
mod access_log;
mod browsers;
mod failures;
mod files;
mod first;
mod hidden;
mod insights;
mod isolation;
mod lineage;
pub mod members;
mod pages;
mod secrets;
mod selected;
mod shapes;
mod shared;
mod tls;
mod tokens;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::claude;
use annals_testkit::codex::{ID, answer, conversation, prompt, rollout, text_of};
use annals_testkit::files::{append, copy_folder, files_below};
use annals_testkit::server::{Reply, Server, with};
use annals_testkit::{Bench, fixtures};

const SESSIONS: &str = "/api/v1/codex/sessions";

fn numbered(number: usize) -> String {
    format!("0199a1b2-0000-7000-8000-{number:012}")
}

/// The homes of all fixtures, those of one client in one home.
fn all_fixtures() -> Bench {
    let bench = Bench::new();
    for (source, case) in fixtures::with_home() {
        copy_folder(&case.join("home"), &bench.home_of(source));
    }
    bench.sync();
    bench
}

/// Repeats a request until the response is as expected. Benches measure how long that takes: the limit only ends a
/// wait for something that never comes, and is far below the ten minutes between unprompted refreshes.
#[track_caller]
fn wait_until(server: &Server, path: &str, is_current: impl Fn(&Reply) -> bool, what: &str) {
    let started = Instant::now();
    while !is_current(&server.get(path)) {
        assert!(started.elapsed() < Duration::from_secs(120), "{what}: never");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many times the server announced new activity.
fn news(server: &Server) -> u64 {
    let text = server.first_event();
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str::<Value>(data).unwrap()["news"].as_u64().unwrap()
}

/// What the server has announced is in the very next response, however slow the machine is.
#[test]
fn announced_activity_is_in_the_next_response() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let server = Server::start(&bench);
    let messages = format!("{SESSIONS}/{ID}/messages");
    wait_until(&server, &messages, |reply| reply.text().contains("about gears"), "the first look");
    for round in 0..3 {
        let words = format!("words of round {round}");
        let before = news(&server);
        append(&path, &text_of(&prompt(&words)));
        let started = Instant::now();
        while news(&server) == before {
            assert!(started.elapsed() < Duration::from_secs(120), "{round}: nothing is announced");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(server.get(&messages).text().contains(&words), "{round}: announced, but not in the answer");
    }
}

/// Homes that did not exist when the server started are not watched below their root: appends to their files are
/// found on request.
#[test]
fn a_request_finds_what_was_just_written() {
    let bench = Bench::new();
    let server = Server::start(&bench);
    assert_eq!(server.get(SESSIONS).status, 200);
    let path = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let claude = claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
    let messages = format!("{SESSIONS}/{ID}/messages");
    wait_until(&server, &messages, |reply| reply.text().contains("about gears"), "a new home");
    for round in 0..5 {
        let words = format!("words of round {round}");
        let has_words = |reply: &Reply| reply.text().contains(&words);
        append(&path, &text_of(&prompt(&words)));
        wait_until(&server, &messages, has_words, &format!("{round}: an append to Codex's file"));

        append(&claude, &format!("{}\n", claude::prompt_row(claude::ONE, 10 + round, &words)));
        let other = format!("/api/v1/claude-code/sessions/{}/messages", claude::ONE);
        wait_until(&server, &other, has_words, &format!("{round}: an append to Claude Code's file"));

        let id = numbered(round as usize);
        bench.transcript(&rollout(&id), &conversation(&id, &words));
        let one = format!("{SESSIONS}/{id}");
        wait_until(&server, &one, |reply| reply.status == 200, &format!("{round}: a new file"));
        assert_eq!(server.get(SESSIONS).json()["total"], round + 2);
    }
}

#[test]
fn responses_have_etags() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let server = Server::start(&bench);
    let bearer = format!("Bearer {}", server.token);
    for address in [format!("{SESSIONS}/{ID}/messages"), SESSIONS.to_owned(), format!("{SESSIONS}/{ID}")] {
        let first = server.get(&address);
        let tag = first.header("etag").to_owned();
        assert!(first.status == 200 && tag.len() > 10, "{address}: {tag}");
        assert!(first.header("cache-control").contains("private"), "{address}");
        let again =
            |tag: &str| server.get_with(&address, &[("Authorization", &bearer), ("If-None-Match", tag)]);
        for known in [tag.clone(), format!("\"other\", {tag}")] {
            let reply = again(&known);
            assert_eq!((reply.status, reply.body.len()), (304, 0), "{address}");
            assert_eq!(reply.header("etag"), tag, "{address}");
        }
        assert_eq!(again("\"other\"").status, 200);
        append(&path, &text_of(&answer(&format!("more for {}", address.len()))));
        let other_tag = |reply: &Reply| reply.header("etag") != tag;
        wait_until(&server, &address, other_tag, &address);
        let changed = again(&tag);
        assert_eq!(changed.status, 200, "{address}");
        assert_ne!(changed.header("etag"), tag, "{address}");
        let stranger = server.get_with(&address, &[("If-None-Match", changed.header("etag"))]);
        assert_eq!(stranger.status, 401, "a tag is no token");
    }
}

#[test]
fn responses_are_compressed_on_request_and_heads_have_no_body() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, &"gears and axles ".repeat(200)));
    bench.sync();
    let server = Server::without_refresh(&bench);
    let bearer = format!("Bearer {}", server.token);
    for path in [format!("{SESSIONS}/{ID}/messages?full=true"), "/openapi.json".to_owned()] {
        let plain = server.get(&path);
        assert!(!plain.headers.contains_key("content-encoding"));
        let small = server.get_with(&path, &[("Authorization", &bearer), ("Accept-Encoding", "br, gzip")]);
        assert_eq!((small.status, small.header("content-encoding")), (200, "gzip"));
        assert!(small.header("vary").to_lowercase().contains("accept-encoding"), "{:?}", small.headers);
        assert!(small.body.len() * 2 < plain.body.len(), "{} of {}", small.body.len(), plain.body.len());
        assert_eq!(gunzipped(&small.body), plain.body);

        let head = server.request("HEAD", &path, &[("Authorization", &bearer)]);
        assert_eq!((head.status, head.body.len()), (200, 0));
        for name in ["content-type", "etag", "content-length"] {
            assert_eq!(head.header(name), plain.header(name), "{path}: {name}");
        }
    }
    assert_eq!(server.request("HEAD", "/api/v1/nothing", &[("Authorization", &bearer)]).status, 404);
}

/// By other means than those that compressed it.
fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn pages_of_any_size_have_everything_once_and_in_the_same_order() {
    let bench = all_fixtures();
    let server = Server::without_refresh(&bench);
    let mut lists = vec![("/api/v1/usage/responses?days=all".to_owned(), "responses", 10)];
    for by in ["day", "model", "project", "session", "source"] {
        lists.push((format!("/api/v1/usage?days=all&by={by}"), "rows", 1));
    }
    for (source, own) in [("codex_cli", "codex"), ("claude_code", "claude-code")] {
        let sessions = format!("/api/v1/{own}/sessions?include_subagents=true");
        for session in server.list(&sessions, "sessions") {
            let id = session["session_id"].as_str().unwrap();
            lists.push((format!("/api/v1/{own}/sessions/{id}/messages"), "messages", 0));
            lists.push((format!("/api/v1/{own}/sessions/{id}/messages?copies=true"), "messages", 0));
        }
        lists.push((sessions, "sessions", 8));
        let manifest = server.json(&format!("/api/v1/sources/{source}/manifest"));
        for stream in manifest["streams"].as_array().unwrap() {
            let name = stream["name"].as_str().unwrap();
            lists.push((format!("/api/v1/sources/{source}/streams/{name}/records"), "records", 0));
        }
    }
    let mut longest = 0;
    for (path, plural, at_least) in lists {
        let page = server.json(&with(&path, "limit=500"));
        assert_eq!(page["next_cursor"], Value::Null, "{path} is short enough for one page");
        let whole = page[plural].as_array().unwrap();
        assert!(whole.len() >= at_least, "{path}: {}", whole.len());
        longest = longest.max(whole.len());
        for limit in [1, 7] {
            let found = server.list(&with(&path, &format!("limit={limit}")), plural);
            assert_eq!(found, *whole, "{path} by {limit}");
        }
        let by_default = server.list(&path, plural);
        assert_eq!(by_default, *whole, "{path}");
    }
    assert!(longest > 7 * 3, "some lists have several pages");
}

#[test]
fn the_log_has_requests_but_no_ids_and_no_content() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "MARKERtitle"));
    let server = Server::start(&bench);
    let paths = [
        format!("{SESSIONS}?q=MARKERquery&project=/MARKERproject"),
        format!("{SESSIONS}/{ID}"),
        format!("{SESSIONS}/{ID}/messages?limit=7"),
        format!("{SESSIONS}/MARKERid"),
        "/api/v1/agent-sessions/MARKERsource/sessions".to_owned(),
        "/api/v1/sources/codex_cli/streams/MARKERstream/records/MARKERkey".to_owned(),
        "/MARKERpath/MARKERname?MARKER=1".to_owned(),
        format!("{SESSIONS}?MARKERname=1"),
        format!("/?token={}", server.token),
        "/?token=MARKERtoken".to_owned(),
    ];
    for path in &paths {
        server.get(path);
    }
    let bearer = format!("Bearer {}", server.token);
    server.request("POST", SESSIONS, &[("Authorization", &bearer)]);
    server.get_with(SESSIONS, &[("Host", "MARKERhost.example")]);
    server.get_with(SESSIONS, &[("Origin", "http://MARKERorigin"), ("User-Agent", "MARKERagent")]);
    server.get_as("MARKERbearer", SESSIONS);
    let token = server.token.clone();
    let log = server.stop().stderr;
    assert_eq!(log.lines().count(), paths.len() + 4, "{log}");
    for secret in ["MARKER", ID, &token, "limit", "?"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
    for line in [
        " GET /api/v1/codex/sessions 200 ",
        " GET /api/v1/codex/sessions/{session_id} 200 ",
        " GET /api/v1/codex/sessions/{session_id}/messages 200 ",
        " GET /api/v1/codex/sessions/{session_id} 404 ",
        " GET /api/v1/agent-sessions/{source}/sessions 404 ",
        " GET /api/v1/sources/{source}/streams/{stream}/records/{key} 404 ",
        " GET /api/v1/codex/sessions 400 ",
        " GET / 303 ",
        " GET / 401 ",
        " POST /api/v1/codex/sessions 405 ",
        " GET /api/v1/codex/sessions 403 ",
        " GET /api/v1/codex/sessions 401 ",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn pending_responses_end_before_the_server_does() {
    let bench = Bench::new();
    // More than the buffers of a connection hold: the response is pending as long as nobody reads it.
    let words = "gears and axles ".repeat(1_500_000);
    let mut lines = conversation(ID, "gears");
    lines.extend(answer(&words));
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let mut server = Server::without_refresh(&bench);
    let idle = TcpStream::connect(&server.address).unwrap();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "GET {SESSIONS}/{ID}/messages?full=true HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; 1_000];
    stream.read_exact(&mut bytes).unwrap();
    server.signal("TERM");
    let started = Instant::now();
    while TcpStream::connect(&server.address).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(60), "somebody new comes in");
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with('}'), "{}", &text[..200]);
    assert!(text.contains(&words), "the answer is whole");
    let ran = server.end("TERM");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    drop(idle);
    assert_eq!(bench.sessions().len(), 1, "the archive opens");
    assert_eq!(bench.run(&["doctor"]).code, 0);
}

#[test]
fn half_a_request_does_not_block_shutdown() {
    let bench = Bench::new();
    let mut server = Server::start(&bench);
    let mut half = TcpStream::connect(&server.address).unwrap();
    half.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n", server.address).as_bytes()).unwrap();
    assert_eq!(server.get("/healthz").status, 200);
    let started = Instant::now();
    assert_eq!(server.end("TERM").code, 0);
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
}

#[test]
fn an_idle_connection_does_not_block_shutdown() {
    let bench = Bench::new();
    let mut server = Server::start(&bench);
    let _silent = TcpStream::connect(&server.address).unwrap();
    let mut kept = TcpStream::connect(&server.address).unwrap();
    kept.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).unwrap();
    kept.read_exact(&mut [0; 20]).unwrap();
    let started = Instant::now();
    assert_eq!(server.end("TERM").code, 0);
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
    assert_eq!(Server::start(&bench).stop().code, 0, "and again at once");
}

/// A field of a file of the process in `/proc`.
#[cfg(target_os = "linux")]
fn of_process(server: &Server, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", server.process())).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_server_does_nothing() {
    let bench = all_fixtures();
    let server = Server::start(&bench);
    for path in [SESSIONS, "/api/v1/usage", "/api/v1/audit", "/healthz"] {
        assert_eq!(server.get(path).status, 200);
    }
    let ticks = || {
        let stat = of_process(&server, "stat");
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    // What the requests started ends first, whenever that is.
    let started = Instant::now();
    loop {
        let before = ticks();
        std::thread::sleep(Duration::from_secs(3));
        let used = ticks() - before;
        if used <= 1 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{used} ticks in three seconds");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_requests() {
    let bench = all_fixtures();
    let server = Server::start(&bench);
    let session = server.json(SESSIONS)["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let paths = [
        SESSIONS.to_owned(),
        format!("{SESSIONS}/{session}/messages?full=true"),
        "/api/v1/agent-sessions/sources".to_owned(),
        "/api/v1/usage?days=all".to_owned(),
        "/api/v1/sources/claude_code/streams/messages/records".to_owned(),
        "/api/v1/codex/sessions/nothing".to_owned(),
        "/healthz".to_owned(),
    ];
    let memory = || annals_testkit::memory::allocated(server.process());
    let ask = |count: usize| paths.iter().cycle().take(count).for_each(|path| drop(server.get(path)));
    ask(200);
    let before = memory();
    ask(1_800);
    let after = memory();
    assert!(after <= before + 20_000, "from {before} to {after} kB");
}

#[test]
fn up_serves_or_exits_with_no_serve() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let report = bench.json(&["up", "--no-serve"]);
    assert_eq!(report["sources"][0]["session_count"], 1, "{report}");
    let server = Server::of(bench.command(&["up", "--listen", "127.0.0.1:0", "--json"]));
    assert_eq!(server.json(SESSIONS)["total"], 1);
    let id = numbered(1);
    bench.transcript(&rollout(&id), &conversation(&id, "axles"));
    wait_until(&server, SESSIONS, |reply| reply.json()["total"] == 2, "a new file");
    let ran = server.stop();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(files_below(&bench.archive()).iter().any(|path| path.ends_with("annals.db")));
}

#[test]
fn two_servers_answer_from_one_archive() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let (first, second) = (Server::start(&bench), Server::start(&bench));
    assert_eq!(first.token, second.token);
    for round in 0..3 {
        let words = format!("words of round {round}");
        append(&path, &text_of(&prompt(&words)));
        for server in [&first, &second] {
            let messages = format!("{SESSIONS}/{ID}/messages");
            wait_until(server, &messages, |reply| reply.text().contains(&words), &words);
        }
    }
}
