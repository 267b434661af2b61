//! Converts sessions of Qwen Code to tapes.

use crate::gemini_family::call_lines;
use crate::json::{Json, Line};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::FileWork;

pub struct QwenTape;

const FORM: TapeForm = TapeForm {
    format: "qwen-jsonl",
    harness: "qwen-code",
    vendor: "qwen",
    flag: "qwen",
    lines_reader: "transcript",
    document_reader: Some("chat_document"),
};

impl Recorder for QwenTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let record = Json::parse(line)?;
        let is_own = record.get("systemPayload").is_some()
            || record.get("message").is_some_and(|message| message.get("parts").is_some());
        let id = record.get_text("sessionId").filter(|id| is_own && !id.is_empty())?;
        record.get("uuid")?;
        Some(match record.get_text("agentId") {
            Some(agent) => format!("projects/project/subagents/{id}/agent-{agent}.jsonl"),
            None => format!("projects/project/chats/{id}.jsonl"),
        })
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get_text("cwd").map(|cwd| cwd.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let record = Json::parse(line)?;
        match record.get("uuid") {
            Some(_) => ["sessionId", "timestamp", "type"].into_iter().find(|name| record.get(name).is_none()),
            None => call_lines::missing(line),
        }
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

    /// Copies of files before an edit are left out.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        line
    }
}
