//! Events, calls and results as blocks, and the native fields of an event.

use serde_json::{Map, Value};

use super::calls::{arguments_of, without_exit_code};
use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of an event, or of a piece of one: a call in an answer, a result, the data of a completion.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let original = || String::from_utf8_lossy(line.bytes()).into_owned();
    let Some(json) = line.json() else { return vec![Block::Text(original())] };
    let object = json.object();
    let text = |name: &str| object.get_text(name).unwrap_or_default().into_owned();
    let Some(data) = object.get("data").filter(|data| data.is_object() && object.get("type").is_some())
    else {
        if object.get("toolCallId").is_some() && object.get("success").is_none() {
            return vec![call_block(&object)];
        }
        let event = || Block::Event { name: "record".into(), text: original() };
        return vec![result_block(&object).unwrap_or_else(event)];
    };
    let (kind, data) = (text("type"), data.object());
    let field = |name: &str| data.get_text(name).unwrap_or_default().into_owned();
    let event = |text: String| vec![Block::Event { name: kind.clone(), text }];
    match kind.as_str() {
        "user.message" => user_blocks(&data),
        "assistant.message" => answer_blocks(&data),
        "system.message" | "skill.invoked" => {
            vec![Block::Context { name: kind.clone(), text: field("content") }]
        }
        "session.compaction_complete" => vec![Block::Text(field("summaryContent"))],
        "session.error" | "session.warning" | "session.info" => event(field("message")),
        "subagent.failed" => event(field("error")),
        "abort" => event(field("reason")),
        "tool.execution_start" => vec![call_block(&data)],
        "tool.execution_complete" => {
            result_block(&data).map_or_else(|| event(original()), |block| vec![block])
        }
        _ => event(original()),
    }
}

/// The fields of an event besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(event) = Json::parse(bytes) else { return native };
    let data = event.get("data").filter(|data| data.is_object());
    let fields = event.fields().filter(|(name, _)| *name != b"data");
    for (name, value) in fields.chain(data.into_iter().flat_map(Json::fields)) {
        let is_content = matches!(
            name,
            b"content"
                | b"transformedContent"
                | b"toolRequests"
                | b"reasoningText"
                | b"reasoningOpaque"
                | b"reasoningBlocks"
                | b"encryptedContent"
                | b"arguments"
                | b"result"
                | b"attachments"
                | b"summaryContent"
        );
        if !is_content && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
}

fn user_blocks(data: &Object<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(text) = data.get_text("content").filter(|text| !text.is_empty()) {
        blocks.push(Block::Text(text.into_owned()));
    }
    let attachments = data.get("attachments");
    for attachment in attachments.iter().flat_map(|list| list.items()) {
        let names = ["displayName", "path", "title", "url", "type"];
        if let Some(name) = names.iter().find_map(|name| attachment.get_text(name)) {
            blocks.push(Block::Attachment { name: name.into_owned() });
        }
    }
    blocks
}

fn answer_blocks(data: &Object<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(text) = data.get_text("reasoningText").filter(|text| !text.is_empty()) {
        blocks.push(Block::Thinking(text.into_owned()));
    }
    if let Some(text) = data.get_text("content").filter(|text| !text.is_empty()) {
        blocks.push(Block::Text(text.into_owned()));
    }
    let requests = data.get("toolRequests");
    blocks.extend(requests.iter().flat_map(|list| list.items()).map(|request| call_block(&request.object())));
    blocks
}

fn call_block(call: &Object<'_>) -> Block {
    let text = |name: &str| call.get_text(name).unwrap_or_default().into_owned();
    let name = call.get_text("name").or_else(|| call.get_text("toolName")).unwrap_or_default().into_owned();
    let input = arguments_of(call).map(Json::value).unwrap_or_default();
    Block::ToolCall { call_id: text("toolCallId"), name, input }
}

/// What a call printed: the data of a completion, or the result in it.
fn result_block(object: &Object<'_>) -> Option<Block> {
    let result = object.get("result").or_else(|| object.get("error")).map_or(object.clone(), Json::object);
    let output = result.get_text("content").or_else(|| result.get_text("message"))?;
    let call_id = object.get_text("toolCallId").unwrap_or_default().into_owned();
    Some(Block::ToolResult { call_id, output: without_exit_code(&output).to_owned() })
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
        let found = of(r#"{"type":"assistant.message","data":{"content":"I look.","reasoningText":"Hm",
            "toolRequests":[{"toolCallId":"c","name":"view","arguments":{"path":"a"}}]}}"#);
        assert_eq!(found[..2], [Block::Thinking("Hm".into()), Block::Text("I look.".into())]);
        assert!(matches!(&found[2], Block::ToolCall { name, .. } if name == "view"));
    }

    #[test]
    fn results_are_what_a_call_printed() {
        let printed = |text: &str| vec![Block::ToolResult { call_id: String::new(), output: text.into() }];
        assert_eq!(of(r#"{"content":"a\n<exited with exit code 0>"}"#), printed("a"));
        assert_eq!(of(r#"{"message":"No match found","code":"failure"}"#), printed("No match found"));
    }
}
