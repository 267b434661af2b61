//! Generates exports of every generation, with everything in them that importers stumble over.

use std::io::{Cursor, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Represents half of a surrogate pair, which a `Value` cannot contain.
pub const LONE: &str = "LONE-SURROGATE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// 2023: no `conversation_id`, ids that differ from their keys.
    First,
    /// 2024 to early 2026: everything.
    Second,
    /// Since the middle of 2026: no tools, no recipients, no children.
    Third,
}

#[derive(Debug, Clone)]
pub struct Conversation {
    pub id: String,
    pub title: Value,
    pub updated: f64,
    pub current: Option<String>,
    pub fields: Map<String, Value>,
    pub nodes: Vec<(String, Option<String>, Value)>,
}

pub const START: f64 = 1_760_000_000.0;

impl Conversation {
    pub fn new(id: &str, title: &str) -> Conversation {
        let nodes = vec![("client-created-root".to_owned(), None, Value::Null)];
        Conversation {
            id: id.into(),
            title: title.into(),
            updated: START + 100.0,
            current: None,
            fields: Map::new(),
            nodes,
        }
    }

    /// Adds a node and makes it the current one.
    pub fn node(&mut self, key: &str, parent: &str, message: Value) -> &mut Conversation {
        self.nodes.push((key.into(), Some(parent.into()), message));
        self.current = Some(key.into());
        self
    }

    /// A prompt and an answer after `parent`.
    pub fn turn(&mut self, parent: &str, name: &str, words: &str) -> &mut Conversation {
        let (user, assistant) = (format!("{name}-user"), format!("{name}-assistant"));
        self.node(&user, parent, text_message(&user, "user", json!([words])));
        self.node(&assistant, &user, text_message(&assistant, "assistant", json!([format!("about {words}")])))
    }

    pub fn json(&self, generation: Generation) -> Value {
        let nodes: Vec<(String, Option<String>, Value)> = match generation {
            Generation::Third => self.lossy(),
            Generation::First | Generation::Second => self.nodes.clone(),
        };
        let mut mapping = Map::new();
        for (key, parent, message) in &nodes {
            let mut node = json!({"id": key, "message": message, "parent": parent});
            if generation != Generation::Third {
                let children = nodes.iter().filter(|(_, parent, _)| parent.as_ref() == Some(key));
                node["children"] = children.map(|(key, ..)| key.as_str()).collect();
            }
            mapping.insert(key.clone(), node);
        }
        let mut conversation = json!({
            "title": self.title, "create_time": START, "update_time": self.updated, "mapping": mapping,
            "moderation_results": [], "current_node": self.current, "plugin_ids": null, "id": self.id,
        });
        if generation != Generation::First {
            conversation["conversation_id"] = json!(self.id);
            conversation["is_archived"] = json!(false);
            conversation["default_model_slug"] = json!("gpt-5");
        }
        for (name, value) in &self.fields {
            let removed = ["gizmo_id", "gizmo_type"].contains(&name.as_str());
            if generation == Generation::Second || generation == Generation::Third && !removed {
                conversation[name] = value.clone();
            }
        }
        conversation
    }

    /// System and tool nodes are gone, the rest is reconnected, and messages have fewer fields.
    fn lossy(&self) -> Vec<(String, Option<String>, Value)> {
        let survives = |message: &Value| {
            let role = message["author"]["role"].as_str().unwrap_or("root");
            let call = role == "assistant" && message["recipient"] != "all";
            message.is_null() || role == "user" || role == "assistant" && !call
        };
        let find = |key: &str| self.nodes.iter().find(|(own, ..)| own == key);
        let mut nodes = Vec::new();
        for (key, parent, message) in self.nodes.iter().filter(|(_, _, message)| survives(message)) {
            let mut above = parent.clone();
            let mut steps = 0;
            while let Some((_, next, message)) = above.as_deref().and_then(find) {
                steps += 1;
                if survives(message) || steps > self.nodes.len() {
                    break;
                }
                above = next.clone();
            }
            let mut message = message.clone();
            if let Value::Object(fields) = &mut message {
                for name in ["status", "recipient", "weight", "end_turn", "channel", "update_time"] {
                    fields.remove(name);
                }
                if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("finish_details");
                    for reference in
                        metadata.get_mut("content_references").into_iter().flat_map(Value::as_array_mut)
                    {
                        for entry in reference.iter_mut().filter_map(Value::as_object_mut) {
                            for name in ["matched_text", "start_idx", "end_idx"] {
                                entry.remove(name);
                            }
                        }
                    }
                }
            }
            nodes.push((key.clone(), above, message));
        }
        nodes
    }
}

