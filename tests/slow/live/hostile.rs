//! A provider that responds in unexpected ways: one item that cannot be fetched never blocks the others, and nothing
//! ends that did not end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use annals_testkit::standin::{Stage, id_of, wait};

fn small(more: Value) -> Value {
    let mut world = json!({"conversations": 8, "archived": 0, "projects": {}});
    world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world
}

#[test]
fn a_broken_or_redirected_request_is_a_gap_and_all_others_are_fetched() {
    let of = |number: usize| format!("/conversation/{}", id_of(number));
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let stage = Stage::connected(small(json!({"batch": false, "odd": {
        of(7): {"cut": true, "body": "{\"title\":"},
        of(6): {"status": 302, "location": "http://127.0.0.1:1/elsewhere"},
        of(5): {"body": nested},
        of(4): {"body": "[1,2]"},
        of(3): {"body": "{\"mapping\":{\"r\":{\"parent\":null}},\"current_node\":\"r\" \"x\"}"},
    }})));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(3), &json!(5)), "{live}");
    assert_eq!(stage.conversation_ids(), [0, 1, 2].map(id_of));
    let gaps = stage.gaps();
    let why = |number: usize| gaps.iter().find(|gap| gap["key"] == id_of(number)).unwrap()["why"].clone();
    assert_eq!(
        [7, 6, 5, 4, 3].map(why),
        ["timeout", "timeout", "malformed", "malformed", "malformed"].map(Value::from)
    );
    // No part of the session went to the other address, and what recovers is fetched.
    stage.standin.control(json!({"odd": {}}));
    let healed = stage.retry_gaps();
    assert_eq!((&healed["recovered"], &healed["open"]), (&json!(5), &json!(0)), "{healed}");
    assert_eq!(stage.conversation_ids().len(), 8);
}

#[test]
fn a_strange_or_foreign_listing_ends_nothing() {
    let stage = Stage::connected(small(json!({"projects": {"g-p-aurora": 1, "g-p-borealis": 1}})));
    stage.sync();
    let ended = |stream: &str| -> Vec<String> {
        let records = stage.records(stream).into_iter();
        let ended = records.filter(|record| !record["deleted_at"].is_null());
        ended.map(|record| record["key"].as_str().unwrap().to_owned()).collect()
    };
    let project = "{\"gizmo\":{\"gizmo\":{\"id\":\"g-p-aurora\"}}}";
    let sidebar = "/gizmos/snorlax/sidebar";
    let table = [
        // Ids have other names; only some have one; pages repeat before everything was listed.
        ("memories", json!({"/memories": {"body": "{\"memories\":[{\"memory_id\":\"mem-1\"}]}"}})),
        (
            "memories",
            json!({"/memories": {"body": "{\"memories\":[{\"id\":\"mem-1\"},{\"uuid\":\"mem-2\"}]}"}}),
        ),
        ("projects", json!({sidebar: {"body": "{\"items\":[{\"gizmo\":{}}],\"cursor\":null}"}})),
        ("projects", json!({sidebar: {"body": format!("{{\"items\":[{project}],\"cursor\":\"again\"}}")}})),
    ];
    for (stream, odd) in table {
        stage.standin.control(json!({"odd": odd}));
        let live = stage.sync();
        let warnings = live["problems"].to_string();
        assert!(warnings.contains(&format!("{stream}: ")), "{odd}: {live}");
        assert_eq!(ended(stream), [""; 0], "{odd}");
        assert_eq!(stage.gaps().len(), 1, "{odd}");
        stage.standin.control(json!({"odd": {}}));
        stage.sync();
        assert!(stage.gaps().is_empty(), "{odd}");
    }
    // A session without an account leaves the archive with its owner, and so does disconnecting.
    stage.standin.control(json!({"user": null, "account": null}));
    stage.sync_with(&[]);
    stage.standin.control(json!({"user": "user-eve", "account": "account-9", "memories": []}));
    let (code, live) = stage.sync_with(&[]);
    assert_eq!(code, 2, "{live}");
    assert_eq!(stage.run(&["connect", "chatgpt", "--remove"]).code, 0);
    assert_eq!(stage.run(&["connect", "chatgpt", "--wait", "1"]).code, 0);
    let (code, live) = stage.sync_with(&[]);
    assert_eq!(code, 2, "{live}");
    assert!(live["interaction"]["message"].as_str().unwrap().contains("a different account"), "{live}");
    assert_eq!(ended("memories"), [""; 0]);
}

