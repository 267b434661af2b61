//! Calls in a chat: each is written with its message, again whenever it moves on, and at last with its result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calls::{TITLES, exit_code, full_output, kind_of, paths_in, response_text};
use super::chat::{Base, ChatReader};
use super::drift::CALL;
use super::files::FileCall;
use crate::home::calls::{OtherwiseTouched, title_of_call, touches};
use crate::home::drift::each_unknown;
use crate::json::Json;
use annals_core::{Call, CallKind, CallResult, ContentKey, Item, Link, LinkKind, Time};

/// How many calls may get a result later.
const OPEN_CALLS: usize = 512;

/// A call that may be written again.
#[derive(Serialize, Deserialize)]
pub(super) struct OpenCall {
    id: ContentKey,
    offset: u64,
    ended: bool,
}

impl ChatReader {
    pub(super) fn knows_calls(&self, content: Option<Json<'_>>) -> bool {
        content.iter().flat_map(|content| content.items()).all(|part| {
            let id = part.get("functionResponse").and_then(|response| response.get_text("id"));
            let key = self.call_key(&id.unwrap_or_default());
            self.state.calls.iter().any(|call| call.id == key)
        })
    }

    pub(super) fn has_new_call(&self, calls: Json<'_>) -> bool {
        calls.items().any(|call| {
            let key = self.call_key(&call.get_text("id").unwrap_or_default());
            !self.state.calls.iter().any(|open| open.id == key)
        })
    }

    fn call_key(&self, id: &str) -> ContentKey {
        ContentKey::of(&[b"call", self.session.as_bytes(), id.as_bytes()])
    }

    pub(super) fn call(
        &mut self,
        base: Base<'_>,
        json: Json<'_>,
        (message, at, model): (u64, Option<Time>, Option<Arc<str>>),
        out: &mut Vec<Item>,
    ) {
        let call = json.object();
        each_unknown(&call, &[CALL], "call", out);
        let call_id = call.get_text("id").unwrap_or_default();
        let name = call.get_text("name").unwrap_or_default();
        let given = call.get("args").unwrap_or(json);
        let args = given.object();
        let (key, kind) = (self.call_key(&call_id), kind_of(&name));
        if let Some(path) = paths_in(&args) {
            self.find_directory(&path);
        }
        let known = self.state.calls.iter().rposition(|open| open.id == key);
        let at_open = match known {
            Some(at_open) => at_open,
            None => {
                let span = base.span(json.bytes());
                out.push(Item::Call(Call {
                    session: self.session.clone(),
                    span,
                    at,
                    key,
                    inherited: false,
                    call_id: call_id.clone().into_owned(),
                    name: name.as_ref().into(),
                    kind,
                    title: title_of_call(given, TITLES),
                    parent: None,
                    message: Some(message),
                    model,
                }));
                if self.state.calls.len() >= OPEN_CALLS {
                    self.state.calls.pop_front();
                }
                self.state.calls.push_back(OpenCall { id: key, offset: span.offset, ended: false });
                self.state.calls.len() - 1
            }
        };
        let status = call.get_text("status").unwrap_or_default();
        let has_ended = matches!(status.as_ref(), "success" | "error" | "cancelled");
        let open = &mut self.state.calls[at_open];
        if !has_ended || std::mem::replace(&mut open.ended, true) {
            return;
        }
        let place = open.offset;
        let result = call.get("result");
        let text = result.and_then(response_text);
        let exit =
            text.as_deref().filter(|_| kind == CallKind::Shell && status != "cancelled").and_then(exit_code);
        let background = args.get("is_background").and_then(Json::boolean) == Some(true);
        let exit_code = exit.filter(|_| !background);
        let ok = status == "success" && exit_code.is_none_or(|code| code == 0);
        let display = call.get("resultDisplay");
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: place,
            output: result.map(|result| base.span(result.bytes())),
            detail: display.map(|display| base.span(display.bytes())),
            at: call.get_text("timestamp").and_then(|text| Time::parse(&text)).or(at),
            ok: Some(ok),
            exit_code,
            duration_ms: None,
            full: text.as_deref().and_then(full_output),
        }));
        if let Some(agent) = call.get_text("agentId") {
            out.push(Item::Link(Link {
                session: self.session.clone(),
                other: agent.into_owned(),
                kind: LinkKind::SubAgent,
                position: Some(call_id.into_owned()),
            }));
        }
        if ok {
            let folder = self.state.facts.cwd.as_deref();
            let on = FileCall { name: &name, args: &args, display, output: text.as_deref(), folder };
            let otherwise =
                on.touched().map(|(path, operation)| OtherwiseTouched { path, operation, after: None });
            touches(&self.session, place, on.work(), otherwise, out);
        }
    }
}
