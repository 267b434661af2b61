//! Rows as blocks, and the native fields of a row.

use serde_json::{Map, Value};

use super::history;
use super::kinds::{ATTACHMENTS, SYSTEM_ROWS};
use super::people::spoken;
use super::tags::{Piece, TextKind, pieces, text_kind};
use crate::json::{Json, Line, Object};
use annals_core::{Block, MessageKind};

/// Blocks of a message whose lines were written one after another, or of one piece of a row.
pub fn blocks(lines: &[Line<'_>]) -> Vec<Block> {
    if let Some(queued) = lines.first().and_then(|line| queue_blocks(*line, lines)) {
        return queued;
    }
    let mut blocks: Vec<Block> = Vec::new();
    for line in lines {
        for block in line_blocks(*line) {
            // Some clients write a block again, longer each time.
            match (blocks.last_mut(), &block) {
                (Some(Block::Text(before)), Block::Text(text)) if text.starts_with(before.as_str()) => {
                    before.clone_from(text);
                }
                (Some(Block::Thinking(before)), Block::Thinking(text))
                    if text.starts_with(before.as_str()) =>
                {
                    before.clone_from(text);
                }
                _ => blocks.push(block),
            }
        }
    }
    blocks
}

/// What the envelope says.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(row) = Json::parse(bytes) else { return native };
    for (name, value) in row.fields() {
        let keep = !matches!(
            name,
            b"message" | b"toolUseResult" | b"attachment" | b"content" | b"rendered" | b"snapshot"
        );
        if keep && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    if let Some(message) = row.get("message") {
        for name in ["id", "stop_reason"] {
            if let Some(value) = message.get(name) {
                native.insert(format!("message_{name}"), value.value());
            }
        }
    }
    native
}

fn line_blocks(line: Line<'_>) -> Vec<Block> {
    let Some(row) = line.json().map(Json::object) else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    let kind = row.get_text("type").unwrap_or_default();
    match kind.as_ref() {
        "user" => {
            let content = row.get("message").and_then(|message| message.get("content"));
            content.map(prompt_blocks).unwrap_or_default()
        }
        "assistant" => {
            let content = row.get("message").and_then(|message| message.get("content"));
            content.map(content_blocks).unwrap_or_default()
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "tool_result" => block(&row).into_iter().collect(),
        "attachment" => attachment(&row),
        "system" => {
            let name = row.get_text("subtype").unwrap_or_default().into_owned();
            let text = row.get_text("content").unwrap_or_default().into_owned();
            let known = name.is_empty() || SYSTEM_ROWS.contains(&name.as_str());
            vec![Block::Event { name, text: if known { text } else { original(row.bytes()) } }]
        }
        "" if history::text(&row).is_some() => history::text(&row).map(Block::Text).into_iter().collect(),
        // A structured result on its own.
        "" => vec![Block::ToolResult { call_id: String::new(), output: structured(&row) }],
        other => vec![Block::Event { name: other.to_owned(), text: original(row.bytes()) }],
    }
}

/// Unknown content is shown unchanged.
fn original(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was typed while the assistant was busy: the words are where they were put into the queue, and what became of them
/// is in the other line.
fn queue_blocks(first: Line<'_>, lines: &[Line<'_>]) -> Option<Vec<Block>> {
    let row = first.json()?;
    if row.get_text("type")? != "queue-operation" {
        return None;
    }
    let rows = || lines.iter().filter_map(|line| line.json());
    let content = rows().find_map(|row| row.get("content"));
    let operation = row.get_text("operation").unwrap_or_default();
    Some(match operation.as_ref() {
        "enqueue" => {
            let last = rows().next_back().and_then(|row| row.get_text("operation")).unwrap_or_default();
            let name = match last.as_ref() {
                "popAll" => "taken back from the queue",
                "remove" => "dropped from the queue",
                _ => "queued, not sent",
            };
            vec![Block::Event { name: name.into(), text: spoken(content).words }]
        }
        "dequeue" | "remove" => content.map(prompt_blocks).unwrap_or_default(),
        _ => Vec::new(),
    })
}

/// In a prompt, the person's words are text and everything around them is context. Other rows are shown unchanged.
fn prompt_blocks(content: Json<'_>) -> Vec<Block> {
    let spoken = spoken(Some(content));
    if spoken.kind != MessageKind::Prompt {
        return content_blocks(content);
    }
    let mut blocks = Vec::new();
    for block in content_blocks(content) {
        match block {
            Block::Text(text) => split_text(&text, &mut blocks),
            other => blocks.push(other),
        }
    }
    blocks
}

fn split_text(text: &str, blocks: &mut Vec<Block>) {
    let kind = text_kind(text);
    let pieces = pieces(text);
    for piece in &pieces {
        blocks.push(match piece {
            Piece::Context { tag, text } => {
                Block::Context { name: (*tag).to_owned(), text: text.trim().to_owned() }
            }
            Piece::Words(words) if kind != TextKind::Typed => {
                Block::Context { name: kind.name().to_owned(), text: words.trim().to_owned() }
            }
            // Nothing beside them: the words are shown as they were typed.
            Piece::Words(words) if pieces.len() == 1 => Block::Text((*words).to_owned()),
            Piece::Words(words) => Block::Text(words.trim().to_owned()),
        });
    }
}

fn content_blocks(content: Json<'_>) -> Vec<Block> {
    if let Some(text) = content.text() {
        return vec![Block::Text(text.into_owned())];
    }
    let parts = content.items().filter_map(|part| match part.text() {
        Some(text) => Some(Block::Text(text.into_owned())),
        None => block(&part.object()),
    });
    parts.collect()
}

fn block(part: &Object<'_>) -> Option<Block> {
    let text = |name: &str| part.get_text(name).unwrap_or_default().into_owned();
    let kind = part.get_text("type").unwrap_or_default();
    Some(match kind.as_ref() {
        "text" => Block::Text(text("text")),
        "thinking" => Some(text("thinking")).filter(|text| !text.is_empty()).map(Block::Thinking)?,
        "redacted_thinking" => Block::Thinking("[redacted by the provider]".into()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Block::ToolCall {
            call_id: text("id"),
            name: text("name"),
            input: part.get("input").map(Json::value).unwrap_or_default(),
        },
        "tool_result" => Block::ToolResult {
            call_id: text("tool_use_id"),
            output: part.get("content").map(result_text).unwrap_or_default(),
        },
        "image" | "document" => {
            let source = part.get("source").map(Json::object);
            let media_type = source.as_ref().and_then(|source| source.get_text("media_type"));
            let data = source.as_ref().and_then(|source| source.get("data")).and_then(Json::inner);
            let url = source.as_ref().and_then(|source| source.get_text("url"));
            Block::Image {
                media_type: media_type.unwrap_or_default().into_owned(),
                bytes: data.map_or(0, |data| data.len() as u64 / 4 * 3),
                path: url.map(|url| url.into_owned()),
            }
        }
        other => Block::Event { name: other.to_owned(), text: original(part.bytes()) },
    })
}

fn result_text(content: Json<'_>) -> String {
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let mut text = String::new();
    for part in content.items() {
        let kind = part.get_text("type").unwrap_or_default();
        match part.get_text("text") {
            Some(part) => text.push_str(&part),
            None => {
                let name = part.get_text("tool_name").unwrap_or_default();
                text.push_str(&format!("[{kind} {name}]\n"));
            }
        }
    }
    text
}

fn structured(result: &Object<'_>) -> String {
    let text = |name: &str| result.get_text(name).unwrap_or_default().into_owned();
    let output = text("stdout") + &text("stderr");
    if output.is_empty() { String::from_utf8_lossy(result.bytes()).into_owned() } else { output }
}

fn attachment(row: &Object<'_>) -> Vec<Block> {
    let Some(attachment) = row.get("attachment").map(Json::object) else { return Vec::new() };
    let kind = attachment.get_text("type").unwrap_or_default().into_owned();
    match kind.as_str() {
        "queued_command" => attachment.get("prompt").map(prompt_blocks).unwrap_or_default(),
        unknown if !ATTACHMENTS.contains(&unknown) => {
            vec![Block::Event { text: original(attachment.bytes()), name: kind }]
        }
        _ => {
            let name = attachment.get_text("filename").or_else(|| attachment.get_text("hookName"));
            vec![Block::Attachment { name: name.map_or(kind, |name| name.into_owned()) }]
        }
    }
}
