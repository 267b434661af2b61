//! `sync --connector`: runs an outside program, and commits its output at each of its states; a failed run keeps nothing
//! after the last one.

pub(super) mod keep;
pub(super) mod program;
pub(super) mod wire;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::import::containers::private_file;
use super::ingest::append::Appender;
use super::options::Environment;
use super::run::{self, Run};
use annals_core::{ContentKey, Error, FailureKind, Result, SourceStatus, Time};
use annals_sources::of_programs;
use annals_store::{Lease, Store};
use program::{ENDING, Heard, Program};
use wire::{DoneStatus, Interaction, InteractionKind, RunMode, Unread, WireMessage};

/// Gaps that one run is told of.
const GAPS: usize = 1_000;
/// How long they are the run's own, should it die.
const LEASE: i64 = 3_600_000_000;
/// Problems that are told; all are counted.
const TOLD: usize = 100;

pub struct ConnectorOptions {
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
    pub failure: Option<Error>,
}

/// The caller holds the lock.
pub fn run_connector(
    ask: &ConnectorOptions,
    environment: &Environment<'_>,
    see: &mut dyn FnMut(Notice<'_>) -> Reply,
) -> Result<ConnectorReport> {
    if !wire::is_name(&ask.name) {
        return Err(Error::new(format!("invalid connector name {:?}", ask.name))
            .hint("use letters, digits, `_` and `-` in --connector-name NAME"));
    }
    let now = (environment.now)();
    let mut store = run::open(environment, [of_programs()])?;
    let source = of_programs().manifest().source;
    let instance = store.instance(source, &environment.machine, &ask.name, now)?;
    if let Some(member) = &ask.member {
        store.give_homes(&[instance], member)?;
    }
    let run = Run::start(&store, environment, &format!("sync --connector {}", ask.name))?;
    let version = version_of(ask);
    let holder = format!("run {}", run.id());
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, &version, now)?;
    let lease = Lease { holder: &holder, until: Time::from_micros(now.micros().saturating_add(LEASE)) };
    let gaps = writer.claim_gaps(instance, lease, GAPS, now)?;
    writer.commit()?;
    let state = store.cursors(instance, STATE)?;
    let mode = match (ask.gaps_only, ask.full) {
        (true, _) => RunMode::GapsOnly,
        (false, true) => RunMode::FullRefresh,
        (false, false) => RunMode::Incremental,
    };
    let mut session = Session {
        ask,
        environment,
        appender: Appender::new(Store::open(environment.home)?)?,
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
            program.tell(&wire::start(run.id(), mode, &state, &gaps));
            session.talk(&mut program, see)
        }
        Err(problem) => Err(problem),
    };
    let mut report = session.report;
    let (status, reason) = match &talked {
        Ok(()) => (SourceStatus::Available, String::new()),
        Err(error) => (SourceStatus::Error, format!("the last run failed: {}", error.what)),
    };
    let now = (environment.now)();
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, Some(&holder))?;
    writer.set_instance_status(instance, status, &reason, now)?;
    writer.commit()?;
    report.failure = talked.err();
    let outcome = if report.failure.is_some() { "failed" } else { "succeeded" };
    let summary = format!("{outcome}: {} records, {} committed", report.records, report.committed);
    run.finish(&mut store, &summary)?;
    Ok(report)
}

/// Cursors of streams are called so, and then as the stream.
pub const STATE: &str = "state ";

