//! The conversation of a session in order: messages, and calls with their results.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::branches::{Branch, BranchView, Branches};
use super::entry_builder::EntryBuilder;
use super::lines::{LineGraph, Lines};
use super::list::{SessionView, TokenSums};
use crate::view::arrangement::ArrangementView;
use crate::view::context::View;
use crate::view::paging::{Paging, not_a_cursor, read_numbers, write_numbers};
use crate::view::usage::prices::Cost;
use crate::view::usage::reported::SessionTotals;
use annals_core::{AccessKind, FileId, MessageKind, Result, SessionId, Shown, ShownJson, Tokens};
use annals_sources::by_name;
use annals_store::{MessageRow, NodeRow, StepRow, Stretch, UsageSum};

#[derive(Debug, Clone, Default)]
pub struct TranscriptQuery {
    /// Complete texts instead of previews.
    pub full: bool,
    /// Include messages copied from another session.
    pub copies: bool,
    /// Include changes to files as diffs.
    pub changes: bool,
    /// Which branches.
    pub branch: Branch,
}

/// One step of the conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct Entry {
    pub id: String,
    pub seq: usize,
    pub role: &'static str,
    pub kind: &'static str,
    pub at: Option<String>,
    pub model: Option<String>,
    /// The message before this one in the client's own chain, as in records; of a call, the call that made it.
    pub parent_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    pub blocks: Vec<BlockView>,
    /// Tokens of the responses that end with this step.
    pub usage: Option<TokenSums>,
    /// Estimated cost of these responses; null if one of their models has no price.
    pub cost_usd: Option<f64>,
    /// What the caller said about this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrangement: Option<ArrangementView>,
    /// In a branching conversation: whether the client shows this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_current_branch: Option<bool>,
    /// The alternatives to this step on other branches, including this one; empty if there are none, and only those
    /// next to it if there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchView>,
    /// The number of all alternatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_count: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockView {
    Text {
        text: Shown,
        #[serde(flatten)]
        cut: Cut,
    },
    Thinking {
        text: Shown,
        #[serde(flatten)]
        cut: Cut,
    },
    Image {
        media_type: String,
        bytes: u64,
        path: Option<Shown>,
    },
    Attachment {
        name: Shown,
    },
    Event {
        name: String,
        text: Shown,
    },
    ToolCall {
        call_id: Shown,
        name: String,
        kind: &'static str,
        title: Shown,
        input: ShownJson,
        #[serde(flatten)]
        cut: Cut,
        files: Vec<FileView>,
        /// What the call changed in files, if requested and known.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        changes: Vec<ChangeView>,
        /// The session of the sub-agent that the call started.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_session_id: Option<String>,
    },
    ToolResult {
        call_id: Shown,
        ok: Option<bool>,
        exit_code: Option<i64>,
        duration_ms: Option<i64>,
        output: Shown,
        #[serde(flatten)]
        cut: Cut,
    },
}

/// Set if a text is a preview, with the length of the complete text.
#[derive(Debug, Default, Clone, Copy, Serialize, ToSchema)]
pub struct Cut {
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct FileView {
    pub path: Shown,
    pub operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<[u32; 2]>,
}

/// One changed region of a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangeView {
    pub path: Shown,
    pub operation: &'static str,
    /// As a unified diff.
    pub diff: Shown,
}

/// Where a page of a transcript ended: index of the file, offset, and number of steps so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bookmark {
    file: usize,
    place: i64,
    seq: usize,
}

/// Steps read at a time: a long session is never in memory in full.
const STRETCH: usize = 200;

impl View<'_> {
    /// Entries in the order of the transcript, one at a time.
    pub fn transcript(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        visit: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let start = Bookmark { file: 0, place: -1, seq: 0 };
        self.walk(session, query, start, usize::MAX, visit)?;
        Ok(())
    }
}

/// Some entries of a session, and where the next ones start.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranscriptPage {
    pub messages: Vec<Entry>,
    pub next_cursor: Option<String>,
}

