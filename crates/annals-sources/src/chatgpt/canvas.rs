//! Documents of a canvas as they are now, which conversations only have as a first text and changes to it.

use serde_json::{Value, json};

use super::listing::array;
use super::times::{moment, time_value};
use crate::json::Json;
use crate::{Capture, ElementBody, path_part};

pub const STREAM: &str = "canvas_texts";

/// The documents of a conversation; `None` when the answer is not a list of them.
pub fn captures(conversation: &str, body: &str) -> Option<Vec<Capture<'static>>> {
    let json = Json::parse(body.as_bytes())?;
    let list =
        array(json, &["textdocs", "items", "documents"]).or_else(|| json.is_array().then_some(json))?;
    let mut captures = Vec::new();
    for document in list.items() {
        let id = ["textdoc_id", "id"].iter().find_map(|name| document.get_text(name));
        let Some(id) = id else { continue };
        let header = [("stream", STREAM), ("key", &id), ("conversation_id", conversation)];
        captures.push(Capture {
            path: format!("{STREAM}/{}.json-seq", path_part(&id)),
            store: "canvas documents",
            reader: "side",
            header: header.map(|(name, value)| (name.to_owned(), Value::from(value))).into_iter().collect(),
            body: ElementBody::Text(within(conversation, document).into()),
            counts: false,
        });
    }
    (!captures.is_empty() || list.items().next().is_none()).then_some(captures)
}

/// The document with the conversation that it is part of.
fn within(conversation: &str, document: Json<'_>) -> Vec<u8> {
    let name = Value::from(conversation);
    [format!("{{\"conversation_id\":{name},\"document\":").as_bytes(), document.bytes(), b"}"].concat()
}

pub fn record(key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes).filter(|json| json.is_object())?;
    let document = json.get("document")?;
    let first = |names: &[&str]| {
        let found = names.iter().filter_map(|name| document.get(name)).map(Json::value);
        found.into_iter().find(|value| !value.is_null()).unwrap_or_default()
    };
    let time =
        |names: &[&str]| time_value(names.iter().filter_map(|name| document.get(name)).find_map(moment));
    Some(json!({
        "id": key,
        "conversation_id": json.get("conversation_id").map(Json::value),
        "title": first(&["title", "name"]),
        "type": first(&["textdoc_type", "type"]),
        "text": first(&["content", "text"]),
        "version": first(&["version"]),
        "created_at": time(&["created_at", "create_time"]),
        "updated_at": time(&["updated_at", "update_time"]),
        "content": document.value(),
    }))
}
