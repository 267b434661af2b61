//! Messages, calls and results as blocks, and the native fields of a message.

use serde_json::{Map, Value};

use super::calls::{call_of, result_of};
use super::markup::{answer_in, call_in, words_in};
use crate::json::{Json, Line};
use annals_core::Block;

/// Blocks of a message, or of a call or a result in it.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let Some(json) = line.json().filter(|json| json.is_object()) else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    match json.get_text("role").as_deref() {
        Some("assistant") if is_error(json) => {
            let content = json.get("content");
            let text = contents(content).filter_map(|block| block.get_text("text"));
            vec![Block::Event { name: "error".into(), text: text.collect::<Vec<_>>().join("\n") }]
        }
        Some("assistant") => contents(json.get("content")).flat_map(assistant_blocks).collect(),
        Some(_) => contents(json.get("content")).flat_map(user_blocks).collect(),
        None => piece(json),
    }
}

/// The client shows an error as an answer.
pub fn is_error(message: Json<'_>) -> bool {
    let metadata = message.get("metadata");
    metadata.and_then(|metadata| metadata.get("displayOnly")).and_then(Json::boolean) == Some(true)
}

/// The blocks of a content: a list, or a single text.
pub fn contents(content: Option<Json<'_>>) -> impl Iterator<Item = Json<'_>> {
    let single = content.filter(|content| content.is_string());
    content.into_iter().flat_map(Json::items).chain(single)
}

/// The words of a person in a message.
pub fn words_of(message: Json<'_>) -> Vec<String> {
    let texts = contents(message.get("content")).filter_map(text_of);
    texts.filter_map(|text| words_in(&text).map(str::to_owned)).collect()
}

/// The fields of a message besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(message) = Json::parse(bytes) else { return native };
    for (name, value) in message.fields() {
        let is_content = matches!(name, b"content" | b"input" | b"text" | b"thinking");
        if !is_content && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
}

fn text_of(block: Json<'_>) -> Option<String> {
    if let Some(text) = block.text() {
        return Some(text.into_owned());
    }
    let is_text = block.get_text("type").is_some_and(|kind| kind == "text");
    block.get_text("text").filter(|_| is_text).map(|text| text.into_owned())
}

fn piece(block: Json<'_>) -> Vec<Block> {
    if let Some(call) = call_of(block) {
        return vec![Block::ToolCall { call_id: call.id, name: call.name, input: call.input }];
    }
    if let Some((call_id, result)) = result_of(block) {
        return vec![Block::ToolResult { call_id, output: result.text() }];
    }
    text_of(block).map(Block::Text).into_iter().collect()
}

fn assistant_blocks(block: Json<'_>) -> Vec<Block> {
    let text =
        |name: &str| block.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
    if block.get_text("type").is_some_and(|kind| kind == "thinking") {
        return text("thinking").map(Block::Thinking).into_iter().collect();
    }
    let Some(spoken) = text_of(block) else { return other(block).unwrap_or_else(|| piece(block)) };
    let mut found = Vec::new();
    let mut say = |text: &str| {
        if !text.trim().is_empty() {
            found.push(Block::Text(text.to_owned()));
        }
    };
    match (call_in(&spoken), answer_in(&spoken)) {
        (Some(call), _) => {
            say(call.before);
            found.extend(piece(block));
        }
        (None, Some((before, answer))) => {
            say(before);
            say(&answer);
        }
        (None, None) => say(&spoken),
    }
    found
}

/// What a person typed is text; what the client added to it is context.
fn user_blocks(block: Json<'_>) -> Vec<Block> {
    if let Some((call_id, result)) = result_of(block) {
        let words = text_of(block).and_then(|text| words_in(&text).map(str::to_owned));
        let result = Block::ToolResult { call_id, output: result.text() };
        return [result].into_iter().chain(words.map(Block::Text)).collect();
    }
    let Some(text) = text_of(block) else { return other(block).unwrap_or_default() };
    match words_in(&text) {
        Some(words) => vec![Block::Text(words.to_owned())],
        None if text.trim().is_empty() => Vec::new(),
        None => vec![Block::Context { name: "client".into(), text }],
    }
}

fn other(block: Json<'_>) -> Option<Vec<Block>> {
    block.get_text("type").filter(|kind| kind == "image")?;
    let source = block.get("source").unwrap_or(block);
    let media_type = source.get_text("media_type").or_else(|| source.get_text("mediaType"));
    let bytes = source.get("data").and_then(Json::inner).map_or(0, |data| data.len() as u64 * 3 / 4);
    Some(vec![Block::Image { media_type: media_type.unwrap_or_default().into_owned(), bytes, path: None }])
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
    fn answers_have_thinking_text_and_calls() {
        let found = of(r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm"},
            {"type":"text","text":"I read.\n\n<read_file>\n<path>a</path>\n</read_file>"}]}"#);
        assert_eq!(found[..2], [Block::Thinking("Hm".into()), Block::Text("I read.".into())]);
        assert!(matches!(&found[2], Block::ToolCall { name, .. } if name == "read_file"));
        let last = r#"{"role":"assistant","content":[{"type":"text","text":"<attempt_completion>\n<result>Oiled.</result>\n</attempt_completion>"}]}"#;
        assert_eq!(of(last), [Block::Text("Oiled.".into())]);
    }

    #[test]
    fn words_are_text_and_the_rest_is_context() {
        let found = of(r#"{"role":"user","content":[{"type":"text","text":"<task>\nOil\n</task>"},
            {"type":"text","text":"<environment_details>\nx</environment_details>"}]}"#);
        assert_eq!(found[0], Block::Text("Oil".into()));
        assert!(matches!(&found[1], Block::Context { .. }));
    }
}
