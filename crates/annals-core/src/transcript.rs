//! The normalized transcript: what a reader finds in a file, as rows that point back into its bytes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{FromRepr, IntoStaticStr};

use super::{Call, CallResult, ContentKey, Picodollars, Terms, Time, Tokens, Touch};
use crate::stored::stored_by_number;

/// A range of bytes in a file's (decoded) content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub offset: u64,
    pub length: u64,
}

/// What a line was: each physical line gets exactly one verdict, so that the audit adds up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Understood, or known to carry nothing to show; the text is the line's type.
    Kept(String),
    /// Well-formed, of a type this reader does not know.
    Unknown(String),
    /// Not a JSON object.
    Malformed(String),
    /// Deliberately not read, with the reason.
    Skipped(String),
    /// A document of several parts, each with a verdict and its bytes; together they are the document.
    Parts(Vec<(Verdict, u64)>),
}

/// What a reader emits.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Message(Message),
    /// A message seen earlier turns out to be of another kind.
    Amend {
        session: Arc<str>,
        offset: u64,
        kind: MessageKind,
    },
    /// A message seen earlier gets another key: what follows it shows whether it was copied.
    Rekey {
        session: Arc<str>,
        offset: u64,
        key: ContentKey,
    },
    /// Another line of a message seen earlier: answers may span several lines.
    Extend {
        session: Arc<str>,
        message: u64,
        span: Span,
    },
    Call(Call),
    Result(CallResult),
    Usage(Usage),
    Summary(Summary),
    Landmark(Landmark),
    Touch(Touch),
    Link(Link),
    Document(Document),
    /// A record was deleted at its origin; its versions stay.
    Ended {
        stream: &'static str,
        key: String,
        at: Option<Time>,
    },
    Passage(Passage),
    /// A message seen earlier is represented better elsewhere: its row is removed, with the call in it.
    Forget {
        session: Arc<str>,
        offset: u64,
    },
    /// A message seen earlier counts differently: the conversation continued from another one.
    Recount {
        session: Arc<str>,
        offset: u64,
        tally: Tally,
    },
    /// An entry of a client's list of everything that was typed. It is shown unless a transcript has it.
    Typed(TypedPrompt),
    /// Words that a person typed, of the row at this offset: how an entry of such a list is recognised.
    Spoken {
        session: Arc<str>,
        offset: u64,
        words: ContentKey,
    },
    /// The tree of a branching conversation; complete, each time.
    Tree(Tree),
    /// The directory behind a client's name for a project. Sessions that only know the name get their working directory
    /// from it, whichever file arrives first.
    Project(ProjectPath),
    /// Something inside a line that this reader does not know: a block, a part, a field. It is counted by kind, in
    /// addition to the verdict of the line.
    Drift(String),
}

/// A prompt or a command in a client's history file, which outlives transcripts.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedPrompt {
    pub span: Span,
    pub at: Time,
    /// Old clients do not say which session it was typed in.
    pub session: Option<Arc<str>>,
    pub project: Option<String>,
    pub kind: MessageKind,
    pub words: ContentKey,
    /// For a session of which nothing else is left.
    pub title: String,
}

/// A project as a client names it, and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPath {
    pub name: String,
    pub path: String,
}

/// Rows of one file of a session, parents before their children.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    pub session: Arc<str>,
    pub nodes: Vec<TreeNode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    pub key: ContentKey,
    /// The client's own id, unique in its conversation.
    pub name: String,
    pub offset: u64,
    pub parent: Option<ContentKey>,
    /// On the branch that the client shows.
    pub current: bool,
    /// A separate step; the result of a call is shown with the call.
    pub shown: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub session: Arc<str>,
    pub span: Span,
    pub role: Role,
    pub kind: MessageKind,
    pub at: Option<Time>,
    pub key: ContentKey,
    /// The line is in a range that a fork or sub-agent may have copied from another session.
    pub inherited: bool,
    pub model: Option<Arc<str>>,
    pub tally: Tally,
}

