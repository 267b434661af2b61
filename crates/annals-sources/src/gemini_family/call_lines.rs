//! What tapes need of a call in a chat: its arguments, what it printed, and what it did to files.

use super::calls::response_text;
use super::files::{FileCall, is_replace};
use crate::json::{Json, Line, Object};
use crate::tape::diff::between;
use crate::{CallLines, Printed};
use annals_core::FileWork;

/// A required field that a message lacks.
pub fn missing(line: &[u8]) -> Option<&'static str> {
    let message = Json::parse(line)?.object();
    message.get("type")?;
    ["id", "timestamp", "content"]
        .into_iter()
        .find(|name| message.fields().iter().all(|(key, _)| *key != name.as_bytes()))
}

pub fn arguments(call: &[u8]) -> String {
    let args = Json::parse(call).and_then(arguments_of);
    args.map(|args| String::from_utf8_lossy(args.bytes()).into_owned()).unwrap_or_default()
}

pub fn printed(lines: &CallLines<'_>) -> Printed {
    let display = lines.detail.and_then(Json::parse);
    // Newer clients keep what a command printed apart from what they tell the model about it.
    let shell = display.filter(|display| display.get("exitCode").is_some());
    let display = shell.and_then(|shell| shell.get("output")).or(display).filter(|text| text.is_string());
    let display = display.and_then(Json::text).filter(|text| !text.is_empty());
    let result = lines.output.and_then(Json::parse);
    let text = display.or_else(|| result.and_then(response_text)).unwrap_or_default();
    Printed { stdout: text.into_owned(), stderr: String::new() }
}

pub fn work(lines: &CallLines<'_>) -> Vec<FileWork> {
    let Some(call) = Json::parse(lines.call) else { return Vec::new() };
    let Some(args) = arguments_of(call).map(Json::object) else { return Vec::new() };
    let name = call.get_text("name").unwrap_or_default();
    let result = lines.output.and_then(Json::parse);
    let output = result.and_then(response_text);
    let display = lines.detail.and_then(Json::parse);
    let on = FileCall { name: &name, args: &args, display, output: output.as_deref(), folder: lines.folder };
    on.work()
}

/// Texts that a call writes, as far as it contains them itself.
pub fn written(call: Line<'_>) -> Vec<String> {
    let Some(call) = call.json() else { return Vec::new() };
    let Some(args) = arguments_of(call) else { return Vec::new() };
    let name = call.get_text("name").unwrap_or_default();
    let field = match name.as_ref() {
        "write_file" => "content",
        name if is_replace(name) => "new_string",
        _ => return Vec::new(),
    };
    args.get_text(field).map(|text| text.into_owned()).into_iter().collect()
}

/// Lines that an edit completed: the call may have only a part of a line.
pub fn written_besides(detail: Line<'_>) -> Vec<String> {
    let record: Option<Object<'_>> = detail.json().filter(|json| json.is_object()).map(Json::object);
    let Some(record) = record else { return Vec::new() };
    let before = record.get_text("originalContent").unwrap_or_default();
    let Some(after) = record.get_text("newContent") else { return Vec::new() };
    if before.is_empty() {
        return Vec::new();
    }
    between(&before, &after).into_iter().filter_map(|change| change.after.text).collect()
}

/// The arguments of a call: `args` of a record, or of a part of a request.
fn arguments_of(call: Json<'_>) -> Option<Json<'_>> {
    call.get("args")
}