#[test]
fn a_list_in_an_odd_order_or_in_circles_loses_nothing() {
    // One claims to have changed in the future: that must not affect the others.
    let stage =
        Stage::connected(small(json!({"conversations": 250, "times": {"5": "2099-01-01T00:00:00.000000Z"}})));
    assert_eq!(stage.sync()["fetched"], 250);
    // A pinned one comes before everything new, which is more than a page.
    let changed: serde_json::Map<String, Value> =
        (100..250).map(|number| (number.to_string(), json!(1))).collect();
    let order: Vec<usize> = [5, 1].into_iter().chain((100..250).rev()).chain(2..5).chain(6..100).collect();
    stage.standin.control(json!({"changed": changed, "order": order}));
    let live = stage.sync();
    assert_eq!(live["fetched"], 150, "{live}");
    // The second page repeats the first: what comes after it is not skipped.
    let stage = Stage::connected(small(json!({"conversations": 250})));
    let items: Vec<Value> = (150..250).map(|number| json!({"id": id_of(number)})).collect();
    let page = json!({"items": items, "limit": 100}).to_string();
    stage
        .standin
        .control(json!({"odd": {"/conversations?offset=100&limit=100&order=updated": {"body": page}}}));
    let live = stage.sync();
    assert_eq!(live["fetched"], 100, "{live}");
    assert!(live["problems"].to_string().contains("plain"), "{live}");
    assert_eq!(stage.gaps().len(), 1);
    stage.standin.control(json!({"odd": {}}));
    assert_eq!(stage.sync()["fetched"], 150);
    assert_eq!((stage.conversation_ids().len(), stage.gaps().len()), (250, 0));
}

/// The provider says how long to wait: a little is waited for, more is left to another run.
#[test]
fn the_wait_that_a_provider_asks_for_is_respected() {
    let list = "/conversations?offset=0&limit=100&order=updated";
    for (after, requests) in [(1, 4), (100_000, 1)] {
        let stage = Stage::connected(small(json!({})));
        let refused = json!({"status": 429, "body": "{}", "after": after});
        stage.standin.control(json!({"odd": {list: refused}, "forget_counts": true}));
        stage.sync();
        let gaps = stage.gaps();
        assert_eq!((gaps.len(), &gaps[0]["why"]), (1, &json!("rate_limited")), "{gaps:?}");
        // And one for the list of archived conversations.
        assert_eq!(stage.standin.counts()["by_path"]["GET conversations"], requests + 1, "{after}");
    }
}

#[test]
fn deleted_items_leave_no_permanent_gap() {
    let stage = Stage::connected(small(json!({
        "projects": {"g-p-aurora": 2},
        "odd": {"/gizmos/g-p-aurora/conversations": {"status": 500}, "/models": {"status": 500}},
    })));
    assert_eq!(stage.sync()["fetched"], 8);
    assert_eq!(stage.gaps().len(), 2);
    stage.standin.control(json!({"projects": {}, "odd": {"/models": {"status": 404}}}));
    stage.make_gaps_due();
    stage.sync();
    assert!(stage.gaps().is_empty());
}

#[test]
fn long_conversations_are_fetched_page_by_page() {
    let stage = Stage::connected(json!({
        "conversations": 3, "archived": 0, "projects": {}, "shape": "pages", "changed": {"2": 300},
        "bucket": {"capacity": 4, "per_minute": 400},
    }));
    let (code, live) = stage.sync_with(&["--wait"]);
    assert_eq!((code, &live["fetched"], &live["gaps_open"]), (0, &json!(3), &json!(0)), "{live}");
    let sessions = stage.bench.sessions();
    let long = sessions.iter().find(|session| session["session_id"] == id_of(2)).unwrap();
    assert_eq!(long["message_count"], 602);
    // Seven pages, each fetched once.
    assert_eq!(stage.standin.counts()["served"][id_of(2)], 7);
}

