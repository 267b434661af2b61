//! Reads chats: one document that is rewritten at each turn, or lines that are appended.
//!
//! A line repeats its message whole whenever it grows. After a resume the client writes the history once more in the form of
//! its requests, without tokens and calls; after a compression it writes the end of it under new ids. Of both, only
//! messages that were not there before are taken.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chat_calls::OpenCall;
use super::drift::{HEADER, MESSAGE, each_unknown_part};
use super::people::{THANKS, texts, user_kind, without_reminder};
use super::projects::{directory_with_hash, name_in};
use crate::home::drift::each_unknown;
use crate::home::title::title_of as first_line;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Item, Link, LinkKind, Message, MessageKind, Role, SessionFacts, Span, Tally, Time, Tokens,
    Usage, Verdict,
};

/// How many messages may be written again.
const OPEN_MESSAGES: usize = 64;
/// How many ids of messages are remembered.
const SEEN: usize = 1 << 16;

pub struct ChatReader {
    pub(super) session: Arc<str>,
    /// The session that started this one, if the file is a sub-agent's.
    parent: Option<String>,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    session: Option<String>,
    project_hash: Option<String>,
    pub(super) facts: SessionFacts,
    linked: bool,
    prompted: bool,
    seen: BTreeSet<ContentKey>,
    /// Texts of messages: lists repeat them under other ids.
    texts: BTreeSet<ContentKey>,
    messages: VecDeque<OpenMessage>,
    pub(super) calls: VecDeque<OpenCall>,
    summary: Option<String>,
    model: Option<Arc<str>>,
}

/// A message that may be written again.
#[derive(Serialize, Deserialize)]
pub(super) struct OpenMessage {
    id: ContentKey,
    offset: u64,
    /// Its text and thoughts.
    content: ContentKey,
    counted: bool,
}

/// Where a message was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    AsMessage,
    /// In a list that replaces all messages.
    InList,
}

/// The bytes of the piece that is read, and its offset in the file.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl Base<'_> {
    pub(super) fn span(self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.bytes.as_ptr() as usize;
        Span { offset: self.offset + within as u64, length: piece.len() as u64 }
    }
}

