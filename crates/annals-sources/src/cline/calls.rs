//! Calls and results as they are in messages: blocks of their own, or markup in a text.

use serde_json::Value;

use super::markup::{call_in, result_in};
use crate::json::Json;
use annals_core::CallKind;

/// The fields of arguments that say most, the most telling first.
pub const TITLES: &[&str] = &[
    "command",
    "path",
    "query",
    "regex",
    "pattern",
    "url",
    "task",
    "question",
    "tool_name",
    "skill",
    "name",
];

/// Before the code of a command that failed: by version 3, and by older clients.
const FAILED: &[&str] = &["Command exited with code ", "Command failed with exit code "];
/// What older clients say of a command that did not.
const SUCCEEDED: &str = "Command executed successfully (exit code ";
/// How the result of a failed call begins.
const ERRORS: &[&str] = &[
    "The tool execution failed",
    "The user denied this operation",
    "Error executing",
    "Missing value for required",
];

/// A call of a tool.
pub struct ToolCall {
    /// Empty if it is markup.
    pub id: String,
    pub name: String,
    pub input: Value,
}

/// The call in a block of an answer.
pub fn call_of(block: Json<'_>) -> Option<ToolCall> {
    let text = |name: &str| block.get_text(name).unwrap_or_default().into_owned();
    match text("type").as_str() {
        "tool_use" => {
            let input = block.get("input").map(Json::value).unwrap_or_default();
            Some(ToolCall { id: text("id"), name: text("name"), input })
        }
        "text" => {
            let text = text("text");
            let call = call_in(&text)?;
            Some(ToolCall { id: String::new(), name: call.name.to_owned(), input: call.input })
        }
        _ => None,
    }
}

