//! Reads conversations: a line for the session, then one for each message with its parts.
//!
//! A fork copies all messages under new ids, so that messages are known by what does not change: their time, their
//! text, and what they answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::row::{Row, rows_in};
use super::usage::{Counting, cost_of, is_finish};
use crate::home::title::title_of;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{
    ContentKey, Document, Item, Link, LinkKind, Message, MessageKind, Picodollars, Role, SessionFacts, Span,
    Tally, Time, Usage, Verdict,
};

/// How many messages may still be answered.
const OPEN_MESSAGES: usize = 4_096;

/// Fields of messages and types of parts that are known.
const MESSAGE: &[&str] = &[
    "id",
    "sessionID",
    "role",
    "time",
    "agent",
    "model",
    "summary",
    "system",
    "tools",
    "format",
    "variant",
    "parentID",
    "mode",
    "path",
    "modelID",
    "providerID",
    "cost",
    "tokens",
    "finish",
    "error",
    "structured",
    "metadata",
    "parts",
];
const PARTS: &[&str] = &[
    "text",
    "reasoning",
    "tool",
    "step-start",
    "step-finish",
    "patch",
    "file",
    "agent",
    "subtask",
    "compaction",
    "retry",
    "snapshot",
];

pub(super) struct ConversationReader {
    pub(super) session: Arc<str>,
    /// It is made of files, which a database may have taken over.
    is_of_files: bool,
    pub(super) state: State,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) facts: SessionFacts,
    read_any: bool,
    /// Messages before this time are copies, if the session is a fork.
    forked_at: Option<Time>,
    is_child: bool,
    /// Keys of messages by their ids.
    messages: BTreeMap<String, ContentKey>,
}

/// A message with its parts, on one line of the document.
pub(super) struct Spoken<'a> {
    pub(super) row: Row<'a>,
    pub(super) parts: Vec<Row<'a>>,
    pub(super) key: ContentKey,
    pub(super) at: Option<Time>,
    pub(super) inherited: bool,
    pub(super) model: Option<Arc<str>>,
    pub(super) base: Base<'a>,
}

/// The bytes of the line, and where it starts in the file.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    bytes: &'a [u8],
    pub(super) offset: u64,
}

impl Base<'_> {
    pub(super) fn span(self, piece: &[u8]) -> Span {
        let within = piece.as_ptr() as usize - self.bytes.as_ptr() as usize;
        Span { offset: self.offset + within as u64, length: piece.len() as u64 }
    }

    fn whole(self) -> Span {
        Span { offset: self.offset, length: self.bytes.len() as u64 }
    }
}

impl ConversationReader {
    pub fn new(file: &FileContext, saved: Option<&str>) -> ConversationReader {
        let state = saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default();
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let session = name.strip_suffix(".jsonl").unwrap_or(name).into();
        let is_of_files = file.path.starts_with("together/");
        ConversationReader { session, is_of_files, state }
    }

    fn line(&mut self, base: Base<'_>, line: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        self.state.read_any = true;
        if let Some(session) = line.get("session").filter(|session| session.is_object()) {
            self.header(&Row::new(session), out);
            if let Some(list) = line.get("todo").filter(|list| list.is_array()) {
                out.push(Item::Document(Document {
                    stream: "todos",
                    key: match self.is_of_files {
                        true => format!("files/{}", self.session),
                        false => self.session.to_string(),
                    },
                    session: Some(self.session.clone()),
                    at: self.state.facts.last_at,
                    span: base.span(list.bytes()),
                    content: ContentKey::of(&[list.bytes()]),
                }));
            }
            return Verdict::Kept("session".into());
        }
        if line.get("unreadable").is_some() {
            return Verdict::Malformed("not JSON".into());
        }
        let Some(message) = line.get("message").filter(|message| message.is_object()) else {
            let parts = line.get("part").is_some_and(|parts| parts.is_array());
            return match parts {
                true => Verdict::Skipped("parts of a deleted message".into()),
                false => Verdict::Unknown("line without a message".into()),
            };
        };
        let row = Row::new(message);
        let mut parts = rows_in(line, "part");
        // The earliest clients have the parts in the message.
        parts.extend(rows_in(&row.body, "parts"));
        self.spoken(base, row, parts, out)
    }

