//! Reads sessions line by line: messages, calls with their results, usage with the client's own cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::blocks::content_text;
use super::files::FileCall;
use crate::home::calls::{OpenCall, OpenCalls, title_of_call, touches};
use crate::home::drift::each_unknown;
use crate::home::title::title_of;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    Call, CallKind, CallResult, ContentKey, Item, Link, LinkKind, Message, MessageKind, Operation,
    Picodollars, Role, SessionFacts, Span, Tally, Time, Tokens, Usage, Verdict,
};

/// The fields of arguments that say most, the most telling first.
const TITLES: &[&str] = &["command", "path", "pattern", "query", "url"];

const LINE: &[&str] = &["type", "id", "parentId", "timestamp"];
const FIELDS: &[(&str, &[&str])] = &[
    ("session", &["version", "cwd", "parentSession"]),
    ("message", &["message"]),
    ("model_change", &["provider", "modelId"]),
    ("thinking_level_change", &["thinkingLevel"]),
    ("session_info", &["name"]),
    ("compaction", &["summary", "firstKeptEntryId", "tokensBefore", "details", "fromHook", "usage"]),
    ("branch_summary", &["fromId", "summary", "details", "fromHook", "usage"]),
    ("custom", &["customType", "data"]),
    ("custom_message", &["customType", "content", "display", "details"]),
    ("label", &["targetId", "label"]),
];
const ROLES: &[(&str, &[&str])] = &[
    ("user", &["content"]),
    (
        "assistant",
        &[
            "content",
            "api",
            "provider",
            "model",
            "usage",
            "stopReason",
            "rawStopReason",
            "errorMessage",
            "responseId",
        ],
    ),
    ("toolResult", &["toolCallId", "toolName", "content", "details", "isError"]),
    (
        "bashExecution",
        &["command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath", "excludeFromContext"],
    ),
    ("system", &["content", "sections", "toolsAdded", "toolsRemoved"]),
    ("custom", &["customType", "content", "display", "details"]),
    ("hookMessage", &["customType", "content", "display", "details"]),
    ("branchSummary", &["summary", "fromId"]),
    ("compactionSummary", &["summary", "tokensBefore"]),
];
const PARTS: &[&str] = &["text", "thinking", "toolCall", "image"];

pub(super) struct TranscriptReader {
    session: Arc<str>,
    state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    session: Option<String>,
    read_any: bool,
    facts: SessionFacts,
    /// When the session started: a fork has lines from before it.
    started: Option<Time>,
    calls: OpenCalls,
}

/// One line and what its envelope says.
struct SessionLine<'a> {
    object: Object<'a>,
    span: Span,
    at: Option<Time>,
    key: ContentKey,
    inherited: bool,
}

impl SessionLine<'_> {
    fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.object.bytes().as_ptr() as usize;
        Span { offset: self.span.offset + within as u64, length: piece.len() as u64 }
    }
}

