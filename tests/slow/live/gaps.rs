//! Live collection that is refused, interrupted and killed: gaps recover, and nothing is lost or fetched twice.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use annals_testkit::Ran;
use annals_testkit::standin::{Stage, id_of, wait};

#[test]
fn thousands_of_refusals_recover_by_id() {
    let (all, given) = (5_000, 812);
    let mut stage = Stage::connected(json!({
        "conversations": all, "archived": 0, "projects": {}, "batch": false,
        "bucket": {"capacity": given, "per_minute": 0},
    }));
    stage.second = "2";
    let started = Instant::now();
    let first = stage.sync();
    let took = started.elapsed();
    let refused = stage.standin.count("refused");
    assert_eq!((&first["fetched"], &first["gaps_open"]), (&json!(given), &json!(all - given)), "{first}");
    assert!(first["seconds_left"].as_u64().unwrap() > 0);
    // It stops when the rate limit is reached: one group and its retries, and no hammering.
    assert!(refused <= 20, "{refused}");
    let details: Value = stage.standin.counts()["details"].clone();
    let requested = details.as_object().unwrap().len();
    println!(
        "first run: {given} fetched, {} gaps, {refused} refusals, {requested} asked, {took:?}",
        all - given
    );
    // What was never requested has no attempts.
    let untried = stage.gaps().iter().filter(|gap| gap["attempts"] == 0).count();
    assert_eq!(untried, all - requested, "{untried} gaps without attempts");
    // Nothing is available yet: a run that starts too early requests nothing individually, or next to nothing.
    stage.standin.control(json!({"forget_counts": true}));
    let early = stage.sync();
    println!("too early: {} fetched, {} refusals", early["fetched"], stage.standin.count("refused"));
    assert_eq!((&early["fetched"], &early["gaps_open"]), (&json!(0), &json!(all - given)));
    assert!(stage.standin.count("refused") <= 20);
    // The limit is gone. Gaps are fetched by id, each once, and nothing else is requested.
    stage.standin.control(json!({"bucket": null, "forget_counts": true}));
    let mut runs = 0;
    let mut fetched = 0;
    let started = Instant::now();
    while stage.gaps_open() > 0 {
        runs += 1;
        assert!(runs < 10, "gaps do not heal");
        fetched += stage.retry_gaps()["recovered"].as_u64().unwrap();
    }
    let counts = stage.standin.counts();
    let details = counts["details"].as_object().unwrap();
    println!(
        "later: {runs} runs, {fetched} fetched, {} asked, {} list pages, {:?}",
        details.len(),
        stage.standin.count("GET conversations"),
        started.elapsed()
    );
    assert_eq!((fetched, details.len()), ((all - given) as u64, all - given));
    assert!(details.values().all(|times| *times == 1), "something was asked for twice");
    // Only the first page of each of two lists, once per run, and again at its end if there was something new.
    assert!(stage.standin.count("GET conversations") <= 4 * runs);
    let expected: Vec<String> = (0..all).map(id_of).collect();
    assert_eq!(stage.conversation_ids(), expected);
}

