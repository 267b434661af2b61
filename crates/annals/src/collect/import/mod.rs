//! `annals import`: opens files, lets the sources recognise them, and adds what they accept to the archive.

pub(super) mod arrangement;
pub(super) mod containers;
pub(super) mod drops;
pub(super) mod elements;
pub(super) mod report;
pub(super) mod repository;
pub(super) mod triage;
pub(super) mod write;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ingest::append::{Appender, CONTENT_HASH};
use super::ingest::target::Target;
use super::options::{Environment, Progress};
use super::run::{self, Run};
use annals_core::{Error, InstanceId, Result, Scope, Time};
use annals_sources::{Capture, ElementBody, IntakeOptions, KnownRecords, Member, Shape, Source, registry};
use annals_store::{Batch, Store};
use arrangement::import_arrangement;
use containers::{Container, Kind};
use elements::{Piece, split};
use report::ContainerReport;
use triage::{MemberPlan, SourceIntake, by_number, judge, preview};

/// Raw bytes and batches between two commits.
pub const COMMIT_BYTES: u64 = 24 << 20;
pub const COMMIT_BATCHES: usize = 2_000;
/// Unrecognised elements of one file that are reported individually.
const LISTED_ELEMENTS: u64 = 3;
/// The root of the home that all imports of one person belong to.
const ROOT: &str = "imports";

pub struct ImportOptions {
    pub paths: Vec<PathBuf>,
    pub intake_options: IntakeOptions,
    /// The member who owns the data.
    pub member: Option<String>,
    /// Only these sources; all if empty.
    pub sources: Vec<&'static dyn Source>,
}

