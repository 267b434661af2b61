//! Search results follow the data: appended, rewritten, deleted, copied, rebuilt, and killed in the middle.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::claude;
use crate::search::{id, names, run_search, talk};
use annals_testkit::Bench;
use annals_testkit::codex::{answer, conversation, meta, rollout, text_of};
use annals_testkit::corpora::codex::{Plan, append_turns, write_codex_home};
use annals_testkit::files::{append, files_below};
use annals_testkit::server::{Server, escaped};

/// Of many kinds, so that nearly all of the index is queried.
const QUERIES: [&str; 21] = [
    "invoice",
    "customer payment",
    "harvest OR weather",
    "sensor -station",
    "\"naïve cache\"",
    "\"session record\" OR \"refund balance\"",
    "timeo*",
    "größere änderung",
    "設定",
    "缓存",
    "파일",
    "tool:shell error",
    "role:user buffer",
    "role:tool failure",
    "kind:call parse",
    "kind:result offset",
    "project:ledger schema",
    "why did the customer get a refund for the wrong invoice",
    "which sessions were about restoring the schema in October",
    "model:gpt retry",
    "since:2026-05-01 until:2026-06-01 restore",
];

fn answers(bench: &Bench) -> Vec<Value> {
    let answers: Vec<Value> = QUERIES.iter().map(|query| run_search(bench, query, &[])).collect();
    let some = answers.iter().filter(|answer| !names(answer).is_empty()).count();
    assert!(some > 12, "only {some} questions have answers");
    answers
}

/// Equal except for the order of ties, and for scores that decay a little over time.
#[track_caller]
fn assert_same_answers(left: &[Value], right: &[Value]) {
    for (left, right) in left.iter().zip(right) {
        let query = &left["query"];
        for field in ["query", "mode", "total", "complete"] {
            assert_eq!(left[field], right[field], "{query}");
        }
        let [left, right] = [left, right].map(|answer| {
            let mut results = answer["results"].as_array().unwrap().clone();
            results.sort_by_key(|result| (result["session_id"].to_string(), result["title"].to_string()));
            results
        });
        assert_eq!(left.len(), right.len(), "{query}");
        for (mut left, mut right) in left.into_iter().zip(right) {
            let [mut ours, mut theirs] = [&mut left, &mut right].map(|one| one["passages"].take());
            let [ours, theirs] = [&mut ours, &mut theirs].map(|some| some.as_array_mut().unwrap());
            assert_eq!(ours.len(), theirs.len(), "{query}: {left:#}");
            let last = ours.last().map_or(0.0, |passage| passage["score"].as_f64().unwrap());
            // Among ties with the last result shown, others may be shown.
            let sure = ours.iter().filter(|passage| !near(passage["score"].as_f64().unwrap(), last)).count();
            assert_near(&mut left, &mut right);
            assert_eq!(left, right, "{query}");
            for passages in [&mut *ours, &mut *theirs] {
                passages.truncate(sure);
                passages
                    .sort_by_key(|passage| (passage["message_id"].to_string(), passage["kind"].to_string()));
            }
            for (mine, other) in ours.iter_mut().zip(theirs) {
                assert_near(mine, other);
                assert_eq!(mine, other, "{query}");
            }
        }
    }
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() < 0.001 * left.abs().max(1.0)
}

/// Compares the scores, and removes them.
#[track_caller]
fn assert_near(left: &mut Value, right: &mut Value) {
    let [one, other] = [left, right].map(|value| value["score"].take().as_f64().unwrap());
    assert!(near(one, other), "{one} and {other}");
}

fn corpus(seed: u64, bytes: u64) -> Bench {
    let bench = Bench::new();
    write_codex_home(&bench.codex(), &Plan { seed, bytes, files: 40 }).unwrap();
    bench
}

#[test]
fn a_message_is_found_as_soon_as_it_is_written() {
    let bench = Bench::new();
    let path = talk(&bench, 1, &["the first words"]);
    let server = Server::of(bench.command(&["up", "--listen", "127.0.0.1:0", "--json"]));
    let found = |word: &str| names(&server.json(&format!("/api/v1/search?q={}", escaped(word))));
    assert_eq!(found("first"), [id(1)]);
    for word in ["aardvark", "buzzard", "chaffinch", "dormouse", "earwig"] {
        assert!(found(word).is_empty(), "{word}");
        append(&path, &text_of(&answer(&format!("now a {word} comes"))));
        wait_for(word, || found(word) == [id(1)]);
    }
    talk(&bench, 2, &["a whole new ferret"]);
    wait_for("ferret", || found("ferret") == [id(2)]);
    // Without requests: the server refreshes by itself, and another process sees it.
    for word in ["gopher", "heron", "ibis"] {
        append(&path, &text_of(&answer(&format!("now a {word} comes"))));
        wait_for(word, || !names(&run_search(&bench, word, &[])).is_empty());
    }
}