#[test]
fn individual_failures_are_separate_gaps() {
    let mut stage = Stage::connected(json!({
        "conversations": 30, "archived": 0, "projects": {},
        "drop": [1, 2, 3, 4], "slow": [1], "broken": [2], "garbage": [3], "missing": [4], "truncate": [6],
    }));
    stage.second = "10";
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(26), &json!(4)), "{live}");
    let gaps = stage.gaps();
    let why = |number: usize| gaps.iter().find(|gap| gap["key"] == id_of(number)).unwrap()["why"].clone();
    assert_eq!([1, 2, 3, 4].map(why), ["timeout", "pressure", "malformed", "not_found"].map(Value::from));
    // The account: 26 conversations, ten documents and four gaps, which do count.
    let audit = stage.audit();
    assert_eq!(
        (&audit["files"]["found"], &audit["files"]["kept"]),
        (&json!(40), &json!(36)),
        "{}",
        audit["files"]
    );
    assert_eq!((&audit["files"]["gaps"], &audit["percent"]), (&json!(4), &json!(90.0)));
    // They are not requested again before they are due, and neither is anything else.
    stage.standin.control(json!({"forget_counts": true}));
    assert_eq!(stage.sync()["fetched"], 0);
    assert_eq!(stage.standin.counts()["details"], json!({}));
    stage.standin.control(json!({"slow": [], "broken": [], "garbage": [], "missing": [], "drop": []}));
    let healed = stage.retry_gaps();
    assert_eq!((&healed["recovered"], &healed["open"]), (&json!(4), &json!(0)), "{healed}");
    assert_eq!(stage.conversation_ids().len(), 30);
    let audit = stage.audit();
    assert_eq!(
        (&audit["files"]["found"], &audit["percent"]),
        (&json!(40), &json!(100.0)),
        "{}",
        audit["files"]
    );
    assert!(audit["bytes"]["kept"].as_u64() > live["captured_bytes"].as_u64());
}

#[test]
fn a_waiting_run_continues_at_the_providers_pace() {
    // A minute takes 0.3 seconds here: one for each of them.
    let world = json!({
        "conversations": 44, "archived": 0, "projects": {}, "batch": false,
        "bucket": {"capacity": 20, "per_minute": 200},
    });
    let stage = Stage::connected(world);
    let (code, live) = stage.sync_with(&["--wait"]);
    assert_eq!((code, &live["fetched"], &live["gaps_open"]), (0, &json!(44), &json!(0)), "{live}");
    assert_eq!(stage.conversation_ids().len(), 44);
    let refused = stage.standin.count("refused");
    println!("44 asked of a bucket of 20: {refused} refusals");
    assert!(refused <= 30, "{refused}");
    assert!(stage.run(&["gaps"]).stdout.starts_with("no gaps"));
}

#[test]
fn files_are_fetched_on_request_and_failures_are_gaps() {
    let stage = Stage::connected(
        json!({"conversations": 10, "archived": 0, "projects": {}, "files_fail": {"1": 500, "5": 404}}),
    );
    assert_eq!(stage.sync()["files"], 0);
    // On request, also for conversations that were archived long ago.
    let (code, live) = stage.sync_with(&["--with-files"]);
    assert_eq!((code, &live["fetched"], &live["files"]), (0, &json!(0), &json!(1)), "{live}");
    let mut gaps: Vec<(String, String)> = Vec::new();
    for gap in stage.gaps() {
        let word = |name: &str| gap[name].as_str().unwrap().to_owned();
        assert_eq!(word("stream"), "files");
        gaps.push((word("key"), word("why")));
    }
    gaps.sort();
    let expected =
        [("file-000000000000000000000001", "pressure"), ("file-000000000000000000000005", "not_found")];
    assert_eq!(gaps, expected.map(|(key, why)| (key.to_owned(), why.to_owned())));
    stage.standin.control(json!({"files_fail": {}, "forget_counts": true}));
    // Not before they are due; then each once.
    assert_eq!(stage.sync_with(&["--with-files"]).1["files"], 0);
    assert_eq!(stage.standin.count("GET files/*"), 0);
    stage.make_gaps_due();
    assert_eq!(stage.sync_with(&["--with-files"]).1["files"], 2);
    assert!(stage.gaps().is_empty());
    let kept: Vec<_> =
        stage.records("files").iter().map(|file| file["data"]["archived_as"].clone()).collect();
    assert!(kept.len() == 3 && kept.iter().all(Value::is_string), "{kept:?}");
    assert_eq!(stage.sync_with(&["--with-files"]).1["files"], 0);
    assert_eq!(stage.standin.count("GET files/*"), 2);
}

