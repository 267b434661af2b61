//! Queries of audit and doctor: unknown and malformed lines, counts of streams, rows without bytes.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{raw, span};
use crate::error::Result;
use crate::{Archive, Store, sql};
use annals_core::{Raw, Rows, Span, Time};

/// Prefix of the names of cursors that contain row counts of a client's database.
pub const TABLES: &str = "tables/";

/// The cursor with what the last complete sync found in a home and did not capture.
pub const SURVEY: &str = "survey";

/// What a home has besides the files that are captured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeSurvey {
    pub left_out: Vec<LeftOutFiles>,
    /// Paths and sizes.
    pub unaccounted: Vec<(String, u64)>,
}

/// Files and bytes that are left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFiles {
    pub store: String,
    pub why: String,
    pub files: u64,
    pub bytes: u64,
}

/// Files, directories and databases of a client that cannot be read, for one reason.
#[derive(Debug, Clone)]
pub struct FailedCaptures {
    pub source: String,
    pub reason: Raw,
    /// When the first of them could not be read.
    pub since: Time,
    pub count: u64,
    /// The first paths, with their homes.
    pub paths: Vec<Raw>,
}

/// Streams of gaps that are files of a client; the others are of providers.
const LOCAL_STREAMS: &str = "('files', 'folders', 'databases')";

impl Archive<'_> {
    /// What cannot be read of the homes, by source and reason, with at most `listed` paths each.
    pub fn failed_captures(&self, listed: i64) -> Result<Vec<FailedCaptures>> {
        let mut statement = self.prepare(&format!(
            "select instance.source, gap.reason, min(gap.first_seen), count(*)
             from gap join instance on instance.id = gap.instance
             where gap.stream in {LOCAL_STREAMS} and gap.status in ('pending', 'in_progress') and {{visible}}
             group by instance.source, gap.reason order by min(gap.first_seen), instance.source, gap.reason"
        ))?;
        let rows = statement.query_map([], |row| {
            let (source, reason): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((source, reason, Time::from_micros(row.get(2)?), row.get::<_, i64>(3)?))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut statement = self.prepare(&format!(
            "select instance.root || '/' || gap.key from gap join instance on instance.id = gap.instance
             where gap.stream in {LOCAL_STREAMS} and gap.status in ('pending', 'in_progress') and {{visible}}
             and instance.source = ?1 and gap.reason = ?2 order by gap.id limit ?3"
        ))?;
        let mut groups = Vec::new();
        for (source, reason, since, count) in rows {
            let paths = statement.query_map(params![source, reason, listed], |row| raw(row, 0))?;
            let paths = paths.collect::<rusqlite::Result<_>>()?;
            let (reason, count) = (Raw::new(reason), count.unsigned_abs());
            groups.push(FailedCaptures { source, reason, since, count, paths });
        }
        Ok(groups)
    }

    /// What the last complete syncs found in the homes of a source and did not capture.
    pub fn home_surveys(&self, source: &str) -> Result<Vec<HomeSurvey>> {
        let mut statement = self.prepare(sql!(
            "select cursor.value from cursor join instance on instance.id = cursor.instance
             where instance.source = $1 and cursor.name = $2 and {visible} order by cursor.instance"
        ))?;
        let rows = statement.query_map(params![source, SURVEY], |row| row.get::<_, String>(0))?;
        let texts: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
        Ok(texts.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect())
    }

    /// Row counts of the databases of a source's homes, from the last sync: pattern and JSON object.
    pub fn table_counts(&self, source: &str) -> Result<Vec<(String, String)>> {
        let mut statement = self.prepare(sql!(
            "select substr(cursor.name, length($2) + 1), cursor.value
             from cursor join instance on instance.id = cursor.instance
             where instance.source = $1 and substr(cursor.name, 1, length($2)) = $2 and {visible}
             order by cursor.instance, cursor.name"
        ))?;
        let rows = statement.query_map(params![source, TABLES], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Types of lines that no reader knows, and of unknown content in known lines: lines or occurrences, bytes, and the
    /// oldest client version that wrote them.
    pub fn unknown_types(&self, source: &str) -> Result<Vec<UnknownType>> {
        let mut statement = self.prepare(sql!(
            "select coverage.kind, cast(sum(coverage.lines) as bigint), cast(sum(coverage.bytes) as bigint),
                    min((select min(json_extract(part.facts, '$.client_version')) from session_part part
                         where part.file = coverage.file))
             from coverage join file on file.id = coverage.file join instance on instance.id = file.instance
             where instance.source = $1 and coverage.status in ('unknown', 'drift') and {visible}
             group by coverage.kind order by 2 desc, 1"
        ))?;
        let rows = statement.query_map(params![source], |row| {
            Ok(UnknownType {
                kind: row.get(0)?,
                lines: row.get(1)?,
                bytes: row.get(2)?,
                client_version: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Malformed lines: path, span and reason.
    pub fn malformed_lines(&self, source: &str) -> Result<Vec<(String, Span, String)>> {
        let mut statement = self.prepare(sql!(
            "select file.path, malformed.byte_offset, malformed.length, malformed.what
             from malformed join file on file.id = malformed.file join instance on instance.id = file.instance
             where instance.source = $1 and {visible} order by file.path, malformed.byte_offset"
        ))?;
        let rows =
            statement.query_map(params![source], |row| Ok((row.get(0)?, span(row, 1)?, row.get(3)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn count_stream(&self, source: &str, stream: &str, rows: Rows) -> Result<i64> {
        let text = match rows {
            Rows::Sessions => {
                "select count(*) from session join instance on instance.id = session.instance
                 where instance.source = ?1 and {visible} and ?2 is not null"
            }
            Rows::Agents => {
                "select count(*) from session join instance on instance.id = session.instance
                 where instance.source = ?1 and {visible} and parent_kind in ('sub_agent', 'review') and ?2 is not null"
            }
            Rows::Messages => {
                "select count(*) from message join session on session.id = message.session
                 join instance on instance.id = session.instance where instance.source = ?1 and {visible} and ?2 is not null"
            }
            Rows::Calls => {
                "select count(*) from tool_call join session on session.id = tool_call.session
                 join instance on instance.id = session.instance where instance.source = ?1 and {visible} and ?2 is not null"
            }
            Rows::Records => {
                "select count(distinct record.key) from record join instance on instance.id = record.instance
                 where instance.source = ?1 and {visible} and record.stream = ?2"
            }
            Rows::Arrangement => {
                "select count(*) from arrangement where holder = {holder} and newest = 1
                 and ?1 is not null and ?2 is not null"
            }
        };
        Ok(self.prepare(text)?.query_row(params![source, stream], |row| row.get(0))?)
    }
}

/// For the owner of this machine and never for a member.
impl Store {
    /// Rows that point past the bytes they were read from.
    pub fn rows_without_bytes(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        for table in ["message", "tool_call", "usage"] {
            let text = format!(
                "select distinct file.path from {table} row join file on file.id = row.file
                 where row.byte_offset + row.length > file.content_size"
            );
            let mut statement = self.connection.prepare(&text)?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            paths.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// Lines of a type that no reader knows.
#[derive(Debug)]
pub struct UnknownType {
    pub kind: String,
    pub lines: i64,
    pub bytes: i64,
    pub client_version: Option<String>,
}
