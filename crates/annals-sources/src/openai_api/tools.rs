//! Items of the Responses API that are tool calls or their results.

use serde_json::{Value, json};

use super::steps::{CallOutcome, text_of};
use crate::json::{Json, Object};
use annals_core::CallKind;

pub enum Tool {
    /// `ran`: the provider ran it, and the item has the result.
    Call {
        kind: CallKind,
        ran: bool,
    },
    Output,
}

/// What kind of call or output an item is, by its type.
pub fn of_item(kind: &str) -> Option<Tool> {
    let call = |kind: CallKind| Some(Tool::Call { kind, ran: false });
    let ran = |kind: CallKind| Some(Tool::Call { kind, ran: true });
    match kind {
        "function_call" | "custom_tool_call" | "computer_call" => call(CallKind::Function),
        "local_shell_call" | "shell_call" => call(CallKind::Shell),
        "apply_patch_call" => call(CallKind::Edit),
        "web_search_call" => ran(CallKind::Web),
        "file_search_call" => ran(CallKind::Search),
        "code_interpreter_call" => ran(CallKind::Script),
        "mcp_call" => ran(CallKind::Mcp),
        "image_generation_call" => ran(CallKind::Function),
        "tool_search_call" => call(CallKind::Search),
        "program" => call(CallKind::Script),
        "tool_search_output" | "program_output" => Some(Tool::Output),
        // Unknown tools follow the same naming.
        other if other.ends_with("_call_output") => Some(Tool::Output),
        other if other.ends_with("_call") => call(CallKind::Function),
        _ => None,
    }
}

/// The function's name, with its server or namespace; tools of the provider are named by their type.
pub fn name(item: &Object<'_>) -> String {
    let kind = item.get_text("type").unwrap_or_default();
    let own = item.get_text("name");
    let space = item.get_text("server_label").or_else(|| item.get_text("namespace"));
    match (own, space) {
        (Some(name), Some(space)) => format!("{space}.{name}"),
        (Some(name), None) => name.into_owned(),
        (None, _) => kind.strip_suffix("_call").unwrap_or(&kind).to_owned(),
    }
}

/// The input of the tool.
pub fn input(item: &Object<'_>) -> Value {
    for name in ["arguments", "input", "action", "actions", "operation", "code"] {
        if let Some(value) = item.get(name) {
            return value.value();
        }
    }
    if let Some(queries) = item.get("queries") {
        return json!({"queries": queries.value()});
    }
    match item.get("revised_prompt") {
        Some(prompt) => json!({"prompt": prompt.value()}),
        None => Value::Null,
    }
}

/// The output as text; `None` if the item has none.
pub fn output(item: &Object<'_>) -> Option<String> {
    if let Some(error) = item.get("error") {
        return Some(error.text().map_or_else(|| plain(error), |text| text.into_owned()));
    }
    for name in ["output", "outputs", "results", "tools"] {
        if let Some(output) = item.get(name) {
            return Some(output_text(output));
        }
    }
    if let Some(image) = item.get("result").and_then(Json::inner) {
        return Some(format!("[image of {} bytes]", image.len() / 4 * 3));
    }
    let sources = item.get("action").and_then(|action| action.get("sources"))?;
    let addresses = sources.items().filter_map(|source| source.get_text("url").map(|url| url.into_owned()));
    Some(addresses.collect::<Vec<_>>().join("\n"))
}

/// Whether it succeeded, if the item has a status.
pub fn outcome(item: &Object<'_>) -> CallOutcome {
    let exits = item.get("output").into_iter().flat_map(Json::items);
    let exit_code = exits.filter_map(|part| part.get("outcome")?.get_integer("exit_code")).last();
    let ok = match item.get_text("status").as_deref() {
        _ if item.get("error").is_some() => Some(false),
        Some("failed") => Some(false),
        _ if exit_code.is_some() => exit_code.map(|code| code == 0),
        Some("completed") => Some(true),
        _ => None,
    };
    CallOutcome { ok, exit_code }
}

/// The summary of a reasoning item, or its text if available.
pub fn reasoning(item: &Object<'_>) -> String {
    let parts = ["summary", "content"].into_iter().filter_map(|name| item.get(name));
    let texts =
        parts.flat_map(Json::items).filter_map(|part| part.get_text("text").map(|text| text.into_owned()));
    texts.collect::<Vec<_>>().join("\n\n")
}

fn output_text(output: Json<'_>) -> String {
    if output.is_string() {
        return text_of(output);
    }
    if !output.is_array() {
        return plain(output);
    }
    let mut text = String::new();
    for part in output.items() {
        let part_object = part.object();
        let texts =
            ["text", "logs", "stdout", "stderr"].map(|name| part_object.get_text(name).unwrap_or_default());
        if let Some(name) = part_object.get_text("filename") {
            text.push_str(&format!("{name}\n"));
        }
        match texts.iter().all(|text| text.is_empty()) {
            false => texts.iter().for_each(|part| text.push_str(part)),
            true if part_object.get("stdout").is_some() => {}
            true => text.push_str(&plain(part)),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// JSON as text, without long data.
fn plain(value: Json<'_>) -> String {
    let kind = value.get_text("type").unwrap_or_default();
    match value.bytes().len() > 20_000 && kind.contains("image") {
        true => format!("[{kind} of {} bytes]", value.bytes().len() / 4 * 3),
        false => String::from_utf8_lossy(value.bytes()).into_owned(),
    }
}