#[test]
fn a_torn_conversation_is_kept_and_stays_a_gap() {
    let stage = Stage::connected(json!({"conversations": 3, "archived": 0, "projects": {}, "torn": [1]}));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(2), &json!(1)), "{live}");
    assert_eq!((&stage.gaps()[0]["key"], &stage.gaps()[0]["why"]), (&json!(id_of(1)), &json!("malformed")));
    assert!(stage.bench.run(&["show", &id_of(1), "--branch", "all"]).stdout.contains("Answer 1"));
    // The same again is nothing new; once it is complete, both are one.
    let torn = stage.records("conversation_versions").len();
    assert_eq!(stage.retry_gaps()["recovered"], 0);
    assert_eq!(stage.records("conversation_versions").len(), torn);
    stage.standin.control(json!({"torn": []}));
    assert_eq!(stage.retry_gaps()["recovered"], 1);
    let shown = stage.bench.run(&["show", &id_of(1)]).stdout;
    assert!(shown.contains("Question 1") && shown.contains("Answer 1"), "{shown}");
    assert_eq!(stage.conversation_ids().len(), 3);
}

#[test]
fn full_runs_walk_lists_to_their_end() {
    // A list that loses an item during the walk: the next item takes its place and is then on no page.
    let stage = Stage::connected(json!({"conversations": 120, "archived": 0, "projects": {}, "hidden": [3]}));
    assert_eq!(stage.sync()["fetched"], 119);
    stage.standin.control(json!({"hidden": []}));
    assert_eq!(stage.sync()["fetched"], 0, "it is far below the cursor");
    let (_, live) = stage.sync_with(&["--full"]);
    assert_eq!((&live["fetched"], &live["unchanged"]), (&json!(1), &json!(119)), "{live}");
    assert_eq!(stage.conversation_ids().len(), 120);
}

#[test]
fn an_interrupted_list_moves_no_cursor() {
    let stage =
        Stage::connected(json!({"conversations": 250, "archived": 0, "projects": {}, "list_fail_at": 200}));
    let live = stage.sync();
    assert_eq!(live["fetched"], 200, "{live}");
    assert!(live["problems"][0].as_str().unwrap().contains("plain"));
    stage.standin.control(json!({"list_fail_at": null, "forget_counts": true}));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["unchanged"]), (&json!(50), &json!(200)), "{live}");
    assert_eq!(stage.conversation_ids().len(), 250);
    assert!(stage.gaps().is_empty());
}