    fn header(&mut self, row: &Row<'_>, out: &mut Vec<Item>) {
        let facts = &mut self.state.facts;
        let started = row.time("created", "time_created");
        facts.cwd = row.column(&["directory"]).map(|cwd| cwd.into_owned());
        facts.client_version = row.column(&["version"]).map(|version| version.into_owned());
        facts.started_at = started;
        facts.last_at = row.time("updated", "time_updated");
        facts.archived = row.time("archived", "time_archived").map(|_| true);
        for (name, names) in [
            ("slug", ["slug", "slug"]),
            ("project_id", ["projectID", "project_id"]),
            ("agent", ["agent", "agent"]),
        ] {
            if let Some(text) = row.column(&names) {
                facts.native.insert(name.into(), Value::from(text.into_owned()));
            }
        }
        let title = row.column(&["title"]).unwrap_or_default();
        let is_made_up = ["New session - ", "Child session - "].iter().any(|start| title.starts_with(start));
        facts.title = Some(title.to_string()).filter(|title| !is_made_up && !title.is_empty());
        self.state.forked_at = started.filter(|_| is_fork(&title));
        if let Some(parent) = row.column(&["parentID", "parent_id"]) {
            self.state.is_child = true;
            facts.parent = Some(parent.to_string());
            facts.parent_kind = Some(LinkKind::SubAgent);
            let (session, other) = (self.session.clone(), parent.into_owned());
            out.push(Item::Link(Link { session, other, kind: LinkKind::SubAgent, position: None }));
        }
    }

    fn spoken(&mut self, base: Base<'_>, row: Row<'_>, parts: Vec<Row<'_>>, out: &mut Vec<Item>) -> Verdict {
        for (name, _) in row.body.fields() {
            if !MESSAGE.iter().any(|known| known.as_bytes() == *name) && !is_column(name) {
                out.push(Item::Drift(format!("message field {}", String::from_utf8_lossy(name))));
            }
        }
        for part in &parts {
            let kind = part.text("type").unwrap_or_default();
            if !PARTS.contains(&kind.as_ref()) {
                out.push(Item::Drift(format!("part {kind}")));
            }
        }
        let at = row.time("created", "time_created");
        let role = row.text("role").unwrap_or_default().into_owned();
        let inherited = at.zip(self.state.forked_at).is_some_and(|(at, forked)| at < forked);
        let key = self.key_of(&row, &parts, &role, at);
        if let Some(id) = row.id() {
            if self.state.messages.len() >= OPEN_MESSAGES {
                // Ids rise in time.
                self.state.messages.pop_first();
            }
            self.state.messages.insert(id.into_owned(), key);
        }
        let model = row.text("modelID").map(|model| model.as_ref().into());
        let spoken = Spoken { row, parts, key, at, inherited, model, base };
        let facts = &mut self.state.facts;
        facts.last_at = facts.last_at.max(at);
        match role.as_str() {
            "user" => self.prompt(&spoken, out),
            "assistant" => self.answer(&spoken, out),
            other => {
                out.push(self.message(&spoken, Role::System, MessageKind::Notice));
                return Verdict::Unknown(format!("message/{other}"));
            }
        }
        Verdict::Kept(format!("message/{role}"))
    }

