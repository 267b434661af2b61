//! Reads the captures of a conversation, merged message by message: an export takes nothing away that an earlier one had.

use std::collections::HashMap;
use std::sync::Arc;

use super::records::{ARTIFACTS, artifact_in};
use crate::home::calls::title_of_call;
use crate::home::drift::each_unknown;
use crate::home::title::title_of;
use crate::import::captures::{Captures, header_verdict};
use crate::json::{Json, Line};
use crate::{Facts, Reader};
use annals_core::{
    Call, CallKind, CallResult, ContentKey, Document, Item, Message, MessageKind, Role, SessionFacts, Span,
    Tally, Time, Tree, TreeNode, Verdict,
};

const CONVERSATION: &[&str] = &[
    "uuid",
    "name",
    "summary",
    "model",
    "created_at",
    "updated_at",
    "account",
    "settings",
    "project",
    "project_uuid",
    "is_starred",
    "is_temporary",
    "current_leaf_message_uuid",
    "chat_messages",
    "platform",
];
const MESSAGE: &[&str] = &[
    "uuid",
    "text",
    "content",
    "sender",
    "index",
    "created_at",
    "updated_at",
    "truncated",
    "stop_reason",
    "attachments",
    "files",
    "files_v2",
    "sync_sources",
    "parent_message_uuid",
    "input_mode",
    "metadata",
];
const PARTS: &[&str] =
    &["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "token_budget", "flag"];
const TITLES: &[&str] = &["title", "query", "url", "command", "path", "code", "name"];

/// Before a first message, which has no parent.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Default)]
pub(super) struct ConversationReader {
    captures: Captures,
    session: Option<Arc<str>>,
    facts: SessionFacts,
    newest: Option<Time>,
    messages: Vec<KnownMessage>,
    by_key: HashMap<ContentKey, usize>,
    /// The last message of the newest capture.
    leaf: Option<ContentKey>,
}

/// A message as the newest capture has it.
struct KnownMessage {
    key: ContentKey,
    name: String,
    offset: u64,
    parent: Option<ContentKey>,
    content: ContentKey,
}

/// One message of a capture.
struct Captured<'a> {
    session: &'a Arc<str>,
    json: Json<'a>,
    span: Span,
    at: Option<Time>,
    key: ContentKey,
}

impl Captured<'_> {
    fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.json.bytes().as_ptr() as usize;
        Span { offset: self.span.offset + within as u64, length: piece.len() as u64 }
    }
}

fn text_in(json: Json<'_>, name: &str) -> Option<String> {
    json.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned())
}

fn time_in(json: Json<'_>, name: &str) -> Option<Time> {
    json.get_text(name).and_then(|text| Time::parse(&text))
}

impl ConversationReader {
    fn describe(&mut self, conversation: Json<'_>) {
        let facts = &mut self.facts;
        facts.title = text_in(conversation, "name").or(facts.title.take());
        facts.started_at = time_in(conversation, "created_at").or(facts.started_at);
        facts.last_at = facts.last_at.max(time_in(conversation, "updated_at"));
        facts.models = text_in(conversation, "model").into_iter().collect();
        let project = conversation.get("project").and_then(|project| text_in(project, "uuid"));
        let project = project.or_else(|| text_in(conversation, "project_uuid"));
        facts.native.extend(project.map(|project| ("project_id".to_owned(), project.into())));
        for name in ["summary", "is_starred"] {
            if let Some(value) = conversation.get(name).filter(|value| value.bytes().len() < 8_000) {
                facts.native.insert(name.into(), value.value());
            }
        }
    }

