//! Many exports of the same conversations: nothing twice, nothing lost, in any order.

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::checks::timeless;
use annals_testkit::corpora::chatgpt::{Conversation, Generation, bytes_of, list_of, text_message, workshop};

/// Imports conversations of one export and returns its counts.
fn import(bench: &Bench, generation: Generation, talks: &[Conversation]) -> Value {
    let path = bench.folder.path().join("conversations.json");
    std::fs::write(&path, bytes_of(&list_of(generation, talks))).unwrap();
    let report = bench.import(&[&path]);
    json!([report["sources"][0]["new"], report["sources"][0]["changed"], report["sources"][0]["unchanged"]])
}

fn shown(bench: &Bench, id: &str) -> Value {
    bench.json(&["show", id])
}

/// Texts of the current branch.
fn texts(bench: &Bench, id: &str) -> Vec<String> {
    let document = shown(bench, id);
    let blocks =
        document["messages"].as_array().unwrap().iter().flat_map(|entry| entry["blocks"].as_array().unwrap());
    blocks
        .filter(|block| block["type"] == "text")
        .map(|block| block["text"].as_str().unwrap().to_owned())
        .collect()
}

fn versions(bench: &Bench, id: &str) -> usize {
    bench.run(&["records", "chatgpt/conversation_versions", "--key", id]).stdout.lines().count()
}

/// Everything but the accounts of imports and the origins of captures.
fn content(bench: &Bench, id: &str) -> Value {
    let mut document = shown(bench, id);
    document["session"]["native"]["provenance"] = Value::Null;
    document["parts"] = Value::Null;
    serde_json::from_str(&timeless(&document.to_string())).unwrap()
}

#[test]
fn importing_an_export_twice_adds_nothing() {
    let bench = Bench::new();
    let talks = [workshop()];
    assert_eq!(import(&bench, Generation::Second, &talks), json!([1, 0, 0]));
    let before = bench.everything();
    assert_eq!(import(&bench, Generation::Second, &talks), json!([0, 0, 1]));
    assert_eq!(bench.everything(), before);
    assert_eq!(versions(&bench, &talks[0].id), 1);
}

#[test]
fn a_newer_export_adds_and_an_older_one_changes_nothing() {
    let older = workshop();
    let mut newer = workshop();
    newer.title = json!("Oiling, continued");
    newer.updated += 1_000.0;
    newer.turn("a4", "later", "a lathe");
    let bench = Bench::new();
    import(&bench, Generation::Second, std::slice::from_ref(&newer));
    let before = content(&bench, &newer.id);
    assert_eq!(import(&bench, Generation::Second, std::slice::from_ref(&older)), json!([0, 1, 0]));
    assert_eq!(content(&bench, &newer.id), before);
    assert_eq!(versions(&bench, &newer.id), 2);
    // In the other order the result is the same.
    let other = Bench::new();
    import(&other, Generation::Second, std::slice::from_ref(&older));
    assert_eq!(import(&other, Generation::Second, std::slice::from_ref(&newer)), json!([0, 1, 0]));
    assert_eq!(content(&other, &newer.id), before);
    let session = &shown(&other, &newer.id)["session"];
    assert_eq!(session["title"], "Oiling, continued");
    // The capture that each field came from is reported.
    let provenance = &session["native"]["provenance"];
    assert_eq!(
        (&provenance["fields"]["title"], provenance["captures"].as_array().unwrap().len()),
        (&json!(1), 2)
    );
    for bench in [&bench, &other] {
        let before = bench.everything();
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        assert_eq!(bench.everything(), before);
    }
}

