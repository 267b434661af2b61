//! The conversation of a session in order: messages, and calls with their results.

use serde::Serialize;
use utoipa::ToSchema;

use super::branches::{Branch, BranchView, Branches};
use super::entry_builder::EntryBuilder;
use super::list::{SessionView, Tokens};
use crate::view::context::View;
use crate::view::paging::{Paging, not_a_cursor, read_numbers, write_numbers};
use crate::view::usage::prices::Cost;
use annals_core::{MessageKind, Result, Shown, ShownJson};
use annals_sources::by_name;
use annals_store::Stretch;

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
    pub parent_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    pub blocks: Vec<BlockView>,
    /// Tokens of the responses that end with this step.
    pub usage: Option<Tokens>,
    /// Their estimated cost; null if one of their models has no price.
    pub cost_usd: Option<f64>,
    /// Of a conversation that branches: whether the client shows this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_current_branch: Option<bool>,
    /// The steps that are in this one's place on other branches, and this one; nothing when there are no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchView>,
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
        /// What the call changed in files, where that was asked for and is known.
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

/// Says that a text is a preview, and how long the whole is.
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

/// A changed place of a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangeView {
    pub path: Shown,
    pub operation: &'static str,
    /// As a unified diff.
    pub diff: Shown,
}

/// Where a page of a transcript ended: file in the order of the session's, offset, and steps told so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bookmark {
    file: usize,
    place: i64,
    seq: usize,
}

type Visit<'s> = dyn FnMut(Entry, Bookmark) -> Result<bool> + 's;

/// Rows read at a time: a long session is never in memory as a whole.
const STRETCH: i64 = 200;

impl View<'_> {
    /// Entries in the order of the transcript, one at a time.
    pub fn transcript(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        visit: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let start = Bookmark { file: 0, place: -1, seq: 0 };
        self.walk(session, query, start, &mut |entry, _| {
            visit(entry)?;
            Ok(true)
        })
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
        let (mut messages, mut next_cursor, mut last) = (Vec::new(), None, start);
        self.walk(session, query, start, &mut |entry, bookmark| {
            if messages.len() == limit {
                next_cursor = Some(write_numbers(&[last.file as i64, last.place, last.seq as i64]));
                return Ok(false);
            }
            messages.push(entry);
            last = bookmark;
            Ok(true)
        })?;
        Ok(TranscriptPage { messages, next_cursor })
    }

    /// Messages and calls of each file in the order of their places, until `see` has enough.
    fn walk(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        start: Bookmark,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(source) = by_name(&session.source) else { return Ok(()) };
        let builder = EntryBuilder { view: self, source, full: query.full, changes: query.changes };
        let mut contents = self.archive.contents();
        if let Some(branches) = Branches::of(self.archive, session.row, &query.branch)? {
            return walk_branch(&builder, &branches, session.row, query.copies, start, visit);
        }
        let files = self.archive.transcript_files(session.row)?;
        let mut seq = start.seq;
        // A step is told when it is known where the next one begins: what was used until then is its own.
        let tell =
            |held: &mut Option<(Entry, Bookmark)>, until: i64, visit: &mut Visit<'_>| -> Result<bool> {
                let Some((mut entry, bookmark)) = held.take() else { return Ok(true) };
                let file = files.get(bookmark.file).copied().unwrap_or_default();
                let used = self.archive.usage_between(session.row, file, bookmark.place, until)?;
                if !used.is_empty() {
                    let mut cost = Cost::default();
                    let mut tokens = [0; 6];
                    for sum in &used {
                        cost.add(sum);
                        tokens.iter_mut().zip(sum.tokens).for_each(|(total, more)| *total += more);
                    }
                    entry.usage = Some(Tokens::of(&tokens));
                    entry.cost_usd = cost.whole();
                }
                visit(entry, bookmark)
            };
        for (number, file) in files.iter().copied().enumerate().skip(start.file) {
            let mut held = None;
            let mut after = if number == start.file { start.place } else { -1 };
            loop {
                let stretch =
                    Stretch { session: session.row, file, after, limit: STRETCH, copies: query.copies };
                let messages = self.archive.messages_in(&stretch)?;
                let calls = self.archive.lone_calls_in(&stretch)?;
                // Where one list was cut, the other may go no further.
                let full = |count: usize| count as i64 == STRETCH;
                let last_message =
                    messages.last().map(|row| row.span.offset).filter(|_| full(messages.len()));
                let last_call = calls.last().map(|row| row.span.offset).filter(|_| full(calls.len()));
                let cut = last_message.into_iter().chain(last_call).min();
                let within = |place: u64| cut.is_none_or(|cut| place <= cut);
                let mut messages = messages.iter().filter(|row| within(row.span.offset)).peekable();
                let mut calls = calls.iter().filter(|row| within(row.span.offset)).peekable();
                loop {
                    let message_first = match (messages.peek(), calls.peek()) {
                        (None, None) => break,
                        (Some(_), None) => true,
                        (None, Some(_)) => false,
                        (Some(message), Some(call)) => message.span.offset <= call.span.offset,
                    };
                    let (mut entry, place) = if message_first {
                        let Some(message) = messages.next() else { break };
                        (builder.message_with_calls(&mut contents, message)?, message.span.offset)
                    } else {
                        let Some(call) = calls.next() else { break };
                        (builder.call(&mut contents, call)?, call.span.offset)
                    };
                    entry.seq = seq;
                    seq += 1;
                    if !tell(&mut held, place as i64, visit)? {
                        return Ok(());
                    }
                    held = Some((entry, Bookmark { file: number, place: place as i64, seq }));
                }
                match cut {
                    Some(cut) => after = cut as i64,
                    None => break,
                }
            }
            if !tell(&mut held, i64::MAX, visit)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Steps of a conversation that branches, in the order of its tree. A bookmark's place is a node's there.
fn walk_branch(
    builder: &EntryBuilder<'_>,
    branches: &Branches,
    session: i64,
    copies: bool,
    start: Bookmark,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut contents = builder.view.archive.contents();
    let mut seq = start.seq;
    for (at, node) in branches.steps().filter(|(at, _)| *at as i64 > start.place) {
        let row = builder.view.archive.message_at(session, node.file, node.place)?;
        let Some(row) = row.filter(|row| copies || !row.copied) else { continue };
        let mut entry = builder.message_with_calls(&mut contents, &row)?;
        entry.seq = seq;
        seq += 1;
        entry.parent_id = node.parent.map(annals_core::ContentKey::hex);
        entry.on_current_branch = Some(node.current);
        entry.branches = branches.siblings(node);
        if !visit(entry, Bookmark { file: 0, place: at as i64, seq })? {
            return Ok(());
        }
    }
    Ok(())
}

impl Entry {
    /// A step that a person would count or read; not context that the client put in.
    pub fn is_conversation(&self) -> bool {
        let hidden = [MessageKind::Injected.name(), MessageKind::Summary.name()];
        !hidden.contains(&self.kind)
    }
}
