//! Records as blocks, and the native fields of a record.

use serde_json::{Map, Value};

use crate::gemini_family::blocks::{self as chats, parts, typed_blocks};
use crate::gemini_family::people::texts;
use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of a record, of a call or of a result in it; older chats are those of the family.
pub fn blocks(lines: &[Line<'_>]) -> Vec<Block> {
    match lines.iter().map(|line| record(*line)).collect::<Option<Vec<_>>>() {
        Some(found) => found.concat(),
        None => chats::blocks(lines),
    }
}

fn record(line: Line<'_>) -> Option<Vec<Block>> {
    let json = line.json().filter(|json| json.is_object())?;
    let record = json.object();
    if record.get("uuid").is_none() {
        return piece(json);
    }
    let message = record.get("message").and_then(|message| message.get("parts"));
    Some(match (record.get_text("type").as_deref(), message) {
        (Some("user"), Some(content)) => typed_blocks(Some(content)),
        (_, Some(content)) => parts(Some(content)),
        (kind, None) => system(&record, kind.unwrap_or_default()),
    })
}

/// A call, or the client's record of a result.
fn piece(json: Json<'_>) -> Option<Vec<Block>> {
    let text = |name: &str| json.get_text(name).map(|text| text.into_owned());
    if let Some(input) = json.get("args") {
        let (call_id, name) = (text("id")?, text("name")?);
        return json
            .get("result")
            .is_none()
            .then(|| vec![Block::ToolCall { call_id, name, input: input.value() }]);
    }
    let output = text("fileDiff").or_else(|| text("output")).or_else(|| text("result"))?;
    Some(vec![Block::ToolResult { call_id: String::new(), output }])
}

fn system(record: &Object<'_>, kind: &str) -> Vec<Block> {
    let payload = record.get("systemPayload");
    let text = |name: &str| payload.and_then(|payload| payload.get_text(name)).map(|text| text.into_owned());
    let event = payload.and_then(|payload| payload.get("uiEvent"));
    let subtype = record.get_text("subtype").unwrap_or_default().into_owned();
    match subtype.as_str() {
        "slash_command" => text("rawCommand").map(Block::Text).into_iter().collect(),
        "chat_compression" => {
            let history = payload.and_then(|payload| payload.get("compressedHistory"));
            let summary = history.and_then(|history| history.items().next()?.get("parts"));
            let text = summary.map(|parts| texts(parts).join("\n")).unwrap_or_default();
            vec![Block::Text(text)]
        }
        "ui_telemetry" => {
            let text = event.and_then(|event| event.get_text("error_message")).unwrap_or_default();
            vec![Block::Event { name: "error".into(), text: text.into_owned() }]
        }
        _ => {
            let name = if subtype.is_empty() { kind.to_owned() } else { subtype };
            vec![Block::Event { name, text: String::from_utf8_lossy(record.bytes()).into_owned() }]
        }
    }
}

/// The fields of a record besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = chats::native(bytes);
    for name in ["message", "systemPayload", "toolCallResult", "originalContent", "newContent"] {
        native.remove(name);
    }
    native
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
    fn records_have_thoughts_texts_and_calls() {
        let found = of(
            r#"{"uuid":"1","type":"assistant","message":{"role":"model","parts":[{"text":"Hm","thought":true},
            {"text":"I oil it."},{"functionCall":{"id":"c","name":"edit","args":{"file_path":"a"}}}]}}"#,
        );
        assert_eq!(found[..2], [Block::Thinking("Hm".into()), Block::Text("I oil it.".into())]);
        assert!(matches!(&found[2], Block::ToolCall { name, .. } if name == "edit"));
    }

    #[test]
    fn what_the_client_says_is_readable() {
        let command = r#"{"uuid":"1","type":"system","subtype":"slash_command","systemPayload":{"rawCommand":"/compress"}}"#;
        assert_eq!(of(command), [Block::Text("/compress".into())]);
        let error = r#"{"uuid":"1","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"error_message":"400"}}}"#;
        assert_eq!(of(error), [Block::Event { name: "error".into(), text: "400".into() }]);
    }

    #[test]
    fn older_chats_are_read_as_such() {
        let message = r#"{"id":"1","type":"qwen","content":"Done.","toolCalls":[{"id":"c","name":"glob","args":{},"result":[]}]}"#;
        assert_eq!(of(message)[0], Block::Text("Done.".into()));
    }
}