/// Another program is another version: what an older one gave up, it may get. Arguments that are files are scripts.
fn version_of(ask: &ConnectorOptions) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in std::iter::once(&ask.program).chain(&ask.arguments) {
        if let Ok(file) = File::open(path) {
            // What cannot be read says nothing, as what is no file.
            drop(hasher.update_reader(file.take(64 << 20)));
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A stream that was declared, and what was said of it in this run.
#[derive(Default)]
pub struct ConnectorStream {
    pub records: u64,
    pub gaps: u64,
    pub skipped: u64,
}

/// What happened to a gap last.
pub enum RecordChange {
    Failed { locator: String, why: FailureKind, reason: String },
    Recovered,
}

pub struct Session<'r, 'e> {
    pub ask: &'r ConnectorOptions,
    pub environment: &'r Environment<'e>,
    pub appender: Appender,
    pub store: &'r mut Store,
    pub instance: i64,
    pub version: String,
    pub streams: BTreeMap<String, ConnectorStream>,
    /// Gaps that the connector was told of.
    pub served: HashSet<(String, String)>,
    /// Lines since the last commit: of any number, so they wait on the disk.
    pub spool: File,
    pub spooled: u64,
    /// Records among them.
    pub waiting: HashSet<ContentKey>,
    pub waiting_new: u64,
    /// By stream and key.
    pub changes: BTreeMap<(String, String), RecordChange>,
    pub report: ConnectorReport,
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
                        format!("printed nothing for {seconds} s"),
                        "allow more time with --connector-silence SECONDS",
                    ));
                }
                Heard::Ended => {
                    break Err(self.failed(
                        "ended without DONE".into(),
                        "see its messages on standard error; everything it committed is kept",
                    ));
                }
                Heard::TooLong(length) => {
                    self.problem(format!("a line of {length} bytes is too long and was dropped"));
                }
                Heard::Line(line) if done.is_some() && !line.is_empty() => {
                    self.problem("output after DONE ignored".into());
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
                "sent DONE but did not exit with code 0".into(),
                "a successful run must exit with code 0",
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
                self.problem("a line is not a message".into());
                self.keep(line)?;
                return Ok(false);
            }
            Err(Unread::UnknownKind(kind)) => {
                // A line can contain anything: only what looks like a kind is reported.
                let odd =
                    kind.len() > 40 || !kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                let kind = if odd { String::new() } else { format!(" {kind:?}") };
                self.problem(format!("a message of an unknown kind{kind}"));
                self.keep(line)?;
                return Ok(false);
            }
        };
        match message {
            WireMessage::Schema { stream, schema } => {
                self.streams.entry(stream.clone()).or_default();
                let key = format!("{}/{stream}", self.ask.name);
                if !self.is_there("schemas", &key, &Value::Object(schema))? {
                    self.keep(line)?;
                }
            }
            WireMessage::Record(record) => self.record(record, line)?,
            WireMessage::RecordError { stream, key, message } => {
                self.stream(&stream)?.gaps += 1;
                self.gap(stream, key, String::new(), FailureKind::Malformed, message);
            }
            WireMessage::DetailGap(gap) => {
                self.stream(&gap.stream)?.gaps += 1;
                let why = gap.why();
                let locator = gap.locator.map(|locator| locator.to_string()).unwrap_or_default();
                let reason = gap.message.unwrap_or_else(|| why.name().replace('_', " "));
                self.gap(gap.stream, gap.key, locator, why, reason);
            }
            WireMessage::DetailGapRecovered { stream, key } => {
                if self.served.contains(&(stream.clone(), key.clone())) {
                    self.changes.insert((stream, key), RecordChange::Recovered);
                } else {
                    self.problem(format!("recovered a gap that was not requested: {stream}/{key}"));
                }
            }
            WireMessage::DetailCoverage(told) => {
                let stream = self.stream(&told.stream)?;
                let counted = (stream.records, stream.gaps, stream.skipped);
                let sum = stream.records + stream.gaps + stream.skipped;
                if (told.records, told.gaps, told.skipped) != counted || told.considered != sum {
                    let (records, gaps, skipped) = counted;
                    return Err(self.miscounted(format!(
                        "{} considered = {} records + {} gaps + {} skipped of {}, but it sent {records}, {gaps} and \
                         {skipped}, which is {sum}",
                        told.considered, told.records, told.gaps, told.skipped, told.stream
                    )));
                }
            }
            WireMessage::SkipResult { stream, count, reason: _ } => {
                let count = count.unwrap_or(1);
                let skipped = &mut self.stream(&stream)?.skipped;
                *skipped = skipped.saturating_add(count);
                self.report.skipped = self.report.skipped.saturating_add(count);
            }
            WireMessage::State { stream, cursor, records } => {
                self.stream(&stream)?;
                if let Some(told) = records.filter(|told| *told != self.report.records) {
                    return Err(self.miscounted(format!(
                        "{told} records according to STATE, but it sent {}",
                        self.report.records
                    )));
                }
                self.commit(Some((&stream, &cursor)))?;
            }
            WireMessage::Progress { message, count, total } => {
                see(Notice::Progress { message: &message, count, total });
            }
            WireMessage::Estimate { seconds_left } => {
                see(Notice::SecondsLeft(seconds_left));
            }
            WireMessage::Interaction(asked) => {
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
                        "do that, then run it again; everything it committed is kept",
                    ));
                }
            }
            WireMessage::Done(done) => {
                match done.status {
                    DoneStatus::Succeeded => {}
                    DoneStatus::Failed | DoneStatus::Cancelled => {
                        let said = done.error.map_or("no reason given".into(), |error| error.message);
                        let hint = "everything it committed is kept; the next run continues from there";
                        return Err(self.failed(format!("gave up: {said}"), hint));
                    }
                }
                if done.records_emitted != self.report.records {
                    return Err(self.miscounted(format!(
                        "{} records according to DONE, but it sent {}",
                        done.records_emitted, self.report.records
                    )));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn problem(&mut self, what: String) {
        self.report.problem_count += 1;
        if self.report.problems.len() < TOLD && !self.report.problems.contains(&what) {
            self.report.problems.push(what);
        }
    }

    pub fn failed(&self, what: String, hint: &str) -> Error {
        Error::new(format!("{} {what}", self.ask.name)).hint(hint)
    }

    fn broke_protocol(&self, what: String) -> Error {
        self.failed(format!("violated the protocol: {what}"), "fix the connector (see docs/protocol.md)")
    }

    fn miscounted(&self, what: String) -> Error {
        self.failed(
            format!("miscounted: {what}"),
            "nothing after its last STATE was kept; fix the connector and run it again",
        )
    }
}
