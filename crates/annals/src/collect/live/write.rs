//! Commits what live collection fetched: captures, modification times, gaps and cursors, together where they belong
//! together.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{FILE_RECORDS, FetchItem, PROVIDER_STATE, ProviderState};
use crate::collect::ingest::append::{Appender, CONTENT_HASH};
use crate::collect::ingest::documents::{is_same, replace};
use crate::collect::ingest::forgotten::blank;
use crate::collect::ingest::target::Target;
use crate::collect::options::Environment;
use annals_core::{FailureKind, Framing, GapStream, InstanceId, Result, Scope, Time, to_hex};
use annals_sources::{Capture, ElementBody, Listing, Source};
use annals_store::{Batch, DueGap, Failure, Lease, Packer, Store};

/// A kill loses what was not committed: not much, and nothing at a slow pace.
const HELD: usize = 25;
const HELD_BYTES: u64 = 16 << 20;
const HELD_FOR: Duration = Duration::from_secs(1);
/// Cursors: the modification time of each archived conversation; how far down a list everything is archived.
const SEEN: &str = "seen ";
const LIST: &str = "list ";
/// Cursors: the files that were requested from the provider.
const REQUESTED_FILE: &str = "file ";
/// The cursor with the totals of what was captured.
const BYTES: &str = "live bytes";

pub struct Keeper {
    store: Store,
    appender: Appender,
    source: &'static dyn Source,
    instance: InstanceId,
    now: fn() -> Time,
    /// Where responses come from.
    origin: String,
    version: &'static str,
    held: Held,
    since: Instant,
}

/// What is committed together.
#[derive(Default)]
struct Held {
    batches: Vec<Batch>,
    paths: HashSet<String>,
    done: Vec<FetchItem>,
    failed: Vec<(FetchItem, FailureKind, String)>,
    /// Never requested, for lack of time or of patience on the other side.
    postponed: Vec<(FetchItem, String)>,
    files: Vec<String>,
    /// Files that were requested from the provider.
    requested: Vec<String>,
    bytes: u64,
}

impl Keeper {
    pub fn new(
        environment: &Environment<'_>,
        source: &'static dyn Source,
        instance: InstanceId,
        origin: String,
    ) -> Result<Keeper> {
        Ok(Keeper {
            store: Store::open(environment.data_dir)?,
            appender: Appender::new(Store::open(environment.data_dir)?)?,
            source,
            instance,
            now: environment.now,
            origin,
            version: source.live().map_or("", |live| live.version()),
            held: Held::default(),
            since: Instant::now(),
        })
    }

    /// Adds a complete conversation. Returns the number of new bytes.
    pub fn add_conversation(&mut self, conversation: FetchItem, captures: Vec<Capture<'_>>) -> Result<u64> {
        let added = self.add_captures(captures, &[])?;
        self.held.done.push(conversation);
        Ok(added)
    }

    /// Adds a part of a conversation that still counts as missing.
    pub fn add_part(&mut self, captures: Vec<Capture<'_>>) -> Result<u64> {
        self.add_captures(captures, &[])
    }

    /// Adds the bytes of a file and its record.
    pub fn add_file(&mut self, id: &str, mut captures: Vec<Capture<'_>>, bytes: &[u8]) -> Result<u64> {
        for capture in &mut captures {
            capture.header.insert(CONTENT_HASH.to_owned(), to_hex(&Sha256::digest(bytes)).into());
        }
        let added = self.add_captures(captures, bytes)?;
        self.held.files.push(id.to_owned());
        Ok(added)
    }

    /// Adds what a document says about files.
    pub fn add_notes(&mut self, captures: Vec<Capture<'_>>) -> Result<u64> {
        let mut added = 0;
        // The same file may be in a document twice.
        for capture in captures {
            added += self.add_captures(vec![capture], &[])?;
        }
        Ok(added)
    }

    /// Visits the record of each file that conversations, projects or the library refer to.
    pub fn referenced_files(&self) -> Result<Vec<(String, Value)>> {
        let name = self.source.manifest().source;
        let archive = self.store.scoped(Scope::Owner);
        let mut files = Vec::new();
        archive.each_record(name, FILE_RECORDS, None, (0, 0), &mut |record| {
            let mut bytes = Vec::new();
            self.store.bytes(record.file, record.file_version).read_to_end(&mut bytes)?;
            let (start, length) = (record.span.offset as usize, record.span.length as usize);
            let own = bytes.get(start..).map(|rest| &rest[..length.min(rest.len())]).unwrap_or_default();
            let data = self.source.record(FILE_RECORDS, &record.key, own).unwrap_or_default();
            files.push((record.key, data));
            Ok(true)
        })?;
        Ok(files)
    }

    /// The document as it was last archived; empty if it was not, or cannot be read.
    pub fn document_text(&self, listing: &Listing) -> Result<String> {
        let path = format!("live/{}.json", listing.name);
        let Some(known) = self.store.captured_file(self.instance, &path)? else { return Ok(String::new()) };
        let mut text = String::new();
        let read = self.store.bytes(known.id, known.version).read_to_string(&mut text);
        Ok(read.map(|_| text).unwrap_or_default())
    }

