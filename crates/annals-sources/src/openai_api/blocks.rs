//! Steps as blocks, and the native fields of a row.

use serde_json::{Map, Value};

use super::tools::Tool;
use super::{steps, stream, tools};
use crate::json::{Json, Object, unescape};
use annals_core::Block;

/// Blocks of the bytes of a row: a value, a value within a string, or part of a stream.
pub fn blocks(bytes: &[u8]) -> Vec<Block> {
    if let Some(value) = Json::parse(bytes) {
        return value_blocks(value);
    }
    let text = unescape(bytes);
    if let Some(value) = Json::parse(text.as_bytes()) {
        return value_blocks(value);
    }
    if stream::is_stream(text.as_bytes()) {
        let words = stream::unfinished_text(text.as_bytes());
        return some(words).map(Block::Text).into_iter().collect();
    }
    if let Some(choice) = stream::choice_from(text.as_bytes()) {
        let thinking = some(choice.reasoning).map(Block::Thinking);
        let spoken = [choice.text, choice.refusal].into_iter().filter_map(some).map(Block::Text);
        return thinking.into_iter().chain(spoken).collect();
    }
    match stream::call_from(text.as_bytes()) {
        Some(call) => {
            vec![Block::ToolCall { call_id: call.id, name: call.name, input: Value::from(call.arguments) }]
        }
        None => vec![Block::Text(text)],
    }
}

