//! Live collection that is refused, broken off and killed: gaps heal, and nothing is lost or had twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::standin::{Stage, id_of, wait};

#[test]
fn thousands_of_refusals_heal_by_their_ids() {
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
    // It stops asking when the measure is used up: one group and its tries, and no hammering.
    assert!(refused <= 20, "{refused}");
    let details: Value = stage.standin.counts()["details"].clone();
    let asked = details.as_object().unwrap().len();
    println!("first run: {given} fetched, {} gaps, {refused} refusals, {asked} asked, {took:?}", all - given);
    // Nothing is given yet: a run that comes too early asks for nothing singly, or next to nothing.
    stage.standin.control(json!({"forget_counts": true}));
    let early = stage.sync();
    println!("too early: {} fetched, {} refusals", early["fetched"], stage.standin.count("refused"));
    assert_eq!((&early["fetched"], &early["gaps_open"]), (&json!(0), &json!(all - given)));
    assert!(stage.standin.count("refused") <= 20);
    // The limit is gone. Gaps are served by their ids: each once, and nothing else is asked for.
    stage.standin.control(json!({"bucket": null, "forget_counts": true}));
    let mut runs = 0;
    let mut fetched = 0;
    let started = Instant::now();
    while stage.gaps_open() > 0 {
        runs += 1;
        assert!(runs < 10, "gaps do not heal");
        stage.retry_gaps();
        let live = stage.sync();
        fetched += live["fetched"].as_u64().unwrap();
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
    // Only the first page of each of two lists, once in each run, and again at its end when there was news.
    assert!(stage.standin.count("GET conversations") <= 4 * runs);
    let expected: Vec<String> = (0..all).map(id_of).collect();
    assert_eq!(stage.conversations(), expected);
}

#[test]
fn what_fails_by_itself_is_a_gap_of_its_own() {
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
    // They are not asked for again before their time, and nothing else is either.
    stage.standin.control(json!({"forget_counts": true}));
    assert_eq!(stage.sync()["fetched"], 0);
    assert_eq!(stage.standin.counts()["details"], json!({}));
    stage.standin.control(json!({"slow": [], "broken": [], "garbage": [], "missing": [], "drop": []}));
    stage.retry_gaps();
    let healed = stage.sync_with(&["--gaps-only"]).1;
    assert_eq!((&healed["recovered"], &healed["gaps_open"]), (&json!(4), &json!(0)), "{healed}");
    assert_eq!(stage.conversations().len(), 30);
}

#[test]
fn a_list_that_breaks_off_moves_no_cursor() {
    let stage =
        Stage::connected(json!({"conversations": 250, "archived": 0, "projects": {}, "list_fail_at": 200}));
    let live = stage.sync();
    assert_eq!(live["fetched"], 200, "{live}");
    assert!(live["problems"][0].as_str().unwrap().contains("plain"));
    stage.standin.control(json!({"list_fail_at": null, "forget_counts": true}));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["unchanged"]), (&json!(50), &json!(200)), "{live}");
    assert_eq!(stage.conversations().len(), 250);
    assert!(stage.gaps().is_empty());
}

#[test]
fn the_owner_is_told_what_to_do_and_the_next_run_goes_on() {
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
    // A check that only a person can pass, in the middle.
    stage.standin.control(json!({"token_life": 3600, "new_token": true, "challenge_after": 30}));
    let live = stopped("manual_action");
    assert!(live["interaction"]["message"].as_str().unwrap().contains("check"), "{live}");
    let had = stage.conversations().len();
    assert!((1..60).contains(&had), "{had}");
    // The network is gone, then the owner is logged out.
    stage.standin.control(json!({"challenge_after": null, "offline": true}));
    stopped("unreachable");
    stage.standin.control(json!({"offline": false, "log_out": true, "login": "manual"}));
    stopped("manual_action");
    assert_eq!(stage.conversations().len(), had);
    // They log in again, and it goes on.
    stage.standin.control(json!({"login": "auto"}));
    assert_eq!(stage.run(&["connect", "chatgpt", "--wait", "1"]).code, 0);
    stage.retry_gaps();
    let live = stage.sync();
    assert_eq!(live["gaps_open"], 0, "{live}");
    assert_eq!(stage.conversations().len(), 60);
    // A token that is renewed while a run goes on is no reason to stop.
    stage.standin.control(json!({"changed": {"1": 1, "2": 1, "3": 1}, "delay_ms": 30}));
    let sync = stage.spawn(&["sync", "chatgpt", "--json"]);
    std::thread::sleep(Duration::from_millis(900));
    stage.standin.control(json!({"new_token": true}));
    let ran = wait(sync);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.standin.count("outside"), 0);
}

#[test]
fn a_run_that_dies_anywhere_is_gone_on_with() {
    let stage = Stage::connected(json!({"conversations": 300, "archived": 2, "delay_ms": 3, "batch": false}));
    let all = 304;
    let mut had = 0;
    for round in 0..6u64 {
        let mut sync = stage.spawn(&["sync", "chatgpt"]);
        std::thread::sleep(Duration::from_millis(600 + 350 * round));
        if round % 3 == 2 {
            // The owner closes the browser.
            stage.kill_browsers();
            let ran = wait(sync);
            let told =
                ran.stderr.contains("the browser was closed") || ran.stderr.contains("the browser ended");
            assert!(ran.code == 0 || told, "{}", ran.stderr);
        } else {
            let _ = sync.kill();
            let _ = sync.wait();
        }
        let now = stage.conversations().len();
        assert!(now >= had, "{now} after {had}");
        had = now;
    }
    println!("after six broken runs: {had} of {all}");
    stage.retry_gaps();
    let live = stage.sync();
    assert_eq!(live["gaps_open"], 0, "{live}");
    let expected: Vec<String> = (0..all).map(id_of).collect();
    assert_eq!(stage.conversations(), expected);
    // Nothing twice: every conversation has one captured body.
    let versions = stage.records("conversation_versions");
    assert_eq!(versions.len(), all);
    let served = stage.standin.counts()["served"].as_object().unwrap().clone();
    let times: u64 = served.values().map(|times| times.as_u64().unwrap()).sum();
    println!("{times} answers for {all} conversations");
    assert!(times < 2 * all as u64, "{times}");
    assert!(stage.browsers().is_empty());
}