/// The caller holds the lock.
pub fn import(
    options: &ImportOptions,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<ContainerReport>> {
    let sources: Vec<&'static dyn Source> =
        if options.sources.is_empty() { registry().to_vec() } else { options.sources.clone() };
    let now = (environment.now)();
    let importing = sources.iter().copied().filter(|source| source.import().is_some());
    let mut store = run::open(environment, importing)?;
    let run = Run::start(&store, environment, "import")?;
    let appender = Appender::new(Store::open(environment.data_dir)?)?;
    let mut importer = Importer {
        store: &mut store,
        appender,
        environment,
        member: options.member.as_deref(),
        sources,
        instances: BTreeMap::new(),
        batches: Vec::new(),
        held: HashSet::new(),
        held_bytes: 0,
        container: Map::new(),
        progress,
    };
    // What belongs together may be in several of the given files.
    let mut together = Vec::new();
    let seen = options.paths.len() > 1;
    for path in options.paths.iter().filter(|_| seen) {
        importer.preview(path, options.intake_options, &mut together);
    }
    let mut reports: Vec<ContainerReport> = Vec::new();
    for path in &options.paths {
        if let Some(report) = import_arrangement(path, importer.store, options.member.as_deref())? {
            reports.push(report);
            continue;
        }
        let report = importer.container(path, options.intake_options, seen, &mut together)?;
        importer.flush()?;
        reports.push(report);
    }
    for intake in &mut together {
        importer.finish(intake, &mut reports)?;
    }
    importer.flush()?;
    importer.mark_available(now)?;
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
    /// The home of each source's imports.
    pub instances: BTreeMap<&'static str, InstanceId>,
    /// Batches not committed yet, and the files they are for.
    pub batches: Vec<Batch>,
    pub held: HashSet<(InstanceId, String)>,
    pub held_bytes: u64,
    /// Header fields of the current container.
    pub container: Map<String, Value>,
    pub progress: &'i mut dyn Progress,
}

impl Importer<'_, '_> {
    /// Shows the elements of a container to sources that need to see all of them first. Zips are read when it is
    /// their turn.
    fn preview(&mut self, path: &Path, intake_options: IntakeOptions, together: &mut Vec<SourceIntake>) {
        let opened = Container::open(path, &self.environment.data_dir.join("scratch"));
        let Some(mut container) = opened.ok().filter(|container| container.kind != Kind::Zip) else { return };
        let mut intakes = self.intakes(intake_options, together);
        let mut unused = ContainerReport::default();
        for plan in judge(&mut container, &mut intakes, &mut unused) {
            let intake = &mut intakes[plan.intake];
            if intake.intake.surveys_first() {
                preview(&mut container, &plan, intake, &mut unused);
            }
        }
        together.extend(intakes.into_iter().filter(|intake| intake.intake.surveys_first()));
    }

    /// An intake for every source. Sources that look first keep theirs until the end of the import.
    fn intakes(&self, intake_options: IntakeOptions, together: &mut Vec<SourceIntake>) -> Vec<SourceIntake> {
        let mut intakes = Vec::new();
        for (source, import) in self.sources.iter().filter_map(|source| Some((*source, source.import()?))) {
            let own = |intake: &SourceIntake| intake.source.manifest().source == source.manifest().source;
            intakes.push(match together.iter().position(own) {
                Some(at) => together.remove(at),
                None => {
                    SourceIntake { source, intake: import.intake(intake_options, self.environment.settings) }
                }
            });
        }
        intakes
    }

    fn container(
        &mut self,
        path: &Path,
        intake_options: IntakeOptions,
        seen: bool,
        together: &mut Vec<SourceIntake>,
    ) -> Result<ContainerReport> {
        let mut report = ContainerReport { path: path.to_owned(), ..ContainerReport::default() };
        let mut container = match Container::open(path, &self.environment.data_dir.join("scratch")) {
            Ok(container) => container,
            Err(error) => {
                report.warnings.push(error.what);
                report.failed = true;
                return Ok(report);
            }
        };
        report.kind = container.kind.name();
        report.hash.clone_from(&container.hash);
        let mut intakes = self.intakes(intake_options, together);
        let mut plans = judge(&mut container, &mut intakes, &mut report);
        report.warnings.append(&mut container.warnings);
        plans.sort_by_cached_key(|plan| {
            (plan.intake, plan.taking.order, by_number(&container.members[plan.at].name))
        });
        let name = path.file_name().map(super::names::text_of).unwrap_or_default();
        // Complete milliseconds, so that the text always has the same length.
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
            let intake = &mut intakes[plan.intake];
            if intake.intake.surveys_first() && unseen {
                preview(&mut container, plan, intake, &mut report);
            }
        }
        for plan in &plans {
            intakes[plan.intake].intake.begin(&self.container);
            self.member(&mut container, plan, &mut intakes[plan.intake], &mut report)?;
            self.progress.advance(1, 0);
        }
        self.progress.end();
        for intake in &mut intakes {
            let known =
                report.members.iter().any(|member| member.source == Some(intake.source.manifest().source));
            if !known {
                continue;
            }
            if !intake.intake.surveys_first() {
                let archive = Committed { store: self.appender.store(), source: intake.source };
                let last = intake.intake.finish(&archive)?;
                self.captures(intake.source, &Map::new(), last, &mut report)?;
            }
            report.warnings.extend(intake.intake.take_warnings());
            self.gaps(intake, &name, &mut report)?;
            self.account(intake.source, &container, &name, &mut report)?;
        }
        together.extend(intakes.into_iter().filter(|intake| intake.intake.surveys_first()));
        Ok(report)
    }

    /// What a source held back until all containers were read, counted with the container it came from.
    fn finish(&mut self, intake: &mut SourceIntake, reports: &mut [ContainerReport]) -> Result<()> {
        let archive = Committed { store: self.appender.store(), source: intake.source };
        let last = intake.intake.finish(&archive)?;
        let warnings = intake.intake.take_warnings();
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
        reports[end].warnings.extend(warnings);
        Ok(())
    }

    /// Imports all elements of a member.
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
                        report.warnings.push(format!("{name}: an element of {bytes} bytes is too long"));
                        return Ok(());
                    }
                };
                elements += 1;
                self.progress.advance(0, bytes.len() as u64);
                let archive = Committed { store: self.appender.store(), source: intake.source };
                let framed = memchr::memchr(super::ingest::parse::SEQUENCE_END, bytes).is_none();
                let accepted = match torn || !framed {
                    true => None,
                    false => intake.intake.take(&member, bytes, &archive)?,
                };
                match accepted {
                    Some(captures) => {
                        self.captures(intake.source, &header, captures, report)?;
                    }
                    None => {
                        aside += 1;
                        if aside > LISTED_ELEMENTS {
                            return match plan.taking.has_secrets {
                                true => Ok(()),
                                false => Ok(self.aside(intake.source, &header, "element", bytes, report)?),
                            };
                        }
                        let why = if torn { "the file is truncated" } else { "unexpected content" };
                        let number = elements;
                        report.warnings.push(match plan.taking.has_secrets {
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
            Err(Stopped::Writing(error)) => return Err(error),
            Err(Stopped::Reading(error)) => report.warnings.push(format!("{name}: {error}")),
        }
        if aside > LISTED_ELEMENTS {
            report.warnings.push(format!("{name}: {aside} of {elements} elements have unexpected content"));
        }
        let entry = report.members.iter_mut().find(|entry| entry.name == name);
        if let Some(entry) = entry {
            (entry.elements, entry.aside) = (elements, aside);
        }
        Ok(())
    }

    /// Imports a member that is kept as a file.
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
                report.warnings.push(format!("{name}: {error}"));
                return Ok(());
            }
        };
        let member = Member { name: &name, size, modified, head: &head };
        let archive = Committed { store: self.appender.store(), source: intake.source };
        let captures = intake.intake.take(&member, &head, &archive)?.unwrap_or_default();
        let mut sha256 = None;
        for mut capture in captures {
            let ElementBody::Member = capture.body else {
                let hash = sha256.clone().map(|hash| (CONTENT_HASH.to_owned(), Value::String(hash)));
                capture.header.extend(hash);
                self.captures(intake.source, header, vec![capture], report)?;
                continue;
            };
            self.flush()?;
            let instance = self.instance(intake.source)?;
            let (path, store, reader) = (&capture.path, capture.store, capture.reader);
            let target = Target::archived(instance, intake.source, path, store, reader);
            let hash = container.read(plan.at, |input| Appender::hash(input)).and_then(|hash| hash);
            let hash = match hash {
                Ok((hash, digest)) => {
                    sha256 = Some(digest);
                    hash
                }
                Err(error) => {
                    report.warnings.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let now = (self.environment.now)();
            let mut writer = self.store.writer(now)?;
            let mut captured = 0;
            let added = container.read(plan.at, |input| {
                self.appender.write_stream(&target, &hash, input, &mut |batch| {
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

/// The home that imports of a source belong to; each member has a separate one.
pub fn instance_of(
    store: &Store,
    source: &'static dyn Source,
    environment: &Environment<'_>,
    member: Option<&str>,
) -> Result<InstanceId> {
    let root = member.map_or_else(|| ROOT.to_owned(), |member| format!("{ROOT}/{member}"));
    let (name, now) = (source.manifest().source, (environment.now)());
    let instance = store.instance(name, &environment.machine, &root, now)?;
    if let Some(member) = member {
        store.assign_homes(&[instance], member)?;
    }
    Ok(instance)
}

/// Why a member was not read to the end.
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
    fn from(error: Error) -> Stopped {
        Stopped::Writing(error)
    }
}

/// What the archive had before the current elements.
struct Committed<'s> {
    store: &'s Store,
    source: &'static dyn Source,
}

impl KnownRecords for Committed<'_> {
    fn session_of(&self, stream: &str, key: &str) -> Result<Option<String>> {
        Ok(self.store.scoped(Scope::Owner).record_session(self.source.manifest().source, stream, key)?)
    }
}

/// Sources that can import files.
pub fn importing() -> impl Iterator<Item = &'static dyn Source> {
    registry().iter().copied().filter(|source| source.import().is_some())
}
