//! The content of a message by type, as text and blocks.

use std::borrow::Cow;

use serde_json::Value;

use super::nodes::{Node, node_of_row};
use super::pointers;
use super::pointers::{id_of_pointer, pointed};
use crate::json::{Json, Object, Opened};
use annals_core::Block;

/// The kinds of content that are known; others are kept as JSON and counted as unknown.
const KNOWN: &[&str] = &[
    "text",
    "multimodal_text",
    "code",
    "execution_output",
    "system_error",
    "tether_browsing_display",
    "tether_quote",
    "sonic_webpage",
    "thoughts",
    "reasoning_recap",
    "user_editable_context",
    "model_editable_context",
    "computer_output",
    "citable_code_output",
];

/// Objects among the parts of a content.
const PARTS: &[&str] = &[
    "audio_transcription",
    "image_asset_pointer",
    "audio_asset_pointer",
    "video_container_asset_pointer",
    "file_asset_pointer",
    "real_time_user_audio_video_asset_pointer",
];

const ROLES: &[&str] = &["", "user", "assistant", "system", "developer", "tool", "function", "critic"];

/// A message with the fields that most questions are about.
#[derive(Debug, Clone)]
pub struct MessageFields<'a> {
    pub role: Cow<'a, str>,
    pub author_name: Option<Cow<'a, str>>,
    pub recipient: Option<Cow<'a, str>>,
    pub status: Option<Cow<'a, str>>,
    pub content: Option<Object<'a>>,
    pub content_type: Cow<'a, str>,
    pub metadata: Option<Object<'a>>,
    pub create_time: Option<Json<'a>>,
    pub id: Option<Cow<'a, str>>,
    pub is_weightless: bool,
}

impl<'a> MessageFields<'a> {
    pub fn of(message: &Opened<'a>) -> MessageFields<'a> {
        let mut fields = MessageFields {
            role: Cow::Borrowed(""),
            author_name: None,
            recipient: None,
            status: None,
            content: None,
            content_type: Cow::Borrowed(""),
            metadata: None,
            create_time: None,
            id: None,
            is_weightless: false,
        };
        for (name, value) in message.fields() {
            let json = value.json;
            match *name {
                b"id" => fields.id = json.text(),
                b"author" => {
                    fields.role = value.get_text("role").unwrap_or_default();
                    fields.author_name = value.get_text("name");
                }
                b"recipient" => fields.recipient = json.text(),
                b"status" => fields.status = json.text(),
                b"create_time" => fields.create_time = Some(json),
                b"weight" => fields.is_weightless = matches!(json.bytes(), b"0" | b"0.0"),
                b"metadata" => fields.metadata = json.is_object().then(|| value.object()),
                b"content" => {
                    fields.content = json.is_object().then(|| value.object());
                    // Files made by hand have contents without a type.
                    fields.content_type = value.get_text("content_type").unwrap_or(Cow::Borrowed("text"));
                }
                _ => {}
            }
        }
        fields
    }

    /// Calls `visit` with the kind of everything inside the message that is not known.
    pub fn each_unknown(&self, visit: &mut dyn FnMut(String)) {
        if !ROLES.contains(&self.role.as_ref()) {
            visit(format!("role {}", self.role));
        }
        let parts = self.content.as_ref().and_then(|content| content.get("parts"));
        for part in parts.into_iter().flat_map(Json::items).filter(|part| part.is_object()) {
            let kind = part.get_text("content_type").unwrap_or_default();
            if !PARTS.contains(&kind.as_ref()) {
                visit(format!("part {kind}"));
            }
        }
    }

    pub fn metadata_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.metadata.as_ref()?.get_text(name)
    }

    pub fn is_flagged(&self, name: &str) -> bool {
        self.metadata.as_ref().and_then(|metadata| metadata.get(name)).and_then(Json::boolean) == Some(true)
    }

    /// The assistant speaks to a tool.
    pub fn tool(&self) -> Option<&str> {
        let recipient = self.recipient.as_deref().filter(|name| !name.is_empty() && *name != "all");
        recipient.filter(|_| self.role == "assistant")
    }

    pub fn is_result(&self) -> bool {
        self.role == "tool" || self.role == "function"
    }

    pub fn is_thinking(&self) -> bool {
        matches!(&*self.content_type, "thoughts" | "reasoning_recap")
    }

    pub fn is_known(&self) -> bool {
        KNOWN.contains(&&*self.content_type)
    }

    /// What the client does not show to people.
    pub fn is_hidden(&self) -> bool {
        let context = matches!(
            &*self.content_type,
            "user_editable_context" | "model_editable_context" | "app_pairing_content"
        );
        self.is_weightless
            || context
            || self.is_flagged("is_visually_hidden_from_conversation")
            || self.is_flagged("is_user_system_message")
            || matches!(&*self.role, "system" | "developer")
    }

