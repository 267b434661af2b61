//! Lines as blocks, and the native fields of a line.

use serde_json::{Map, Value};

use super::calls::output_text;
use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of a line, of a call or of a result in it.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let Some(json) = line.json().filter(|json| json.is_object()) else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    let line = json.object();
    let text = |name: &str| line.get_text(name).unwrap_or_default().into_owned();
    match text("type").as_str() {
        "turn.prompt" | "turn.steer" => parts(line.get("input")),
        "context.append_message" => parts(line.get("message").and_then(|message| message.get("content"))),
        "context.append_loop_event" => line.get("event").map(event).unwrap_or_default(),
        "tool.call" => event(json),
        "context.apply_compaction" => vec![Block::Text(text("summary"))],
        "profile.bind" => vec![Block::Text(text("systemPrompt"))],
        "turn.cancel" => vec![Block::Event { name: "cancelled".into(), text: text("reason") }],
        "turn.ended" => {
            let error = line.get("error");
            let message = error.and_then(|error| error.text().or_else(|| error.get_text("message")));
            vec![Block::Event { name: "error".into(), text: message.unwrap_or_default().into_owned() }]
        }
        "" if line.get("output").is_some() => {
            let output = output_text(json).into_owned();
            vec![Block::ToolResult { call_id: String::new(), output }]
        }
        kind => {
            let original = String::from_utf8_lossy(line.bytes()).into_owned();
            vec![Block::Event { name: kind.to_owned(), text: original }]
        }
    }
}

/// The fields of a line besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(line) = Json::parse(bytes) else { return native };
    let event = line.get("event").filter(|event| event.is_object()).map(Json::object);
    let fields = line.object();
    for (name, value) in fields.fields().iter().chain(event.iter().flat_map(Object::fields)) {
        let is_content = matches!(
            *name,
            b"input"
                | b"message"
                | b"event"
                | b"part"
                | b"args"
                | b"display"
                | b"result"
                | b"summary"
                | b"contextSummary"
                | b"systemPrompt"
                | b"output"
        );
        if !is_content && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
}

/// The texts of a message.
pub fn texts(content: Option<Json<'_>>) -> Vec<String> {
    let texts = parts(content).into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn event(event: Json<'_>) -> Vec<Block> {
    let text = |name: &str| event.get_text(name).unwrap_or_default().into_owned();
    match text("type").as_str() {
        "content.part" => event.get("part").and_then(part).into_iter().collect(),
        "tool.call" => {
            let input = event.get("args").map(Json::value).unwrap_or_default();
            vec![Block::ToolCall { call_id: text("toolCallId"), name: text("name"), input }]
        }
        "tool.result" => {
            let output = event.get("result").map(output_text).unwrap_or_default().into_owned();
            vec![Block::ToolResult { call_id: text("toolCallId"), output }]
        }
        kind => vec![Block::Event { name: kind.to_owned(), text: String::new() }],
    }
}

fn parts(content: Option<Json<'_>>) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Block::Text(text.into_owned())],
        None => content.items().filter_map(part).collect(),
    }
}

fn part(part: Json<'_>) -> Option<Block> {
    let text = |name: &str| part.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
    match text("type")?.as_str() {
        "text" => text("text").map(Block::Text),
        "think" => text("think").map(Block::Thinking),
        "image" | "image_url" => {
            let address = part.get("image_url").and_then(|image| image.get_text("url")).unwrap_or_default();
            let (head, data) = address.split_once(";base64,").unwrap_or_default();
            let media_type = head.strip_prefix("data:").unwrap_or("image").to_owned();
            Some(Block::Image { media_type, bytes: data.len() as u64 * 3 / 4, path: None })
        }
        _ => None,
    }
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
    fn parts_of_an_answer_are_lines() {
        let part = |part: &str| {
            of(&format!(
                r#"{{"type":"context.append_loop_event","event":{{"type":"content.part","part":{part}}}}}"#
            ))
        };
        assert_eq!(part(r#"{"type":"think","think":"Hm"}"#), [Block::Thinking("Hm".into())]);
        assert_eq!(part(r#"{"type":"text","text":"Oil"}"#), [Block::Text("Oil".into())]);
        let result = of(r#"{"output":"1\ta","durationMs":3}"#);
        assert_eq!(result, [Block::ToolResult { call_id: String::new(), output: "1\ta".into() }]);
    }

    #[test]
    fn errors_are_readable() {
        let failed = of(r#"{"type":"turn.ended","reason":"failed","error":{"message":"400"}}"#);
        assert_eq!(failed, [Block::Event { name: "error".into(), text: "400".into() }]);
    }
}
