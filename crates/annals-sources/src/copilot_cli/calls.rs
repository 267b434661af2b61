//! Tool calls: requested in an answer, started, and completed in any order.

use serde::{Deserialize, Serialize};

use super::events::{Event, EventReader};
use super::files::FileCall;
use crate::home::title::in_a_line;
use crate::json::{Json, Object};
use annals_core::{Call, CallKind, CallResult, ContentKey, Item, Link, LinkKind, MessageKind, Role, Touch};

/// How many calls may get a result later.
const OPEN_CALLS: usize = 512;
/// Longer arguments are not kept for the result, which has a diff.
const LONGEST_ARGUMENTS: usize = 20_000;

/// A call without a result yet.
#[derive(Serialize, Deserialize)]
pub(super) struct OpenCall {
    id: String,
    offset: u64,
    name: String,
    arguments: String,
    ended: bool,
}

impl EventReader {
    /// A call in the list of an answer, or the event that starts one which no answer lists.
    pub(super) fn call(
        &mut self,
        event: &Event<'_>,
        request: Json<'_>,
        message: Option<u64>,
        out: &mut Vec<Item>,
    ) {
        let text =
            |names: [&str; 2]| names.iter().find_map(|name| request.get_text(name)).unwrap_or_default();
        let (id, name) = (text(["toolCallId", "id"]).into_owned(), text(["name", "toolName"]).into_owned());
        if self.state.calls.iter().any(|call| call.id == id) {
            return;
        }
        let span = event.span_of(request.bytes());
        let arguments = request.get("arguments");
        out.push(Item::Call(Call {
            session: event.session.clone(),
            span,
            at: event.at,
            key: ContentKey::of(&[b"call", self.session.as_bytes(), id.as_bytes()]),
            inherited: false,
            call_id: id.clone(),
            name: name.as_str().into(),
            kind: kind_of(&name, request.get("mcpServerName").is_some()),
            title: arguments.map(title_of).unwrap_or_default(),
            parent: None,
            message,
            model: self.model_of(event),
        }));
        if self.state.calls.len() >= OPEN_CALLS {
            self.state.calls.pop_front();
        }
        let arguments = arguments.filter(|arguments| arguments.bytes().len() <= LONGEST_ARGUMENTS);
        let kept = match arguments {
            Some(arguments) => String::from_utf8_lossy(arguments.bytes()).into_owned(),
            None => "{}".to_owned(),
        };
        self.state.calls.push_back(OpenCall { id, offset: span.offset, name, arguments: kept, ended: false });
    }

    pub(super) fn result(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        let id = event.data.get_text("toolCallId").unwrap_or_default();
        let open = self.state.calls.iter().rposition(|call| call.id == *id && !call.ended);
        let Some(call) = open.and_then(|at| self.state.calls.get_mut(at)) else {
            // Its text can be found, although nobody called it; a completion that comes again says nothing new.
            if !self.state.calls.iter().any(|call| call.id == *id) {
                out.push(self.message(event, Role::User, MessageKind::Result));
            }
            return;
        };
        // The call stays known: its start may come again.
        call.ended = true;
        let arguments = std::mem::take(&mut call.arguments);
        let (offset, name) = (call.offset, call.name.clone());
        let result = event.data.get("result").or_else(|| event.data.get("error"));
        let text = result.and_then(|result| result.get_text("content"));
        let is_shell = kind_of(&name, false) == CallKind::Shell;
        let shell = event.data.get("shellExecution").and_then(|shell| shell.get_integer("exitCode"));
        let exit_code = shell.or_else(|| text.as_deref().and_then(exit_code)).filter(|_| is_shell);
        let success = event.data.get("success").and_then(Json::boolean) == Some(true);
        let ok = success && exit_code.is_none_or(|code| code == 0);
        out.push(Item::Result(CallResult {
            session: event.session.clone(),
            call: offset,
            output: result.map(|result| event.span_of(result.bytes())),
            detail: Some(event.span_of(event.data.bytes())),
            at: event.at,
            ok: Some(ok),
            exit_code,
            duration_ms: None,
            full: None,
        }));
        if !ok {
            return;
        }
        let Some(arguments) = Json::parse(arguments.as_bytes()) else { return };
        let arguments = arguments.object();
        let folder = self.state.facts.cwd.as_deref();
        let on = FileCall { name: &name, arguments: &arguments, data: Some(&event.data), folder };
        for work in on.touched() {
            out.push(Item::Touch(Touch {
                session: event.session.clone(),
                call: offset,
                path: work.path,
                operation: work.operation,
                before: work.before.range,
                after: work.after.range,
            }));
        }
    }