impl View<'_> {
    /// At most `limit` entries, from the start or from the cursor of the page before.
    pub fn transcript_page(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        page: &Paging,
    ) -> Result<TranscriptPage> {
        let [file, place, seq] = match &page.cursor {
            Some(cursor) => read_numbers(cursor)?,
            None => [0, -1, 0],
        };
        let unclear = |_| not_a_cursor(page.cursor.as_deref().unwrap_or_default());
        let start = Bookmark {
            file: usize::try_from(file).map_err(unclear)?,
            place,
            seq: usize::try_from(seq).map_err(unclear)?,
        };
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX).max(1);
        let mut messages = Vec::new();
        let end = self.walk(session, query, start, limit, &mut |entry| {
            messages.push(entry);
            Ok(())
        })?;
        let next_cursor = end.map(|end| write_numbers(&[end.file as i64, end.place, end.seq as i64]));
        Ok(TranscriptPage { messages, next_cursor })
    }

    /// At most `limit` steps, file by file in order of offset. Returns where the next step starts, if there is one.
    fn walk(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        start: Bookmark,
        limit: usize,
        visit: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<Option<Bookmark>> {
        self.note_access(session.row, AccessKind::Conversation);
        let Some(source) = by_name(&session.source) else { return Ok(None) };
        let builder = EntryBuilder { view: self, source, full: query.full, changes: query.changes };
        if let Some(branches) = Branches::of(self.archive, session.row, &query.branch)? {
            return walk_branch(&builder, &branches, session.row, query.copies, (start, limit), visit);
        }
        let (mut contents, mut graph) = (self.archive.contents(), LineGraph::default());
        let (mut end, mut totals) = (start, SessionTotals::default());
        let files = self.archive.transcript_files(session.row)?;
        for (number, file) in files.into_iter().enumerate().skip(start.file) {
            let mut after = if number == start.file { start.place } else { -1 };
            loop {
                let mut count = STRETCH.min(limit - (end.seq - start.seq));
                // Read one more to know whether there are more, and where the usage of the last one ends.
                let most = count as i64 + 1;
                let stretch =
                    Stretch { session: session.row, file, after, limit: most, copies: query.copies };
                let mut steps = self.archive.steps_in(&stretch)?;
                // Two steps at one offset stay together: the next batch starts after them.
                if count > 1 && steps.len() > count && steps[count].offset() == steps[count - 1].offset() {
                    count -= 1;
                }
                let next = steps.get(count).map(|step| step.offset() as i64);
                steps.truncate(count);
                if count == 0 {
                    match next {
                        Some(_) => return Ok(Some(end)),
                        None => break,
                    }
                }
                let Some(first) = steps.first() else { break };
                let until = next.unwrap_or(i64::MAX);
                let mut used = self.archive.usage_between(session.row, file, first.offset() as i64, until)?;
                for (_, sum) in &mut used {
                    self.divide(sum, &mut totals, Some(session.row))?;
                }
                let mut used = used.into_iter().peekable();
                let mut lines = Lines { view: self, source, contents: &mut contents };
                let parents = graph.parents_of(&mut lines, (session.row, file), &steps)?;
                let mut places = steps.iter().skip(1).map(|step| step.offset() as i64).chain([until]);
                builder.each(&mut contents, &steps, &mut |step, mut entry| {
                    // Usage recorded before the next step belongs to this one.
                    let until = places.next().unwrap_or(i64::MAX);
                    let sums = std::iter::from_fn(|| used.next_if(|(place, _)| *place < until));
                    entry.put_usage(sums.map(|(_, sum)| sum));
                    if matches!(step, StepRow::Message(_)) {
                        entry.parent_id = parents.get(&step.offset()).map(|parent| parent.hex());
                    }
                    entry.seq = end.seq;
                    end = Bookmark { file: number, place: step.offset() as i64, seq: end.seq + 1 };
                    visit(entry)
                })?;
                match next {
                    None => break,
                    Some(_) if end.seq - start.seq >= limit => return Ok(Some(end)),
                    Some(_) => after = end.place,
                }
            }
        }
        Ok(None)
    }
}

/// Steps of a branching conversation, in tree order. The offset of a bookmark is an index into its nodes.
fn walk_branch(
    builder: &EntryBuilder<'_>,
    branches: &Branches,
    session: SessionId,
    copies: bool,
    (start, limit): (Bookmark, usize),
    visit: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<Option<Bookmark>> {
    let archive = builder.view.archive;
    let mut contents = archive.contents();
    let mut end = start;
    let nodes: Vec<(usize, &NodeRow)> = branches.steps().filter(|(at, _)| *at as i64 > start.place).collect();
    for nodes in nodes.chunks(STRETCH.min(limit.saturating_add(1))) {
        let places: Vec<(FileId, u64)> = nodes.iter().map(|(_, node)| (node.file, node.offset)).collect();
        let rows = archive.messages_at(session, &places)?.into_iter().filter(|row| copies || !row.copied);
        let mut rows: HashMap<(FileId, u64), MessageRow> =
            rows.map(|row| ((row.file, row.span.offset), row)).collect();
        let present: Vec<&(usize, &NodeRow)> =
            nodes.iter().filter(|(_, node)| rows.contains_key(&(node.file, node.offset))).collect();
        let room = limit - (end.seq - start.seq);
        let shown = &present[..present.len().min(room)];
        // File by file.
        for nodes in shown.chunk_by(|(_, left), (_, right)| left.file == right.file) {
            let steps = nodes.iter().filter_map(|(_, node)| rows.remove(&(node.file, node.offset)));
            let steps: Vec<StepRow> = steps.map(StepRow::Message).collect();
            let mut nodes = nodes.iter();
            builder.each(&mut contents, &steps, &mut |_, mut entry| {
                let Some((at, node)) = nodes.next() else { return Ok(()) };
                entry.seq = end.seq;
                entry.parent_id = node.parent.map(annals_core::ContentKey::hex);
                entry.on_current_branch = Some(node.current);
                let (near, count) = branches.siblings(*at);
                entry.branches = near;
                entry.branch_count = Some(count).filter(|count| *count > 1);
                end = Bookmark { file: 0, place: *at as i64, seq: end.seq + 1 };
                visit(entry)
            })?;
        }
        if present.len() > room {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

impl Entry {
    /// Tokens and cost of these responses, if any.
    fn put_usage(&mut self, used: impl Iterator<Item = UsageSum>) {
        let (mut cost, mut tokens, mut any) = (Cost::default(), Tokens::default(), false);
        for sum in used {
            any = true;
            cost.add(&sum);
            tokens += sum.tokens;
        }
        if any {
            self.usage = Some(tokens.into());
            self.cost_usd = cost.whole();
        }
    }

    /// A step that people would count or read; not context added by the client.
    pub fn is_conversation(&self) -> bool {
        let hidden = [MessageKind::Injected.name(), MessageKind::Summary.name()];
        !hidden.contains(&self.kind)
    }
}
