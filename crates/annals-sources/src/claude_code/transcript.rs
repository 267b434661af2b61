//! Reads transcripts row by row: merges answers, separates prompts from injected text, counts usage once.
//!
//! Longer than other files because it is one state machine: what a row means depends on the rows before it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calls::PendingCalls;
use super::drift::{each_unknown, each_unknown_state};
use super::kinds::{
    ATTACHMENTS, PLUMBING, PROGRESS, STATE_ROWS, SYSTEM_ROWS, agent_parent, is_housekeeping, row_key,
    version_number,
};
use super::naming::{Naming, RowName, is_independent, name_in};
use super::people::{
    OTHER_ORIGINS, Spoken, UserContent, command, message_words, opening, spoken, user_content,
};
use super::queue::PromptQueue;
use super::sidecars::snapshots;
use super::turns::{TurnState, turn_state};
use crate::home::title::{in_a_line, title_of};
use crate::json::{Json, Line, Object, Scan};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Document, Item, Landmark, Link, LinkKind, Message, MessageKind, Picodollars, Role,
    SessionFacts, Span, Summary, Tally, Time, Tokens, Usage, Verdict,
};

/// Clients from here on write no `summary` rows; 2.1.22 is the last that was seen to.
const NO_SUMMARIES: [u32; 3] = [2, 1, 60];

/// No answer arrives this soon after a prompt; copied rows do.
const COPYING_MICROS: i64 = 300_000;

/// How many answers may have lines to come.
const OPEN_ANSWERS: usize = 64;

pub(super) struct TranscriptReader {
    pub(super) session: Arc<str>,
    /// The file is a sub-agent's own.
    agent: bool,
    path: String,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// Some line was an object, or not even JSON: a file of nothing but the latter is no session.
    read_any: bool,
    garbage: bool,
    facts: SessionFacts,
    /// The first time in the file: rows from before it were copied into it.
    first_at: Option<Time>,
    answers: VecDeque<OpenAnswer>,
    ledger: PendingCalls,
    ai_title: Option<String>,
    custom_title: Option<String>,
    /// The first text that could serve as a title.
    prompt: Option<String>,
    /// What serves as one when nothing better comes: a command of the client, a message of another agent, the prompt that
    /// the client remembers as the last.
    command: Option<String>,
    agent_message: Option<String>,
    last_prompt: Option<String>,
    /// The first message of the session's own, and the first with those that were copied into it.
    first_own: Option<Time>,
    first_any: Option<Time>,
    linked: bool,
    /// A row under the file's own name was there. What has another name before it was copied, after it was cleared.
    own: bool,
    /// Prompts since the last answer, where a resume may have copied it.
    /// Saved under its first name.
    #[serde(rename = "asked")]
    unanswered: VecDeque<UnansweredPrompt>,
    pub(super) queue: PromptQueue,
    naming: Naming,
}

/// Words that have no answer yet.
#[derive(Serialize, Deserialize)]
struct UnansweredPrompt {
    offset: u64,
    words: ContentKey,
    at: Option<Time>,
    tally: i64,
}

/// An answer that may have further lines.
#[derive(Serialize, Deserialize)]
struct OpenAnswer {
    id: ContentKey,
    offset: u64,
    counted: bool,
}

/// One row with what its envelope says.
pub(super) struct Row<'a> {
    pub object: Object<'a>,
    pub span: Span,
    pub at: Option<Time>,
    pub inherited: bool,
    pub sidechain: bool,
}