#[test]
fn the_user_is_told_what_to_do_and_the_next_run_resumes() {
    let stage = Stage::connected(json!({"conversations": 60, "archived": 0, "projects": {}, "batch": false}));
    let stopped = |kind: &str| {
        let (code, live) = stage.sync_with(&[]);
        assert_eq!(code, 2, "{live}");
        assert_eq!(live["interaction"]["kind"], kind, "{live}");
        assert!(!live["interaction"]["hint"].as_str().unwrap().is_empty());
        live
    };
    // A token that ends within five minutes, and none that is newer.
    stage.standin.control(json!({"token_life": 200, "new_token": true}));
    let live = stopped("manual_action");
    assert!(live["interaction"]["message"].as_str().unwrap().contains("five minutes"));
    assert!(live["interaction"]["link"].as_str().unwrap().starts_with(&stage.url));
    // A captcha in the middle.
    stage.standin.control(json!({"token_life": 3600, "new_token": true, "challenge_after": 30}));
    let live = stopped("manual_action");
    assert!(live["interaction"]["message"].as_str().unwrap().contains("check"), "{live}");
    let fetched_before = stage.conversation_ids().len();
    assert!((1..60).contains(&fetched_before), "{fetched_before}");
    // Another workspace is open: what is not listed there has not ended.
    stage.standin.control(json!({"challenge_after": null, "account": "account-2", "memories": []}));
    let live = stopped("manual_action");
    assert!(live["interaction"]["message"].as_str().unwrap().contains("a different account"), "{live}");
    assert!(stage.records("memories").iter().all(|memory| memory["deleted_at"].is_null()));
    // The network is gone, then the user is logged out.
    stage.standin.control(json!({"account": "account-1", "offline": true}));
    stopped("unreachable");
    stage.standin.control(json!({"offline": false, "log_out": true, "login": "manual"}));
    stopped("manual_action");
    assert_eq!(stage.conversation_ids().len(), fetched_before);
    // They log in again, and it continues.
    stage.standin.control(json!({"login": "auto"}));
    assert_eq!(stage.run(&["connect", "chatgpt", "--wait", "1"]).code, 0);
    stage.retry_gaps();
    let live = stage.sync();
    assert_eq!(live["gaps_open"], 0, "{live}");
    assert_eq!(stage.conversation_ids().len(), 60);
    // A browser that does not exist, or does not start.
    for browser in ["/nowhere/browser", "/bin/false"] {
        let mut command = stage.command(&["sync", "--json"]);
        let ran = Ran::of(command.env("ANNALS_BROWSER", browser).output().unwrap());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["live"][0]["interaction"]["kind"], "failed", "{report}");
        assert!(report["sources"].as_array().unwrap().len() > 2, "files are told of all the same");
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    // A token that is renewed during a run is no reason to stop.
    stage.standin.control(json!({"changed": {"1": 1, "2": 1, "3": 1}, "delay_ms": 30}));
    let mut sync = stage.spawn(&["sync", "chatgpt", "--json"]);
    wait_for_requests(&stage, &mut sync, 1);
    stage.standin.control(json!({"new_token": true}));
    let ran = wait(sync);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.standin.count("outside"), 0);
}

/// Waits until this many requests came in, or the run ended.
fn wait_for_requests(stage: &Stage, sync: &mut Child, number: u64) {
    stage.standin.control(json!({"forget_counts": true}));
    let came = || -> u64 {
        let counts = stage.standin.counts()["by_path"].clone();
        counts.as_object().unwrap().values().filter_map(Value::as_u64).sum()
    };
    let started = Instant::now();
    while came() < number && sync.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(120), "nothing is asked for");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_that_dies_anywhere_is_resumed() {
    let stage = Stage::connected(json!({"conversations": 300, "archived": 2, "delay_ms": 3, "batch": false}));
    let all = 304;
    let mut fetched_before = 0;
    for round in 0..6u64 {
        let mut sync = stage.spawn(&["sync", "chatgpt"]);
        // Only the front page, part of the list, or some conversations.
        wait_for_requests(&stage, &mut sync, 1 + 12 * round);
        if round % 3 == 2 {
            // The user closes the browser.
            stage.kill_browsers();
            let ran = wait(sync);
            let is_reported =
                ran.stderr.contains("the browser was closed") || ran.stderr.contains("the browser exited");
            assert!(ran.code == 0 || is_reported, "{}", ran.stderr);
        } else {
            let _ = sync.kill();
            let _ = sync.wait();
        }
        let now = stage.conversation_ids().len();
        assert!(now >= fetched_before, "{now} after {fetched_before}");
        fetched_before = now;
    }
    println!("after six broken runs: {fetched_before} of {all}");
    stage.retry_gaps();
    let live = stage.sync();
    assert_eq!(live["gaps_open"], 0, "{live}");
    let expected: Vec<String> = (0..all).map(id_of).collect();
    assert_eq!(stage.conversation_ids(), expected);
    // Nothing twice: every conversation has one captured body.
    let versions = stage.records("conversation_versions");
    assert_eq!(versions.len(), all);
    assert!(versions.iter().all(|version| version["version"] == 1), "a body was captured twice");
    let served = stage.standin.counts()["served"].as_object().unwrap().clone();
    let times: u64 = served.values().map(|times| times.as_u64().unwrap()).sum();
    println!("{times} answers for {all} conversations");
    assert!(times < 2 * all as u64, "{times}");
    assert!(stage.browsers().is_empty());
}