/// A message of the second generation.
pub fn text_message(id: &str, role: &str, parts: Value) -> Value {
    message(id, role, json!({"content_type": "text", "parts": parts}))
}

pub fn message(id: &str, role: &str, content: Value) -> Value {
    let mut metadata = json!({"turn_exchange_id": "turn-1"});
    if role == "assistant" {
        metadata["model_slug"] = json!("gpt-5");
        metadata["finish_details"] = json!({"type": "stop"});
    }
    json!({
        "id": id, "author": {"role": role, "name": null, "metadata": {}}, "create_time": moment(id),
        "update_time": null, "content": content, "status": "finished_successfully", "end_turn": true,
        "weight": 1.0, "metadata": metadata, "recipient": "all", "channel": null,
    })
}

/// A time derived from the id.
fn moment(id: &str) -> f64 {
    START + f64::from(id.bytes().map(u16::from).sum::<u16>() % 97)
}

pub fn call(id: &str, tool: &str, text: &str) -> Value {
    let mut message =
        message(id, "assistant", json!({"content_type": "code", "language": "json", "text": text}));
    message["recipient"] = json!(tool);
    message["end_turn"] = json!(false);
    message
}

pub fn result(id: &str, tool: &str, content: Value) -> Value {
    let mut message = message(id, "tool", content);
    message["author"]["name"] = json!(tool);
    message
}

