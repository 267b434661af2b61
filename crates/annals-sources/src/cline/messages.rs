//! Reads conversations: one document that is rewritten at each turn. Version 3 has ids, and usage with each answer; before it,
//! the document is a list without ids, and usage is in another file.

use std::sync::Arc;

use super::blocks::{contents, is_error, words_of};
use super::calls::{TITLES, ToolResult, call_of, kind_of, result_of};
use super::files::FileCall;
use super::places::place_of;
use crate::home::calls::{OpenCalls, title_of_call, touches};
use crate::home::drift::each_unknown;
use crate::home::title::title_of;
use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader};
use annals_core::{
    Call, CallKind, CallResult, ContentKey, Item, Link, LinkKind, Message, MessageKind, Picodollars, Role,
    SessionFacts, Span, Tally, Time, Tokens, Usage, Verdict,
};

const DOCUMENT: &[&str] = &[
    "version",
    "updated_at",
    "agent",
    "sessionId",
    "origin",
    "messages",
    "system_prompt",
    "systemPrompt",
    "taskType",
];
const MESSAGE: &[&str] =
    &["id", "role", "content", "ts", "modelInfo", "metrics", "metadata", "conversationHistoryIndex"];
const BLOCKS: &[&str] =
    &["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "file"];

pub struct MessagesReader {
    session: Arc<str>,
    parent: Option<String>,
    facts: Option<SessionFacts>,
    calls: OpenCalls,
    /// The call in markup that waits for its result, and how many there were.
    marked: Option<String>,
    marks: u32,
}

/// One message.
struct Spoken<'a> {
    json: Json<'a>,
    document: &'a [u8],
    offset: u64,
    at: Option<Time>,
    key: ContentKey,
}

impl Spoken<'_> {
    fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.document.as_ptr() as usize;
        Span { offset: self.offset + within as u64, length: piece.len() as u64 }
    }

    fn span(&self) -> Span {
        self.span_of(self.json.bytes())
    }
}

impl MessagesReader {
    pub fn new(file: &FileContext) -> MessagesReader {
        let place = place_of(&file.path);
        MessagesReader {
            session: place.session.into(),
            parent: place.parent,
            facts: None,
            calls: OpenCalls::default(),
            marked: None,
            marks: 0,
        }
    }

    fn facts_mut(&mut self) -> &mut SessionFacts {
        self.facts.get_or_insert_default()
    }

    fn header(&mut self, document: Json<'_>, out: &mut Vec<Item>) {
        each_unknown(&document.object(), &[DOCUMENT], "document", out);
        let parent = self.parent.clone();
        let prompt = document.get_text("system_prompt").or_else(|| document.get_text("systemPrompt"));
        let folder = prompt.and_then(|prompt| folder_in(&prompt, "Working Directory: ", '\n'));
        let origin = document.get("origin").and_then(|origin| origin.get_text("version"));
        let facts = self.facts_mut();
        facts.client_version = origin.map(|version| version.into_owned());
        facts.parent_kind = parent.as_ref().map(|_| LinkKind::SubAgent);
        facts.parent.clone_from(&parent);
        facts.cwd = folder;
        if let Some(other) = parent {
            let (session, kind) = (self.session.clone(), LinkKind::SubAgent);
            out.push(Item::Link(Link { session, other, kind, position: None }));
        }
    }

    fn message(
        &mut self,
        document: &[u8],
        offset: u64,
        json: Json<'_>,
        out: &mut Vec<Item>,
    ) -> Option<String> {
        each_unknown(&json.object(), &[MESSAGE], "message", out);
        for block in contents(json.get("content")).filter(|block| block.is_object()) {
            let kind = block.get_text("type").unwrap_or_default();
            if !BLOCKS.contains(&kind.as_ref()) {
                out.push(Item::Drift(format!("block {kind}")));
            }
        }
        let id = json.get_text("id").filter(|id| !id.is_empty());
        // Messages of older clients have no ids; each is in the list once.
        let key = match &id {
            Some(id) => ContentKey::of(&[b"cline", self.session.as_bytes(), id.as_bytes()]),
            None => ContentKey::of(&[b"cline message", self.session.as_bytes(), json.bytes()]),
        };
        // The first message of a task has no time; the task is named by it.
        let started = self.session.split(['_', '.']).next().and_then(|id| id.parse().ok());
        let at = json
            .get_integer("ts")
            .or(started.filter(|_| self.facts.as_ref().is_none_or(|facts| facts.last_at.is_none())));
        let spoken = Spoken { json, document, offset, at: at.map(Time::from_millis), key };
        let facts = self.facts_mut();
        facts.started_at = facts.started_at.or(spoken.at);
        facts.last_at = facts.last_at.max(spoken.at);
        match json.get_text("role").unwrap_or_default().as_ref() {
            "user" => self.read_user(&spoken, out),
            "assistant" => self.read_assistant(&spoken, out),
            other => {
                out.push(Item::Message(self.row(&spoken, Role::System, MessageKind::Notice)));
                return Some(format!("message of {other}"));
            }
        }
        None
    }