    /// `is_newer`: what this capture says of a known message is believed.
    fn merge(
        &mut self,
        session: &Arc<str>,
        conversation: Json<'_>,
        at: (u64, &[u8]),
        is_newer: bool,
        out: &mut Vec<Item>,
    ) {
        let (offset, bytes) = at;
        let key_of = |name: &str| ContentKey::of(&[b"claude.ai", session.as_bytes(), name.as_bytes()]);
        let mut before = None;
        let listed = conversation.get("chat_messages");
        for (number, json) in listed.iter().flat_map(|listed| listed.items()).enumerate() {
            each_unknown(&json.object(), &[MESSAGE], "message", out);
            let name = text_in(json, "uuid").unwrap_or_else(|| format!("message-{number}"));
            let (key, content) = (key_of(&name), ContentKey::of(&[json.bytes()]));
            let parent = text_in(json, "parent_message_uuid").filter(|parent| parent != ROOT);
            let parent =
                parent.map(|parent| key_of(&parent)).filter(|parent| self.by_key.contains_key(parent));
            let parent = parent.or(before);
            before = Some(key);
            let known = self.by_key.get(&key).copied();
            if let Some(known) = known.and_then(|at| self.messages.get(at)) {
                if known.content == content || !is_newer {
                    continue;
                }
                out.push(Item::Forget { session: session.clone(), offset: known.offset });
            }
            let start = offset + (json.bytes().as_ptr() as usize - bytes.as_ptr() as usize) as u64;
            let span = Span { offset: start, length: json.bytes().len() as u64 };
            let message = Captured { session, json, span, at: time_in(json, "created_at"), key };
            self.emit(&message, out);
            let parent = parent.filter(|parent| *parent != key);
            let found = KnownMessage { key, name, offset: start, parent, content };
            match known {
                // Its place among the others is known from before.
                Some(at) => self.messages[at] = KnownMessage { parent: self.messages[at].parent, ..found },
                None => {
                    self.by_key.insert(key, self.messages.len());
                    self.messages.push(found);
                }
            }
        }
        if is_newer {
            let named = text_in(conversation, "current_leaf_message_uuid").map(|name| key_of(&name));
            self.leaf = named.filter(|key| self.by_key.contains_key(key)).or(before).or(self.leaf);
        }
    }

    fn emit(&mut self, message: &Captured<'_>, out: &mut Vec<Item>) {
        let is_person = message.json.get_text("sender").is_some_and(|sender| sender == "human");
        let (role, kind) = match is_person {
            true => (Role::User, MessageKind::Prompt),
            false => (Role::Assistant, MessageKind::Answer),
        };
        let facts = &mut self.facts;
        facts.last_at = facts.last_at.max(message.at);
        facts.first_message_at = [facts.first_message_at, message.at].into_iter().flatten().min();
        if is_person && facts.first_prompt.is_none() {
            let title = title_of(&message.json.get_text("text").unwrap_or_default());
            facts.first_prompt = Some(title).filter(|title| !title.is_empty());
        }
        out.push(Item::Message(Message {
            session: message.session.clone(),
            span: message.span,
            role,
            kind,
            at: message.at,
            key: message.key,
            inherited: false,
            model: None,
            tally: Tally::of(kind),
        }));
        self.parts(message, out);
        let attached = message.json.get("attachments");
        for (number, attachment) in attached.iter().flat_map(|attached| attached.items()).enumerate() {
            let name = text_in(message.json, "uuid").unwrap_or_default();
            out.push(record("attachments", format!("{name}/{number}"), message, attachment));
        }
    }

