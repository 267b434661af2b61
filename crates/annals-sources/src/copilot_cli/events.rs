//! Reads the events of a session, and of the sub-agents that ran in it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calls::OpenCall;
use super::session_in;
use super::usage::{Totals, tokens_of};
use crate::home::title::title_of;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Item, LinkKind, Message, MessageKind, Role, SessionFacts, Span, Tally, Time, Tokens, Usage,
    Verdict,
};

/// Events that say nothing which another does not: marks of turns, permissions, and the requests of a compaction.
const SILENT: &[&str] = &[
    "session.model_change",
    "session.mode_changed",
    "session.plan_changed",
    "session.workspace_file_changed",
    "session.context_changed",
    "session.truncation",
    "session.task_complete",
    "session.handoff",
    "session.compaction_start",
    "session.snapshot_rewind",
    "session.title_changed",
    "session.idle",
    "session.usage_info",
    "session.tools_updated",
    "session.background_tasks_changed",
    "session.skills_loaded",
    "session.custom_agents_updated",
    "session.mcp_servers_loaded",
    "session.mcp_server_status_changed",
    "session.extensions_loaded",
    "session.remote_steerable_changed",
    "session.permissions_changed",
    "session.schedule_created",
    "session.schedule_cancelled",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.intent",
    "assistant.reasoning",
    "assistant.reasoning_delta",
    "assistant.message_delta",
    "assistant.message_start",
    "assistant.streaming_delta",
    "assistant.usage",
    "assistant.idle",
    "tool.user_requested",
    "tool.execution_progress",
    "tool.execution_partial_result",
    "hook.start",
    "hook.end",
    "hook.progress",
    "subagent.configured",
    "subagent.completed",
    "subagent.selected",
    "subagent.deselected",
    "skill.context_delivered_ref",
    "permission.requested",
    "permission.completed",
    "system.notification",
    "user_input.requested",
    "user_input.completed",
    "elicitation.requested",
    "elicitation.completed",
    "sampling.requested",
    "sampling.completed",
    "mcp.oauth_required",
    "mcp.oauth_completed",
    "external_tool.requested",
    "external_tool.completed",
    "command.queued",
    "command.execute",
    "command.completed",
    "commands.changed",
    "capabilities.changed",
    "exit_plan_mode.requested",
    "exit_plan_mode.completed",
    "auto_mode_switch.requested",
    "auto_mode_switch.completed",
    "pending_messages.modified",
    "model.turn_started",
    "model.model_call_started",
    "model.model_call_success",
    "model.model_call_failure",
    "model.message",
    "model.response",
    "model.messages_snapshot",
    "model.turn_ended",
    "model.call_failure",
];

pub struct EventReader {
    pub(super) session: Arc<str>,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    session: Option<String>,
    pub(super) facts: SessionFacts,
    /// What is known of the sub-agents, by the client's ids.
    pub(super) agents: BTreeMap<String, SessionFacts>,
    pub(super) calls: VecDeque<OpenCall>,
    totals: Totals,
    model: Option<String>,
    read_any: bool,
}

/// One event, and whose it is.
pub(super) struct Event<'a> {
    object: Object<'a>,
    pub(super) data: Object<'a>,
    kind: Cow<'a, str>,
    id: Cow<'a, str>,
    offset: u64,
    pub(super) at: Option<Time>,
    /// The session, or that of a sub-agent.
    pub(super) session: Arc<str>,
    pub(super) agent: Option<String>,
}

impl Event<'_> {
    pub(super) fn span_of(&self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.object.bytes().as_ptr() as usize;
        Span { offset: self.offset + within as u64, length: piece.len() as u64 }
    }

    fn span(&self) -> Span {
        self.span_of(self.object.bytes())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.data.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned())
    }
}

