//! History that is in several transcripts is counted once, in whatever order the files arrive.

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::checks::{assert_like_fresh, assert_rebuilds, assert_up_to_date};
use annals_testkit::codex::{
    ID, answer, call, conversation, line, meta, output, prompt, rollout, text_of, tokens,
};
use annals_testkit::files::append;

const PARENT: &str = "0199a1b2-0000-7000-8000-00000000000a";
const FORK: &str = "0199a1b2-0000-7000-8000-00000000000b";
const SECOND: &str = "0199a1b2-0000-7000-8000-00000000000c";

/// Two prompts, an answer, a call and fifteen tokens.
fn parent() -> Vec<String> {
    let mut lines = vec![meta(PARENT)];
    lines.extend(prompt("first words"));
    lines.extend([call(3, "one"), output(4, "one"), tokens(5, 10, 10)]);
    lines.extend(answer("first answer"));
    lines.push(tokens(6, 14, 4));
    lines.extend(prompt("second words"));
    lines
}

/// Its own first line, the other's lines with the time of copying, its own lines.
fn fork_of(id: &str, other: &str, copied: &[String], own: &[String]) -> Vec<String> {
    let own_meta = meta(id).replace(r#""cwd""#, &format!(r#""forked_from_id":"{other}","cwd""#));
    let mut lines = vec![own_meta.replace("2026-11-15T10:0", "2026-11-15T11:0")];
    lines.extend(copied.iter().map(|line| {
        let rest = &line[line.find(r#"","type""#).unwrap()..];
        format!(r#"{{"timestamp":"2026-11-15T11:00:00.007Z{rest}"#)
    }));
    lines.extend(own.iter().cloned());
    lines
}

/// One prompt, one answer, one call and seven tokens.
fn fork() -> Vec<String> {
    let mut own: Vec<String> = prompt("words of the fork").into();
    own.extend([call(120, "two"), output(121, "two"), tokens(122, 21, 7)]);
    own.extend(answer("answer of the fork"));
    fork_of(FORK, PARENT, &parent(), &own)
}

fn second_fork() -> Vec<String> {
    let mut own: Vec<String> = prompt("words of the second").into();
    own.extend([call(180, "three"), output(181, "three"), tokens(182, 30, 9)]);
    fork_of(SECOND, FORK, &fork(), &own)
}

/// Prompts, answers, calls and input tokens of a session.
fn counts(bench: &Bench, id: &str) -> [i64; 4] {
    let sessions = bench.sessions();
    let session: &Value = sessions.iter().find(|session| session["session_id"] == id).unwrap();
    [
        &session["user_message_count"],
        &session["assistant_message_count"],
        &session["tool_call_count"],
        &session["tokens"]["input"],
    ]
    .map(|count| count.as_i64().unwrap())
}

const PARENT_COUNTS: [i64; 4] = [2, 1, 1, 14];
const FORK_COUNTS: [i64; 4] = [1, 1, 1, 7];
const SECOND_COUNTS: [i64; 4] = [1, 0, 1, 9];

fn write(bench: &Bench, id: &str, lines: &[String]) {
    bench.transcript(&rollout(id), lines);
}

#[test]
fn copies_count_in_the_parent_in_every_order() {
    for orders in [&[&[PARENT, FORK][..]][..], &[&[PARENT], &[FORK]], &[&[FORK], &[PARENT]]] {
        let bench = Bench::new();
        for run in orders {
            for id in *run {
                write(&bench, id, &if *id == PARENT { parent() } else { fork() });
            }
            bench.sync();
        }
        assert_eq!(counts(&bench, PARENT), PARENT_COUNTS, "{orders:?}");
        assert_eq!(counts(&bench, FORK), FORK_COUNTS, "{orders:?}");
        assert_like_fresh(&bench);
        assert_up_to_date(&bench);
        assert_rebuilds(&bench);
    }
}

#[test]
fn copies_count_in_the_fork_until_the_parent_comes() {
    let bench = Bench::new();
    write(&bench, FORK, &fork());
    bench.sync();
    assert_eq!(counts(&bench, FORK), [3, 2, 2, 21], "everything, as nobody else has it");
    assert_rebuilds(&bench);
    // The parent arrives in two parts: counts move with each.
    let parent = parent();
    write(&bench, PARENT, &parent[..4]);
    bench.sync();
    assert_eq!(counts(&bench, PARENT), [1, 0, 1, 0]);
    assert_eq!(counts(&bench, FORK), [2, 2, 1, 21]);
    let path = bench.codex().join("sessions/2026/11/15").join(rollout(PARENT));
    append(&path, &text_of(&parent[4..]));
    bench.sync();
    assert_eq!(counts(&bench, PARENT), PARENT_COUNTS);
    assert_eq!(counts(&bench, FORK), FORK_COUNTS);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
    // The parent is rewritten as something else: its old messages belong to the fork again.
    write(&bench, PARENT, &conversation(PARENT, "a new life"));
    bench.sync();
    assert_eq!(counts(&bench, PARENT), [1, 1, 0, 0]);
    assert_eq!(counts(&bench, FORK), [3, 2, 2, 21]);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_fork_of_a_fork_counts_each_line_once() {
    let files = [(PARENT, parent()), (FORK, fork()), (SECOND, second_fork())];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for one_run in [true, false] {
            let bench = Bench::new();
            for at in order {
                write(&bench, files[at].0, &files[at].1);
                if !one_run {
                    bench.sync();
                }
            }
            bench.sync();
            let all = [counts(&bench, PARENT), counts(&bench, FORK), counts(&bench, SECOND)];
            assert_eq!(all, [PARENT_COUNTS, FORK_COUNTS, SECOND_COUNTS], "{order:?} {one_run}");
            assert_like_fresh(&bench);
            assert_rebuilds(&bench);
        }
    }
}

#[test]
fn without_the_middle_the_last_fork_has_its_messages() {
    let bench = Bench::new();
    write(&bench, PARENT, &parent());
    write(&bench, SECOND, &second_fork());
    bench.sync();
    assert_eq!(counts(&bench, PARENT), PARENT_COUNTS);
    assert_eq!(counts(&bench, SECOND), [2, 1, 2, 16]);
    write(&bench, FORK, &fork());
    bench.sync();
    let all = [counts(&bench, PARENT), counts(&bench, FORK), counts(&bench, SECOND)];
    assert_eq!(all, [PARENT_COUNTS, FORK_COUNTS, SECOND_COUNTS]);
    assert_rebuilds(&bench);
}

/// A parent that contains its own first line twice is copied with both.
#[test]
fn a_parent_that_repeats_its_first_line_counts_once() {
    for parent_first in [true, false] {
        let bench = Bench::new();
        let mut parent = parent();
        parent.insert(3, meta(PARENT));
        let fork = fork_of(FORK, PARENT, &parent, &prompt("words of the fork"));
        let files = [(PARENT, parent), (FORK, fork)];
        for at in if parent_first { [0, 1] } else { [1, 0] } {
            write(&bench, files[at].0, &files[at].1);
            bench.sync();
        }
        assert_eq!(counts(&bench, PARENT), PARENT_COUNTS);
        assert_eq!(counts(&bench, FORK), [1, 0, 0, 0]);
        assert_like_fresh(&bench);
        assert_rebuilds(&bench);
    }
}

#[test]
fn the_copied_lines_may_be_cut_anywhere() {
    let whole = text_of(&fork());
    let bench = Bench::new();
    write(&bench, PARENT, &parent());
    let path = bench.transcript(&rollout(FORK), &[]);
    let mut at = 0;
    for cut in (0..whole.len()).step_by(whole.len() / 40).chain([whole.len()]) {
        append(&path, &whole[at..cut]);
        at = cut;
        bench.sync();
    }
    assert_eq!(counts(&bench, PARENT), PARENT_COUNTS);
    assert_eq!(counts(&bench, FORK), FORK_COUNTS);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_sub_agent_knows_its_parent() {
    let bench = Bench::new();
    let mut lines = conversation(FORK, "task of the agent");
    lines[0] = lines[0].replace(
        r#""source":"cli""#,
        &format!(
            r#""source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{PARENT}","depth":1,"agent_nickname":"Ada"}}}}}}"#
        ),
    );
    write(&bench, FORK, &lines);
    bench.sync();
    let agent = |bench: &Bench| bench.sessions().into_iter().find(|one| one["session_id"] == FORK).unwrap();
    assert_eq!(agent(&bench)["parent_session_id"], PARENT);
    assert_eq!(agent(&bench)["parent_kind"], "sub_agent");
    write(&bench, PARENT, &parent());
    bench.sync();
    assert_eq!(agent(&bench)["parent_session_id"], PARENT);
    assert_eq!(counts(&bench, PARENT), PARENT_COUNTS);
    assert_eq!(counts(&bench, FORK), [1, 1, 0, 0]);
    let listed = bench.json(&["sessions"]);
    assert_eq!(listed["total"], 1, "sub-agents are not in the plain list: {listed}");
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

fn calls(bench: &Bench) -> Vec<Value> {
    let ran = bench.run(&["records", "codex_cli/function_calls", "--full"]);
    ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone()).collect()
}

#[test]
fn an_output_finds_its_call_of_an_earlier_run() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "calls");
    lines.push(call(10, "one"));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    assert!(calls(&bench)[0]["output"].is_null());
    assert_rebuilds(&bench);
    append(&path, &text_of(&[line(11, "event_msg", r#"{"type":"task_started"}"#), output(12, "one")]));
    bench.sync();
    let calls = calls(&bench);
    assert_eq!(calls.len(), 1);
    assert!(calls[0]["output"].as_str().unwrap().contains("out of one"), "{calls:?}");
    assert_eq!(calls[0]["exit_code"], 0);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn many_calls_may_be_open_at_once() {
    let bench = Bench::new();
    let names: Vec<String> = (0..300).map(|number| format!("call-{number}")).collect();
    let mut lines = conversation(ID, "many calls");
    lines.extend(names.iter().map(|name| call(10, name)));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    // The first is answered last.
    let mut outputs: Vec<String> = names.iter().map(|name| output(20, name)).collect();
    outputs.reverse();
    for part in outputs.chunks(70) {
        append(&path, &text_of(part));
        bench.sync();
    }
    let calls = calls(&bench);
    assert_eq!(calls.len(), 300);
    for call in &calls {
        let expected = format!("out of {}", call["call_id"].as_str().unwrap());
        assert!(call["output"].as_str().is_some_and(|output| output.contains(&expected)), "{call}");
    }
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn many_prompts_may_wait_for_their_events() {
    let bench = Bench::new();
    let pairs: Vec<[String; 2]> = (0..60).map(|number| prompt(&format!("prompt {number}"))).collect();
    let mut lines = vec![meta(ID)];
    lines.extend(pairs.iter().map(|pair| pair[0].clone()));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let events: Vec<String> = pairs.iter().rev().map(|pair| pair[1].clone()).collect();
    for part in events.chunks(13) {
        append(&path, &text_of(part));
        bench.sync();
    }
    assert_eq!(counts(&bench, ID), [60, 0, 0, 0]);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}