/// Benches measure how long it takes; the limit only ends a wait for what never comes.
#[track_caller]
fn wait_for(word: &str, mut is_found: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_found() {
        assert!(start.elapsed() < Duration::from_secs(120), "{word} is not found");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_rebuilt_index_gives_the_same_answers() {
    let bench = corpus(1, 3_000_000);
    bench.sync();
    for file in files_below(&bench.codex().join("sessions")).iter().step_by(3) {
        append_turns(file, 7, 20_000).unwrap();
    }
    bench.sync();
    let before = answers(&bench);
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_same_answers(&before, &answers(&bench));
}

/// Everything that an answer contains, in order, except what decays with time.
fn exact_answers(bench: &Bench) -> Vec<Value> {
    let mut answers = answers(bench);
    for answer in &mut answers {
        for result in answer["results"].as_array_mut().unwrap() {
            result["score"].take();
            for passage in result["passages"].as_array_mut().unwrap() {
                passage["score"].take();
            }
        }
    }
    answers
}

/// Files arrive in several orders and pieces, some are rewritten in between, and one archive is rebuilt: all of them
/// give the same answers in the same order.
#[test]
fn answers_do_not_depend_on_the_order_of_syncs() {
    let whole = corpus(3, 1_500_000);
    let parent = conversation(&id(1), "the customer refund of the parent");
    whole.transcript(&rollout(&id(1)), &parent);
    fork(&whole, 2, 1, &parent, "the invoice of the fork");
    for number in 3..8 {
        talk(&whole, number, &["why did the customer get the wrong invoice", "a schema to restore"]);
    }
    whole.sync();
    let expected = exact_answers(&whole);
    let files = files_below(&whole.codex());
    for order in 0..3usize {
        let bench = Bench::new();
        let mut files = files.clone();
        match order {
            0 => files.reverse(),
            1 => files.sort_by_key(|file| shuffled_place(file)),
            _ => {}
        }
        for (number, part) in files.chunks(files.len() / 4 + 1).enumerate() {
            for file in part {
                let to = bench.codex().join(file.strip_prefix(whole.codex()).unwrap());
                std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                let bytes = std::fs::read(file).unwrap();
                let cut = bytes
                    .iter()
                    .take(bytes.len() / 2)
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |at| at + 1);
                // Half of a file first, or another file in its place.
                match (number + order) % 3 {
                    0 => std::fs::write(&to, &bytes[..cut]).unwrap(),
                    1 => std::fs::write(&to, text_of(&conversation(&id(99), "another invoice"))).unwrap(),
                    _ => {}
                }
                bench.sync();
                std::fs::write(&to, &bytes).unwrap();
            }
            bench.sync();
        }
        if order == 2 {
            assert_eq!(bench.run(&["rebuild"]).code, 0);
        }
        for (ours, theirs) in exact_answers(&bench).iter().zip(&expected) {
            assert_eq!(ours, theirs, "order {order}");
        }
    }
}

/// An order that nobody chose, the same in every run.
fn shuffled_place(file: &std::path::Path) -> u64 {
    let name = file.file_name().unwrap().to_string_lossy();
    name.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte))
}

#[test]
fn a_rewritten_transcript_is_found_by_its_new_text_only() {
    let bench = Bench::new();
    talk(&bench, 1, &["the old walrus", "the old seal"]);
    talk(&bench, 2, &["a walrus that stays"]);
    bench.sync();
    assert_eq!(names(&run_search(&bench, "seal", &[])), [id(1)]);
    talk(&bench, 1, &["the young otter"]);
    bench.sync();
    for rebuilt in [false, true] {
        if rebuilt {
            assert_eq!(bench.run(&["rebuild"]).code, 0);
        }
        for (query, expected) in [("seal", vec![]), ("walrus", vec![id(2)]), ("otter", vec![id(1)])] {
            assert_eq!(names(&run_search(&bench, query, &[])), expected, "{query}, rebuilt: {rebuilt}");
        }
        assert!(names(&run_search(&bench, "\"old walrus\"", &[])).is_empty());
    }
}

#[test]
fn a_deleted_skill_is_not_found_and_a_deleted_transcript_still_is() {
    let bench = Bench::new();
    let path = talk(&bench, 1, &["a lynx in a transcript"]);
    let claude = claude::write(
        &bench,
        claude::FOLDER,
        claude::ONE,
        &text_of(&[claude::prompt_row(claude::ONE, 1, "a lynx of another client")]),
    );
    for home in [bench.codex(), bench.claude()] {
        std::fs::create_dir_all(home.join("skills/tame")).unwrap();
        std::fs::write(
            home.join("skills/tame/SKILL.md"),
            "---\nname: tame\ndescription: Tames a lynx\n---\nCalmly.\n",
        )
        .unwrap();
    }
    bench.sync();
    let found = |query: &str| {
        let mut found = names(&run_search(&bench, query, &[]));
        found.sort();
        found
    };
    let sessions = [id(1), claude::ONE.to_owned()];
    assert_eq!(found("lynx").len(), 4);
    assert_eq!(found("lynx kind:library").len(), 2);
    for home in [bench.codex(), bench.claude()] {
        std::fs::remove_dir_all(home.join("skills")).unwrap();
    }
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(claude).unwrap();
    bench.sync();
    for rebuilt in [false, true] {
        if rebuilt {
            assert_eq!(bench.run(&["rebuild"]).code, 0);
        }
        assert_eq!(found("lynx"), sessions, "rebuilt: {rebuilt}");
        assert!(found("tame").is_empty(), "rebuilt: {rebuilt}");
        assert!(bench.sessions().iter().all(|session| session["source_gone"] == true));
    }
}