#[test]
fn dead_links_are_gaps_and_a_retry_fetches_them() {
    let links = ["/backend-api/me", "file:///etc/passwd", "http://[bad", "http://127.0.0.1:1/x"];
    let mut odd = serde_json::Map::new();
    for (link, number) in links.iter().zip([1, 5, 9, 13]) {
        let body = json!({"status": "success", "download_url": link}).to_string();
        odd.insert(format!("/files/download/file-{number:024}"), json!({"body": body}));
    }
    odd.insert(format!("/files/download/file-{:024}", 17), json!({"body": "[1]"}));
    let stage = Stage::connected(small(json!({"conversations": 22, "odd": odd})));
    let (code, live) = stage.sync_with(&["--with-files"]);
    assert_eq!((code, &live["fetched"], &live["files"]), (0, &json!(22), &json!(1)), "{live}");
    assert!(stage.gaps().iter().all(|gap| gap["stream"] == "files"));
    assert_eq!(stage.gaps().len(), 5);
    stage.standin.control(json!({"odd": {}}));
    let healed = stage.retry_gaps();
    assert_eq!((&healed["recovered"], &healed["open"]), (&json!(5), &json!(0)), "{healed}");
}

#[test]
fn given_up_items_are_not_open_and_return_when_they_change() {
    let stage = Stage::connected(small(json!({"missing": [3]})));
    for _ in 0..3 {
        stage.sync();
        stage.make_gaps_due();
    }
    let live = stage.sync();
    assert_eq!((&live["gaps_open"], &live["seconds_left"]), (&json!(0), &json!(0)), "{live}");
    assert!(stage.gaps().is_empty());
    let audit = stage.audit();
    assert_eq!(audit["files"]["left_out"], 1, "it is told all the same: {}", audit["files"]);
    stage.standin.control(json!({"missing": [], "changed": {"3": 1}}));
    assert_eq!(stage.sync()["fetched"], 1);
    assert_eq!(stage.conversation_ids().len(), 8);
}

#[test]
fn large_conversations_arrive_complete() {
    let text = "\\u0000\\ud800 lamp \\\"oil\\\" ".repeat(3 << 18);
    let id = id_of(7);
    let body = format!(
        "{{\"mapping\":{{\"r\":{{\"parent\":null,\"message\":{{\"id\":\"r\",\"author\":{{\"role\":\"user\"}},\
         \"content\":{{\"content_type\":\"text\",\"parts\":[\"{text}\"]}}}}}}}},\"current_node\":\"r\"}}"
    );
    let stage = Stage::connected(small(
        json!({"batch": false, "odd": {format!("/conversation/{id}"): {"body": body}}}),
    ));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(8), &json!(0)), "{live}");
    assert_eq!(stage.conversation_ids().len(), 8);
    // It does not contain its own id: the requester knows it.
    assert!(stage.conversation_ids().contains(&id));
}

#[test]
fn odd_ids_cannot_redirect_requests() {
    let long = "x".repeat(100_000);
    let ids = ["..", ".", "", "a/b", "../../login", "a\nb?x=1#y", "\u{0}", &long, &id_of(3)];
    let items: Vec<Value> =
        ids.iter().map(|id| json!({"id": id, "update_time": "2026-03-01T12:00:00Z"})).collect();
    let page = json!({"items": items}).to_string();
    let stage = Stage::connected(small(json!({"odd": {
        "/conversations": {"body": page},
        // Where dots would lead: to a page, which is what checks look like.
        "/": {"type": "text/html", "body": "<!doctype html><title>Lighthouses</title>"},
        "/conversation/": {"type": "text/html", "body": "<!doctype html><title>Lighthouses</title>"},
    }})));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(1), &json!(8)), "{live}");
    assert_eq!(stage.conversation_ids(), [id_of(3)]);
    assert_eq!(stage.standin.count("outside"), 0);
}

