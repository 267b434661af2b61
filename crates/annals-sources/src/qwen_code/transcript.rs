//! Reads transcripts line by line: messages, calls with their results, usage, titles.
//!
//! A line is a record with an id and its parent. One response may be several records; only the first has its usage. What the
//! client measured is written again as telemetry, and not counted again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kinds::{LINE, MACHINERY, PROMPTS, session_of};
use crate::gemini_family::calls::{TITLES, kind_of};
use crate::gemini_family::drift::each_unknown_part;
use crate::gemini_family::people::{texts, user_kind, without_reminder};
use crate::gemini_family::projects::hash_of;
use crate::home::calls::{OpenCalls, title_of_call};
use crate::home::drift::each_unknown;
use crate::home::title::title_of;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    Call, ContentKey, Item, Link, LinkKind, Message, MessageKind, ProjectPath, Role, SessionFacts, Span,
    Tally, Time, Tokens, Usage, Verdict,
};

pub(super) struct TranscriptReader {
    pub(super) session: Arc<str>,
    is_agent: bool,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    read_any: bool,
    pub(super) facts: SessionFacts,
    linked: bool,
    /// The working directory of the line before.
    folder: Option<String>,
    /// Records of this client have usage: one without continues a response, or was cut short.
    measured: bool,
    /// The record that the response before this line ended with, and where its message started.
    answer: Option<(String, u64)>,
    pub(super) calls: OpenCalls,
}

/// One line and what its envelope says.
pub(super) struct Record<'a> {
    pub object: Object<'a>,
    pub span: Span,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub inherited: bool,
}

impl Record<'_> {
    pub fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.object.bytes().as_ptr() as usize;
        Span { offset: self.span.offset + within as u64, length: piece.len() as u64 }
    }

    fn text(&self, name: &str) -> String {
        self.object.get_text(name).unwrap_or_default().into_owned()
    }

    fn parts(&self) -> Option<Json<'_>> {
        self.object.get("message").and_then(|message| message.get("parts"))
    }
}