#[test]
fn a_poorer_export_takes_nothing_away() {
    let rich = workshop();
    let mut poor = workshop();
    poor.updated += 5_000.0;
    poor.title = json!("Renamed later");
    poor.turn("a4", "later", "a lathe");
    let bench = Bench::new();
    import(&bench, Generation::Second, std::slice::from_ref(&rich));
    let calls = |bench: &Bench| bench.run(&["records", "chatgpt/tool_calls"]).stdout;
    let before = calls(&bench);
    assert_eq!(before.lines().count(), 4);
    import(&bench, Generation::Third, std::slice::from_ref(&poor));
    assert_eq!(calls(&bench), before, "calls stay as they were");
    let session = shown(&bench, &rich.id)["session"].clone();
    assert_eq!((&session["title"], &session["tool_call_count"]), (&json!("Renamed later"), &json!(4)));
    // Fields that the newer export lacks stay from the richer one.
    assert_eq!(session["native"]["gizmo_type"], "snorlax");
    assert_eq!(session["native"]["provenance"]["fields"]["gizmo_type"], 0);
    assert_eq!(session["native"]["provenance"]["fields"]["title"], 1);
    let texts = texts(&bench, &rich.id);
    assert!(texts.iter().any(|text| text.contains("about a lathe")), "{texts:?}");
    // The other way round, the tools come with the richer one.
    let other = Bench::new();
    import(&other, Generation::Third, std::slice::from_ref(&poor));
    assert_eq!(calls(&other).lines().count(), 0);
    assert_eq!(shown(&other, &rich.id)["session"]["native"]["tool_data"], "not in the export");
    import(&other, Generation::Second, std::slice::from_ref(&rich));
    assert_eq!(calls(&other).lines().count(), 4);
    assert_eq!(shown(&other, &rich.id)["session"]["title"], "Renamed later");
    assert_eq!(shown(&other, &rich.id)["messages"], shown(&bench, &rich.id)["messages"]);
    for bench in [&bench, &other] {
        let before = bench.everything();
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        assert_eq!(bench.everything(), before);
    }
}

#[test]
fn a_message_that_was_being_written_is_replaced_and_found_once() {
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-00000000000c", "Half an answer");
    talk.node("u", "client-created-root", text_message("u", "user", json!(["count the cogs"])));
    talk.node("a", "u", text_message("a", "assistant", json!(["there are sevent"])));
    let mut done = talk.clone();
    talk.nodes[2].2["status"] = json!("in_progress");
    done.nodes[2].2["content"]["parts"] = json!(["there are seventeen cogs"]);
    done.updated += 10.0;
    let bench = Bench::new();
    import(&bench, Generation::Second, std::slice::from_ref(&talk));
    import(&bench, Generation::Second, std::slice::from_ref(&done));
    assert_eq!(texts(&bench, &talk.id), ["count the cogs", "there are seventeen cogs"]);
    assert_eq!(bench.sessions()[0]["message_count"], 2);
    assert_eq!(bench.run(&["search", "sevent"]).code, 1, "what was replaced is not found");
    assert_eq!(bench.json(&["search", "seventeen"])["results"][0]["passages"].as_array().unwrap().len(), 1);
    // Missing from an export does not mean deleted.
    let other = Conversation::new("6801aaaa-0000-4000-8000-00000000000d", "Another");
    import(&bench, Generation::Second, &[other]);
    assert_eq!(bench.sessions().len(), 2);
    assert_eq!(bench.sessions()[0]["source_gone"], false);
}

#[test]
fn the_branch_that_counts_is_the_one_that_is_shown() {
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-00000000000e", "Forks of a road");
    talk.turn("client-created-root", "one", "the left road");
    talk.turn("client-created-root", "two", "the right road");
    talk.turn("two-assistant", "three", "further right");
    let bench = Bench::new();
    import(&bench, Generation::Second, std::slice::from_ref(&talk));
    assert_eq!(bench.sessions()[0]["message_count"], 4);
    let mut back = talk.clone();
    back.current = Some("one-assistant".into());
    back.updated += 1.0;
    import(&bench, Generation::Second, std::slice::from_ref(&back));
    assert_eq!(bench.sessions()[0]["message_count"], 2);
    assert_eq!(texts(&bench, &talk.id), ["the left road", "about the left road"]);
    assert_eq!(shown(&bench, &talk.id)["session"]["native"]["node_count"], 7);
    let before = bench.everything();
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(bench.everything(), before);
}
