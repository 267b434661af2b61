//! Branches of a conversation: the steps of one, and its alternatives.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::list::SessionView;
use crate::view::context::View;
use annals_core::{ContentKey, Error, FileId, Result, SessionId};
use annals_store::{Archive, MessageRow, NodeRow};

/// Which steps of a branching conversation to return; other conversations have one branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Branch {
    /// What the client shows.
    #[default]
    Current,
    /// Every step of every branch, parents before their children.
    All,
    /// The branch through the step with this id, or the start of it.
    Through(String),
}

impl Branch {
    /// `all`, or the id of a step.
    pub fn parse(name: Option<&str>) -> Branch {
        match name {
            None | Some("" | "current") => Branch::Current,
            Some("all") => Branch::All,
            Some(id) => Branch::Through(id.to_owned()),
        }
    }
}

/// A step that could follow the same parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BranchView {
    /// Id of the step; as `branch` it selects the conversation that contains it.
    pub id: String,
    /// On the current branch.
    pub current: bool,
    /// Its place among all alternatives, from 1.
    pub number: usize,
}

/// Alternatives listed at a step, of those next to it; all are counted.
const MOST_SIBLINGS: usize = 20;

/// The nodes of a session, indexed.
pub struct Branches {
    nodes: Vec<NodeRow>,
    /// Indexes into `nodes`, by the key of the parent.
    below: HashMap<Option<ContentKey>, Vec<usize>>,
    /// Whether each node is on the selected branch.
    selected: Vec<bool>,
    all: bool,
}

impl Branches {
    /// None if the session does not branch.
    pub fn of(archive: Archive<'_>, session: SessionId, branch: &Branch) -> Result<Option<Branches>> {
        let nodes = archive.tree(session)?;
        if nodes.is_empty() {
            return match branch {
                Branch::Current | Branch::All => Ok(None),
                Branch::Through(id) => Err(no_such_step(id)),
            };
        }
        let mut below: HashMap<Option<ContentKey>, Vec<usize>> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            below.entry(node.parent).or_default().push(at);
        }
        let selected = match branch {
            Branch::Current | Branch::All => nodes.iter().map(|node| node.current).collect(),
            Branch::Through(id) => through(&nodes, &below, id).ok_or_else(|| no_such_step(id))?,
        };
        Ok(Some(Branches { nodes, below, selected, all: *branch == Branch::All }))
    }

    /// Steps in order, each with its index among all nodes.
    pub fn steps(&self) -> impl Iterator<Item = (usize, &NodeRow)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(at, node)| node.is_step && (self.all || self.selected[*at]))
    }

    /// The alternatives at a node next to it, including itself, and the number of all; empty if there are no others.
    pub fn siblings(&self, at: usize) -> (Vec<BranchView>, usize) {
        let Some(node) = self.nodes.get(at) else { return (Vec::new(), 0) };
        let siblings = self.below.get(&node.parent).map(Vec::as_slice).unwrap_or_default();
        if siblings.len() < 2 {
            return (Vec::new(), siblings.len());
        }
        // They are in the order of their numbers. Listing all of thousands at each of them would never end.
        let own = siblings.binary_search(&at).unwrap_or(0);
        let last = siblings.len().saturating_sub(MOST_SIBLINGS);
        let first = own.saturating_sub(MOST_SIBLINGS / 2).min(last);
        let near = siblings.iter().enumerate().skip(first).take(MOST_SIBLINGS);
        let view = |(place, at): (usize, &usize)| BranchView {
            id: self.nodes[*at].key.hex(),
            current: self.selected[*at],
            number: place + 1,
        };
        (near.map(view).collect(), siblings.len())
    }
}

/// The tree around consecutive rows, loaded session by session.
#[derive(Default)]
pub struct RelatedIds {
    session: SessionId,
    nodes: HashMap<(FileId, u64), NodeRow>,
    below: HashMap<ContentKey, Vec<ContentKey>>,
    names: HashMap<ContentKey, String>,
}

impl RelatedIds {
    /// Reads the tree of a session, unless it is the one that was read last.
    pub fn visit(&mut self, view: &View<'_>, session: SessionId) -> Result<()> {
        if self.session != session {
            let names = view.archive.node_names(session)?.into_iter();
            let names = names.map(|(key, name)| (key, view.door.text(&name).to_string())).collect();
            *self = RelatedIds { session, names, ..RelatedIds::default() };
            for node in view.archive.tree(session)? {
                self.nodes.insert((node.file, node.offset), node);
                if let Some(parent) = node.parent {
                    self.below.entry(parent).or_default().push(node.key);
                }
            }
        }
        Ok(())
    }

    /// The node of a row and the keys of its children; None if its session does not branch.
    pub fn of(&self, row: &MessageRow) -> Option<(NodeRow, &[ContentKey])> {
        let node = self.nodes.get(&(row.file, row.span.offset))?;
        Some((*node, self.below.get(&node.key).map(Vec::as_slice).unwrap_or_default()))
    }

    /// The id of a message in records: the client's own if it is unique in its session.
    pub fn id(&self, key: ContentKey) -> String {
        self.names.get(&key).cloned().unwrap_or_else(|| key.hex())
    }
}

impl View<'_> {
    /// Whether the step with this id prefix is on a branch that the client does not show.
    pub fn is_off_branch(&self, session: &SessionView, id: &str) -> Result<bool> {
        let nodes = self.archive.tree(session.row)?;
        let mut found =
            nodes.iter().filter(|node| id.len() >= 4 && node.key.hex().starts_with(id)).peekable();
        Ok(found.peek().is_some() && found.all(|node| !node.current))
    }
}

fn through(
    nodes: &[NodeRow],
    below: &HashMap<Option<ContentKey>, Vec<usize>>,
    id: &str,
) -> Option<Vec<bool>> {
    let by_key: HashMap<ContentKey, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
    let start = nodes.iter().position(|node| id.len() >= 4 && node.key.hex().starts_with(id))?;
    let mut selected = vec![false; nodes.len()];
    let mut up = Some(start);
    while let Some(at) = up.filter(|at| !selected[*at]) {
        selected[at] = true;
        up = nodes[at].parent.and_then(|parent| by_key.get(&parent).copied());
    }
    // Below it, follow what the client shows, or else the latest node.
    let mut down = Some(start);
    while let Some(at) = down {
        let children = below.get(&Some(nodes[at].key)).map(Vec::as_slice).unwrap_or_default();
        let next = children.iter().find(|child| nodes[**child].current).or(children.last());
        down = next.copied().filter(|next| !selected[*next]);
        if let Some(next) = down {
            selected[next] = true;
        }
    }
    Some(selected)
}

fn no_such_step(id: &str) -> Error {
    Error::bad_request(format!("no message {id:?} in this session"))
        .hint("use the `id` of a message, or one in its `branches`")
}
