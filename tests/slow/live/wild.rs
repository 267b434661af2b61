//! Live collection from accounts that look otherwise: wherever programs in the wild disagree about a shape, a run is
//! complete or has an honest gap, and nothing that lives ends.

use serde_json::{Value, json};

use annals_testkit::standin::{Stage, id_of};

/// Everything that the account of the second stand-in has.
const CONVERSATIONS: usize = 36 + 2 * 7;
const STREAMS: &[(&str, usize)] = &[
    ("memories", 4),
    ("custom_gpts", 1),
    ("projects", 7),
    ("shared_conversations", 3),
    ("automations", 2),
    ("tasks", 1),
    ("pins", 2),
    ("group_chats", 1),
    ("cloud_tasks", 1),
    ("library_files", 1),
    ("generated_images", 1),
    ("memory_summary", 1),
    ("canvas_texts", 1),
];

fn ended(stage: &Stage) -> Vec<String> {
    let records = STREAMS.iter().flat_map(|(stream, _)| stage.records(stream));
    let ended = records.filter(|record| !record["deleted_at"].is_null());
    ended.map(|record| record["key"].to_string()).collect()
}

fn assert_complete(stage: &Stage, what: &str) {
    let expected: Vec<String> = (0..CONVERSATIONS).map(id_of).collect();
    assert_eq!(stage.conversation_ids(), expected, "{what}");
    assert_eq!(stage.gaps(), [Value::Null; 0], "{what}");
    for (stream, count) in STREAMS {
        assert_eq!(stage.records(stream).len(), *count, "{what}: {stream}");
    }
    assert_eq!(ended(stage), [""; 0], "{what}");
}