pub fn kind_of(name: &str) -> CallKind {
    match name {
        "run_commands" | "execute_command" => CallKind::Shell,
        "editor" | "write_to_file" | "replace_in_file" | "apply_patch" => CallKind::Edit,
        "read_files" | "read_file" | "list_files" => CallKind::Read,
        "search_codebase" | "search_files" | "list_code_definition_names" => CallKind::Search,
        "fetch_web_content" | "web_fetch" | "web_search" | "browser_action" => CallKind::Web,
        "spawn_agent" | "use_subagents" => CallKind::Agent,
        "use_mcp_tool" | "access_mcp_resource" => CallKind::Mcp,
        name if name.contains("__") => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// One command, file or query of a call, with its result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub query: String,
    pub output: String,
    pub failed: bool,
}

/// The result of a call: of version 3 an entry for each command or file, else one text.
pub struct ToolResult {
    pub entries: Vec<Entry>,
}

/// The result in a block of a message, if it is one: the id of its call (empty for markup) and what it says.
pub fn result_of(block: Json<'_>) -> Option<(String, ToolResult)> {
    let kind = block.get_text("type").unwrap_or_default();
    if kind == "text" {
        let text = block.get_text("text")?;
        let (_, output) = result_in(&text)?;
        return Some((String::new(), ToolResult { entries: vec![text_entry(output)] }));
    }
    let id = block.get_text("tool_use_id").filter(|_| kind == "tool_result")?.into_owned();
    let is_error = block.get("is_error").and_then(Json::boolean) == Some(true);
    let mut entries = entries(&block.get("content").map(Json::value).unwrap_or_default());
    for entry in &mut entries {
        entry.failed |= is_error;
    }
    Some((id, ToolResult { entries }))
}

fn entries(content: &Value) -> Vec<Entry> {
    match content {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => entries(&inner),
            Ok(_) | Err(_) => vec![text_entry(text)],
        },
        Value::Array(items) => items.iter().flat_map(entries).collect(),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            if let Some(text) = fields.get("text").and_then(Value::as_str) {
                return vec![text_entry(text)];
            }
            let result = match fields.get("result") {
                Some(Value::String(text)) => text.clone(),
                Some(other) if !other.is_null() => other.to_string(),
                Some(_) | None => String::new(),
            };
            let output = if result.is_empty() { text("error").to_owned() } else { result };
            let failed = fields.get("success") == Some(&Value::Bool(false));
            vec![Entry { query: text("query").to_owned(), output, failed }]
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A result that is only text. Older clients write it whether the call failed or not.
fn text_entry(text: &str) -> Entry {
    let output = result_in(text).map_or(text, |(_, output)| output);
    let failed = ERRORS.iter().any(|start| output.starts_with(start)) || output.starts_with(FAILED[1]);
    Entry { query: String::new(), output: output.to_owned(), failed }
}

impl ToolResult {
    pub fn failed(&self) -> bool {
        self.entries.iter().any(|entry| entry.failed)
    }

    /// The text of all entries; several are told apart by what they answer.
    pub fn text(&self) -> String {
        let several = self.entries.len() > 1;
        let texts = self.entries.iter().map(|entry| match several && !entry.query.is_empty() {
            true => format!("{}\n{}", entry.query, entry.output),
            false => entry.output.clone(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The exit code of a command; of several, that of the first that failed.
    pub fn exit_code(&self) -> Option<i64> {
        let codes: Option<Vec<i64>> = self.entries.iter().map(Entry::exit_code).collect();
        let codes = codes.filter(|codes| !codes.is_empty())?;
        Some(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
    }
}

impl Entry {
    fn exit_code(&self) -> Option<i64> {
        let number = |text: &str, start: &str| {
            let (_, rest) = text.split_once(start)?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()
        };
        let head = self.output.get(..200).unwrap_or(&self.output);
        let named = FAILED.iter().chain([&SUCCEEDED]).find_map(|start| number(head, start));
        // Version 3 says nothing of a command that succeeds.
        named.or_else(|| (!self.failed && !self.query.is_empty()).then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::{call_of, result_of};
    use crate::json::Json;

    fn result(block: &str) -> (bool, Option<i64>, String) {
        let (_, result) = result_of(Json::parse(block.as_bytes()).expect("JSON")).expect("a result");
        (result.failed(), result.exit_code(), result.text())
    }

    #[test]
    fn results_are_entries_or_texts() {
        let one = r#"{"type":"tool_result","tool_use_id":"c","content":[{"query":"ls","result":"a\n","success":true}]}"#;
        assert_eq!(result(one), (false, Some(0), "a\n".into()));
        let failed = r#"{"type":"tool_result","tool_use_id":"c","content":[{"query":"x","result":"[Command exited with code 3]\n1 failed","error":"Command exited with code 3","success":false}]}"#;
        assert_eq!(result(failed), (true, Some(3), "[Command exited with code 3]\n1 failed".into()));
        let text = r#"{"type":"tool_result","tool_use_id":"c","content":"{\"query\":\"edit:a\",\"result\":\"\",\"error\":\"No\",\"success\":false}"}"#;
        assert_eq!(result(text).2, "No");
        let markup = r#"{"type":"text","text":"[execute_command for 'ls'] Result:\nCommand failed with exit code 3.\nOutput:\nx"}"#;
        assert_eq!(result(markup), (true, Some(3), "Command failed with exit code 3.\nOutput:\nx".into()));
    }

    #[test]
    fn calls_are_blocks_or_markup() {
        let name = |block: &str| call_of(Json::parse(block.as_bytes()).expect("JSON")).map(|call| call.name);
        let block = r#"{"type":"tool_use","id":"c","name":"editor","input":{"path":"a"}}"#;
        assert_eq!(name(block).as_deref(), Some("editor"));
        let markup = r#"{"type":"text","text":"<read_file>\n<path>a</path>\n</read_file>"}"#;
        assert_eq!(name(markup).as_deref(), Some("read_file"));
        assert_eq!(name(r#"{"type":"text","text":"only words"}"#), None);
    }
}
