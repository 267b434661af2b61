//! The native fields of a message: ids, routing, citations, attachments.

use serde_json::{Map, Value, json};

use super::content::{MessageFields, has_markers, without_markers};
use super::nodes::node_of_row;
use super::pointers::sandbox_id;
use super::times::{moment, time_value};
use crate::json::{Json, Object, unescape};

/// Metadata that is passed on as it is.
const METADATA: &[&str] = &[
    "request_id",
    "turn_exchange_id",
    "working_turn_id",
    "parent_id",
    "is_complete",
    "thinking_effort",
    "finished_duration_sec",
    "reasoning_status",
    "reasoning_title",
    "async_task_id",
    "async_task_type",
    "async_task_title",
    "canvas",
    "invoked_plugin",
    "command",
    "search_queries",
    "message_source",
];

pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(node) = node_of_row(bytes) else { return native };
    native.insert("node_id".into(), Value::from(unescape(node.key)));
    native.extend(node.parent.map(|parent| ("parent".to_owned(), parent.value())));
    let Some(message) = &node.message else { return native };
    let fields = MessageFields::of(message);
    let mut put = |name: &str, value: Option<Value>| {
        native.extend(value.filter(|value| !value.is_null()).map(|value| (name.to_owned(), value)));
    };
    put("message_id", fields.id.as_deref().map(Value::from));
    put("content_type", Some(Value::from(&*fields.content_type)));
    put("author_name", fields.author_name.as_deref().map(Value::from));
    put("recipient", fields.recipient.as_deref().map(Value::from));
    put("status", fields.status.as_deref().map(Value::from));
    for name in ["channel", "end_turn", "weight", "create_time", "update_time"] {
        put(name, message.get_json(name).map(Json::value));
    }
    put("visible", Some(Value::from(!fields.is_hidden())));
    let Some(metadata) = &fields.metadata else { return native };
    let mut put = |name: &str, value: Option<Value>| {
        native.extend(value.filter(|value| !value.is_null()).map(|value| (name.to_owned(), value)));
    };
    put("model_slug", metadata.get("model_slug").map(Json::value));
    put("finish_reason", metadata.get("finish_details").and_then(|end| end.get("type")).map(Json::value));
    for name in METADATA {
        put(name, metadata.get(name).map(Json::value));
    }
    put("attachments", metadata.get("attachments").map(Json::value).filter(|list| list != &json!([])));
    let citations = citations(metadata);
    if !citations.is_empty() {
        put("citations", Some(Value::from(citations)));
        let text = original(&fields);
        put("original_text", text.filter(|text| has_markers(text)).map(Value::from));
    }
    native
}

