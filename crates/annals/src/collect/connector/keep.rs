//! The output of a connector since its last state: held on disk, and committed with its gaps and cursor.

use std::io::{Read, Seek, SeekFrom, Write};

use serde_json::Value;

use super::wire::RecordOperation;
use super::{ConnectorStream, RecordChange, STATE, Session, wire};
use crate::collect::ingest::target::Target;
use annals_core::{ContentKey, FailureKind, GapStream, Result};
use annals_sources::{content_key, of_programs};
use annals_store::Failure;

/// A file of the archive is full at this size.
const FULL: u64 = 1 << 20;
/// Bytes of lines that become rows at once.
const CHUNK: usize = 8 << 20;

impl Session<'_, '_> {
    pub fn record(&mut self, record: wire::Record, line: &[u8]) -> Result<()> {
        self.report.records += 1;
        self.stream(&record.stream)?.records += 1;
        let key = format!("{}/{}/{}", self.options.name, record.stream, record.key);
        let data = record.data.map_or(Value::Null, Value::Object);
        let is_unchanged =
            record.op == RecordOperation::Upsert && self.is_archived("records", &key, &data)?;
        if is_unchanged {
            self.report.unchanged += 1;
        } else {
            self.report.new += 1;
            self.waiting_new += 1;
            self.keep(line)?;
            self.waiting.insert(ContentKey::of(&[key.as_bytes()]));
        }
        let name = (record.stream, record.key);
        if self.served.contains(&name) {
            self.changes.insert(name, RecordChange::Recovered);
        }
        Ok(())
    }

    /// Whether the archive has exactly this record. Pending records are not considered.
    pub fn is_archived(&self, stream: &str, key: &str, data: &Value) -> Result<bool> {
        if self.waiting.contains(&ContentKey::of(&[key.as_bytes()])) {
            return Ok(false);
        }
        Ok(self.store.has_record(self.instance, stream, key, content_key(data))?)
    }

    pub fn stream(&mut self, name: &str) -> Result<&mut ConnectorStream> {
        if !self.streams.contains_key(name) {
            return Err(self.failed(
                format!("used the undeclared stream {name:?}"),
                "declare a stream with a SCHEMA message before its first record",
            ));
        }
        Ok(self.streams.entry(name.to_owned()).or_default())
    }

    pub fn gap(&mut self, stream: String, key: String, locator: String, why: FailureKind, reason: String) {
        self.changes.insert((stream, key), RecordChange::Failed { locator, why, reason });
    }

    pub fn keep(&mut self, line: &[u8]) -> Result<()> {
        self.spool.write_all(line)?;
        self.spool.write_all(b"\n")?;
        self.spooled += line.len() as u64 + 1;
        Ok(())
    }

    /// Commits everything since the last commit in one transaction: lines, rows, gaps and the cursor that covers
    /// them.
    pub fn commit(&mut self, state: Option<(&str, &Value)>) -> Result<()> {
        let now = (self.environment.now)();
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spool = (&self.spool).take(self.spooled);
        let files = self.store.captured_files(self.instance)?;
        let (mut number, last) = (files.len(), files.last().map_or(FULL, |file| file.size));
        // Continue the last file until it is full.
        if last < FULL {
            number -= 1;
        }
        let mut writer = self.store.writer(now)?;
        let mut chunk = Vec::new();
        loop {
            spool.by_ref().take(CHUNK.saturating_sub(chunk.len()) as u64).read_to_end(&mut chunk)?;
            let Some(end) = memchr::memrchr(b'\n', &chunk) else {
                // A line may be longer than a chunk.
                if spool.limit() == 0 {
                    break;
                }
                spool.by_ref().take(wire::LONGEST_LINE as u64).read_to_end(&mut chunk)?;
                continue;
            };
            let rest = chunk.split_off(end + 1);
            number += 1;
            let path = format!("{}/{number:08}.jsonl", self.options.name);
            let target =
                Target::archived(self.instance, of_programs(), &path, "what connectors said", "wire");
            writer.apply(self.appender.append_lines(&target, &chunk)?)?;
            chunk = rest;
        }
        let mut failures = Vec::new();
        for ((stream, key), change) in &self.changes {
            match change {
                RecordChange::Failed { locator, why, reason } => failures.push(Failure {
                    instance: self.instance,
                    stream: GapStream::Connector(stream),
                    key,
                    locator,
                    why: *why,
                    reason,
                    version: &self.version,
                }),
                RecordChange::Recovered => {
                    let closed = writer.close_gap(self.instance, GapStream::Connector(stream), key, now)?;
                    self.report.gaps_recovered += u64::from(closed);
                }
            }
        }
        self.report.gaps_opened += failures.len() as u64;
        let cursor = state.map(|(stream, cursor)| (format!("{STATE}{stream}"), cursor.to_string()));
        match &cursor {
            Some((name, value)) => writer.pass(self.instance, (name, value), &failures, now)?,
            None => failures.iter().try_for_each(|failure| writer.fail(failure, now).map(|_| ()))?,
        }
        writer.commit()?;
        self.report.commits += 1;
        self.report.committed += std::mem::take(&mut self.waiting_new);
        self.changes.clear();
        self.waiting.clear();
        self.spool.set_len(0)?;
        self.spool.seek(SeekFrom::Start(0))?;
        self.spooled = 0;
        Ok(())
    }
}
