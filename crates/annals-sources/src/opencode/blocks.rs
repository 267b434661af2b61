//! Messages, calls and results as blocks, and the native fields of a row.

use serde_json::{Map, Value};

use super::conversation::is_synthetic;
use super::row::{Row, rows_in};
use crate::json::{Json, Line};
use annals_core::Block;

/// Blocks of a line of a conversation, or of a piece of one: a part, an output, the client's record of a call.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let original = || String::from_utf8_lossy(line.bytes()).into_owned();
    let Some(json) = line.json() else { return vec![Block::Text(original())] };
    if let Some(text) = json.text() {
        return vec![Block::ToolResult { call_id: String::new(), output: text.into_owned() }];
    }
    let object = json.object();
    let Some(message) = object.get("message").filter(|message| message.is_object()) else {
        let row = Row::new(json);
        if let Some(diff) = row.text("diff").filter(|_| row.get("type").is_none()) {
            return vec![Block::ToolResult { call_id: String::new(), output: diff.into_owned() }];
        }
        return match row.get("type") {
            Some(_) => part_blocks(&row),
            None => vec![Block::Event { name: "record".into(), text: original() }],
        };
    };
    let row = Row::new(message);
    let mut parts = rows_in(&object, "part");
    parts.extend(rows_in(&row.body, "parts"));
    let mut blocks: Vec<Block> = parts.iter().flat_map(part_blocks).collect();
    blocks.extend(row.get("error").map(error));
    if blocks.is_empty() && !matches!(row.text("role").as_deref(), Some("user" | "assistant")) {
        blocks.push(Block::Event { name: "message".into(), text: original() });
    }
    blocks
}

/// The fields of a message or part besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(json) = Json::parse(bytes) else { return native };
    let row = Row::new(json.get("message").filter(|message| message.is_object()).unwrap_or(json));
    for (name, value) in row.body.fields() {
        let is_content =
            matches!(*name, b"text" | b"state" | b"parts" | b"part" | b"system" | b"summary" | b"data");
        if !is_content && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    let state = row.get("state");
    for name in ["status", "title", "time"] {
        if let Some(value) = state.and_then(|state| state.get(name)) {
            native.insert(name.to_owned(), value.value());
        }
    }
    native
}

fn part_blocks(part: &Row<'_>) -> Vec<Block> {
    let text = |name: &str| part.text(name).unwrap_or_default().into_owned();
    let event = |name: &str, text: String| vec![Block::Event { name: name.into(), text }];
    match text("type").as_str() {
        "text" if text("text").is_empty() => Vec::new(),
        "text" if is_synthetic(part) => vec![Block::Context { name: "client".into(), text: text("text") }],
        "text" => vec![Block::Text(text("text"))],
        "reasoning" if text("text").is_empty() => Vec::new(),
        "reasoning" => vec![Block::Thinking(text("text"))],
        "tool" => call_blocks(part),
        "file" => vec![file(part)],
        "agent" => vec![Block::Context { name: "agent".into(), text: text("name") }],
        "subtask" => vec![Block::Text([text("command"), text("prompt")].join(" ").trim().to_owned())],
        "compaction" => {
            let is_automatic = part.get("auto").and_then(Json::boolean) == Some(true);
            event("compaction", if is_automatic { "automatic" } else { "requested" }.into())
        }
        "retry" => part.get("error").map(error).into_iter().collect(),
        // Marks between steps, and hashes of the client's copies of files.
        "step-start" | "step-finish" | "snapshot" | "patch" => Vec::new(),
        other => event(other, String::from_utf8_lossy(part.bytes()).into_owned()),
    }
}

/// A call with its result.
fn call_blocks(part: &Row<'_>) -> Vec<Block> {
    let text = |name: &str| part.text(name).unwrap_or_default().into_owned();
    let state = part.get("state");
    let input = state.and_then(|state| state.get("input")).map(Json::value).unwrap_or_default();
    vec![Block::ToolCall { call_id: text("callID"), name: text("tool"), input }]
}

fn file(part: &Row<'_>) -> Block {
    let media_type = part.text("mime").unwrap_or_default().into_owned();
    let url = part.get("url").and_then(Json::inner).unwrap_or_default();
    let data = url.windows(8).take(200).position(|piece| piece == b";base64,");
    match data.filter(|_| media_type.starts_with("image/")) {
        Some(at) => Block::Image { media_type, bytes: (url.len() - at - 8) as u64 * 3 / 4, path: None },
        None => {
            let name = part.text("filename").map(|name| name.into_owned());
            let address = || String::from_utf8_lossy(&url[..url.len().min(200)]).into_owned();
            Block::Attachment { name: name.unwrap_or_else(address) }
        }
    }
}

fn error(error: Json<'_>) -> Block {
    let message = error.get("data").and_then(|data| data.get_text("message"));
    let text = message.or_else(|| error.get_text("message")).unwrap_or_default().into_owned();
    let name = error.get_text("name").unwrap_or_else(|| "error".into());
    Block::Event { name: name.into_owned(), text }
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
    fn rows_and_files_have_the_same_blocks() {
        let row = r#"{"message":{"id":"m","data":{"role":"assistant","error":{"name":"APIError","data":{"message":"400"}}}},
            "part":[{"id":"p","data":{"type":"reasoning","text":"Hm"}},{"id":"q","data":{"type":"tool","tool":"read","callID":"c","state":{"input":{"filePath":"a"}}}}]}"#;
        let file = r#"{"message":{"id":"m","role":"assistant","error":{"name":"APIError","data":{"message":"400"}}},
            "part":[{"id":"p","type":"reasoning","text":"Hm"},{"id":"q","type":"tool","tool":"read","callID":"c","state":{"input":{"filePath":"a"}}}]}"#;
        let found = of(row);
        assert_eq!(found, of(file));
        assert_eq!(found[0], Block::Thinking("Hm".into()));
        assert!(matches!(&found[1], Block::ToolCall { name, .. } if name == "read"));
        assert_eq!(found[2], Block::Event { name: "APIError".into(), text: "400".into() });
    }

    #[test]
    fn what_the_client_adds_to_a_prompt_is_context() {
        let found = of(
            r#"{"message":{"role":"user"},"part":[{"type":"text","text":"Look"},{"type":"text","text":"x","synthetic":true},
            {"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"},{"type":"file","mime":"text/plain","filename":"a.txt","url":"file:///a.txt"}]}"#,
        );
        assert_eq!(found[0], Block::Text("Look".into()));
        assert!(matches!(&found[1], Block::Context { .. }));
        assert_eq!(found[2], Block::Image { media_type: "image/png".into(), bytes: 3, path: None });
        assert_eq!(found[3], Block::Attachment { name: "a.txt".into() });
        assert!(matches!(&of("\"printed\"")[0], Block::ToolResult { output, .. } if output == "printed"));
    }
}
