//! Lines as blocks, and the native fields of a line.

use serde_json::{Map, Value};

use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of a line, or of a call in it.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let Some(json) = line.json() else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    let line = json.object();
    let text = |name: &str| line.get_text(name).unwrap_or_default().into_owned();
    if let Some(message) = line.get("message").filter(|message| message.is_object()) {
        return message_blocks(&message.object());
    }
    if line.get("role").is_some() {
        return message_blocks(&line);
    }
    match text("type").as_str() {
        "toolCall" => part(json).into_iter().collect(),
        "compaction" | "branch_summary" => vec![Block::Text(text("summary"))],
        "custom_message" => content(line.get("content")),
        kind => {
            let original = String::from_utf8_lossy(line.bytes()).into_owned();
            vec![Block::Event { name: kind.to_owned(), text: original }]
        }
    }
}

/// The fields of a line and of its message besides the content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(line) = Json::parse(bytes) else { return native };
    let mut keep = |name: &str, value: Json<'_>| {
        if value.bytes().len() < 2_000 {
            native.insert(name.to_owned(), value.value());
        }
    };
    for (name, value) in line.fields() {
        if !matches!(name, b"message" | b"arguments" | b"content" | b"summary" | b"details") {
            keep(&String::from_utf8_lossy(name), value);
        }
    }
    let message = line.get("message");
    for name in ["role", "api", "provider", "stopReason", "rawStopReason", "responseId", "errorMessage"] {
        if let Some(value) = message.and_then(|message| message.get(name)) {
            keep(name, value);
        }
    }
    native
}

fn message_blocks(message: &Object<'_>) -> Vec<Block> {
    let text = |name: &str| message.get_text(name).unwrap_or_default().into_owned();
    match text("role").as_str() {
        "toolResult" => {
            let output = content_text(message.get("content"));
            vec![Block::ToolResult { call_id: text("toolCallId"), output }]
        }
        "bashExecution" => vec![
            Block::Text(text("command")),
            Block::ToolResult { call_id: String::new(), output: text("output") },
        ],
        "system" => {
            let sections = message.get("sections").into_iter().flat_map(Json::fields);
            let mut parts: Vec<String> = vec![text("content")];
            parts.extend(sections.filter_map(|(_, section)| section.text().map(|text| text.into_owned())));
            parts.retain(|part| !part.is_empty());
            vec![Block::Text(parts.join("\n\n"))]
        }
        "assistant" => {
            let mut blocks = content(message.get("content"));
            if let Some(error) = message.get_text("errorMessage") {
                blocks.push(Block::Event { name: "error".into(), text: error.into_owned() });
            }
            blocks
        }
        _ => content(message.get("content")),
    }
}

fn content(content: Option<Json<'_>>) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Block::Text(text.into_owned())],
        None => content.items().filter_map(part).collect(),
    }
}

/// The texts of a content, one after another.
pub fn content_text(parts: Option<Json<'_>>) -> String {
    let texts = content(parts).into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn part(part: Json<'_>) -> Option<Block> {
    let text = |name: &str| part.get_text(name).unwrap_or_default().into_owned();
    Some(match text("type").as_str() {
        "text" => Block::Text(text("text")),
        "thinking" => Block::Thinking(Some(text("thinking")).filter(|text| !text.is_empty())?),
        "toolCall" => {
            let input = part.get("arguments").map(Json::value).unwrap_or_default();
            Block::ToolCall { call_id: text("id"), name: text("name"), input }
        }
        "image" => {
            let bytes = part.get("data").and_then(Json::inner).map_or(0, |data| data.len() as u64 * 3 / 4);
            Block::Image { media_type: text("mimeType"), bytes, path: None }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::blocks;
    use crate::json::Scan;
    use annals_core::Block;

    fn of(line: &str) -> Vec<Block> {
        blocks(Scan::new(line.as_bytes()).line())
    }

    #[test]
    fn messages_have_thinking_text_calls_and_results() {
        let line = r#"{"type":"message","id":"1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Hm"},
            {"type":"text","text":"I read."},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a"}}]}}"#;
        let found = of(line);
        assert_eq!(found[..2], [Block::Thinking("Hm".into()), Block::Text("I read.".into())]);
        assert!(matches!(&found[2], Block::ToolCall { name, .. } if name == "read"));
        let result = r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"a\n"}]}"#;
        assert_eq!(of(result), [Block::ToolResult { call_id: "c".into(), output: "a\n".into() }]);
    }

    #[test]
    fn typed_commands_and_errors_are_shown() {
        let typed = r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a"}}"#;
        assert_eq!(of(typed)[0], Block::Text("ls".into()));
        let error = r#"{"type":"message","message":{"role":"assistant","content":[],"errorMessage":"400"}}"#;
        assert_eq!(of(error), [Block::Event { name: "error".into(), text: "400".into() }]);
    }
}