impl TranscriptReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> TranscriptReader {
        let state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let session = state.session.as_deref().unwrap_or_else(|| id_in(&file.path)).into();
        TranscriptReader { session, state }
    }

    fn line(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        self.state.read_any = true;
        let span = Span { offset, length: object.bytes().len() as u64 };
        let time = |name: &str| object.get_text(name).and_then(|text| Time::parse(&text));
        let kind = object.get_text("type").unwrap_or_default().into_owned();
        let written = time("timestamp");
        let message = object.get("message");
        let millis = message.and_then(|message| message.get_integer("timestamp"));
        let at = millis.map(Time::from_millis).or(written);
        let id = object.get_text("id").unwrap_or_default();
        // Copies in a fork have the id and the time of the original.
        let moment = at.map_or(0, Time::micros).to_le_bytes();
        let key = match id.is_empty() {
            true => ContentKey::of(&[b"pi", self.session.as_bytes(), &offset.to_le_bytes()]),
            false => ContentKey::of(&[b"pi", id.as_bytes(), &moment]),
        };
        let earlier = written.zip(self.state.started).is_some_and(|(at, started)| at < started);
        let inherited = earlier && self.state.facts.parent.is_some();
        self.state.facts.last_at = self.state.facts.last_at.max(written);
        let line = SessionLine { object, span, at, key, inherited };
        let Some((_, fields)) = FIELDS.iter().find(|(known, _)| *known == kind) else {
            out.push(self.message(&line, Role::System, MessageKind::Notice));
            return Verdict::Unknown(if kind.is_empty() { "no type".into() } else { kind });
        };
        each_unknown(&line.object, &[LINE, fields], &kind, out);
        match kind.as_str() {
            "session" => self.header(&line, out),
            "message" => return self.spoken(&line, message, out),
            "model_change" => self.model_change(&line),
            "thinking_level_change" => {
                if let Some(level) = line.object.get("thinkingLevel") {
                    self.state.facts.native.insert("thinking_level".into(), level.value());
                }
            }
            "session_info" => self.state.facts.name = line.object.get_text("name").map(Into::into),
            "compaction" | "branch_summary" => {
                out.push(self.message(&line, Role::System, MessageKind::Summary));
            }
            "custom_message" => out.push(self.message(&line, Role::User, MessageKind::Injected)),
            _ => {}
        }
        Verdict::Kept(kind)
    }

    fn header(&mut self, line: &SessionLine<'_>, out: &mut Vec<Item>) {
        let text = |name: &str| line.object.get_text(name).filter(|text| !text.is_empty());
        if self.state.session.is_none()
            && let Some(id) = text("id")
        {
            self.session = id.as_ref().into();
            self.state.session = Some(id.into_owned());
        }
        let facts = &mut self.state.facts;
        facts.cwd = text("cwd").map(|cwd| cwd.into_owned()).or(facts.cwd.take());
        facts.started_at = facts.started_at.or(line.at);
        self.state.started = self.state.started.or(line.at);
        if let Some(parent) = text("parentSession").filter(|_| facts.parent.is_none()) {
            let parent = id_in(&parent).to_owned();
            facts.parent = Some(parent.clone());
            facts.parent_kind = Some(LinkKind::Fork);
            let (session, kind) = (self.session.clone(), LinkKind::Fork);
            out.push(Item::Link(Link { session, other: parent, kind, position: None }));
        }
    }

    fn model_change(&mut self, line: &SessionLine<'_>) {
        if let Some(provider) = line.object.get("provider") {
            self.state.facts.native.insert("provider".into(), provider.value());
        }
    }

    fn spoken(&mut self, line: &SessionLine<'_>, message: Option<Json<'_>>, out: &mut Vec<Item>) -> Verdict {
        let Some(message) = message.filter(|message| message.is_object()).map(Json::object) else {
            return Verdict::Unknown("message line without message".into());
        };
        let role = message.get_text("role").unwrap_or_default().into_owned();
        if let Some((_, fields)) = ROLES.iter().find(|(known, _)| *known == role) {
            each_unknown(&message, &[&["role", "timestamp"], fields], &role, out);
        }
        let content = message.get("content");
        for part in content.iter().flat_map(|content| content.items()) {
            let kind = part.get_text("type").unwrap_or_default();
            if !PARTS.contains(&kind.as_ref()) {
                out.push(Item::Drift(format!("part {kind}")));
            }
        }
        match role.as_str() {
            "user" => self.prompt(line, content, out),
            "assistant" => self.answer(line, &message, out),
            "toolResult" => self.result(line, &message, out),
            "bashExecution" => out.push(self.message(line, Role::User, MessageKind::Command)),
            "system" => out.push(self.message(line, Role::System, MessageKind::Injected)),
            "custom" | "hookMessage" => out.push(self.message(line, Role::User, MessageKind::Injected)),
            "branchSummary" | "compactionSummary" => {
                out.push(self.message(line, Role::System, MessageKind::Summary));
            }
            other => {
                out.push(self.message(line, Role::System, MessageKind::Notice));
                return Verdict::Unknown(format!("message/{other}"));
            }
        }
        Verdict::Kept(format!("message/{role}"))
    }

    fn prompt(&mut self, line: &SessionLine<'_>, content: Option<Json<'_>>, out: &mut Vec<Item>) {
        let facts = &mut self.state.facts;
        facts.ended_at = None;
        facts.first_message_at = facts.first_message_at.or(line.at);
        if facts.first_prompt.is_none() {
            let title = title_of(&content_text(content));
            facts.first_prompt = Some(title).filter(|title| !title.is_empty());
        }
        out.push(self.message(line, Role::User, MessageKind::Prompt));
    }

    fn answer(&mut self, line: &SessionLine<'_>, message: &Object<'_>, out: &mut Vec<Item>) {
        let model: Option<Arc<str>> = message.get_text("model").map(|model| model.as_ref().into());
        let content = message.get("content");
        let is_empty = content.is_none_or(|content| content.items().next().is_none());
        let failed = message.get_text("stopReason").is_some_and(|reason| reason == "error");
        if !is_empty && let Some(model) = &model {
            let models = &mut self.state.facts.models;
            if !models.iter().any(|known| **known == **model) {
                models.push(model.to_string());
            }
        }
        if message.get_text("stopReason").is_some_and(|reason| reason != "toolUse") {
            self.state.facts.ended_at = line.at;
        }
        let facts = &mut self.state.facts;
        facts.first_message_at = facts.first_message_at.or(line.at);
        let kind = if is_empty { MessageKind::Notice } else { MessageKind::Answer };
        if !is_empty || failed || message.get("errorMessage").is_some() {
            let role = if is_empty { Role::System } else { Role::Assistant };
            let mut row = self.row(line, role, kind);
            row.model.clone_from(&model);
            out.push(Item::Message(row));
        }
        if let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) {
            self.count(line, &usage.object(), model.clone(), out);
        }
        for part in content.iter().flat_map(|content| content.items()) {
            if part.get_text("type").is_some_and(|kind| kind == "toolCall") {
                self.call(line, part, model.clone(), out);
            }
        }
    }

    /// `input` excludes what was cached, `output` includes reasoning. A failed response has zeros.
    fn count(
        &mut self,
        line: &SessionLine<'_>,
        usage: &Object<'_>,
        model: Option<Arc<str>>,
        out: &mut Vec<Item>,
    ) {
        let number = |name: &str| usage.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let tokens = Tokens {
            input: number("input"),
            output: number("output"),
            cache_read: number("cacheRead"),
            cache_write: number("cacheWrite"),
            cache_write_hour: 0,
            reasoning: number("reasoning"),
        };
        let total = usage.get("cost").and_then(|cost| cost.get("total"));
        let cost = total.and_then(|total| Picodollars::parse(total.bytes()));
        if tokens.total() == 0 && cost.is_none() {
            return;
        }
        out.push(Item::Usage(Usage {
            session: self.session.clone(),
            span: line.span,
            at: line.at,
            key: ContentKey::of(&[b"usage", &line.key.stored().to_le_bytes()]),
            inherited: line.inherited,
            model,
            again: false,
            tokens,
            cost,
        }));
    }

    fn call(&mut self, line: &SessionLine<'_>, part: Json<'_>, model: Option<Arc<str>>, out: &mut Vec<Item>) {
        let text = |name: &str| part.get_text(name).unwrap_or_default().into_owned();
        let (id, name, span) = (text("id"), text("name"), line.span_of(part.bytes()));
        let arguments = part.get("arguments");
        out.push(Item::Call(Call {
            session: self.session.clone(),
            span,
            at: line.at,
            key: ContentKey::of(&[b"call", &line.key.stored().to_le_bytes(), id.as_bytes()]),
            inherited: line.inherited,
            call_id: id.clone(),
            name: name.as_str().into(),
            kind: kind_of(&name),
            title: arguments.map(|arguments| title_of_call(arguments, TITLES)).unwrap_or_default(),
            parent: None,
            message: Some(line.span.offset),
            model,
        }));
        self.state.calls.push(id, span.offset, name, arguments, "path");
    }

    fn result(&mut self, line: &SessionLine<'_>, message: &Object<'_>, out: &mut Vec<Item>) {
        let id = message.get_text("toolCallId").unwrap_or_default();
        let Some(call) = self.state.calls.take(&id) else {
            out.push(self.message(line, Role::User, MessageKind::Result));
            return;
        };
        let ok = message.get("isError").and_then(Json::boolean) != Some(true);
        let text = content_text(message.get("content"));
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: call.offset,
            output: Some(line.span_of(message.bytes())),
            detail: message.get("details").map(|details| line.span_of(details.bytes())),
            at: line.at,
            ok: Some(ok),
            exit_code: exit_code(&text, ok).filter(|_| call.name == "bash"),
            duration_ms: None,
            full: None,
        }));
        if ok {
            self.touches(&call, message, out);
        }
    }

    fn touches(&self, call: &OpenCall, message: &Object<'_>, out: &mut Vec<Item>) {
        let Some(arguments) = Json::parse(call.arguments.as_bytes()).map(Json::object) else { return };
        let folder = self.state.facts.cwd.as_deref();
        let on = FileCall { name: &call.name, arguments: &arguments, result: Some(message), folder };
        let operation = match call.name.as_str() {
            "write" | "edit" => Some(Operation::Update),
            "read" => Some(Operation::Read),
            _ => None,
        };
        let otherwise = on.path().zip(operation).map(|(path, operation)| call.touched(path, operation));
        touches(&self.session, call.offset, on.work(), otherwise, out);
    }

    fn row(&self, line: &SessionLine<'_>, role: Role, kind: MessageKind) -> Message {
        Message {
            session: self.session.clone(),
            span: line.span,
            role,
            kind,
            at: line.at,
            key: line.key,
            inherited: line.inherited,
            model: None,
            tally: Tally::of(kind),
        }
    }

    fn message(&self, line: &SessionLine<'_>, role: Role, kind: MessageKind) -> Item {
        Item::Message(self.row(line, role, kind))
    }
}

