//! Reads the captures of a conversation, merged node by node: a poorer export never takes away what a richer one had.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use super::content::MessageFields;
use super::links;
use super::links::ResultOutcome;
use super::metadata::Book;
use super::nodes::{CONVERSATION, Node, conversation_id, node_key, nodes, offset_in};
use super::times::moment;
use super::tree::{Branching, Twig, branching};
use crate::home::title::in_a_line;
use crate::import::captures::{Captures, header_verdict};
use crate::json::{Json, Line, Opened, unescape};
use crate::{Facts, Reader};
use annals_core::{
    Call, CallResult, ContentKey, Document, Item, Message, MessageKind, Role, Span, Tally, Time, Tree,
    TreeNode, Verdict,
};

const RICH: u8 = 2;
/// The tool that begins a document; what is changed later is in other calls.
const CANVAS: &str = "canmore.create_textdoc";
/// Where the result of that tool names the document.
const DOCUMENT: (&str, &str) = ("canvas", "textdoc_id");

#[derive(Default)]
pub(super) struct ConversationReader {
    captures: Captures,
    header_at: u64,
    session: Option<Arc<str>>,
    nodes: Vec<KnownNode>,
    by_key: HashMap<ContentKey, usize>,
    book: Book,
}

/// A node as the best capture has it.
pub struct KnownNode {
    pub twig: Twig,
    pub span: Span,
    merit: Merit,
    hash: u64,
    pub role: Role,
    pub kind: MessageKind,
    pub model: Option<Arc<str>>,
    /// The tool that the assistant speaks to, and the call in a line.
    pub call: Option<(Arc<str>, String)>,
    pub call_id: String,
    pub result: Option<ResultOutcome>,
    /// The document that a result is about.
    document: Option<String>,
    /// The result that is shown with this call.
    pub answered_by: Option<ContentKey>,
    /// The person's words in a line.
    pub prompt: Option<String>,
    tally: Tally,
    /// Its row is not written yet.
    fresh: bool,
}

/// Of two captures of a node the greater one is believed: first the richer, then the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    richness: u8,
    updated: Option<Time>,
}

impl Reader for ConversationReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else {
            self.header_at = offset;
            return header_verdict();
        };
        let opened = Opened::parse(bytes, CONVERSATION).filter(|opened| opened.json.is_object());
        let Some(opened) = opened else { return Verdict::Malformed("not JSON".into()) };
        let conversation = opened.object();
        let session: Arc<str> = match &self.session {
            Some(session) => Arc::clone(session),
            None => conversation_id(&conversation, bytes).into(),
        };
        self.session = Some(Arc::clone(&session));
        let updated = ["update_time", "create_time"].iter().find_map(|name| conversation.get(name));
        let updated = updated.and_then(moment);
        self.book.add(&conversation, &header, updated);
        let parts = self.merge(&session, opened, bytes, offset, updated, out);
        let tree = branching(
            &self.nodes.iter().map(|node| node.twig.clone()).collect::<Vec<_>>(),
            self.book.current_node().map(|name| node_key(&session, name.as_bytes())),
        );
        let shown = links::link(&mut self.nodes, &tree);
        self.emit(&session, &tree, &shown, out);
        self.book.count(&self.nodes, &tree);
        out.push(Item::Document(Document {
            stream: "conversation_versions",
            key: session.to_string(),
            session: Some(session),
            at: updated.or(header.captured_at),
            span: Span { offset: self.header_at, length: offset + bytes.len() as u64 - self.header_at },
            content: ContentKey::of(&[&offset.to_le_bytes()]),
        }));
        Verdict::Parts(parts)
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.session.as_ref().map(|session| Facts {
            session: Arc::clone(session),
            rank: 0,
            facts: self.book.facts(),
        });
        facts.into_iter().collect()
    }
}

