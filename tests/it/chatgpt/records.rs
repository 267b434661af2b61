//! Records of ChatGPT: ids that join, times as RFC 3339, normalized fields, and schemas that the audit can hold them to.

use std::collections::HashMap;

use serde_json::{Value, json};

use annals_testkit::corpora::chatgpt::{
    Conversation, Export, Generation, bytes_of, export, message, oddities, text_message, workshop, zip,
};
use annals_testkit::{Bench, fixtures};

use super::{WORKSHOP, file};

fn records(bench: &Bench, stream: &str) -> Vec<Value> {
    let ran = bench.run(&["records", &format!("chatgpt/{stream}")]);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn imported(files: &Export) -> Bench {
    let bench = Bench::new();
    bench.import(&[&file(&bench, "e.zip", &zip(files))]);
    bench
}

fn audit(bench: &Bench) -> Value {
    let audit = bench.json(&["audit"]);
    audit["sources"].as_array().unwrap().iter().find(|audit| audit["source"] == "chatgpt").unwrap().clone()
}

/// Messages of a conversation by the id of their node.
fn by_node(bench: &Bench, session: &str) -> HashMap<String, Value> {
    let messages = records(bench, "messages").into_iter().filter(|record| record["session_id"] == session);
    messages
        .map(|record| (record["data"]["node_id"].as_str().unwrap().to_owned(), record["data"].clone()))
        .collect()
}

#[test]
fn messages_join_by_the_ids_of_their_nodes() {
    let mut talk = workshop();
    // A node and its message have different ids.
    let mut sent = text_message("message-of-k1", "user", json!(["Look at this wheel."]));
    sent["metadata"]["attachments"] = json!([{"id": "file-PhotoOfTheWheel000001", "name": "wheel.png"}]);
    talk.node("k1", "a4", sent);
    let bench = imported(&export(Generation::Second, &[talk, oddities()]));
    let nodes = by_node(&bench, WORKSHOP);
    for data in nodes.values() {
        let parent = &data["parent_node_id"];
        assert!(parent.is_null() || nodes.contains_key(parent.as_str().unwrap()), "{data}");
        assert_eq!((&data["id"], &data["parent_id"]), (&data["node_id"], parent), "{data}");
        for child in data["children_ids"].as_array().unwrap() {
            assert_eq!(nodes[child.as_str().unwrap()]["parent_id"], data["id"], "{data}");
        }
        assert_eq!(data["conversation_id"], WORKSHOP);
    }
    for call in records(&bench, "tool_calls") {
        let message = call["data"]["message_id"].as_str().unwrap();
        assert!(call["session_id"] != WORKSHOP || nodes.contains_key(message), "{call}");
    }
    for key in [format!("{WORKSHOP}/k1"), "k1".to_owned()] {
        let found = bench.json(&["records", "chatgpt/messages", "--key", &key]);
        assert_eq!(found["records"][0]["key"], format!("{WORKSHOP}/k1"), "{found}");
        assert_eq!(found["records"].as_array().unwrap().len(), 1);
    }
    let conversations = records(&bench, "conversations");
    let of = |id: &str| &conversations.iter().find(|record| record["key"] == id).unwrap()["data"];
    assert!(nodes.contains_key(of(WORKSHOP)["current_node"].as_str().unwrap()));
    for record in records(&bench, "files").iter().filter(|record| record["session_id"] == WORKSHOP) {
        let node = &nodes[record["data"]["message_id"].as_str().unwrap()];
        assert!(node["attachment_ids"].as_array().unwrap().contains(&record["key"]), "{record}");
    }
    let answer = &nodes["a1"];
    assert_eq!(
        [&answer["content_type"], &answer["model_slug"], &answer["finish_reason"], &answer["create_time"]],
        ["text", "gpt-5", "stop", "2025-10-09T08:54:09.000Z"],
    );
    assert_eq!((&answer["update_time"], &answer["attachment_ids"]), (&Value::Null, &json!([])));
    assert_eq!(answer["citations"][0]["sources"][0]["url"], "https://oil.example/guide");
    assert_eq!(nodes["u1"]["attachment_ids"], json!(["file-PhotoOfTheGears000001"]));
    let odd = by_node(&bench, &oddities().id);
    assert_eq!(
        odd["o8"]["attachment_ids"],
        json!(["file_0000000012345678abcdef00", "file_00000000aaaabbbbccccdddd"])
    );
    assert_eq!(odd["client-created-root"]["content_type"], Value::Null);
}

#[test]
fn citations_have_their_text() {
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-000000000020", "Quotes");
    let mut quoted =
        text_message("q", "assistant", json!(["Ink dries slowly\u{E200}cite\u{E202}x\u{E201}."]));
    quoted["metadata"]["content_references"] = json!([
        {"type": "webpage", "matched_text": "\u{E200}cite\u{E202}x\u{E201}", "start_idx": 16, "end_idx": 23,
         "title": "Ink", "url": "https://ink.example/", "snippet": "Ink takes a day to dry."},
        {"type": "grouped_webpages", "matched_text": "\u{E200}cite\u{E202}y\u{E201}", "start_idx": 16, "end_idx": 23,
         "alt": "([Paper](https://paper.example/))",
         "items": [{"title": "Paper", "url": "https://paper.example/"}]},
        {"type": "file", "matched_text": "\u{E203}dries slowly\u{E204}", "start_idx": 4, "end_idx": 16}]);
    talk.node("q", "client-created-root", quoted);
    let mut older = text_message("p", "assistant", json!(["As the book says【1†source】."]));
    older["metadata"]["citations"] = json!([{"start_ix": 16, "end_ix": 26, "citation_format_type": "tether_og",
        "metadata": {"title": "Book", "url": "https://book.example/", "text": "Write with care."}}]);
    talk.node("p", "q", older);
    let bench = imported(&export(Generation::Second, &[talk.clone()]));
    let nodes = by_node(&bench, &talk.id);
    let texts = |node: &str| -> Vec<Value> {
        let citations = nodes[node]["citations"].as_array().unwrap().iter();
        citations.map(|citation| citation["text"].clone()).collect()
    };
    assert_eq!(texts("q"), ["Ink takes a day to dry.", "([Paper](https://paper.example/))", "dries slowly"]);
    assert_eq!(texts("p"), ["Write with care."]);
}

#[test]
fn conversations_have_the_clients_names_and_rfc_3339_times() {
    let mut talk = workshop();
    talk.fields.insert("is_archived".into(), json!(true));
    let bench = imported(&export(Generation::Second, &[talk, oddities()]));
    let conversations = records(&bench, "conversations");
    let of = |id: &str| &conversations.iter().find(|record| record["key"] == id).unwrap()["data"];
    let data = of(WORKSHOP);
    assert_eq!(data["create_time"], "2025-10-09T08:53:20.000Z");
    assert_eq!(data["update_time"], "2025-10-09T08:55:00.000Z");
    assert_eq!((&data["is_archived"], &data["is_starred"]), (&json!(true), &json!(true)));
    assert_eq!((&data["archived"], &data["starred"]), (&json!(true), &json!(true)));
    assert_eq!(of(&oddities().id)["is_archived"], false);
    let manifest = bench.json(&["manifest", "chatgpt"]);
    let stream =
        manifest["streams"].as_array().unwrap().iter().find(|it| it["name"] == "conversations").unwrap();
    assert_eq!(stream["cursor_field"], "update_time");
    assert_eq!(stream["schema"]["properties"]["update_time"]["type"], json!(["string", "null"]));
    let since =
        |day: &str| bench.run(&["records", "chatgpt/conversations", "--since", day]).stdout.lines().count();
    assert_eq!((since("2025-10-09"), since("2025-10-10")), (2, 0));
}

#[test]
fn a_canvas_is_keyed_by_its_document() {
    let mut files = export(Generation::Second, &[workshop()]);
    let bench = imported(&files);
    let found = records(&bench, "canvas_documents");
    assert_eq!((found.len(), &found[0]["key"]), (1, &json!("doc-1")), "{found:?}");
    let data = &found[0]["data"];
    assert_eq!((&data["title"], &data["type"]), (&json!("oiling_plan"), &json!("document")));
    assert_eq!((&data["conversation_id"], &data["node_id"]), (&json!(WORKSHOP), &json!("c4")));
    // The same document in a separate file is another version of it.
    let text = json!([{"textdoc_id": "doc-1", "title": "Oiling plan", "textdoc_type": "document", "version": 3,
        "content": "# Oiling plan\nTwo drops a wheel.", "updated_at": "2025-10-10T08:00:00.000+00:00"}]);
    files.push(("textdocs/doc-1.json".into(), bytes_of(&text)));
    bench.import(&[&file(&bench, "later.zip", &zip(&files))]);
    let found = records(&bench, "canvas_documents");
    assert_eq!((found.len(), &found[0]["version"]), (1, &json!(2)), "{found:?}");
    let data = &found[0]["data"];
    assert_eq!((&data["title"], &data["type"]), (&json!("Oiling plan"), &json!("document")));
    assert_eq!(data["updated_at"], "2025-10-10T08:00:00.000Z");
    assert!(data["content"].as_str().unwrap().contains("Two drops"));
    // A call that failed began no document: it is known by its own id.
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-000000000021", "No canvas");
    let mut call = message("c", "assistant", json!({"content_type": "code", "text": "{\"name\":\"lost\"}"}));
    call["recipient"] = json!("canmore.create_textdoc");
    talk.node("c", "client-created-root", call);
    let bench = imported(&export(Generation::Second, &[talk]));
    assert_eq!(records(&bench, "canvas_documents")[0]["key"], "c");
}

#[test]
fn side_records_are_normalized_and_their_schemas_are_checked() {
    let mut files = export(Generation::Third, &[workshop()]);
    files.retain(|(name, _)| name != "message_feedback.json" && name != "shared_conversations.json");
    let feedback = json!([{"id": "f1", "conversation_id": WORKSHOP, "message_id": "a4", "rating": "thumbsDown",
        "content": "{\"tags\":[\"not_factual\"],\"text\":\"Too much oil.\"}",
        "create_time": "2025-10-09T09:00:00.500000+00:00", "surprise": 1}]);
    files.push(("message_feedback.json".into(), bytes_of(&feedback)));
    let shares = json!([{"id": "share-1", "conversation_id": WORKSHOP, "title": "Oiling", "is_anonymous": true,
        "highlighted_message_id": "a1", "create_time": 1_760_000_500.0}]);
    files.push(("shared_conversations.json".into(), bytes_of(&shares)));
    let bench = imported(&files);
    let data = |stream: &str| records(&bench, stream)[0]["data"].clone();
    let feedback = data("feedback");
    assert_eq!((&feedback["comment"], &feedback["tags"]), (&json!("Too much oil."), &json!(["not_factual"])));
    assert_eq!(feedback["created_at"], "2025-10-09T09:00:00.500Z");
    let share = data("shared_conversations");
    assert_eq!(share["created_at"], "2025-10-09T09:01:40.000Z");
    assert_eq!(share["url"], "https://chatgpt.com/share/share-1");
    assert!(by_node(&bench, WORKSHOP).contains_key(share["highlighted_message_id"].as_str().unwrap()));
    let account = data("account");
    assert_eq!((&account["email"], &account["plan"]), (&json!("ada@example.com"), &json!("plus")));
    assert_eq!(data("settings")["training_allowed"], false);
    // A field that no schema declares is reported, whatever its stream.
    let audit = audit(&bench);
    for stream in audit["streams"].as_array().unwrap() {
        let expected = if stream["stream"] == "feedback" { json!(["surprise"]) } else { json!([]) };
        assert_eq!(stream["undeclared"], expected, "{stream}");
        assert_eq!(stream["other_type"], json!([]), "{stream}");
    }
    let manifest = bench.json(&["manifest", "chatgpt"]);
    for stream in manifest["streams"].as_array().unwrap() {
        let fields = stream["schema"]["properties"].as_object().unwrap().len();
        assert!(fields > 3, "{} declares {fields} fields", stream["name"]);
    }
}

#[test]
fn archived_files_have_type_size_and_hash_of_their_bytes() {
    let bench = Bench::new();
    let path = file(&bench, "e.zip", &zip(&export(Generation::Third, &[workshop()])));
    assert_eq!(bench.run(&["import", path.to_str().unwrap()]).code, 0);
    let photo = || records(&bench, "files")[0]["data"].clone();
    let listed = photo();
    assert_eq!((&listed["mime"], &listed["size"]), (&json!("image/png"), &json!(2048)));
    assert_eq!((&listed["name"], &listed["sha256"]), (&json!("gears of ada.png"), &Value::Null));
    assert_eq!(listed["created_at"], "2025-10-09T08:53:20.000Z");
    assert_eq!(bench.run(&["import", path.to_str().unwrap(), "--with-files"]).code, 0);
    let kept = photo();
    assert_eq!((&kept["mime"], &kept["size"]), (&json!("image/png"), &json!(21)));
    // sha256sum of the bytes.
    assert_eq!(kept["sha256"], "e9dac56bfe6f0106440eef51c0a649fae0fcdfa6552d38521a39cd4cc51532a8");
    assert_eq!(kept["provenance"]["sha256"], "member");
    assert!(kept["archived_as"].as_str().unwrap().starts_with("assets/"));
}

#[test]
fn the_audit_lists_what_is_left_out_on_purpose() {
    let bench = imported(&export(Generation::Second, &[workshop()]));
    let audit = audit(&bench);
    let lines = audit["surface"].as_array().unwrap();
    let line = |item: &str| lines.iter().find(|line| line["item"].as_str().unwrap().contains(item)).unwrap();
    for item in ["token", "device id", "admin", "voice audio", "billing"] {
        assert_eq!(line(item)["state"], "omitted_on_purpose", "{item}");
        assert!(!line(item)["reason"].as_str().unwrap().is_empty(), "{item}");
    }
    // Exports do not have them.
    for item in ["memories", "custom GPTs", "projects", "available models", "data controls"] {
        assert_eq!(line(item)["state"], "partial", "{item}");
    }
}

#[test]
fn a_restore_says_that_an_import_is_not_the_export() {
    let (_, case) = fixtures::with_exports().into_iter().find(|(source, _)| *source == "chatgpt").unwrap();
    let bench = fixtures::imported(&case);
    let to = bench.folder.path().join("back");
    let ran = bench.run(&["restore", "--source", "chatgpt", "--to", to.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("not the exports themselves"), "{}", ran.stderr);
    let again = bench.json(&["restore", "--source", "chatgpt", "--to", to.to_str().unwrap()]);
    assert!(again["from_imports"].as_u64().unwrap() > 0, "{again}");
    assert!(bench.run(&["restore", "--help"]).stdout.contains("keep your exports"));
}
