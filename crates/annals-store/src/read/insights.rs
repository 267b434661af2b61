//! What happened in sessions between two moments, row by row: prompts, notices, responses and edits.

use rusqlite::{Rows, ToSql, params};

use super::sessions::{SessionFilter, session_conditions};
use super::{optional_raw, raw, span, time, tokens};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{ContentKey, FileId, MessageKind, Operation, Range, Raw, SessionId, Span, Time, Tokens};

/// A stretch of time: from a moment on, and before another.
pub type Between = (Time, Time);

/// The session that something happened in.
#[derive(Debug, Clone)]
pub struct InSession {
    pub session: SessionId,
    pub source: String,
    pub cwd: Option<Raw>,
    pub at: Time,
}

/// A prompt, or a notice of the client.
#[derive(Debug)]
pub struct MomentRow {
    pub place: InSession,
    pub kind: MessageKind,
    pub key: ContentKey,
    pub file: FileId,
    pub span: Span,
    /// What was typed, where it is recorded.
    pub words: Option<ContentKey>,
}

/// A response, without its text.
#[derive(Debug)]
pub struct TurnRow {
    pub place: InSession,
    pub file: FileId,
    pub offset: u64,
    pub model: Option<String>,
    pub tokens: Tokens,
}

/// Lines of a file that an edit replaced.
#[derive(Debug)]
pub struct EditRow {
    pub place: InSession,
    /// The step that contains the call.
    pub step: ContentKey,
    /// A path names one file on each machine.
    pub machine: String,
    pub path: Raw,
    pub operation: Operation,
    pub before: Option<Range>,
    pub after: Option<Range>,
}

/// A call that failed.
#[derive(Debug)]
pub struct FailureRow {
    pub place: InSession,
    /// The step that contains the call.
    pub step: ContentKey,
    pub tool: Raw,
    pub title: Raw,
}

/// The step that contains a call.
const STEP_OF_CALL: &str =
    "coalesce((select message.key from message where message.session = tool_call.session
    and message.file = tool_call.file and message.byte_offset = tool_call.message), tool_call.key)";

/// The columns of `InSession`, of rows in a table.
fn columns(table: &str) -> String {
    format!("session.id, instance.source, session.cwd, {table}.at")
}

fn in_session(row: &rusqlite::Row<'_>) -> rusqlite::Result<InSession> {
    Ok(InSession {
        session: row.get(0)?,
        source: row.get(1)?,
        cwd: optional_raw(row, 2)?,
        at: time(row, 3)?.unwrap_or(Time::from_micros(0)),
    })
}

