//! The list of secrets: each scan reads only what is new, and has what a scan of everything would have.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::numbered;
use annals_testkit::Bench;
use annals_testkit::codex::{conversation, prompt, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::server::Server;

const FIRST: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const SECOND: &str = "ghp_zyxwvutsrqponmlkjihgfedcba9876543210";

/// The answer of the scan that knows this many sessions and secrets.
fn scanned(server: &Server, sessions: u64, secrets: usize) -> Value {
    let started = Instant::now();
    loop {
        let answer = server.json("/api/v1/secrets");
        let found = answer["secrets"].as_array().unwrap().len();
        if answer["status"] == "done" && answer["session_count"] == sessions && found == secrets {
            return answer;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_scan_reads_only_what_is_new() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(&numbered(1)), &conversation(&numbered(1), FIRST));
    for number in 2..=4 {
        bench.transcript(&rollout(&numbered(number)), &conversation(&numbered(number), "nothing"));
    }
    let rules = bench.codex().join("AGENTS.md");
    std::fs::write(&rules, format!("Use {FIRST}.\n")).unwrap();
    bench.sync();
    let server = Server::start(&bench);
    let first = scanned(&server, 4, 1);
    assert_eq!(first["sessions_read"], 4, "{first}");
    // A new session, and new lines in a known one.
    bench.transcript(&rollout(&numbered(5)), &conversation(&numbered(5), FIRST));
    append(&path, &text_of(&prompt(&format!("also {SECOND}"))));
    let second = scanned(&server, 5, 2);
    assert!(second["sessions_read"].as_u64().unwrap() <= 2, "{second}");
    std::fs::write(&rules, format!("Use {FIRST}. Or {SECOND}.\n")).unwrap();
    bench.sync();
    let (mut third, started) = (second, Instant::now());
    let sum = |answer: &Value| -> i64 {
        answer["secrets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|secret| secret["occurrences"].as_i64().unwrap())
            .sum()
    };
    let whole = bench.json(&["secrets"]);
    while sum(&third) != sum(&whole) {
        assert!(started.elapsed() < Duration::from_secs(60), "{third} {whole}");
        third = scanned(&server, 5, 2);
    }
    assert_eq!(third["secrets"], whole["secrets"], "as a scan of everything");
    assert!(!third.to_string().contains("0123456789abcdef"), "{third}");
    // After a rebuild, everything is new.
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    append(&path, &text_of(&prompt("more")));
    let started = Instant::now();
    while server.json("/api/v1/secrets")["sessions_read"] != 5 {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(scanned(&server, 5, 2)["secrets"], bench.json(&["secrets"])["secrets"]);
}

#[test]
fn secrets_are_grouped_by_the_session_they_appear_in() {
    let bench = Bench::new();
    let mut lines = conversation(&numbered(1), FIRST);
    lines.extend(prompt(&format!("also {SECOND}")));
    bench.transcript(&rollout(&numbered(1)), &lines);
    bench.transcript(&rollout(&numbered(2)), &conversation(&numbered(2), SECOND));
    bench.transcript(&rollout(&numbered(3)), &conversation(&numbered(3), "nothing"));
    bench.sync();
    let server = Server::without_refresh(&bench);
    let marks: Vec<String> = scanned(&server, 3, 2)["secrets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["mark"].as_str().unwrap().to_owned())
        .collect();
    let page = server.page("/secrets?by=session").text();
    let groups: Vec<&str> = page.split("<li class=\"group\"").skip(1).collect();
    assert_eq!(groups.len(), 2, "{page}");
    let of = |number: usize| *groups.iter().find(|group| group.contains(&numbered(number))).unwrap();
    let count = |group: &str| marks.iter().filter(|mark| group.contains(mark.as_str())).count();
    assert_eq!((count(of(1)), count(of(2))), (2, 1), "{page}");
    assert!(of(2).contains("revoke at <code>https://github.com/settings/tokens"), "{}", of(2));
    assert!(!page.contains(FIRST) && !page.contains(SECOND));
    assert_eq!(server.page("/secrets?by=colour").status, 400);
}
