//! Converts chats of Gemini CLI to tapes.

use crate::gemini_family::call_lines;
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::FileWork;

pub struct GeminiTape;

const FORM: TapeForm = TapeForm {
    format: "gemini-jsonl",
    harness: "gemini-cli",
    vendor: "google",
    flag: "gemini",
    lines_reader: "chat",
    document_reader: Some("chat_document"),
};

impl Recorder for GeminiTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let id = Json::parse(line)?.get_text("sessionId").filter(|id| !id.is_empty())?.into_owned();
        Some(format!("tmp/project/chats/{id}.jsonl"))
    }

    /// Chats do not name it.
    fn folder(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        call_lines::missing(line)
    }

    fn arguments(&self, call: &[u8]) -> String {
        call_lines::arguments(call)
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        call_lines::printed(lines)
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        call_lines::work(lines)
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        call_lines::written(call)
    }

    fn written_besides(&self, detail: Line<'_>) -> Vec<String> {
        call_lines::written_besides(detail)
    }

    /// This client keeps copies in shadow repositories, which are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        line
    }
}