impl ConversationReader {
    /// Adds the nodes of a capture to those that are known; returns what the bytes contain.
    fn merge(
        &mut self,
        session: &Arc<str>,
        opened: Opened<'_>,
        bytes: &[u8],
        offset: u64,
        updated: Option<Time>,
        out: &mut Vec<Item>,
    ) -> Vec<(Verdict, u64)> {
        let mut parts = Vec::new();
        let mut before: Option<ContentKey> = None;
        let is_list = opened.get("mapping").is_none();
        for (number, node) in nodes(opened).into_iter().enumerate() {
            let name = match node.key.is_empty() {
                true => format!("message-{number}"),
                false => unescape(node.key),
            };
            let key = node_key(session, name.as_bytes());
            let fields = node.message.as_ref().map(MessageFields::of);
            if let Some(fields) = &fields {
                fields.each_unknown(&mut |kind| out.push(Item::Drift(kind)));
            }
            let verdict = match &fields {
                None => Verdict::Kept("node without message".into()),
                Some(fields) if fields.is_known() => Verdict::Kept(fields.content_type.clone().into_owned()),
                Some(fields) => Verdict::Unknown(format!("content {}", fields.content_type)),
            };
            parts.push((verdict, node.bytes.len() as u64));
            let mut parent = node.parent.and_then(Json::text).map(|name| node_key(session, name.as_bytes()));
            if is_list {
                // A list without a tree: each message follows the one before it.
                // A tree that was captured before knows better what it follows.
                let known = self.by_key.get(&key).and_then(|at| self.nodes[*at].twig.parent);
                parent = parent.filter(|parent| self.by_key.contains_key(parent)).or(known).or(before);
                before = Some(key);
            }
            let start = offset + offset_in(bytes, node.bytes) as u64;
            let span = Span { offset: start, length: node.bytes.len() as u64 };
            let merit = Merit { richness: richness(fields.as_ref()), updated };
            let hash = hash_of(&node);
            let children: Vec<ContentKey> = node
                .children
                .into_iter()
                .flat_map(Json::items)
                .filter_map(|child| child.text().map(|name| node_key(session, name.as_bytes())))
                .collect();
            let known = self.by_key.get(&key).copied();
            if let Some(known) = known.and_then(|at| self.nodes.get_mut(at)) {
                // Later lists of children have more of them.
                if children.len() >= known.twig.children.len() {
                    known.twig.children.clone_from(&children);
                }
                if known.hash == hash || merit < known.merit {
                    continue;
                }
                if !known.fresh {
                    out.push(Item::Forget { session: Arc::clone(session), offset: known.span.offset });
                }
            }
            let at = fields.as_ref().and_then(|fields| fields.create_time).and_then(moment);
            let node =
                KnownNode::new(Twig { key, name, parent, children, at }, span, merit, hash, fields.as_ref());
            match known {
                Some(at) => {
                    let children = std::mem::take(&mut self.nodes[at].twig.children);
                    self.nodes[at] = node;
                    self.nodes[at].twig.children = children;
                }
                None => {
                    self.by_key.insert(key, self.nodes.len());
                    self.nodes.push(node);
                }
            }
        }
        let inside: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        parts.push((Verdict::Kept("conversation".into()), (bytes.len() as u64).saturating_sub(inside)));
        parts
    }

    /// Rows of what is new, and how all rows hang together.
    fn emit(&mut self, session: &Arc<str>, tree: &Branching, shown: &[bool], out: &mut Vec<Item>) {
        let mut results = Vec::new();
        for at in tree.order.iter().copied() {
            let is_spoken = matches!(self.nodes[at].kind, MessageKind::Prompt | MessageKind::Answer);
            let counts = is_spoken && tree.current[at] && self.nodes[at].call.is_none();
            let tally = if counts { Tally::Message } else { Tally::Nothing };
            let answer = self.nodes[at].answered_by.and_then(|key| self.by_key.get(&key).copied());
            let answer = answer.filter(|answer| self.nodes[at].fresh || self.nodes[*answer].fresh);
            if let Some(answer) = answer {
                results.push((at, answer));
            }
            if self.nodes[at].fresh || answer.is_some() {
                let document = answer.and_then(|answer| self.nodes[answer].document.as_deref());
                let canvas = self.nodes[at].canvas(session, document);
                if canvas.is_some() && document.is_some() && !self.nodes[at].fresh {
                    // Before its result came, the document was known by its call.
                    let (stream, key) = ("canvas_documents", self.nodes[at].call_id.clone());
                    out.push(Item::Ended { stream, key, at: None });
                }
                out.extend(canvas);
            }
            let node = &mut self.nodes[at];
            let fresh = std::mem::replace(&mut node.fresh, false);
            if fresh {
                out.push(node.message(session, tally));
                out.extend(node.call_item(session));
            } else if node.tally != tally {
                out.push(Item::Recount { session: Arc::clone(session), offset: node.span.offset, tally });
            }
            node.tally = tally;
        }
        for (call, answer) in results {
            let (call, answer) = (&self.nodes[call], &self.nodes[answer]);
            let outcome = answer.result.unwrap_or_default();
            out.push(Item::Result(CallResult {
                session: Arc::clone(session),
                call: call.span.offset,
                output: Some(answer.span),
                detail: None,
                at: answer.twig.at,
                ok: outcome.ok,
                exit_code: None,
                duration_ms: outcome.duration_ms,
                full: None,
            }));
        }
        let nodes = tree.order.iter().map(|at| {
            let node = &self.nodes[*at];
            TreeNode {
                key: node.twig.key,
                name: node.twig.name.clone(),
                offset: node.span.offset,
                parent: tree.parents[*at].map(|parent| self.nodes[parent].twig.key),
                current: tree.current[*at],
                shown: shown[*at],
            }
        });
        out.push(Item::Tree(Tree { session: Arc::clone(session), nodes: nodes.collect() }));
    }
}

