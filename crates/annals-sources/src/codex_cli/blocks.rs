//! Lines as blocks, and the native fields of a line.

use serde_json::{Map, Value};

use super::authorship::{is_injected_text, request};
use super::history;
use crate::json::{Json, Line};
use annals_core::Block;

/// Blocks of whatever the bytes are: a wrapped line, a bare item, an event, an item of a paginated file.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let Some(line) = line.json() else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    let payload = line.get("payload").unwrap_or(line);
    let item = payload.get("item").filter(|item| item.is_object());
    let kind = match item {
        Some(item) => item.get_text("type"),
        None if line.get_text("type").is_some_and(|kind| kind == "compacted") => Some("compacted".into()),
        None => payload.get_text("type"),
    };
    let body = item.unwrap_or(payload);
    let text = |name: &str| body.get_text(name).unwrap_or_default().into_owned();
    let kind = kind.unwrap_or_default();
    match kind.as_ref() {
        "message" | "UserMessage" | "AgentMessage" => {
            let role = body.get_text("role");
            let user = kind == "UserMessage" || role.is_some_and(|role| role == "user");
            let mut blocks = content(body);
            if user {
                set_apart(&mut blocks);
            }
            blocks.into_iter().flat_map(|block| split(block, user)).collect()
        }
        "user_message" | "agent_message" if body.get("message").is_some() => {
            let mut blocks = split(Block::Text(text("message")), kind == "user_message");
            for name in ["images", "local_images"] {
                blocks.extend(body.get(name).iter().flat_map(|images| images.items()).filter_map(image));
            }
            blocks
        }
        "agent_message" | "inter_agent_communication" => content(body),
        "reasoning" => thinking(body),
        "compacted" => vec![Block::Text(text("message"))],
        "function_call" => vec![call(body, text("call_id"), Value::from(text("arguments")))],
        "custom_tool_call" => vec![call(body, text("call_id"), Value::from(text("input")))],
        "local_shell_call" | "web_search_call" => {
            let id = body.get_text("call_id").or_else(|| body.get_text("id")).unwrap_or_default();
            vec![call(body, id.into_owned(), body.get("action").map(Json::value).unwrap_or_default())]
        }
        "tool_search_call" => {
            let arguments = body.get("arguments").map(Json::value).unwrap_or_default();
            vec![call(body, text("call_id"), arguments)]
        }
        "image_generation_call" => vec![call(body, text("id"), Value::from(text("revised_prompt")))],
        "function_call_output" | "custom_tool_call_output" => {
            vec![Block::ToolResult { call_id: text("call_id"), output: output_text(body.get("output")) }]
        }
        "tool_search_output" => {
            vec![Block::ToolResult { call_id: text("call_id"), output: output_text(body.get("tools")) }]
        }
        "CommandExecution" => {
            vec![
                call(body, text("id"), body.get("command").map(Json::value).unwrap_or_default()),
                Block::ToolResult { call_id: text("id"), output: text("aggregated_output") },
            ]
        }
        "exec_command_end" => {
            vec![Block::ToolResult { call_id: text("call_id"), output: text("aggregated_output") }]
        }
        "McpToolCall" => {
            let output =
                body.get("result").or_else(|| body.get("error")).map(Json::value).unwrap_or_default();
            vec![
                call(body, text("id"), body.get("arguments").map(Json::value).unwrap_or_default()),
                Block::ToolResult { call_id: text("id"), output: output.to_string() },
            ]
        }
        "FileChange" => {
            vec![
                call(body, text("id"), body.get("changes").map(Json::value).unwrap_or_default()),
                Block::ToolResult { call_id: text("id"), output: text("stdout") + &text("stderr") },
            ]
        }
        // An entry of the prompt history.
        "" if history::text(&body.object()).is_some() => {
            history::text(&body.object()).map(|text| Block::Text(text.into())).into_iter().collect()
        }
        other => {
            let name = Some(other).filter(|name| !name.is_empty()).map(str::to_owned);
            let name = name.or_else(|| line.get_text("type").map(|kind| kind.into_owned()));
            vec![Block::Event { name: name.unwrap_or_default(), text: event_text(body) }]
        }
    }
}

/// Type, ids, turn and phase.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(line) = Json::parse(bytes) else { return native };
    let payload = line.get("payload").unwrap_or(line);
    let body = payload.get("item").filter(|item| item.is_object()).unwrap_or(payload);
    let passthrough = body.get("internal_chat_message_metadata_passthrough");
    let mut keep = |name: &str, value: Option<Json<'_>>| {
        if let Some(value) = value {
            native.insert(name.into(), value.value());
        }
    };
    keep("line_type", line.get("payload").and_then(|_| line.get("type")));
    keep("type", body.get("type"));
    keep("id", body.get("id"));
    keep("phase", body.get("phase"));
    keep("status", body.get("status"));
    keep("ordinal", line.get("ordinal"));
    let in_passthrough = |name: &str| passthrough.and_then(|metadata| metadata.get(name));
    keep("turn_id", payload.get("turn_id").or_else(|| in_passthrough("turn_id")));
    keep("content_item_kinds", in_passthrough("content_item_kinds"));
    native
}

