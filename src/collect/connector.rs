//! `sync --connector`: runs an outside program, commits what it says at each of its states, and nothing of a run that fails
//! after the last of them.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::append::{Appender, Target};
use super::containers::private_file;
use super::program::{ENDING, Heard, Program};
use super::sync::Environment;
use super::wire::{self, DoneStatus, Interaction, InteractionKind, Message, Mode, Operation, Unread};
use crate::model::{Key, Problem, Result, Scope, Time, Why};
use crate::sources::{content_key, of_programs};
use crate::store::{Failure, Lease, Store};

/// Gaps that one run is told of.
const GAPS: usize = 1_000;
/// How long they are the run's own, should it die.
const LEASE: i64 = 3_600_000_000;
/// A file of the archive that has this much is full.
const FULL: u64 = 1 << 20;
/// Bytes of lines that become rows at once.
const PIECE: usize = 8 << 20;
/// Problems that are told; all are counted.
const TOLD: usize = 100;

pub struct ConnectorAsk {
    pub program: String,
    pub arguments: Vec<String>,
    pub name: String,
    pub full: bool,
    pub gaps_only: bool,
    /// How long it may say nothing.
    pub silence: Duration,
    /// Variables that it does not get.
    pub hidden: Vec<String>,
    /// The member whose records these are.
    pub member: Option<String>,
}

/// Something for the owner to see.
#[derive(Debug)]
pub enum Notice<'n> {
    /// On the program's standard error.
    Said(&'n str),
    Progress {
        message: &'n str,
        count: Option<u64>,
        total: Option<u64>,
    },
    SecondsLeft(u64),
    /// Something has to be done by hand, and the answer says whether it was.
    Asked(&'n Interaction),
}

/// What the owner says to a notice that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Done,
    NotDone,
}

#[derive(Debug, Default)]
pub struct ConnectorReport {
    pub name: String,
    /// `RECORD`s that were said, those of them that were new, and those that were there already.
    pub records: u64,
    pub new: u64,
    pub unchanged: u64,
    pub skipped: u64,
    pub gaps_opened: u64,
    pub gaps_recovered: u64,
    pub commits: u64,
    /// Of `new`, what is in the archive.
    pub committed: u64,
    pub problem_count: u64,
    pub problems: Vec<String>,
    /// Why the run failed.
    pub failure: Option<Problem>,
}