impl ChatReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> ChatReader {
        let mut state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let mut parts = file.path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json")).unwrap_or(name);
        let parent =
            parts.next().filter(|folder| *folder != "chats" && !folder.is_empty()).map(str::to_owned);
        if state.facts.project_name.is_none() {
            state.facts.project_name = name_in(&file.path).map(str::to_owned);
        }
        let session = state.session.as_deref().unwrap_or(stem).into();
        ChatReader { session, parent, state }
    }

    fn line(&mut self, base: Base<'_>, object: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        if let Some(changes) = object.get("$set") {
            return self.change(base, &changes.object(), out);
        }
        if object.get("$rewindTo").is_some() {
            let span = base.span(object.bytes());
            let key = ContentKey::of(&[b"rewind", self.session.as_bytes(), object.bytes()]);
            if self.is_new(key) {
                let (at, session) = (self.state.facts.last_at, self.session.clone());
                out.push(message(session, span, Role::System, MessageKind::Notice, at, key));
            }
            return Verdict::Kept("$rewindTo".into());
        }
        if object.get("type").is_some() {
            return self.message(base, object, Written::AsMessage, out);
        }
        if object.get("sessionId").is_some() {
            each_unknown(object, &[HEADER], "header", out);
            self.header(object, out);
            return Verdict::Kept("header".into());
        }
        Verdict::Unknown("line without type".into())
    }

    /// `$set`: fields of the header, or the list of all messages.
    fn change(&mut self, base: Base<'_>, changes: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        each_unknown(changes, &[HEADER], "$set", out);
        self.header(changes, out);
        let mut verdict = Verdict::Kept("$set".into());
        let messages = changes.get("messages");
        for listed in messages.iter().flat_map(|messages| messages.items()) {
            let read = self.message(base, &listed.object(), Written::InList, out);
            if !matches!(read, Verdict::Kept(_)) {
                verdict = read;
            }
        }
        verdict
    }

    fn header(&mut self, header: &Object<'_>, out: &mut Vec<Item>) {
        let text = |name: &str| header.get_text(name).filter(|text| !text.is_empty());
        let time = |name: &str| text(name).and_then(|text| Time::parse(&text));
        if let Some(id) = text("sessionId").filter(|_| self.state.session.is_none()) {
            self.session = id.as_ref().into();
            self.state.session = Some(id.into_owned());
        }
        let facts = &mut self.state.facts;
        facts.started_at = [facts.started_at, time("startTime")].into_iter().flatten().min();
        facts.last_at = facts.last_at.max(time("lastUpdated"));
        if let Some(hash) = text("projectHash") {
            facts.project_name = Some(hash.clone().into_owned());
            self.state.project_hash = Some(hash.into_owned());
        }
        if let Some(kind) = text("kind") {
            facts.native.insert("kind".into(), Value::from(kind.into_owned()));
        }
        if let Some(directories) = header.get("directories") {
            facts.native.insert("directories".into(), directories.value());
            for directory in directories.items().filter_map(Json::text) {
                self.find_directory(&directory);
            }
        }
        if let Some(summary) = text("summary") {
            self.state.summary = Some(first_line(&summary));
        }
        if let Some(parent) = self.parent.clone().filter(|_| !self.state.linked) {
            self.state.linked = true;
            self.state.facts.parent = Some(parent.clone());
            self.state.facts.parent_kind = Some(LinkKind::SubAgent);
            let (session, kind) = (self.session.clone(), LinkKind::SubAgent);
            out.push(Item::Link(Link { session, other: parent, kind, position: None }));
        }
    }

    /// The working directory is above a path that its session uses: its hash proves it.
    pub(super) fn find_directory(&mut self, path: &str) {
        if let Some(hash) = self.state.project_hash.as_deref().filter(|_| self.state.facts.cwd.is_none()) {
            self.state.facts.cwd = directory_with_hash(path, hash);
        }
    }

    /// Remembers an id; false if it was there before.
    fn is_new(&mut self, key: ContentKey) -> bool {
        if self.state.seen.len() >= SEEN {
            self.state.seen.pop_first();
        }
        self.state.seen.insert(key)
    }

    /// Whether a list repeats a message that is there under another id; remembers its text otherwise.
    fn is_repeated(&mut self, role: Role, text: &str, from: Written) -> bool {
        let text = text.trim();
        let role: &str = role.into();
        let key = ContentKey::of(&[b"text", role.as_bytes(), text.as_bytes()]);
        if text.is_empty() || from == Written::InList && self.state.texts.contains(&key) {
            return !text.is_empty();
        }
        if self.state.texts.len() >= SEEN {
            self.state.texts.pop_first();
        }
        self.state.texts.insert(key);
        false
    }

    fn message(
        &mut self,
        base: Base<'_>,
        object: &Object<'_>,
        from: Written,
        out: &mut Vec<Item>,
    ) -> Verdict {
        let kind = object.get_text("type").unwrap_or_default();
        let at = object.get_text("timestamp").and_then(|text| Time::parse(&text));
        if from == Written::AsMessage {
            self.state.facts.last_at = self.state.facts.last_at.max(at);
        }
        each_unknown(object, &[MESSAGE], "message", out);
        each_unknown_part(object.get("content"), out);
        let id = match object.get_text("id") {
            Some(id) => ContentKey::of(&[b"message", self.session.as_bytes(), id.as_bytes()]),
            None => ContentKey::of(&[b"unnamed", self.session.as_bytes(), object.bytes()]),
        };
        match kind.as_ref() {
            "user" => self.user(base, object, (id, at, from), out),
            "gemini" | "qwen" => self.answer(base, object, (id, at, from), out),
            "info" | "error" | "warning" => {
                let has_text = object
                    .get("content")
                    .is_some_and(|content| texts(content).iter().any(|text| !text.is_empty()));
                if self.is_new(id) && has_text {
                    let span = base.span(object.bytes());
                    out.push(message(self.session.clone(), span, Role::System, MessageKind::Notice, at, id));
                }
            }
            other => {
                if self.is_new(id) {
                    let span = base.span(object.bytes());
                    out.push(message(self.session.clone(), span, Role::System, MessageKind::Notice, at, id));
                }
                return Verdict::Unknown(format!("message type {other}"));
            }
        }
        Verdict::Kept(kind.into_owned())
    }

    fn user(
        &mut self,
        base: Base<'_>,
        object: &Object<'_>,
        (id, at, from): (ContentKey, Option<Time>, Written),
        out: &mut Vec<Item>,
    ) {
        let content = object.get("content");
        let is_result = content.is_some_and(|content| {
            let mut parts = content.items().peekable();
            parts.peek().is_some() && parts.all(|part| part.get("functionResponse").is_some())
        });
        // Results repeat what their calls have.
        if is_result && (from == Written::InList || self.knows_calls(content)) || !self.is_new(id) {
            return;
        }
        let text = content.map(|content| texts(content).join("\n")).unwrap_or_default();
        if self.is_repeated(Role::User, &text, from) {
            return;
        }
        let typed = object.get("displayContent").map(|content| texts(content).join("\n"));
        let typed = typed.unwrap_or_else(|| match without_reminder(&text) {
            Some((_, words)) => words.to_owned(),
            None => text.clone(),
        });
        let is_agent = self.parent.is_some();
        let kind = match user_kind(&typed) {
            _ if is_result => MessageKind::Result,
            MessageKind::Prompt if is_agent => MessageKind::Agent,
            kind => kind,
        };
        if kind == MessageKind::Injected {
            self.note_workspace(&text);
        }
        let tally = match kind {
            MessageKind::Agent => Tally::Record,
            kind if from == Written::AsMessage => Tally::of(kind),
            _ => Tally::Nothing,
        };
        if matches!(kind, MessageKind::Prompt | MessageKind::Agent) && from == Written::AsMessage {
            let facts = &mut self.state.facts;
            facts.first_message_at = facts.first_message_at.or(at);
            if !self.state.prompted {
                self.state.prompted = true;
                facts.first_prompt = Some(first_line(&typed)).filter(|title| !title.is_empty());
            }
        }
        out.push(Item::Message(Message {
            session: self.session.clone(),
            span: base.span(object.bytes()),
            role: Role::User,
            kind,
            at,
            key: id,
            inherited: false,
            model: None,
            tally,
        }));
    }

    /// Directories of the workspace in the text that a session begins with.
    fn note_workspace(&mut self, text: &str) {
        for line in text.lines().take(40) {
            let listed = line.trim().strip_prefix("- ");
            let path = listed.or_else(|| line.split_once("working in the directory: ").map(|(_, path)| path));
            if let Some(path) = path.filter(|path| path.starts_with('/') || path.contains(":\\")) {
                self.find_directory(path.trim());
            }
        }
    }

    fn answer(
        &mut self,
        base: Base<'_>,
        object: &Object<'_>,
        (id, at, from): (ContentKey, Option<Time>, Written),
        out: &mut Vec<Item>,
    ) {
        let span = base.span(object.bytes());
        let calls = object.get("toolCalls");
        let is_request = from == Written::InList && object.get("tokens").is_none() && calls.is_none();
        let is_new = self.is_new(id);
        let text = object.get("content").map(|content| texts(content).join("\n")).unwrap_or_default();
        let is_repeated = self.is_repeated(Role::Assistant, &text, from);
        if is_request {
            if is_new && !is_repeated && !text.is_empty() {
                let kind = if text == THANKS { MessageKind::Injected } else { MessageKind::Answer };
                let row = message(self.session.clone(), span, Role::Assistant, kind, at, id);
                out.push(not_counted(row));
            }
            return;
        }
        let model: Option<Arc<str>> = object.get_text("model").map(|model| model.as_ref().into());
        if let Some(model) = &model {
            let models = &mut self.state.facts.models;
            if !models.iter().any(|known| **known == **model) {
                models.push(model.to_string());
            }
            self.state.model = Some(model.clone());
        }
        let part = |name: &str| object.get(name).map(Json::bytes).unwrap_or_default();
        let content = ContentKey::of(&[part("content"), part("thoughts")]);
        let known = self.state.messages.iter().rposition(|open| open.id == id);
        let at_open = match known {
            Some(at_open) => {
                // What was added belongs to the message: a new text, or calls.
                let added = match self.state.messages[at_open].content == content {
                    true => {
                        calls.filter(|calls| self.has_new_call(*calls)).map(|calls| base.span(calls.bytes()))
                    }
                    false => Some(span),
                };
                let open = &mut self.state.messages[at_open];
                open.content = content;
                out.extend(added.map(|span| Item::Extend {
                    session: self.session.clone(),
                    message: open.offset,
                    span,
                }));
                at_open
            }
            // Written again after many others; the calls in it are known as well.
            None if !is_new => return,
            None => {
                let facts = &mut self.state.facts;
                facts.first_message_at = facts.first_message_at.or(at);
                out.push(Item::Message(Message {
                    session: self.session.clone(),
                    span,
                    role: Role::Assistant,
                    kind: MessageKind::Answer,
                    at,
                    key: id,
                    inherited: false,
                    model: model.clone(),
                    tally: Tally::Message,
                }));
                if self.state.messages.len() >= OPEN_MESSAGES {
                    self.state.messages.pop_front();
                }
                self.state.messages.push_back(OpenMessage {
                    id,
                    offset: span.offset,
                    content,
                    counted: false,
                });
                self.state.messages.len() - 1
            }
        };
        let place = self.state.messages[at_open].offset;
        if let Some(tokens) = object.get("tokens").filter(|tokens| tokens.is_object()) {
            let again = std::mem::replace(&mut self.state.messages[at_open].counted, true);
            out.push(Item::Usage(Usage {
                session: self.session.clone(),
                span: Span { offset: place, length: span.length },
                at,
                key: ContentKey::of(&[b"usage", &id.stored().to_le_bytes()]),
                inherited: false,
                model: model.clone(),
                again,
                tokens: tokens_of(&tokens.object()),
                cost: None,
            }));
        }
        for call in calls.iter().flat_map(|calls| calls.items()) {
            self.call(base, call, (place, at, model.clone()), out);
        }
    }

    /// The whole document of an older client.
    fn document(&mut self, base: Base<'_>, document: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(messages) = document.get("messages") else {
            return Verdict::Unknown("document without messages".into());
        };
        each_unknown(document, &[HEADER], "document", out);
        self.header(document, out);
        let mut verdict = Verdict::Kept("document".into());
        for listed in messages.items() {
            let read = self.message(base, &listed.object(), Written::AsMessage, out);
            if !matches!(read, Verdict::Kept(_)) {
                verdict = read;
            }
        }
        verdict
    }
}

