//! Messages, calls and results as blocks, and the native fields of a message.

use serde_json::{Map, Value};

use crate::json::{Json, Line, Object};
use annals_core::Block;

/// Blocks of a message, or of a call or a result in it.
pub fn blocks(line: Line<'_>) -> Vec<Block> {
    let Some(json) = line.json().filter(|json| json.is_object()) else {
        return vec![Block::Text(String::from_utf8_lossy(line.bytes()).into_owned())];
    };
    match json.get("sender") {
        Some(_) => message_blocks(&json.object()),
        None => part(json).into_iter().collect(),
    }
}

/// What a person sees of a message: its parts, or in older exports one text; then what was attached.
fn message_blocks(message: &Object<'_>) -> Vec<Block> {
    let content = message.get("content");
    let parts = || content.iter().flat_map(|content| content.items());
    let is = |part: Json<'_>, kind: &str| part.get_text("type").is_some_and(|found| found == kind);
    // Results are shown with their calls.
    let has_calls = parts().any(|part| is(part, "tool_use"));
    let shown = parts().filter(|part| !has_calls || !is(*part, "tool_result"));
    let mut found: Vec<Block> = shown.filter_map(part).collect();
    if found.is_empty() {
        let text = message.get_text("text").filter(|text| !text.is_empty());
        found.extend(text.map(|text| Block::Text(text.into_owned())));
    }
    let attached = message.get("attachments");
    for attachment in attached.iter().flat_map(|attached| attached.items()) {
        let name = attachment.get_text("file_name").unwrap_or_default().into_owned();
        found.push(Block::Attachment { name: name.clone() });
        let text = attachment.get_text("extracted_content").filter(|text| !text.is_empty());
        found.extend(text.map(|text| Block::Context { name, text: text.into_owned() }));
    }
    let files = message.get("files");
    let names = files.iter().flat_map(|files| files.items()).filter_map(|file| file.get_text("file_name"));
    found.extend(names.map(|name| Block::Attachment { name: name.into_owned() }));
    found
}

fn part(part: Json<'_>) -> Option<Block> {
    let text = |name: &str| part.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
    match text("type")?.as_str() {
        "text" => text("text").map(Block::Text),
        "thinking" => text("thinking").map(Block::Thinking),
        "tool_use" => {
            let input = part.get("input").map(Json::value).unwrap_or_default();
            let (call_id, name) = (text("id").unwrap_or_default(), text("name").unwrap_or_default());
            Some(Block::ToolCall { call_id, name, input })
        }
        "tool_result" => {
            let call_id = text("tool_use_id").unwrap_or_default();
            Some(Block::ToolResult { call_id, output: output(part) })
        }
        "image" => Some(Block::Attachment { name: text("file_name").unwrap_or_else(|| "image".into()) }),
        _ => None,
    }
}

/// The texts of a result; parts of other kinds as they are.
fn output(result: Json<'_>) -> String {
    let Some(content) = result.get("content") else { return String::new() };
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let texts = content.items().map(|part| match part.get_text("text") {
        Some(text) => text.into_owned(),
        None => String::from_utf8_lossy(part.bytes()).into_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The fields of a message besides its content.
pub fn native(bytes: &[u8]) -> Map<String, Value> {
    let mut native = Map::new();
    let Some(message) = Json::parse(bytes) else { return native };
    for (name, value) in message.fields() {
        let is_content =
            matches!(name, b"text" | b"content" | b"attachments" | b"files" | b"input" | b"thinking");
        if !is_content && value.bytes().len() < 2_000 {
            native.insert(String::from_utf8_lossy(name).into_owned(), value.value());
        }
    }
    native
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
    fn messages_have_their_parts_and_what_was_attached() {
        let found = of(
            r#"{"uuid":"1","sender":"human","text":"Oil it","content":[{"type":"text","text":"Oil it"}],
            "attachments":[{"file_name":"gears.txt","extracted_content":"twelve"}],"files":[{"file_name":"dial.png"}]}"#,
        );
        assert_eq!(
            found,
            [
                Block::Text("Oil it".into()),
                Block::Attachment { name: "gears.txt".into() },
                Block::Context { name: "gears.txt".into(), text: "twelve".into() },
                Block::Attachment { name: "dial.png".into() },
            ]
        );
        let old = of(r#"{"uuid":"1","sender":"assistant","text":"Done"}"#);
        assert_eq!(old, [Block::Text("Done".into())]);
    }

    #[test]
    fn results_are_texts() {
        let result = of(
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        );
        assert_eq!(result, [Block::ToolResult { call_id: "t".into(), output: "a\nb".into() }]);
    }
}