    /// Files that were requested from the provider.
    pub fn requested_files(&self) -> Result<HashSet<String>> {
        let requested = self.store.cursors(self.instance, REQUESTED_FILE)?.into_iter();
        Ok(requested.map(|(id, _)| id).collect())
    }

    /// Adds what the provider answered about a file, if anything; it is not asked again.
    pub fn add_facts(&mut self, id: &str, captures: Vec<Capture<'_>>) -> Result<u64> {
        let added = self.add_captures(captures, &[])?;
        self.held.requested.push(id.to_owned());
        Ok(added)
    }

    pub fn has(&self, path: &str) -> Result<bool> {
        Ok(self.store.captured_file(self.instance, path)?.is_some())
    }

    pub fn fail_conversation(&mut self, conversation: FetchItem, why: FailureKind, reason: &str) {
        self.held.failed.push((conversation, why, reason.to_owned()));
    }

    /// Remembers a conversation that was not requested.
    pub fn postpone_conversation(&mut self, conversation: FetchItem, reason: &str) {
        self.held.postponed.push((conversation, reason.to_owned()));
    }

    fn add_captures(&mut self, captures: Vec<Capture<'_>>, bytes: &[u8]) -> Result<u64> {
        // The appender sees only committed data, so a file gets one batch at a time. Large batches are committed
        // alone.
        let again = captures.iter().any(|capture| self.held.paths.contains(&capture.path));
        if again || self.held.bytes >= HELD_BYTES {
            self.flush(None, &[])?;
        }
        let now = Time::from_millis((self.now)().micros().div_euclid(1_000));
        let mut added = 0;
        let mut by_path: Vec<(String, Vec<Capture<'_>>)> = Vec::new();
        for capture in captures {
            match by_path.iter_mut().find(|(path, _)| *path == capture.path) {
                Some((_, group)) => group.push(capture),
                None => by_path.push((capture.path.clone(), vec![capture])),
            }
        }
        for (path, mut group) in by_path {
            let Some((store, reader)) = group.first().map(|first| (first.store, first.reader)) else {
                continue;
            };
            let target = Target::archived(self.instance, self.source, &path, store, reader);
            let mut texts = Vec::new();
            let mut batch = None;
            for capture in &mut group {
                match &capture.body {
                    ElementBody::Member => {
                        batch = self.appender.write_whole(&target, bytes)?.map(|(_, batch)| batch)
                    }
                    ElementBody::Text(body) => {
                        let mut header = Map::from_iter([
                            ("annals_capture".to_owned(), Value::from(1)),
                            ("container_name".to_owned(), Value::from("live")),
                            ("member".to_owned(), Value::from(self.origin.as_str())),
                            ("captured_at".to_owned(), Value::from(now.rfc3339())),
                        ]);
                        header.append(&mut capture.header);
                        texts.push((header, body.as_ref()));
                    }
                }
            }
            if !texts.is_empty() {
                batch = self.appender.append_texts(&target, &texts)?.1;
            }
            if let Some(batch) = batch {
                added += batch.new_bytes;
                self.held.bytes += batch.new_bytes;
                self.held.paths.insert(path);
                self.held.batches.push(batch);
            }
        }
        Ok(added)
    }

    /// Commits if enough has accumulated, or after long enough.
    pub fn commit_if_due(&mut self, state: &ProviderState) -> Result<()> {
        let count = self.held.done.len() + self.held.failed.len() + self.held.files.len();
        let count = count + self.held.requested.len();
        if count >= HELD || self.since.elapsed() >= HELD_FOR { self.commit(state) } else { Ok(()) }
    }

    pub fn commit(&mut self, state: &ProviderState) -> Result<()> {
        self.flush(Some(state), &[])
    }

    /// Everything in these lists is archived or a gap: the last gaps and the cursors are one transaction.
    pub fn pass(&mut self, state: &ProviderState, ends: &[(String, String)]) -> Result<()> {
        self.flush(Some(state), ends)
    }

    fn flush(&mut self, state: Option<&ProviderState>, ends: &[(String, String)]) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.since = Instant::now();
        let now = (self.now)();
        let before = self.store.cursor(self.instance, BYTES)?;
        let mut writer = self.store.writer(now)?;
        for batch in held.batches {
            writer.apply(batch)?;
        }
        for conversation in &held.done {
            writer.set_cursor(self.instance, &format!("{SEEN}{}", conversation.id), &conversation.mark())?;
            writer.close_gap(self.instance, GapStream::Conversations, &conversation.id, now)?;
        }
        for id in &held.requested {
            writer.set_cursor(self.instance, &format!("{REQUESTED_FILE}{id}"), "")?;
        }
        for id in &held.files {
            writer.close_gap(self.instance, GapStream::Files, id, now)?;
        }
        let (instance, version) = (self.instance, self.version);
        for (conversation, why, reason) in &held.failed {
            let (key, locator) = (conversation.id.as_str(), &conversation.mark());
            let failure = Failure {
                instance,
                stream: GapStream::Conversations,
                key,
                locator,
                why: *why,
                reason,
                version,
            };
            writer.fail(&failure, now)?;
        }
        for (conversation, reason) in &held.postponed {
            let (key, locator) = (conversation.id.as_str(), &conversation.mark());
            let why = FailureKind::RateLimited;
            let failure =
                Failure { instance, stream: GapStream::Conversations, key, locator, why, reason, version };
            writer.postpone(&failure, now)?;
        }
        if held.bytes > 0 {
            let before = before.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            writer.set_cursor(self.instance, BYTES, &(before + held.bytes).to_string())?;
        }
        if let Some(state) = state {
            writer.set_cursor(self.instance, PROVIDER_STATE, &serde_json::to_string(state)?)?;
        }
        for (list, mark) in ends {
            writer.set_cursor(self.instance, &format!("{LIST}{list}"), mark)?;
            writer.close_gap(self.instance, GapStream::Lists, list, now)?;
        }
        Ok(writer.commit()?)
    }

