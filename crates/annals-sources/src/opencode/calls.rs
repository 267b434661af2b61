//! Tool calls: call and result are one part of a message.

use super::conversation::{ConversationReader, Spoken};
use super::files::FileCall;
use super::row::{Row, milliseconds};
use crate::home::title::in_a_line;
use crate::json::{Json, Object};
use annals_core::{Call, CallKind, CallResult, ContentKey, Item, Link, LinkKind, Time, Touch};

impl ConversationReader {
    pub(super) fn call(&self, spoken: &Spoken<'_>, number: usize, part: &Row<'_>, out: &mut Vec<Item>) {
        let name = part.text("tool").unwrap_or_default();
        let call_id = part.text("callID").unwrap_or_default();
        let Some(state) = part.get("state").map(Json::object) else { return };
        let input = state.get("input").map(Json::object);
        let time = |field: &str| milliseconds(state.get("time").and_then(|time| time.get_integer(field)));
        let (started, ended) = (time("start"), time("end"));
        let span = spoken.base.span(part.bytes());
        let which = if call_id.is_empty() { number.to_string() } else { call_id.to_string() };
        out.push(Item::Call(Call {
            session: self.session.clone(),
            span,
            at: started.or(spoken.at),
            key: ContentKey::of(&[b"call", &spoken.key.stored().to_le_bytes(), which.as_bytes()]),
            inherited: spoken.inherited,
            call_id: call_id.to_string(),
            name: name.as_ref().into(),
            kind: kind_of(&name),
            title: input.as_ref().map(title_of).unwrap_or_default(),
            parent: None,
            message: Some(spoken.base.offset),
            model: spoken.model.clone(),
        }));
        let metadata = state.get("metadata").filter(|metadata| metadata.is_object());
        if let Some(child) =
            metadata.and_then(|metadata| metadata.get_text("sessionId")).filter(|_| name == "task")
        {
            out.push(Item::Link(Link {
                session: self.session.clone(),
                other: child.into_owned(),
                kind: LinkKind::SubAgent,
                position: Some(call_id.to_string()),
            }));
        }
        let status = state.get_text("status").unwrap_or_default();
        if !matches!(status.as_ref(), "completed" | "error") {
            return;
        }
        let output = state.get("output").or_else(|| state.get("error")).filter(|output| output.is_string());
        let exit_code = metadata.and_then(|metadata| metadata.get_integer("exit"));
        let ok = status == "completed" && exit_code.is_none_or(|code| code == 0);
        let full = metadata.and_then(|metadata| metadata.get_text("outputPath"));
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: span.offset,
            output: output.map(|output| spoken.base.span(output.bytes())),
            detail: metadata.map(|metadata| spoken.base.span(metadata.bytes())),
            at: ended.or(spoken.at),
            ok: Some(ok),
            exit_code,
            duration_ms: started.zip(ended).and_then(|(from, to)| milliseconds_between(from, to)),
            full: full.as_deref().and_then(output_key),
        }));
        if let Some(input) = input.filter(|_| ok) {
            let folder = self.state.facts.cwd.as_deref();
            let text = output.and_then(Json::text);
            let on = FileCall { name: &name, input: &input, metadata, output: text.as_deref(), folder };
            for work in on.touched() {
                out.push(Item::Touch(Touch {
                    session: self.session.clone(),
                    call: span.offset,
                    path: work.path,
                    operation: work.operation,
                    before: work.before.range,
                    after: work.after.range,
                }));
            }
        }
    }
}

fn milliseconds_between(from: Time, to: Time) -> Option<u64> {
    u64::try_from(to.micros().checked_sub(from.micros())? / 1_000).ok()
}

/// The record with a complete output: its file's name.
fn output_key(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once(['/', '\\'])?;
    (folder.ends_with("tool-output") && !name.is_empty()).then(|| name.to_owned())
}

fn kind_of(name: &str) -> CallKind {
    match name {
        "bash" | "shell" => CallKind::Shell,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => CallKind::Edit,
        "read" | "list" => CallKind::Read,
        "grep" | "glob" | "codesearch" => CallKind::Search,
        "webfetch" | "websearch" => CallKind::Web,
        "task" => CallKind::Agent,
        "todowrite" | "todoread" | "plan_enter" | "plan_exit" => CallKind::Function,
        // A tool of a server has the name of the server before its own.
        name if name.contains('_') => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// The word of the input that says most.
fn title_of(input: &Object<'_>) -> String {
    let names = ["command", "filePath", "path", "pattern", "query", "url", "description", "name", "tool"];
    let word = names.iter().find_map(|name| input.get(name).filter(|value| value.is_string()));
    match word {
        Some(word) => in_a_line(&word.head(2_000)),
        None => in_a_line(&String::from_utf8_lossy(&input.bytes()[..input.bytes().len().min(400)])),
    }
}

#[cfg(test)]
mod tests {
    use super::output_key;

    #[test]
    fn complete_outputs_are_named_by_their_file() {
        let path = "/home/ada/.local/share/opencode/tool-output/tool_1";
        assert_eq!(output_key(path).as_deref(), Some("tool_1"));
        assert_eq!(output_key("/tmp/tool_1"), None);
    }
}
