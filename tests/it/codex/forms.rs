//! The same transcript at other paths and in other forms: moved, compressed, decompressed, gone and back.

use std::path::{Path, PathBuf};

use serde_json::json;

use annals_testkit::Bench;
use annals_testkit::checks::{assert_like_fresh, assert_rebuilds, assert_restores, assert_up_to_date};
use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout, text_of};
use annals_testkit::files::append;

const OTHER: &str = "0199a1b2-0000-7000-8000-00000000000b";

fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".zst");
    name.into()
}

/// Writes the compressed form next to the plain one.
fn compress(path: &Path) -> PathBuf {
    let target = compressed(path);
    std::fs::write(&target, zstd::encode_all(&*std::fs::read(path).unwrap(), 3).unwrap()).unwrap();
    target
}

fn replace_by_compressed(path: &Path) -> PathBuf {
    let target = compress(path);
    std::fs::remove_file(path).unwrap();
    target
}

/// The session and its conversation, without its origin.
fn show(bench: &Bench) -> String {
    let messages = bench.json(&["show", ID])["messages"].clone();
    format!("{:?} {messages}", bench.sessions())
}

/// Restores everything, including what is gone from the home, and returns the directory.
fn restored(bench: &Bench, name: &str) -> PathBuf {
    let target = bench.folder.path().join(name);
    let ran = bench.run(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    target
}

#[test]
fn an_archived_transcript_is_the_same_one_at_another_place() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "moved"));
    bench.sync();
    let before = show(&bench);
    let folder = bench.codex().join("archived_sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let target = folder.join(rollout(ID));
    std::fs::rename(&path, &target).unwrap();
    let report = bench.sync();
    assert_eq!(report["captured_bytes"], 0, "{report}");
    assert_eq!(report["gone_files"], 0, "{report}");
    assert_eq!(show(&bench), before);
    let accounts = bench.accounts();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0]["path"], format!("archived_sessions/{}", rollout(ID)));
    assert_restores(&bench, &bench.codex());
    assert_like_fresh(&bench);
    // Back again, with more in it.
    append(&target, &text_of(&prompt("one more")));
    std::fs::rename(&target, &path).unwrap();
    assert_eq!(bench.sync()["captured_bytes"], text_of(&prompt("one more")).len());
    assert_restores(&bench, &bench.codex());
    assert_like_fresh(&bench);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_compressed_transcript_counts_once_and_both_forms_stay() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "compressed"));
    let plain = std::fs::read(&path).unwrap();
    bench.sync();
    let before = show(&bench);
    let packed = std::fs::read(replace_by_compressed(&path)).unwrap();
    bench.sync();
    assert_eq!(show(&bench), before, "nothing counted twice, and not gone");
    assert_eq!(bench.sessions()[0]["source_gone"], false);
    let target = restored(&bench, "both");
    let name = path.strip_prefix(bench.codex()).unwrap();
    assert_eq!(std::fs::read(target.join(name)).unwrap(), plain);
    assert_eq!(std::fs::read(target.join(compressed(name))).unwrap(), packed);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    std::fs::remove_file(compressed(&path)).unwrap();
    bench.sync();
    assert_eq!(bench.sessions()[0]["source_gone"], true);
    assert_rebuilds(&bench);
}

#[test]
fn both_forms_at_once_count_once() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "twice"));
    compress(&path);
    bench.sync();
    let session = &bench.sessions()[0];
    assert_eq!(session["message_count"], 2);
    let before = show(&bench);
    assert_up_to_date(&bench);
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
    // The client finishes and deletes the plain one.
    std::fs::remove_file(&path).unwrap();
    bench.sync();
    assert_eq!(show(&bench), before);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    assert_eq!(show(&bench), before);
}

#[test]
fn a_compressed_transcript_alone_is_read() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "alone"));
    let plain = Bench::with_home("codex_cli", &bench.codex());
    plain.sync();
    replace_by_compressed(&path);
    bench.sync();
    assert_eq!(show(&bench), show(&plain));
    assert_up_to_date(&bench);
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
}

#[test]
fn a_compressed_transcript_with_other_content_has_the_rows() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "before"));
    bench.sync();
    let plain = std::fs::read(&path).unwrap();
    let mut lines = conversation(ID, "after");
    lines.extend(answer("only in the new form"));
    std::fs::write(&path, text_of(&lines)).unwrap();
    replace_by_compressed(&path);
    bench.sync();
    let session = &bench.sessions()[0];
    assert_eq!(session["title"], "after");
    assert_eq!(session["message_count"], 3);
    assert_eq!(session["source_gone"], false);
    let target = restored(&bench, "old");
    assert_eq!(std::fs::read(target.join(path.strip_prefix(bench.codex()).unwrap())).unwrap(), plain);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
    // The first form comes back, from a backup, and continues.
    std::fs::remove_file(compressed(&path)).unwrap();
    std::fs::write(&path, &plain).unwrap();
    append(&path, &text_of(&prompt("goes on")));
    bench.sync();
    let session = &bench.sessions()[0];
    assert_eq!(session["title"], "before");
    assert_eq!(session["message_count"], 3, "{session}");
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