impl KnownNode {
    fn new(twig: Twig, span: Span, merit: Merit, hash: u64, fields: Option<&MessageFields<'_>>) -> KnownNode {
        let mut node = KnownNode {
            span,
            merit,
            hash,
            role: Role::System,
            kind: MessageKind::Injected,
            model: None,
            call: None,
            call_id: String::new(),
            result: None,
            document: None,
            answered_by: None,
            prompt: None,
            tally: Tally::Nothing,
            fresh: true,
            twig,
        };
        let Some(fields) = fields else { return node };
        node.role = match &*fields.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            "developer" => Role::Developer,
            _ => Role::System,
        };
        node.model = fields.metadata_text("model_slug").map(|slug| slug.as_ref().into());
        node.call_id = fields.id.as_deref().unwrap_or(&node.twig.name).to_owned();
        node.call = fields.tool().map(|tool| (tool.into(), in_a_line(&fields.argument())));
        node.kind = match node.role {
            _ if node.call.is_some() => MessageKind::Answer,
            Role::Tool => MessageKind::Result,
            _ if fields.is_thinking() => MessageKind::Thinking,
            _ if fields.is_hidden() || is_empty(fields) => MessageKind::Injected,
            _ if fields.content_type == "system_error" => MessageKind::Notice,
            Role::User => MessageKind::Prompt,
            Role::Assistant => MessageKind::Answer,
            Role::System | Role::Developer => MessageKind::Injected,
        };
        node.result = (node.kind == MessageKind::Result).then(|| ResultOutcome::of(fields));
        let canvas = fields.metadata.as_ref().and_then(|metadata| metadata.get(DOCUMENT.0));
        let document = canvas.and_then(|canvas| canvas.get_text(DOCUMENT.1)).filter(|id| !id.is_empty());
        node.document = document.map(|id| id.into_owned());
        if node.kind == MessageKind::Prompt {
            node.prompt = Some(in_a_line(&first_words(fields))).filter(|words| !words.is_empty());
        }
        node
    }

    pub fn is_bare(&self) -> bool {
        self.merit.richness == 0
    }

    /// Its capture says to whom it speaks: what has no tool in it used none.
    pub fn is_rich(&self) -> bool {
        self.merit.richness == RICH
    }

    fn message(&self, session: &Arc<str>, tally: Tally) -> Item {
        Item::Message(Message {
            session: Arc::clone(session),
            span: self.span,
            role: self.role,
            kind: self.kind,
            at: self.twig.at,
            key: self.twig.key,
            inherited: false,
            model: self.model.clone(),
            tally,
        })
    }

    /// A document that the call begins, known by its own id if the result has that.
    fn canvas(&self, session: &Arc<str>, document: Option<&str>) -> Option<Item> {
        let (name, title) = self.call.as_ref()?;
        (**name == *CANVAS).then(|| {
            Item::Document(Document {
                stream: "canvas_documents",
                key: document.unwrap_or(&self.call_id).to_owned(),
                session: Some(Arc::clone(session)),
                at: self.twig.at,
                span: self.span,
                content: ContentKey::of(&[&self.span.offset.to_le_bytes(), title.as_bytes()]),
            })
        })
    }

    /// A call is a block of its message.
    fn call_item(&self, session: &Arc<str>) -> Option<Item> {
        let (name, title) = self.call.as_ref()?;
        Some(Item::Call(Call {
            session: Arc::clone(session),
            span: self.span,
            at: self.twig.at,
            key: self.twig.key,
            inherited: false,
            call_id: self.call_id.clone(),
            name: Arc::clone(name),
            kind: links::call_kind(name),
            title: title.clone(),
            parent: None,
            message: Some(self.span.offset),
            model: self.model.clone(),
        }))
    }
}

/// Exports since the middle of 2026 have neither status nor recipient: what they say of a node is less than what older
/// ones say. A message that was still being written is less than one that is done.
fn richness(fields: Option<&MessageFields<'_>>) -> u8 {
    match fields {
        None => 0,
        Some(fields) if fields.status.as_deref() == Some("in_progress") => 1,
        Some(fields) if fields.status.is_none() && fields.recipient.is_none() => 1,
        Some(_) => RICH,
    }
}

/// Its message and its parent; children name their own parents.
fn hash_of(node: &Node<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(node.parent.map(Json::bytes).unwrap_or_default());
    hasher.write(node.message.as_ref().map(|message| message.json.bytes()).unwrap_or_default());
    hasher.finish()
}

/// Placeholders without any text.
fn is_empty(fields: &MessageFields<'_>) -> bool {
    let parts = fields.content.as_ref().and_then(|content| content.get("parts"));
    let silent = |part: Json<'_>| part.is_null() || part.inner().is_some_and(<[u8]>::is_empty);
    let no_words = match (&*fields.content_type, parts) {
        ("text" | "multimodal_text", Some(parts)) => parts.items().all(silent),
        ("text" | "multimodal_text", None) => {
            fields.content.as_ref().and_then(|content| content.get("text")).is_none()
        }
        _ => false,
    };
    no_words && fields.files().is_empty()
}

/// Enough of what was typed for a title.
fn first_words(fields: &MessageFields<'_>) -> String {
    let parts =
        fields.content.as_ref().and_then(|content| content.get("parts")).into_iter().flat_map(Json::items);
    let texts = parts.filter(|part| part.is_string()).map(|part| part.head(1000));
    texts.collect::<Vec<_>>().join("\n")
}
