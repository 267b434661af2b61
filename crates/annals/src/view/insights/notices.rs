//! Turns that a person stopped, and compactions, out of the notices and summaries of clients.

use std::collections::HashMap;

use super::{About, InsightKind, Insights, Moment, StepPlace};
use crate::view::context::View;
use annals_core::{Block, MessageKind, Result, SessionId, Time};
use annals_sources::by_name;
use annals_store::{Between, MomentRow, SessionFilter};

/// Notices that are read.
const READ: usize = 500;
/// Clients note a compaction in several rows, of which the summary comes last.
const ONE_COMPACTION: i64 = 120_000_000;

/// Names of notices that a person stopped the assistant.
const STOPPED: [&str; 4] = ["turn_aborted", "cancelled", "abort", "MessageAbortedError"];
/// How texts about it start.
const STOPPED_TEXTS: [&str; 2] = ["[Request interrupted by user", "Request cancelled."];
/// Why a turn ended that nobody stopped.
const REPLACED: [&str; 2] = ["replaced", "review_ended"];
/// Names of notices of a compaction.
const COMPACTED: [&str; 4] = ["compact_boundary", "context_compacted", "ContextCompaction", "compaction"];

pub(super) fn add(
    view: &View<'_>,
    filter: &SessionFilter,
    between: Between,
    insights: &mut Insights,
) -> Result<()> {
    let (mut compacted, mut notices): (Vec<MomentRow>, Vec<MomentRow>) = (Vec::new(), Vec::new());
    let mut left_out = 0;
    let kinds = [MessageKind::Notice, MessageKind::Summary];
    view.archive.moments_between(filter, between, kinds, &mut |row| {
        match row.kind {
            MessageKind::Summary => compacted.push(row),
            _ if notices.len() < READ => notices.push(row),
            _ => left_out += 1,
        }
        true
    })?;
    insights.unread += left_out;
    let mut contents = view.archive.contents();
    notices.sort_by_key(|row| (row.file, row.span.offset));
    for row in notices {
        let line = contents.span(row.file, row.span)?;
        let source = by_name(&row.place.source);
        let blocks = source.map_or(Vec::new(), |source| source.blocks(&[line.expose()]));
        match blocks.iter().find_map(kind_of) {
            Some(InsightKind::Compacted) => compacted.push(row),
            Some(kind) => {
                let (step, about) = (StepPlace::Key(row.key), About::Nothing);
                insights.moments.push(Moment::new(kind, row.place, 1.0, step, about));
            }
            None => {}
        }
    }
    compacted.sort_by_key(|row| (row.place.session, row.place.at));
    let mut last: HashMap<SessionId, Time> = HashMap::new();
    for row in compacted {
        let before = last.insert(row.place.session, row.place.at);
        let is_same = before.is_some_and(|before| row.place.at.micros() - before.micros() <= ONE_COMPACTION);
        if !is_same {
            let (step, about) = (StepPlace::Key(row.key), About::Nothing);
            insights.moments.push(Moment::new(InsightKind::Compacted, row.place, 1.0, step, about));
        }
    }
    Ok(())
}

fn kind_of(block: &Block) -> Option<InsightKind> {
    let starts = |text: &str| STOPPED_TEXTS.iter().any(|start| text.trim_start().starts_with(start));
    match block {
        Block::Text(text) => starts(text).then_some(InsightKind::Interrupted),
        Block::Event { name, text } if STOPPED.contains(&name.as_str()) => {
            let is_replaced = REPLACED.iter().any(|reason| text.contains(reason));
            (!is_replaced).then_some(InsightKind::Interrupted)
        }
        Block::Event { name, .. } if COMPACTED.contains(&name.as_str()) => Some(InsightKind::Compacted),
        Block::Event { text, .. } => starts(text).then_some(InsightKind::Interrupted),
        Block::Thinking(_)
        | Block::Image { .. }
        | Block::Attachment { .. }
        | Block::Context { .. }
        | Block::ToolCall { .. }
        | Block::ToolResult { .. } => None,
    }
}
