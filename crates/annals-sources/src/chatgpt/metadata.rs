//! Fields of a conversation as a whole, each from the newest capture that has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::conversation::KnownNode;
use super::times::moment;
use super::tree::Branching;
use crate::import::captures::{Captures, Header};
use crate::json::{Json, Object, unescape};
use annals_core::{MessageKind, SessionFacts, Time};

/// Longer values are lists of addresses and results of checks.
const LONGEST: usize = 2048;

#[derive(Debug, Default)]
pub struct Book {
    fields: BTreeMap<String, Entry>,
    /// Where each capture came from.
    captures: Vec<Value>,
    counted: Counted,
}

#[derive(Debug)]
struct Entry {
    updated: Option<Time>,
    capture: usize,
    value: Value,
    at: Option<Time>,
}

#[derive(Debug, Default)]
struct Counted {
    nodes: usize,
    on_branch: usize,
    leaves: usize,
    orphans: usize,
    cycles: usize,
    without_tools: bool,
    models: Vec<String>,
    first_prompt: Option<String>,
    first_at: Option<Time>,
    last_at: Option<Time>,
}

impl Book {
    pub fn add(&mut self, conversation: &Object<'_>, header: &Header, updated: Option<Time>) {
        let capture = self.captures.len();
        self.captures.push(json!({
            "container": header.container,
            "member": header.member,
            "captured_at": header.captured_at.map(Time::rfc3339),
            "update_time": updated.map(Time::rfc3339),
        }));
        for (name, value) in conversation.fields() {
            let apart = matches!(*name, b"mapping" | b"messages" | b"page_info");
            if apart || value.is_null() || value.bytes().len() > LONGEST {
                continue;
            }
            let name = unescape(name);
            if self.fields.get(&name).is_none_or(|known| known.updated <= updated) {
                let entry = Entry { updated, capture, value: value.value(), at: moment(*value) };
                self.fields.insert(name, entry);
            }
        }
    }

    pub fn current_node(&self) -> Option<&str> {
        self.text("current_node")
    }

    pub fn count(&mut self, nodes: &[KnownNode], tree: &Branching) {
        let mut counted = Counted {
            nodes: nodes.len(),
            leaves: tree.leaves,
            orphans: tree.orphans,
            cycles: tree.cycles,
            without_tools: !nodes.iter().any(KnownNode::is_rich),
            ..Counted::default()
        };
        for at in tree.order.iter().copied() {
            let node = &nodes[at];
            if let Some(model) = &node.model
                && !counted.models.iter().any(|known| **known == **model)
            {
                counted.models.push(model.to_string());
            }
            counted.first_at = [counted.first_at, node.twig.at].into_iter().flatten().min();
            counted.last_at = counted.last_at.max(node.twig.at);
            if !tree.current[at] {
                continue;
            }
            let is_spoken =
                matches!(node.kind, MessageKind::Prompt | MessageKind::Answer) && node.call.is_none();
            counted.on_branch += usize::from(is_spoken);
            if counted.first_prompt.is_none() {
                counted.first_prompt.clone_from(&node.prompt);
            }
        }
        self.counted = counted;
    }

    pub fn facts(&self) -> SessionFacts {
        let mut native: Map<String, Value> =
            self.fields.iter().map(|(name, entry)| (name.clone(), entry.value.clone())).collect();
        // A project is a kind of custom assistant to the client; newer exports name it as the template only.
        let project = ["gizmo_id", "conversation_template_id"]
            .iter()
            .filter_map(|name| self.text(name))
            .find(|id| id.starts_with("g-p-"));
        native.extend(project.map(|id| ("project_id".to_owned(), Value::from(id))));
        let gizmo = ["gizmo_id", "conversation_template_id"].iter().find_map(|name| self.text(name));
        native.extend(gizmo.map(|id| ("gizmo_id".to_owned(), Value::from(id))));
        let counted = &self.counted;
        native.insert("node_count".into(), Value::from(counted.nodes));
        native.insert("message_count_on_current_branch".into(), Value::from(counted.on_branch));
        native.insert("branch_count".into(), Value::from(counted.leaves));
        for (name, count) in [("orphan_nodes", counted.orphans), ("cut_cycles", counted.cycles)] {
            if count > 0 {
                native.insert(name.into(), Value::from(count));
            }
        }
        let tools = if counted.without_tools { "not in the export" } else { "in the export" };
        native.insert("tool_data".into(), Value::from(tools));
        let given = self.fields.iter().map(|(name, entry)| (name.clone(), Value::from(entry.capture)));
        native.insert(
            "provenance".into(),
            json!({"captures": self.captures, "fields": Value::Object(given.collect())}),
        );
        let moment = |name: &str| self.fields.get(name).and_then(|entry| entry.at);
        for (name, field) in [("created_at", "create_time"), ("updated_at", "update_time")] {
            native.extend(moment(field).map(|at| (name.to_owned(), Value::from(at.rfc3339()))));
        }
        SessionFacts {
            title: self.text("title").filter(|title| !title.is_empty()).map(str::to_owned),
            first_prompt: counted.first_prompt.clone(),
            entrypoint: self.text("conversation_origin").map(str::to_owned),
            models: counted.models.clone(),
            archived: self.fields.get("is_archived").and_then(|entry| entry.value.as_bool()),
            started_at: moment("create_time").or(counted.first_at),
            last_at: counted.last_at.or(moment("update_time")),
            native,
            ..SessionFacts::default()
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.value.as_str()
    }
}

/// One captured body: where it came from, and what it says of the conversation as a whole.
pub fn version(key: &str, bytes: &[u8]) -> Value {
    let mut captures = Captures::default();
    let mut record = Map::from_iter([("id".to_owned(), Value::from(key))]);
    for piece in bytes.split(|byte| *byte == 0x1E).filter(|piece| !piece.is_empty()) {
        let Some(header) = captures.next(piece) else { continue };
        for name in ["container", "container_name", "member", "captured_at", "written_at"] {
            record.insert(name.to_owned(), header.fields.get(name).cloned().unwrap_or_default());
        }
        let Some(body) = Json::parse(piece) else { continue };
        let count = body.get("mapping").map_or(0, |mapping| mapping.fields().count());
        record.insert("node_count".to_owned(), Value::from(count));
        let kept = body.fields().filter(|(name, value)| {
            !matches!(*name, b"mapping" | b"messages" | b"id") && value.bytes().len() <= LONGEST
        });
        let kept = kept.map(|(name, value)| (unescape(name), value.value()));
        record.insert("fields".to_owned(), Value::Object(kept.collect()));
    }
    Value::Object(record)
}
