//! Converts conversations of OpenCode to tapes.

use super::files::FileCall;
use super::row::Row;
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::{FileWork, SessionFacts};
use serde_json::Value;

pub struct OpenCodeTape;

const FORM: TapeForm = TapeForm {
    format: "opencode-jsonl",
    harness: "opencode",
    vendor: "opencode",
    flag: "opencode",
    lines_reader: "conversation",
    document_reader: None,
};

impl Recorder for OpenCodeTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn provider<'f>(&self, facts: &'f SessionFacts) -> &'f str {
        facts.native.get("provider").and_then(Value::as_str).unwrap_or(FORM.vendor)
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let id = session_of(line)?.id()?.into_owned();
        id.starts_with("ses_").then(|| format!("together/storage/{id}"))
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        session_of(line)?.column(&["directory"]).map(|folder| folder.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let message = Json::parse(line)?.get("message").filter(|message| message.is_object())?;
        let row = Row::new(message);
        if row.time("created", "time_created").is_none() {
            return Some("time");
        }
        ["role"].into_iter().find(|name| row.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let input = state_of(call).and_then(|state| state.get("input"));
        input.map(|input| String::from_utf8_lossy(input.bytes()).into_owned()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let output = lines.output.and_then(Json::parse).and_then(Json::text);
        Printed { stdout: output.unwrap_or_default().into_owned(), stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let Some(input) = state_of(lines.call).and_then(|state| state.get("input")) else {
            return Vec::new();
        };
        let name = name_of(lines.call);
        let output = lines.output.and_then(Json::parse).and_then(Json::text);
        let metadata = lines.detail.and_then(Json::parse);
        let (input, folder) = (input.object(), lines.folder);
        let on = FileCall { name: &name, input: &input, metadata, output: output.as_deref(), folder };
        on.work()
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(input) = state_of(call.bytes()).and_then(|state| state.get("input")) else {
            return Vec::new();
        };
        let field = match name_of(call.bytes()).as_str() {
            "write" => "content",
            "edit" => "newString",
            _ => return Vec::new(),
        };
        input.get_text(field).map(|text| text.into_owned()).into_iter().collect()
    }

    /// An edit within a line has only a part of it; the diff has the whole line.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String> {
        let Some(metadata) = detail.json().filter(|json| json.is_object()) else { return Vec::new() };
        let files = metadata.get("files");
        let patches = files.iter().flat_map(|files| files.items()).filter_map(|file| file.get_text("patch"));
        let diffs: Vec<_> = metadata.get_text("diff").into_iter().chain(patches).collect();
        let added = diffs.iter().flat_map(|diff| diff.lines()).filter_map(|line| line.strip_prefix('+'));
        added.filter(|line| !line.starts_with("++ ")).map(str::to_owned).collect()
    }

    /// This client keeps copies in shadow repositories, which are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        let (number, text) = line.split_once([':', '|']).unwrap_or((line, line));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.strip_prefix(' ').unwrap_or(text) } else { line }
    }
}

fn session_of(line: &[u8]) -> Option<Row<'_>> {
    Json::parse(line)?.get("session").filter(|session| session.is_object()).map(Row::new)
}

fn state_of(call: &[u8]) -> Option<Json<'_>> {
    Row::new(Json::parse(call)?).get("state")
}

fn name_of(call: &[u8]) -> String {
    let call = Json::parse(call).map(Row::new);
    call.and_then(|call| call.text("tool").map(|name| name.into_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::OpenCodeTape;
    use crate::Recorder;

    #[test]
    fn lines_are_shown_without_their_numbers() {
        for (line, text) in [("00012| fn a", "fn a"), ("3: fn a", "fn a"), ("plain: text", "plain: text")] {
            assert_eq!(OpenCodeTape.unnumbered(line), text);
        }
    }
}
