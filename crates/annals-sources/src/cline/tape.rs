//! Converts conversations of Cline to tapes.

use serde_json::Value;

use super::calls::{call_of, result_of};
use super::files::{FileCall, replacements, unnumbered};
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::FileWork;

pub struct ClineTape;

const FORM: TapeForm = TapeForm {
    format: "cline-json",
    harness: "cline",
    vendor: "cline",
    flag: "cline",
    lines_reader: "messages",
    document_reader: Some("messages"),
};

impl Recorder for ClineTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    /// A conversation is one document that names its session and who leads.
    fn name_of(&self, line: &[u8]) -> Option<String> {
        let document = Json::parse(line)?;
        document.get("origin")?;
        let id = document.get_text("sessionId").filter(|id| !id.is_empty())?;
        document.get("messages").filter(|messages| messages.is_array())?;
        Some(format!("data/sessions/{id}/{id}.messages.json"))
    }

    /// Messages do not name it.
    fn folder(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let document = Json::parse(line).filter(|document| document.is_object())?;
        ["messages"].into_iter().find(|name| document.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let call = Json::parse(call).and_then(call_of);
        call.map(|call| call.input.to_string()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let result = lines.output.and_then(Json::parse).and_then(result_of);
        Printed { stdout: result.map(|(_, result)| result.text()).unwrap_or_default(), stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let Some(call) = Json::parse(lines.call).and_then(call_of) else { return Vec::new() };
        let result = lines.output.and_then(Json::parse).and_then(result_of).map(|(_, result)| result);
        FileCall { name: &call.name, input: &call.input, result: result.as_ref(), folder: lines.folder }
            .work()
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(call) = call.json().and_then(call_of) else { return Vec::new() };
        let text = |name: &str| call.input.get(name).and_then(Value::as_str);
        match call.name.as_str() {
            "editor" => text("new_text").map(str::to_owned).into_iter().collect(),
            "write_to_file" => text("content").map(str::to_owned).into_iter().collect(),
            "replace_in_file" => {
                replacements(text("diff").unwrap_or_default()).into_iter().map(|(_, new)| new).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Results have no record besides the output.
    fn written_besides(&self, _detail: Line<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Copies of files are in shadow repositories, which are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        unnumbered(line)
    }
}
