//! Queries for a page of a conversation: its steps and everything that belongs to them, in a handful of statements.

use std::collections::HashMap;

use rusqlite::params;
use serde_json::json;

use super::transcript::Stretch;
use super::usage::{TOTAL_OF, UsageSum, usage_sum};
use super::{
    CALL_COLUMNS, CALL_JOINS, CallRow, MESSAGES, MessageRow, RECORD_COLUMNS, RecordRow, TouchRow, call_row,
    message_row, offset, record_row, touch_row,
};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{CallKind, ContentKey, FileId, SessionId, Span};

/// A step of a conversation: a message, or a call that is not a block of one.
#[derive(Debug, Clone)]
pub enum StepRow {
    Message(MessageRow),
    Call(CallRow),
}

impl StepRow {
    pub fn offset(&self) -> u64 {
        match self {
            StepRow::Message(row) => row.span.offset,
            StepRow::Call(row) => row.span.offset,
        }
    }

    /// Where its bytes end.
    pub fn end(&self) -> u64 {
        match self {
            StepRow::Message(row) => row.span.offset + row.span.length,
            StepRow::Call(row) => row.span.offset + row.span.length,
        }
    }

    fn session_and_file(&self) -> (SessionId, FileId) {
        match self {
            StepRow::Message(row) => (row.session_id, row.file),
            StepRow::Call(row) => (row.session_id, row.file),
        }
    }
}

/// What belongs to the steps of one file: further lines of messages, their calls, and what calls refer to.
#[derive(Debug, Default)]
pub struct StepParts {
    /// By the place of the message.
    lines: HashMap<u64, Vec<Span>>,
    calls: HashMap<u64, Vec<CallRow>>,
    /// By the place of the call.
    touches: HashMap<u64, Vec<TouchRow>>,
    keys: HashMap<u64, ContentKey>,
    /// Sessions that calls started, by the id of the call.
    agents: HashMap<String, String>,
    /// By the name of the record, `stream/key`.
    outputs: HashMap<String, RecordRow>,
}

impl StepParts {
    /// Spans of the further lines of a message.
    pub fn lines(&self, message: &MessageRow) -> &[Span] {
        self.lines.get(&message.span.offset).map(Vec::as_slice).unwrap_or_default()
    }

    /// Calls that are blocks of a message.
    pub fn calls(&self, message: &MessageRow) -> &[CallRow] {
        self.calls.get(&message.span.offset).map(Vec::as_slice).unwrap_or_default()
    }

    /// Files that a call touched.
    pub fn touches(&self, call: &CallRow) -> &[TouchRow] {
        self.touches.get(&call.span.offset).map(Vec::as_slice).unwrap_or_default()
    }

    /// The key of the call whose script made this call.
    pub fn parent(&self, call: &CallRow) -> Option<ContentKey> {
        self.keys.get(&parent_of(call)?).copied()
    }

    /// The session that a call started.
    pub fn agent(&self, call: &CallRow) -> Option<&str> {
        self.agents.get(&call.call_id).filter(|_| call.kind == CallKind::Agent).map(String::as_str)
    }

    /// The record of an output that the client keeps in a separate file.
    pub fn output(&self, call: &CallRow) -> Option<&RecordRow> {
        self.outputs.get(call.full_output.as_deref()?)
    }
}

fn parent_of(call: &CallRow) -> Option<u64> {
    call.parent.filter(|offset| *offset != call.span.offset)
}

