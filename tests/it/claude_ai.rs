//! Exports of Claude.ai: recognised by content, merged over exports, beside those of other providers.

use std::fs::{create_dir_all, write};

use serde_json::Value;

use annals_testkit::files::copy_folder;
use annals_testkit::{Bench, fixtures};

const OILING: &str = "5e550000-0000-4000-8000-000000000031";

fn text_of(entry: &Value) -> String {
    let blocks = entry["blocks"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_newer_export_changes_messages_and_takes_none_away() {
    let bench = fixtures::imported(&fixtures::case("claude_ai", "merged"));
    let session = bench.json(&["show", OILING])["session"].clone();
    assert_eq!((&session["title"], &session["source"]), (&"Oiling the dial".into(), &"claude_ai".into()));
    let shown = bench.json(&["show", OILING]);
    let texts: Vec<String> = shown["messages"].as_array().unwrap().iter().map(text_of).collect();
    assert!(texts.iter().any(|text| text.contains("And the hinge?")), "{texts:?}");
    for lost in ["Leave it dry", "brass can"] {
        let found = bench.json(&["search", &format!("source:claude.ai \"{lost}\"")]);
        assert_ne!(found["results"].as_array().map(Vec::len), Some(0), "{lost}: {found}");
    }
    let project = bench.json(&["records", "claude_ai/projects"]);
    let versions = project["records"].as_array().unwrap();
    assert!(versions.iter().any(|record| record["data"]["instructions"] == "Be very brief."), "{project}");
}

#[test]
fn exports_are_told_apart_by_content() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("downloads");
    copy_folder(&fixtures::case("claude_ai", "merged").join("exports/1"), &folder.join("a"));
    create_dir_all(folder.join("b")).unwrap();
    let other = r#"[{"id":"c1","conversation_id":"c1","title":"Gears","create_time":1772442000,"mapping":{"n":{"id":"n",
        "message":{"id":"n","author":{"role":"user"},"create_time":1772442000,"content":{"content_type":"text","parts":["Oil"]}},
        "parent":null,"children":[]}}}]"#;
    write(folder.join("b/conversations.json"), other).unwrap();
    bench.import(&[&folder]);
    let sources: Vec<String> =
        bench.sessions().iter().map(|session| session["source"].as_str().unwrap().to_owned()).collect();
    let count = |name: &str| sources.iter().filter(|source| *source == name).count();
    assert_eq!((count("claude_ai"), count("chatgpt")), (2, 1), "{sources:?}");
}