/// How a message counts, unless it is a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum Tally {
    Nothing = 0,
    /// A record of the user's or the assistant's side that people would not count.
    Record = 1,
    /// A message as people count them.
    Message = 2,
    /// A message without a separate record of its side: a prompt typed while the assistant was busy.
    Aside = 3,
    /// A message that the client wrote again under new ids: the record counts everywhere, the message once.
    Rewritten = 4,
    /// The same for a record that people would not count.
    RewrittenRecord = 5,
}

impl Tally {
    /// The default: prompts and answers are messages, the rest counts for nothing.
    pub fn of(kind: MessageKind) -> Tally {
        match kind {
            MessageKind::Prompt | MessageKind::Answer => Tally::Message,
            MessageKind::Thinking
            | MessageKind::Injected
            | MessageKind::Summary
            | MessageKind::Notice
            | MessageKind::Agent
            | MessageKind::Command
            | MessageKind::Result
            | MessageKind::Unsent => Tally::Nothing,
        }
    }

    /// The tally of a record that was written again under another id.
    pub fn rewritten(self) -> Tally {
        match self {
            Tally::Message | Tally::Rewritten => Tally::Rewritten,
            Tally::Record | Tally::RewrittenRecord => Tally::RewrittenRecord,
            Tally::Nothing | Tally::Aside => self,
        }
    }

    /// The part that counts in one session only, and the part that counts in each.
    pub fn parts(self) -> (Tally, Tally) {
        match self {
            Tally::Rewritten => (Tally::Aside, Tally::Record),
            Tally::RewrittenRecord => (Tally::Nothing, Tally::Record),
            Tally::Nothing | Tally::Record | Tally::Message | Tally::Aside => (self, Tally::Nothing),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, FromRepr, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum Role {
    User = 0,
    Assistant = 1,
    System = 2,
    Developer = 3,
    Tool = 4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, FromRepr, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(i64)]
pub enum MessageKind {
    /// Human-written text.
    Prompt = 0,
    /// The assistant's text.
    Answer = 1,
    /// A readable reasoning summary.
    Thinking = 2,
    /// Text that the client added for the model: environment, instructions, skills, markers.
    Injected = 3,
    /// A compaction summary.
    Summary = 4,
    /// An event worth a line: interrupted, compacted, failed, rolled back.
    Notice = 5,
    /// A message between agents, or a report of a background task.
    Agent = 6,
    /// A command of the client that the user typed, and its output.
    Command = 7,
    /// A tool result without a call in this file.
    Result = 8,
    /// A prompt that was typed but not sent: still queued, taken back, or dropped.
    Unsent = 9,
}

stored_by_number!(Tally else Nothing, Role else System, MessageKind else Notice);

/// A row that a summary in another file may refer to as the last of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landmark {
    pub session: Arc<str>,
    pub row: ContentKey,
    /// The row may have been copied from another session.
    pub inherited: bool,
}

/// A title that one file gives to a session in another, by referring to one of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub row: ContentKey,
    pub offset: u64,
    pub text: String,
}

/// Tokens of one model response.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    pub session: Arc<str>,
    pub span: Span,
    pub at: Option<Time>,
    pub key: ContentKey,
    pub inherited: bool,
    pub model: Option<Arc<str>>,
    /// The response was counted at this offset before; these numbers are newer.
    pub again: bool,
    pub tokens: Tokens,
    /// What the client says that it cost.
    pub cost: Option<Picodollars>,
}

/// Searchable text of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// The session of the row; none for records of a file.
    pub session: Option<Arc<str>>,
    /// Offset of the message, call or record.
    pub offset: u64,
    pub kind: PassageKind,
    pub at: Option<Time>,
    pub terms: Terms,
}

