//! Messages, calls and results as blocks, and the native fields of a message.

use serde_json::{Map, Value};

use super::calls::response_text;
use super::logs;
use super::people::{REFERENCED, typed_command, without_reminder};
use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of a message whose later lines repeat it, longer each time, or of a piece of a message.
pub fn blocks(lines: &[Line<'_>]) -> Vec<Block> {
    let is_list = |line: &Line<'_>| line.json().is_some_and(is_list_of_calls);
    let Some(line) = lines.iter().rev().find(|line| !is_list(line)).or(lines.last()) else {
        return Vec::new();
    };
    let Some(json) = line.json() else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    if is_list_of_calls(json) {
        return json.items().filter_map(|call| call_blocks(&call.object()).into_iter().next()).collect();
    }
    if json.is_array() || json.is_string() {
        let output = response_text(json).unwrap_or_default().into_owned();
        return vec![Block::ToolResult { call_id: String::new(), output }];
    }
    let object = json.object();
    if let Some(text) = logs::text(&object) {
        return vec![Block::Text(text.into_owned())];
    }
    if object.get("args").is_some() || object.get("result").is_some() {
        return call_blocks(&object);
    }
    if let Some(undone) = object.get_text("$rewindTo") {
        return vec![Block::Event { name: "rewind".into(), text: undone.into_owned() }];
    }
    match object.get_text("type").as_deref() {
        Some("user") => user_blocks(&object),
        Some("gemini" | "qwen") => answer_blocks(&object),
        Some(kind @ ("info" | "error" | "warning")) => {
            let text = object.get("content").map(plain_text).unwrap_or_default();
            vec![Block::Event { name: kind.to_owned(), text }]
        }
        None if object.get("fileDiff").is_some() => {
            let output = object.get_text("fileDiff").unwrap_or_default().into_owned();
            vec![Block::ToolResult { call_id: String::new(), output }]
        }
        None if object.get("role").is_some() => parts(object.get("parts")),
        kind => {
            let text = String::from_utf8_lossy(object.bytes()).into_owned();
            vec![Block::Event { name: kind.unwrap_or_default().to_owned(), text }]
        }
    }
}

/// The fields of a message besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(message) = Json::parse(bytes) else { return native };
    for (name, value) in message.fields() {
        let keep = !matches!(
            name,
            b"content"
                | b"displayContent"
                | b"thoughts"
                | b"toolCalls"
                | b"result"
                | b"resultDisplay"
                | b"args"
        );
        if keep && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
}

fn plain_text(content: Json<'_>) -> String {
    content.text().map_or_else(|| super::people::texts(content).join("\n"), |text| text.into_owned())
}

/// Calls that a message got after its text was written.
fn is_list_of_calls(json: Json<'_>) -> bool {
    json.is_array() && json.items().next().is_some_and(|first| first.get("args").is_some())
}

/// A call with its result.
fn call_blocks(call: &Object<'_>) -> Vec<Block> {
    let text = |name: &str| call.get_text(name).unwrap_or_default().into_owned();
    let input = call.get("args").map(Json::value).unwrap_or_default();
    let mut blocks = vec![Block::ToolCall { call_id: text("id"), name: text("name"), input }];
    if let Some(output) = call.get("result").and_then(response_text) {
        blocks.push(Block::ToolResult { call_id: text("id"), output: output.into_owned() });
    }
    blocks
}

fn answer_blocks(message: &Object<'_>) -> Vec<Block> {
    let thoughts = message.get("thoughts");
    let mut blocks: Vec<Block> =
        thoughts.iter().flat_map(|thoughts| thoughts.items()).filter_map(thinking).collect();
    blocks.extend(parts(message.get("content")));
    let calls = message.get("toolCalls");
    for call in calls.iter().flat_map(|calls| calls.items()) {
        blocks.extend(call_blocks(&call.object()).into_iter().next());
    }
    blocks
}

fn thinking(thought: Json<'_>) -> Option<Block> {
    let (subject, description) = (thought.get_text("subject"), thought.get_text("description"));
    let lines = [subject, description].into_iter().flatten().filter(|text| !text.is_empty());
    let text = lines.map(|text| text.into_owned()).collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(Block::Thinking(text))
}

/// What a person typed is text; what the client added to it is context.
fn user_blocks(message: &Object<'_>) -> Vec<Block> {
    if let Some(typed) = message.get("displayContent") {
        let mut blocks = parts(Some(typed));
        let text = message.get("content").map(plain_text).unwrap_or_default();
        blocks.push(Block::Context { name: "expanded".into(), text });
        return blocks;
    }
    typed_blocks(message.get("content"))
}

/// The parts of a user's message.
pub fn typed_blocks(content: Option<Json<'_>>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut referenced = false;
    for block in parts(content) {
        let Block::Text(text) = block else {
            blocks.push(block);
            continue;
        };
        referenced |= text.trim_start().starts_with(REFERENCED);
        if referenced {
            blocks.push(Block::Context { name: "referenced file".into(), text });
        } else if let Some((command, printed)) = typed_command(&text) {
            blocks.push(Block::Text(command.to_owned()));
            blocks.push(Block::ToolResult { call_id: String::new(), output: printed.to_owned() });
        } else if let Some((reminder, words)) = without_reminder(&text) {
            blocks.push(Block::Context { name: "system-reminder".into(), text: reminder.to_owned() });
            blocks.push(Block::Text(words.to_owned()));
        } else {
            blocks.push(Block::Text(text));
        }
    }
    blocks
}

/// A string, or the parts of a request to the model.
pub fn parts(content: Option<Json<'_>>) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    if let Some(text) = content.text() {
        return if text.is_empty() { Vec::new() } else { vec![Block::Text(text.into_owned())] };
    }
    let single = content.is_object().then_some(content);
    content.items().chain(single).filter_map(part).collect()
}

