//! Gaps of files: retried alone or by each run, listed with their next retry, over HTTP as on the command line.

use serde_json::json;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};

const OTHER: &str = "0199a1b2-0000-7000-8000-00000000000b";

#[test]
fn gaps_only_retries_only_gaps() {
    let bench = Bench::new();
    let lines: String = conversation(ID, "otter").iter().map(|line| format!("{line}\n")).collect();
    let packed = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
    let folder = bench.codex().join("sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let broken = folder.join(rollout(ID) + ".zst");
    std::fs::write(&broken, &packed[..packed.len() / 2]).unwrap();
    bench.sync();
    let gaps = bench.json(&["gaps"]);
    let gap = &gaps["gaps"][0];
    assert_eq!(
        (&gap["why"], &gap["status"], &gap["next_try_at"], &gap["eta"]),
        (&json!("unreadable"), &json!("pending"), &json!(null), &json!("on the next sync")),
        "{gap}"
    );
    let shown = bench.run(&["gaps"]).stdout;
    assert!(shown.contains("unreadable") && shown.contains("on the next sync"), "{shown}");
    // Repaired, with another file next to it: that one is for a complete run.
    std::fs::write(&broken, &packed).unwrap();
    bench.transcript(&rollout(OTHER), &conversation(OTHER, "heron"));
    let report = bench.json(&["sync", "codex_cli", "--gaps-only"])["sources"][0].clone();
    assert_eq!((&report["changed_files"], &report["new_files"]), (&json!(1), &json!(0)), "{report}");
    assert_eq!(report["put_off_files"], 1, "{report}");
    assert_eq!(bench.json(&["gaps"])["gaps"], json!([]));
    assert_eq!(bench.sessions().len(), 1);
    // Without gaps nothing is read at all.
    let report = bench.json(&["sync", "codex_cli", "--gaps-only"])["sources"][0].clone();
    assert_eq!((&report["found_files"], &report["new_files"]), (&json!(0), &json!(0)), "{report}");
    bench.sync();
    assert_eq!(bench.sessions().len(), 2);
}

#[test]
fn retry_reads_files_immediately() {
    let bench = Bench::new();
    let path = bench.codex().join("sessions/2026/11/15").join(rollout(ID) + ".zst");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: String = conversation(ID, "otter").iter().map(|line| format!("{line}\n")).collect();
    let packed = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
    std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    bench.sync();
    let report = bench.json(&["gaps", "retry"]);
    assert_eq!(report, json!({"due": 1, "recovered": 0, "open": 1}));
    std::fs::write(&path, &packed).unwrap();
    let key = bench.json(&["gaps"])["gaps"][0]["key"].as_str().unwrap().to_owned();
    let ran = bench.run(&["gaps", "retry", "nothing-like-it"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no gap with the key nothing-like-it"), "{}", ran.stderr);
    let ran = bench.run(&["gaps", "retry", &key]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("1 due, 1 recovered, 0 open"), "{}", ran.stdout);
    let all = bench.json(&["gaps", "--all"]);
    assert_eq!(
        (&all["gaps"][0]["status"], &all["gaps"][0]["eta"]),
        (&json!("recovered"), &json!("not needed"))
    );
    assert_eq!(bench.json(&["gaps", "retry", "--all"])["due"], 0);
}