    /// A sub-agent's events are in the file of the session that started it.
    pub(super) fn agent_started(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        let Some(agent) = event.agent.as_deref() else { return };
        let text = |name: &str| event.data.get_text(name).map(|text| text.into_owned());
        let title = text("agentDisplayName").or_else(|| text("agentName"));
        let child = self.state.agents.entry(agent.to_owned()).or_default();
        child.title = title.or(child.title.take());
        child.started_at = child.started_at.or(event.at);
        let links = [
            (self.session.clone(), event.session.to_string(), text("toolCallId")),
            (event.session.clone(), self.session.to_string(), None),
        ];
        for (session, other, position) in links {
            out.push(Item::Link(Link { session, other, kind: LinkKind::SubAgent, position }));
        }
    }
}

/// What the client adds below the output of a command: `<exited with exit code 3>`, `<shellId: 0 completed with exit
/// code 3>`.
pub fn without_exit_code(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((output, end)) if exit_code_in(end).is_some() => output,
        None if exit_code_in(text).is_some() => "",
        _ => text,
    }
}

fn exit_code(text: &str) -> Option<i64> {
    exit_code_in(text.lines().next_back()?)
}

fn exit_code_in(line: &str) -> Option<i64> {
    let inner = line.trim().strip_prefix('<')?.strip_suffix('>')?;
    let (head, code) = inner.rsplit_once(" with exit code ")?;
    (head == "exited" || head.ends_with(" completed")).then(|| code.parse().ok())?
}

pub fn kind_of(name: &str, is_server: bool) -> CallKind {
    match name {
        _ if is_server => CallKind::Mcp,
        "bash" | "powershell" => CallKind::Shell,
        "edit" | "create" | "str_replace_editor" | "apply_patch" => CallKind::Edit,
        "view" => CallKind::Read,
        "glob" | "grep" | "rg" => CallKind::Search,
        "web_fetch" | "web_search" => CallKind::Web,
        "task" => CallKind::Agent,
        name if name.contains('-') => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// The word of the arguments that says most.
fn title_of(arguments: Json<'_>) -> String {
    let names = ["command", "path", "pattern", "query", "url", "description", "skill", "intent"];
    let word = names.iter().find_map(|name| arguments.get(name).filter(|value| value.is_string()));
    match word.or(Some(arguments).filter(|arguments| arguments.is_string())) {
        Some(word) => in_a_line(&word.head(2_000)),
        None => in_a_line(&String::from_utf8_lossy(&arguments.bytes()[..arguments.bytes().len().min(400)])),
    }
}

/// The arguments of a call: an object, or the text of a free-text tool.
pub fn arguments_of<'a>(call: &Object<'a>) -> Option<Json<'a>> {
    call.get("arguments")
}

#[cfg(test)]
mod tests {
    use super::{exit_code, without_exit_code};

    #[test]
    fn exit_codes_are_at_the_end_of_outputs() {
        assert_eq!(exit_code("1 failed\n<exited with exit code 3>"), Some(3));
        assert_eq!(exit_code("<shellId: 0 completed with exit code 0>"), Some(0));
        assert_eq!(exit_code("<b>exit code 3</b>"), None);
        assert_eq!(without_exit_code("a\nb\n<exited with exit code 0>"), "a\nb");
        assert_eq!(without_exit_code("a\nb"), "a\nb");
    }
}
