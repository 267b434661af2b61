//! Reads the log of one agent. The client writes most things two or three times, in different lines: only one of them is
//! read, as the README says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::blocks::texts;
use super::kinds::{FIELDS, LINE, MACHINERY, PARTS};
use super::places::{MAIN, agent_session, place_of};
use crate::home::calls::OpenCalls;
use crate::home::drift::each_unknown;
use crate::home::title::title_of;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Item, Link, LinkKind, Message, MessageKind, Role, SessionFacts, Span, Tally, Time, Tokens,
    Usage, Verdict,
};

pub(super) struct TranscriptReader {
    pub(super) session: Arc<str>,
    /// The session without its agent.
    root: String,
    is_agent: bool,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    read_any: bool,
    pub(super) facts: SessionFacts,
    linked: bool,
    /// When the log was started: a fork has lines from before.
    created: Option<Time>,
    /// The model of the last request, by its own name.
    model: Option<Arc<str>>,
    pub(super) step: Option<Step>,
    pub(super) calls: OpenCalls,
}

/// One request to the model.
#[derive(Serialize, Deserialize)]
pub(super) struct Step {
    pub id: String,
    /// Where its message started, once it has content.
    pub message: Option<u64>,
    measured: bool,
}

/// One line and what its envelope says.
pub(super) struct LogLine<'a> {
    pub object: Object<'a>,
    pub span: Span,
    pub at: Option<Time>,
    pub inherited: bool,
}

impl LogLine<'_> {
    pub fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.object.bytes().as_ptr() as usize;
        Span { offset: self.span.offset + within as u64, length: piece.len() as u64 }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.object.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned())
    }
}