impl TranscriptReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> TranscriptReader {
        let mut state: State = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let session = state.naming.of_file(&file.path);
        let path = file.path.clone();
        let mut reader = TranscriptReader { session: "".into(), agent: false, path, state };
        reader.belong_to(&session);
        reader
    }

    fn belong_to(&mut self, session: &str) {
        self.session = session.into();
        self.agent = session.starts_with("agent-");
        let facts = &mut self.state.facts;
        if self.agent && facts.parent.is_none() {
            facts.parent = agent_parent(&self.path);
            facts.parent_kind = facts.parent.as_ref().map(|_| LinkKind::SubAgent);
        }
    }

    /// Finds out which session the file is, from the first row that says so; rows before it wait.
    fn named_row(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        match name_in(&object, self.agent) {
            RowName::Named(session) => {
                self.belong_to(&session);
                self.state.naming.name = Some(session);
            }
            RowName::Nameless => {}
            RowName::Undecided => {
                let mut items = Vec::new();
                let bytes = object.bytes();
                if self.state.naming.hold(offset, bytes) {
                    let verdict = self.row(offset, object, &mut items);
                    out.extend(items.into_iter().filter(is_independent));
                    return verdict;
                }
            }
        }
        self.state.naming.decided = true;
        for (offset, row) in std::mem::take(&mut self.state.naming.waiting) {
            let mut items = Vec::new();
            for (at, object) in Scan::new(row.as_bytes()).line().objects().flatten() {
                self.row(offset + at as u64, object, &mut items);
            }
            out.extend(items.into_iter().filter(|item| !is_independent(item)));
        }
        self.row(offset, object, out)
    }

    fn row(&mut self, offset: u64, object: Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let span = Span { offset, length: object.bytes().len() as u64 };
        let kind = object.get_text("type").unwrap_or_default().into_owned();
        let at = object.get_text("timestamp").and_then(|text| Time::parse(&text));
        self.state.first_at = self.state.first_at.or(at);
        let foreign =
            !self.agent && object.get_text("sessionId").is_some_and(|session| *session != *self.session);
        let earlier = at.zip(self.state.first_at).is_some_and(|(at, first)| at < first);
        let sidechain = object.get("isSidechain").and_then(Json::boolean) == Some(true);
        let forked = object.get("forkedFrom").is_some_and(|from| from.is_object());
        let inherited = self.agent || foreign || earlier || forked;
        let row = Row { object, span, at, inherited, sidechain };
        self.note(&row, foreign, out);
        self.landmark(&row, out);
        self.note_turn(&kind, &row);
        if matches!(kind.as_str(), "user" | "assistant" | "system" | "attachment" | "progress") {
            each_unknown(&row.object, &kind, &mut |kind| out.push(Item::Drift(kind)));
        } else {
            each_unknown_state(&row.object, &kind, &mut |kind| out.push(Item::Drift(kind)));
        }
        match kind.as_str() {
            "user" => self.user(&row, out),
            "assistant" => self.assistant(&row, out),
            "system" => self.system(&row, out),
            "attachment" => self.attachment(&row, out),
            _ => self.state_row(&kind, &row, out),
        }
    }

    /// Facts that rows carry along.
    fn note(&mut self, row: &Row<'_>, foreign: bool, out: &mut Vec<Item>) {
        let object = &row.object;
        let session = object.get_text("sessionId");
        let facts = &mut self.state.facts;
        let text =
            |name: &str| object.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
        if !row.inherited || facts.cwd.is_none() {
            facts.cwd = facts.cwd.take().or_else(|| text("cwd"));
        }
        if let Some(branch) = text("gitBranch").filter(|branch| branch != "HEAD") {
            facts.git_branch = Some(branch);
        }
        if let Some(version) = text("version") {
            gather(facts, "versions", &version);
            facts.client_version = Some(version);
        }
        facts.entrypoint = facts.entrypoint.take().or_else(|| text("entrypoint"));
        for (name, fact) in [("userType", "user_type"), ("slug", "slug"), ("agentId", "agent_id")] {
            if let Some(value) = text(name).filter(|_| !facts.native.contains_key(fact)) {
                facts.native.insert(fact.into(), Value::from(value));
            }
        }
        if let Some(mode) = text("permissionMode") {
            gather(facts, "permission_modes", &mode);
        }
        if row.at.is_some() {
            facts.started_at = [facts.started_at, row.at].into_iter().flatten().min();
            facts.last_at = facts.last_at.max(row.at);
        }
        let Some(session) = session else { return };
        if let Some(origin) = object.get("forkedFrom").and_then(|from| from.get_text("sessionId"))
            && facts.parent.is_none()
        {
            facts.parent = Some(origin.into_owned());
            facts.parent_kind = Some(LinkKind::Fork);
        }
        if self.agent && facts.parent.is_none() {
            facts.parent = Some(session.clone().into_owned());
            facts.parent_kind = Some(LinkKind::SubAgent);
        }
        if foreign {
            gather(facts, "session_ids", &session);
            if facts.parent.is_none() && !self.state.own && object.get("uuid").is_some() {
                facts.parent = Some(session.into_owned());
                facts.parent_kind = Some(LinkKind::Fork);
            }
        } else if object.get("uuid").is_some() {
            self.state.own = true;
        }
        if let Some(parent) = facts.parent.clone().filter(|_| !self.state.linked) {
            let kind = facts.parent_kind.unwrap_or(LinkKind::Fork);
            self.state.linked = true;
            out.push(Item::Link(Link { session: self.session.clone(), other: parent, kind, position: None }));
        }
    }

    /// Rows of sub-agents in an older file say nothing about the session.
    fn note_turn(&mut self, kind: &str, row: &Row<'_>) {
        let facts = &mut self.state.facts;
        match turn_state(kind, &row.object).filter(|_| self.agent || !row.sidechain) {
            Some(TurnState::Works) => facts.ended_at = None,
            Some(TurnState::Ended) => facts.ended_at = row.at.or(facts.last_at),
            None => {}
        }
    }

    fn user(&mut self, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let message = row.object.get("message").map(|message| message.object());
        let content = message.as_ref().and_then(|message| message.get("content"));
        let mut beside_results = false;
        let spoken = match user_content(&row.object, content) {
            UserContent::Results(typed) => {
                let parent = self.state.facts.parent.clone().filter(|_| self.agent);
                let folder = parent.as_deref().unwrap_or(&self.session);
                let matched = self.state.ledger.results(&self.session, folder, row, content, out);
                beside_results = true;
                match typed {
                    Some(spoken) => spoken,
                    None => {
                        if !matched {
                            out.push(self.message(row, Role::User, MessageKind::Result, Tally::Nothing));
                        }
                        return Verdict::Kept("user/tool_result".into());
                    }
                }
            }
            UserContent::Text(spoken) => spoken,
        };
        let task = self.agent || row.sidechain;
        let queued = self.repeats_queue(&spoken, out);
        let Spoken { kind, words } = spoken;
        if kind == MessageKind::Prompt && !queued && !task && !beside_results && !row.inherited {
            self.typed_at_rest();
        }
        let flag = |name: &str| row.object.get(name).and_then(Json::boolean) == Some(true);
        let record = !flag("isMeta") && !flag("isCompactSummary");
        match kind {
            MessageKind::Prompt => self.note_prompt(&words),
            MessageKind::Command => self.note_command(&words),
            MessageKind::Agent => self.note_agent_message(&words),
            _ => {}
        }
        if matches!(kind, MessageKind::Prompt | MessageKind::Command | MessageKind::Agent) {
            self.note_message_time(row);
        }
        let (kind, tally) = match kind {
            // What starts a sub-agent was written by the assistant, not by the person.
            MessageKind::Prompt if task => (MessageKind::Agent, Tally::Record),
            // The row counts as the results that it holds.
            MessageKind::Prompt if beside_results => (kind, Tally::Aside),
            MessageKind::Prompt => (kind, Tally::Message),
            _ if record => (kind, Tally::Record),
            _ => (kind, Tally::Nothing),
        };
        out.push(self.message(row, Role::User, kind, tally));
        if self.renames(row) {
            if self.state.unanswered.len() >= OPEN_ANSWERS {
                self.state.unanswered.pop_front();
            }
            let (offset, words) = (row.span.offset, ContentKey::of(&[opening(content).as_bytes()]));
            let (at, tally) = (row.at, tally.stored());
            self.state.unanswered.push_back(UnansweredPrompt { offset, words, at, tally });
        }
        Verdict::Kept(format!("user/{}", kind.name()))
    }

    /// Clients of 2025 wrote everything again when a session was resumed, some with new ids for all but the answers.
    fn renames(&self, row: &Row<'_>) -> bool {
        let version = row.object.get_text("version").unwrap_or_default();
        // 1.0.35 and 1.0.44 gave new ids or kept them, 1.0.128 kept them.
        let old = version_number(&version).is_some_and(|version| version < [1, 0, 100]);
        old && !self.agent && !row.sidechain
    }

    /// Words are known by the answer that they led to and their place before it: that stays when they are copied.
    fn rekey_prompts(&mut self, row: &Row<'_>, answer: &str, out: &mut Vec<Item>) {
        let requested = row.object.get("requestId").is_some();
        for (number, prompt) in (0_u64..).zip(std::mem::take(&mut self.state.unanswered).into_iter().rev()) {
            let words = prompt.words.hex();
            let key = ContentKey::of(&[b"asked", answer.as_bytes(), words.as_bytes(), &number.to_le_bytes()]);
            out.push(Item::Rekey { session: self.session.clone(), offset: prompt.offset, key });
            // A copy with new ids has all of its rows from one moment, and its answers name no request. What is not such
            // a copy has kept its ids, and counts once.
            let waited = prompt
                .at
                .zip(row.at)
                .is_none_or(|(typed, at)| at.micros() - typed.micros() >= COPYING_MICROS);
            if requested || waited {
                let (session, tally) = (self.session.clone(), Tally::from_stored(prompt.tally));
                out.push(Item::Recount { session, offset: prompt.offset, tally });
            }
        }
    }

    pub(super) fn note_prompt(&mut self, text: &str) {
        if self.state.prompt.is_none() && text.trim() != "Warmup" {
            self.state.prompt = Some(title_of(text)).filter(|line| !line.is_empty());
        }
    }

    /// A command that gives work to the assistant is as good as a prompt; `/clear` and the like are not.
    fn note_command(&mut self, text: &str) {
        let Some(command) = command(text) else { return };
        let title = if is_housekeeping(&command) { &mut self.state.command } else { &mut self.state.prompt };
        title.get_or_insert_with(|| title_of(&command));
    }

    fn note_message_time(&mut self, row: &Row<'_>) {
        self.state.first_any = self.state.first_any.or(row.at);
        if !row.inherited {
            self.state.first_own = self.state.first_own.or(row.at);
        }
    }

    fn note_agent_message(&mut self, text: &str) {
        if self.state.agent_message.is_none() {
            self.state.agent_message = Some(title_of(&message_words(text))).filter(|line| !line.is_empty());
        }
    }

    fn assistant(&mut self, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(message) = row.object.get("message").map(|message| message.object()) else {
            return Verdict::Unknown("assistant without message".into());
        };
        let model = message.get_text("model");
        let synthetic = model.as_deref() == Some("<synthetic>");
        let id = message.get_text("id").or_else(|| row.object.get_text("uuid")).unwrap_or_default();
        let key = ContentKey::of(&[b"answer", id.as_bytes()]);
        let model: Option<Arc<str>> = model.filter(|_| !synthetic).map(|model| model.as_ref().into());
        if let Some(model) = &model {
            let models = &mut self.state.facts.models;
            if !models.iter().any(|known| **known == **model) {
                models.push(model.to_string());
            }
        }
        let known = self.state.answers.iter().rposition(|answer| answer.id == key);
        let offset = match known {
            Some(at) => {
                let message = self.state.answers[at].offset;
                out.push(Item::Extend { session: self.session.clone(), message, span: row.span });
                message
            }
            None => {
                self.take_up_queue(row, out);
                if !synthetic && self.renames(row) {
                    self.rekey_prompts(row, &id, out);
                }
                let error = row.object.get("isApiErrorMessage").and_then(Json::boolean) == Some(true);
                let (kind, tally) = match (synthetic || error, row.sidechain && !self.agent) {
                    (true, _) => (MessageKind::Notice, Tally::Record),
                    (false, true) => (MessageKind::Agent, Tally::Record),
                    (false, false) => (MessageKind::Answer, Tally::Message),
                };
                self.note_message_time(row);
                out.push(Item::Message(Message {
                    session: self.session.clone(),
                    span: row.span,
                    role: Role::Assistant,
                    kind,
                    at: row.at,
                    key,
                    inherited: row.inherited,
                    model: model.clone(),
                    tally,
                }));
                if self.state.answers.len() >= OPEN_ANSWERS {
                    self.state.answers.pop_front();
                }
                let offset = row.span.offset;
                self.state.answers.push_back(OpenAnswer { id: key, offset, counted: false });
                offset
            }
        };
        let at = known.unwrap_or(self.state.answers.len() - 1);
        if let Some(usage) = message.get("usage").filter(|_| !synthetic) {
            let again = std::mem::replace(&mut self.state.answers[at].counted, true);
            let key = ContentKey::of(&[b"usage", id.as_bytes()]);
            out.push(self.usage(row, usage, key, offset, again, model.clone()));
            // What the client reckoned before does not cover this answer.
            self.state.facts.cost_usd = None;
        }
        let content = message.get("content");
        self.state.ledger.calls(&self.session, row, content, offset, model, out);
        Verdict::Kept("assistant".into())
    }

    fn usage(
        &self,
        row: &Row<'_>,
        usage: Json<'_>,
        key: ContentKey,
        offset: u64,
        again: bool,
        model: Option<Arc<str>>,
    ) -> Item {
        let usage = usage.object();
        let number = |name: &str| usage.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let written = number("cache_creation_input_tokens");
        let hour =
            usage.get("cache_creation").and_then(|split| split.get_integer("ephemeral_1h_input_tokens"));
        let hour = hour.unwrap_or(0).clamp(0, written);
        let details = usage.get("output_tokens_details");
        Item::Usage(Usage {
            session: self.session.clone(),
            // One answer, one place: later lines of it bring newer numbers.
            span: Span { offset, length: row.span.length },
            at: row.at,
            key,
            inherited: row.inherited,
            model,
            again,
            tokens: Tokens {
                input: number("input_tokens"),
                output: number("output_tokens"),
                cache_read: number("cache_read_input_tokens"),
                cache_write: written - hour,
                cache_write_hour: hour,
                reasoning: details
                    .and_then(|details| details.get_integer("thinking_tokens"))
                    .unwrap_or(0)
                    .clamp(0, 1 << 40),
            },
            // Written by the first versions only.
            cost: row.object.get("costUSD").and_then(|cost| Picodollars::parse(cost.bytes())),
        })
    }

    fn system(&mut self, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let subtype = row.object.get_text("subtype").unwrap_or_default();
        let is_distinctive = matches!(
            subtype.as_ref(),
            "compact_boundary"
                | "local_command"
                | "api_error"
                | "informational"
                | "away_summary"
                | "memory_saved"
        ) || subtype.starts_with("model_")
            || subtype.is_empty();
        if subtype == "local_command" {
            let spoken = spoken(row.object.get("content"));
            self.repeats_queue(&spoken, out);
            self.note_command(&spoken.words);
        }
        if is_distinctive {
            out.push(self.message(row, Role::System, MessageKind::Notice, Tally::Nothing));
        }
        self.record(row, out);
        if subtype.is_empty() {
            return Verdict::Kept("system".into());
        }
        let known = SYSTEM_ROWS.contains(&subtype.as_ref());
        if !known && !is_distinctive {
            out.push(self.message(row, Role::System, MessageKind::Notice, Tally::Nothing));
        }
        verdict(known, format!("system/{subtype}"))
    }

    fn attachment(&mut self, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let attachment = row.object.get("attachment").map(|attachment| attachment.object());
        let kind = attachment.as_ref().and_then(|attachment| attachment.get_text("type")).unwrap_or_default();
        if let Some(attachment) = attachment.as_ref().filter(|_| kind == "queued_command") {
            self.queued(row, attachment, out);
        }
        self.record(row, out);
        let known = ATTACHMENTS.contains(&kind.as_ref());
        if !known {
            out.push(self.message(row, Role::System, MessageKind::Notice, Tally::Nothing));
        }
        verdict(known, format!("attachment/{kind}"))
    }

    /// A prompt typed while the assistant was busy may be nowhere else.
    fn queued(&mut self, row: &Row<'_>, attachment: &Object<'_>, out: &mut Vec<Item>) {
        let spoken = spoken(attachment.get("prompt"));
        self.repeats_queue(&spoken, out);
        let Spoken { kind, words } = spoken;
        let origin = attachment.get("origin").and_then(|origin| origin.get_text("kind"));
        let typed = attachment.get_text("commandMode").is_none_or(|mode| mode == "prompt")
            && origin.is_none_or(|origin| !OTHER_ORIGINS.contains(&origin.as_ref()));
        let kind = if typed { kind } else { MessageKind::Agent };
        let Item::Message(mut message) = self.message(row, Role::User, kind, Tally::Nothing) else { return };
        if kind == MessageKind::Prompt && !self.agent {
            message.tally = Tally::Aside;
            self.note_prompt(&words);
        }
        if let Some(source) = attachment.get_text("source_uuid") {
            // If it was sent as a row after all, that row has this identity too.
            message.key = row_key(&source);
        }
        out.push(Item::Message(message));
    }

    /// Rows without a place in the chain: titles, modes, snapshots, queue, plumbing.
    fn state_row(&mut self, kind: &str, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let object = &row.object;
        let text = |name: &str| object.get_text(name).map(|text| text.into_owned());
        match kind {
            "summary" => {
                if let (Some(summary), Some(leaf)) = (text("summary"), text("leafUuid")) {
                    let (offset, row) = (row.span.offset, row_key(&leaf));
                    out.push(Item::Summary(Summary { row, offset, text: in_a_line(&summary) }));
                }
            }
            "custom-title" => self.state.custom_title = text("customTitle"),
            "last-prompt" => {
                let last = text("lastPrompt").map(|text| title_of(&text)).filter(|text| !text.is_empty());
                self.state.last_prompt = self.state.last_prompt.take().or(last);
            }
            "ai-title" => self.state.ai_title = text("aiTitle"),
            "cost-state" => {
                let complete = object.get("hasUnknownModelCost").and_then(Json::boolean) != Some(true);
                let total = object.get("totalCostUSD").and_then(|total| total.value().as_f64());
                self.state.facts.cost_usd = total.filter(|_| complete);
            }
            "permission-mode" => {
                if let Some(mode) = text("permissionMode") {
                    gather(&mut self.state.facts, "permission_modes", &mode);
                }
            }
            "worktree-state" => {
                if let Some(state) = object.get("worktreeSession") {
                    self.state.facts.native.insert("worktree".into(), state.value());
                }
            }
            "continued-in" => {
                if let Some(other) = text("continuedInSessionId") {
                    self.state.facts.native.insert("continued_in".into(), Value::from(other));
                }
            }
            "file-history-snapshot" | "file-history-delta" => {
                for found in snapshots(object) {
                    let key = format!("{}/{}", self.session, found.backup);
                    let mut document = self.document("file_snapshots", key, row, found.content);
                    document.at = found.at.or(row.at);
                    out.push(Item::Document(document));
                }
            }
            _ => {}
        }
        if kind == "queue-operation" {
            self.record(row, out);
            return self.queue_operation(row, out);
        }
        if PLUMBING.contains(&kind) {
            return Verdict::Kept(kind.into());
        }
        self.record(row, out);
        let progress =
            object.get("data").and_then(|data| data.get_text("type")).filter(|_| kind == "progress");
        let (known, kind) = match progress {
            Some(progress) => (PROGRESS.contains(&progress.as_ref()), format!("progress/{progress}")),
            None if kind.is_empty() => (false, "no type".to_owned()),
            None => (STATE_ROWS.contains(&kind), kind.to_owned()),
        };
        if !known {
            // Unknown: shown unchanged.
            out.push(self.message(row, Role::System, MessageKind::Notice, Tally::Nothing));
        }
        verdict(known, kind)
    }

    /// Every row that is no message has a record of its own, typed as found.
    fn record(&self, row: &Row<'_>, out: &mut Vec<Item>) {
        // Forks repeat rows with their ids.
        let key = match row.object.get_text("uuid") {
            Some(uuid) => format!("{}:{uuid}", self.session),
            None => format!("{}:{}", self.session, row.span.offset),
        };
        let bytes = row.object.bytes();
        let ends = [&bytes[..bytes.len().min(4096)], &bytes[bytes.len().saturating_sub(4096)..]].concat();
        let content = ContentKey::of(&[&bytes.len().to_le_bytes(), &ends]);
        out.push(Item::Document(self.document("attachments", key, row, content)));
    }

    fn document(&self, stream: &'static str, key: String, row: &Row<'_>, content: ContentKey) -> Document {
        let session = Some(self.session.clone());
        Document { stream, key, session, at: row.at, span: row.span, content }
    }

    /// Summaries in other files name rows by their id; only older clients write such.
    fn landmark(&self, row: &Row<'_>, out: &mut Vec<Item>) {
        let version = row.object.get_text("version").unwrap_or_default();
        if self.agent || version_number(&version).is_some_and(|version| version >= NO_SUMMARIES) {
            return;
        }
        if let Some(uuid) = row.object.get_text("uuid") {
            let (session, row_key) = (self.session.clone(), row_key(&uuid));
            out.push(Item::Landmark(Landmark { session, row: row_key, inherited: row.inherited }));
        }
    }

    pub(super) fn message(&self, row: &Row<'_>, role: Role, kind: MessageKind, tally: Tally) -> Item {
        let key = match row.object.get_text("uuid") {
            Some(uuid) => row_key(&uuid),
            None => ContentKey::of(&[self.session.as_bytes(), &row.span.offset.to_le_bytes()]),
        };
        Item::Message(Message {
            session: self.session.clone(),
            span: row.span,
            role,
            kind,
            at: row.at,
            key,
            inherited: row.inherited,
            model: None,
            tally,
        })
    }
}