    /// What the call asks for: JSON where it is JSON, text otherwise.
    pub fn input(&self) -> Value {
        let text = self.argument();
        match Json::parse(text.as_bytes()).filter(|json| json.is_object()) {
            Some(json) => json.value(),
            None => Value::String(text),
        }
    }

    pub fn argument(&self) -> String {
        let Some(content) = &self.content else { return String::new() };
        match content.get_text("text") {
            Some(text) => text.into_owned(),
            None => texts(content).join("\n"),
        }
    }

    /// What its content and its metadata point to, each with the object that does.
    fn pointed(&self) -> Vec<(String, Json<'a>)> {
        let content = |name: &str| self.content.as_ref().and_then(|content| content.get(name));
        let metadata = |name: &str| self.metadata.as_ref().and_then(|metadata| metadata.get(name));
        pointed(content, metadata).into_iter().map(|pointed| (pointed.id, pointed.object)).collect()
    }

    /// Paths in the sandbox that the assistant links to.
    pub fn sandbox_paths(&self) -> Vec<String> {
        let texts = pointers::texts(|name| self.content.as_ref().and_then(|content| content.get(name)));
        let texts = texts.iter().filter(|_| self.role == "assistant");
        texts.flat_map(|text| pointers::sandbox_paths(text)).collect()
    }

    /// Ids of attachments, and of images and sound in it.
    pub fn files(&self) -> Vec<String> {
        let attachments = self.metadata.as_ref().and_then(|metadata| metadata.get("attachments"));
        let attached = attachments.into_iter().flat_map(Json::items).filter_map(|file| file.get_text("id"));
        let pointed = self.pointed().into_iter().map(|(id, _)| id);
        let mut ids: Vec<String> = Vec::new();
        for id in attached.map(Cow::into_owned).chain(pointed).filter(|id| !id.is_empty()) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// All of it as text, for outputs.
    pub fn output(&self) -> String {
        let blocks = message_blocks(self).into_iter().filter_map(|block| match block {
            Block::Text(text) | Block::Thinking(text) | Block::Event { text, .. } => Some(text),
            Block::Image { path, .. } => Some(format!("[image {}]", path.unwrap_or_default())),
            Block::Attachment { name } => Some(format!("[file {name}]")),
            Block::Context { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } => None,
        });
        blocks.collect::<Vec<_>>().join("\n")
    }
}

/// The blocks of a row.
pub fn blocks(line: &[u8]) -> Vec<Block> {
    let Some(Node { message: Some(message), key, .. }) = node_of_row(line) else { return Vec::new() };
    let fields = MessageFields::of(&message);
    let call_id =
        || fields.id.as_deref().map_or_else(|| String::from_utf8_lossy(key).into_owned(), str::to_owned);
    if let Some(name) = fields.tool() {
        return vec![Block::ToolCall { call_id: call_id(), name: name.to_owned(), input: fields.input() }];
    }
    if fields.is_result() {
        return vec![Block::ToolResult { call_id: call_id(), output: fields.output() }];
    }
    message_blocks(&fields)
}

fn message_blocks(fields: &MessageFields<'_>) -> Vec<Block> {
    let Some(content) = &fields.content else { return Vec::new() };
    let text =
        |name: &str| content.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
    let joined = |parts: &[Option<String>]| {
        let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        parts.join("\n")
    };
    let mut blocks = match &*fields.content_type {
        "text" | "multimodal_text" => parts(content),
        "code" | "execution_output" => vec![Block::Text(joined(&[text("text")]))],
        "system_error" => {
            let name = text("name").unwrap_or_else(|| "error".to_owned());
            vec![Block::Text(format!("{name}: {}", text("text").unwrap_or_default()))]
        }
        "tether_browsing_display" => vec![Block::Text(joined(&[text("summary"), text("result")]))],
        "tether_quote" | "sonic_webpage" => {
            vec![Block::Text(joined(&[text("title"), text("url"), text("text"), text("snippet")]))]
        }
        "thoughts" => content
            .get("thoughts")
            .into_iter()
            .flat_map(Json::items)
            .map(|thought| {
                let part = |name: &str| thought.get_text(name).map(|text| text.into_owned());
                Block::Thinking(joined(&[part("summary"), part("content")]))
            })
            .collect(),
        "reasoning_recap" => {
            let words = text("content").or_else(|| text("text")).unwrap_or_else(|| texts(content).join("\n"));
            vec![Block::Thinking(words)]
        }
        "user_editable_context" => {
            let part = |name: &str, label: &str| {
                text(name).map(|text| Block::Event { name: label.to_owned(), text })
            };
            [part("user_profile", "profile"), part("user_instructions", "instructions")]
                .into_iter()
                .flatten()
                .collect()
        }
        "model_editable_context" => {
            vec![Block::Text(joined(&[text("model_set_context"), text("repo_summary")]))]
        }
        "computer_output" => {
            let state = content.get("state");
            let part =
                |name: &str| state.and_then(|state| state.get_text(name)).map(|text| text.into_owned());
            vec![Block::Text(joined(&[part("title"), part("url")]))]
        }
        "citable_code_output" => vec![Block::Text(joined(&[text("output_str")]))],
        // What is not known is shown as it is.
        _ => vec![Block::Text(shown_json(content.bytes()))],
    };
    blocks.retain(|block| !matches!(block, Block::Text(text) | Block::Thinking(text) if text.is_empty()));
    if matches!(&*fields.content_type, "execution_output" | "computer_output") {
        // What code drew, and what the screen showed.
        blocks.extend(fields.pointed().into_iter().map(|(id, object)| {
            let bytes =
                object.get_integer("size_bytes").and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
            Block::Image { media_type: "image".into(), bytes, path: Some(id) }
        }));
    }
    let attachments = fields.metadata.as_ref().and_then(|metadata| metadata.get("attachments"));
    for attachment in attachments.into_iter().flat_map(Json::items) {
        let name = attachment.get_text("name").or_else(|| attachment.get_text("id"));
        blocks.extend(name.map(|name| Block::Attachment { name: name.into_owned() }));
    }
    blocks
}

fn shown_json(bytes: &[u8]) -> String {
    Json::parse(bytes).map(|json| json.value().to_string()).unwrap_or_default()
}

/// Parts of a message: strings, objects by their own type, and what is neither.
fn parts(content: &Object<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let bare = content.get_text("text").map(|text| without_markers(text));
    blocks.extend(bare.filter(|_| content.get("parts").is_none()).map(Block::Text));
    for part in content.get("parts").into_iter().flat_map(Json::items).filter(|part| !part.is_null()) {
        if let Some(text) = part.text() {
            blocks.push(Block::Text(without_markers(text)));
            continue;
        }
        let kind = part.get_text("content_type").unwrap_or_default();
        let size = |part: Json<'_>| {
            part.get_integer("size_bytes").and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
        };
        let file = |part: Json<'_>| {
            part.get_text("asset_pointer").and_then(|pointer| id_of_pointer(&pointer).map(str::to_owned))
        };
        blocks.push(match &*kind {
            "audio_transcription" => Block::Text(part.get_text("text").unwrap_or_default().into_owned()),
            "image_asset_pointer" => {
                Block::Image { media_type: "image".into(), bytes: size(part), path: file(part) }
            }
            "audio_asset_pointer" | "video_container_asset_pointer" | "file_asset_pointer" => {
                Block::Attachment { name: file(part).unwrap_or_else(|| kind.to_string()) }
            }
            "real_time_user_audio_video_asset_pointer" => {
                let audio = part.get("audio_asset_pointer").and_then(file);
                Block::Attachment { name: audio.unwrap_or_else(|| kind.to_string()) }
            }
            _ => Block::Text(shown_json(part.bytes())),
        });
    }
    blocks
}