impl TranscriptReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> TranscriptReader {
        let mut state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let place = place_of(&file.path);
        let root = place.as_ref().map_or(file.path.as_str(), |place| place.session).to_owned();
        let agent = place.as_ref().map_or(MAIN, |place| place.agent);
        if let Some(place) = &place {
            state.facts.project_name.get_or_insert_with(|| place.workspace.to_owned());
        }
        let is_agent = agent != MAIN;
        if is_agent {
            state.facts.parent.get_or_insert_with(|| root.clone());
            state.facts.parent_kind = Some(LinkKind::SubAgent);
        }
        TranscriptReader { session: agent_session(&root, agent).into(), root, is_agent, state }
    }

    fn line(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let span = Span { offset, length: object.bytes().len() as u64 };
        let kind = object.get_text("type").unwrap_or_default().into_owned();
        let millis = object.get_integer("time").or_else(|| object.get_integer("created_at"));
        let at = millis.map(Time::from_millis);
        let inherited = at.zip(self.state.created).is_some_and(|(at, created)| at < created);
        let line = LogLine { object, span, at, inherited };
        self.state.read_any = true;
        self.state.facts.last_at = self.state.facts.last_at.max(at);
        self.link(out);
        if let Some((_, fields)) = FIELDS.iter().find(|(known, _)| *known == kind) {
            each_unknown(&line.object, &[LINE, fields], &kind, out);
        }
        match kind.as_str() {
            "metadata" => self.header(&line),
            "profile.bind" => self.profile(&line, out),
            "permission.set_mode" => self.note(&line, "mode", "permission_mode"),
            "llm.request" => self.state.model = line.text("model").map(Into::into),
            "turn.prompt" | "turn.steer" => self.prompt(&line, out),
            "turn.cancel" => out.push(self.message(&line, Role::System, MessageKind::Notice)),
            "turn.ended" => self.end(&line, out),
            "context.append_message" => self.injected(&line, out),
            "context.append_loop_event" => return self.event(&line, out),
            "context.apply_compaction" => {
                out.push(self.message(&line, Role::System, MessageKind::Summary));
            }
            "usage.record" => self.count(&line, out),
            "subagent.spawned" => self.spawned(&line, out),
            kind if MACHINERY.contains(&kind) => {}
            _ => {
                out.push(self.message(&line, Role::System, MessageKind::Notice));
                return Verdict::Unknown(if kind.is_empty() { "no type".into() } else { kind });
            }
        }
        Verdict::Kept(kind)
    }

    fn link(&mut self, out: &mut Vec<Item>) {
        if self.is_agent && !std::mem::replace(&mut self.state.linked, true) {
            let (session, other) = (self.session.clone(), self.root.clone());
            out.push(Item::Link(Link { session, other, kind: LinkKind::SubAgent, position: None }));
        }
    }

    fn header(&mut self, line: &LogLine<'_>) {
        let facts = &mut self.state.facts;
        facts.started_at = facts.started_at.or(line.at);
        self.state.created = self.state.created.or(line.at);
        self.note(line, "protocol_version", "protocol_version");
    }

    fn note(&mut self, line: &LogLine<'_>, field: &str, name: &str) {
        if let Some(value) = line.object.get(field) {
            self.state.facts.native.insert(name.to_owned(), value.value());
        }
    }

    fn profile(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        self.note(line, "profileName", "profile");
        self.note(line, "thinkingEffort", "thinking_effort");
        out.push(self.message(line, Role::System, MessageKind::Injected));
    }

    /// What a person typed, the task of a sub-agent, or what a skill says.
    fn prompt(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        let origin = line.object.get("origin").and_then(|origin| origin.get_text("kind"));
        let kind = match origin.as_deref().unwrap_or("user") {
            "user" if !self.is_agent => MessageKind::Prompt,
            "user" | "system_trigger" => MessageKind::Agent,
            _ => MessageKind::Injected,
        };
        let input = line.object.get("input");
        self.parts(input, out);
        if kind != MessageKind::Injected {
            let facts = &mut self.state.facts;
            facts.ended_at = None;
            facts.first_message_at = facts.first_message_at.or(line.at);
            if facts.first_prompt.is_none() {
                let title = title_of(&texts(input).join("\n"));
                facts.first_prompt = Some(title).filter(|title| !title.is_empty());
            }
        }
        out.push(self.message(line, Role::User, kind));
    }

    /// Of the messages for the model, only what the client adds is in no other line.
    fn injected(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        let message = line.object.get("message");
        let origin = message.and_then(|message| message.get("origin")?.get_text("kind"));
        if origin.is_some_and(|origin| origin == "injection") {
            out.push(self.message(line, Role::User, MessageKind::Injected));
        }
    }

    fn end(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        self.state.facts.ended_at = line.at;
        self.state.step = None;
        if line.object.get("error").is_some_and(|error| !error.is_null()) {
            out.push(self.message(line, Role::System, MessageKind::Notice));
        }
    }

    fn spawned(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        let Some(agent) = line.text("subagentId") else { return };
        let (session, other) = (self.session.clone(), agent_session(&self.root, &agent));
        let position = line.text("parentToolCallId");
        out.push(Item::Link(Link { session, other, kind: LinkKind::SubAgent, position }));
    }

    fn event(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) -> Verdict {
        let event = line.object.get("event").filter(|event| event.is_object());
        let kind = event.and_then(|event| event.get_text("type")).unwrap_or_default();
        let Some(event) = event else { return Verdict::Unknown("loop event without event".into()) };
        match kind.as_ref() {
            "step.begin" => {
                let id = event.get_text("uuid").unwrap_or_default().into_owned();
                self.state.step = Some(Step { id, message: None, measured: false });
            }
            "content.part" => {
                self.parts(event.get("part"), out);
                self.content(line, event, out);
            }
            "tool.call" => {
                let message = self.content(line, event, out);
                self.call(line, event, message, out);
            }
            "tool.result" => self.result(line, event, out),
            "step.end" | "step.retry" => {}
            other => return Verdict::Unknown(format!("loop event {other}")),
        }
        Verdict::Kept(kind.into_owned())
    }

    /// Adds a line to the answer of its step, which starts with the first.
    fn content(&mut self, line: &LogLine<'_>, event: Json<'_>, out: &mut Vec<Item>) -> u64 {
        let step = event.get_text("stepUuid").unwrap_or_default();
        if self.state.step.as_ref().is_none_or(|open| open.id != *step) {
            self.state.step = Some(Step { id: step.clone().into_owned(), message: None, measured: false });
        }
        let started = self.state.step.as_ref().and_then(|open| open.message);
        if let Some(message) = started {
            out.push(Item::Extend { session: self.session.clone(), message, span: line.span });
            return message;
        }
        if let Some(open) = &mut self.state.step {
            open.message = Some(line.span.offset);
        }
        let facts = &mut self.state.facts;
        facts.first_message_at = facts.first_message_at.or(line.at);
        let mut row = self.row(line, Role::Assistant, MessageKind::Answer);
        row.key = match step.is_empty() {
            true => row.key,
            false => ContentKey::of(&[b"kimi step", step.as_bytes()]),
        };
        row.model.clone_from(&self.state.model);
        out.push(Item::Message(row));
        line.span.offset
    }

    /// What was cached is not part of the input. Reasoning is part of the output.
    fn count(&mut self, line: &LogLine<'_>, out: &mut Vec<Item>) {
        let Some(usage) = line.object.get("usage").filter(|usage| usage.is_object()) else { return };
        let number = |name: &str| usage.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let model = self.state.model.clone().or_else(|| line.text("model").map(Into::into));
        if let Some(model) = &model {
            let models = &mut self.state.facts.models;
            if !models.iter().any(|known| **known == **model) {
                models.push(model.to_string());
            }
        }
        let first = self.state.step.as_mut().filter(|step| !step.measured);
        let key = match first {
            Some(step) => {
                step.measured = true;
                ContentKey::of(&[b"kimi usage", step.id.as_bytes()])
            }
            None => ContentKey::of(&[b"kimi usage", line.object.bytes()]),
        };
        out.push(Item::Usage(Usage {
            session: self.session.clone(),
            span: line.span,
            at: line.at,
            key,
            inherited: line.inherited,
            model,
            again: false,
            tokens: Tokens {
                input: number("inputOther"),
                output: number("output"),
                cache_read: number("inputCacheRead"),
                cache_write: number("inputCacheCreation"),
                ..Tokens::default()
            },
            cost: None,
        }));
    }

    pub(super) fn model(&self) -> Option<Arc<str>> {
        self.state.model.clone()
    }

    fn parts(&self, parts: Option<Json<'_>>, out: &mut Vec<Item>) {
        let single = parts.filter(|parts| parts.is_object());
        for part in parts.iter().flat_map(|parts| parts.items()).chain(single) {
            let kind = part.get_text("type").unwrap_or_default();
            if !PARTS.contains(&kind.as_ref()) {
                out.push(Item::Drift(format!("part {kind}")));
            }
        }
    }

    /// Copies in a fork have the time and the text of the original.
    fn row(&self, line: &LogLine<'_>, role: Role, kind: MessageKind) -> Message {
        Message {
            session: self.session.clone(),
            span: line.span,
            role,
            kind,
            at: line.at,
            key: ContentKey::of(&[b"kimi", line.object.bytes()]),
            inherited: line.inherited,
            model: None,
            tally: Tally::of(kind),
        }
    }

    pub(super) fn message(&self, line: &LogLine<'_>, role: Role, kind: MessageKind) -> Item {
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