/// Fields of a message or an item besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let text = unescape(bytes);
    let value = Json::parse(bytes).or_else(|| Json::parse(text.as_bytes()));
    let mut native = Map::new();
    for (name, value) in value.into_iter().flat_map(Json::fields) {
        let content =
            matches!(name, b"content" | b"content_parts" | b"output" | b"arguments" | b"tool_calls");
        if !content && !value.is_null() && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn value_blocks(value: Json<'_>) -> Vec<Block> {
    if let Some(text) = value.text() {
        return vec![Block::Text(text.into_owned())];
    }
    let object = value.object();
    let kind = object.get_text("type").unwrap_or_default();
    if object.get("role").is_some() {
        return message(&object);
    }
    match kind.as_ref() {
        "reasoning" => vec![Block::Thinking(tools::reasoning(&object))],
        "compaction" | "mcp_approval_request" | "mcp_approval_response" => {
            let text = object.get_text("name").unwrap_or_default().into_owned();
            vec![Block::Event { name: kind.into_owned(), text }]
        }
        _ if object.get("function").or_else(|| object.get("custom")).is_some() => chat_call(&object),
        "" if object.get("arguments").is_some() => {
            let name = object.get_text("name").unwrap_or_default().into_owned();
            let input = object.get("arguments").map(Json::value).unwrap_or_default();
            vec![Block::ToolCall { call_id: name.clone(), name, input }]
        }
        kind => match tools::of_item(kind) {
            Some(tool) => item(&object, &tool),
            None => vec![event(&object, kind)],
        },
    }
}

fn item(object: &Object<'_>, tool: &Tool) -> Vec<Block> {
    let call_id =
        object.get_text("call_id").or_else(|| object.get_text("id")).unwrap_or_default().into_owned();
    let output = tools::output(object).map(|output| Block::ToolResult { call_id: call_id.clone(), output });
    match tool {
        Tool::Output => output.into_iter().collect(),
        Tool::Call { ran, .. } => {
            let call = Block::ToolCall { call_id, name: tools::name(object), input: tools::input(object) };
            [call].into_iter().chain(output.filter(|_| *ran)).collect()
        }
    }
}

fn chat_call(object: &Object<'_>) -> Vec<Block> {
    let Some(function) = object.get("function").or_else(|| object.get("custom")) else { return Vec::new() };
    let input = function.get("arguments").or_else(|| function.get("input"));
    vec![Block::ToolCall {
        call_id: object.get_text("id").unwrap_or_default().into_owned(),
        name: function.get_text("name").unwrap_or_default().into_owned(),
        input: input.map(Json::value).unwrap_or_default(),
    }]
}

fn message(object: &Object<'_>) -> Vec<Block> {
    let role = object.get_text("role").unwrap_or_default();
    if matches!(role.as_ref(), "tool" | "function") {
        let call_id = object.get_text("tool_call_id").or_else(|| object.get_text("name")).unwrap_or_default();
        return vec![Block::ToolResult { call_id: call_id.into_owned(), output: steps::words(object) }];
    }
    let mut blocks = Vec::new();
    blocks.extend(
        object.get_text("reasoning_content").and_then(|text| some(text.into_owned())).map(Block::Thinking),
    );
    let content = object.get("content").or_else(|| object.get("content_parts"));
    match content.map(|content| (content.text(), content)) {
        Some((Some(text), _)) => blocks.extend(some(text.into_owned()).map(Block::Text)),
        Some((None, content)) => blocks.extend(content.items().map(part)),
        None => {}
    }
    blocks.extend(object.get_text("refusal").map(|text| Block::Text(text.into_owned())));
    if let Some(transcript) = object.get("audio").and_then(|audio| audio.get_text("transcript")) {
        blocks.push(Block::Text(transcript.into_owned()));
    }
    blocks
}

fn part(part: Json<'_>) -> Block {
    if let Some(text) = part.text() {
        return Block::Text(text.into_owned());
    }
    let object = part.object();
    let kind = object.get_text("type").unwrap_or_default();
    let named = |name: &str| object.get_text(name).map(|text| text.into_owned());
    match kind.as_ref() {
        "refusal" => Block::Text(named("refusal").unwrap_or_default()),
        "image_url" | "input_image" | "computer_screenshot" => {
            let url = object.get("image_url");
            let url = url.and_then(|url| url.get("url").or(Some(url))).filter(|url| url.is_string());
            image(url, named("file_id"))
        }
        "file" | "input_file" => {
            let inside = object.get("file").map_or_else(|| object.clone(), Json::object);
            let name = ["filename", "file_id", "file_url"].iter().find_map(|name| inside.get_text(name));
            Block::Attachment { name: name.map_or_else(|| "file".into(), |name| name.into_owned()) }
        }
        "input_audio" => {
            let format =
                object.get("input_audio").and_then(|audio| audio.get_text("format").map(|f| f.into_owned()));
            Block::Attachment {
                name: format.map_or_else(|| "audio".into(), |format| format!("audio.{format}")),
            }
        }
        _ => match named("text") {
            Some(text) => Block::Text(text),
            None => Block::Event { name: kind.into_owned(), text: String::new() },
        },
    }
}

/// An address, or the image itself in base64.
fn image(url: Option<Json<'_>>, file: Option<String>) -> Block {
    let start = url.map(|url| url.head(100)).unwrap_or_default();
    match start.strip_prefix("data:").and_then(|rest| rest.split_once([';', ','])) {
        Some((media_type, _)) => {
            let length =
                url.and_then(Json::inner).map_or(0, |data| data.len().saturating_sub(media_type.len()));
            Block::Image { media_type: media_type.to_owned(), bytes: length as u64 / 4 * 3, path: None }
        }
        None => {
            let path = url.and_then(Json::text).map(|url| url.into_owned()).or(file);
            Block::Image { media_type: String::new(), bytes: 0, path }
        }
    }
}

/// An error, or an item of an unknown type.
fn event(object: &Object<'_>, kind: &str) -> Block {
    let inside =
        object.get("error").filter(|error| error.is_object()).map_or_else(|| object.clone(), Json::object);
    let text = ["message", "error_message", "reason"].iter().find_map(|name| inside.get_text(name));
    let code = inside.get_text("code").or_else(|| inside.get_text("error_class"));
    let name = if text.is_some() || kind.is_empty() { "error" } else { kind };
    let text = [code.unwrap_or_default(), text.unwrap_or_default()].join(" ").trim().to_owned();
    Block::Event { name: name.to_owned(), text }
}