/// Injected parts beside a prompt's words are context; a message of nothing else is shown as it is.
fn set_apart(blocks: &mut [Block]) {
    let spoken = |block: &Block| matches!(block, Block::Text(text) if !is_injected_text(text));
    if !blocks.iter().any(spoken) {
        return;
    }
    for block in blocks {
        if let Block::Text(text) = block
            && is_injected_text(text)
        {
            *block = Block::Context { name: "injected".into(), text: std::mem::take(text) };
        }
    }
}

/// What an editor put above a prompt is context, and so is what an answer cites from memories.
fn split(block: Block, user: bool) -> Vec<Block> {
    let Block::Text(text) = block else { return vec![block] };
    if user {
        let (Some(context), words) = request(&text) else { return vec![Block::Text(text)] };
        let context = Block::Context { name: "editor".into(), text: context.to_owned() };
        return vec![context, Block::Text(words.to_owned())];
    }
    let cited = text.split_once("<oai-mem-citation>").and_then(|(words, rest)| {
        let (cited, after) = rest.split_once("</oai-mem-citation>")?;
        Some((format!("{}{after}", words.trim_end()), cited.trim().to_owned()))
    });
    match cited {
        Some((words, cited)) => vec![
            Block::Text(words.trim_end().to_owned()),
            Block::Context { name: "oai-mem-citation".into(), text: cited },
        ],
        None => vec![Block::Text(text)],
    }
}

fn content(body: Json<'_>) -> Vec<Block> {
    let Some(content) = body.get("content") else { return Vec::new() };
    if let Some(text) = content.text() {
        return vec![Block::Text(text.into_owned())];
    }
    let mut blocks = Vec::new();
    for part in content.items() {
        let kind = part.get_text("type").unwrap_or_default();
        match kind.as_ref() {
            "input_image" | "image" | "local_image" => blocks.extend(image(part)),
            "encrypted_content" => {
                let text = "unreadable: encrypted by the provider".to_owned();
                blocks.push(Block::Event { name: "encrypted_content".into(), text });
            }
            "skill" | "mention" => {
                let name = part.get_text("path").or_else(|| part.get_text("name")).unwrap_or_default();
                blocks.push(Block::Attachment { name: name.into_owned() });
            }
            _ => match part.get_text("text") {
                Some(text) => blocks.push(Block::Text(text.into_owned())),
                None => blocks.push(Block::Attachment { name: kind.into_owned() }),
            },
        }
    }
    blocks
}

/// A `data:` URL, another URL, or a path; the picture's own bytes stay in the archive.
fn image(part: Json<'_>) -> Option<Block> {
    let path = part.get_text("path").map(|path| path.into_owned());
    let url = part.get("image_url").or_else(|| part.is_string().then_some(part));
    let Some(inner) = url.and_then(Json::inner) else {
        return path.map(|path| Block::Image { media_type: String::new(), bytes: 0, path: Some(path) });
    };
    match inner.strip_prefix(b"data:") {
        Some(data) => {
            let comma = memchr::memchr(b',', data).unwrap_or(data.len());
            let head = String::from_utf8_lossy(&data[..comma]);
            let media_type = head.split(';').next().unwrap_or_default().to_owned();
            let bytes = (data.len().saturating_sub(comma + 1) as u64) / 4 * 3;
            Some(Block::Image { media_type, bytes, path })
        }
        None => {
            let path = Some(String::from_utf8_lossy(inner).into_owned());
            Some(Block::Image { media_type: String::new(), bytes: 0, path })
        }
    }
}

fn thinking(body: Json<'_>) -> Vec<Block> {
    let parts = ["summary", "content"].iter().filter_map(|name| body.get(name));
    let texts =
        parts.flat_map(|parts| parts.items().filter_map(|part| part.get_text("text")).collect::<Vec<_>>());
    texts.map(|text| Block::Thinking(text.into_owned())).collect()
}

fn call(body: Json<'_>, call_id: String, input: Value) -> Block {
    let name = body.get_text("name").or_else(|| body.get_text("tool")).or_else(|| body.get_text("type"));
    Block::ToolCall { call_id, name: name.unwrap_or_default().into_owned(), input }
}

fn output_text(output: Option<Json<'_>>) -> String {
    let Some(output) = output else { return String::new() };
    if let Some(text) = output.text() {
        return text.into_owned();
    }
    let mut text = String::new();
    for part in output.items() {
        match part.get_text("text") {
            Some(part) => text.push_str(&part),
            None => {
                let kind = part.get_text("type").unwrap_or_default();
                let name = part.get_text("name").unwrap_or_default();
                text.push_str(&format!("[{kind} {name}]\n"));
            }
        }
    }
    text
}

/// The words of an event: its own message, or its small fields.
fn event_text(body: Json<'_>) -> String {
    for name in ["message", "text", "reason", "objective"] {
        if let Some(text) = body.get_text(name) {
            return text.into_owned();
        }
    }
    if let Some(message) = body.get("error").and_then(|error| error.get_text("message")) {
        return message.into_owned();
    }
    let small = body.fields().filter(|(name, value)| {
        !matches!(*name, b"type" | b"id" | b"turn_id" | b"root_turn_id")
            && !value.is_null()
            && value.bytes().len() < 4_000
    });
    let parts = small.map(|(name, value)| {
        let text = value.text().map(|text| text.into_owned()).unwrap_or_else(|| value.value().to_string());
        format!("{}: {text}", String::from_utf8_lossy(name))
    });
    parts.collect::<Vec<_>>().join(", ")
}
