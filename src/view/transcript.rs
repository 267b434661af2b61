//! A session's conversation in order: messages, and calls with what came of them.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::door::{Door, preview, preview_json};
use super::sessions::SessionView;
use crate::model::{Block, MessageKind, Result, Scope, Shown, ShownJson, Time};
use crate::sources::{Source, by_name};
use crate::store::{CallRow, Contents, MessageRow, Store};

#[derive(Debug, Clone, Copy, Default)]
pub struct TranscriptAsk {
    /// Whole texts instead of previews.
    pub full: bool,
    /// Also what was copied from another session.
    pub copies: bool,
}

/// One step of the conversation.
#[derive(Debug, Serialize)]
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
}

#[derive(Debug, Serialize)]
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
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Cut {
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct FileView {
    pub path: Shown,
    pub operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<[u32; 2]>,
}

/// Entries in the order of the transcript, one at a time: a long session is never in memory as a whole.
pub fn transcript(
    scope: &Scope,
    store: &Store,
    door: &Door,
    session: &SessionView,
    ask: TranscriptAsk,
    see: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let Some(source) = by_name(&session.source) else { return Ok(()) };
    let mut messages = store.messages(scope, session.row)?.into_iter().peekable();
    // Calls that are blocks of a message are told with it.
    let mut within: HashMap<(i64, u64), Vec<CallRow>> = HashMap::new();
    let mut alone = Vec::new();
    for call in store.calls(scope, session.row)? {
        match call.message {
            Some(message) => within.entry((call.file, message)).or_default().push(call),
            None => alone.push(call),
        }
    }
    let mut calls = alone.into_iter().peekable();
    let teller = Teller { scope, store, door, source, full: ask.full };
    let mut contents = store.contents(scope);
    let mut seq = 0;
    // Both are in the order of files and places; files of one session are few.
    let mut order: Vec<i64> = Vec::new();
    loop {
        let place = |order: &mut Vec<i64>, file: i64| match order.iter().position(|known| *known == file) {
            Some(at) => at,
            None => {
                order.push(file);
                order.len() - 1
            }
        };
        let message_at =
            messages.peek().map(|message| (place(&mut order, message.file), message.span.offset));
        let call_at = calls.peek().map(|call| (place(&mut order, call.file), call.span.offset));
        let message_first = match (message_at, call_at) {
            (None, None) => return Ok(()),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(message), Some(call)) => message <= call,
        };
        let entry = if message_first {
            let message = messages.next().filter(|message| ask.copies || !message.copied);
            message.map(|message| {
                let calls = within.remove(&(message.file, message.span.offset)).unwrap_or_default();
                teller.message_with_calls(&mut contents, &message, &calls)
            })
        } else {
            let call = calls.next().filter(|call| ask.copies || !call.copied);
            call.map(|call| teller.call(&mut contents, &call))
        };
        if let Some(entry) = entry {
            let mut entry = entry?;
            entry.seq = seq;
            seq += 1;
            see(entry)?;
        }
    }
}

/// Makes entries of rows.
pub(super) struct Teller<'a> {
    pub scope: &'a Scope,
    pub store: &'a Store,
    pub door: &'a Door,
    pub source: &'static dyn Source,
    pub full: bool,
}

