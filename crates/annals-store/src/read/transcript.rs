//! Queries about the conversation of a session: its rows in order, in batches.

use rusqlite::{OptionalExtension, params};

use super::{CALL_COLUMNS, CALL_JOINS, CallRow, MESSAGES, MessageRow, call_row, message_row};
use crate::Archive;
use crate::error::Result;
use annals_core::{Encoding, FileId, Framing, InstanceId, SessionId, Span, Time};

/// Rows of one file of a session after a place.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub session: SessionId,
    pub file: FileId,
    pub after: i64,
    pub limit: i64,
    /// Include messages copied from another session.
    pub copies: bool,
}

/// A record and its place.
#[derive(Debug, Clone)]
pub struct PlacedRecord {
    pub source: String,
    pub stream: String,
    pub key: String,
    pub at: Option<Time>,
    pub file: FileId,
    pub file_version: i64,
    pub encoding: Encoding,
    pub span: Span,
}

/// A file with rows of a session, and how to read its content. Only reads of visible sessions return one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TranscriptFile {
    pub id: FileId,
    pub instance: InstanceId,
    pub path: String,
    pub reader: String,
    pub framing: Framing,
    pub encoding: Encoding,
    /// The version that rows point into.
    pub version: i64,
    pub modified: Option<Time>,
}