#[test]
fn other_shapes_are_collected_completely() {
    let stage = Stage::wild(json!({}));
    let (code, live) = stage.sync_with(&["--with-files"]);
    assert_eq!(code, 0, "{live}");
    assert_complete(&stage, "first");
    // One item has no id: a warning, and nothing ends.
    assert!(live["problems"].to_string().contains("1 without an id"), "{live}");
    let data = |stream: &str| stage.records(stream)[0]["data"].clone();
    let gpt = data("custom_gpts");
    assert_eq!(
        (&gpt["instructions"], &gpt["tools"][0]["type"]),
        (&json!("You keep the light."), &json!("browser"))
    );
    assert_eq!(data("memory_summary")["text"], "Sails and draws.");
    assert_eq!(data("canvas_texts")["text"], "As it stands.");
    assert_eq!(data("canvas_texts")["conversation_id"], id_of(3));
    assert_eq!(data("cloud_tasks")["detail"]["current_user_turn"]["id"], "turn-1");
    assert_eq!(data("group_chats")["messages"][0]["text"], "Ahoy");
    assert_eq!(data("generated_images")["conversation_id"], id_of(1));
    // Files of projects, of the custom GPT, of the library, images, and what code made, each with its bytes.
    let files = stage.records("files");
    let file = |name: &str| {
        let found = files.iter().find(|record| record["key"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("{name}: {files:?}"))["data"].clone()
    };
    let sandbox = file("/mnt/data/the log.csv");
    assert_eq!((&sandbox["name"], &sandbox["message_id"]), (&json!("the log.csv"), &json!("4-a")));
    let ids = ["9", "1", "b", "c", "d", "e"].map(|letter| letter.repeat(24));
    for name in ids.iter().map(String::as_str).chain(["/mnt/data/the log.csv"]) {
        let file = file(name);
        assert!(file["archived_as"].is_string() && file["sha256"].is_string(), "{file}");
        assert!(file["name"].is_string() && file["size"].is_number(), "{file}");
    }
    assert_eq!(file(&ids[1])["gizmo_id"], "g-p-1");
    assert_eq!(file(&ids[3])["mime_type"], "image/png");
    assert_eq!(file(&ids[4])["created_at"], file(&ids[5])["created_at"]);
    let messages = stage.records("messages");
    let attached = |node: &str| {
        let message = messages.iter().find(|record| record["data"]["node_id"] == node).unwrap();
        message["data"]["attachment_ids"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(attached("4-a"), sandbox["id"].as_str().unwrap());
    assert_eq!((attached("4-t"), attached("4-u")), (format!("file-{}", ids[4]), format!("file_{}", ids[5])));
    assert_eq!(files.len(), 7 + 6, "{files:?}");
    // Records match their declaration.
    for stream in stage.audit()["streams"].as_array().unwrap() {
        let odd = [&stream["undeclared"], &stream["other_type"]];
        assert!(odd.iter().all(|odd| **odd == json!([])), "{stream}");
    }
    // Nothing changed: no more than the first page of each list, and nothing that is requested once a day.
    stage.standin.control(json!({"forget_counts": true}));
    let again = stage.sync();
    assert_eq!((&again["fetched"], &again["captured_bytes"]), (&json!(0), &json!(0)), "{again}");
    let counts = stage.standin.counts()["by_path"].clone();
    for daily in [
        "GET pins",
        "GET automations",
        "GET tasks",
        "GET wham/*",
        "POST files/*",
        "GET files/*",
        "GET models",
    ] {
        assert_eq!(counts[daily], Value::Null, "{counts}");
    }
    assert_eq!(stage.standin.count("bearer given away"), 0);
    // A day later everything is requested again, except tasks whose update time is unchanged.
    stage.sync_days_later(1);
    let counts = stage.standin.counts()["by_path"].clone();
    assert_eq!((&counts["GET pins"], &counts["GET wham/*"]), (&json!(1), &json!(1)), "{counts}");
    assert_complete(&stage, "a day later");
    assert_eq!(stage.bench.run(&["rebuild"]).code, 0);
    assert_complete(&stage, "rebuilt");
}

#[test]
fn each_other_shape_is_complete_by_itself() {
    for shapes in [
        json!({"list": "items", "list_cap": 28, "project_cursor": "text", "memories": "memories", "detail": "pages"}),
        json!({"list": "conversations", "project_cursor": "next_cursor", "memories": "pages", "gpt": "flat",
               "share": "id", "textdocs": "textdocs"}),
        json!({"list_most": 1, "batch_most": 1, "gpt": "bare", "nameless": false}),
    ] {
        let stage = Stage::wild(shapes.clone());
        stage.sync();
        assert_complete(&stage, &shapes.to_string());
        let gpt = stage.records("custom_gpts")[0]["data"].clone();
        assert_eq!(gpt["instructions"], "You keep the light.", "{shapes}: {gpt}");
        assert_eq!(gpt["description"], "Keeps the light", "{shapes}: {gpt}");
    }
}

#[test]
fn what_nobody_knows_is_a_gap_and_ends_nothing() {
    let stage = Stage::wild(json!({}));
    stage.sync();
    assert_complete(&stage, "before");
    let mut days = 0;
    for (shapes, gaps) in [
        (json!({"list": "unknown"}), 1),
        (json!({"project_cursor": "unknown"}), 1),
        (json!({"project_cursor": "has_more"}), 1),
        (json!({"memories": "unknown"}), 1),
        (json!({"rest": "unknown"}), 8),
    ] {
        stage.standin.control(json!({"shapes": shapes}));
        days += 1;
        let live = stage.sync_days_later(days);
        let open = stage.gaps();
        let kinds = open.iter().filter(|gap| gap["why"] == "shape_changed").count();
        assert!(kinds >= gaps && kinds == open.len(), "{shapes}: {open:?} {live}");
        assert_eq!((stage.conversation_ids().len(), ended(&stage)), (CONVERSATIONS, Vec::new()), "{shapes}");
        stage.standin.control(json!({"shapes": {}}));
        stage.make_gaps_due();
        days += 1;
        stage.sync_days_later(days);
        assert_complete(&stage, &shapes.to_string());
    }
    // What is gone was not there: no gap, nothing ends, and it costs one request a day.
    stage.standin.control(json!({"shapes": {"rest": "gone"}, "forget_counts": true}));
    days += 1;
    stage.sync_days_later(days);
    stage.sync_days_later(days);
    let counts = stage.standin.counts()["by_path"].clone();
    for once in [
        "GET pins",
        "GET automations",
        "GET tasks",
        "GET wham/*",
        "GET calpico/*",
        "POST files/*",
        "GET my/*",
    ] {
        assert_eq!(counts[once], 1, "{once}: {counts}");
    }
    assert_complete(&stage, "gone");
}

/// Links to the page itself get what the page would send; nobody else does.
#[test]
fn links_are_followed_with_what_they_need_and_nothing_more() {
    for link in ["bearer", "redirect", "url", "signed"] {
        let stage = Stage::wild(json!({"link": link}));
        let (code, live) = stage.sync_with(&["--with-files"]);
        assert_eq!((code, &live["files"]), (0, &json!(13)), "{link}: {live}");
        assert_eq!(stage.gaps(), [Value::Null; 0], "{link}");
        if link == "redirect" {
            assert_eq!(stage.standin.count("bearer given away"), 0);
        }
    }
}

/// Only the project of a conversation is in effect in it.
#[test]
fn the_rules_of_other_projects_are_not_in_effect() {
    let stage = Stage::wild(json!({}));
    stage.sync();
    let in_effect = |number: usize| -> Vec<String> {
        let shown = stage.bench.json(&["show", &id_of(number)]);
        let items = shown["in_force"].as_array().unwrap().iter();
        let rules =
            items.filter(|item| ["projects", "custom_gpts"].contains(&item["kind"].as_str().unwrap()));
        rules.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(in_effect(0), [""; 0]);
    assert_eq!(in_effect(36 + 2), ["g-p-1"]);
}