/// A message of no model, counted by its kind.
fn message(
    session: Arc<str>,
    span: Span,
    role: Role,
    kind: MessageKind,
    at: Option<Time>,
    key: ContentKey,
) -> Item {
    let tally = Tally::of(kind);
    Item::Message(Message { session, span, role, kind, at, key, inherited: false, model: None, tally })
}

fn not_counted(item: Item) -> Item {
    match item {
        Item::Message(message) => Item::Message(Message { tally: Tally::Nothing, ..message }),
        other => other,
    }
}

/// `cached` is part of `input`, `thoughts` is not part of `output`.
fn tokens_of(tokens: &Object<'_>) -> Tokens {
    let number = |name: &str| tokens.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
    let (input, cached, thoughts) = (number("input"), number("cached"), number("thoughts"));
    Tokens {
        input: (input - cached).max(0) + number("tool"),
        output: number("output") + thoughts,
        cache_read: cached.min(input),
        reasoning: thoughts,
        ..Tokens::default()
    }
}

impl Reader for ChatReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        if let Some(document) = line.json().filter(|json| json.get("messages").is_some_and(Json::is_array)) {
            return self.document(Base { bytes: line.bytes(), offset }, &document.object(), out);
        }
        each_object(line, |at, object| {
            let base = Base { bytes: object.bytes(), offset: offset + at };
            self.line(base, &object, out)
        })
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        let mut facts = self.state.facts.clone();
        facts.title = self.state.summary.clone().filter(|_| self.parent.is_none());
        let session = self.session.clone();
        let is_session = self.state.session.is_some() || !self.state.seen.is_empty();
        is_session.then_some(Facts { session, rank: 0, facts }).into_iter().collect()
    }
}
