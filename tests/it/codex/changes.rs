//! Transcripts that grow, shrink, break and are rewritten between runs: rows always follow from the bytes.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::checks::{
    assert_accounts_add_up, assert_like_fresh, assert_rebuilds, assert_restores, assert_up_to_date,
};
use annals_testkit::codex::{ID, answer, busy_transcript, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::append;

/// Lines longer than a segment, in several pieces: nothing is read from the wrong offset.
#[test]
fn a_long_line_may_come_in_pieces() {
    for before in [0, 1, 3] {
        let bench = Bench::new();
        let long = "long words ".repeat(60_000);
        let mut lines =
            vec![meta(ID).replace("/home/ada/engine", &format!("/home/{}", "deep/".repeat(100_000)))];
        lines.extend(prompt("short"));
        lines.extend(prompt(&long));
        lines.extend(answer("after the long one"));
        let whole = text_of(&lines[if before == 0 { 0..1 } else { 0..lines.len() }]);
        let start: usize = lines[..before].iter().map(|line| line.len() + 1).sum();
        let path = bench.transcript(&rollout(ID), &[]);
        let mut at = 0;
        for cut in
            [start + 10, start + 262_144, start + 262_145, start + 400_000, whole.len() - 1, whole.len()]
        {
            let cut = cut.min(whole.len());
            append(&path, &whole[at..cut]);
            at = cut;
            bench.sync();
        }
        assert_like_fresh(&bench);
        assert_restores(&bench, &bench.codex());
        assert_rebuilds(&bench);
    }
}

#[test]
fn a_file_may_grow_while_it_is_read() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &[meta(ID)]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let (path, stop) = (&path, &stop);
        threads.spawn(move || {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) && number < 20_000 {
                let lines_added =
                    [prompt(&format!("prompt {number}")), answer(&format!("answer {number}"))].concat();
                let text = text_of(&lines_added);
                // In two writes, so that a run may see half a line.
                let (first, second) = text.split_at(text.len() / 3);
                file.write_all(first.as_bytes()).unwrap();
                file.write_all(second.as_bytes()).unwrap();
                number += 1;
            }
        });
        for _ in 0..12 {
            bench.sync();
        }
        stop.store(true, Ordering::Relaxed);
    });
    bench.sync();
    assert!(bench.sessions()[0]["message_count"].as_i64().unwrap() > 10);
    assert_eq!(bench.accounts()[0]["versions"], 1, "growth is no rewrite");
    assert_like_fresh(&bench);
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

/// Six prompts, and the number of bytes of the first `count` of them, including the first line.
fn six_prompts() -> (String, impl Fn(usize) -> usize) {
    let mut lines = vec![meta(ID)];
    (0..6).for_each(|number| lines.extend(prompt(&format!("prompt {number}"))));
    let lengths: Vec<usize> = lines.iter().map(|line| line.len() + 1).collect();
    (text_of(&lines), move |count: usize| lengths[..=2 * count].iter().sum())
}

fn message_count(bench: &Bench) -> i64 {
    let sessions = bench.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions[0]["message_count"].as_i64().unwrap()
}

#[test]
fn a_file_cut_short_keeps_its_rows_and_grows_again() {
    let bench = Bench::new();
    let (whole, length_of) = six_prompts();
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(&path, &whole).unwrap();
    bench.sync();
    let before = bench.run(&["show", ID, "--json"]).stdout;
    for kept in [length_of(3), length_of(3) - 20, length_of(1)] {
        std::fs::write(&path, &whole[..kept]).unwrap();
        assert_eq!(bench.sync()["captured_bytes"], kept);
        assert_eq!(bench.run(&["show", ID, "--json"]).stdout, before, "rows stay");
        assert_restores(&bench, &bench.codex());
        assert_up_to_date(&bench);
        assert_rebuilds(&bench);
    }
    append(&path, &whole[length_of(1)..length_of(4)]);
    bench.sync();
    assert_eq!(bench.run(&["show", ID, "--json"]).stdout, before, "a part of it came back: nothing new");
    append(&path, &whole[length_of(4)..]);
    bench.sync();
    assert_eq!(bench.run(&["show", ID, "--json"]).stdout, before);
    assert_like_fresh(&bench);
    append(&path, &text_of(&prompt("one more")));
    bench.sync();
    assert_eq!(message_count(&bench), 7);
    assert_like_fresh(&bench);
    append(&path, &text_of(&prompt("and another")));
    assert_eq!(bench.sync()["captured_bytes"], text_of(&prompt("and another")).len());
    assert_like_fresh(&bench);
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_file_cut_short_may_grow_differently() {
    let bench = Bench::new();
    let (whole, length_of) = six_prompts();
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(&path, &whole).unwrap();
    bench.sync();
    std::fs::write(&path, &whole[..length_of(2)]).unwrap();
    bench.sync();
    append(&path, &text_of(&prompt("another way")));
    bench.sync();
    assert_eq!(message_count(&bench), 3);
    assert_like_fresh(&bench);
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_file_may_be_emptied() {
    let bench = Bench::new();
    let (whole, _) = six_prompts();
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(&path, &whole).unwrap();
    bench.sync();
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    bench.sync();
    assert_eq!(message_count(&bench), 6, "rows stay");
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    append(&path, &text_of(&conversation(ID, "new start")));
    bench.sync();
    assert_eq!(message_count(&bench), 2);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_rewrite_of_the_same_size_and_time_is_noticed() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "aaaa"));
    bench.sync();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let text = text_of(&conversation(ID, "bbbb"));
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    drop(file);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), modified);
    bench.sync();
    assert_eq!(bench.sessions()[0]["title"], "bbbb");
    assert_eq!(bench.accounts()[0]["versions"], 2);
    assert_like_fresh(&bench);
    assert_restores(&bench, &bench.codex());
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_rewrite_that_is_larger_is_no_append() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "old words"));
    bench.sync();
    let mut lines = conversation(ID, "new words");
    lines.extend(prompt("and more of them"));
    std::fs::write(&path, text_of(&lines)).unwrap();
    bench.sync();
    assert_eq!(message_count(&bench), 3);
    assert_eq!(bench.sessions()[0]["title"], "new words");
    assert_like_fresh(&bench);
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
}

