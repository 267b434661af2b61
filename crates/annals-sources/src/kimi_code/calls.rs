//! Calls and their results, which are lines of their own.

use std::borrow::Cow;

use super::files::FileCall;
use super::places::output_key;
use super::transcript::{LogLine, TranscriptReader};
use crate::home::calls::{title_of_call, touches};
use crate::json::Json;
use annals_core::{Call, CallKind, CallResult, ContentKey, Item, MessageKind, Operation, Role};

/// The fields of arguments that say most, the most telling first.
const TITLES: &[&str] =
    &["command", "path", "pattern", "query", "url", "skill", "description", "prompt", "name"];

/// How the result of a command that failed ends.
const FAILED: &str = "Command failed with exit code: ";

pub fn kind_of(name: &str) -> CallKind {
    match name {
        "Bash" => CallKind::Shell,
        "Edit" | "Write" => CallKind::Edit,
        "Read" | "ReadMediaFile" | "LS" => CallKind::Read,
        "Grep" | "Glob" => CallKind::Search,
        "WebSearch" | "FetchURL" => CallKind::Web,
        "Agent" => CallKind::Agent,
        name if name.starts_with("mcp__") => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// What the model got back: a text, or a list of parts.
pub fn output_text(result: Json<'_>) -> Cow<'_, str> {
    let Some(output) = result.get("output") else { return Cow::Borrowed("") };
    if let Some(text) = output.text() {
        return text;
    }
    let texts = output.items().filter_map(|part| part.get_text("text"));
    Cow::Owned(texts.collect::<Vec<_>>().join("\n"))
}

/// A command that succeeds says nothing, one that was interrupted has no code.
fn exit_code(text: &str, failed: bool) -> Option<i64> {
    if !failed {
        return Some(0);
    }
    let end = text.lines().next_back()?.trim().strip_prefix(FAILED)?;
    end.trim_end_matches('.').parse().ok()
}

/// The record with the complete output that a shortened one names, as `stream/key`.
fn full_output(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '`' | '<' | '>' | '(' | ')'));
    let mut paths =
        words.filter(|word| word.contains("/tasks/")).map(|word| word.trim_end_matches(['.', ',']));
    Some(format!("tool_outputs/{}", paths.find_map(output_key)?))
}

impl TranscriptReader {
    pub(super) fn call(&mut self, line: &LogLine<'_>, event: Json<'_>, message: u64, out: &mut Vec<Item>) {
        let text = |name: &str| event.get_text(name).unwrap_or_default().into_owned();
        let (id, name, span) = (text("toolCallId"), text("name"), line.span_of(event.bytes()));
        let arguments = event.get("args");
        // The directory of a session is in another file, and in the client's note on a command.
        if let Some(folder) = event.get("display").and_then(|display| display.get_text("cwd")) {
            self.state.facts.cwd.get_or_insert_with(|| folder.into_owned());
        }
        out.push(Item::Call(Call {
            session: self.session.clone(),
            span,
            at: line.at,
            key: ContentKey::of(&[b"kimi call", text("uuid").as_bytes(), id.as_bytes()]),
            inherited: line.inherited,
            call_id: id.clone(),
            name: name.as_str().into(),
            kind: kind_of(&name),
            title: arguments.map(|arguments| title_of_call(arguments, TITLES)).unwrap_or_default(),
            parent: None,
            message: Some(message),
            model: self.model(),
        }));
        self.state.calls.push(id, span.offset, name, arguments, "path");
    }

    pub(super) fn result(&mut self, line: &LogLine<'_>, event: Json<'_>, out: &mut Vec<Item>) {
        let id = event.get_text("toolCallId").unwrap_or_default();
        let result = event.get("result").filter(|result| result.is_object());
        let (Some(call), Some(result)) = (self.state.calls.take(&id), result) else {
            out.push(self.message(line, Role::User, MessageKind::Result));
            return;
        };
        let Some(arguments) = Json::parse(call.arguments.as_bytes()).map(Json::object) else { return };
        let failed = result.get("isError").and_then(Json::boolean) == Some(true);
        let background = arguments.get("run_in_background").and_then(Json::boolean) == Some(true);
        let text = output_text(result);
        let is_shell = kind_of(&call.name) == CallKind::Shell && !background;
        let note = result.get_text("note").unwrap_or_default();
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: call.offset,
            output: Some(line.span_of(result.bytes())),
            detail: None,
            at: line.at,
            ok: Some(!failed),
            exit_code: exit_code(&text, failed).filter(|_| is_shell),
            duration_ms: result.get_integer("durationMs").and_then(|time| u64::try_from(time).ok()),
            full: full_output(&note).or_else(|| full_output(&text)),
        }));
        if !failed {
            let folder = self.state.facts.cwd.as_deref();
            let on = FileCall { name: &call.name, arguments: &arguments, output: Some(&text), folder };
            let operation = match call.name.as_str() {
                "Edit" | "Write" => Some(Operation::Update),
                "Read" => Some(Operation::Read),
                _ => None,
            };
            let otherwise = on.path().zip(operation).map(|(path, operation)| call.touched(path, operation));
            touches(&self.session, call.offset, on.work(), otherwise, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{exit_code, full_output};

    #[test]
    fn exit_codes_end_the_output_of_failed_commands() {
        assert_eq!(exit_code("1 failed\nCommand failed with exit code: 3.", true), Some(3));
        assert_eq!(exit_code("started\nInterrupted by user", true), None);
        assert_eq!(exit_code("fine", false), Some(0));
    }

    #[test]
    fn complete_outputs_are_named_in_the_text() {
        let text = "Full output: /h/.kimi-code/sessions/wd/session_5e55/agents/main/tasks/bash-1/output.log.";
        assert_eq!(
            full_output(text).as_deref(),
            Some("tool_outputs/session_5e55/agents/main/tasks/bash-1/output.log")
        );
        assert_eq!(full_output("See /tasks/ for more"), None);
    }
}
