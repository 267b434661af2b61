//! `annals import`: opens files, lets the sources recognise them, and adds what they take to the archive.

pub(super) mod containers;
pub(super) mod drops;
pub(super) mod elements;
pub(super) mod report;
pub(super) mod triage;
pub(super) mod write;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ingest::append::Appender;
use super::ingest::target::Target;
use super::options::{Environment, Progress};
use super::run::{self, Run};
use annals_core::{Error, Result, Scope, Time};
use annals_sources::{Capture, ElementBody, IntakeOptions, KnownRecords, Member, Shape, Source, registry};
use annals_store::{Batch, Store};
use containers::{Container, Kind};
use elements::{Piece, split};
use report::ContainerReport;
use triage::{MemberPlan, SourceIntake, by_number, judge, look};

/// Raw bytes and batches between two commits.
pub const COMMIT_BYTES: u64 = 24 << 20;
pub const COMMIT_BATCHES: usize = 2_000;
/// Elements of one file that nobody knows are told one by one up to here.
const TOLD: u64 = 3;
/// The root of the home that all imports of one person belong to.
const ROOT: &str = "imports";

pub struct ImportOptions {
    pub paths: Vec<PathBuf>,
    pub wish: IntakeOptions,
    /// The member whose they are.
    pub member: Option<String>,
    /// Only these sources are asked; all when empty.
    pub sources: Vec<&'static dyn Source>,
}