/// Only the middle of a long file differs: a new file under the old name is compared as a whole.
#[test]
fn a_long_file_replaced_by_another_that_begins_alike_is_no_append() {
    let bench = Bench::new();
    let mut lines = vec![meta(ID)];
    (0..3_000).for_each(|number| lines.extend(prompt(&format!("prompt {number:04}"))));
    let path = bench.transcript(&rollout(ID), &lines);
    assert!(std::fs::metadata(&path).unwrap().len() > 3 * 262_144);
    bench.sync();
    let text = text_of(&lines).replace("prompt 1500", "changed 150") + &text_of(&prompt("at the end"));
    let other = path.with_extension("new");
    std::fs::write(&other, text).unwrap();
    std::fs::rename(&other, &path).unwrap();
    bench.sync();
    assert_restores(&bench, &bench.codex());
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn half_a_line_waits_for_its_rest() {
    let bench = Bench::new();
    let whole = text_of(&conversation(ID, "halves"));
    let half = whole.len() - 90;
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(&path, &whole[..half]).unwrap();
    bench.sync();
    let account = &bench.accounts()[0];
    assert_eq!(account["malformed"]["lines"], 0, "{account}");
    assert_eq!(account["skipped"]["lines"], 1, "{account}");
    assert_accounts_add_up(&bench, &bench.codex());
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
    append(&path, &whole[half..]);
    bench.sync();
    assert_eq!(message_count(&bench), 2);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_complete_line_without_newline_is_read_at_once_and_once() {
    let bench = Bench::new();
    let whole = text_of(&conversation(ID, "at once"));
    let path = bench.transcript(&rollout(ID), &[]);
    std::fs::write(&path, whole.trim_end()).unwrap();
    bench.sync();
    assert_eq!(message_count(&bench), 2);
    assert_accounts_add_up(&bench, &bench.codex());
    assert_rebuilds(&bench);
    append(&path, "\n");
    bench.sync();
    append(&path, &text_of(&prompt("more")));
    bench.sync();
    assert_eq!(message_count(&bench), 3);
    assert_accounts_add_up(&bench, &bench.codex());
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn strange_lines_are_counted_and_the_next_ones_read() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &[]);
    let whole = busy_transcript(ID);
    std::fs::write(&path, &whole).unwrap();
    let report = bench.sync();
    assert_eq!(report["lines"]["unknown"], 2, "{report}");
    assert_eq!(report["lines"]["malformed"], 2, "{report}");
    assert_eq!(report["lines"]["skipped"], 2, "blank lines: {report}");
    assert_eq!(report["lines"]["kept"], 24, "{report}");
    let session = &bench.sessions()[0];
    assert_eq!(session["user_message_count"], 3, "{session}");
    assert_eq!(session["assistant_message_count"], 3, "{session}");
    assert_eq!(session["tool_call_count"], 4, "two calls stand on one line: {session}");
    assert_eq!(session["tokens"]["input"], 25, "{session}");
    assert_accounts_add_up(&bench, &bench.codex());
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
}

/// Lines before the first one that names the thread, in a file with another id in its name.
#[test]
fn a_file_that_names_its_thread_late_can_be_rewritten() {
    let bench = Bench::new();
    let other = "0199a1b2-0000-7000-8000-00000000000b";
    let mut lines: Vec<String> = prompt("before the name").into();
    lines.extend(conversation(other, "after the name"));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    assert_rebuilds(&bench);
    lines.insert(2, prompt("changed").concat());
    std::fs::write(&path, text_of(&lines)).unwrap();
    bench.sync();
    assert_like_fresh(&bench);
    std::fs::write(&path, text_of(&conversation(other, "only this"))).unwrap();
    bench.sync();
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_first_line_that_is_torn_costs_only_itself() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "torn");
    lines[0].truncate(60);
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let session: &Value = &bench.sessions()[0];
    assert_eq!(session["session_id"], ID);
    assert_eq!(session["message_count"], 2);
    assert_rebuilds(&bench);
}