/// Small ones, and one of several segments.
#[test]
fn a_decompressed_transcript_continues() {
    for (prompts, known_plain) in [(2, false), (2, true), (4_000, false), (4_000, true)] {
        let bench = Bench::new();
        let mut lines = vec![meta(ID)];
        (0..prompts).for_each(|number| lines.extend(prompt(&format!("prompt {number}"))));
        let path = bench.transcript(&rollout(ID), &lines);
        let plain = std::fs::read(&path).unwrap();
        if known_plain {
            bench.sync();
        }
        let packed = replace_by_compressed(&path);
        bench.sync();
        // Decompressed: first the same content, then more of it.
        std::fs::write(&path, &plain).unwrap();
        std::fs::remove_file(&packed).unwrap();
        bench.sync();
        assert_eq!(bench.sessions()[0]["message_count"], prompts);
        assert_eq!(bench.sessions()[0]["source_gone"], false);
        assert_up_to_date(&bench);
        append(&path, &text_of(&answer("goes on")));
        bench.sync();
        assert_eq!(bench.sessions()[0]["message_count"], prompts + 1, "{prompts} {known_plain}");
        assert_up_to_date(&bench);
        let fresh = Bench::with_home("codex_cli", &bench.codex());
        fresh.sync();
        assert_eq!(show(&bench), show(&fresh));
        assert_rebuilds(&bench);
        assert_eq!(show(&bench), show(&fresh));
    }
}

#[test]
fn a_damaged_compressed_transcript_does_not_take_the_rows() {
    let bench = Bench::new();
    let mut lines = vec![meta(ID)];
    (0..400).for_each(|number| lines.extend(prompt(&format!("prompt {number} {}", number * 7_919))));
    let path = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let before = show(&bench);
    let packed = replace_by_compressed(&path);
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    bench.sync();
    assert_eq!(show(&bench), before, "half a file has no rows to offer");
    assert_rebuilds(&bench);
    // The client finishes writing it.
    std::fs::write(&packed, &bytes).unwrap();
    bench.sync();
    assert_eq!(show(&bench), before);
    assert_up_to_date(&bench);
    assert_rebuilds(&bench);
}

#[test]
fn a_broken_compressed_transcript_alone_gives_what_it_has() {
    let bench = Bench::new();
    let mut lines = vec![meta(ID)];
    (0..4_000).for_each(|number| lines.extend(prompt(&format!("prompt {number} {}", number * 7_919))));
    let path = bench.transcript(&rollout(ID), &lines);
    let packed = replace_by_compressed(&path);
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    let report = bench.sync();
    assert!(report["problems"][0].as_str().unwrap().contains("decompressed"), "{report}");
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
}

/// Two plain copies, in both directories: one of them continues.
#[test]
fn a_copy_in_the_other_folder_does_not_hide_the_one_that_continues() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "copied"));
    bench.sync();
    let folder = bench.codex().join("archived_sessions");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&path, folder.join(rollout(ID))).unwrap();
    bench.sync();
    assert_eq!(bench.sessions()[0]["message_count"], 2);
    append(&path, &text_of(&prompt("goes on")));
    bench.sync();
    assert_eq!(bench.sessions()[0]["message_count"], 3);
    assert_up_to_date(&bench);
    assert_restores(&bench, &bench.codex());
    assert_rebuilds(&bench);
    assert_eq!(bench.sessions()[0]["message_count"], 3);
}

#[test]
fn a_deleted_sessions_folder_leaves_every_answer() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "one"));
    bench.transcript(&rollout(OTHER), &conversation(OTHER, "two"));
    bench.sync();
    let kept = bench.folder.path().join("kept");
    let whole_home = bench.folder.path().join("kept-home");
    let sessions = bench.codex().join("sessions");
    let before = bench.everything();
    for (from, to) in [(&sessions, &kept), (&bench.codex(), &whole_home)] {
        std::fs::rename(from, to).unwrap();
        let report = bench.sync();
        assert_eq!(report["gone_files"], 2, "{report}");
        let gone = bench.sessions();
        assert_eq!(gone.len(), 2);
        assert!(gone.iter().all(|session| session["source_gone"] == true), "{gone:?}");
        assert_eq!(
            bench
                .everything()
                .replace(r#""source_gone":true"#, r#""source_gone":false"#)
                .replace(r#""source_gone": true"#, r#""source_gone": false"#),
            before
        );
        assert_up_to_date(&bench);
        assert_rebuilds(&bench);
        std::fs::rename(to, from).unwrap();
        assert_eq!(bench.sync()["captured_bytes"], 0);
        assert_eq!(bench.everything(), before);
        assert_up_to_date(&bench);
        assert_rebuilds(&bench);
    }
}

/// Prompts of threads that are gone are in the history alone.
#[test]
fn prompts_that_only_the_history_has_are_shown() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let gone = "0199dd00-0000-7000-8000-000000000009";
    let entry = |session: &str, seconds: i64, text: &str| {
        format!("{}\n", json!({"session_id": session, "ts": seconds, "text": text}))
    };
    let history =
        [entry(gone, 1_763_200_000, "Wind the flywheel"), entry(gone, 1_763_200_100, "Now stop it")];
    std::fs::write(bench.codex().join("history.jsonl"), history.concat()).unwrap();
    let list = json!([{"command": "Thread the loom", "timestamp": 1_747_728_000_000_i64}]);
    std::fs::write(bench.codex().join("history.json"), list.to_string()).unwrap();
    bench.sync();
    let found = |words: &str| bench.json(&["search", words])["results"][0]["session_id"].clone();
    assert_eq!(found("flywheel"), gone);
    assert_eq!(found("loom"), "history-2025-05-20");
    let shown = bench.json(&["show", gone]);
    assert_eq!(shown["session"]["title"], "Wind the flywheel");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    assert_eq!(bench.sessions().len(), 3);
    assert_like_fresh(&bench);
    assert_rebuilds(&bench);
}