#[cfg(unix)]
#[test]
fn a_browser_that_crashes_at_startup_is_restarted_once() {
    let stage = Stage::connected(small(json!({})));
    let folder = stage.bench.folder.path();
    let (mark, script) = (folder.join("crashed"), folder.join("browser.sh"));
    let real = std::env::var("ANNALS_BROWSER").unwrap_or_else(|_| "chromium".to_owned());
    let text = format!(
        "#!/bin/sh\nif [ ! -e {0} ]; then touch {0}; kill -SEGV $$; fi\nexec {real} \"$@\"\n",
        mark.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = stage.command(&["sync", "chatgpt"]);
    let ran = annals_testkit::Ran::of(command.env("ANNALS_BROWSER", &script).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(mark.exists());
    assert_eq!(stage.conversation_ids().len(), 8);
}

/// Waits until `count` conversations were requested.
fn wait_for_conversations(stage: &Stage, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while stage.standin.count("GET conversation/*") < count {
        assert!(Instant::now() < deadline, "nothing is asked for");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_lost_network_is_reported_and_the_next_run_resumes() {
    let stage = Stage::connected(small(json!({"conversations": 80, "batch": false, "delay_ms": 50})));
    let sync = stage.spawn(&["sync", "chatgpt", "--json"]);
    wait_for_conversations(&stage, 20);
    stage.standin.control(json!({"offline": true}));
    let ran = wait(sync);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["live"][0]["interaction"]["kind"], "unreachable", "{answer}");
    let fetched = stage.conversation_ids().len();
    assert!((1..80).contains(&fetched), "{fetched}");
    stage.standin.control(json!({"offline": false, "delay_ms": 0}));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(80 - fetched), &json!(0)), "{live}");
}

#[test]
fn a_page_that_reloads_or_navigates_away_stops_nothing() {
    let world = json!({"conversations": 80, "batch": false, "delay_ms": 60, "refresh": "1"});
    let stage = Stage::connected(small(world));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(80), &json!(0)), "{live}");
    // To another address of the same page, and to one where the user is unknown.
    let changed: serde_json::Map<String, Value> =
        (0..80).map(|number| (number.to_string(), json!(1))).collect();
    stage.standin.control(json!({"refresh": "1; url=/help", "changed": changed}));
    assert_eq!(stage.sync()["fetched"], 80);
    let changed: serde_json::Map<String, Value> =
        (0..80).map(|number| (number.to_string(), json!(2))).collect();
    let elsewhere = format!("1; url=http://localhost:{}/", stage.standin.port);
    stage.standin.control(json!({"refresh": elsewhere, "changed": changed}));
    let (code, live) = stage.sync_with(&[]);
    assert_eq!(code, 2, "{live}");
    assert_eq!(live["interaction"]["kind"], "manual_action", "{live}");
    stage.standin.control(json!({"refresh": null}));
    stage.retry_gaps();
    stage.sync();
    let versions = stage.records("conversation_versions");
    assert_eq!((stage.conversation_ids().len(), versions.len()), (80, 80));
    assert!(versions.iter().all(|version| version["version"] == 3), "each body once, and none left out");
}

#[test]
fn an_expired_session_is_renewed_or_the_user_is_asked() {
    let stage = Stage::connected(small(json!({"conversations": 80, "batch": false, "delay_ms": 50})));
    let sync = stage.spawn(&["sync", "chatgpt", "--json"]);
    wait_for_conversations(&stage, 20);
    stage.standin.control(json!({"expire": true, "renews": false}));
    let ran = wait(sync);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let interaction = &answer["live"][0]["interaction"];
    assert_eq!(
        (&interaction["kind"], &interaction["message"]),
        (&json!("manual_action"), &json!("ChatGPT: log in again"))
    );
    let fetched = stage.conversation_ids().len();
    assert!((1..80).contains(&fetched), "{fetched}");
    // It can be renewed, and is, once more in the middle.
    stage.standin.control(json!({"renews": true, "forget_counts": true}));
    let sync = stage.spawn(&["sync", "chatgpt", "--json"]);
    wait_for_conversations(&stage, 20);
    stage.standin.control(json!({"expire": true}));
    let ran = wait(sync);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(stage.standin.count("unauthorised") > 0);
    assert_eq!((stage.conversation_ids().len(), stage.gaps().len()), (80, 0));
}
