//! `annals up` on a machine that has history and no archive yet: it answers at once and captures behind.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use annals_testkit::Bench;
use annals_testkit::codex::{conversation, rollout};
use annals_testkit::server::Server;
use rusqlite::Connection;

use super::{SESSIONS, numbered, wait_until};

#[test]
fn up_answers_before_it_has_captured() {
    let bench = Bench::new();
    bench.transcript(&rollout(&numbered(1)), &conversation(&numbered(1), "gears"));
    std::fs::create_dir_all(bench.archive()).unwrap();
    let lock = File::create(bench.archive().join("annals.lock")).unwrap();
    lock.lock().unwrap();
    let server = Server::of(bench.command(&["up", "--listen", "127.0.0.1:0", "--json"]));
    assert_eq!(server.json(SESSIONS)["total"], 0);
    let status = server.json("/api/v1/status");
    assert!(status["waiting_for"].is_string() && status["sync"].is_null(), "{status}");
    assert!(server.get("/").text().contains("No sessions yet"));
    drop(lock);
    wait_until(&server, SESSIONS, |reply| reply.json()["total"] == 1, "the end of the other process");
    let found = server.json("/api/v1/search?q=gears");
    assert!(found["total"] == 1 && found["indexed_percent"].is_null(), "{found}");
}

/// What was written last is asked for first.
#[test]
fn the_newest_files_are_captured_first() {
    let bench = Bench::new();
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
    // Neither the names nor the order of creation tell the age.
    let day_of = |number: u64| number * 7 % 20;
    for number in 0..20 {
        let id = numbered(number as usize);
        let path = bench.transcript(&rollout(&id), &conversation(&id, "gears"));
        let times = FileTimes::new().set_modified(start + Duration::from_secs(day_of(number) * 86_400));
        File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }
    bench.sync();
    let archive = Connection::open(bench.archive().join("annals.db")).unwrap();
    let mut statement =
        archive.prepare("select path from file where path like '%.jsonl' order by id").unwrap();
    let paths: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let ages: Vec<u64> = paths
        .iter()
        .map(|path| (0..20).find(|number| path.ends_with(&rollout(&numbered(*number as usize)))).unwrap())
        .map(day_of)
        .collect();
    assert_eq!(ages.len(), 20);
    // Several threads capture, so that some change places; of 190 pairs, half would be wrong by chance.
    let wrong = (0..20).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let wrong = wrong.filter(|(earlier, later)| ages[*earlier] < ages[*later]).count();
    assert!(wrong < 60, "{wrong} pairs of {ages:?}");
}
