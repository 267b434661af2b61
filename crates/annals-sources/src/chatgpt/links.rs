//! Pairs tool calls with their results.

use super::content::MessageFields;
use super::conversation::KnownNode;
use super::times::moment;
use super::tree::Branching;
use annals_core::{CallKind, Role, Time};

/// What a result says about its call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultOutcome {
    pub ok: Option<bool>,
    pub duration_ms: Option<u64>,
}

impl ResultOutcome {
    pub fn of(fields: &MessageFields<'_>) -> ResultOutcome {
        let run = fields.metadata.as_ref().and_then(|metadata| metadata.get("aggregate_result"));
        let status = run.and_then(|run| run.get_text("status"));
        let threw = run.is_some_and(|run| {
            run.get("system_exception").is_some() || run.get("in_kernel_exception").is_some()
        });
        let failed = fields.content_type == "system_error"
            || threw
            || status.is_some_and(|status| status.contains("fail") || status.contains("error"))
            || fields.status.as_deref() == Some("finished_partial_completion");
        let done = fields.status.as_deref() == Some("finished_successfully");
        let moments = run.and_then(|run| {
            let at = |name: &str| run.get(name).and_then(moment).map(Time::micros);
            at("end_time")?.checked_sub(at("start_time")?)
        });
        ResultOutcome {
            ok: if failed { Some(false) } else { done.then_some(true) },
            duration_ms: moments.and_then(|micros| u64::try_from(micros / 1_000).ok()),
        }
    }
}

/// Gives each call its first result; returns which nodes are separate steps.
pub fn link(nodes: &mut [KnownNode], tree: &Branching) -> Vec<bool> {
    for node in nodes.iter_mut() {
        node.answered_by = None;
    }
    // Nodes without a message only hold the tree together.
    let mut shown: Vec<bool> = nodes.iter().map(|node| !node.is_bare()).collect();
    for at in tree.order.iter().copied() {
        if nodes[at].result.is_none() {
            continue;
        }
        let Some(call) = call_above(nodes, tree, at) else { continue };
        if nodes[call].answered_by.is_none() {
            nodes[call].answered_by = Some(nodes[at].twig.key);
            shown[at] = false;
        }
    }
    shown
}

/// The nearest call above; not beyond a prompt.
fn call_above(nodes: &[KnownNode], tree: &Branching, at: usize) -> Option<usize> {
    let mut above = tree.parents[at];
    while let Some(node) = above {
        if nodes[node].call.is_some() {
            return Some(node);
        }
        if nodes[node].role == Role::User {
            return None;
        }
        above = tree.parents[node];
    }
    None
}

pub fn call_kind(name: &str) -> CallKind {
    let family = name.split(['.', '_']).next().unwrap_or(name);
    match family {
        "web" | "browser" | "search" | "sonic" => CallKind::Web,
        "container" => CallKind::Shell,
        "canmore" => CallKind::Edit,
        "file" | "myfiles" => CallKind::Search,
        "api" => CallKind::Mcp,
        _ => CallKind::Function,
    }
}
