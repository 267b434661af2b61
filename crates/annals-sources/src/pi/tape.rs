//! Converts sessions of Pi to tapes.

use super::blocks::content_text;
use super::files::{FileCall, edits};
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::{FileWork, SessionFacts};
use serde_json::Value;

pub struct PiTape;

const FORM: TapeForm = TapeForm {
    format: "pi-jsonl",
    harness: "pi",
    vendor: "pi",
    flag: "pi",
    lines_reader: "transcript",
    document_reader: None,
};

impl Recorder for PiTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn provider<'f>(&self, facts: &'f SessionFacts) -> &'f str {
        facts.native.get("provider").and_then(Value::as_str).unwrap_or(FORM.vendor)
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        line.get_text("type").filter(|kind| kind == "session")?;
        let id = line.get_text("id").filter(|id| !id.is_empty())?;
        Some(format!("sessions/project/session_{id}.jsonl"))
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        line.get_text("type").filter(|kind| kind == "session")?;
        line.get_text("cwd").map(|cwd| cwd.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let line = Json::parse(line)?;
        let kind = line.get_text("type")?;
        let needed: &[&'static str] = match kind.as_ref() {
            "session" => &["id", "timestamp"],
            "message" => &["timestamp", "message"],
            _ => &[],
        };
        needed.iter().copied().find(|name| line.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let arguments = Json::parse(call).and_then(|call| call.get("arguments"));
        arguments.map(|value| String::from_utf8_lossy(value.bytes()).into_owned()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let result = lines.output.and_then(Json::parse);
        let stdout = content_text(result.and_then(|result| result.get("content")));
        Printed { stdout, stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let Some(call) = Json::parse(lines.call) else { return Vec::new() };
        let Some(arguments) = call.get("arguments").map(Json::object) else { return Vec::new() };
        let name = call.get_text("name").unwrap_or_default();
        let result = lines.output.and_then(Json::parse).map(Json::object);
        let on =
            FileCall { name: &name, arguments: &arguments, result: result.as_ref(), folder: lines.folder };
        on.work()
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(call) = call.json() else { return Vec::new() };
        let Some(arguments) = call.get("arguments").map(Json::object) else { return Vec::new() };
        match call.get_text("name").unwrap_or_default().as_ref() {
            "edit" => edits(&arguments).into_iter().map(|(_, new)| new).collect(),
            "write" => arguments.get_text("content").map(|text| text.into_owned()).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// An edit within a line has only a part of it; the diff has the whole line.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String> {
        let diff = detail.json().and_then(|details| details.get_text("diff"));
        let Some(diff) = diff else { return Vec::new() };
        let added = diff.lines().filter_map(|line| line.strip_prefix('+'));
        let texts = added.filter_map(|line| {
            let rest = line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
            rest.strip_prefix(' ').map(str::to_owned)
        });
        texts.collect()
    }

    /// This client keeps no copies.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        line
    }
}