    /// A document with all its pages, as a new version unless it is unchanged. Returns the number of new bytes.
    pub fn document(&mut self, listing: &Listing, pages: &[String], details: &[String]) -> Result<u64> {
        let name = Value::from(listing.name);
        let (pages, details) = (pages.join(","), details.join(","));
        let body = format!("{{\"listing\":{name},\"pages\":[{pages}],\"details\":[{details}]}}");
        let path = format!("live/{}.json", listing.name);
        let mut body = body.into_bytes();
        blank(&mut body, &self.store.forgotten()?, &path, Framing::Whole)?;
        let known = self.store.captured_file(self.instance, &path)?;
        let same = match &known {
            Some(known) => is_same(&self.store, known, &body)?,
            None => false,
        };
        let store = "documents of the account";
        let target = Target::archived(self.instance, self.source, &path, store, "listing").mutable();
        let now = (self.now)();
        let mut added = 0;
        let mut writer = self.store.writer(now)?;
        if !same {
            let batch = replace(&target, known.as_ref(), &body, &mut Packer::new()?)?;
            added = batch.new_bytes;
            self.held.bytes += added;
            writer.apply(batch)?;
        }
        writer.close_gap(self.instance, GapStream::Documents, listing.name, now)?;
        writer.commit()?;
        Ok(added)
    }

    /// Whether the archive has an item of this listing that is not among these ids.
    pub fn would_remove(&self, listing: &Listing, ids: &HashSet<String>) -> Result<bool> {
        let path = format!("live/{}.json", listing.name);
        let Some(known) = self.store.captured_file(self.instance, &path)? else {
            return Ok(false);
        };
        let (name, mut found) = (self.source.manifest().source, false);
        self.store.scoped(Scope::Owner).each_record(name, listing.stream, None, (0, 0), &mut |record| {
            found |= record.file == known.id && record.deleted_at.is_none() && !ids.contains(&record.key);
            Ok(!found)
        })?;
        Ok(found)
    }

    /// Records a gap for something that every run requests again.
    pub fn fail(
        &mut self,
        stream: GapStream<'_>,
        key: &str,
        locator: &str,
        (why, reason): (FailureKind, &str),
        now: Time,
    ) -> Result<()> {
        let failure =
            Failure { instance: self.instance, stream, key, locator, why, reason, version: self.version };
        let mut writer = self.store.writer(now)?;
        writer.fail(&failure, now)?;
        Ok(writer.commit()?)
    }

    /// Closes the gap: nothing is missing there any more.
    pub fn close(&mut self, stream: GapStream<'_>, key: &str) -> Result<()> {
        let now = (self.now)();
        let mut writer = self.store.writer(now)?;
        writer.close_gap(self.instance, stream, key, now)?;
        Ok(writer.commit()?)
    }

    pub fn claim(&mut self, lease: Lease<'_>, now: Time) -> Result<Vec<DueGap>> {
        let mut writer = self.store.writer(now)?;
        let gaps = writer.claim_gaps(self.instance, lease, usize::MAX, now)?;
        writer.commit()?;
        Ok(gaps)
    }

    /// The modification time of each archived conversation.
    pub fn seen(&self) -> Result<HashMap<String, String>> {
        Ok(self.store.cursors(self.instance, SEEN)?.into_iter().collect())
    }

    /// The modification time of each item that is known to be missing.
    pub fn missing(&self, stream: GapStream<'_>) -> Result<HashMap<String, String>> {
        Ok(self.store.gap_locators(self.instance, stream)?.into_iter().collect())
    }

    pub fn list_cursor(&self, list: &str) -> Result<Option<Time>> {
        let value = self.store.cursor(self.instance, &format!("{LIST}{list}"))?;
        Ok(value.and_then(|value| value.parse().ok()).map(Time::from_micros))
    }
}
