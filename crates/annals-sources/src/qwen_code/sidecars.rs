//! Files besides transcripts: cards of sub-agents, and what the client counted when it ended.

use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{ContentKey, Document, Item, LinkKind, SessionFacts, Span, Time, Verdict};

use super::kinds::session_of;

/// `agent-<type>-<call>.meta.json`: what a sub-agent is for, and its model, which its transcript lacks.
pub struct AgentCardReader {
    session: String,
    parent: Option<String>,
    facts: Option<SessionFacts>,
}

impl AgentCardReader {
    pub fn new(file: &FileContext) -> AgentCardReader {
        let (session, parent) = session_of(&file.path);
        AgentCardReader { session, parent, facts: None }
    }
}

impl Reader for AgentCardReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let Some(card) = line.json().filter(|card| card.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        let text =
            |name: &str| card.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
        let mut facts = SessionFacts {
            title: text("description"),
            parent: self.parent.clone(),
            parent_kind: self.parent.as_ref().map(|_| LinkKind::SubAgent),
            models: text("model").into_iter().collect(),
            ..SessionFacts::default()
        };
        for (name, value) in card.fields() {
            let name = match name {
                b"agentType" => "agent_type",
                b"toolUseId" => "tool_use_id",
                b"parentAgentId" => "parent_agent_id",
                b"depth" => "depth",
                b"status" => "status",
                _ => continue,
            };
            facts.native.insert(name.into(), value.value());
        }
        self.facts = Some(facts);
        Verdict::Kept("agent card".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let session = self.session.as_str();
        self.facts
            .iter()
            .map(|facts| Facts { session: session.into(), rank: 5, facts: facts.clone() })
            .collect()
    }
}

/// `usage_record.jsonl`: a line for each run of the client, kept when transcripts are deleted. Its numbers are those of the
/// transcripts again, so they are records and are not added up.
pub struct RunsReader;

impl Reader for RunsReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        each_object(line, |at, run| {
            let (Some(session), Some(ended)) = (run.get_text("sessionId"), run.get_integer("timestamp"))
            else {
                return Verdict::Unknown("run without session or time".into());
            };
            out.push(Item::Document(Document {
                stream: "client_runs",
                key: format!("{session}:{ended}"),
                session: Some(session.as_ref().into()),
                at: Some(Time::from_millis(ended)),
                span: Span { offset: offset + at, length: run.bytes().len() as u64 },
                content: ContentKey::of(&[run.bytes()]),
            }));
            Verdict::Kept("run".into())
        })
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// What a record of a run says.
pub fn run(key: &str, bytes: &[u8]) -> Option<serde_json::Value> {
    let mut run = Json::parse(bytes)?.value();
    run.as_object_mut()?.insert("id".into(), key.into());
    Some(run)
}
