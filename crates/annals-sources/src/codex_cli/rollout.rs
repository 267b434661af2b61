//! Reads transcripts line by line, by shape and not by version: bare lines, wrapped lines, turns, ordinals.
//!
//! Longer than other files because it is one state machine: what a line means depends on the lines before it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::authorship::{Author, author, request, typed_bytes, without_citations};
use super::calls::OpenCalls;
use super::chain::Chain;
use super::drift::{
    ENVELOPE, each_unknown_field, each_unknown_in_item, each_unknown_in_payload, each_unknown_part,
};
use super::meta::ids_in_name;
use super::usage::Meter;
use crate::home::title::title_of;
use crate::json::{self, Json, Object, unescape};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Item, LinkKind, Message, MessageKind, Role, SessionFacts, Span, Tally, Time, Tokens, Usage,
    Verdict,
};

/// How many messages wait for their twin (event or response item) at most.
const WAITING: usize = 64;

/// Events about other agents and the client's own tools; the items beside them say the same.
const COLLABORATION: &[&str] = &[
    "collab_agent_spawn_begin",
    "collab_agent_spawn_end",
    "collab_agent_interaction_begin",
    "collab_agent_interaction_end",
    "collab_waiting_begin",
    "collab_waiting_end",
    "collab_close_begin",
    "collab_close_end",
    "collab_resume_begin",
    "collab_resume_end",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
];

/// Copying a thread takes less than this.
const COPYING_MICROS: i64 = 5_000_000;

pub struct RolloutReader {
    pub(super) session: Arc<str>,
    /// The second id in a file name: a transcript that replaces an earlier one of the same thread.
    pub(super) replaces: bool,
    /// The file's name says which thread it is, whatever its lines say.
    pub(super) named: bool,
    modified: Option<Time>,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// Some line was an object, or not even JSON: a file of nothing but the latter is no session.
    read_any: bool,
    garbage: bool,
    pub(super) thread: Option<String>,
    /// The thread that the lines at hand were written for: the own one, or one that was copied from.
    pub(super) stretch: Option<String>,
    /// Something was read, be it broken: a `session_meta` is no longer the file's first line.
    pub(super) started: bool,
    /// Identities of lines, so that copied history has the same keys in every copy.
    pub(super) chain: Chain,
    pub(super) inherited: bool,
    /// When lines of another thread were copied.
    pub(super) copied_at: Option<Time>,
    wrapped: bool,
    model: Option<Arc<str>>,
    /// The turn that started last.
    turn: Option<String>,
    pub(super) facts: SessionFacts,
    waiting: VecDeque<Waiting>,
    ledger: OpenCalls,
    meter: Meter,
    encrypted_reasoning: u64,
}

/// A message seen on one side only so far.
#[derive(Serialize, Deserialize)]
struct Waiting {
    side: Side,
    role: Role,
    text: ContentKey,
    length: usize,
    offset: u64,
    /// Its row says injected until an event confirms the prompt.
    unconfirmed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Side {
    Event,
    Item,
}

/// One object of the file and what its envelope says.
pub struct RolloutLine<'a> {
    pub span: Span,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub payload: Object<'a>,
}

