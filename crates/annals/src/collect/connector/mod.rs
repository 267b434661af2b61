//! `sync --connector`: runs an outside program and commits its output at each of its states. A failed run keeps
//! nothing after the last state.

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
use annals_core::{ContentKey, Error, FailureKind, InstanceId, Result, SourceStatus, Time};
use annals_sources::of_programs;
use annals_store::{Lease, Store};
use program::{ENDING, Program, Received};
use wire::{DoneStatus, Interaction, InteractionKind, RunMode, Unread, WireMessage};

/// Most gaps sent to one run.
const GAPS: usize = 1_000;
/// How long they are leased to it, in case it dies.
const LEASE: i64 = 3_600_000_000;
/// Most warnings listed; all are counted.
const LISTED_WARNINGS: usize = 100;

pub struct ConnectorOptions {
    pub program: String,
    pub arguments: Vec<String>,
    pub name: String,
    pub full: bool,
    pub gaps_only: bool,
    /// How long it may print nothing.
    pub silence: Duration,
    /// Environment variables that it does not get.
    pub hidden: Vec<String>,
    /// The member who owns the records.
    pub member: Option<String>,
}

/// A message to the user.
#[derive(Debug)]
pub enum Notice<'n> {
    /// A line on the program's standard error.
    Output(&'n str),
    Progress {
        message: &'n str,
        count: Option<u64>,
        total: Option<u64>,
    },
    SecondsLeft(u64),
    /// The user has to act; the reply says whether it was done.
    Interaction(&'n Interaction),
}

/// The user's reply to an interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractionReply {
    Done,
    NotDone,
}

#[derive(Debug, Default)]
pub struct ConnectorReport {
    pub name: String,
    /// `RECORD`s received, how many of them were new, and how many were unchanged.
    pub records: u64,
    pub new: u64,
    pub unchanged: u64,
    pub skipped: u64,
    pub gaps_opened: u64,
    pub gaps_recovered: u64,
    pub commits: u64,
    /// How many of `new` are in the archive.
    pub committed: u64,
    pub warning_count: u64,
    pub warnings: Vec<String>,
    /// Why the run failed.
    pub failure: Option<Error>,
}

/// The caller holds the lock.
pub fn run_connector(
    options: &ConnectorOptions,
    environment: &Environment<'_>,
    notify: &mut dyn FnMut(Notice<'_>) -> InteractionReply,
) -> Result<ConnectorReport> {
    if !wire::is_name(&options.name) {
        return Err(Error::new(format!("invalid connector name {:?}", options.name))
            .hint("use letters, digits, `_` and `-` in --connector-name NAME"));
    }
    let now = (environment.now)();
    let mut store = run::open(environment, [of_programs()])?;
    let source = of_programs().manifest().source;
    let instance = store.instance(source, &environment.machine, &options.name, now)?;
    if let Some(member) = &options.member {
        store.assign_homes(&[instance], member)?;
    }
    let run = Run::start(&store, environment, &format!("sync --connector {}", options.name))?;
    let version = version_of(options);
    let holder = format!("run {}", run.id());
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, &version, now)?;
    let lease = Lease { holder: &holder, until: Time::from_micros(now.micros().saturating_add(LEASE)) };
    let gaps = writer.claim_gaps(instance, lease, GAPS, now)?;
    writer.commit()?;
    let state = store.cursors(instance, STATE)?;
    let mode = match (options.gaps_only, options.full) {
        (true, _) => RunMode::GapsOnly,
        (false, true) => RunMode::FullRefresh,
        (false, false) => RunMode::Incremental,
    };
    let mut session = Session {
        options,
        environment,
        appender: Appender::new(Store::open(environment.data_dir)?)?,
        store: &mut store,
        instance,
        version,
        streams: BTreeMap::new(),
        served: gaps.iter().map(|gap| (gap.stream.clone(), gap.key.clone())).collect(),
        spool: private_file(&environment.data_dir.join("scratch"))?,
        spooled: 0,
        waiting: HashSet::new(),
        waiting_new: 0,
        changes: BTreeMap::new(),
        report: ConnectorReport { name: options.name.clone(), ..ConnectorReport::default() },
    };
    let outcome = match Program::start(&options.program, &options.arguments, &options.hidden) {
        Ok(mut program) => {
            program.send(&wire::start(run.id(), mode, &state, &gaps));
            session.communicate(&mut program, notify)
        }
        Err(error) => Err(error),
    };
    let mut report = session.report;
    let (status, reason) = match &outcome {
        Ok(()) => (SourceStatus::Available, String::new()),
        Err(error) => (SourceStatus::Error, format!("the last run failed: {}", error.what)),
    };
    let now = (environment.now)();
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, Some(&holder))?;
    writer.set_instance_status(instance, status, &reason, now)?;
    writer.commit()?;
    report.failure = outcome.err();
    let outcome = if report.failure.is_some() { "failed" } else { "succeeded" };
    let summary = format!("{outcome}: {} records, {} committed", report.records, report.committed);
    run.finish(&mut store, &summary)?;
    Ok(report)
}