    /// A prompt, the results of calls, or both.
    fn read_user(&mut self, spoken: &Spoken<'_>, out: &mut Vec<Item>) {
        let (mut matched, mut lost) = (false, false);
        for block in contents(spoken.json.get("content")).filter(|block| block.is_object()) {
            if let Some((id, result)) = result_of(block) {
                match self.result(spoken, block, &id, &result, out) {
                    true => matched = true,
                    false => lost = true,
                }
            }
        }
        if self.facts.as_ref().is_none_or(|facts| facts.cwd.is_none()) {
            let texts = contents(spoken.json.get("content")).filter_map(|block| block.get_text("text"));
            let mut folders = texts.filter_map(|text| folder_in(&text, "# Current Working Directory (", ')'));
            self.facts_mut().cwd = folders.next();
        }
        let words = words_of(spoken.json).join("\n");
        let kind = match (words.is_empty(), matched, lost) {
            (false, _, _) if self.parent.is_some() => MessageKind::Agent,
            (false, _, _) => MessageKind::Prompt,
            (true, true, _) => return,
            (true, false, true) => MessageKind::Result,
            (true, false, false) => MessageKind::Injected,
        };
        if kind != MessageKind::Injected && kind != MessageKind::Result {
            let facts = self.facts_mut();
            facts.ended_at = None;
            facts.first_message_at = facts.first_message_at.or(spoken.at);
            if facts.first_prompt.is_none() {
                facts.first_prompt = Some(title_of(&words)).filter(|title| !title.is_empty());
            }
        }
        out.push(Item::Message(self.row(spoken, Role::User, kind)));
    }

    fn read_assistant(&mut self, spoken: &Spoken<'_>, out: &mut Vec<Item>) {
        if is_error(spoken.json) {
            out.push(Item::Message(self.row(spoken, Role::System, MessageKind::Notice)));
            return;
        }
        let info = spoken.json.get("modelInfo");
        let model = info.and_then(|info| info.get_text("id").or_else(|| info.get_text("modelId")));
        let model: Option<Arc<str>> = model.filter(|model| !model.is_empty()).map(|model| (*model).into());
        let provider = info.and_then(|info| info.get("provider").or_else(|| info.get("providerId")));
        let facts = self.facts_mut();
        facts.first_message_at = facts.first_message_at.or(spoken.at);
        if let Some(model) = &model
            && !facts.models.iter().any(|known| **known == **model)
        {
            facts.models.push(model.to_string());
        }
        if let Some(provider) = provider {
            facts.native.insert("provider".into(), provider.value());
        }
        let mut row = self.row(spoken, Role::Assistant, MessageKind::Answer);
        row.model.clone_from(&model);
        out.push(Item::Message(row));
        if let Some(metrics) = spoken.json.get("metrics") {
            self.count(spoken, metrics, model.clone(), out);
        }
        let mut calls = 0;
        for block in contents(spoken.json.get("content")).filter(|block| block.is_object()) {
            calls += u32::from(self.call(spoken, block, model.clone(), out));
        }
        self.facts_mut().ended_at = spoken.at.filter(|_| calls == 0);
    }

    /// Version 3: what was read from the cache is part of the input. What older clients note here is in their other file.
    fn count(
        &mut self,
        spoken: &Spoken<'_>,
        metrics: Json<'_>,
        model: Option<Arc<str>>,
        out: &mut Vec<Item>,
    ) {
        let number = |name: &str| metrics.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let (input, cached) = (number("inputTokens"), number("cacheReadTokens"));
        let tokens = Tokens {
            input: (input - cached).max(0),
            output: number("outputTokens"),
            cache_read: cached.min(input),
            cache_write: number("cacheWriteTokens"),
            ..Tokens::default()
        };
        let cost = cost_in(metrics, "cost");
        if tokens.total() > 0 || cost.is_some() {
            out.push(Item::Usage(Usage {
                session: self.session.clone(),
                span: spoken.span(),
                at: spoken.at,
                key: ContentKey::of(&[b"usage", &spoken.key.stored().to_le_bytes()]),
                inherited: false,
                model,
                again: false,
                tokens,
                cost,
            }));
        }
    }