impl Archive<'_> {
    /// Visits prompts, or notices and summaries, of the sessions that fit, the latest first.
    pub fn moments_between(
        &self,
        filter: &SessionFilter,
        between: Between,
        kinds: [MessageKind; 2],
        visit: &mut dyn FnMut(MomentRow) -> bool,
    ) -> Result<()> {
        let [one, other] = kinds.map(MessageKind::stored);
        let text = format!(
            "select {}, message.kind, message.key, message.file, message.byte_offset, message.length, spoken.words
             from session join instance on instance.id = session.instance
             join message on message.session = session.id
             left join spoken on spoken.session = message.session and spoken.file = message.file
                  and spoken.byte_offset = message.byte_offset
             where {{visible}} and message.kind in ({one}, {other}) and not {{twin:message}}",
            columns("message")
        );
        self.each_between("message", &text, filter, between, "message.at desc, message.key", &mut |rows| {
            while let Some(row) = rows.next()? {
                let moment = MomentRow {
                    place: in_session(row)?,
                    kind: MessageKind::from_stored(row.get(4)?),
                    key: ContentKey::from_stored(row.get(5)?),
                    file: row.get(6)?,
                    span: span(row, 7)?,
                    words: row.get::<_, Option<i64>>(9)?.map(ContentKey::from_stored),
                };
                if !visit(moment) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Visits responses of the sessions that fit, those of a file in the order of their time.
    pub fn turns_between(
        &self,
        filter: &SessionFilter,
        between: Between,
        visit: &mut dyn FnMut(TurnRow),
    ) -> Result<()> {
        let text = format!(
            "select {}, usage.file, usage.byte_offset, name.text, usage.input, usage.output, usage.cache_read,
                    usage.cache_write, usage.cache_write_hour, usage.reasoning
             from session join instance on instance.id = session.instance
             join usage on usage.session = session.id left join name on name.id = usage.model
             where {{visible}} and not {{twin:usage}}",
            columns("usage")
        );
        let order = "session.id, usage.file, usage.at, usage.byte_offset";
        self.each_between("usage", &text, filter, between, order, &mut |rows| {
            while let Some(row) = rows.next()? {
                visit(TurnRow {
                    place: in_session(row)?,
                    file: row.get(4)?,
                    offset: super::offset(row, 5)?,
                    model: row.get(6)?,
                    tokens: tokens(row, 7)?,
                });
            }
            Ok(())
        })
    }

    /// Visits edits that did not fail, those of a file in the order of their time.
    pub fn edits_between(
        &self,
        filter: &SessionFilter,
        between: Between,
        visit: &mut dyn FnMut(EditRow),
    ) -> Result<()> {
        let text = format!(
            "select {}, {STEP_OF_CALL}, instance.machine, name.text, touch.operation, touch.before_start,
                    touch.before_end, touch.after_start, touch.after_end
             from session join instance on instance.id = session.instance
             join tool_call on tool_call.session = session.id
             join file_touch touch on touch.session = tool_call.session and touch.file = tool_call.file
                  and touch.byte_offset = tool_call.byte_offset
             join name on name.id = touch.path
             where {{visible}} and touch.operation <> {} and coalesce(tool_call.ok, 1) = 1
             and not {{twin:tool_call}}",
            columns("tool_call"),
            Operation::Read.stored()
        );
        let order = "instance.machine, touch.path, tool_call.at, tool_call.session, tool_call.file,
                     tool_call.byte_offset, touch.number";
        self.each_between("tool_call", &text, filter, between, order, &mut |rows| {
            while let Some(row) = rows.next()? {
                visit(EditRow {
                    place: in_session(row)?,
                    step: ContentKey::from_stored(row.get(4)?),
                    machine: row.get(5)?,
                    path: raw(row, 6)?,
                    operation: Operation::from_stored(row.get(7)?),
                    before: super::range(row, 8)?,
                    after: super::range(row, 10)?,
                });
            }
            Ok(())
        })
    }

    /// Visits calls that failed, without those of scripts, which fail with their script.
    pub fn failures_between(
        &self,
        filter: &SessionFilter,
        between: Between,
        visit: &mut dyn FnMut(FailureRow),
    ) -> Result<()> {
        let text = format!(
            "select {}, {STEP_OF_CALL}, name.text, tool_call.title
             from session join instance on instance.id = session.instance
             join tool_call on tool_call.session = session.id join name on name.id = tool_call.name
             where {{visible}} and tool_call.ok = 0 and tool_call.parent is null and not {{twin:tool_call}}",
            columns("tool_call")
        );
        let order = "tool_call.at desc, tool_call.key";
        self.each_between("tool_call", &text, filter, between, order, &mut |rows| {
            while let Some(row) = rows.next()? {
                visit(FailureRow {
                    place: in_session(row)?,
                    step: ContentKey::from_stored(row.get(4)?),
                    tool: raw(row, 5)?,
                    title: raw(row, 6)?,
                });
            }
            Ok(())
        })
    }

    /// The step at a place of a file, or the last one before it.
    pub fn step_until(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<ContentKey>> {
        let mut statement = self.prepare(sql!(
            "select message.key from message where message.session = $1 and message.file = $2
             and message.byte_offset <= $3 and not copied and {visible_session}
             order by message.byte_offset desc limit 1"
        ))?;
        let mut rows = statement.query(params![session, file, offset as i64])?;
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?.map(ContentKey::from_stored))
    }

    /// Reads what is not a copy, with the conditions on its session and its time.
    fn each_between(
        &self,
        table: &str,
        text: &str,
        filter: &SessionFilter,
        (from, to): Between,
        order: &str,
        read: &mut dyn FnMut(&mut Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let (conditions, mut values) = session_conditions(filter);
        values.push(Box::new(from.micros()));
        values.push(Box::new(to.micros()));
        let text = format!(
            "{text} and {conditions} and {table}.copied = 0 and {table}.at >= ?{} and {table}.at < ?{} order by {order}",
            values.len() - 1,
            values.len()
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        read(&mut statement.query(values.as_slice())?)
    }
}