impl Archive<'_> {
    /// The transcripts of a session, in the order of `transcript_files`.
    pub fn transcript_sources(&self, session: SessionId) -> Result<Vec<TranscriptFile>> {
        let mut statement = self.prepare(crate::sql!(
            "select file.id, file.instance, file.path, file.reader, file.framing, file.encoding, file.rows_version,
                    file.modified
             from session_part part join file on file.id = part.file
             where part.session = $1 and file.rows_owner is null and {visible_session} order by file.logical_path, file.id"
        ))?;
        let rows = statement.query_map(params![session], |row| {
            let lines = row.get_ref(4)?.as_str()? == "lines";
            Ok(TranscriptFile {
                id: row.get(0)?,
                instance: row.get(1)?,
                path: row.get(2)?,
                reader: row.get(3)?,
                framing: if lines { Framing::Lines } else { Framing::Whole },
                encoding: crate::files::encoding(row.get_ref(5)?.as_str()?),
                version: row.get(6)?,
                modified: super::time(row, 7)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The files with rows of a session, ordered by name, which starts with a date.
    pub fn transcript_files(&self, session: SessionId) -> Result<Vec<FileId>> {
        let mut statement = self.prepare(crate::sql!(
            "select part.file from session_part part join file on file.id = part.file
             where part.session = $1 and {visible_session} order by file.logical_path, file.id"
        ))?;
        let rows = statement.query_map(params![session], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn messages_in(&self, stretch: &Stretch) -> Result<Vec<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.session = ?1 and message.file = ?2 and message.byte_offset > ?3
             and (?5 or not message.copied) and {{visible}} order by message.byte_offset limit ?4"
        );
        let mut statement = self.prepare(&text)?;
        let Stretch { session, file, after, limit, copies } = *stretch;
        let rows = statement.query_map(params![session, file, after, limit, copies], message_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn message_at(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.session = ?1 and message.file = ?2 and message.byte_offset = ?3 and {{visible}}"
        );
        let mut statement = self.prepare(&text)?;
        Ok(statement.query_row(params![session, file, offset as i64], message_row).optional()?)
    }

    pub fn call_at(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<CallRow>> {
        let text = format!(
            "select {CALL_COLUMNS} from tool_call {CALL_JOINS}
             where tool_call.session = ?1 and tool_call.file = ?2 and tool_call.byte_offset = ?3 and {{visible}}"
        );
        let mut statement = self.prepare(&text)?;
        Ok(statement.query_row(params![session, file, offset as i64], call_row).optional()?)
    }

    /// The call whose full output is this record (`stream/key`).
    pub fn call_with_output(&self, record: &str) -> Result<Option<CallRow>> {
        let text = format!(
            "select {CALL_COLUMNS} from tool_call {CALL_JOINS}
             where tool_call.full_output = ?1 and {{visible}} order by tool_call.copied limit 1"
        );
        let mut statement = self.prepare(&text)?;
        Ok(statement.query_row(params![record], call_row).optional()?)
    }

    /// The number of steps of a session before a place.
    pub fn steps_before(&self, session: SessionId, file: FileId, offset: u64) -> Result<i64> {
        let mut before = 0;
        for other in self.transcript_files(session)? {
            let until = if other == file { offset as i64 } else { i64::MAX };
            let mut statement = self.prepare(crate::sql!(
                "select (select count(*) from message where session = $1 and file = $2 and byte_offset < $3 and not copied)
                      + (select count(*) from tool_call where session = $1 and file = $2 and byte_offset < $3
                         and message is null and not copied)
                 where {visible_session}"
            ))?;
            before += statement.query_row(params![session, other, until], |row| row.get::<_, i64>(0))?;
            if other == file {
                break;
            }
        }
        Ok(before)
    }

    /// The message that a call is a block of.
    pub fn message_of_call(&self, call: &CallRow) -> Result<Option<u64>> {
        let mut statement = self.prepare(crate::sql!(
            "select message from tool_call where session = $1 and file = $2 and byte_offset = $3 and {visible_session}"
        ))?;
        let offset: Option<i64> = statement
            .query_row(params![call.session_id, call.file, call.span.offset as i64], |row| row.get(0))
            .optional()?
            .flatten();
        Ok(offset.map(|offset| offset as u64))
    }

    /// The current record at a place of a file.
    pub fn record_at(&self, file: FileId, offset: u64) -> Result<Option<PlacedRecord>> {
        let mut statement = self.prepare(crate::sql!(
                "select instance.source, record.stream, record.key, record.at, record.file_version, file.encoding,
                        record.byte_offset, record.length
                 from record join instance on instance.id = record.instance join file on file.id = record.file
                 where record.id = (select newest.id from record newest where newest.file = $1 and newest.byte_offset = $2
                                    order by newest.file_version desc, newest.id desc limit 1)
                 and record.deleted_at is null and {visible}
                 and not exists (select 1 from record later where later.instance = record.instance
                                 and later.stream = record.stream and later.key = record.key
                                 and later.version > record.version)"
            ),
        )?;
        let row = statement.query_row(params![file, offset as i64], |row| {
            Ok(PlacedRecord {
                source: row.get(0)?,
                stream: row.get(1)?,
                key: row.get(2)?,
                at: super::time(row, 3)?,
                file,
                file_version: row.get(4)?,
                encoding: crate::files::encoding(row.get_ref(5)?.as_str().unwrap_or_default()),
                span: super::span(row, 6)?,
            })
        });
        Ok(row.optional()?)
    }

    /// The session that shows an entry of a prompt history; `None` if a transcript has it.
    pub fn session_of_typed(&self, file: FileId, offset: u64) -> Result<Option<SessionId>> {
        let mut statement = self.prepare(crate::sql!(
            "select typed_prompt.session from typed_prompt join instance on instance.id = typed_prompt.instance
             where typed_prompt.file = $1 and typed_prompt.byte_offset = $2 and {visible}"
        ))?;
        let session = statement.query_row(params![file, offset as i64], |row| row.get(0)).optional()?;
        Ok(session.flatten())
    }

    /// The session of the newest version of a record.
    pub fn record_session(&self, source: &str, stream: &str, key: &str) -> Result<Option<String>> {
        let mut statement = self.prepare(crate::sql!(
            // Homes first: there are few, and the index finds a record by its name in each.
            "select record.session from instance cross join record
                 where record.instance = instance.id and instance.source = $1 and record.stream = $2
                 and record.key = $3 and {visible}
                 order by record.version desc limit 1"
        ))?;
        let session = statement.query_row(params![source, stream, key], |row| row.get(0)).optional()?;
        Ok(session.flatten())
    }

    /// Calls that are not blocks of a message.
    pub fn lone_calls_in(&self, stretch: &Stretch) -> Result<Vec<CallRow>> {
        let text = format!(
            "select {CALL_COLUMNS} from tool_call {CALL_JOINS}
             where tool_call.session = ?1 and tool_call.file = ?2 and tool_call.byte_offset > ?3
             and tool_call.message is null and (?5 or not tool_call.copied) and {{visible}}
             order by tool_call.byte_offset limit ?4"
        );
        let mut statement = self.prepare(&text)?;
        let Stretch { session, file, after, limit, copies } = *stretch;
        let rows = statement.query_map(params![session, file, after, limit, copies], call_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