impl Teller<'_> {
    pub(super) fn message(&self, contents: &mut Contents<'_>, row: &MessageRow) -> Result<Entry> {
        let mut lines = vec![contents.span(row.file, row.span)?];
        for line in self.store.message_lines(self.scope, row.session_id, row.file, row.span.offset)? {
            lines.push(contents.span(row.file, line)?);
        }
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.expose()).collect();
        // Calls have rows of their own, with what came of them.
        let blocks =
            self.source.blocks(&lines).into_iter().filter(|block| !matches!(block, Block::ToolCall { .. }));
        let blocks = blocks.map(|block| self.block(block)).collect();
        Ok(Entry {
            id: row.key.hex(),
            seq: 0,
            role: row.role.name(),
            kind: row.kind.name(),
            at: row.at.map(Time::rfc3339),
            model: row.model.clone(),
            parent_id: None,
            copied: row.copied,
            blocks,
        })
    }

    fn message_with_calls(
        &self,
        contents: &mut Contents<'_>,
        row: &MessageRow,
        calls: &[CallRow],
    ) -> Result<Entry> {
        let mut entry = self.message(contents, row)?;
        for call in calls {
            entry.blocks.extend(self.call(contents, call)?.blocks);
        }
        Ok(entry)
    }

    pub(super) fn call(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Entry> {
        let input = self.input(contents, row)?;
        let (input, full_bytes) = preview_json(input, self.full);
        let cut = Cut { truncated: full_bytes.is_some(), full_bytes };
        let call_id = self.door.text(&row.call_id);
        let mut blocks = vec![BlockView::ToolCall {
            call_id: call_id.clone(),
            name: row.name.clone(),
            kind: row.kind.name(),
            title: self.door.raw(&row.title),
            input: self.door.json(input),
            cut,
            files: self.files(row)?,
        }];
        if let Some(output) = self.output(contents, row)? {
            let (start, full_bytes) = preview(&output, self.full);
            blocks.push(BlockView::ToolResult {
                call_id,
                ok: row.ok,
                exit_code: row.exit_code,
                duration_ms: row.duration_ms,
                output: self.door.text(start),
                cut: Cut { truncated: full_bytes.is_some(), full_bytes },
            });
        }
        Ok(Entry {
            id: row.key.hex(),
            seq: 0,
            role: "assistant",
            kind: "call",
            at: row.at.map(Time::rfc3339),
            model: row.model.clone(),
            parent_id: self.parent(row)?,
            copied: row.copied,
            blocks,
        })
    }

    /// The call whose script made this one.
    pub(super) fn parent(&self, row: &CallRow) -> Result<Option<String>> {
        let Some(place) = row.parent.filter(|place| *place != row.span.offset) else { return Ok(None) };
        Ok(self.store.call_key(self.scope, row.session_id, row.file, place)?.map(crate::model::Key::hex))
    }

    /// What the call asked for; JSON in a string is opened.
    pub(super) fn input(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Value> {
        let bytes = contents.span(row.file, row.span)?;
        let input = self.source.blocks(&[bytes.expose()]).into_iter().find_map(|block| match block {
            Block::ToolCall { input, .. } => Some(input),
            _ => None,
        });
        Ok(match input {
            Some(Value::String(text)) => serde_json::from_str::<Value>(&text)
                .ok()
                .filter(|value| value.is_object() && text.len() <= super::door::PREVIEW)
                .unwrap_or(Value::String(text)),
            Some(value) => value,
            None => Value::Null,
        })
    }

    /// The whole output where it was kept apart, else what the model saw, else the client's own record of it.
    pub(super) fn output(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Option<String>> {
        if let Some(whole) = self.whole_output(contents, row)? {
            return Ok(Some(whole));
        }
        for span in [row.output, row.detail].into_iter().flatten() {
            let bytes = contents.span(row.file, span)?;
            let output = self.source.blocks(&[bytes.expose()]).into_iter().find_map(|block| match block {
                Block::ToolResult { output, .. } => Some(output),
                _ => None,
            });
            if output.is_some() {
                return Ok(output);
            }
        }
        Ok(None)
    }

    fn whole_output(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Option<String>> {
        let Some((stream, key)) = row.full_output.as_deref().and_then(|full| full.split_once('/')) else {
            return Ok(None);
        };
        let mut whole = None;
        let source = self.source.manifest().source;
        self.store.each_record(self.scope, source, stream, Some(key), &mut |record| {
            let bytes =
                contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
            whole = Some(String::from_utf8_lossy(bytes.expose()).into_owned());
            Ok(true)
        })?;
        Ok(whole)
    }

    pub(super) fn files(&self, row: &CallRow) -> Result<Vec<FileView>> {
        let touches = self.store.touches(self.scope, row.session_id, row.file, row.span.offset)?;
        let view = touches.iter().map(|touch| FileView {
            path: self.door.raw(&touch.path),
            operation: touch.operation.name(),
            before: touch.before.map(|range| [range.start, range.end]),
            after: touch.after.map(|range| [range.start, range.end]),
        });
        Ok(view.collect())
    }

    pub(super) fn block(&self, block: Block) -> BlockView {
        let text = |text: &str| {
            let (start, full_bytes) = preview(text, self.full);
            (self.door.text(start), Cut { truncated: full_bytes.is_some(), full_bytes })
        };
        match block {
            Block::Text(whole) => {
                let (text, cut) = text(&whole);
                BlockView::Text { text, cut }
            }
            Block::Thinking(whole) => {
                let (text, cut) = text(&whole);
                BlockView::Thinking { text, cut }
            }
            Block::Image { media_type, bytes, path } => {
                BlockView::Image { media_type, bytes, path: path.map(|path| self.door.text(&path)) }
            }
            Block::Attachment { name } => BlockView::Attachment { name: self.door.text(&name) },
            Block::Event { name, text: whole } => BlockView::Event { name, text: text(&whole).0 },
            Block::ToolCall { call_id, name, input } => BlockView::ToolCall {
                call_id: self.door.text(&call_id),
                name,
                kind: "function",
                title: Shown::default(),
                input: self.door.json(input),
                cut: Cut::default(),
                files: Vec::new(),
            },
            Block::ToolResult { call_id, output } => {
                let (output, cut) = text(&output);
                let call_id = self.door.text(&call_id);
                BlockView::ToolResult { call_id, ok: None, exit_code: None, duration_ms: None, output, cut }
            }
        }
    }
}

impl Entry {
    /// A step that a person would count or read; not context that the client put in.
    // no scope: looks at an answer that was given
    pub fn is_conversation(&self) -> bool {
        let hidden = [MessageKind::Injected.name(), MessageKind::Summary.name()];
        !hidden.contains(&self.kind)
    }
}