fn texts(content: &Object<'_>) -> Vec<String> {
    let parts = content.get("parts").into_iter().flat_map(Json::items);
    parts.filter_map(|part| part.text().map(|text| text.into_owned())).collect()
}

const OPEN: char = '\u{E200}';
const CLOSE: char = '\u{E201}';
const COVER_START: char = '\u{E203}';
const COVER_END: char = '\u{E204}';

pub fn has_markers(text: &str) -> bool {
    // All of them begin with the same two bytes, and hardly any text has these.
    memchr::memmem::find(text.as_bytes(), b"\xEE\x88").is_some() && text.contains([OPEN, COVER_START])
}

/// The text as people read it: markers of citations, in letters that no font has, are taken out.
pub fn without_markers(text: Cow<'_, str>) -> String {
    if !has_markers(&text) {
        return text.into_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(open) = rest.find([OPEN, COVER_START, COVER_END]) {
        plain.push_str(&rest[..open]);
        let marker = &rest[open..];
        let end = match marker.starts_with(OPEN) {
            // A marker that does not end is text.
            true => marker.find(CLOSE).map(|close| close + CLOSE.len_utf8()),
            false => Some(COVER_END.len_utf8()),
        };
        let Some(end) = end else {
            plain.push_str(marker);
            return plain;
        };
        rest = &marker[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    fn without_markers_of(text: &str) -> String {
        super::without_markers(text.into())
    }

    #[test]
    fn markers_go_and_text_stays() {
        assert_eq!(without_markers_of("plain 【7†source】"), "plain 【7†source】");
        assert_eq!(without_markers_of("gears\u{E200}cite\u{E202}turn0search3\u{E201}."), "gears.");
        assert_eq!(without_markers_of("\u{E203}oiled\u{E204} daily"), "oiled daily");
        assert_eq!(without_markers_of("cut \u{E200}cite"), "cut \u{E200}cite");
    }
}