impl TranscriptReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> TranscriptReader {
        let mut state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let (session, parent) = session_of(&file.path);
        if let Some(parent) = &parent {
            state.facts.parent.get_or_insert_with(|| parent.clone());
            state.facts.parent_kind = Some(LinkKind::SubAgent);
        }
        TranscriptReader { session: session.into(), is_agent: parent.is_some(), state }
    }

    fn line(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let span = Span { offset, length: object.bytes().len() as u64 };
        let at = object.get_text("timestamp").and_then(|text| Time::parse(&text));
        let copied = object.get("forkedFrom").filter(|origin| origin.is_object());
        let id = copied.and_then(|origin| origin.get_text("messageUuid")).or_else(|| object.get_text("uuid"));
        let key = match &id {
            Some(id) if !id.is_empty() => ContentKey::of(&[b"qwen", id.as_bytes()]),
            _ => ContentKey::of(&[b"qwen", self.session.as_bytes(), &offset.to_le_bytes()]),
        };
        let record = Record { object, span, at, key, inherited: copied.is_some() };
        let subtype = record.text("subtype");
        let kind = match subtype.as_str() {
            "" => record.text("type"),
            subtype => format!("{}/{subtype}", record.text("type")),
        };
        self.envelope(&record, out);
        each_unknown(&record.object, &[LINE], "record", out);
        each_unknown_part(record.parts(), out);
        let is_known = match record.text("type").as_str() {
            "user" if PROMPTS.contains(&subtype.as_str()) => self.user(&record, &subtype, out),
            "assistant" => self.answer(&record, out),
            "tool_result" => self.result(&record, out),
            "system" => self.system(&record, &subtype, out),
            _ => false,
        };
        if is_known {
            return Verdict::Kept(kind);
        }
        out.push(self.message(&record, Role::System, MessageKind::Notice));
        Verdict::Unknown(if kind.is_empty() { "no type".into() } else { kind })
    }

    /// What every line says about its session.
    fn envelope(&mut self, record: &Record<'_>, out: &mut Vec<Item>) {
        let known = |name: &str| record.object.get_text(name).filter(|text| !text.is_empty());
        let facts = &mut self.state.facts;
        if let Some(cwd) = known("cwd").filter(|cwd| self.state.folder.as_deref() != Some(cwd)) {
            // Older chats are filed under the hash of their directory.
            out.push(Item::Project(ProjectPath { name: hash_of(&cwd), path: cwd.clone().into_owned() }));
            facts.cwd.get_or_insert_with(|| cwd.clone().into_owned());
            self.state.folder = Some(cwd.into_owned());
        }
        if let Some(version) = known("version") {
            facts.client_version = Some(version.into_owned());
        }
        if let Some(branch) = known("gitBranch") {
            facts.git_branch = Some(branch.into_owned());
        }
        if let Some(agent) = known("agentName") {
            facts.native.insert("agent_type".into(), agent.into_owned().into());
        }
        self.state.read_any = true;
        facts.started_at = facts.started_at.or(record.at);
        facts.last_at = facts.last_at.max(record.at);
        let origin = record.object.get("forkedFrom").and_then(|origin| origin.get_text("sessionId"));
        let fork = origin.map(|origin| (origin.into_owned(), LinkKind::Fork));
        let started_by = facts.parent.clone().filter(|_| self.is_agent);
        let link = started_by.map(|parent| (parent, LinkKind::SubAgent)).or(fork);
        if let Some((other, kind)) = link.filter(|_| !self.state.linked) {
            self.state.linked = true;
            facts.parent = Some(other.clone());
            facts.parent_kind = Some(kind);
            out.push(Item::Link(Link { session: self.session.clone(), other, kind, position: None }));
        }
    }

    fn user(&mut self, record: &Record<'_>, subtype: &str, out: &mut Vec<Item>) -> bool {
        let text = record.parts().map(|parts| texts(parts).join("\n")).unwrap_or_default();
        let words = without_reminder(&text).map_or(text.as_str(), |(_, words)| words);
        let provenance = record.text("provenance");
        let by_client = !matches!(provenance.as_str(), "" | "real_user");
        let kind = match (subtype, user_kind(words)) {
            ("notification", _) => MessageKind::Agent,
            ("" | "mid_turn_user_message", kind) if !by_client => match kind {
                MessageKind::Prompt if self.is_agent => MessageKind::Agent,
                kind => kind,
            },
            _ => MessageKind::Injected,
        };
        let is_task = self.is_agent && kind == MessageKind::Agent;
        if kind == MessageKind::Prompt || is_task {
            let facts = &mut self.state.facts;
            facts.ended_at = None;
            facts.first_message_at = facts.first_message_at.or(record.at);
            if facts.first_prompt.is_none() {
                facts.first_prompt = Some(title_of(words)).filter(|title| !title.is_empty());
            }
        }
        out.push(self.message(record, Role::User, kind));
        true
    }

    fn answer(&mut self, record: &Record<'_>, out: &mut Vec<Item>) -> bool {
        let model: Option<Arc<str>> =
            record.object.get_text("model").filter(|model| !model.is_empty()).map(|model| (*model).into());
        if let Some(model) = &model {
            let models = &mut self.state.facts.models;
            if !models.iter().any(|known| **known == **model) {
                models.push(model.to_string());
            }
        }
        let usage = record.object.get("usageMetadata").filter(|usage| usage.is_object());
        let parent = record.text("parentUuid");
        let before = self.state.answer.take().filter(|(id, _)| usage.is_none() && *id == parent);
        let place = match before {
            Some((_, place)) => {
                let (session, span) = (self.session.clone(), record.span);
                out.push(Item::Extend { session, message: place, span });
                place
            }
            None => {
                let facts = &mut self.state.facts;
                facts.first_message_at = facts.first_message_at.or(record.at);
                let cut_short = usage.is_none() && self.state.measured;
                let kind = if cut_short { MessageKind::Notice } else { MessageKind::Answer };
                let mut row = self.row(record, Role::Assistant, kind);
                row.model.clone_from(&model);
                out.push(Item::Message(row));
                record.span.offset
            }
        };
        self.state.answer = Some((record.text("uuid"), place));
        if let Some(usage) = usage {
            self.state.measured = true;
            out.push(Item::Usage(Usage {
                session: self.session.clone(),
                span: record.span,
                at: record.at,
                key: ContentKey::of(&[b"usage", &record.key.stored().to_le_bytes()]),
                inherited: record.inherited,
                model: model.clone(),
                again: false,
                tokens: tokens_of(&usage.object()),
                cost: None,
            }));
        }
        let parts = record.parts();
        let called = parts.iter().flat_map(|parts| parts.items()).filter_map(|part| part.get("functionCall"));
        let mut calls = 0;
        for call in called {
            self.call(record, call, (place, model.clone()), out);
            calls += 1;
        }
        self.state.facts.ended_at = record.at.filter(|_| calls == 0);
        true
    }

    fn call(
        &mut self,
        record: &Record<'_>,
        part: Json<'_>,
        (message, model): (u64, Option<Arc<str>>),
        out: &mut Vec<Item>,
    ) {
        let text = |name: &str| part.get_text(name).unwrap_or_default().into_owned();
        let (id, name, span) = (text("id"), text("name"), record.span_of(part.bytes()));
        let arguments = part.get("args");
        out.push(Item::Call(Call {
            session: self.session.clone(),
            span,
            at: record.at,
            key: ContentKey::of(&[b"call", &record.key.stored().to_le_bytes(), id.as_bytes()]),
            inherited: record.inherited,
            call_id: id.clone(),
            name: name.as_str().into(),
            kind: kind_of(&name),
            title: arguments.map(|arguments| title_of_call(arguments, TITLES)).unwrap_or_default(),
            parent: None,
            message: Some(message),
            model,
        }));
        self.state.calls.push(id, span.offset, name, arguments, "file_path");
    }

    /// False for a subtype that no version was seen to write.
    fn system(&mut self, record: &Record<'_>, subtype: &str, out: &mut Vec<Item>) -> bool {
        let payload = record.object.get("systemPayload");
        let text =
            |name: &str| payload.and_then(|payload| payload.get_text(name)).map(|text| text.into_owned());
        match subtype {
            "ui_telemetry" => {
                let event = payload.and_then(|payload| payload.get("uiEvent"));
                self.telemetry(record, event, out);
            }
            "chat_compression" => out.push(self.message(record, Role::System, MessageKind::Summary)),
            "slash_command" => {
                if text("phase").is_none_or(|phase| phase == "invocation") {
                    out.push(self.message(record, Role::User, MessageKind::Command));
                }
            }
            "custom_title" => {
                let title = text("customTitle").filter(|title| !title.is_empty());
                if text("titleSource").is_some_and(|origin| origin == "auto") {
                    self.state.facts.title = title;
                } else {
                    self.state.facts.name = title;
                }
            }
            "rewind" => out.push(self.message(record, Role::System, MessageKind::Notice)),
            known => return MACHINERY.contains(&known),
        }
        true
    }

    /// Of what the client measured, only errors and the time of calls are nowhere else.
    fn telemetry(&mut self, record: &Record<'_>, event: Option<Json<'_>>, out: &mut Vec<Item>) {
        let Some(event) = event else { return };
        let name = event.get_text("event.name").unwrap_or_default();
        if name.ends_with(".api_error") {
            out.push(self.message(record, Role::System, MessageKind::Notice));
        } else if name.ends_with(".tool_call")
            && let Some(call) = self.state.calls.find(&event.get_text("call_id").unwrap_or_default())
        {
            call.duration_ms = event.get_integer("duration_ms");
        }
    }

    fn row(&self, record: &Record<'_>, role: Role, kind: MessageKind) -> Message {
        Message {
            session: self.session.clone(),
            span: record.span,
            role,
            kind,
            at: record.at,
            key: record.key,
            inherited: record.inherited,
            model: None,
            tally: Tally::of(kind),
        }
    }

    pub(super) fn message(&self, record: &Record<'_>, role: Role, kind: MessageKind) -> Item {
        Item::Message(self.row(record, role, kind))
    }
}