/// A conversation that uses tools, shows its thinking, cites and branches.
pub fn workshop() -> Conversation {
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-000000000001", "Oiling a gear train");
    talk.fields = Map::from_iter([
        ("gizmo_id".to_owned(), json!("g-p-workshop")),
        ("gizmo_type".to_owned(), json!("snorlax")),
        ("conversation_template_id".to_owned(), json!("g-p-workshop")),
        ("is_starred".to_owned(), json!(true)),
        ("memory_scope".to_owned(), json!("global_enabled")),
    ]);
    let mut hidden = message("s1", "system", json!({"content_type": "text", "parts": [""]}));
    hidden["weight"] = json!(0.0);
    hidden["create_time"] = Value::Null;
    hidden["metadata"]["is_visually_hidden_from_conversation"] = json!(true);
    talk.node("s1", "client-created-root", hidden);
    let mut context = message(
        "s2",
        "user",
        json!({"content_type": "user_editable_context", "user_profile": "I repair clocks.",
               "user_instructions": "Answer in short sentences."}),
    );
    context["metadata"]["is_user_system_message"] = json!(true);
    talk.node("s2", "s1", context);
    let mut prompt = text_message("u1", "user", json!(["How much oil does a gear train need?"]));
    prompt["metadata"]["attachments"] = json!([{"id": "file-PhotoOfTheGears000001", "name": "gears.png",
        "mime_type": "image/png", "size": 2048, "width": 640, "height": 480}]);
    talk.node("u1", "s2", prompt);
    talk.node(
        "t1",
        "u1",
        message(
            "t1",
            "assistant",
            json!({"content_type": "thoughts", "source_analysis_msg_id": "x",
                   "thoughts": [{"summary": "Counting wheels", "content": "Four wheels, four drops.",
                                 "chunks": [], "finished": true}]}),
        ),
    );
    talk.node(
        "t2",
        "t1",
        message("t2", "assistant", json!({"content_type": "reasoning_recap", "content": "Thought for 12s"})),
    );
    talk.node("c1", "t2", call("c1", "python", "print(4 * 0.05)"));
    let mut output = result("r1", "python", json!({"content_type": "execution_output", "text": "0.2"}));
    output["metadata"]["aggregate_result"] = json!({"status": "success", "start_time": START + 3.0, "end_time": START + 4.5, "jupyter_messages": []});
    talk.node("r1", "c1", output);
    talk.node("c2", "r1", call("c2", "web.run", "{\"search_query\":[{\"q\":\"clock oil\"}]}"));
    let quote = |id: &str, title: &str| {
        let mut quote = result(
            id,
            "web.run",
            json!({"content_type": "tether_quote", "url": "https://oil.example/guide", "domain": "oil.example",
                   "title": title, "text": "Less is more."}),
        );
        quote["recipient"] = json!("assistant");
        quote
    };
    talk.node("r2", "c2", quote("r2", "Guide to oil"));
    talk.node("r3", "r2", quote("r3", "Second guide"));
    let mut answer = text_message(
        "a1",
        "assistant",
        json!(["🛠️ Use 0.2 ml in all\u{E200}cite\u{E202}turn0search0\u{E201}, one drop a wheel."]),
    );
    answer["metadata"]["content_references"] = json!([
        {"type": "grouped_webpages", "matched_text": "\u{E200}cite\u{E202}turn0search0\u{E201}", "start_idx": 20,
         "end_idx": 40, "items": [{"title": "Guide to oil", "url": "https://oil.example/guide",
         "supporting_websites": [{"title": "Another", "url": "https://other.example/"}]}]},
        {"type": "sources_footnote", "matched_text": " ", "start_idx": 60, "end_idx": 60,
         "sources": [{"title": "Guide to oil", "url": "https://oil.example/guide"}]},
        {"type": "hidden", "matched_text": "", "start_idx": 0, "end_idx": 0},
    ]);
    talk.node("a1", "r3", answer);
    talk.node("u2", "a1", text_message("u2", "user", json!(["And for a watch?"])));
    talk.node("a2", "u2", text_message("a2", "assistant", json!(["A quarter of that, first draft."])));
    talk.node("a3", "u2", text_message("a3", "assistant", json!(["A tenth of that, second draft."])));
    let mut memory = call("c3", "bio", "The user repairs watches.");
    memory["content"] = json!({"content_type": "text", "parts": ["The user repairs watches."]});
    talk.node("c3", "a3", memory);
    let mut noted =
        result("r4", "bio", json!({"content_type": "text", "parts": ["Model set context updated."]}));
    noted["recipient"] = json!("assistant");
    talk.node("r4", "c3", noted);
    let draft =
        json!({"name": "oiling_plan", "type": "document", "content": "# Oiling plan\nOne drop a wheel."});
    talk.node("c4", "r4", call("c4", "canmore.create_textdoc", &draft.to_string()));
    let mut made =
        result("r5", "canmore.create_textdoc", json!({"content_type": "text", "parts": ["Created."]}));
    made["metadata"]["canvas"] = json!({"textdoc_id": "doc-1", "textdoc_type": "document", "version": 1});
    talk.node("r5", "c4", made);
    talk.node("a4", "r5", text_message("a4", "assistant", json!(["Noted."])));
    talk
}

/// Everything that breaks careless readers.
pub fn oddities() -> Conversation {
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-000000000002", "");
    talk.title = Value::Null;
    talk.node(
        "o1",
        "client-created-root",
        text_message("other-id", "user", json!([format!("half {LONE} and \u{0} nul")])),
    );
    let mut nested = json!("bottom");
    for _ in 0..200 {
        nested = json!([nested]);
    }
    let mut deep = text_message(
        "o2",
        "assistant",
        json!(["deep metadata", null, 7, {"content_type": "hologram", "beam": 1}]),
    );
    deep["metadata"]["widget_state"] = nested;
    talk.node("o2", "o1", deep);
    talk.node("o3", "o2", message("o3", "user", json!({"parts": ["no type"]})));
    talk.node("o4", "o3", message("o4", "assistant", json!({"content_type": "text", "parts": null})));
    talk.node(
        "o5",
        "o4",
        message("o5", "assistant", json!({"content_type": "hologram", "beam": "blue light"})),
    );
    let mut failed = result(
        "o6",
        "python",
        json!({"content_type": "system_error", "name": "Timeout", "text": "too slow"}),
    );
    failed["create_time"] = json!("2025-10-09T08:53:21Z");
    talk.node("o6", "o5", failed);
    let mut unfinished = text_message("o7", "assistant", json!(["still wri"]));
    unfinished["status"] = json!("in_progress");
    unfinished["create_time"] = json!(1_760_000_033_000_u64);
    talk.node("o7", "o6", unfinished);
    talk.node(
        "o8",
        "o7",
        message(
            "o8",
            "user",
            json!({"content_type": "multimodal_text", "parts": [
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0000000012345678abcdef00",
                 "size_bytes": 512, "width": 8, "height": 8, "fovea": null, "metadata": null},
                {"content_type": "audio_transcription", "text": "spoken words", "direction": "in", "decoding_id": null},
                {"content_type": "real_time_user_audio_video_asset_pointer", "frames_asset_pointers": [],
                 "audio_asset_pointer": {"content_type": "audio_asset_pointer", "format": "wav", "size_bytes": 9,
                 "asset_pointer": "sediment://file_00000000aaaabbbbccccdddd"}},
                "typed words"]}),
        ),
    );
    talk.node("lost", "gone", text_message("o1", "user", json!(["an orphan with an id that is taken"])));
    talk.node("self", "self", text_message("self", "user", json!(["my own parent"])));
    talk.node("x", "y", text_message("x", "user", json!(["round"])));
    talk.node("y", "x", text_message("y", "assistant", json!(["and round"])));
    talk.current = Some("nowhere".into());
    talk
}

