//! Converts logs of Kimi Code to tapes.

use super::calls::output_text;
use super::files::{FileCall, unnumbered};
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::FileWork;

pub struct KimiTape;

const FORM: TapeForm = TapeForm {
    format: "kimi-jsonl",
    harness: "kimi-code",
    vendor: "moonshotai",
    flag: "kimi",
    lines_reader: "transcript",
    document_reader: None,
};

impl Recorder for KimiTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    /// The lines do not name their session, only when it was created.
    fn name_of(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        line.get_text("type").filter(|kind| kind == "metadata")?;
        line.get("protocol_version")?;
        let created = line.get_integer("created_at")?;
        Some(format!("sessions/workspace/session_{created}/agents/main/wire.jsonl"))
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        let event = Json::parse(line)?.get("event")?;
        event.get("display")?.get_text("cwd").map(|cwd| cwd.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let line = Json::parse(line)?;
        let needed: &[&'static str] = match line.get_text("type")?.as_ref() {
            "metadata" => &["protocol_version", "created_at"],
            "turn.prompt" => &["input", "time"],
            "context.append_loop_event" => &["event", "time"],
            _ => &[],
        };
        needed.iter().copied().find(|name| line.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let arguments = Json::parse(call).and_then(|call| call.get("args"));
        arguments.map(|value| String::from_utf8_lossy(value.bytes()).into_owned()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let stdout = lines.output.and_then(Json::parse).map(output_text).unwrap_or_default().into_owned();
        Printed { stdout, stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let Some(call) = Json::parse(lines.call) else { return Vec::new() };
        let Some(arguments) = call.get("args").map(Json::object) else { return Vec::new() };
        let name = call.get_text("name").unwrap_or_default();
        let output = lines.output.and_then(Json::parse).map(output_text);
        let (output, folder) = (output.as_deref(), lines.folder);
        FileCall { name: &name, arguments: &arguments, output, folder }.work()
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(call) = call.json() else { return Vec::new() };
        let field = match call.get_text("name").unwrap_or_default().as_ref() {
            "Edit" => "new_string",
            "Write" => "content",
            _ => return Vec::new(),
        };
        let text = call.get("args").and_then(|arguments| arguments.get_text(field));
        text.map(|text| text.into_owned()).into_iter().collect()
    }

    /// Results have no record besides the output.
    fn written_besides(&self, _detail: Line<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Copies of files before an edit are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        unnumbered(line)
    }
}