/// The caller holds the lock.
pub fn run_connector(
    ask: &ConnectorAsk,
    environment: &Environment<'_>,
    scope: &Scope,
    see: &mut dyn FnMut(Notice<'_>) -> Reply,
) -> Result<ConnectorReport> {
    if !wire::is_name(&ask.name) {
        return Err(Problem::new(format!("{:?} can not be the name of a connector", ask.name))
            .hint("give it a name of letters, digits, `_` and `-` with --connector-name NAME"));
    }
    let now = (environment.now)();
    let mut store = Store::open(environment.home)?;
    let source = of_programs();
    let manifest = source.manifest();
    if store.needs_rebuild(scope, manifest.source, manifest.reader_version)? {
        super::rebuild(environment.home, scope, now, &mut |_| {})?;
    }
    let instance = store.instance(scope, manifest.source, &environment.machine, &ask.name, now)?;
    if let Some(member) = &ask.member {
        store.give_homes(scope, &[instance], member)?;
    }
    let run = store.start_run(scope, &format!("sync --connector {}", ask.name), now)?;
    let version = version_of(ask);
    let holder = format!("run {run}");
    let mut writer = store.writer(scope, now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, &version, now)?;
    let lease = Lease { holder: &holder, until: Time::from_micros(now.micros().saturating_add(LEASE)) };
    let gaps = writer.claim_gaps(instance, lease, GAPS, now)?;
    writer.commit()?;
    let state = store.cursors(scope, instance, STATE)?;
    let mode = match (ask.gaps_only, ask.full) {
        (true, _) => Mode::GapsOnly,
        (false, true) => Mode::FullRefresh,
        (false, false) => Mode::Incremental,
    };
    let mut session = Session {
        ask,
        environment,
        scope: *scope,
        appender: Appender::new(Store::open(environment.home)?, scope)?,
        store: &mut store,
        instance,
        version,
        streams: BTreeMap::new(),
        served: gaps.iter().map(|gap| (gap.stream.clone(), gap.key.clone())).collect(),
        spool: private_file(&environment.home.join("scratch"))?,
        spooled: 0,
        waiting: HashSet::new(),
        waiting_new: 0,
        changes: BTreeMap::new(),
        report: ConnectorReport { name: ask.name.clone(), ..ConnectorReport::default() },
    };
    let talked = match Program::start(&ask.program, &ask.arguments, &ask.hidden) {
        Ok(mut program) => {
            program.tell(&wire::start(run, mode, &state, &gaps));
            session.talk(&mut program, see)
        }
        Err(problem) => Err(problem),
    };
    let mut report = session.report;
    let (status, reason) = match &talked {
        Ok(()) => ("available", String::new()),
        Err(problem) => ("error", format!("the last run failed: {}", problem.what)),
    };
    let now = (environment.now)();
    let mut writer = store.writer(scope, now)?;
    writer.release_gaps(instance, Some(&holder))?;
    writer.set_instance_status(instance, status, &reason, now)?;
    writer.commit()?;
    report.failure = talked.err();
    let outcome = if report.failure.is_some() { "failed" } else { "succeeded" };
    let summary = format!("{outcome}: {} records, {} committed", report.records, report.committed);
    store.finish_run(scope, run, &summary, now)?;
    store.checkpoint()?;
    Ok(report)
}

/// Cursors of streams are called so, and then as the stream.
const STATE: &str = "state ";

/// Another program is another version: what an older one gave up, it may get. Arguments that are files are scripts.
fn version_of(ask: &ConnectorAsk) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in std::iter::once(&ask.program).chain(&ask.arguments) {
        if let Ok(file) = File::open(path) {
            // What can not be read says nothing, as what is no file.
            drop(hasher.update_reader(file.take(64 << 20)));
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A stream that was declared, and what was said of it in this run.
#[derive(Default)]
struct Stream {
    records: u64,
    gaps: u64,
    skipped: u64,
}

/// What happened to a gap last.
enum Change {
    Failed { locator: String, why: Why, reason: String },
    Recovered,
}

struct Session<'r, 'e> {
    ask: &'r ConnectorAsk,
    environment: &'r Environment<'e>,
    scope: Scope,
    appender: Appender,
    store: &'r mut Store,
    instance: i64,
    version: String,
    streams: BTreeMap<String, Stream>,
    /// Gaps that the connector was told of.
    served: HashSet<(String, String)>,
    /// Lines since the last commit: of any number, so they wait on the disk.
    spool: File,
    spooled: u64,
    /// Records among them.
    waiting: HashSet<Key>,
    waiting_new: u64,
    /// By stream and key.
    changes: BTreeMap<(String, String), Change>,
    report: ConnectorReport,
}

impl Session<'_, '_> {
    /// Until the end of the program; an error is why the run failed.
    fn talk(&mut self, program: &mut Program, see: &mut dyn FnMut(Notice<'_>) -> Reply) -> Result<()> {
        let mut done: Option<Instant> = None;
        let outcome = loop {
            // Who has said all may take a while to end, and no longer.
            if done.is_some_and(|done| done.elapsed() > ENDING) {
                break Ok(());
            }
            match program.hear(if done.is_some() { ENDING } else { self.ask.silence }) {
                Heard::Aside(text) => {
                    see(Notice::Said(&text));
                }
                Heard::Silence | Heard::Ended if done.is_some() => break Ok(()),
                Heard::Silence => {
                    let seconds = self.ask.silence.as_secs();
                    break Err(self.failed(
                        format!("said nothing for {seconds} seconds"),
                        "--connector-silence SECONDS gives it more time",
                    ));
                }
                Heard::Ended => {
                    break Err(self.failed(
                        "ended without DONE".into(),
                        "what it wrote to standard error may say why; what it had committed stays",
                    ));
                }
                Heard::TooLong(length) => {
                    self.problem(format!("a line of {length} bytes is too long and was not kept"));
                }
                Heard::Line(line) if done.is_some() && !line.is_empty() => {
                    self.problem("it went on after DONE".into());
                }
                Heard::Line(line) => match self.line(&line, program, see) {
                    Ok(true) => done = Some(Instant::now()),
                    Ok(false) => {}
                    Err(problem) => break Err(problem),
                },
            }
        };
        let outcome = outcome.and_then(|()| match program.ends_well()? {
            true => self.commit(None),
            false => Err(self.failed(
                "said DONE and did not end with exit code 0".into(),
                "a run that succeeded ends with exit code 0",
            )),
        });
        for text in program.asides() {
            see(Notice::Said(&text));
        }
        outcome
    }

    /// One line; true when it was the last.
    fn line(
        &mut self,
        line: &[u8],
        program: &mut Program,
        see: &mut dyn FnMut(Notice<'_>) -> Reply,
    ) -> Result<bool> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        let message = match wire::read(line) {
            Ok(message) => message,
            Err(Unread::Wrong(what)) => return Err(self.broke_protocol(what)),
            Err(Unread::Garbage) => {
                self.problem("a line is no message".into());
                self.keep(line)?;
                return Ok(false);
            }
            Err(Unread::UnknownKind(kind)) => {
                // A line can say anything: only what looks like a kind is told.
                let odd =
                    kind.len() > 40 || !kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                let kind = if odd { "an odd kind".to_owned() } else { format!("the unknown kind {kind:?}") };
                self.problem(format!("a message of {kind}"));
                self.keep(line)?;
                return Ok(false);
            }
        };
        match message {
            Message::Schema { stream, schema } => {
                self.streams.entry(stream.clone()).or_default();
                let key = format!("{}/{stream}", self.ask.name);
                if !self.is_there("schemas", &key, &Value::Object(schema))? {
                    self.keep(line)?;
                }
            }
            Message::Record(record) => self.record(record, line)?,
            Message::RecordError { stream, key, message } => {
                self.stream(&stream)?.gaps += 1;
                self.gap(stream, key, String::new(), Why::Malformed, message);
            }
            Message::DetailGap(gap) => {
                self.stream(&gap.stream)?.gaps += 1;
                let why = gap.why();
                let locator = gap.locator.map(|locator| locator.to_string()).unwrap_or_default();
                let reason = gap.message.unwrap_or_else(|| why.name().replace('_', " "));
                self.gap(gap.stream, gap.key, locator, why, reason);
            }
            Message::DetailGapRecovered { stream, key } => {
                if self.served.contains(&(stream.clone(), key.clone())) {
                    self.changes.insert((stream, key), Change::Recovered);
                } else {
                    self.problem(format!("a gap was recovered that was not asked for: {stream}/{key}"));
                }
            }
            Message::DetailCoverage(told) => {
                let stream = self.stream(&told.stream)?;
                let counted = (stream.records, stream.gaps, stream.skipped);
                let sum = stream.records + stream.gaps + stream.skipped;
                if (told.records, told.gaps, told.skipped) != counted || told.considered != sum {
                    let (records, gaps, skipped) = counted;
                    return Err(self.miscounted(format!(
                        "{} considered = {} records + {} gaps + {} skipped of {}, but it said {records}, {gaps} and \
                         {skipped}, which is {sum}",
                        told.considered, told.records, told.gaps, told.skipped, told.stream
                    )));
                }
            }
            Message::SkipResult { stream, count, reason: _ } => {
                let count = count.unwrap_or(1);
                let skipped = &mut self.stream(&stream)?.skipped;
                *skipped = skipped.saturating_add(count);
                self.report.skipped = self.report.skipped.saturating_add(count);
            }
            Message::State { stream, cursor, records } => {
                self.stream(&stream)?;
                if let Some(told) = records.filter(|told| *told != self.report.records) {
                    return Err(self.miscounted(format!(
                        "{told} records at STATE, but it said {}",
                        self.report.records
                    )));
                }
                self.commit(Some((&stream, &cursor)))?;
            }
            Message::Progress { message, count, total } => {
                see(Notice::Progress { message: &message, count, total });
            }
            Message::Estimate { seconds_left } => {
                see(Notice::SecondsLeft(seconds_left));
            }
            Message::Interaction(asked) => {
                let reply = see(Notice::Asked(&asked));
                let done = reply == Reply::Done && asked.kind == InteractionKind::ManualAction;
                program.tell(&wire::interaction_response(
                    &asked.request_id,
                    if done { "success" } else { "cancelled" },
                ));
                if !done {
                    let link = asked.link.map(|link| format!(" ({link})")).unwrap_or_default();
                    return Err(self.failed(
                        format!("needs you: {}{link}", asked.message),
                        "do that, then run it again; what it had committed stays",
                    ));
                }
            }
            Message::Done(done) => {
                match done.status {
                    DoneStatus::Succeeded => {}
                    DoneStatus::Failed | DoneStatus::Cancelled => {
                        let said = done.error.map_or("no reason".into(), |error| error.message);
                        let hint = "what it had committed stays; the next run goes on from there";
                        return Err(self.failed(format!("gave up: {said}"), hint));
                    }
                }
                if done.records_emitted != self.report.records {
                    return Err(self.miscounted(format!(
                        "{} records at DONE, but it said {}",
                        done.records_emitted, self.report.records
                    )));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn record(&mut self, record: wire::Record, line: &[u8]) -> Result<()> {
        self.report.records += 1;
        self.stream(&record.stream)?.records += 1;
        let key = format!("{}/{}/{}", self.ask.name, record.stream, record.key);
        let data = record.data.map_or(Value::Null, Value::Object);
        let known = record.op == Operation::Upsert && self.is_there("records", &key, &data)?;
        if known {
            self.report.unchanged += 1;
        } else {
            self.report.new += 1;
            self.waiting_new += 1;
            self.keep(line)?;
            self.waiting.insert(Key::of(&[key.as_bytes()]));
        }
        let name = (record.stream, record.key);
        if self.served.contains(&name) {
            self.changes.insert(name, Change::Recovered);
        }
        Ok(())
    }

    /// Whether the archive has it so already. Of what waits, nobody knows yet.
    fn is_there(&self, stream: &str, key: &str, data: &Value) -> Result<bool> {
        if self.waiting.contains(&Key::of(&[key.as_bytes()])) {
            return Ok(false);
        }
        self.store.has_record(&self.scope, self.instance, stream, key, content_key(data))
    }

    fn stream(&mut self, name: &str) -> Result<&mut Stream> {
        if !self.streams.contains_key(name) {
            return Err(self.failed(
                format!("speaks of the stream {name:?}, which it did not declare"),
                "a SCHEMA message declares a stream, before its first record",
            ));
        }
        Ok(self.streams.entry(name.to_owned()).or_default())
    }

    fn gap(&mut self, stream: String, key: String, locator: String, why: Why, reason: String) {
        self.changes.insert((stream, key), Change::Failed { locator, why, reason });
    }

    fn keep(&mut self, line: &[u8]) -> Result<()> {
        self.spool.write_all(line)?;
        self.spool.write_all(b"\n")?;
        self.spooled += line.len() as u64 + 1;
        Ok(())
    }

    /// Everything since the last time, in one transaction: lines, rows, gaps and the cursor that covers them.
    fn commit(&mut self, state: Option<(&str, &Value)>) -> Result<()> {
        let now = (self.environment.now)();
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spool = (&self.spool).take(self.spooled);
        let files = self.store.captured_files(&self.scope, self.instance)?;
        let (mut number, last) = (files.len(), files.last().map_or(FULL, |file| file.size));
        // The last file goes on until it is full.
        if last < FULL {
            number -= 1;
        }
        let mut writer = self.store.writer(&self.scope, now)?;
        let mut piece = Vec::new();
        loop {
            spool.by_ref().take(PIECE.saturating_sub(piece.len()) as u64).read_to_end(&mut piece)?;
            let Some(end) = memchr::memrchr(b'\n', &piece) else {
                // A line may be longer than a piece.
                if spool.limit() == 0 {
                    break;
                }
                spool.by_ref().take(wire::LONGEST_LINE as u64).read_to_end(&mut piece)?;
                continue;
            };
            let rest = piece.split_off(end + 1);
            number += 1;
            let path = format!("{}/{number:08}.jsonl", self.ask.name);
            let target = Target {
                instance: self.instance,
                source: of_programs(),
                path: &path,
                store: "what connectors said",
                reader: "wire",
            };
            writer.apply(self.appender.lines(&target, &piece)?)?;
            piece = rest;
        }
        let mut failures = Vec::new();
        for ((stream, key), change) in &self.changes {
            match change {
                Change::Failed { locator, why, reason } => failures.push(Failure {
                    instance: self.instance,
                    stream,
                    key,
                    locator,
                    why: *why,
                    reason,
                    version: &self.version,
                }),
                Change::Recovered => {
                    let closed = writer.close_gap(self.instance, stream, key, now)?;
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

    fn problem(&mut self, what: String) {
        self.report.problem_count += 1;
        if self.report.problems.len() < TOLD && !self.report.problems.contains(&what) {
            self.report.problems.push(what);
        }
    }

    fn failed(&self, what: String, hint: &str) -> Problem {
        Problem::new(format!("{} {what}", self.ask.name)).hint(hint)
    }

    fn broke_protocol(&self, what: String) -> Problem {
        self.failed(format!("said what docs/protocol.md does not allow: {what}"), "mend the connector")
    }

    fn miscounted(&self, what: String) -> Problem {
        self.failed(
            format!("counts wrongly: {what}"),
            "nothing after its last STATE was kept; mend the connector, then run it again",
        )
    }
}