/// The bytes of a file, with halves of surrogate pairs as in real exports.
pub fn bytes_of(value: &Value) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value).unwrap();
    text.replace(LONE, "\\ud83d").into_bytes()
}

/// Files of an export by name.
pub type Export = Vec<(String, Vec<u8>)>;

pub fn list_of(generation: Generation, talks: &[Conversation]) -> Value {
    talks.iter().map(|talk| talk.json(generation)).collect()
}

/// An export as the provider delivers it.
pub fn export(generation: Generation, talks: &[Conversation]) -> Export {
    let mut files: Export = Vec::new();
    let mut add = |name: &str, value: Value| files.push((name.to_owned(), bytes_of(&value)));
    add(
        "user.json",
        json!({"id": "user-ada", "email": "ada@example.com", "chatgpt_plus_user": true, "phone_number": null}),
    );
    add(
        "shared_conversations.json",
        json!([{"id": "share-1", "conversation_id": talks[0].id, "title": "Oiling", "is_anonymous": true}]),
    );
    add(
        "message_feedback.json",
        json!([{"id": "feedback-1", "conversation_id": talks[0].id, "rating": "thumbs_up",
                "create_time": "2025-10-09T09:00:00Z"}]),
    );
    files.push(("chat.html".into(), b"<html>the same once more</html>".to_vec()));
    if generation != Generation::Third {
        files.push(("conversations.json".into(), bytes_of(&list_of(generation, talks))));
        files.push(("file-PhotoOfTheGears000001-gears.png".into(), b"\x89PNG picture of gears".to_vec()));
        return files;
    }
    let mut shards = Vec::new();
    for (number, talk) in talks.iter().enumerate() {
        let name = format!("conversations-{number:03}.json");
        files.push((name.clone(), bytes_of(&list_of(generation, std::slice::from_ref(talk)))));
        shards.push(name);
    }
    let listed: Vec<Value> = shards.iter().map(|name| json!({"path": name, "size_bytes": 1})).collect();
    let manifest = json!({"version": 1, "manifest_file": "export_manifest.json", "export_files": listed,
        "logical_files": {"conversations.json": {"files": shards, "sharded": true, "shard_count": shards.len()}}});
    files.push(("export_manifest.json".into(), bytes_of(&manifest)));
    let settings =
        json!([{"user_id": "user-ada", "settings": {"training_allowed": false}, "beta_settings": {}}]);
    files.push(("user_settings.json".into(), bytes_of(&settings)));
    let library = json!([{"file_id": "file-PhotoOfTheGears000001", "file_name": "gears of ada.png", "mime_type": "image/png",
        "file_size_bytes": 2048, "library_file_category": "image", "created_at": "2025-10-09T08:53:20Z",
        "origination_thread_id": talks[0].id, "origination_message_id": "u1", "sha256_digest": null}]);
    files.push(("library_files.json".into(), bytes_of(&library)));
    let names = json!({"file-PhotoOfTheGears000001.dat": "home/ada/gears.png"});
    files.push(("conversation_asset_file_names.json".into(), bytes_of(&names)));
    files.push(("file-PhotoOfTheGears000001.dat".into(), b"\x89PNG picture of gears".to_vec()));
    files
}

pub fn zip(files: &Export) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in files {
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub fn write_folder(files: &Export, folder: &Path) {
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