impl Reader for TranscriptReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let verdict = each_object(line, |at, object| {
            self.state.read_any = true;
            match self.state.naming.decided {
                true => self.row(offset + at, object, out),
                false => self.named_row(offset + at, object, out),
            }
        });
        self.state.garbage |= matches!(verdict, Verdict::Malformed(_));
        verdict
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        let mut facts = self.state.facts.clone();
        facts.name.clone_from(&self.state.custom_title);
        facts.title.clone_from(&self.state.ai_title);
        facts.first_message_at = self.state.first_own.or(self.state.first_any);
        let State { prompt, command, agent_message, last_prompt, .. } = &self.state;
        let titles = [prompt, last_prompt, agent_message, command];
        facts.first_prompt = titles.into_iter().flatten().next().cloned();
        let session = self.session.clone();
        let is_session = self.state.naming.decided && (self.state.read_any || !self.state.garbage);
        is_session.then_some(Facts { session, rank: 0, facts }).into_iter().collect()
    }
}

fn verdict(known: bool, kind: String) -> Verdict {
    if known { Verdict::Kept(kind) } else { Verdict::Unknown(kind) }
}

/// Adds a value to a list of facts, once.
fn gather(facts: &mut SessionFacts, name: &str, value: &str) {
    let list = facts.native.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(items) = list
        && items.len() < 64
        && !items.iter().any(|item| item == value)
    {
        items.push(Value::from(value));
    }
}
