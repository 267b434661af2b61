//! `day`, `week` and `month`: what was done, with the commits of the repositories that it was done in.

use expect_test::expect;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, line, rollout};
use annals_testkit::git::Repository;

/// A session in a repository, with a commit of the same week and one of the week before.
fn bench_with_work() -> (Bench, String) {
    let bench = Bench::new();
    let repository = Repository::create(&bench.folder.path().join("work/engine"));
    repository.git(&["config", "user.email", "ada@example.invalid"]);
    repository.commit_files(
        &[("old.py", "1\n")],
        "An older week",
        ("2026-11-02T09:00:00Z", "2026-11-02T09:00:00Z"),
    );
    repository.commit_files(
        &[("gears.py", "12\n")],
        "Count twelve gears",
        ("2026-11-15T10:30:00Z", "2026-11-15T10:30:00Z"),
    );
    let folder = repository.folder.to_str().unwrap().to_owned();
    let mut lines = conversation(ID, "Count the gears");
    let patch = "*** Begin Patch\n*** Add File: gears.py\n+12\n*** End Patch\n";
    let call = serde_json::json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_p", "input": patch});
    let done = serde_json::json!({"type": "custom_tool_call_output", "call_id": "call_p",
        "output": "{\"output\":\"Success. Updated the following files:\\nA gears.py\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.0}}"});
    let fails = serde_json::json!({"type": "function_call", "name": "shell", "call_id": "call_f",
        "arguments": "{\"command\":[\"make\",\"gears\"]}"});
    let failed = serde_json::json!({"type": "function_call_output", "call_id": "call_f",
        "output": "{\"output\":\"no such gear\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"});
    for (second, payload) in [(20, call), (21, done), (22, fails), (23, failed)] {
        lines.push(line(second, "response_item", &payload.to_string()));
    }
    let lines: Vec<String> = lines.iter().map(|line| line.replace("/home/ada/engine", &folder)).collect();
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    (bench, folder)
}

/// The report with the names of this run replaced.
fn report(bench: &Bench, folder: &str, arguments: &[&str]) -> String {
    let ran = bench.run(arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let hash = regex::Regex::new("Commit `[0-9a-f]{8}`").unwrap();
    hash.replace_all(&ran.stdout.replace(folder, "/work/engine"), "Commit `HASH`").into_owned()
}

#[test]
fn a_week_is_markdown_for_a_stand_up() {
    let (bench, folder) = bench_with_work();
    let week = report(&bench, &folder, &["week"]);
    expect![[r#"
        # Week of 2026-11-09 to 2026-11-15

        1 session · 1 project · 1 prompt · 1 changed file · 1 commit · 1 failed call · ?

        ## engine

        `/work/engine` · 1 session · ?

        - **Count the gears** (2026-11-15 10:00, Codex CLI, 0199a1b2-0000-7000-8000-00000000000a)
          - Count the gears
        - Files changed: `gears.py`
        - Commit `HASH` Count twelve gears
        - Failed: `make gears` exit 2
    "#]]
    .assert_eq(&week);
    // The same bytes every time, and the same work seen as a day and as a month.
    assert_eq!(report(&bench, &folder, &["week"]), week);
    for arguments in [&["day"][..], &["month"], &["week", "2026-11-12"], &["day", "today"]] {
        let text = report(&bench, &folder, arguments);
        assert!(
            text.contains("Count the gears") && text.contains("Count twelve gears"),
            "{arguments:?}: {text}"
        );
    }
    assert!(report(&bench, &folder, &["month"]).contains("An older week"));
    assert!(!report(&bench, &folder, &["week", "--no-git"]).contains("Commit"));
    let json = bench.json(&["week"]);
    assert_eq!(json["session_count"], 1);
    assert_eq!(json["projects"][0]["commits"][0]["subject"], "Count twelve gears");
}

#[test]
fn a_time_without_work_says_so() {
    let (bench, _) = bench_with_work();
    let ran = bench.run(&["week", "last", "week"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("Nothing was archived."), "{}", ran.stdout);
    let wrong = bench.run(&["week", "lsat", "week"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("hint:"), "{}", wrong.stderr);
}