#[test]
fn a_changed_skill_is_found_by_its_new_text_only() {
    let bench = Bench::new();
    let path = bench.codex().join("skills/tame/SKILL.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let write = |animal: &str| {
        let text = format!("---\nname: tame\ndescription: Tames a {animal}\n---\nCalmly.\n");
        std::fs::write(&path, text).unwrap();
        bench.sync();
    };
    let found = |query: &str| names(&run_search(&bench, query, &[])).len();
    write("lynx");
    assert_eq!((found("lynx"), found("puffin"), found("tame")), (1, 0, 1));
    write("puffin");
    assert_eq!((found("lynx"), found("puffin"), found("tame")), (0, 1, 1));
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!((found("lynx"), found("puffin"), found("tame")), (0, 1, 1));
}

/// Its own first line, the other's lines with the time of copying, its own message.
fn fork(bench: &Bench, number: usize, of: usize, copied: &[String], own: &str) {
    let own_meta = meta(&id(number)).replace(r#""cwd""#, &format!(r#""forked_from_id":"{}","cwd""#, id(of)));
    let mut lines = vec![own_meta.replace("2026-11-15T10:0", "2026-11-15T11:0")];
    lines.extend(copied.iter().map(|line| {
        let rest = &line[line.find(r#"","type""#).unwrap()..];
        format!(r#"{{"timestamp":"2026-11-15T11:00:00.007Z{rest}"#)
    }));
    lines.extend(answer(own));
    bench.transcript(&rollout(&id(number)), &lines);
}

#[test]
fn copied_messages_are_found_once_in_their_original_session() {
    for fork_first in [false, true] {
        let bench = Bench::new();
        let mut parent = conversation(&id(1), "the wombat of the parent");
        parent.extend(answer("the numbat of the parent"));
        let write = |parent: &[String]| drop(bench.transcript(&rollout(&id(1)), parent));
        if !fork_first {
            write(&parent);
            bench.sync();
        }
        fork(&bench, 2, 1, &parent, "the quokka of the fork");
        bench.sync();
        if fork_first {
            assert_eq!(names(&run_search(&bench, "numbat", &[])), [id(2)], "nobody else has it");
            write(&parent);
            bench.sync();
        }
        let found = |query: &str| names(&run_search(&bench, query, &["--sort", "recent"]));
        assert_eq!(found("numbat"), [id(1)], "{fork_first}");
        assert_eq!(found("\"wombat of the parent\""), [id(1)], "{fork_first}");
        assert_eq!(found("quokka"), [id(2)], "{fork_first}");
        write(&conversation(&id(1), "a new life"));
        bench.sync();
        for rebuilt in [false, true] {
            if rebuilt {
                assert_eq!(bench.run(&["rebuild"]).code, 0);
            }
            assert_eq!(found("numbat"), [id(2)], "{fork_first}, rebuilt: {rebuilt}");
            assert_eq!(found("wombat"), [id(2)], "{fork_first}, rebuilt: {rebuilt}");
            assert_eq!(found("life"), [id(1)], "{fork_first}, rebuilt: {rebuilt}");
        }
    }
}

#[test]
fn many_small_appends_leave_few_segments_and_the_same_answers() {
    let bench = corpus(2, 600_000);
    bench.sync();
    let files = files_below(&bench.codex().join("sessions"));
    for number in 0..100 {
        append_turns(&files[number % files.len()], number as u64, 1_500).unwrap();
        assert_eq!(bench.run(&["sync"]).code, 0);
    }
    let audit = bench.run(&["audit", "--json"]);
    let audit: Value = serde_json::from_str(&audit.stdout).unwrap();
    let segments = audit["index"]["segments"].as_i64().unwrap();
    assert!((1..=40).contains(&segments), "{segments} segments");
    let fresh = Bench::with_home("codex_cli", &bench.codex());
    fresh.sync();
    assert_same_answers(&answers(&bench), &answers(&fresh));
}

#[test]
fn a_killed_sync_leaves_a_consistent_index() {
    let bench = corpus(3, 12_000_000);
    let calm = Bench::with_home("codex_cli", &bench.codex());
    let start = Instant::now();
    calm.sync();
    let mut whole = start.elapsed();
    let mut hits = 0;
    for part in [1, 2, 3, 4, 5, 6, 7].into_iter().cycle().take(35) {
        let mut child = bench.command(&["sync"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * part / 10);
        match child.try_wait().unwrap() {
            None => hits += 1,
            // The machine is faster than before: kill sooner next time.
            Some(_) => whole /= 2,
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Whatever is there is consistent.
        assert!(bench.run(&["search", "invoice"]).code <= 2);
        if hits == 4 {
            break;
        }
    }
    assert!(hits >= 2, "only {hits} kills hit");
    bench.sync();
    assert_same_answers(&answers(&calm), &answers(&bench));
}