impl EventReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> EventReader {
        let state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let of_path = session_in(&file.path).unwrap_or(&file.path);
        let session = state.session.as_deref().unwrap_or(of_path).into();
        EventReader { session, state }
    }

    fn event(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(data) = object.get("data").filter(|data| data.is_object()).map(Json::object) else {
            return Verdict::Unknown("event without data".into());
        };
        self.state.read_any = true;
        let kind = object.get_text("type").unwrap_or_default();
        if kind == "session.start"
            && self.state.session.is_none()
            && let Some(id) = data.get_text("sessionId").filter(|id| !id.is_empty())
        {
            self.session = id.as_ref().into();
            self.state.session = Some(id.into_owned());
        }
        let agent =
            object.get_text("agentId").filter(|agent| !agent.is_empty()).map(|agent| agent.into_owned());
        let session = match &agent {
            Some(agent) => agent_session(agent, &self.session).into(),
            None => self.session.clone(),
        };
        let id = object.get_text("id").unwrap_or_default();
        let at = object.get_text("timestamp").and_then(|text| Time::parse(&text));
        let event = Event { data, kind, id, offset, at, session, agent, object };
        let facts = self.facts_of(&event);
        facts.last_at = facts.last_at.max(event.at);
        self.take(&event, out)
    }

    fn take(&mut self, event: &Event<'_>, out: &mut Vec<Item>) -> Verdict {
        let kind = event.kind.as_ref();
        match kind {
            "session.start" | "session.resume" => self.started(event),
            "session.model_change" if event.agent.is_none() => {
                self.state.model = event.text("newModel").or(self.state.model.take());
            }
            "system.message" => out.push(self.message(event, Role::System, MessageKind::Injected)),
            "user.message" => self.prompt(event, out),
            "assistant.message" => self.answer(event, out),
            "tool.execution_start" => {
                let data = Json::parse(event.data.bytes());
                if let Some(data) = data {
                    self.call(event, data, None, out);
                }
            }
            "tool.execution_complete" => self.result(event, out),
            "session.usage_record" => {
                self.state.totals.has_records = true;
                if let Some(usage) = event.data.get("usage").map(Json::object) {
                    let id = usage.get_text("apiCallId").unwrap_or_else(|| event.id.clone());
                    let model = usage.get_text("model").map(|model| model.into_owned());
                    out.extend(self.usage(event, (&id, model), tokens_of(&usage)));
                }
            }
            "session.shutdown" => self.ended(event, out),
            "session.compaction_complete" => self.compacted(event, out),
            "subagent.started" => self.agent_started(event, out),
            "skill.invoked" => out.push(self.message(event, Role::User, MessageKind::Injected)),
            "session.error" | "session.warning" | "session.info" | "abort" | "subagent.failed" => {
                out.push(self.message(event, Role::System, MessageKind::Notice));
            }
            kind if SILENT.contains(&kind) => {}
            _ => {
                out.push(self.message(event, Role::System, MessageKind::Notice));
                return Verdict::Unknown(kind.to_owned());
            }
        }
        Verdict::Kept(kind.to_owned())
    }

    fn facts_of(&mut self, event: &Event<'_>) -> &mut SessionFacts {
        match &event.agent {
            Some(agent) => self.state.agents.entry(agent.clone()).or_default(),
            None => &mut self.state.facts,
        }
    }

    /// A session that starts, or is resumed in the same file.
    fn started(&mut self, event: &Event<'_>) {
        self.state.model = event.text("selectedModel").or(self.state.model.take());
        let context = event.data.get("context");
        let field = |name: &str| {
            let text = context.and_then(|context| context.get_text(name)).filter(|text| !text.is_empty());
            text.map(|text| text.into_owned())
        };
        let facts = &mut self.state.facts;
        facts.started_at = facts.started_at.or(event.at);
        facts.client_version = event.text("copilotVersion").or(facts.client_version.take());
        facts.cwd = facts.cwd.take().or(field("cwd"));
        facts.git_branch = field("branch").or(facts.git_branch.take());
        facts.git_commit = field("headCommit").or(facts.git_commit.take());
        if let Some(repository) = field("repository") {
            facts.native.insert("repository".into(), repository.into());
        }
    }

    fn prompt(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        let is_agent = event.agent.is_some() || event.data.get("source").is_some();
        let kind = match (&event.agent, is_agent) {
            (None, false) => MessageKind::Prompt,
            (None, true) => MessageKind::Injected,
            (Some(_), _) => MessageKind::Agent,
        };
        let title = event.text("content").map(|text| title_of(&text)).filter(|title| !title.is_empty());
        let facts = self.facts_of(event);
        if kind != MessageKind::Injected {
            facts.ended_at = None;
            facts.first_message_at = facts.first_message_at.or(event.at);
            facts.first_prompt = facts.first_prompt.take().or(title);
        }
        let tally = if kind == MessageKind::Agent { Tally::Record } else { Tally::of(kind) };
        out.push(Item::Message(Message { tally, ..self.row(event, Role::User, kind) }));
    }

    fn answer(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        self.state.totals.answers += 1;
        let model = self.model_of(event);
        let requests = event.data.get("toolRequests");
        let is_last = requests.is_none_or(|requests| requests.items().next().is_none());
        let facts = self.facts_of(event);
        facts.first_message_at = facts.first_message_at.or(event.at);
        facts.ended_at = event.at.filter(|_| is_last);
        if let Some(model) = model.as_deref()
            && !facts.models.iter().any(|known| known == model)
        {
            facts.models.push(model.to_owned());
        }
        out.push(Item::Message(Message { model, ..self.row(event, Role::Assistant, MessageKind::Answer) }));
        for request in requests.iter().flat_map(|requests| requests.items()) {
            self.call(event, request, Some(event.span().offset), out);
        }
    }

    /// The model of an event: its own, or the one that was chosen before.
    pub(super) fn model_of(&self, event: &Event<'_>) -> Option<Arc<str>> {
        let own = event.data.get_text("model").filter(|model| !model.is_empty());
        own.map(|model| model.as_ref().into()).or_else(|| self.state.model.as_deref().map(Into::into))
    }

    fn usage(&self, event: &Event<'_>, (id, model): (&str, Option<String>), tokens: Tokens) -> Option<Item> {
        (tokens.total() > 0).then(|| {
            Item::Usage(Usage {
                session: event.session.clone(),
                span: event.span(),
                at: event.at,
                key: ContentKey::of(&[b"usage", self.session.as_bytes(), id.as_bytes()]),
                inherited: false,
                model: model.map(|model| model.as_str().into()),
                again: false,
                tokens,
                cost: None,
            })
        })
    }

    /// The end of the client's process, with its sums.
    fn ended(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        self.state.facts.ended_at = event.at;
        let snapshot = event.data.get("accountingSnapshot");
        let metrics = snapshot.and_then(|snapshot| snapshot.get("modelMetrics"));
        let Some(metrics) = metrics.or_else(|| event.data.get("modelMetrics")) else { return };
        for (model, tokens) in self.state.totals.added(&metrics.object()) {
            let id = format!("{}/{model}", event.id);
            // One row for a line: models after the first would be at the same place.
            let piece = metrics.get(&model).map_or(event.span(), |metrics| event.span_of(metrics.bytes()));
            let item = self.usage(event, (&id, Some(model)), tokens);
            out.extend(item.map(|item| match item {
                Item::Usage(usage) => Item::Usage(Usage { span: piece, ..usage }),
                other => other,
            }));
        }
    }

    fn compacted(&mut self, event: &Event<'_>, out: &mut Vec<Item>) {
        if event.data.get_text("summaryContent").is_some_and(|text| !text.is_empty()) {
            out.push(self.message(event, Role::System, MessageKind::Summary));
        }
        // Its request is in no other record.
        if let Some(used) = event.data.get("compactionTokensUsed").filter(|used| used.is_object()) {
            let used = used.object();
            let model = used.get_text("model").map(|model| model.into_owned());
            let model = model.or_else(|| self.state.model.clone());
            out.extend(self.usage(event, (&event.id, model), tokens_of(&used)));
        }
    }

    fn row(&self, event: &Event<'_>, role: Role, kind: MessageKind) -> Message {
        let key = match event.id.is_empty() {
            true => ContentKey::of(&[b"event", self.session.as_bytes(), event.object.bytes()]),
            false => ContentKey::of(&[b"event", self.session.as_bytes(), event.id.as_bytes()]),
        };
        Message {
            session: event.session.clone(),
            span: event.span(),
            role,
            kind,
            at: event.at,
            key,
            inherited: false,
            model: None,
            tally: Tally::of(kind),
        }
    }

    pub(super) fn message(&self, event: &Event<'_>, role: Role, kind: MessageKind) -> Item {
        Item::Message(self.row(event, role, kind))
    }
}