impl Reader for TranscriptReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        each_object(line, |at, object| self.line(offset + at, object, out))
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        let (session, facts) = (self.session.clone(), self.state.facts.clone());
        self.state.read_any.then_some(Facts { session, rank: 0, facts }).into_iter().collect()
    }
}

/// `<time>_<session id>.jsonl`, with whatever is before it.
fn id_in(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    stem.split_once('_').map_or(stem, |(_, id)| id)
}

fn kind_of(name: &str) -> CallKind {
    match name {
        "bash" => CallKind::Shell,
        "edit" | "write" => CallKind::Edit,
        "read" | "ls" => CallKind::Read,
        "grep" | "find" => CallKind::Search,
        _ => CallKind::Function,
    }
}

/// A failed command ends with its code; one that was aborted has none.
fn exit_code(text: &str, ok: bool) -> Option<i64> {
    if ok {
        return Some(0);
    }
    text.lines().next_back()?.trim().strip_prefix("Command exited with code ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{exit_code, id_in};

    #[test]
    fn sessions_are_named_by_the_end_of_their_file() {
        assert_eq!(id_in("sessions/--home-ada--/2026-03-02T09-00-00-000Z_0199-a.jsonl"), "0199-a");
        assert_eq!(id_in("C:\\pi\\2026_b.jsonl"), "b");
    }

    #[test]
    fn exit_codes_are_at_the_end_of_failed_commands() {
        assert_eq!(exit_code("1 failed\n\n\nCommand exited with code 3", false), Some(3));
        assert_eq!(exit_code("Command aborted", false), None);
        assert_eq!(exit_code("fine\n", true), Some(0));
    }
}
