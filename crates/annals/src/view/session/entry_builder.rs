//! Builds entries from rows: messages and calls, with their bytes read from the archive.

use serde_json::Value;

use super::transcript::{BlockView, Cut, Entry, FileView};
use crate::view::door::{Door, Extent};
use annals_core::{Block, CallKind, Result, Scope, Shown, Span, Time};
use annals_sources::Source;
use annals_store::{CallRow, Contents, MessageRow, Store};

/// Makes entries of rows.
pub struct EntryBuilder<'a> {
    pub scope: &'a Scope,
    pub store: &'a Store,
    pub door: &'a Door,
    pub source: &'static dyn Source,
    pub full: bool,
    pub changes: bool,
}

impl EntryBuilder<'_> {
    pub fn message(&self, contents: &mut Contents<'_>, row: &MessageRow) -> Result<Entry> {
        let further = self.store.message_lines(self.scope, row.session_id, row.file, row.span.offset)?;
        self.message_of(contents, row, &further)
    }

    fn message_of(&self, contents: &mut Contents<'_>, row: &MessageRow, further: &[Span]) -> Result<Entry> {
        let mut lines = vec![contents.span(row.file, row.span)?];
        for line in further {
            lines.push(contents.span(row.file, *line)?);
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
            usage: None,
            cost_usd: None,
            on_current_branch: None,
            branches: Vec::new(),
        })
    }

    pub fn message_with_calls(&self, contents: &mut Contents<'_>, row: &MessageRow) -> Result<Entry> {
        let further = self.store.message_lines(self.scope, row.session_id, row.file, row.span.offset)?;
        let mut entry = self.message_of(contents, row, &further)?;
        let ends = further.iter().chain([&row.span]).map(|line| line.offset + line.length);
        let end = ends.max().unwrap_or(row.span.offset);
        for call in self.store.calls_of_message(self.scope, row, end)? {
            entry.blocks.extend(self.call(contents, &call)?.blocks);
        }
        Ok(entry)
    }

    pub fn call(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Entry> {
        let input = self.input(contents, row)?;
        let (input, full_bytes) = self.door.json_preview(input, Extent::of(self.full));
        let cut = Cut { truncated: full_bytes.is_some(), full_bytes };
        let call_id = self.door.text(&row.call_id);
        let mut blocks = vec![BlockView::ToolCall {
            call_id: call_id.clone(),
            name: row.name.clone(),
            kind: row.kind.name(),
            title: self.door.raw(&row.title),
            input,
            cut,
            files: self.files(row)?,
            changes: if self.changes { self.changes(contents, row)? } else { Vec::new() },
            agent_session_id: self.agent(row)?,
        }];
        if let Some(output) = self.output(contents, row)? {
            let (output, full_bytes) = self.door.preview(&output, Extent::of(self.full));
            blocks.push(BlockView::ToolResult {
                call_id,
                ok: row.ok,
                exit_code: row.exit_code,
                duration_ms: row.duration_ms,
                output,
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
            usage: None,
            cost_usd: None,
            on_current_branch: None,
            branches: Vec::new(),
        })
    }

    fn agent(&self, row: &CallRow) -> Result<Option<String>> {
        if row.kind != CallKind::Agent {
            return Ok(None);
        }
        Ok(self.store.agent_of_call(self.scope, row.session_id, &row.call_id)?)
    }

    /// The call whose script made this one.
    pub fn parent(&self, row: &CallRow) -> Result<Option<String>> {
        let Some(place) = row.parent.filter(|place| *place != row.span.offset) else { return Ok(None) };
        Ok(self
            .store
            .call_key(self.scope, row.session_id, row.file, place)?
            .map(annals_core::ContentKey::hex))
    }

    /// What the call asked for; JSON in a string is opened.
    pub fn input(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Value> {
        let bytes = contents.span(row.file, row.span)?;
        let input = self.source.blocks(&[bytes.expose()]).into_iter().find_map(|block| match block {
            Block::ToolCall { input, .. } => Some(input),
            _ => None,
        });
        Ok(match input {
            Some(Value::String(text)) => serde_json::from_str::<Value>(&text)
                .ok()
                .filter(|value| value.is_object() && text.len() <= crate::view::door::PREVIEW)
                .unwrap_or(Value::String(text)),
            Some(value) => value,
            None => Value::Null,
        })
    }

    /// The whole output where it was kept apart, else what the model saw, else the client's own record of it.
    pub fn output(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Option<String>> {
        if let Some(whole) =
            kept_apart(self.scope, self.store, contents, self.source, row.full_output.as_deref())?
        {
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

    pub fn files(&self, row: &CallRow) -> Result<Vec<FileView>> {
        let touches = self.store.touches(self.scope, row.session_id, row.file, row.span.offset)?;
        let view = touches.iter().map(|touch| FileView {
            path: self.door.raw(&touch.path),
            operation: touch.operation.name(),
            before: touch.before.map(|range| [range.start, range.end]),
            after: touch.after.map(|range| [range.start, range.end]),
        });
        Ok(view.collect())
    }

    pub fn block(&self, block: Block) -> BlockView {
        let text = |text: &str| {
            let (shown, full_bytes) = self.door.preview(text, Extent::of(self.full));
            (shown, Cut { truncated: full_bytes.is_some(), full_bytes })
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
            Block::Context { name, text: whole } | Block::Event { name, text: whole } => {
                BlockView::Event { name, text: text(&whole).0 }
            }
            Block::ToolCall { call_id, name, input } => BlockView::ToolCall {
                call_id: self.door.text(&call_id),
                name,
                kind: "function",
                title: Shown::default(),
                input: self.door.json(input),
                cut: Cut::default(),
                files: Vec::new(),
                changes: Vec::new(),
                agent_session_id: None,
            },
            Block::ToolResult { call_id, output } => {
                let (output, cut) = text(&output);
                let call_id = self.door.text(&call_id);
                BlockView::ToolResult { call_id, ok: None, exit_code: None, duration_ms: None, output, cut }
            }
        }
    }
}

/// An output that its client kept apart, by the name of its record: `stream/key`.
pub fn kept_apart(
    scope: &Scope,
    store: &Store,
    contents: &mut Contents<'_>,
    source: &'static dyn Source,
    name: Option<&str>,
) -> Result<Option<String>> {
    let Some((stream, key)) = name.and_then(|name| name.split_once('/')) else { return Ok(None) };
    let mut whole = None;
    store.each_record(scope, source.manifest().source, stream, Some(key), 0, &mut |record| {
        let bytes =
            contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
        whole = Some(String::from_utf8_lossy(bytes.expose()).into_owned());
        Ok(true)
    })?;
    Ok(whole)
}