/// The caller holds the lock.
pub fn import(
    ask: &ImportOptions,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<ContainerReport>> {
    let sources: Vec<&'static dyn Source> =
        if ask.sources.is_empty() { registry().to_vec() } else { ask.sources.clone() };
    let now = (environment.now)();
    let importing = sources.iter().copied().filter(|source| source.import().is_some());
    let mut store = run::open(environment, importing)?;
    let run = Run::start(&store, environment, "import")?;
    let appender = Appender::new(Store::open(environment.home)?)?;
    let mut importer = Importer {
        store: &mut store,
        appender,
        environment,
        member: ask.member.as_deref(),
        sources,
        instances: BTreeMap::new(),
        batches: Vec::new(),
        held: HashSet::new(),
        held_bytes: 0,
        container: Map::new(),
        progress,
    };
    // What belongs together may be in several of the files that were named.
    let mut together = Vec::new();
    let seen = ask.paths.len() > 1;
    for path in ask.paths.iter().filter(|_| seen) {
        importer.look_ahead(path, ask.wish, &mut together);
    }
    let mut reports: Vec<ContainerReport> = Vec::new();
    for path in &ask.paths {
        let report = importer.container(path, ask.wish, seen, &mut together)?;
        importer.flush()?;
        reports.push(report);
    }
    for intake in &mut together {
        importer.finish(intake, &mut reports)?;
    }
    importer.flush()?;
    importer.settle(now)?;
    let recognised = reports.iter().filter(|report| report.is_recognised()).count();
    let summary = format!("{recognised} of {} recognised", reports.len());
    run.finish(&mut store, &summary)?;
    Ok(reports)
}

pub struct Importer<'i, 'e> {
    pub store: &'i mut Store,
    pub appender: Appender,
    pub environment: &'i Environment<'e>,
    pub member: Option<&'i str>,
    pub sources: Vec<&'static dyn Source>,
    /// The home of imports of each source.
    pub instances: BTreeMap<&'static str, i64>,
    /// What is not committed yet, and the files that it is for.
    pub batches: Vec<Batch>,
    pub held: HashSet<(i64, String)>,
    pub held_bytes: u64,
    /// What headers say of the container at hand.
    pub container: Map<String, Value>,
    pub progress: &'i mut dyn Progress,
}

impl Importer<'_, '_> {
    /// Shows the elements of a container to sources that want to see all of them first. A zip is seen when it is its turn.
    fn look_ahead(&mut self, path: &Path, wish: IntakeOptions, together: &mut Vec<SourceIntake>) {
        let opened = Container::open(path, &self.environment.home.join("scratch"));
        let Some(mut container) = opened.ok().filter(|container| container.kind != Kind::Zip) else { return };
        let mut desks = self.desks(wish, together);
        let mut unused = ContainerReport::default();
        for plan in judge(&mut container, &mut desks, &mut unused) {
            let intake = &mut desks[plan.intake];
            if intake.intake.looks_first() {
                look(&mut container, &plan, intake, &mut unused);
            }
        }
        together.extend(desks.into_iter().filter(|intake| intake.intake.looks_first()));
    }

    /// A desk for every source. Who looks first keeps theirs until the end of the import.
    fn desks(&self, wish: IntakeOptions, together: &mut Vec<SourceIntake>) -> Vec<SourceIntake> {
        let mut desks = Vec::new();
        for (source, import) in self.sources.iter().filter_map(|source| Some((*source, source.import()?))) {
            let own = |intake: &SourceIntake| intake.source.manifest().source == source.manifest().source;
            desks.push(match together.iter().position(own) {
                Some(at) => together.remove(at),
                None => SourceIntake { source, intake: import.intake(wish, self.environment.settings) },
            });
        }
        desks
    }

    fn container(
        &mut self,
        path: &Path,
        wish: IntakeOptions,
        seen: bool,
        together: &mut Vec<SourceIntake>,
    ) -> Result<ContainerReport> {
        let mut report = ContainerReport { path: path.to_owned(), ..ContainerReport::default() };
        let mut container = match Container::open(path, &self.environment.home.join("scratch")) {
            Ok(container) => container,
            Err(problem) => {
                report.problems.push(problem.what);
                report.failed = true;
                return Ok(report);
            }
        };
        report.kind = container.kind.name();
        report.hash.clone_from(&container.hash);
        let mut desks = self.desks(wish, together);
        let mut plans = judge(&mut container, &mut desks, &mut report);
        report.problems.append(&mut container.problems);
        plans.sort_by_cached_key(|plan| {
            (plan.intake, plan.taking.order, by_number(&container.members[plan.at].name))
        });
        let name = path.file_name().map(super::names::text_of).unwrap_or_default();
        // Whole milliseconds: the same length whenever it is written.
        let now = Time::from_millis((self.environment.now)().micros().div_euclid(1_000));
        self.container = Map::from_iter([
            ("annals_capture".to_owned(), Value::from(1)),
            ("container".to_owned(), Value::from(container.hash.clone())),
            ("container_name".to_owned(), Value::from(name.clone())),
            ("captured_at".to_owned(), Value::from(now.rfc3339())),
        ]);
        let bytes = plans.iter().map(|plan| container.members[plan.at].size).sum();
        self.progress.begin(plans.len() as u64, bytes);
        let unseen = !seen || container.kind == Kind::Zip;
        for plan in &plans {
            let intake = &mut desks[plan.intake];
            if intake.intake.looks_first() && unseen {
                look(&mut container, plan, intake, &mut report);
            }
        }
        for plan in &plans {
            desks[plan.intake].intake.begin(&self.container);
            self.member(&mut container, plan, &mut desks[plan.intake], &mut report)?;
            self.progress.advance(1, 0);
        }
        self.progress.end();
        for intake in &mut desks {
            let known =
                report.members.iter().any(|member| member.source == Some(intake.source.manifest().source));
            if !known {
                continue;
            }
            if !intake.intake.looks_first() {
                let archive = Committed { store: self.appender.store(), source: intake.source };
                let last = intake.intake.finish(&archive)?;
                self.captures(intake.source, &Map::new(), last, &mut report)?;
            }
            report.problems.extend(intake.intake.problems());
            self.gaps(intake, &name, &mut report)?;
            self.account(intake.source, &container, &name, &mut report)?;
        }
        together.extend(desks.into_iter().filter(|intake| intake.intake.looks_first()));
        Ok(report)
    }

    /// What a source held back until all containers were read, each counted with its own.
    fn finish(&mut self, intake: &mut SourceIntake, reports: &mut [ContainerReport]) -> Result<()> {
        let archive = Committed { store: self.appender.store(), source: intake.source };
        let last = intake.intake.finish(&archive)?;
        let problems = intake.intake.problems();
        let Some(end) = reports.len().checked_sub(1) else { return Ok(()) };
        let of = |capture: &Capture<'_>| {
            let container = capture.header.get("container").and_then(Value::as_str);
            reports.iter().position(|report| Some(report.hash.as_str()) == container).unwrap_or(end)
        };
        let mut groups: Vec<(usize, Vec<Capture<'_>>)> = Vec::new();
        for capture in last {
            let at = of(&capture);
            match groups.last_mut() {
                Some((of, group)) if *of == at => group.push(capture),
                _ => groups.push((at, vec![capture])),
            }
        }
        for (at, group) in groups {
            self.captures(intake.source, &Map::new(), group, &mut reports[at])?;
        }
        reports[end].problems.extend(problems);
        Ok(())
    }

    /// All elements of a member.
    fn member(
        &mut self,
        container: &mut Container,
        plan: &MemberPlan,
        intake: &mut SourceIntake,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let entry = &container.members[plan.at];
        let (name, size, modified) = (entry.name.clone(), entry.size, entry.modified);
        let mut header = Map::from_iter([("member".to_owned(), Value::from(name.clone()))]);
        header.extend(modified.map(|at| ("written_at".to_owned(), Value::from(at.rfc3339()))));
        if plan.taking.shape == Shape::Bytes {
            return self.bytes(container, plan, intake, &header, report);
        }
        let member = Member { name: &name, size, modified, head: &[] };
        let (mut elements, mut aside) = (0, 0);
        let read = container.read(plan.at, |input| {
            split(input, &plan.taking.shape, &mut |piece| -> std::result::Result<(), Stopped> {
                let (bytes, torn) = match piece {
                    Piece::Element(bytes) => (bytes, false),
                    Piece::Torn(bytes) => (bytes, true),
                    Piece::Rest(bytes) => {
                        if !plan.taking.has_secrets {
                            self.aside(intake.source, &header, "rest", bytes, report)?;
                        }
                        return Ok(());
                    }
                    Piece::TooLong(bytes) => {
                        elements += 1;
                        report.problems.push(format!("{name}: an element of {bytes} bytes is too long"));
                        return Ok(());
                    }
                };
                elements += 1;
                self.progress.advance(0, bytes.len() as u64);
                let archive = Committed { store: self.appender.store(), source: intake.source };
                let framed = memchr::memchr(super::ingest::parse::SEQUENCE_END, bytes).is_none();
                let taken = match torn || !framed {
                    true => None,
                    false => intake.intake.take(&member, bytes, &archive)?,
                };
                match taken {
                    Some(captures) => {
                        self.captures(intake.source, &header, captures, report)?;
                    }
                    None => {
                        aside += 1;
                        if aside > TOLD {
                            return match plan.taking.has_secrets {
                                true => Ok(()),
                                false => Ok(self.aside(intake.source, &header, "element", bytes, report)?),
                            };
                        }
                        let why = if torn { "the file is truncated" } else { "unexpected content" };
                        let number = elements;
                        report.problems.push(match plan.taking.has_secrets {
                            true => format!("{name}: element {number} skipped: {why}"),
                            false => format!("{name}: element {number} kept as it is: {why}"),
                        });
                        if !plan.taking.has_secrets {
                            self.aside(intake.source, &header, "element", bytes, report)?;
                        }
                    }
                }
                Ok(())
            })
        });
        match read.map_err(Stopped::Reading).and_then(|read| read) {
            Ok(()) => {}
            Err(Stopped::Writing(problem)) => return Err(problem),
            Err(Stopped::Reading(error)) => report.problems.push(format!("{name}: {error}")),
        }
        if aside > TOLD {
            report.problems.push(format!("{name}: {aside} of {elements} elements have unexpected content"));
        }
        let told = report.members.iter_mut().find(|told| told.name == name);
        if let Some(told) = told {
            (told.elements, told.aside) = (elements, aside);
        }
        Ok(())
    }

    /// A member that is kept as a file.
    fn bytes(
        &mut self,
        container: &mut Container,
        plan: &MemberPlan,
        intake: &mut SourceIntake,
        header: &Map<String, Value>,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let entry = &container.members[plan.at];
        let (name, size, modified) = (entry.name.clone(), entry.size, entry.modified);
        let head = match container.head(plan.at) {
            Ok(head) => head,
            Err(error) => {
                report.problems.push(format!("{name}: {error}"));
                return Ok(());
            }
        };
        let member = Member { name: &name, size, modified, head: &head };
        let archive = Committed { store: self.appender.store(), source: intake.source };
        let captures = intake.intake.take(&member, &head, &archive)?.unwrap_or_default();
        for capture in captures {
            let ElementBody::Member = capture.body else {
                self.captures(intake.source, header, vec![capture], report)?;
                continue;
            };
            self.flush()?;
            let instance = self.instance(intake.source)?;
            let (path, store, reader) = (&capture.path, capture.store, capture.reader);
            let target = Target::archived(instance, intake.source, path, store, reader);
            let hash = container.read(plan.at, |input| Appender::hash(input)).and_then(|hash| hash);
            let hash = match hash {
                Ok(hash) => hash,
                Err(error) => {
                    report.problems.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let now = (self.environment.now)();
            let mut writer = self.store.writer(now)?;
            let mut captured = 0;
            let added = container.read(plan.at, |input| {
                self.appender.stream(&target, &hash, input, &mut |batch| {
                    captured += batch.new_bytes;
                    writer.apply(batch)?;
                    Ok(())
                })
            })??;
            writer.commit()?;
            self.progress.advance(0, size);
            let totals = report.totals.entry(intake.source.manifest().source).or_default();
            totals.captured_bytes += captured;
            if capture.counts {
                totals.count(added);
            }
        }
        Ok(())
    }
}

/// The home that imports of a source belong to; a member has one of their own.
pub fn instance_of(
    store: &Store,
    source: &'static dyn Source,
    environment: &Environment<'_>,
    member: Option<&str>,
) -> Result<i64> {
    let root = member.map_or_else(|| ROOT.to_owned(), |member| format!("{ROOT}/{member}"));
    let (name, now) = (source.manifest().source, (environment.now)());
    let instance = store.instance(name, &environment.machine, &root, now)?;
    if let Some(member) = member {
        store.give_homes(&[instance], member)?;
    }
    Ok(instance)
}

/// Why a member was not read to its end.
enum Stopped {
    Reading(io::Error),
    Writing(Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Reading(error)
    }
}

impl From<Error> for Stopped {
    fn from(problem: Error) -> Stopped {
        Stopped::Writing(problem)
    }
}

/// What the archive had before the elements at hand.
struct Committed<'s> {
    store: &'s Store,
    source: &'static dyn Source,
}

impl KnownRecords for Committed<'_> {
    fn session_of(&self, stream: &str, key: &str) -> Result<Option<String>> {
        Ok(self.store.scoped(Scope::Owner).record_session(self.source.manifest().source, stream, key)?)
    }
}

/// The sources that read files which the owner has.
pub fn importing() -> impl Iterator<Item = &'static dyn Source> {
    registry().iter().copied().filter(|source| source.import().is_some())
}