impl Archive<'_> {
    /// Steps of one file of a session after a place, in order, up to the limit of the stretch.
    pub fn steps_in(&self, stretch: &Stretch) -> Result<Vec<StepRow>> {
        let messages = self.messages_in(stretch)?.into_iter().map(StepRow::Message);
        let mut steps: Vec<StepRow> = messages.collect();
        steps.extend(self.lone_calls_in(stretch)?.into_iter().map(StepRow::Call));
        // The sort is stable: of two at one place, the message comes first.
        steps.sort_by_key(StepRow::offset);
        steps.truncate(usize::try_from(stretch.limit).unwrap_or(0));
        Ok(steps)
    }

    /// Messages of a session at these files and offsets, unordered.
    pub fn messages_at(&self, session: SessionId, offsets: &[(FileId, u64)]) -> Result<Vec<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.session = ?1 and {{visible}} and (message.file, message.byte_offset) in
             (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?2))"
        );
        let mut statement = self.prepare(&text)?;
        let rows = statement.query_map(params![session, json!(offsets).to_string()], message_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Everything that belongs to steps of one session and one file.
    pub fn step_parts(&self, source: &str, steps: &[StepRow]) -> Result<StepParts> {
        let mut parts = StepParts::default();
        let Some((session, file)) = steps.first().map(StepRow::session_and_file) else { return Ok(parts) };
        let messages: Vec<&MessageRow> = steps
            .iter()
            .filter_map(|step| match step {
                StepRow::Message(row) => Some(row),
                StepRow::Call(_) => None,
            })
            .collect();
        if !messages.is_empty() {
            parts.lines = self.lines_of(session, file, &messages)?;
            parts.calls = self.calls_of(session, file, &messages, &parts.lines)?;
        }
        let lone = steps.iter().filter_map(|step| match step {
            StepRow::Call(row) => Some(row),
            StepRow::Message(_) => None,
        });
        let calls: Vec<&CallRow> = lone.chain(parts.calls.values().flatten()).collect();
        let of_calls = self.call_parts(source, &calls)?;
        Ok(StepParts { lines: parts.lines, calls: parts.calls, ..of_calls })
    }

    /// Everything that calls of one session and one file refer to.
    pub fn call_parts(&self, source: &str, calls: &[&CallRow]) -> Result<StepParts> {
        let Some(first) = calls.first() else { return Ok(StepParts::default()) };
        let names: Vec<&str> = calls.iter().filter_map(|call| call.full_output.as_deref()).collect();
        Ok(StepParts {
            touches: self.touches_of(first.session_id, first.file, calls)?,
            keys: self.keys_at(first.session_id, first.file, calls)?,
            agents: self.agents_of(first.session_id, calls)?,
            outputs: self.newest_records(source, &names)?,
            ..StepParts::default()
        })
    }

    /// Responses in one file of a session from one offset up to another, with their offsets.
    pub fn usage_between(
        &self,
        session: SessionId,
        file: FileId,
        from: i64,
        until: i64,
    ) -> Result<Vec<(i64, UsageSum)>> {
        let text = format!(
            "select null, '', coalesce(usage.at, 0) / 86400000000, name.text,
                    (usage.input + cache_read + cache_write + cache_write_hour > 100000)
                    + (usage.input + cache_read + cache_write + cache_write_hour > 200000)
                    + (usage.input + cache_read + cache_write + cache_write_hour > 272000),
                    1, usage.input, usage.output, cache_read, cache_write, cache_write_hour, reasoning, usage.cost,
                    {TOTAL_OF}, usage.byte_offset
             from usage join session on session.id = usage.session left join name on name.id = usage.model
             where usage.session = ?1 and usage.file = ?2 and usage.byte_offset >= ?3 and usage.byte_offset < ?4
             and {{visible_session}} order by usage.byte_offset"
        );
        let mut statement = self.prepare(&text)?;
        let rows = statement
            .query_map(params![session, file, from, until], |row| Ok((row.get(14)?, usage_sum(row)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The newest version of each of these records, by name (`stream/key`).
    pub fn newest_records(&self, source: &str, names: &[&str]) -> Result<HashMap<String, RecordRow>> {
        let names: Vec<(&str, &str)> = names.iter().filter_map(|name| name.split_once('/')).collect();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        // Names first, then homes: there are few, and the index finds a record by its name in each.
        let mut statement = self.prepare(&format!(
            "select {RECORD_COLUMNS}, record.stream
             from json_each(?2) wanted cross join instance cross join record join file on file.id = record.file
             where instance.source = ?1 and {{visible}} and record.instance = instance.id
             and record.stream = json_extract(wanted.value, '$[0]')
             and record.key = json_extract(wanted.value, '$[1]') order by record.id"
        ))?;
        let rows = statement.query_map(params![source, json!(names).to_string()], |row| {
            let record = record_row(row)?;
            Ok((format!("{}/{}", row.get_ref(11)?.as_str().unwrap_or_default(), record.key), record))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn lines_of(
        &self,
        session: SessionId,
        file: FileId,
        messages: &[&MessageRow],
    ) -> Result<HashMap<u64, Vec<Span>>> {
        let mut statement = self.prepare(sql!(
            "select line, length, byte_offset from message_line
             where session = $1 and file = $2 and byte_offset in (select value from json_each($3)) and {visible_session}
             order by byte_offset, line"
        ))?;
        let offsets: Vec<u64> = messages.iter().map(|message| message.span.offset).collect();
        let rows = statement.query_map(params![session, file, json!(offsets).to_string()], |row| {
            Ok((offset(row, 2)?, super::span(row, 0)?))
        })?;
        group_by_place(rows)
    }

    /// The calls of a message are between its start and the end of its last line.
    fn calls_of(
        &self,
        session: SessionId,
        file: FileId,
        messages: &[&MessageRow],
        lines: &HashMap<u64, Vec<Span>>,
    ) -> Result<HashMap<u64, Vec<CallRow>>> {
        let mut statement = self.prepare(&format!(
            "select {CALL_COLUMNS}, tool_call.message from json_each(?3) wanted cross join tool_call {CALL_JOINS}
             where tool_call.session = ?1 and tool_call.file = ?2 and {{visible}}
             and tool_call.byte_offset >= json_extract(wanted.value, '$[0]')
             and tool_call.byte_offset < json_extract(wanted.value, '$[1]')
             and tool_call.message = json_extract(wanted.value, '$[0]')
             order by tool_call.message, tool_call.byte_offset"
        ))?;
        let ranges: Vec<(u64, u64)> = messages
            .iter()
            .map(|message| {
                let further = lines.get(&message.span.offset).into_iter().flatten();
                let ends = further.chain([&message.span]).map(|line| line.offset + line.length);
                (message.span.offset, ends.max().unwrap_or(message.span.offset))
            })
            .collect();
        let rows = statement.query_map(params![session, file, json!(ranges).to_string()], |row| {
            Ok((offset(row, 22)?, call_row(row)?))
        })?;
        group_by_place(rows)
    }

    fn touches_of(
        &self,
        session: SessionId,
        file: FileId,
        calls: &[&CallRow],
    ) -> Result<HashMap<u64, Vec<TouchRow>>> {
        let mut statement = self.prepare(sql!(
            "select name.text, operation, before_start, before_end, after_start, after_end, byte_offset
             from file_touch join name on name.id = file_touch.path
             where session = $1 and file = $2 and byte_offset in (select value from json_each($3)) and {visible_session}
             order by byte_offset, number"
        ))?;
        let offsets: Vec<u64> = calls.iter().map(|call| call.span.offset).collect();
        let rows = statement.query_map(params![session, file, json!(offsets).to_string()], |row| {
            Ok((offset(row, 6)?, touch_row(row)?))
        })?;
        group_by_place(rows)
    }

    /// Keys of the calls whose scripts made these calls.
    fn keys_at(
        &self,
        session: SessionId,
        file: FileId,
        calls: &[&CallRow],
    ) -> Result<HashMap<u64, ContentKey>> {
        let offsets: Vec<u64> = calls.iter().filter_map(|call| parent_of(call)).collect();
        if offsets.is_empty() {
            return Ok(HashMap::new());
        }
        let mut statement = self.prepare(sql!(
            "select byte_offset, key from tool_call
             where session = $1 and file = $2 and byte_offset in (select value from json_each($3)) and {visible_session}"
        ))?;
        let rows = statement.query_map(params![session, file, json!(offsets).to_string()], |row| {
            Ok((offset(row, 0)?, ContentKey::from_stored(row.get(1)?)))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn agents_of(&self, session: SessionId, calls: &[&CallRow]) -> Result<HashMap<String, String>> {
        let agents = calls.iter().filter(|call| call.kind == CallKind::Agent);
        let ids: Vec<&str> = agents.map(|call| call.call_id.as_str()).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut statement = self.prepare(sql!(
            "select link.position, link.other from link join session on session.id = link.session
             join session child on child.instance = session.instance and child.key = link.other
             where link.session = $1 and {visible_session} and link.kind = 'sub_agent'
             and link.position in (select value from json_each($2))"
        ))?;
        let mut rows = statement.query(params![session, json!(ids).to_string()])?;
        let mut agents = HashMap::new();
        while let Some(row) = rows.next()? {
            agents.entry(row.get(0)?).or_insert(row.get(1)?);
        }
        Ok(agents)
    }
}

/// Groups rows by place, keeping their order.
fn group_by_place<T>(rows: impl Iterator<Item = rusqlite::Result<(u64, T)>>) -> Result<HashMap<u64, Vec<T>>> {
    let mut gathered: HashMap<u64, Vec<T>> = HashMap::new();
    for row in rows {
        let (offset, value) = row?;
        gathered.entry(offset).or_default().push(value);
    }
    Ok(gathered)
}
