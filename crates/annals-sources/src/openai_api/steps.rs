//! Messages and items as steps of a conversation, each with its position.

use super::stream::StreamChoice;
use super::tools::Tool;
use super::{drift, stream, tools};
use crate::home::title::in_a_line;
use crate::json::{Json, Object};
use annals_core::{CallKind, ContentKey, MessageKind, Role};

/// One step of a request or a response.
#[derive(Debug)]
pub struct TraceStep<'t> {
    pub bytes: &'t [u8],
    /// The provider's id of the item.
    pub id: Option<String>,
    /// Equal for the same content, whatever its source.
    pub content: ContentKey,
    pub kind: StepKind,
}

#[derive(Debug)]
pub enum StepKind {
    Message {
        role: Role,
        kind: MessageKind,
        /// The first line, for a title.
        line: String,
    },
    Call {
        call_id: String,
        name: String,
        kind: CallKind,
        title: String,
        /// It belongs to the message before it.
        within: bool,
        /// The provider ran it: the result is in the same item.
        ran: Option<CallOutcome>,
    },
    Result {
        call_id: String,
        ran: CallOutcome,
    },
}

/// The outcome of a call, if known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallOutcome {
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
}

/// A message of Chat Completions: text, calls, or a tool result.
pub fn chat_message<'t>(message: Json<'t>, out: &mut Vec<TraceStep<'t>>) {
    let object = message.object();
    let role = object.get_text("role").unwrap_or_default();
    let text = words(&object);
    let bytes = message.bytes();
    let id = object.get_text("id").map(|id| id.into_owned());
    if matches!(role.as_ref(), "tool" | "function") {
        let call_id = object.get_text("tool_call_id").or_else(|| object.get_text("name")).unwrap_or_default();
        let content = ContentKey::of(&[b"returned", call_id.as_bytes(), text.as_bytes()]);
        let kind = StepKind::Result { call_id: call_id.into_owned(), ran: CallOutcome::default() };
        out.push(TraceStep { bytes, id, content, kind });
        return;
    }
    let (role, kind) = role_and_kind(&role);
    let has_message = !text.trim().is_empty() || has_attachment(object.get("content"));
    if has_message {
        let mut step = message_step(bytes, id, role, kind, &text);
        let attached = attachments(object.get("content"));
        if !attached.is_empty() {
            step.content = step.content.then(&attached);
        }
        out.push(step);
    }
    let calls = object.get("tool_calls").into_iter().flat_map(Json::items);
    for call in calls {
        let called = call.object();
        let function = called.get("function").or_else(|| called.get("custom")).map(Json::object);
        let name = function.as_ref().and_then(|function| function.get_text("name")).unwrap_or_default();
        let arguments = function
            .as_ref()
            .and_then(|function| function.get_text("arguments").or_else(|| function.get_text("input")));
        let call_id = called.get_text("id").unwrap_or_default();
        out.push(called_function(call.bytes(), &call_id, &name, &arguments.unwrap_or_default(), has_message));
    }
    // Before tools there were functions; a result then names the function.
    if let Some(call) = object.get("function_call").filter(|call| call.is_object()) {
        let (name, arguments) = (call.get_text("name"), call.get_text("arguments"));
        let name = name.unwrap_or_default();
        out.push(called_function(call.bytes(), &name, &name, &arguments.unwrap_or_default(), has_message));
    }
}

/// A choice of a streamed completion.
pub fn streamed_choice<'t>(choice: &StreamChoice<'t>, out: &mut Vec<TraceStep<'t>>) {
    let text = [choice.text.as_str(), &choice.refusal].concat();
    let has_message = !text.trim().is_empty();
    if has_message {
        out.push(message_step(choice.bytes, None, Role::Assistant, MessageKind::Answer, &text));
    }
    for call in &choice.calls {
        out.push(called_function(call.bytes, &call.id, &call.name, &call.arguments, has_message));
    }
}

/// An answer whose stream broke off.
pub fn unfinished<'t>(bytes: &'t [u8], out: &mut Vec<TraceStep<'t>>) {
    let text = stream::unfinished_text(bytes);
    out.push(message_step(bytes, None, Role::Assistant, MessageKind::Answer, &text));
}

/// An item of the Responses API, from an input, an output or a conversation.
pub fn item<'t>(item: Json<'t>, out: &mut Vec<TraceStep<'t>>) {
    let object = item.object();
    let kind = object.get_text("type").unwrap_or_default();
    let bytes = item.bytes();
    let id = object.get_text("id").map(|id| id.into_owned());
    match kind.as_ref() {
        "" | "message" if object.get("role").is_some() => chat_message(item, out),
        "reasoning" => {
            let text = tools::reasoning(&object);
            if !text.trim().is_empty() {
                out.push(message_step(bytes, id, Role::Assistant, MessageKind::Thinking, &text));
            }
        }
        "compaction" => out.push(message_step(bytes, id, Role::System, MessageKind::Notice, "compaction")),
        "mcp_approval_request" | "mcp_approval_response" => {
            let text = object.get_text("name").or_else(|| object.get_text("approval_request_id"));
            out.push(message_step(bytes, id, Role::System, MessageKind::Notice, &text.unwrap_or_default()));
        }
        kind => match tools::of_item(kind) {
            Some(Tool::Call { kind, ran }) => {
                let call_id =
                    object.get_text("call_id").or_else(|| object.get_text("id")).unwrap_or_default();
                let name = tools::name(&object);
                let input = tools::input(&object);
                let title = title_of(&input);
                let content =
                    ContentKey::of(&[b"called", call_id.as_bytes(), name.as_bytes(), title.as_bytes()]);
                let ran = ran.then(|| tools::outcome(&object));
                let kind =
                    StepKind::Call { call_id: call_id.into_owned(), name, kind, title, within: false, ran };
                out.push(TraceStep { bytes, id, content, kind });
            }
            Some(Tool::Output) => {
                let call_id =
                    object.get_text("call_id").or_else(|| object.get_text("id")).unwrap_or_default();
                let text = tools::output(&object).unwrap_or_default();
                let content = ContentKey::of(&[b"returned", call_id.as_bytes(), text.as_bytes()]);
                let ran = tools::outcome(&object);
                out.push(TraceStep {
                    bytes,
                    id,
                    content,
                    kind: StepKind::Result { call_id: call_id.into_owned(), ran },
                });
            }
            // A list of tools, or a setting: kept in the bytes.
            None if drift::ASIDE.contains(&kind) => {}
            None => out.push(message_step(bytes, id, Role::System, MessageKind::Notice, kind)),
        },
    }
}