/// What was cached is part of the prompt. Whether thoughts are part of the answer depends on who serves the model; the
/// total tells.
fn tokens_of(usage: &Object<'_>) -> Tokens {
    let number = |name: &str| usage.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
    let (prompt, answer) = (number("promptTokenCount"), number("candidatesTokenCount"));
    let (cached, thoughts) = (number("cachedContentTokenCount"), number("thoughtsTokenCount"));
    let separate = prompt + answer + thoughts == number("totalTokenCount");
    Tokens {
        input: (prompt - cached).max(0),
        output: if separate { answer + thoughts } else { answer },
        cache_read: cached.min(prompt),
        reasoning: thoughts,
        ..Tokens::default()
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

#[cfg(test)]
mod tests {
    use super::tokens_of;
    use crate::json::Json;

    #[test]
    fn the_total_tells_whether_thoughts_are_part_of_the_answer() {
        let tokens = |usage: &str| tokens_of(&Json::parse(usage.as_bytes()).expect("JSON").object());
        let inside = tokens(
            r#"{"promptTokenCount":30,"candidatesTokenCount":9,"thoughtsTokenCount":4,"totalTokenCount":39,"cachedContentTokenCount":10}"#,
        );
        assert_eq!((inside.input, inside.cache_read, inside.output, inside.reasoning), (20, 10, 9, 4));
        let beside = tokens(
            r#"{"promptTokenCount":30,"candidatesTokenCount":9,"thoughtsTokenCount":4,"totalTokenCount":43}"#,
        );
        assert_eq!((beside.output, beside.reasoning), (13, 4));
    }
}