/// Who wrote a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromRepr)]
#[repr(u8)]
pub enum PassageKind {
    User = 0,
    Assistant = 1,
    Thinking = 2,
    Call = 3,
    Result = 4,
    /// Paths of files that a call touched.
    Files = 5,
    /// A library item.
    Record = 6,
    /// An output stored separately from its call.
    Output = 7,
}

impl PassageKind {
    pub fn stored(self) -> u8 {
        self as u8
    }

    pub fn from_stored(stored: u8) -> Option<PassageKind> {
        PassageKind::from_repr(stored)
    }
}

/// A link from one session to another, which may not be in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub session: Arc<str>,
    pub other: String,
    pub kind: LinkKind,
    /// The position in the other session, in the client's own terms.
    pub position: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    Fork,
    Revert,
    SubAgent,
    Review,
}

impl LinkKind {
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Fork => "fork",
            LinkKind::Revert => "revert",
            LinkKind::SubAgent => "sub_agent",
            LinkKind::Review => "review",
        }
    }
}

/// A native record of a stream without a transcript table: its bytes are the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub stream: &'static str,
    pub key: String,
    pub session: Option<Arc<str>>,
    pub at: Option<Time>,
    pub span: Span,
    /// Equal content is the same version of the record.
    pub content: ContentKey,
}

/// What one file says about a session. Several files may describe one session; `rank` decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The client's name for the working directory, if another file has the directory itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Shown if there is no title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// A name that the user chose; preferred over any title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_kind: Option<LinkKind>,
    /// The cost of the session as a whole according to the client, including inherited history and sub-agents, if it
    /// does not say what each response cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// When the session was opened; the first message may come much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Time>,
    /// When the last turn ended, according to the client; none while it works, or if the client does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// There is no transcript: all that is known comes from the client's prompt history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub history_only: bool,
    /// Client-specific facts, under the client's own names.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub native: Map<String, Value>,
}

impl SessionFacts {
    /// Adds what is missing here and known to `weaker`; time ranges widen, models are merged.
    pub fn fill_from(&mut self, weaker: &SessionFacts) {
        fn fill<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
        fill(&mut self.cwd, &weaker.cwd);
        fill(&mut self.project_name, &weaker.project_name);
        fill(&mut self.title, &weaker.title);
        fill(&mut self.first_prompt, &weaker.first_prompt);
        fill(&mut self.name, &weaker.name);
        fill(&mut self.entrypoint, &weaker.entrypoint);
        fill(&mut self.client_version, &weaker.client_version);
        fill(&mut self.git_branch, &weaker.git_branch);
        fill(&mut self.git_commit, &weaker.git_commit);
        fill(&mut self.git_url, &weaker.git_url);
        fill(&mut self.parent, &weaker.parent);
        fill(&mut self.parent_kind, &weaker.parent_kind);
        fill(&mut self.cost_usd, &weaker.cost_usd);
        fill(&mut self.archived, &weaker.archived);
        self.started_at = [self.started_at, weaker.started_at].into_iter().flatten().min();
        let first = [self.first_message_at, weaker.first_message_at];
        self.first_message_at = first.into_iter().flatten().min();
        self.last_at = [self.last_at, weaker.last_at].into_iter().flatten().max();
        fill(&mut self.ended_at, &weaker.ended_at);
        for model in &weaker.models {
            if !self.models.contains(model) {
                self.models.push(model.clone());
            }
        }
        for (name, value) in &weaker.native {
            if !self.native.contains_key(name) {
                self.native.insert(name.clone(), value.clone());
            }
        }
    }
}

/// A block of a message as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text(String),
    Thinking(String),
    Image {
        media_type: String,
        bytes: u64,
        path: Option<String>,
    },
    Attachment {
        name: String,
    },
    /// Text added next to a prompt: not written by the user, and not searched as such.
    Context {
        name: String,
        text: String,
    },
    Event {
        name: String,
        text: String,
    },
    ToolCall {
        call_id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        call_id: String,
        output: String,
    },
}