/// Instructions and other plain text.
pub fn text<'t>(value: Json<'t>, role: Role, kind: MessageKind, out: &mut Vec<TraceStep<'t>>) {
    let text = value.text().unwrap_or_default();
    if !text.trim().is_empty() {
        out.push(message_step(value.bytes(), None, role, kind, &text));
    }
}

/// A prompt that is not JSON.
pub fn plain<'t>(bytes: &'t [u8], out: &mut Vec<TraceStep<'t>>) {
    out.push(message_step(bytes, None, Role::User, MessageKind::Prompt, &String::from_utf8_lossy(bytes)));
}

/// An error message of the provider.
pub fn failure<'t>(error: Json<'t>, out: &mut Vec<TraceStep<'t>>) {
    let has_text = error.text().is_none_or(|text| !text.trim().is_empty());
    if has_text && error.bytes() != b"{}" {
        let text = String::from_utf8_lossy(error.bytes());
        out.push(message_step(error.bytes(), None, Role::System, MessageKind::Notice, &text));
    }
}

/// An error message that is not JSON.
pub fn plain_failure<'t>(bytes: &'t [u8], out: &mut Vec<TraceStep<'t>>) {
    if !bytes.trim_ascii().is_empty() {
        let text = String::from_utf8_lossy(bytes);
        out.push(message_step(bytes, None, Role::System, MessageKind::Notice, &text));
    }
}

/// The text of a message.
pub fn words(message: &Object<'_>) -> String {
    let mut text = message.get("content").map(text_of).unwrap_or_default();
    if text.is_empty() {
        text = message.get("content_parts").map(text_of).unwrap_or_default();
    }
    for name in ["refusal", "output_text"] {
        text.push_str(&message.get_text(name).unwrap_or_default());
    }
    if let Some(transcript) = message.get("audio").and_then(|audio| audio.get_text("transcript")) {
        text.push_str(&transcript);
    }
    text
}

/// The text of a string, or of the parts of a list.
pub fn text_of(content: Json<'_>) -> String {
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let mut words = String::new();
    for part in content.items() {
        let text = part.text().or_else(|| part.get_text("text")).or_else(|| part.get_text("refusal"));
        words.push_str(&text.unwrap_or_default());
    }
    words
}

/// The bytes of parts that are not text, to distinguish messages by them.
fn attachments(content: Option<Json<'_>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in content.into_iter().flat_map(Json::items).filter(|part| part.get("text").is_none()) {
        bytes.extend_from_slice(ContentKey::of(&[part.bytes()]).hex().as_bytes());
    }
    bytes
}

pub fn role_and_kind(role: &str) -> (Role, MessageKind) {
    match role {
        "assistant" | "model" => (Role::Assistant, MessageKind::Answer),
        "user" => (Role::User, MessageKind::Prompt),
        "developer" => (Role::Developer, MessageKind::Injected),
        "tool" => (Role::Tool, MessageKind::Result),
        _ => (Role::System, MessageKind::Injected),
    }
}

fn has_attachment(content: Option<Json<'_>>) -> bool {
    content.into_iter().flat_map(Json::items).any(|part| part.is_object())
}

fn message_step<'t>(
    bytes: &'t [u8],
    id: Option<String>,
    role: Role,
    kind: MessageKind,
    text: &str,
) -> TraceStep<'t> {
    let content = ContentKey::of(&[b"said", role.name().as_bytes(), kind.name().as_bytes(), text.as_bytes()]);
    TraceStep { bytes, id, content, kind: StepKind::Message { role, kind, line: in_a_line(text) } }
}

fn called_function<'t>(
    bytes: &'t [u8],
    call_id: &str,
    name: &str,
    arguments: &str,
    within: bool,
) -> TraceStep<'t> {
    let title = title_of(&serde_json::Value::from(arguments));
    let content = ContentKey::of(&[b"called", call_id.as_bytes(), name.as_bytes(), title.as_bytes()]);
    let (call_id, name, kind) = (call_id.to_owned(), name.to_owned(), CallKind::Function);
    TraceStep {
        bytes,
        id: None,
        content,
        kind: StepKind::Call { call_id, name, kind, title, within, ran: None },
    }
}

/// The most informative argument, in one line.
fn title_of(input: &serde_json::Value) -> String {
    let opened = input.as_str().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let value = opened.as_ref().filter(|value| value.is_object()).unwrap_or(input);
    let informative =
        ["command", "commands", "query", "queries", "path", "file_path", "url", "prompt", "code"];
    let found = informative.iter().find_map(|name| value.get(name)).unwrap_or(value);
    let line = match found {
        serde_json::Value::String(text) => in_a_line(text),
        serde_json::Value::Array(words) if words.iter().all(serde_json::Value::is_string) => {
            in_a_line(&words.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(" "))
        }
        serde_json::Value::Null => String::new(),
        other => in_a_line(&other.to_string()),
    };
    line.trim().to_owned()
}