impl RolloutReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> RolloutReader {
        let state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let (named, replaces) = ids_in_name(&file.path);
        let is_id = named.len() == 36 && named.bytes().filter(|byte| *byte == b'-').count() == 4;
        let session = state.thread.clone().unwrap_or(named).into();
        RolloutReader { session, replaces, named: is_id, modified: file.modified, state }
    }

    pub(super) fn object(&mut self, offset: u64, object: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        self.state.read_any = true;
        let (mut timestamp, mut kind, mut payload, mut record_type) = (None, None, None, None);
        let (mut metadata, mut id) = (None, None);
        for (name, value) in object.fields() {
            match *name {
                b"timestamp" => timestamp = value.text().and_then(|text| Time::parse(&text)),
                b"type" => kind = value.text(),
                b"payload" => payload = Some(*value),
                b"metadata" => metadata = Some(*value),
                b"record_type" => record_type = Some(value),
                b"id" => id = Some(value),
                _ => {}
            }
        }
        let span = Span { offset, length: object.bytes().len() as u64 };
        match (kind, payload) {
            (Some(kind), Some(payload)) => {
                self.state.wrapped = true;
                self.note_time(timestamp);
                each_unknown_field(object, ENVELOPE, "line", out);
                if kind == "session_meta" {
                    self.meta(&payload.object(), timestamp, out);
                    return Verdict::Kept("session_meta".into());
                }
                let key = self.state.chain.wrapped(&kind, payload, &self.session);
                let line = RolloutLine { span, at: timestamp, key, payload: payload.object() };
                let verdict = self.wrapped(&kind, &line, metadata, out);
                note_fields(&kind, &line, &verdict, out);
                verdict
            }
            (Some(kind), None) => {
                let key = self.state.chain.bare(object.bytes(), &self.session);
                let line = RolloutLine { span, at: None, key, payload: object.clone() };
                let verdict = self.response_item(&kind, &line, None, out);
                note_fields("response_item", &line, &verdict, out);
                verdict
            }
            (None, _) if record_type.is_some() => Verdict::Kept("state".into()),
            (None, _) if id.is_some() && self.state.thread.is_none() => {
                self.meta(object, None, out);
                Verdict::Kept("session_meta".into())
            }
            (None, _) => Verdict::Unknown("no type".into()),
        }
    }

    fn note_message_time(&mut self, at: Option<Time>) {
        let first = &mut self.state.facts.first_message_at;
        *first = first.or(at);
    }

    fn note_time(&mut self, at: Option<Time>) {
        let facts = &mut self.state.facts;
        facts.last_at = facts.last_at.max(at);
    }

    fn wrapped(
        &mut self,
        kind: &str,
        line: &RolloutLine<'_>,
        metadata: Option<Json<'_>>,
        out: &mut Vec<Item>,
    ) -> Verdict {
        let inner = line.payload.get_text("type").unwrap_or_default();
        match kind {
            "response_item" => self.response_item(&inner, line, metadata, out),
            "event_msg" => self.event(&inner, line, out),
            "turn_context" => {
                self.turn(&line.payload);
                kept(kind)
            }
            "token_usage_record" => {
                let payload = &line.payload;
                if let Some(tokens) = self.state.meter.record(payload) {
                    let thread = payload.get_text("thread_id").unwrap_or_default();
                    let key = match payload.get_text("response_id") {
                        Some(id) => ContentKey::of(&[b"response", thread.as_bytes(), id.as_bytes()]),
                        None => line.key,
                    };
                    let inherited = !thread.is_empty() && *thread != *self.session;
                    out.push(self.usage(line, tokens, key, inherited));
                }
                kept(kind)
            }
            "compacted" => {
                self.compacted(line, out);
                kept(kind)
            }
            "inter_agent_communication" => {
                out.push(self.message(line, Role::User, MessageKind::Agent));
                kept(kind)
            }
            "world_state" | "inter_agent_communication_metadata" | "security_risk_score" => kept(kind),
            other => self.unknown(other.into(), line, out),
        }
    }

    fn turn(&mut self, context: &Object<'_>) {
        if let Some(model) = context.get_text("model") {
            if !self.state.facts.models.iter().any(|known| **known == *model) {
                self.state.facts.models.push(model.clone().into_owned());
            }
            if self.state.model.as_deref() != Some(&model) {
                self.state.model = Some(model.as_ref().into());
            }
        }
        for (name, fact) in [
            ("effort", "reasoning_effort"),
            ("approval_policy", "approval_mode"),
            ("sandbox_policy", "sandbox_policy"),
        ] {
            if let Some(value) = context.get(name) {
                self.state.facts.native.insert(fact.into(), value.value());
            }
        }
    }

    fn response_item(
        &mut self,
        kind: &str,
        line: &RolloutLine<'_>,
        metadata: Option<Json<'_>>,
        out: &mut Vec<Item>,
    ) -> Verdict {
        each_unknown_part(kind, &line.payload, out);
        match kind {
            "message" => self.response_message(line, metadata, out),
            "reasoning" => {
                let readable = ["summary", "content"]
                    .iter()
                    .any(|name| line.payload.get(name).is_some_and(|parts| parts.items().next().is_some()));
                if readable {
                    out.push(self.message(line, Role::Assistant, MessageKind::Thinking));
                } else if line.payload.get("encrypted_content").is_some() {
                    self.state.encrypted_reasoning += 1;
                    let count = Value::from(self.state.encrypted_reasoning);
                    self.state.facts.native.insert("encrypted_reasoning".into(), count);
                }
            }
            "agent_message" => out.push(self.message(line, Role::User, MessageKind::Agent)),
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "web_search_call"
            | "tool_search_call"
            | "image_generation_call" => {
                let turn = (self.session.clone(), self.state.inherited, self.state.model.clone());
                self.state.ledger.call(kind, line, turn, self.state.facts.cwd.as_deref(), out);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.state.ledger.output(&self.session, line, self.state.inherited, out);
            }
            "ghost_snapshot" | "compaction" | "compaction_summary" | "context_compaction"
            | "additional_tools" => {}
            other => return self.unknown(format!("response_item/{other}"), line, out),
        }
        Verdict::Kept(format!("response_item/{kind}"))
    }

    fn response_message(&mut self, line: &RolloutLine<'_>, metadata: Option<Json<'_>>, out: &mut Vec<Item>) {
        let role = line.payload.get_text("role").unwrap_or_default();
        let typed = line.payload.get("content").map(typed_bytes).unwrap_or_default();
        match role.as_ref() {
            "user" => {
                let author = author(&line.payload);
                if author != Author::Client && self.take_twin(Side::Item, Role::User, &typed).is_some() {
                    return;
                }
                // Wrapped files confirm a prompt by an event; bare ones have no events.
                let kind = match author {
                    Author::Person => MessageKind::Prompt,
                    Author::Unmarked if !self.state.wrapped => MessageKind::Prompt,
                    Author::Unmarked | Author::Client => MessageKind::Injected,
                };
                if kind == MessageKind::Prompt {
                    self.note_message_time(line.at);
                    self.note_prompt(&typed, line.at);
                }
                if author == Author::Client && self.state.facts.cwd.is_none() {
                    // Clients that wrote bare lines say the folder nowhere else.
                    self.state.facts.cwd = folder_in_environment(&typed);
                }
                if author != Author::Client {
                    self.wait(Side::Item, Role::User, &typed, line, kind);
                }
                out.push(self.message(line, Role::User, kind));
            }
            "assistant" => {
                let compaction =
                    metadata.and_then(|metadata| metadata.get("compaction_output")).and_then(Json::boolean);
                if compaction == Some(true) {
                    out.push(self.message(line, Role::Assistant, MessageKind::Summary));
                } else if self.take_twin(Side::Item, Role::Assistant, &typed).is_none() {
                    self.wait(Side::Item, Role::Assistant, &typed, line, MessageKind::Answer);
                    out.push(self.message(line, Role::Assistant, MessageKind::Answer));
                }
            }
            "developer" => out.push(self.message(line, Role::Developer, MessageKind::Injected)),
            _ => out.push(self.message(line, Role::System, MessageKind::Injected)),
        }
    }

    fn event(&mut self, kind: &str, line: &RolloutLine<'_>, out: &mut Vec<Item>) -> Verdict {
        let payload = &line.payload;
        match kind {
            "user_message" => {
                let plain = payload.get_text("kind").is_none_or(|kind| kind == "plain");
                let typed = payload.get("message").and_then(Json::inner).unwrap_or_default();
                if plain {
                    self.note_spoken(Role::User, typed, line, out);
                }
            }
            "agent_message" => {
                let typed = payload.get("message").and_then(Json::inner).unwrap_or_default();
                self.note_spoken(Role::Assistant, typed, line, out);
            }
            "item_completed" => return self.item(line, out),
            "token_count" => {
                // A thread that continues another one continues its total.
                let from_zero = self.state.facts.parent.is_none() && !self.state.inherited;
                if let Some(tokens) = self.state.meter.running_total(payload, from_zero) {
                    out.push(self.usage(line, tokens, line.key, self.state.inherited));
                }
            }
            "task_complete" | "turn_complete" => {
                self.end_turn(line);
                if payload.get("error").is_some() {
                    out.push(self.message(line, Role::System, MessageKind::Notice));
                }
            }
            "turn_aborted" => {
                self.end_turn(line);
                out.push(self.message(line, Role::System, MessageKind::Notice));
            }
            "task_started" | "turn_started" => {
                self.state.turn = payload.get_text("turn_id").map(Into::into);
                self.state.facts.ended_at = None;
            }
            "shutdown_complete" => self.state.facts.ended_at = line.at,
            "context_compacted"
            | "thread_rolled_back"
            | "entered_review_mode"
            | "exited_review_mode"
            | "error"
            | "undo_completed" => {
                out.push(self.message(line, Role::System, MessageKind::Notice));
            }
            "patch_apply_end" | "mcp_tool_call_end" | "exec_command_end" | "web_search_end" => {
                self.state.ledger.ended(kind, &self.session, line, out);
            }
            "agent_reasoning"
            | "agent_reasoning_raw_content"
            | "thread_goal_updated"
            | "thread_settings_applied"
            | "thread_name_updated"
            | "sub_agent_activity"
            | "image_generation_end"
            | "view_image_tool_call" => {}
            other if COLLABORATION.contains(&other) => {}
            other => return self.unknown(format!("event_msg/{other}"), line, out),
        }
        Verdict::Kept(format!("event_msg/{kind}"))
    }

    /// Unknown: shown unchanged.
    fn unknown(&self, kind: String, line: &RolloutLine<'_>, out: &mut Vec<Item>) -> Verdict {
        out.push(self.message(line, Role::System, MessageKind::Notice));
        Verdict::Unknown(kind)
    }

    /// The chat of paginated files.
    fn item(&mut self, line: &RolloutLine<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(item) = line.payload.get("item") else {
            return Verdict::Unknown("event_msg/item_completed".into());
        };
        let item = item.object();
        let kind = item.get_text("type").unwrap_or_default();
        let foreign = line.payload.get_text("thread_id").is_some_and(|thread| *thread != *self.session);
        if foreign && !self.state.inherited {
            // A review's parent holds its child's items; the child's own file counts them.
            return Verdict::Kept(format!("item_completed/{kind} of another thread"));
        }
        each_unknown_part(&kind, &item, out);
        let content = item.get("content");
        match kind.as_ref() {
            "UserMessage" => {
                self.note_spoken(Role::User, &content.map(typed_bytes).unwrap_or_default(), line, out);
            }
            "AgentMessage" => {
                self.note_spoken(Role::Assistant, &content.map(typed_bytes).unwrap_or_default(), line, out);
            }
            "CommandExecution" | "FileChange" | "McpToolCall" | "DynamicToolCall" => {
                let turn = (self.session.clone(), self.state.inherited, self.state.model.clone());
                self.state.ledger.item(&kind, &item, line, turn, out);
            }
            "ContextCompaction" | "EnteredReviewMode" | "ExitedReviewMode" | "Plan" => {
                out.push(self.message(line, Role::System, MessageKind::Notice));
            }
            "Reasoning"
            | "WebSearch"
            | "CollabAgentToolCall"
            | "SubAgentActivity"
            | "ImageView"
            | "ImageGeneration"
            | "HookPrompt"
            | "Extension"
            | "Sleep" => {}
            other => return self.unknown(format!("item_completed/{other}"), line, out),
        }
        each_unknown_in_item(&kind, &item, out);
        Verdict::Kept(format!("item_completed/{kind}"))
    }

    /// An event reports a message: its response item came before, follows, or is missing.
    fn note_spoken(&mut self, role: Role, typed: &[u8], line: &RolloutLine<'_>, out: &mut Vec<Item>) {
        let kind = if role == Role::User { MessageKind::Prompt } else { MessageKind::Answer };
        self.note_message_time(line.at);
        if role == Role::User {
            self.note_prompt(typed, line.at);
        }
        if let Some(twin) = self.take_twin(Side::Event, role, typed) {
            if twin.unconfirmed {
                out.push(Item::Amend { session: self.session.clone(), offset: twin.offset, kind });
            }
            return;
        }
        self.wait(Side::Event, role, typed, line, kind);
        out.push(self.message(line, role, kind));
    }

    fn take_twin(&mut self, side: Side, role: Role, typed: &[u8]) -> Option<Waiting> {
        let text = ContentKey::of(&[&without_citations(typed)]);
        let found = self
            .state
            .waiting
            .iter()
            .position(|waiting| waiting.side != side && waiting.role == role && waiting.text == text)?;
        self.state.waiting.remove(found)
    }

    fn wait(&mut self, side: Side, role: Role, typed: &[u8], line: &RolloutLine<'_>, kind: MessageKind) {
        if !self.state.wrapped {
            return;
        }
        if self.state.waiting.len() >= WAITING {
            self.state.waiting.pop_front();
        }
        let typed = without_citations(typed);
        let text = ContentKey::of(&[&typed]);
        self.state.waiting.push_back(Waiting {
            side,
            role,
            text,
            length: typed.len(),
            offset: line.span.offset,
            unconfirmed: kind == MessageKind::Injected,
        });
    }

    /// A compaction: its summary, and the assistant's message that was that summary and no answer.
    fn compacted(&mut self, line: &RolloutLine<'_>, out: &mut Vec<Item>) {
        let summary = line.payload.get("message").and_then(Json::inner).unwrap_or_default();
        let written = self.state.waiting.iter().position(|waiting| {
            waiting.side == Side::Item
                && waiting.role == Role::Assistant
                && waiting.length > 0
                && waiting.length <= summary.len()
                && ContentKey::of(&[&summary[summary.len() - waiting.length..]]) == waiting.text
        });
        if let Some(waiting) = written.and_then(|at| self.state.waiting.remove(at)) {
            let kind = MessageKind::Summary;
            out.push(Item::Amend { session: self.session.clone(), offset: waiting.offset, kind });
        }
        if !summary.is_empty() {
            out.push(self.message(line, Role::System, MessageKind::Summary));
        }
    }

    /// A turn that was replaced may end after its successor started.
    fn end_turn(&mut self, line: &RolloutLine<'_>) {
        let turn = line.payload.get_text("turn_id");
        let is_current = turn.zip(self.state.turn.as_ref()).is_none_or(|(turn, current)| turn == *current);
        if is_current {
            self.state.facts.ended_at = line.at;
        }
    }

    fn note_prompt(&mut self, typed: &[u8], at: Option<Time>) {
        // Clients before turns write only what was typed.
        self.state.facts.ended_at = None;
        // A spawned thread begins with what it copied, all at once: the last prompt of it is its task.
        let spawned = self.state.inherited && self.state.facts.parent_kind == Some(LinkKind::SubAgent);
        let copied = self
            .state
            .copied_at
            .zip(at)
            .is_some_and(|(copied, at)| at.micros().saturating_sub(copied.micros()) < COPYING_MICROS);
        if self.state.facts.first_prompt.is_none() || (spawned && copied) {
            let text = unescape(typed);
            let title = title_of(request(&text).1);
            self.state.facts.first_prompt =
                Some(title).filter(|title| !title.is_empty()).or(self.state.facts.first_prompt.take());
        }
    }

    fn message(&self, line: &RolloutLine<'_>, role: Role, kind: MessageKind) -> Item {
        Item::Message(Message {
            session: self.session.clone(),
            span: line.span,
            role,
            kind,
            at: line.at,
            key: line.key,
            inherited: self.state.inherited,
            model: self.state.model.clone().filter(|_| role == Role::Assistant),
            tally: Tally::of(kind),
        })
    }

    fn usage(&self, line: &RolloutLine<'_>, tokens: Tokens, key: ContentKey, inherited: bool) -> Item {
        Item::Usage(Usage {
            session: self.session.clone(),
            span: line.span,
            at: line.at,
            key,
            inherited,
            model: self.state.model.clone(),
            again: false,
            tokens,
            cost: None,
        })
    }
}