    /// Calls, their results, and the artifacts that they make.
    fn parts(&self, message: &Captured<'_>, out: &mut Vec<Item>) {
        let content = message.json.get("content");
        let mut open: Vec<(String, u64)> = Vec::new();
        for (number, part) in content.iter().flat_map(|content| content.items()).enumerate() {
            let kind = part.get_text("type").unwrap_or_default();
            let text = |name: &str| part.get_text(name).unwrap_or_default().into_owned();
            match kind.as_ref() {
                "tool_use" => {
                    let (id, name, span) = (text("id"), text("name"), message.span_of(part.bytes()));
                    let input = part.get("input").filter(|input| input.is_object());
                    out.push(Item::Call(Call {
                        session: message.session.clone(),
                        span,
                        at: time_in(part, "start_timestamp").or(message.at),
                        key: ContentKey::of(&[
                            b"call",
                            &message.key.stored().to_le_bytes(),
                            &number.to_le_bytes(),
                        ]),
                        inherited: false,
                        call_id: id.clone(),
                        name: name.as_str().into(),
                        kind: kind_of(&name),
                        title: input.map(|input| title_of_call(input, TITLES)).unwrap_or_default(),
                        parent: None,
                        message: Some(message.span.offset),
                        model: None,
                    }));
                    open.push((id, span.offset));
                    if let Some(id) = artifact_in(&name, input) {
                        out.push(record(ARTIFACTS, format!("{}/{id}", message.session), message, part));
                    }
                }
                "tool_result" => {
                    // Older exports do not name the call, but its result follows it.
                    let id = text("tool_use_id");
                    let named = open.iter().position(|(open, _)| *open == id && !id.is_empty());
                    let at = named.or_else(|| (id.is_empty() && !open.is_empty()).then_some(0));
                    let Some((_, call)) = at.map(|at| open.remove(at)) else { continue };
                    let failed = part.get("is_error").and_then(Json::boolean) == Some(true);
                    out.push(Item::Result(CallResult {
                        session: message.session.clone(),
                        call,
                        output: Some(message.span_of(part.bytes())),
                        detail: None,
                        at: time_in(part, "stop_timestamp").or(message.at),
                        ok: Some(!failed),
                        exit_code: None,
                        duration_ms: None,
                        full: None,
                    }));
                }
                known if PARTS.contains(&known) => {}
                other => out.push(Item::Drift(format!("part {other}"))),
            }
        }
    }

    /// All messages, parents before their children.
    fn tree(&self, session: &Arc<str>) -> Tree {
        let mut current = vec![false; self.messages.len()];
        let mut at = self.leaf.and_then(|leaf| self.by_key.get(&leaf).copied());
        while let Some(on_branch) = at.filter(|at| !current[*at]) {
            current[on_branch] = true;
            at = self.messages[on_branch].parent.and_then(|parent| self.by_key.get(&parent).copied());
        }
        let node = |(at, message): (usize, &KnownMessage)| TreeNode {
            key: message.key,
            name: message.name.clone(),
            offset: message.offset,
            parent: message.parent,
            current: current[at],
            shown: true,
        };
        Tree { session: session.clone(), nodes: self.messages.iter().enumerate().map(node).collect() }
    }
}

/// A record that points to a piece of a message.
fn record(stream: &'static str, key: String, message: &Captured<'_>, piece: Json<'_>) -> Item {
    Item::Document(Document {
        stream,
        key,
        session: Some(message.session.clone()),
        at: message.at,
        span: message.span_of(piece.bytes()),
        content: ContentKey::of(&[piece.bytes()]),
    })
}

fn kind_of(name: &str) -> CallKind {
    match name {
        "web_search" | "web_fetch" => CallKind::Web,
        "conversation_search" | "recent_chats" | "project_knowledge_search" | "drive_search" => {
            CallKind::Search
        }
        "bash_tool" => CallKind::Shell,
        "create_file" | "str_replace" => CallKind::Edit,
        "view" => CallKind::Read,
        name if name.contains(':') => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

impl Reader for ConversationReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else { return header_verdict() };
        let Some(conversation) = Json::parse(bytes).filter(|conversation| conversation.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        let Some(id) = text_in(conversation, "uuid") else {
            return Verdict::Unknown("conversation without uuid".into());
        };
        let session = self.session.get_or_insert_with(|| id.into()).clone();
        each_unknown(&conversation.object(), &[CONVERSATION], "conversation", out);
        let updated = time_in(conversation, "updated_at").or(header.captured_at);
        let is_newer = updated >= self.newest;
        if is_newer {
            self.newest = updated;
            self.describe(conversation);
        }
        self.merge(&session, conversation, (offset, bytes), is_newer, out);
        out.push(Item::Tree(self.tree(&session)));
        Verdict::Kept(if is_newer { "conversation" } else { "older conversation" }.into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let session = self.session.iter();
        session
            .map(|session| Facts { session: session.clone(), rank: 0, facts: self.facts.clone() })
            .collect()
    }
}
