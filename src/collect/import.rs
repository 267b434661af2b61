//! `annals import`: opens what it was given, asks the sources what it is, and adds what they take to the archive.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::append::{Appender, Target};
use super::containers::{Container, Kind};
use super::elements::{Piece, split};
use super::import_report::{ContainerReport, MemberReport};
use super::judging::{Desk, Plan, by_number, judge, look};
use super::sync::{Environment, Progress};
use crate::model::{Problem, Result, Scope, Time, Why};
use crate::sources::{Archive, Body, Capture, Member, Shape, Source, Wish, registry};
use crate::store::{Batch, Store};

/// Raw bytes and batches between two commits.
const COMMIT_BYTES: u64 = 24 << 20;
const COMMIT_BATCHES: usize = 2_000;
/// Elements of one file that nobody knows are told one by one up to here.
const TOLD: u64 = 3;
/// The root of the home that all imports of one person belong to.
const ROOT: &str = "imports";

pub struct ImportAsk {
    pub paths: Vec<PathBuf>,
    pub wish: Wish,
    /// The member whose they are.
    pub member: Option<String>,
    /// Only these sources are asked; all when empty.
    pub sources: Vec<&'static dyn Source>,
}

/// The caller holds the lock.
pub fn import(
    ask: &ImportAsk,
    environment: &Environment<'_>,
    scope: &Scope,
    progress: &mut dyn Progress,
) -> Result<Vec<ContainerReport>> {
    let sources: Vec<&'static dyn Source> =
        if ask.sources.is_empty() { registry().to_vec() } else { ask.sources.clone() };
    let now = (environment.now)();
    let mut store = Store::open(environment.home)?;
    let mut behind = false;
    for source in sources.iter().filter(|source| source.import().is_some()) {
        let manifest = source.manifest();
        behind |= store.needs_rebuild(scope, manifest.source, manifest.reader_version)?;
    }
    if behind {
        super::rebuild(environment.home, scope, now, &mut |_| {})?;
    }
    let run = store.start_run(scope, "import", now)?;
    let appender = Appender::new(Store::open(environment.home)?, scope)?;
    let mut importer = Importer {
        store: &mut store,
        appender,
        scope: *scope,
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
    // What belongs together may stand in several of the files that were named.
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
    for desk in &mut together {
        importer.finish(desk, &mut reports)?;
    }
    importer.flush()?;
    importer.settle(now)?;
    let recognised = reports.iter().filter(|report| report.is_recognised()).count();
    let summary = format!("{recognised} of {} recognised", reports.len());
    store.finish_run(scope, run, &summary, (environment.now)())?;
    store.checkpoint()?;
    Ok(reports)
}

struct Importer<'i, 'e> {
    store: &'i mut Store,
    appender: Appender,
    scope: Scope,
    environment: &'i Environment<'e>,
    member: Option<&'i str>,
    sources: Vec<&'static dyn Source>,
    /// The home of imports of each source.
    instances: BTreeMap<&'static str, i64>,
    /// What is not committed yet, and the files that it is for.
    batches: Vec<Batch>,
    held: HashSet<(i64, String)>,
    held_bytes: u64,
    /// What headers say of the container at hand.
    container: Map<String, Value>,
    progress: &'i mut dyn Progress,
}

impl Importer<'_, '_> {
    /// Shows the elements of a container to sources that want to see all of them first. A zip is seen when it is its turn.
    fn look_ahead(&mut self, path: &Path, wish: Wish, together: &mut Vec<Desk>) {
        let opened = Container::open(path, &self.environment.home.join("scratch"));
        let Some(mut container) = opened.ok().filter(|container| container.kind != Kind::Zip) else { return };
        let mut desks = self.desks(wish, together);
        let mut unused = ContainerReport::default();
        for plan in judge(&mut container, &mut desks, &mut unused) {
            let desk = &mut desks[plan.desk];
            if desk.intake.looks_first() {
                look(&mut container, &plan, desk, &mut unused);
            }
        }
        together.extend(desks.into_iter().filter(|desk| desk.intake.looks_first()));
    }

    /// A desk for every source. Who looks first keeps theirs until the end of the import.
    fn desks(&self, wish: Wish, together: &mut Vec<Desk>) -> Vec<Desk> {
        let mut desks = Vec::new();
        for (source, import) in self.sources.iter().filter_map(|source| Some((*source, source.import()?))) {
            let own = |desk: &Desk| desk.source.manifest().source == source.manifest().source;
            desks.push(match together.iter().position(own) {
                Some(at) => together.remove(at),
                None => Desk { source, intake: import.intake(wish, self.environment.settings) },
            });
        }
        desks
    }

    fn container(
        &mut self,
        path: &Path,
        wish: Wish,
        seen: bool,
        together: &mut Vec<Desk>,
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
            (plan.desk, plan.taking.order, by_number(&container.members[plan.at].name))
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
            let desk = &mut desks[plan.desk];
            if desk.intake.looks_first() && unseen {
                look(&mut container, plan, desk, &mut report);
            }
        }
        for plan in &plans {
            desks[plan.desk].intake.begin(&self.container);
            self.member(&mut container, plan, &mut desks[plan.desk], &mut report)?;
            self.progress.advance(1, 0);
        }
        self.progress.end();
        for desk in &mut desks {
            let known =
                report.members.iter().any(|member| member.source == Some(desk.source.manifest().source));
            if !known {
                continue;
            }
            if !desk.intake.looks_first() {
                let archive =
                    Committed { store: self.appender.store(), scope: self.scope, source: desk.source };
                let last = desk.intake.finish(&archive)?;
                self.captures(desk.source, &Map::new(), last, &mut report)?;
            }
            report.problems.extend(desk.intake.problems());
            self.gaps(desk, &name, &mut report)?;
            self.account(desk.source, &container, &name, &mut report)?;
        }
        together.extend(desks.into_iter().filter(|desk| desk.intake.looks_first()));
        Ok(report)
    }

    /// What a source held back until all containers were read, each counted with its own.
    fn finish(&mut self, desk: &mut Desk, reports: &mut [ContainerReport]) -> Result<()> {
        let archive = Committed { store: self.appender.store(), scope: self.scope, source: desk.source };
        let last = desk.intake.finish(&archive)?;
        let problems = desk.intake.problems();
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
            self.captures(desk.source, &Map::new(), group, &mut reports[at])?;
        }
        reports[end].problems.extend(problems);
        Ok(())
    }

    /// All elements of a member.
    fn member(
        &mut self,
        container: &mut Container,
        plan: &Plan,
        desk: &mut Desk,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let entry = &container.members[plan.at];
        let (name, size, modified) = (entry.name.clone(), entry.size, entry.modified);
        let mut header = Map::from_iter([("member".to_owned(), Value::from(name.clone()))]);
        header.extend(modified.map(|at| ("written_at".to_owned(), Value::from(at.rfc3339()))));
        if plan.taking.shape == Shape::Bytes {
            return self.bytes(container, plan, desk, &header, report);
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
                            self.aside(desk.source, &header, "rest", bytes, report)?;
                        }
                        return Ok(());
                    }
                    Piece::TooLong(bytes) => {
                        elements += 1;
                        report
                            .problems
                            .push(format!("{name}: an element of {bytes} bytes is too long to read"));
                        return Ok(());
                    }
                };
                elements += 1;
                self.progress.advance(0, bytes.len() as u64);
                let archive =
                    Committed { store: self.appender.store(), scope: self.scope, source: desk.source };
                let framed = memchr::memchr(super::parse::SEQUENCE_END, bytes).is_none();
                let taken = match torn || !framed {
                    true => None,
                    false => desk.intake.take(&member, bytes, &archive)?,
                };
                match taken {
                    Some(captures) => {
                        self.captures(desk.source, &header, captures, report)?;
                    }
                    None => {
                        aside += 1;
                        if aside > TOLD {
                            return match plan.taking.has_secrets {
                                true => Ok(()),
                                false => Ok(self.aside(desk.source, &header, "element", bytes, report)?),
                            };
                        }
                        let why = if torn { "the file ends within it" } else { "not what the file is for" };
                        let number = elements;
                        report.problems.push(match plan.taking.has_secrets {
                            true => format!("{name}: element {number} is left out: {why}"),
                            false => format!("{name}: element {number} is kept as it is: {why}"),
                        });
                        if !plan.taking.has_secrets {
                            self.aside(desk.source, &header, "element", bytes, report)?;
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
            report
                .problems
                .push(format!("{name}: {aside} of {elements} elements are not what the file is for"));
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
        plan: &Plan,
        desk: &mut Desk,
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
        let archive = Committed { store: self.appender.store(), scope: self.scope, source: desk.source };
        let captures = desk.intake.take(&member, &head, &archive)?.unwrap_or_default();
        for capture in captures {
            let Body::Member = capture.body else {
                self.captures(desk.source, header, vec![capture], report)?;
                continue;
            };
            self.flush()?;
            let instance = self.instance(desk.source)?;
            let target = Target {
                instance,
                source: desk.source,
                path: &capture.path,
                store: capture.store,
                reader: capture.reader,
            };
            let hash = container.read(plan.at, |input| Appender::hash(input)).and_then(|hash| hash);
            let hash = match hash {
                Ok(hash) => hash,
                Err(error) => {
                    report.problems.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let now = (self.environment.now)();
            let mut writer = self.store.writer(&self.scope, now)?;
            let mut captured = 0;
            let added = container.read(plan.at, |input| {
                self.appender.stream(&target, &hash, input, &mut |batch| {
                    captured += batch.new_bytes;
                    writer.apply(batch).map(|_| ())
                })
            })??;
            writer.commit()?;
            self.progress.advance(0, size);
            let totals = report.totals.entry(desk.source.manifest().source).or_default();
            totals.captured_bytes += captured;
            if capture.counts {
                totals.count(added);
            }
        }
        Ok(())
    }

    /// Captures that go to one file one after another are added to it together.
    fn captures(
        &mut self,
        source: &'static dyn Source,
        header: &Map<String, Value>,
        captures: Vec<Capture<'_>>,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let instance = self.instance(source)?;
        let mut captures = captures.into_iter().peekable();
        while let Some(first) = captures.next() {
            let (path, store, reader, counts) = (first.path.clone(), first.store, first.reader, first.counts);
            let (mut group, mut bytes) = (vec![first], 0);
            while let Some(next) = captures.next_if(|next| next.path == path && bytes < COMMIT_BYTES) {
                bytes += match &next.body {
                    Body::Text(body) => body.len() as u64,
                    Body::Member => 0,
                };
                group.push(next);
            }
            let mut texts = Vec::new();
            for capture in &mut group {
                let Body::Text(body) = &capture.body else { continue };
                let mut told = self.container.clone();
                told.extend(header.clone());
                told.append(&mut capture.header);
                texts.push((told, body.as_ref()));
            }
            self.make_room(instance, &path)?;
            let target = Target { instance, source, path: &path, store, reader };
            let (added, batch) = self.appender.texts(&target, &texts)?;
            let totals = report.totals.entry(source.manifest().source).or_default();
            if counts {
                added.into_iter().for_each(|added| totals.count(added));
            }
            if let Some(batch) = batch {
                totals.captured_bytes += batch.new_bytes;
                self.hold(batch)?;
            }
        }
        Ok(())
    }

    /// What nobody could read is kept as it is.
    fn aside(
        &mut self,
        source: &'static dyn Source,
        header: &Map<String, Value>,
        what: &str,
        bytes: &[u8],
        report: &mut ContainerReport,
    ) -> Result<()> {
        let instance = self.instance(source)?;
        let hash = &blake3::hash(bytes).to_hex()[..32];
        let base = header.get("member").and_then(Value::as_str).unwrap_or_default();
        let base = crate::sources::path_part(base.rsplit('/').next().unwrap_or_default());
        let path = format!("aside/{base}/{what}-{hash}");
        self.make_room(instance, &path)?;
        let target =
            Target { instance, source, path: &path, store: "elements nobody knows", reader: "aside" };
        let added = self.appender.whole(&target, bytes)?;
        let totals = report.totals.entry(source.manifest().source).or_default();
        totals.aside += 1;
        if let Some((_, batch)) = added {
            totals.captured_bytes += batch.new_bytes;
            self.hold(batch)?;
        }
        Ok(())
    }

    /// Parts that are missing stay known until an import has them.
    fn gaps(&mut self, desk: &Desk, container: &str, report: &mut ContainerReport) -> Result<()> {
        let missing = desk.intake.missing();
        if !missing.is_empty() {
            let names = missing.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if missing.len() > 10 { " and more" } else { "" };
            report.problems.push(format!(
                "{container} lists {} files that are not in it: {names}{more}; ask for it again to have them",
                missing.len()
            ));
        }
        let instance = self.instance(desk.source)?;
        let open = self.store.open_gaps(&self.scope, instance, "imports")?;
        if missing.is_empty() && open.is_empty() {
            return Ok(());
        }
        self.flush()?;
        let now = (self.environment.now)();
        let mut writer = self.store.writer(&self.scope, now)?;
        for member in report.members.iter().filter(|member| member.verdict == "taken") {
            let base = member.name.rsplit('/').next().unwrap_or_default();
            if open.iter().any(|name| name == base) {
                writer.close_gap(instance, "imports", base, now)?;
            }
        }
        for name in &missing {
            let reason = format!("{container} lists it and lacks it");
            writer.open_gap(instance, "imports", name, (Why::Unreadable, &reason), now)?;
        }
        writer.commit()
    }

    /// The account of the import, so that the audit can say what was in the container and what became of it.
    fn account(
        &mut self,
        source: &'static dyn Source,
        container: &Container,
        name: &str,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let own = source.manifest().source;
        let mine = |member: &&MemberReport| member.source.is_none_or(|source| source == own);
        let members: Vec<Value> = report
            .members
            .iter()
            .filter(mine)
            .map(|member| {
                json!({
                    "name": member.name, "bytes": member.bytes, "verdict": member.verdict,
                    "what": member.what, "elements": member.elements, "aside": member.aside,
                })
            })
            .collect();
        let account = json!({
            "id": container.hash, "name": name, "kind": container.kind.name(), "members": members,
            "problems": report.problems,
        });
        let capture = Capture {
            path: format!("imports/{}.json-seq", container.hash),
            store: "accounts of imports",
            reader: "import",
            header: Map::new(),
            body: Body::Text(serde_json::to_vec(&account)?.into()),
            counts: false,
        };
        self.captures(source, &Map::new(), vec![capture], report)
    }

    fn instance(&mut self, source: &'static dyn Source) -> Result<i64> {
        let name = source.manifest().source;
        if let Some(known) = self.instances.get(name) {
            return Ok(*known);
        }
        self.flush()?;
        let instance = instance_of(self.store, &self.scope, source, self.environment, self.member)?;
        self.instances.insert(name, instance);
        Ok(instance)
    }

    /// What the appender has to know of a file must be committed.
    fn make_room(&mut self, instance: i64, path: &str) -> Result<()> {
        let full = self.held_bytes >= COMMIT_BYTES || self.batches.len() >= COMMIT_BATCHES;
        if full || self.held.contains(&(instance, path.to_owned())) { self.flush() } else { Ok(()) }
    }

    fn hold(&mut self, batch: Batch) -> Result<()> {
        self.held.insert((batch.instance, batch.part.path.clone()));
        self.held_bytes += batch.new_bytes;
        self.batches.push(batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.batches.is_empty() {
            return Ok(());
        }
        let mut writer = self.store.writer(&self.scope, (self.environment.now)())?;
        for batch in self.batches.drain(..) {
            writer.apply(batch)?;
        }
        writer.commit()?;
        self.held.clear();
        self.held_bytes = 0;
        Ok(())
    }

    fn settle(&mut self, now: Time) -> Result<()> {
        let mut writer = self.store.writer(&self.scope, now)?;
        writer.resolve_summaries()?;
        for instance in self.instances.values() {
            writer.set_instance_status(*instance, "available", "", now)?;
        }
        writer.commit()
    }
}

/// The home that imports of a source belong to; a member has one of their own.
pub fn instance_of(
    store: &Store,
    scope: &Scope,
    source: &'static dyn Source,
    environment: &Environment<'_>,
    member: Option<&str>,
) -> Result<i64> {
    let root = member.map_or_else(|| ROOT.to_owned(), |member| format!("{ROOT}/{member}"));
    let (name, now) = (source.manifest().source, (environment.now)());
    let instance = store.instance(scope, name, &environment.machine, &root, now)?;
    if let Some(member) = member {
        store.give_homes(scope, &[instance], member)?;
    }
    Ok(instance)
}

/// Why a member was not read to its end.
enum Stopped {
    Reading(io::Error),
    Writing(Problem),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Reading(error)
    }
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Stopped {
        Stopped::Writing(problem)
    }
}

/// What the archive had before the elements at hand.
struct Committed<'s> {
    store: &'s Store,
    scope: Scope,
    source: &'static dyn Source,
}

impl Archive for Committed<'_> {
    fn session_of(&self, stream: &str, key: &str) -> Result<Option<String>> {
        self.store.record_session(&self.scope, self.source.manifest().source, stream, key)
    }
}

/// The sources that read files which the owner has.
pub fn importing() -> impl Iterator<Item = &'static dyn Source> {
    registry().iter().copied().filter(|source| source.import().is_some())
}