impl Reader for RolloutReader {
    fn read(&mut self, offset: u64, line: json::Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let verdict = each_object(line, |at, object| self.object(offset + at, &object, out));
        self.state.started |= !matches!(verdict, Verdict::Skipped(_));
        self.state.garbage |= matches!(verdict, Verdict::Malformed(_));
        verdict
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        let mut facts = self.state.facts.clone();
        if !self.state.wrapped {
            facts.last_at = self.modified;
        }
        if facts.first_prompt.is_none() {
            // A sub-agent's task may be unreadable; its own name is better than none.
            let named = ["agent_path", "agent_nickname"].iter().find_map(|name| facts.native.get(*name));
            facts.first_prompt = named.and_then(Value::as_str).map(str::to_owned);
        }
        let session = self.session.clone();
        let is_session = self.state.read_any || !self.state.garbage;
        is_session.then_some(Facts { session, rank: 0, facts }).into_iter().collect()
    }
}

/// The fields of what is unknown itself are not named.
fn note_fields(kind: &str, line: &RolloutLine<'_>, verdict: &Verdict, out: &mut Vec<Item>) {
    if matches!(verdict, Verdict::Kept(_)) {
        each_unknown_in_payload(kind, &line.payload, out);
    }
}

fn kept(kind: &str) -> Verdict {
    Verdict::Kept(kind.into())
}

/// The folder in an injected `<environment_context>`.
fn folder_in_environment(typed: &[u8]) -> Option<String> {
    let text = unescape(&typed[..typed.len().min(4_000)]);
    let (_, rest) = text.split_once("<environment_context>")?;
    let folder = rest.split_once("<cwd>")?.1.split_once("</cwd>")?.0;
    Some(folder.trim().to_owned()).filter(|folder| !folder.is_empty())
}