    fn key_of(&self, row: &Row<'_>, parts: &[Row<'_>], role: &str, at: Option<Time>) -> ContentKey {
        let at = at.map_or(0, Time::micros).to_le_bytes();
        if role == "user" {
            let texts = parts.iter().filter_map(|part| part.get("text")).map(|text| text.bytes());
            let texts: Vec<&[u8]> = texts.collect();
            return ContentKey::of(&[&[b"prompt".as_slice(), &at], texts.as_slice()].concat());
        }
        let parent = row.text("parentID").unwrap_or_default();
        let answered = self.state.messages.get(parent.as_ref()).map(|key| key.stored().to_le_bytes());
        let answered = answered.unwrap_or_default();
        let agent = row.text("mode").or_else(|| row.text("agent")).unwrap_or_default();
        // Without the message that it answers, its session keeps it apart.
        let session = if answered == [0; 8] { self.session.as_bytes() } else { &[] };
        ContentKey::of(&[b"answer", role.as_bytes(), &at, &answered, agent.as_bytes(), session])
    }

    fn prompt(&mut self, spoken: &Spoken<'_>, out: &mut Vec<Item>) {
        let is_kind = |part: &Row<'_>, kind: &str| part.text("type").as_deref() == Some(kind);
        let typed: Vec<String> = spoken
            .parts
            .iter()
            .filter(|part| is_kind(part, "text") && !is_synthetic(part))
            .filter_map(|part| part.text("text").map(|text| text.into_owned()))
            .collect();
        let has = |kind: &str| spoken.parts.iter().any(|part| is_kind(part, kind));
        let kind = if has("compaction") {
            MessageKind::Notice
        } else if !typed.is_empty() {
            if self.state.is_child { MessageKind::Agent } else { MessageKind::Prompt }
        } else if has("subtask") {
            MessageKind::Command
        } else {
            MessageKind::Injected
        };
        let facts = &mut self.state.facts;
        facts.ended_at = None;
        if matches!(kind, MessageKind::Prompt | MessageKind::Agent) {
            facts.first_message_at = facts.first_message_at.or(spoken.at);
            let title = Some(title_of(&typed.join("\n"))).filter(|title| !title.is_empty());
            facts.first_prompt = facts.first_prompt.take().or(title);
        }
        let tally = if kind == MessageKind::Agent { Tally::Record } else { Tally::of(kind) };
        let role = if kind == MessageKind::Notice { Role::System } else { Role::User };
        out.push(Item::Message(Message { tally, ..self.row(spoken, role, kind) }));
    }

    fn answer(&mut self, spoken: &Spoken<'_>, out: &mut Vec<Item>) {
        let is_summary = spoken.row.get("summary").and_then(Json::boolean) == Some(true);
        let kind = if is_summary { MessageKind::Summary } else { MessageKind::Answer };
        let facts = &mut self.state.facts;
        facts.first_message_at = facts.first_message_at.or(spoken.at);
        if let Some(model) = spoken.model.as_deref()
            && !facts.models.iter().any(|known| known == model)
        {
            facts.models.push(model.to_owned());
        }
        if facts.cwd.is_none() {
            let cwd = spoken.row.get("path").and_then(|path| path.get_text("cwd"));
            facts.cwd = cwd.map(|cwd| cwd.into_owned());
        }
        if let Some(provider) = spoken.row.get("providerID") {
            facts.native.insert("provider".into(), provider.value());
        }
        let completed = spoken.row.time("completed", "");
        let is_over = spoken.row.text("finish").is_none_or(|finish| finish != "tool-calls");
        facts.ended_at = completed.filter(|_| is_over);
        facts.last_at = facts.last_at.max(completed);
        out.push(self.message(spoken, Role::Assistant, kind));
        self.count(spoken, out);
        for (number, part) in spoken.parts.iter().enumerate() {
            if part.text("type").as_deref() == Some("tool") {
                self.call(spoken, number, part, out);
            }
        }
    }

    /// The steps of a message have its tokens; the oldest clients note only those of the last step on the message.
    fn count(&self, spoken: &Spoken<'_>, out: &mut Vec<Item>) {
        let provider = spoken.row.text("providerID").unwrap_or_default();
        let version = self.state.facts.client_version.as_deref();
        let counting = Counting { version, provider: &provider };
        let mut steps: Vec<(&[u8], Json<'_>, Option<Picodollars>)> = spoken
            .parts
            .iter()
            .filter(|part| is_finish(part))
            .filter_map(|part| Some((part.bytes(), part.get("tokens")?, cost_of(part))))
            .collect();
        if steps.is_empty() {
            steps.extend(spoken.row.get("tokens").map(|tokens| (spoken.row.bytes(), tokens, None)));
        }
        if steps.iter().all(|(_, _, cost)| cost.is_none())
            && let Some((_, _, cost)) = steps.last_mut()
        {
            *cost = cost_of(&spoken.row);
        }
        for (number, (bytes, tokens, cost)) in steps.into_iter().enumerate() {
            let tokens = counting.tokens(&tokens.object());
            if tokens.total() == 0 && cost.is_none() {
                continue;
            }
            out.push(Item::Usage(Usage {
                session: self.session.clone(),
                span: spoken.base.span(bytes),
                at: spoken.at,
                key: ContentKey::of(&[
                    b"usage",
                    &spoken.key.stored().to_le_bytes(),
                    &(number as u64).to_le_bytes(),
                ]),
                inherited: spoken.inherited,
                model: spoken.model.clone(),
                again: false,
                tokens,
                cost,
            }));
        }
    }

    fn row(&self, spoken: &Spoken<'_>, role: Role, kind: MessageKind) -> Message {
        Message {
            session: self.session.clone(),
            span: spoken.base.whole(),
            role,
            kind,
            at: spoken.at,
            key: spoken.key,
            inherited: spoken.inherited,
            model: spoken.model.clone(),
            tally: Tally::of(kind),
        }
    }

    fn message(&self, spoken: &Spoken<'_>, role: Role, kind: MessageKind) -> Item {
        Item::Message(self.row(spoken, role, kind))
    }
}

impl Reader for ConversationReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        each_object(line, |at, object| {
            let base = Base { bytes: object.bytes(), offset: offset + at };
            self.line(base, &object, out)
        })
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.state).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        let (session, facts) = (self.session.clone(), self.state.facts.clone());
        self.state.read_any.then_some(Facts { session, rank: 0, facts }).into_iter().collect()
    }
}

/// Text that the client wrote, or that the model does not see.
pub fn is_synthetic(part: &Row<'_>) -> bool {
    ["synthetic", "ignored"].iter().any(|name| part.get(name).and_then(Json::boolean) == Some(true))
}

/// `… (fork #2)`
fn is_fork(title: &str) -> bool {
    let number = title.rsplit_once(" (fork #").and_then(|(_, rest)| rest.strip_suffix(')'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_column(name: &[u8]) -> bool {
    matches!(name, b"session_id" | b"time_created" | b"time_updated" | b"data")
}

#[cfg(test)]
mod tests {
    use super::is_fork;

    #[test]
    fn forks_are_numbered() {
        assert!(is_fork("Oil the dial (fork #2)"));
        for title in ["Oil the dial", "Oil (fork #)", "a (fork #1) b"] {
            assert!(!is_fork(title), "{title}");
        }
    }
}