/// Prefix of the names of stream cursors.
pub const STATE: &str = "state ";

/// Hashes the program and its arguments that are files, such as scripts: a changed program may fetch what an older
/// one gave up on.
fn version_of(options: &ConnectorOptions) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in std::iter::once(&options.program).chain(&options.arguments) {
        if let Ok(file) = File::open(path) {
            // Arguments that cannot be read as files do not count.
            drop(hasher.update_reader(file.take(64 << 20)));
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A declared stream, and what this run sent for it.
#[derive(Default)]
pub struct ConnectorStream {
    pub records: u64,
    pub gaps: u64,
    pub skipped: u64,
}

/// The last change to a gap.
pub enum RecordChange {
    Failed { locator: String, why: FailureKind, reason: String },
    Recovered,
}

pub struct Session<'r, 'e> {
    pub options: &'r ConnectorOptions,
    pub environment: &'r Environment<'e>,
    pub appender: Appender,
    pub store: &'r mut Store,
    pub instance: InstanceId,
    pub version: String,
    pub streams: BTreeMap<String, ConnectorStream>,
    /// Gaps that were sent to the connector.
    pub served: HashSet<(String, String)>,
    /// Lines since the last commit, spooled to disk because there may be any number.
    pub spool: File,
    pub spooled: u64,
    /// Keys of the records among them.
    pub waiting: HashSet<ContentKey>,
    pub waiting_new: u64,
    /// By stream and key.
    pub changes: BTreeMap<(String, String), RecordChange>,
    pub report: ConnectorReport,
}

impl Session<'_, '_> {
    /// Runs until the program ends; an error says why the run failed.
    fn communicate(
        &mut self,
        program: &mut Program,
        notify: &mut dyn FnMut(Notice<'_>) -> InteractionReply,
    ) -> Result<()> {
        let mut done: Option<Instant> = None;
        let outcome = loop {
            // After DONE, the program may take a moment to exit, but no longer.
            if done.is_some_and(|done| done.elapsed() > ENDING) {
                break Ok(());
            }
            match program.receive(if done.is_some() { ENDING } else { self.options.silence }) {
                Received::Aside(text) => {
                    notify(Notice::Output(&text));
                }
                Received::Silence | Received::Ended if done.is_some() => break Ok(()),
                Received::Silence => {
                    let seconds = self.options.silence.as_secs();
                    break Err(self.failed(
                        format!("printed nothing for {seconds} s"),
                        "allow more time with --connector-silence SECONDS",
                    ));
                }
                Received::Ended => {
                    break Err(self.failed(
                        "ended without DONE".into(),
                        "see its messages on standard error; everything it committed is kept",
                    ));
                }
                Received::TooLong(length) => {
                    self.warn(format!("a line of {length} bytes is too long and was dropped"));
                }
                Received::Line(line) if done.is_some() && !line.is_empty() => {
                    self.warn("output after DONE ignored".into());
                }
                Received::Line(line) => match self.line(&line, program, notify) {
                    Ok(true) => done = Some(Instant::now()),
                    Ok(false) => {}
                    Err(error) => break Err(error),
                },
            }
        };
        let outcome = outcome.and_then(|()| match program.exits_successfully()? {
            true => self.commit(None),
            false => Err(self.failed(
                "sent DONE but did not exit with code 0".into(),
                "a successful run must exit with code 0",
            )),
        });
        for text in program.remaining_output() {
            notify(Notice::Output(&text));
        }
        outcome
    }

    /// Processes one line; returns true if it was DONE.
    fn line(
        &mut self,
        line: &[u8],
        program: &mut Program,
        notify: &mut dyn FnMut(Notice<'_>) -> InteractionReply,
    ) -> Result<bool> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        let message = match wire::read(line) {
            Ok(message) => message,
            Err(Unread::Wrong(what)) => return Err(self.broke_protocol(what)),
            Err(Unread::Garbage) => {
                self.warn("a line is not a message".into());
                self.keep(line)?;
                return Ok(false);
            }
            Err(Unread::UnknownKind(kind)) => {
                // A line can contain anything: report only what looks like a type.
                let odd =
                    kind.len() > 40 || !kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                let kind = if odd { String::new() } else { format!(" {kind:?}") };
                self.warn(format!("a message of an unknown kind{kind}"));
                self.keep(line)?;
                return Ok(false);
            }
        };
        match message {
            WireMessage::Schema { stream, schema } => {
                self.streams.entry(stream.clone()).or_default();
                let key = format!("{}/{stream}", self.options.name);
                if !self.is_archived("schemas", &key, &Value::Object(schema))? {
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
                    self.warn(format!("recovered a gap that was not requested: {stream}/{key}"));
                }
            }
            WireMessage::DetailCoverage(reported) => {
                let stream = self.stream(&reported.stream)?;
                let counted = (stream.records, stream.gaps, stream.skipped);
                let sum = stream.records + stream.gaps + stream.skipped;
                if (reported.records, reported.gaps, reported.skipped) != counted
                    || reported.considered != sum
                {
                    let (records, gaps, skipped) = counted;
                    return Err(self.miscounted(format!(
                        "{} considered = {} records + {} gaps + {} skipped of {}, but it sent {records}, {gaps} and \
                         {skipped}, which is {sum}",
                        reported.considered, reported.records, reported.gaps, reported.skipped, reported.stream
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
                if let Some(reported) = records.filter(|reported| *reported != self.report.records) {
                    return Err(self.miscounted(format!(
                        "{reported} records according to STATE, but it sent {}",
                        self.report.records
                    )));
                }
                self.commit(Some((&stream, &cursor)))?;
            }
            WireMessage::Progress { message, count, total } => {
                notify(Notice::Progress { message: &message, count, total });
            }
            WireMessage::Estimate { seconds_left } => {
                notify(Notice::SecondsLeft(seconds_left));
            }
            WireMessage::Interaction(interaction) => {
                let reply = notify(Notice::Interaction(&interaction));
                let done =
                    reply == InteractionReply::Done && interaction.kind == InteractionKind::ManualAction;
                program.send(&wire::interaction_response(
                    &interaction.request_id,
                    if done { "success" } else { "cancelled" },
                ));
                if !done {
                    let link = interaction.link.map(|link| format!(" ({link})")).unwrap_or_default();
                    return Err(self.failed(
                        format!("needs you: {}{link}", interaction.message),
                        "do that, then run it again; everything it committed is kept",
                    ));
                }
            }
            WireMessage::Done(done) => {
                match done.status {
                    DoneStatus::Succeeded => {}
                    DoneStatus::Failed | DoneStatus::Cancelled => {
                        let reason = done.error.map_or("no reason given".into(), |error| error.message);
                        let hint = "everything it committed is kept; the next run continues from there";
                        return Err(self.failed(format!("gave up: {reason}"), hint));
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

    pub fn warn(&mut self, what: String) {
        self.report.warning_count += 1;
        if self.report.warnings.len() < LISTED_WARNINGS && !self.report.warnings.contains(&what) {
            self.report.warnings.push(what);
        }
    }

    pub fn failed(&self, what: String, hint: &str) -> Error {
        Error::new(format!("{} {what}", self.options.name)).hint(hint)
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