fn part(part: Json<'_>) -> Option<Block> {
    if let Some(text) = part.get_text("text").filter(|text| !text.is_empty()) {
        let is_thought = part.get("thought").and_then(Json::boolean) == Some(true);
        return Some(match is_thought {
            true => Block::Thinking(text.into_owned()),
            false => Block::Text(text.into_owned()),
        });
    }
    if let Some(call) = part.get("functionCall") {
        let text = |name: &str| call.get_text(name).unwrap_or_default().into_owned();
        let input = call.get("args").map(Json::value).unwrap_or_default();
        return Some(Block::ToolCall { call_id: text("id"), name: text("name"), input });
    }
    if let Some(response) = part.get("functionResponse") {
        let call_id = response.get_text("id").unwrap_or_default().into_owned();
        let output = response.get("response").map(|response| {
            let value = response.get("output").or_else(|| response.get("error")).unwrap_or(response);
            value
                .text()
                .map_or_else(|| String::from_utf8_lossy(value.bytes()).into_owned(), |text| text.into_owned())
        });
        return Some(Block::ToolResult { call_id, output: output.unwrap_or_default() });
    }
    if let Some(data) = part.get("inlineData") {
        let media_type = data.get_text("mimeType").unwrap_or_default().into_owned();
        let bytes = data.get("data").and_then(Json::inner).map_or(0, |data| data.len() as u64 * 3 / 4);
        return Some(Block::Image { media_type, bytes, path: None });
    }
    let file = part.get("fileData")?;
    let name = file.get_text("fileUri").or_else(|| file.get_text("displayName")).unwrap_or_default();
    Some(Block::Attachment { name: name.into_owned() })
}

#[cfg(test)]
mod tests {
    use super::blocks;
    use crate::json::Scan;
    use annals_core::Block;

    fn of(line: &str) -> Vec<Block> {
        blocks(&[Scan::new(line.as_bytes()).line()])
    }

    #[test]
    fn an_answer_has_thoughts_text_and_calls() {
        let line = r#"{"id":"1","type":"gemini","content":"Done.","thoughts":[{"subject":"Plan","description":"Oil"}],
            "toolCalls":[{"id":"c","name":"glob","args":{"pattern":"*"},"result":[]}]}"#;
        let kinds: Vec<_> = of(line);
        assert_eq!(kinds[0], Block::Thinking("Plan\nOil".into()));
        assert_eq!(kinds[1], Block::Text("Done.".into()));
        assert!(matches!(&kinds[2], Block::ToolCall { name, .. } if name == "glob"));
    }

    #[test]
    fn referenced_files_are_context() {
        let line = r#"{"id":"1","type":"user","content":[{"text":"Look at @a.txt"},{"text":"\n--- Content from referenced files ---"},
            {"text":"a"}]}"#;
        let found = of(line);
        assert_eq!(found[0], Block::Text("Look at @a.txt".into()));
        assert!(found[1..].iter().all(|block| matches!(block, Block::Context { .. })));
        let typed = of(r#"{"id":"1","type":"user","content":"long","displayContent":"short"}"#);
        assert_eq!(typed[0], Block::Text("short".into()));
    }

    #[test]
    fn what_was_typed_for_the_shell_is_shown_with_what_it_printed() {
        let line = r#"{"id":"1","type":"user","content":[{"text":"I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na\n```"}]}"#;
        assert_eq!(of(line)[0], Block::Text("ls".into()));
    }
}
