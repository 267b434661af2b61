//! Converts sessions of Copilot CLI to tapes.

use super::calls::{arguments_of, without_exit_code};
use super::files::{FileCall, data_of};
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::FileWork;

pub struct CopilotTape;

const FORM: TapeForm = TapeForm {
    format: "copilot-jsonl",
    harness: "copilot-cli",
    vendor: "github",
    flag: "copilot",
    lines_reader: "events",
    document_reader: None,
};

impl Recorder for CopilotTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        line.get_text("type").filter(|kind| kind == "session.start")?;
        let id = line.get("data")?.get_text("sessionId").filter(|id| !id.is_empty())?;
        Some(format!("session-state/{id}/events.jsonl"))
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        let context = Json::parse(line)?.get("data")?.get("context")?;
        context.get_text("cwd").map(|cwd| cwd.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let line = Json::parse(line)?;
        line.get("type")?;
        ["id", "timestamp", "data"].into_iter().find(|name| line.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let arguments = Json::parse(call).and_then(|call| call.get("arguments"));
        arguments.map(|value| String::from_utf8_lossy(value.bytes()).into_owned()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let result = lines.output.and_then(Json::parse);
        let text =
            result.and_then(|result| result.get_text("content").or_else(|| result.get_text("message")));
        let stdout = text.map(|text| without_exit_code(&text).to_owned()).unwrap_or_default();
        Printed { stdout, stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let Some(call) = Json::parse(lines.call).map(Json::object) else { return Vec::new() };
        let Some(arguments) = arguments_of(&call).map(Json::object) else { return Vec::new() };
        let name = call.get_text("name").or_else(|| call.get_text("toolName")).unwrap_or_default();
        let data = lines.detail.and_then(data_of);
        let on = FileCall { name: &name, arguments: &arguments, data: data.as_ref(), folder: lines.folder };
        on.work()
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(call) = call.json().map(Json::object) else { return Vec::new() };
        let Some(arguments) = arguments_of(&call).map(Json::object) else { return Vec::new() };
        let field = match call.get_text("name").unwrap_or_default().as_ref() {
            "create" => "file_text",
            "edit" | "str_replace_editor" => "new_str",
            _ => return Vec::new(),
        };
        arguments.get_text(field).map(|text| text.into_owned()).into_iter().collect()
    }

    /// An edit within a line has only a part of it; the diff has the whole line.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String> {
        let result = detail.json().and_then(|data| data.get("result"));
        let Some(diff) = result.and_then(|result| result.get_text("detailedContent")) else {
            return Vec::new();
        };
        if !diff.starts_with("\ndiff --git ") {
            return Vec::new();
        }
        let added =
            diff.lines().filter(|line| !line.starts_with("+++ ")).filter_map(|line| line.strip_prefix('+'));
        added.map(str::to_owned).collect()
    }

    /// Contents of files before edits are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    /// Older clients number the lines that they show: `12. text`.
    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        let (number, text) = line.split_once(". ").unwrap_or((line, line));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text } else { line }
    }
}
