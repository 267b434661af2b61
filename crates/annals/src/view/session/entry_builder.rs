//! Builds entries from rows: messages and calls, with their bytes read from the archive.

use serde_json::Value;

use super::transcript::{BlockView, Cut, Entry, FileView};
use crate::view::context::View;
use crate::view::door::Extent;
use annals_core::{Block, ContentKey, Result, Shown, Span, Time};
use annals_sources::Source;
use annals_store::{
    Archive, CallRow, Contents, MessageRow, RecordRow, SpanRequest, StepParts, StepRow, TouchRow,
};

/// Builds entries from rows.
pub struct EntryBuilder<'a> {
    pub view: &'a View<'a>,
    pub source: &'static dyn Source,
    pub full: bool,
    pub changes: bool,
}

impl EntryBuilder<'_> {
    /// Steps of one session and one file, in order. Everything they need is read at once.
    pub fn each(
        &self,
        contents: &mut Contents<'_>,
        steps: &[StepRow],
        visit: &mut dyn FnMut(&StepRow, Entry) -> Result<()>,
    ) -> Result<()> {
        let parts = self.view.archive.step_parts(self.source.manifest().source, steps)?;
        contents.load(&self.wanted_bytes(steps, &parts))?;
        let session = match steps.first() {
            Some(StepRow::Message(row)) => row.session.as_str(),
            Some(StepRow::Call(row)) => row.session.as_str(),
            None => return Ok(()),
        };
        let mut arranged = self.view.message_arrangements(self.source.manifest().source, session)?;
        for step in steps {
            let mut entry = match step {
                StepRow::Message(row) => self.message_with_calls(contents, row, &parts)?,
                StepRow::Call(row) => self.call(contents, row, &parts)?,
            };
            entry.arrangement = arranged.remove(&entry.id);
            visit(step, entry)?;
        }
        Ok(())
    }

    fn wanted_bytes(&self, steps: &[StepRow], parts: &StepParts) -> Vec<SpanRequest> {
        let mut wanted = Vec::new();
        for step in steps {
            let calls = match step {
                StepRow::Message(row) => {
                    let lines = [row.span].into_iter().chain(parts.lines(row).iter().copied());
                    wanted.extend(lines.map(|span| SpanRequest { file: row.file, version: None, span }));
                    parts.calls(row)
                }
                StepRow::Call(row) => std::slice::from_ref(row),
            };
            for call in calls {
                let kept_apart = parts.output(call);
                wanted.extend(kept_apart.map(|record| SpanRequest {
                    file: record.file,
                    version: Some((record.file_version, record.encoding)),
                    span: record.span,
                }));
                let output = call.output.filter(|_| self.changes || kept_apart.is_none());
                let detail = call.detail.filter(|_| self.changes || kept_apart.is_none() && output.is_none());
                let spans = [Some(call.span), output, detail].into_iter().flatten();
                wanted.extend(spans.map(|span| SpanRequest { file: call.file, version: None, span }));
            }
        }
        wanted
    }

    pub fn message(&self, contents: &mut Contents<'_>, row: &MessageRow) -> Result<Entry> {
        let further = self.view.archive.message_lines(row.session_id, row.file, row.span.offset)?;
        self.message_of(contents, row, &further)
    }

    fn message_of(&self, contents: &mut Contents<'_>, row: &MessageRow, further: &[Span]) -> Result<Entry> {
        let mut lines = vec![contents.span(row.file, row.span)?];
        for line in further {
            lines.push(contents.span(row.file, *line)?);
        }
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.expose()).collect();
        // Calls have their own rows, with their results.
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
            arrangement: None,
            on_current_branch: None,
            branches: Vec::new(),
            branch_count: None,
        })
    }

    fn message_with_calls(
        &self,
        contents: &mut Contents<'_>,
        row: &MessageRow,
        parts: &StepParts,
    ) -> Result<Entry> {
        let mut entry = self.message_of(contents, row, parts.lines(row))?;
        for call in parts.calls(row) {
            entry.blocks.extend(self.call(contents, call, parts)?.blocks);
        }
        Ok(entry)
    }

    fn call(&self, contents: &mut Contents<'_>, row: &CallRow, parts: &StepParts) -> Result<Entry> {
        let input = self.input(contents, row)?;
        let (input, full_bytes) = self.view.door.json_preview(input, Extent::of(self.full));
        let cut = Cut { truncated: full_bytes.is_some(), full_bytes };
        let call_id = self.view.door.text(&row.call_id);
        let mut blocks = vec![BlockView::ToolCall {
            call_id: call_id.clone(),
            name: row.name.clone(),
            kind: row.kind.name(),
            title: self.view.door.raw(&row.title),
            input,
            cut,
            files: self.files(parts.touches(row)),
            changes: if self.changes { self.changes(contents, row, parts.touches(row))? } else { Vec::new() },
            agent_session_id: parts.agent(row).map(str::to_owned),
        }];
        if let Some(output) = self.output_from(contents, row, parts.output(row))? {
            let (output, full_bytes) = self.view.door.preview(&output, Extent::of(self.full));
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
            parent_id: parts.parent(row).map(ContentKey::hex),
            copied: row.copied,
            blocks,
            usage: None,
            cost_usd: None,
            arrangement: None,
            on_current_branch: None,
            branches: Vec::new(),
            branch_count: None,
        })
    }

    /// The input of a call; JSON inside a string is parsed.
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

    /// The complete output if it was stored separately, else what the model saw, else the client's record of it.
    pub fn output(&self, contents: &mut Contents<'_>, row: &CallRow) -> Result<Option<String>> {
        let names: Vec<&str> = row.full_output.as_deref().into_iter().collect();
        let records = self.view.archive.newest_records(self.source.manifest().source, &names)?;
        self.output_from(contents, row, records.values().next())
    }

    pub fn output_from(
        &self,
        contents: &mut Contents<'_>,
        row: &CallRow,
        kept_apart: Option<&RecordRow>,
    ) -> Result<Option<String>> {
        if let Some(record) = kept_apart {
            return record_text(contents, record).map(Some);
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

    pub fn files(&self, touches: &[TouchRow]) -> Vec<FileView> {
        let view = touches.iter().map(|touch| FileView {
            path: self.view.door.raw(&touch.path),
            operation: touch.operation.name(),
            before: touch.before.map(|range| [range.start, range.end]),
            after: touch.after.map(|range| [range.start, range.end]),
        });
        view.collect()
    }

    pub fn block(&self, block: Block) -> BlockView {
        let text = |text: &str| {
            let (shown, full_bytes) = self.view.door.preview(text, Extent::of(self.full));
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
                BlockView::Image { media_type, bytes, path: path.map(|path| self.view.door.text(&path)) }
            }
            Block::Attachment { name } => BlockView::Attachment { name: self.view.door.text(&name) },
            Block::Context { name, text: whole } | Block::Event { name, text: whole } => {
                BlockView::Event { name, text: text(&whole).0 }
            }
            Block::ToolCall { call_id, name, input } => BlockView::ToolCall {
                call_id: self.view.door.text(&call_id),
                name,
                kind: "function",
                title: Shown::default(),
                input: self.view.door.json(input),
                cut: Cut::default(),
                files: Vec::new(),
                changes: Vec::new(),
                agent_session_id: None,
            },
            Block::ToolResult { call_id, output } => {
                let (output, cut) = text(&output);
                let call_id = self.view.door.text(&call_id);
                BlockView::ToolResult { call_id, ok: None, exit_code: None, duration_ms: None, output, cut }
            }
        }
    }
}

/// The record (`stream/key`) of an output that the client stored separately.
pub fn kept_apart(
    archive: Archive<'_>,
    contents: &mut Contents<'_>,
    source: &'static dyn Source,
    name: &str,
) -> Result<Option<String>> {
    let records = archive.newest_records(source.manifest().source, &[name])?;
    records.values().next().map(|record| record_text(contents, record)).transpose()
}

fn record_text(contents: &mut Contents<'_>, record: &RecordRow) -> Result<String> {
    let bytes = contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
    Ok(String::from_utf8_lossy(bytes.expose()).into_owned())
}
