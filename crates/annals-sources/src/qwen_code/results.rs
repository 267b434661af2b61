//! Results of calls: what the model got, what the client recorded, and what was done to files.

use super::kinds::agent_session;
use super::transcript::{Record, TranscriptReader};
use crate::gemini_family::calls::{exit_code, full_output, kind_of, output_key, response_text};
use crate::gemini_family::files::FileCall;
use crate::home::calls::{OpenCall, touches};
use crate::json::Json;
use annals_core::{CallKind, CallResult, Item, Link, LinkKind, MessageKind, Role};

impl TranscriptReader {
    pub(super) fn result(&mut self, record: &Record<'_>, out: &mut Vec<Item>) -> bool {
        let kept = record.object.get("toolCallResult");
        let parts = record.object.get("message").and_then(|message| message.get("parts"));
        let answered = parts.and_then(|parts| parts.items().find_map(|part| part.get("functionResponse")));
        let id = kept.and_then(|kept| kept.get_text("callId"));
        let id = id.or_else(|| answered.and_then(|answered| answered.get_text("id"))).unwrap_or_default();
        let Some(call) = self.state.calls.take(&id) else {
            out.push(self.message(record, Role::User, MessageKind::Result));
            return true;
        };
        let display = kept.and_then(|kept| kept.get("resultDisplay"));
        let text = parts.and_then(response_text);
        let status = kept.and_then(|kept| kept.get_text("status"));
        let exit_code = exit_of(&call, display, text.as_deref(), status.as_deref());
        let failed = match status.as_deref() {
            Some(status) => status != "success",
            None => {
                let response = answered.and_then(|answered| answered.get("response"));
                response.is_some_and(|response| response.get("error").is_some())
            }
        };
        let ok = !failed && exit_code.is_none_or(|code| code == 0);
        let files = display.and_then(|display| display.get("outputFiles"));
        let file = files.and_then(|files| files.items().next()).and_then(Json::text);
        let full = file.and_then(|path| output_key(&path)).map(|key| format!("tool_outputs/{key}"));
        let duration_ms = kept.and_then(|kept| kept.get_integer("durationMs")).or(call.duration_ms);
        let duration_ms = duration_ms.and_then(|duration| u64::try_from(duration).ok());
        let is_empty = |display: &Json<'_>| display.is_null() || display.bytes() == b"\"\"";
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: call.offset,
            output: parts.map(|parts| record.span_of(parts.bytes())),
            detail: display
                .filter(|display| !is_empty(display))
                .map(|display| record.span_of(display.bytes())),
            at: record.at,
            ok: Some(ok),
            exit_code,
            duration_ms,
            full: full.or_else(|| text.as_deref().and_then(full_output)),
        }));
        self.agent(&call, display, out);
        if ok {
            self.touched(&call, display, text.as_deref(), out);
        }
        true
    }

    /// The transcript of an agent that has one.
    fn agent(&self, call: &OpenCall, display: Option<Json<'_>>, out: &mut Vec<Item>) {
        let Some(display) = display.filter(|display| display.get("executionMode").is_some()) else { return };
        let Some(name) = display.get_text("subagentName") else { return };
        let (session, position) = (self.session.clone(), Some(call.id.clone()));
        let other = agent_session(&self.session, &format!("{name}-{}", call.id));
        out.push(Item::Link(Link { session, other, kind: LinkKind::SubAgent, position }));
    }

    fn touched(&self, call: &OpenCall, display: Option<Json<'_>>, output: Option<&str>, out: &mut Vec<Item>) {
        let Some(args) = Json::parse(call.arguments.as_bytes()).map(Json::object) else { return };
        let folder = self.state.facts.cwd.as_deref();
        let on = FileCall { name: &call.name, args: &args, display, output, folder };
        let otherwise = on.touched().map(|(path, operation)| call.touched(path, operation));
        touches(&self.session, call.offset, on.work(), otherwise, out);
    }
}

/// Newer clients record the exit code, older ones have it in the text.
fn exit_of(
    call: &OpenCall,
    display: Option<Json<'_>>,
    text: Option<&str>,
    status: Option<&str>,
) -> Option<i64> {
    if kind_of(&call.name) != CallKind::Shell || status == Some("cancelled") {
        return None;
    }
    let recorded = display.and_then(|display| display.get("exitCode"));
    match recorded {
        Some(code) => code.integer(),
        None => text.and_then(exit_code),
    }
}
