//! Metadata of a thread: the first line, links to other threads, and the ids in the file name.

use serde_json::Value;

use super::drift::{SESSION_META, each_unknown_field};
use super::rollout::RolloutReader;
use crate::json::{Json, Object};
use annals_core::{Item, Link, LinkKind, Time};

impl RolloutReader {
    pub(super) fn meta(&mut self, meta: &Object<'_>, at: Option<Time>, out: &mut Vec<Item>) {
        each_unknown_field(meta, SESSION_META, "session_meta", out);
        let id = meta.get_text("id").unwrap_or_default().into_owned();
        // After a first line that is lost, one that names another thread is a copy as well.
        let late = self.state.started && (self.named || !self.state.chain.is_empty());
        if late && self.state.thread.is_none() && *id != *self.session {
            self.state.thread = Some(self.session.to_string());
        }
        if self.state.thread.is_some() {
            // A copied meta opens a stretch of another thread's lines; the same id again is only a line.
            let known = [&self.state.thread, &self.state.stretch];
            if known.iter().any(|known| known.as_deref() == Some(id.as_str())) {
                self.state.chain.bare(meta.bytes(), &self.session);
            } else {
                self.state.chain.start(&id);
                self.state.stretch = Some(id);
                self.state.inherited = true;
                self.state.copied_at = self.state.copied_at.or(at);
            }
            return;
        }
        if !id.is_empty() {
            self.session = id.as_str().into();
        }
        self.state.thread = Some(self.session.to_string());
        self.state.chain.start(&self.session);
        let text = |name: &str| meta.get_text(name).map(|text| text.into_owned());
        let git = meta.get("git");
        let git_text = |name: &str| git.and_then(|git| git.get_text(name)).map(|text| text.into_owned());
        let source = meta.get("source");
        let facts = &mut self.state.facts;
        facts.started_at = text("timestamp").and_then(|text| Time::parse(&text)).or(at);
        facts.cwd = text("cwd");
        facts.client_version = text("cli_version");
        facts.git_commit = git_text("commit_hash");
        facts.git_branch = git_text("branch");
        facts.git_url = git_text("repository_url");
        facts.entrypoint = source.and_then(|source| match source.text() {
            Some(word) => Some(word.into_owned()),
            None => source.fields().next().map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
        });
        for name in NATIVE_META {
            if let Some(value) = meta.get(name) {
                facts.native.insert((*name).into(), value.value());
            }
        }
        if at.is_none() {
            // Clients of this era wrote local time with a false Z.
            facts.native.insert("started_at_zone".into(), Value::from("unknown"));
        }
        self.links(meta, source, out);
    }

    fn links(&mut self, meta: &Object<'_>, source: Option<Json<'_>>, out: &mut Vec<Item>) {
        let text = |name: &str| meta.get_text(name).map(|text| text.into_owned());
        let agent = source.and_then(|source| source.get("subagent"));
        let spawn = agent.and_then(|agent| agent.get("thread_spawn"));
        if let Some(spawn) = spawn {
            for name in ["agent_nickname", "agent_role", "agent_type", "agent_path"] {
                if let Some(value) = spawn.get(name) {
                    let name = if name == "agent_type" { "agent_role" } else { name };
                    self.state.facts.native.entry(name).or_insert_with(|| value.value());
                }
            }
        }
        let parent = text("parent_thread_id")
            .or_else(|| spawn.and_then(|spawn| spawn.get_text("parent_thread_id")).map(|id| id.into_owned()));
        let root = text("session_id").filter(|root| **root != *self.session);
        let review = agent.and_then(Json::text).is_some_and(|word| word == "review");
        let base = meta.get("history_base");
        let position = base
            .and_then(|base| base.get_integer("end_ordinal_exclusive"))
            .map(|ordinal| ordinal.to_string());
        let (other, kind) = if agent.is_some() {
            let kind = if review { LinkKind::Review } else { LinkKind::SubAgent };
            (parent.or_else(|| text("forked_from_id")).or(root), kind)
        } else if let Some(forked) = text("forked_from_id") {
            (Some(forked), LinkKind::Fork)
        } else if self.replaces {
            (Some(self.session.to_string()), LinkKind::Revert)
        } else {
            (parent.or(root), LinkKind::SubAgent)
        };
        let Some(other) = other else { return };
        if kind != LinkKind::Revert {
            self.state.facts.parent = Some(other.clone());
            self.state.facts.parent_kind = Some(kind);
        }
        out.push(Item::Link(Link { session: self.session.clone(), other, kind, position }));
    }
}

/// The thread id in `rollout-<time>-<thread>[_<rollout>].jsonl`, and whether there is a second id.
pub(super) fn ids_in_name(path: &str) -> (String, bool) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split(".json").next().unwrap_or(name);
    let (first, second) = match stem.split_once('_') {
        Some((first, _)) => (first, true),
        None => (stem, false),
    };
    let id = first.len().checked_sub(36).and_then(|start| first.get(start..)).unwrap_or(first);
    (id.to_owned(), second)
}

const NATIVE_META: &[&str] = &[
    "originator",
    "source",
    "thread_source",
    "model_provider",
    "history_mode",
    "forked_from_id",
    "agent_nickname",
    "agent_role",
    "agent_path",
    "memory_mode",
];