impl Reader for EventReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        each_object(line, |at, object| self.event(offset + at, object, out))
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        if !self.state.read_any {
            return Vec::new();
        }
        let own = Facts { session: self.session.clone(), rank: 0, facts: self.state.facts.clone() };
        let agents = self.state.agents.iter().map(|(agent, known)| {
            let mut facts = known.clone();
            facts.parent = Some(self.session.to_string());
            facts.parent_kind = Some(LinkKind::SubAgent);
            // It runs where its session runs.
            facts.cwd = facts.cwd.take().or_else(|| self.state.facts.cwd.clone());
            facts.client_version.clone_from(&self.state.facts.client_version);
            facts.git_branch.clone_from(&self.state.facts.git_branch);
            Facts { session: agent_session(agent, &self.session).into(), rank: 0, facts }
        });
        std::iter::once(own).chain(agents).collect()
    }
}

/// The session of a sub-agent. Older clients name it by its call, which only its session knows.
fn agent_session(agent: &str, session: &str) -> String {
    let is_unique = agent.len() == 36 && agent.bytes().filter(|byte| *byte == b'-').count() == 4;
    if is_unique { agent.to_owned() } else { format!("{agent}-{session}") }
}

#[cfg(test)]
mod tests {
    use super::agent_session;

    #[test]
    fn agents_without_an_id_are_named_by_their_session_too() {
        assert_eq!(agent_session("call_1", "5e55"), "call_1-5e55");
        let id = "5e550000-0000-4000-8000-000000000001";
        assert_eq!(agent_session(id, "5e55"), id);
    }
}
