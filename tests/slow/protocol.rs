//! Outside connectors: well-behaved ones, and every way to fail, after which nothing is half-committed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use annals_testkit::checks::assert_accounts_add_up;
use annals_testkit::{Bench, Ran};

/// The example connector with a scenario, as the arguments after `sync --connector`.
fn script() -> PathBuf {
    Path::new(annals_testkit::ROOT).join("tests/connector.py")
}

fn run(bench: &Bench, before: &[&str], scenario: &[&str]) -> Ran {
    let script = script();
    let arguments: Vec<&str> = [
        &["sync", "--connector-name", "demo"],
        before,
        &["--connector", "python3", script.to_str().unwrap()],
        scenario,
    ]
    .concat();
    Ran::of(bench.command(&arguments).env("PATH", "/usr/local/bin:/usr/bin:/bin").output().unwrap())
}

fn succeeds(bench: &Bench, before: &[&str], scenario: &[&str]) -> Value {
    let ran = run(bench, &[before, &["--json"]].concat(), scenario);
    assert_eq!(ran.code, 0, "{scenario:?}: {}", ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["connector"].clone()
}

/// Key and text of all records that have not ended.
fn notes(bench: &Bench) -> Vec<(String, String)> {
    let ran = bench.run(&["records", "demo/notes"]);
    let records = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut notes: Vec<(String, String)> = records
        .filter(|record| record["deleted_at"].is_null())
        .map(|record| {
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            (word(&record["data"]["key"]), word(&record["data"]["data"]["text"]))
        })
        .collect();
    notes.sort();
    notes
}

/// The first message sent to the connector.
fn start_of(ran: &Ran) -> Value {
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("start: "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{}", ran.stderr))).unwrap()
}

fn keys(notes: &[(String, String)]) -> Vec<&str> {
    notes.iter().map(|(key, _)| key.as_str()).collect()
}

/// By their newest text, until they are deleted.
#[test]
fn records_are_found_by_their_newest_text_only() {
    let bench = Bench::new();
    succeeds(&bench, &[], &["changes", "one=a walrus,two=a gannet"]);
    succeeds(&bench, &[], &["changes", "one=a puffin,two=-"]);
    let found = |query: &str| -> Vec<(Value, Value)> {
        let ran = bench.run(&["search", "--json", query]);
        assert!(ran.code <= 1, "{query}: {}", ran.stderr);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let results = answer["results"].as_array().unwrap().iter();
        results.map(|result| (result["kind"].clone(), result["passages"][0]["message_id"].clone())).collect()
    };
    for rebuilt in [false, true] {
        if rebuilt {
            assert_eq!(bench.run(&["rebuild"]).code, 0);
        }
        assert_eq!(found("puffin"), [(json!("library"), json!("demo/notes/one"))], "rebuilt: {rebuilt}");
        assert_eq!(found("walrus"), [], "rebuilt: {rebuilt}");
        assert_eq!(found("gannet"), [], "rebuilt: {rebuilt}");
    }
}

#[test]
fn a_good_connector_resumes_from_its_state_and_its_gaps_recover() {
    let bench = Bench::new();
    let report = succeeds(&bench, &[], &["good"]);
    assert_eq!(
        (&report["records"], &report["new"], &report["skipped"], &report["gaps_opened"], &report["problems"]),
        (&json!(3), &json!(3), &json!(2), &json!(1), &json!([]))
    );
    assert_eq!(keys(&notes(&bench)), ["n1", "n3", "same"]);
    let gaps = bench.json(&["gaps"]);
    let gap = &gaps["gaps"][0];
    assert_eq!(
        (&gap["key"], &gap["why"], &gap["status"], &gap["attempts"]),
        (&json!("n2"), &json!("rate_limited"), &json!("pending"), &json!(1))
    );
    assert_eq!(gap["eta"], "in 1 min", "{gap}");
    assert_eq!((&gap["source"], &gap["stream"]), (&json!("outside_connectors"), &json!("notes")));
    // It is not due yet, and the walk continues.
    let ran = run(&bench, &[], &["good"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let start = start_of(&ran);
    assert_eq!((&start["state"], &start["gaps"]), (&json!({"notes": {"seen": 3}}), &json!([])), "{start}");
    assert!(
        ran.stderr.contains("all pages (3 of 3)") && ran.stderr.contains("about 2 min left"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("demo: 3 records, 2 new, 1 unchanged"), "{}", ran.stdout);
    let retried = bench.json(&["gaps", "retry"]);
    assert_eq!((&retried["due"], &retried["open"]), (&json!(2), &json!(2)), "{retried}");
    let ran = run(&bench, &["--gaps-only"], &["good"]);
    let start = start_of(&ran);
    assert_eq!(start["mode"], "gaps_only");
    let served: Vec<&Value> = start["gaps"].as_array().unwrap().iter().map(|gap| &gap["locator"]).collect();
    assert_eq!(served, [&json!({"page": 2}), &json!({"page": 5})], "{start}");
    assert_eq!(bench.json(&["gaps"])["gaps"], json!([]));
    assert_eq!(keys(&notes(&bench)), ["n1", "n2", "n3", "n4", "n5", "n6", "same"]);
    // Counts include them, and a rebuild makes the same rows.
    let sources = bench.json(&["sources"]);
    let card =
        sources["sources"].as_array().unwrap().iter().find(|card| card["source"] == "outside_connectors");
    let card = card.unwrap();
    assert_eq!(
        (&card["source_status"], &card["source_path"]),
        (&json!("available"), &json!("demo")),
        "{card}"
    );
    let audit = bench.json(&["audit"]);
    let audit =
        audit["sources"].as_array().unwrap().iter().find(|audit| audit["source"] == "outside_connectors");
    let audit = audit.unwrap();
    assert_eq!(
        (&audit["percent"], &audit["types"]["kept"]["record"]["lines"]),
        (&json!(100.0), &json!(7)),
        "{audit}"
    );
    assert_eq!(audit["types"]["kept"]["schema"]["lines"], 1);
    assert_accounts_add_up(&bench, bench.folder.path());
    let before = bench.run(&["records", "outside_connectors/records"]).stdout;
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(bench.run(&["records", "outside_connectors/records"]).stdout, before);
    assert_eq!(before.lines().count(), 7);
    let full = run(&bench, &["--full"], &["good"]);
    assert_eq!((&start_of(&full)["mode"], &start_of(&full)["state"]), (&json!("full_refresh"), &json!({})));
}

#[test]
fn a_failed_run_keeps_exactly_what_its_last_state_committed() {
    let table = [
        ("wrong_done", "3 records according to DONE, but it sent 2", "fix the connector"),
        ("wrong_state", "3 records according to STATE, but it sent 2", "fix the connector"),
        ("wrong_sum", "miscounted: 4 considered = 2 records + 1 gaps + 0 skipped", "fix the connector"),
        ("wrong_coverage", "but it sent 2, 1 and 0, which is 3", "fix the connector"),
        ("wrong_message", "RECORD: missing field `emitted_at`", "fix the connector"),
        ("unknown_stream", "undeclared stream \"letters\"", "SCHEMA"),
        ("undeclared_state", "undeclared stream \"letters\"", "SCHEMA"),
        ("deep_state", "3 records according to DONE, but it sent 2", "fix the connector"),
        ("crash", "ended without DONE", "standard error"),
        ("exit_code", "did not exit with code 0", "exit with code 0"),
        ("gives_up", "gave up: no more pages", "continues from there"),
        ("silence", "printed nothing for 1 s", "--connector-silence"),
        ("mutter", "printed nothing for 1 s", "--connector-silence"),
        ("flood", "RECORD: missing field `emitted_at`", "fix the connector"),
        ("chatter", "did not exit with code 0", "exit with code 0"),
        ("deserted", "ended without DONE", "standard error"),
        ("interaction", "needs you: sign in again (https://notes.example/login)", "run it again"),
        ("huge", "3 records according to DONE, but it sent 2", "fix the connector"),
    ];
    for (scenario, what, hint) in table {
        let bench = Bench::new();
        let silent = ["silence", "mutter"].contains(&scenario);
        let silence: &[&str] = if silent { &["--connector-silence", "1"] } else { &[] };
        let started = Instant::now();
        let ran = run(&bench, silence, &[scenario]);
        assert!(started.elapsed() < Duration::from_secs(50), "{scenario}: the program was waited for");
        assert_eq!(ran.code, 2, "{scenario}: {}", ran.stderr);
        let error = ran.stderr.lines().find(|line| line.starts_with("error")).unwrap_or_default();
        assert!(error.contains(what), "{scenario}: {}", ran.stderr);
        let hinted = ran.stderr.lines().any(|line| line.starts_with("hint") && line.contains(hint));
        assert!(hinted, "{scenario}: {}", ran.stderr);
        assert_eq!(keys(&notes(&bench)), ["kept"], "{scenario}");
        assert_eq!(bench.json(&["gaps", "--all"])["gaps"], json!([]), "{scenario}");
        let sources = bench.json(&["sources"]);
        let sources = sources["sources"].as_array().unwrap();
        let card = sources.iter().find(|card| card["source"] == "outside_connectors").unwrap();
        assert_eq!(card["source_status"], "error", "{scenario}: {card}");
        // The next run continues from there.
        let ran = run(&bench, &[], &["good"]);
        assert_eq!(ran.code, 0, "{scenario}: {}", ran.stderr);
        assert_eq!(start_of(&ran)["state"], json!({"notes": {"seen": 1}}), "{scenario}");
        assert_eq!(keys(&notes(&bench)), ["kept", "n2", "n4", "same"], "{scenario}");
    }
}

#[test]
fn children_of_a_connector_are_terminated_with_it() {
    let bench = Bench::new();
    let started = Instant::now();
    assert_eq!(succeeds(&bench, &[], &["orphan"])["new"], 1);
    assert!(started.elapsed() < Duration::from_secs(30), "it was waited for");
    let ran = run(&bench, &["--connector-silence", "1"], &["family"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let child = ran.stderr.lines().find_map(|line| line.strip_prefix("child: ")).unwrap();
    let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
    assert!(!line.starts_with(b"sleep"), "it is still there");
}

#[test]
fn lines_that_are_no_messages_are_counted_and_kept() {
    let bench = Bench::new();
    let ran = run(&bench, &["--verbose"], &["garbage"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for expected in [
        "a line is not a message",
        "unknown kind \"APPLAUSE\"",
        "a line of 16777217 bytes is too long",
        "recovered a gap that was not requested",
        "output after DONE ignored",
        "7 lines not understood",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert_eq!(keys(&notes(&bench)), ["n1", "n2"]);
    let accounts = bench.accounts();
    let [file] = accounts.as_slice() else { panic!("{accounts:?}") };
    assert_eq!((&file["malformed"]["lines"], &file["unknown"]["lines"]), (&json!(3), &json!(1)), "{file}");
    assert_eq!(file["types"]["unknown"]["APPLAUSE"]["lines"], 1);
    assert_accounts_add_up(&bench, bench.folder.path());
}

#[test]
fn odd_bytes_are_read_or_counted_and_repeats_are_unchanged() {
    let bench = Bench::new();
    let first = succeeds(&bench, &[], &["odd_bytes"]);
    assert_eq!(
        (&first["records"], &first["new"], &first["problem_count"]),
        (&json!(1), &json!(1), &json!(3)),
        "{first}"
    );
    assert_eq!(notes(&bench), [("twice".to_owned(), "two \0".to_owned())]);
    let again = succeeds(&bench, &[], &["odd_bytes"]);
    assert_eq!((&again["new"], &again["unchanged"]), (&json!(0), &json!(1)), "{again}");
    assert_accounts_add_up(&bench, bench.folder.path());
}

#[test]
fn records_have_versions_and_ends() {
    let bench = Bench::new();
    let texts = |change: &str| {
        succeeds(&bench, &[], &["changes", change]);
        let ran = bench.run(&["records", "demo/notes", "--key", "a"]);
        let versions = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let texts = versions.map(|record| {
            let ended = if record["deleted_at"].is_null() { "" } else { ", ended" };
            format!("{} {}{ended}", record["version"], record["data"]["data"]["text"].as_str().unwrap())
        });
        texts.collect::<Vec<_>>()
    };
    assert_eq!(texts("a=one"), ["1 one"]);
    assert_eq!(texts("a=one,b=other"), ["1 one"]);
    assert_eq!(texts("a=two"), ["1 one", "2 two"]);
    assert_eq!(texts("a=one"), ["1 one", "2 two", "3 one"], "as it was, and yet another version");
    assert_eq!(texts("a=three,a=one"), ["1 one", "2 two", "3 one", "4 three", "5 one"], "in one commit");
    assert_eq!(texts("a=-"), ["1 one", "2 two", "3 one", "4 three", "5 one, ended"]);
    let back = ["1 one", "2 two", "3 one", "4 three", "5 one, ended", "6 one"];
    assert_eq!(texts("a=one"), back);
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(texts("b=other"), back);
    assert_eq!(bench.run(&["records", "demo/letters"]).code, 1);
    let ran = bench.run(&["records", "nobody/notes"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("unknown source"), "{}", ran.stderr);
}

#[test]
fn a_large_commit_spans_files_and_restores_completely() {
    let bench = Bench::new();
    let report = succeeds(&bench, &[], &["many"]);
    assert_eq!((&report["new"], &report["commits"]), (&json!(3_000), &json!(2)));
    assert!(bench.accounts().len() > 2, "{}", bench.accounts().len());
    assert_eq!(notes(&bench).len(), 3_000);
    assert_accounts_add_up(&bench, bench.folder.path());
    let again = succeeds(&bench, &[], &["many"]);
    assert_eq!((&again["new"], &again["unchanged"]), (&json!(0), &json!(3_000)));
    assert_eq!(bench.run(&["doctor"]).code, 0);
}

#[test]
fn a_connector_gets_none_of_our_variables_and_its_output_is_masked() {
    let bench = Bench::new();
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let script = script();
    let with = |scenario: &str| {
        let arguments = [
            "sync",
            "--connector-name",
            "demo",
            "--connector",
            "python3",
            script.to_str().unwrap(),
            scenario,
        ];
        let mut command = bench.command(&arguments);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("ANNALS_TOKEN", "ours").env("SECRET", secret);
        Ran::of(command.output().unwrap())
    };
    assert_eq!(with("environment").code, 0);
    let notes = notes(&bench);
    let names = keys(&notes);
    assert!(names.contains(&"PATH") && names.contains(&"SECRET"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("ANNALS_")), "{names:?}");
    let ran = with("crash");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("the other side closed the door"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(secret), "{}", ran.stderr);
    assert!(!bench.run(&["records", "demo/notes"]).stdout.contains(secret));
}

#[test]
fn programs_that_cannot_run_are_reported() {
    let bench = Bench::new();
    let ran = bench.run(&["sync", "--connector", "/nowhere/at-all"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("cannot run /nowhere/at-all") && ran.stderr.contains("hint"),
        "{}",
        ran.stderr
    );
    let ran = bench.run(&["sync", "--connector-name", "a/b", "--connector", "true"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("invalid connector name"), "{}", ran.stderr);
}

#[test]
fn missing_items_are_given_up_and_another_program_retries_quarantined_ones() {
    let bench = Bench::new();
    let statuses = || {
        let gaps = bench.json(&["gaps", "--all"]);
        let rows = gaps["gaps"].as_array().unwrap().iter().map(|gap| {
            let ended = gap["ended"].as_str().unwrap_or("-");
            format!(
                "{} {} {ended} {}",
                gap["key"].as_str().unwrap(),
                gap["status"].as_str().unwrap(),
                gap["attempts"]
            )
        });
        rows.collect::<Vec<_>>()
    };
    for _ in 0..2 {
        succeeds(&bench, &[], &["missing"]);
    }
    assert_eq!(statuses(), ["gone pending - 2", "odd pending - 2"]);
    for _ in 2..8 {
        succeeds(&bench, &[], &["missing"]);
    }
    assert_eq!(statuses(), ["gone terminal not_found 8", "odd terminal quarantined 8"]);
    assert_eq!(bench.json(&["gaps"])["gaps"], json!([]));
    assert!(bench.run(&["gaps"]).stderr.contains("2 more gaps given up"));
    let other = bench.folder.path().join("connector.py");
    let text = std::fs::read_to_string(script()).unwrap();
    std::fs::write(&other, format!("{text}\n# another version\n")).unwrap();
    let arguments = [
        "sync",
        "--connector-name",
        "demo",
        "--connector",
        "python3",
        other.to_str().unwrap(),
        "changes",
        "a=one",
    ];
    let ran =
        Ran::of(bench.command(&arguments).env("PATH", "/usr/local/bin:/usr/bin:/bin").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let served = start_of(&ran);
    assert_eq!(served["gaps"].as_array().unwrap().len(), 1, "{served}");
    assert_eq!((&served["gaps"][0]["key"], &served["gaps"][0]["attempts"]), (&json!("odd"), &json!(8)));
    assert_eq!(statuses(), ["gone terminal not_found 8", "odd pending - 8"]);
    bench.json(&["gaps", "retry", "gone"]);
    assert_eq!(statuses(), ["gone pending - 8", "odd pending - 8"]);
}

#[test]
fn a_killed_run_releases_its_gaps() {
    let bench = Bench::new();
    succeeds(&bench, &[], &["good"]);
    bench.json(&["gaps", "retry"]);
    let script = script();
    let arguments =
        ["sync", "--connector-name", "demo", "--connector", "python3", script.to_str().unwrap(), "silence"];
    let mut child = bench
        .command(&arguments)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !keys(&notes(&bench)).contains(&"kept") {
        assert!(started.elapsed() < Duration::from_secs(60), "nothing was committed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let held = bench.json(&["gaps"]);
    assert_eq!(held["gaps"][0]["status"], "in_progress", "{held}");
    assert!(
        held["gaps"][0]["leased_until_at"].is_string() && held["gaps"][0]["eta"] == "in progress",
        "{held}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = run(&bench, &["--gaps-only"], &["good"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(start_of(&ran)["gaps"][0]["key"], "n2");
    assert_eq!(bench.json(&["gaps"])["gaps"], json!([]));
    assert_eq!(keys(&notes(&bench)), ["kept", "n1", "n2", "n3", "same"]);
}