/// Fields of a message under the names of the client: what other records join with, and times as RFC 3339.
pub fn message_fields(session: &str, bytes: &[u8]) -> Map<String, Value> {
    let Some(node) = node_of_row(bytes) else { return Map::new() };
    let fields = node.message.as_ref().map(MessageFields::of);
    let metadata = fields.as_ref().and_then(|fields| fields.metadata.as_ref());
    let time = |name: &str| {
        time_value(node.message.as_ref().and_then(|message| message.get_json(name)).and_then(moment))
    };
    // A list of messages has no nodes, and names parents in their metadata.
    let parent = node.parent.or_else(|| metadata.and_then(|metadata| metadata.get("parent_id")));
    let content_type = fields.as_ref().map(|fields| &*fields.content_type).filter(|kind| !kind.is_empty());
    let finish = metadata.and_then(|metadata| metadata.get("finish_details"));
    let node_id = unescape(node.key);
    let mut attachments = fields.as_ref().map(MessageFields::files).unwrap_or_default();
    let paths = fields.as_ref().map(MessageFields::sandbox_paths).unwrap_or_default();
    for id in paths.iter().map(|path| sandbox_id(session, &node_id, path)) {
        if !attachments.contains(&id) {
            attachments.push(id);
        }
    }
    let fields = [
        ("id", Value::from(&*node_id)),
        ("node_id", Value::from(node_id)),
        ("parent_node_id", parent.and_then(Json::text).map(Value::from).unwrap_or_default()),
        ("conversation_id", Value::from(session)),
        ("content_type", content_type.map(Value::from).unwrap_or_default()),
        ("model_slug", metadata.and_then(|metadata| metadata.get_text("model_slug")).into()),
        ("finish_reason", finish.and_then(|finish| finish.get_text("type")).into()),
        ("attachment_ids", attachments.into()),
        ("citations", metadata.map(citations).unwrap_or_default().into()),
        ("create_time", time("create_time")),
        ("update_time", time("update_time")),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The text that positions of citations count in.
fn original(fields: &MessageFields<'_>) -> Option<String> {
    let parts = fields.content.as_ref()?.get("parts")?.items();
    let texts: Vec<String> = parts.filter_map(|part| part.text().map(|text| text.into_owned())).collect();
    Some(texts.join("\n"))
}

/// What the answer refers to. Positions are code points of the original text; newer exports have none.
fn citations(metadata: &Object<'_>) -> Vec<Value> {
    let mut found = Vec::new();
    for reference in metadata.get("content_references").into_iter().flat_map(Json::items) {
        let kind = reference.get_text("type").unwrap_or_default();
        if kind == "hidden" {
            continue;
        }
        let mut sources = Vec::new();
        add_source(reference, &mut sources);
        for list in ["items", "fallback_items", "sources"] {
            for item in reference.get(list).into_iter().flat_map(Json::items) {
                add_source(item, &mut sources);
                for site in item.get("supporting_websites").into_iter().flat_map(Json::items) {
                    add_source(site, &mut sources);
                }
            }
        }
        // The footnote of all sources is behind the text, whatever its positions say.
        let placed = kind != "sources_footnote";
        let position = |name: &str| reference.get_integer(name).filter(|_| placed);
        found.push(json!({
            "type": kind, "start": position("start_idx"), "end": position("end_idx"),
            "text": cited_text(reference), "sources": sources,
        }));
    }
    if !found.is_empty() {
        return found;
    }
    for citation in metadata.get("citations").into_iter().flat_map(Json::items) {
        let mut sources = Vec::new();
        if let Some(about) = citation.get("metadata") {
            add_source(about, &mut sources);
        }
        found.push(json!({
            "type": citation.get_text("citation_format_type").unwrap_or_default(),
            "start": citation.get_integer("start_ix"), "end": citation.get_integer("end_ix"),
            "text": citation.get("metadata").and_then(cited_text), "sources": sources,
        }));
    }
    let listed = metadata.get("_cite_metadata").and_then(|cited| cited.get("metadata_list"));
    for cited in listed.into_iter().flat_map(Json::items).filter(|_| found.is_empty()).collect::<Vec<_>>() {
        let mut sources = Vec::new();
        add_source(cited, &mut sources);
        let text = cited_text(cited);
        found.push(json!({"type": "browser", "start": null, "end": null, "text": text, "sources": sources}));
    }
    found
}

/// What is cited, in words: the passage of the source, how the client shows it, or the words it belongs to.
fn cited_text(citation: Json<'_>) -> Option<String> {
    let items = ["items", "fallback_items", "sources"].iter().filter_map(|list| citation.get(list));
    let places = std::iter::once(citation).chain(items.flat_map(Json::items));
    let mut passages = places
        .flat_map(|place| ["snippet", "text", "quote"].iter().filter_map(move |name| place.get_text(name)));
    let passage = passages.find(|text| !text.trim().is_empty()).map(|text| text.into_owned());
    let shown = ["alt", "matched_text"].iter().filter_map(|name| citation.get_text(name));
    let mut shown = shown.map(without_markers).filter(|text| !text.trim().is_empty());
    passage.or_else(|| shown.next())
}

fn add_source(json: Json<'_>, sources: &mut Vec<Value>) {
    let text = |name: &str| json.get_text(name).map(|text| text.into_owned());
    let (url, title) = (text("url"), text("title").or_else(|| text("name")));
    if url.is_none() && json.get("cited_message_id").is_none() && json.get("extra").is_none() {
        return;
    }
    let file = json.get("extra").map(Json::value);
    let source = json!({"url": url, "title": title, "file": file});
    if !sources.contains(&source) {
        sources.push(source);
    }
}