    /// False if the block is no call.
    fn call(
        &mut self,
        spoken: &Spoken<'_>,
        block: Json<'_>,
        model: Option<Arc<str>>,
        out: &mut Vec<Item>,
    ) -> bool {
        let Some(call) = call_of(block) else { return false };
        let id = match call.id.is_empty() {
            false => call.id,
            true => {
                self.marks += 1;
                self.marked = Some(format!("call_{}", self.marks));
                self.marked.clone().unwrap_or_default()
            }
        };
        let span = spoken.span_of(block.bytes());
        let input = call.input.to_string();
        let arguments = Json::parse(input.as_bytes());
        let command = call.input.get("commands").and_then(|commands| commands.get(0)?.as_str());
        let file = call.input.get("files").and_then(|files| files.get(0)?.get("path")?.as_str());
        let title = match command.or(file) {
            Some(first) => crate::home::title::in_a_line(first),
            None => arguments.map(|arguments| title_of_call(arguments, TITLES)).unwrap_or_default(),
        };
        out.push(Item::Call(Call {
            session: self.session.clone(),
            span,
            at: spoken.at,
            key: ContentKey::of(&[b"call", &spoken.key.stored().to_le_bytes(), id.as_bytes()]),
            inherited: false,
            call_id: id.clone(),
            name: call.name.as_str().into(),
            kind: kind_of(&call.name),
            title,
            parent: None,
            message: Some(spoken.span().offset),
            model,
        }));
        self.calls.push(id, span.offset, call.name, arguments, "path");
        true
    }

    /// False if the result has no call.
    fn result(
        &mut self,
        spoken: &Spoken<'_>,
        block: Json<'_>,
        id: &str,
        result: &ToolResult,
        out: &mut Vec<Item>,
    ) -> bool {
        let id = if id.is_empty() { self.marked.take().unwrap_or_default() } else { id.to_owned() };
        let Some(call) = self.calls.take(&id) else { return false };
        let is_shell = kind_of(&call.name) == CallKind::Shell;
        out.push(Item::Result(CallResult {
            session: self.session.clone(),
            call: call.offset,
            output: Some(spoken.span_of(block.bytes())),
            detail: None,
            at: spoken.at,
            ok: Some(!result.failed()),
            exit_code: result.exit_code().filter(|_| is_shell),
            duration_ms: None,
            full: None,
        }));
        if !result.failed() {
            let input = serde_json::from_str(&call.arguments).unwrap_or_default();
            let folder = self.facts.as_ref().and_then(|facts| facts.cwd.as_deref());
            let on = FileCall { name: &call.name, input: &input, result: Some(result), folder };
            let otherwise = on.touched().map(|(path, operation)| call.touched(path, operation));
            touches(&self.session, call.offset, on.work(), otherwise, out);
        }
        true
    }

    fn row(&self, spoken: &Spoken<'_>, role: Role, kind: MessageKind) -> Message {
        Message {
            session: self.session.clone(),
            span: spoken.span(),
            role,
            kind,
            at: spoken.at,
            key: spoken.key,
            inherited: false,
            model: None,
            tally: Tally::of(kind),
        }
    }
}

/// The directory in what the client tells the model; the card of the session is another file.
fn folder_in(text: &str, before: &str, end: char) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    let folder = rest.split(end).next()?.trim();
    let is_path = folder.starts_with('/') || folder.as_bytes().get(1) == Some(&b':');
    Some(folder.to_owned()).filter(|folder| is_path && folder.len() < 4_096)
}

/// A cost in dollars.
pub fn cost_in(json: Json<'_>, name: &str) -> Option<Picodollars> {
    Picodollars::parse(json.get(name)?.bytes())
}

impl Reader for MessagesReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(document) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        let messages = match document.is_array() {
            true => Some(document),
            false => document.get("messages").filter(|messages| messages.is_array()),
        };
        let Some(messages) = messages else { return Verdict::Unknown("document without messages".into()) };
        self.header(document, out);
        let mut unknown = None;
        for message in messages.items() {
            unknown = self.message(line.bytes(), offset, message, out).or(unknown);
        }
        unknown.map_or_else(|| Verdict::Kept("messages".into()), Verdict::Unknown)
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.facts.iter();
        facts.map(|facts| Facts { session: self.session.clone(), rank: 0, facts: facts.clone() }).collect()
    }
}
