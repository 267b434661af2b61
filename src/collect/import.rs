//! `annals import`: opens what it was given, asks the sources what it is, and adds what they take to the archive.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::append::{Added, Appender, Target};
use super::containers::{Container, Kind};
use super::elements::{Piece, split};
use super::sync::{Environment, Progress};
use crate::model::{Problem, Result, Scope, Time};
use crate::sources::{
    Archive, Body, Capture, Import, Intake, Judgement, Member, Shape, Source, Taking, Wish, registry,
};
use crate::store::{Batch, Store};

/// Raw bytes and batches between two commits.
const COMMIT_BYTES: u64 = 24 << 20;
const COMMIT_BATCHES: usize = 2_000;
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

/// What became of a container.
#[derive(Debug, Default)]
pub struct ContainerReport {
    pub path: PathBuf,
    pub kind: &'static str,
    pub members: Vec<MemberReport>,
    /// By the name of the source.
    pub totals: BTreeMap<&'static str, ImportTotals>,
    pub problems: Vec<String>,
    /// It could not be opened at all.
    pub failed: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ImportTotals {
    pub new: u64,
    pub changed: u64,
    pub unchanged: u64,
    pub captured_bytes: u64,
    /// Elements that were kept as they are because nobody could read them.
    pub aside: u64,
}

#[derive(Debug, Clone)]
pub struct MemberReport {
    pub name: String,
    pub bytes: u64,
    /// `taken`, `opened`, `left_out`, `refused` or `unknown`.
    pub verdict: &'static str,
    pub source: Option<&'static str>,
    /// What it was taken for, or why it was not.
    pub what: String,
    pub elements: u64,
    pub aside: u64,
}

impl ContainerReport {
    pub fn is_recognised(&self) -> bool {
        self.members.iter().any(|member| member.source.is_some())
    }
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
    let mut reports = Vec::new();
    for path in &ask.paths {
        let report = importer.container(path, ask.wish)?;
        importer.flush()?;
        reports.push(report);
    }
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

/// A source at work on one container.
struct Desk {
    source: &'static dyn Source,
    intake: Box<dyn Intake>,
}

/// A member that a source takes.
struct Plan {
    at: usize,
    desk: usize,
    taking: Taking,
}

impl Importer<'_, '_> {
    fn container(&mut self, path: &Path, wish: Wish) -> Result<ContainerReport> {
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
        let imports = self.sources.iter().filter_map(|source| Some((*source, source.import()?)));
        let mut desks: Vec<Desk> = imports
            .map(|(source, import): (_, &dyn Import)| Desk { source, intake: import.intake(wish) })
            .collect();
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
        for plan in &plans {
            let desk = &mut desks[plan.desk];
            if desk.intake.looks_first() {
                look(&mut container, plan, desk, &mut report);
            }
        }
        for plan in &plans {
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
            let archive = Committed { store: self.appender.store(), scope: self.scope, source: desk.source };
            let last = desk.intake.finish(&archive)?;
            for capture in last {
                self.capture(desk.source, &Map::new(), capture, &mut report)?;
            }
            report.problems.extend(desk.intake.problems());
            self.gaps(desk, &name, &mut report)?;
            self.account(desk.source, &container, &name, &mut report)?;
        }
        Ok(report)
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
                        for capture in captures {
                            self.capture(desk.source, &header, capture, report)?;
                        }
                    }
                    None => {
                        aside += 1;
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
                self.capture(desk.source, header, capture, report)?;
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
                count(totals, added);
            }
        }
        Ok(())
    }

    fn capture(
        &mut self,
        source: &'static dyn Source,
        header: &Map<String, Value>,
        capture: Capture<'_>,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let Body::Text(body) = &capture.body else { return Ok(()) };
        let instance = self.instance(source)?;
        self.make_room(instance, &capture.path)?;
        let target =
            Target { instance, source, path: &capture.path, store: capture.store, reader: capture.reader };
        let mut told = self.container.clone();
        told.extend(header.clone());
        told.extend(capture.header);
        let added = self.appender.text(&target, &told, body)?;
        let totals = report.totals.entry(source.manifest().source).or_default();
        if capture.counts {
            count(totals, added.as_ref().map(|(added, _)| *added));
        }
        if let Some((_, batch)) = added {
            totals.captured_bytes += batch.new_bytes;
            self.hold(batch)?;
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
            writer.open_gap(instance, "imports", name, &format!("{container} lists it and lacks it"), now)?;
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
        self.capture(source, &Map::new(), capture, report)
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

/// Asks the sources about every member, and opens the zips that they want opened.
fn judge(container: &mut Container, desks: &mut [Desk], report: &mut ContainerReport) -> Vec<Plan> {
    let names: Vec<&str> = container.members.iter().map(|member| member.name.as_str()).collect();
    for desk in desks.iter_mut() {
        desk.intake.names(&names);
    }
    let mut plans = Vec::new();
    let mut at = 0;
    while at < container.members.len() {
        let entry = &container.members[at];
        let (name, size, modified, refused) = (entry.name.clone(), entry.size, entry.modified, entry.refused);
        let mut told = MemberReport {
            name: name.clone(),
            bytes: size,
            verdict: "unknown",
            source: None,
            what: String::new(),
            elements: 0,
            aside: 0,
        };
        if let Some(why) = refused {
            (told.verdict, told.what) = ("refused", why.to_owned());
            if why != "a file of the operating system" {
                report.problems.push(format!("{name}: {why}"));
            }
            report.members.push(told);
            at += 1;
            continue;
        }
        let closed = desks.iter().find_map(|desk| Some((desk, desk.intake.leaves_closed(&name)?)));
        if let Some((desk, why)) = closed {
            (told.verdict, told.what) = ("left_out", why.to_owned());
            told.source = Some(desk.source.manifest().source);
            report.members.push(told);
            at += 1;
            continue;
        }
        let head = container.head(at);
        if let Err(error) = &head {
            report.problems.push(format!("{name}: {error}"));
        }
        let member = Member { name: &name, size, modified, head: head.as_deref().unwrap_or_default() };
        let judged = desks.iter_mut().enumerate().find_map(|(number, desk)| {
            let judgement = desk.intake.judge(&member);
            (judgement != Judgement::Unknown).then_some((number, judgement))
        });
        let opens = match judged {
            Some((number, Judgement::Take(taking))) => {
                (told.verdict, told.what) = ("taken", taking.what.to_owned());
                told.source = Some(desks[number].source.manifest().source);
                plans.push(Plan { at, desk: number, taking });
                false
            }
            Some((number, Judgement::LeaveOut(why))) => {
                (told.verdict, told.what) = ("left_out", why.to_owned());
                told.source = Some(desks[number].source.manifest().source);
                false
            }
            Some((number, Judgement::Open)) => {
                told.source = Some(desks[number].source.manifest().source);
                true
            }
            // A folder of downloads.
            Some((_, Judgement::Unknown)) | None => container.kind == Kind::Folder && container.is_zip(at),
        };
        if opens {
            match container.look_into(at) {
                Ok(()) => (told.verdict, told.what) = ("opened", "a zip".to_owned()),
                Err(why) => {
                    report.problems.push(format!("{name}: {why}"));
                    (told.verdict, told.what) = ("refused", why);
                }
            }
        }
        report.members.push(told);
        at += 1;
    }
    plans
}

/// The first look at all elements of a member.
fn look(container: &mut Container, plan: &Plan, desk: &mut Desk, report: &mut ContainerReport) {
    let entry = &container.members[plan.at];
    let (name, size, modified) = (entry.name.clone(), entry.size, entry.modified);
    let member = Member { name: &name, size, modified, head: &[] };
    let read = container.read(plan.at, |input| {
        split(input, &plan.taking.shape, &mut |piece| -> io::Result<()> {
            if let Piece::Element(element) = piece {
                desk.intake.look(&member, element);
            }
            Ok(())
        })
    });
    // The second reading tells the same again, and more.
    if let Err(error) = read.and_then(|read| read) {
        report.problems.push(format!("{name}: {error}"));
    }
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

fn count(totals: &mut ImportTotals, added: Option<Added>) {
    match added {
        Some(Added::New) => totals.new += 1,
        Some(Added::Changed) => totals.changed += 1,
        None => totals.unchanged += 1,
    }
}

/// `part-2` comes before `part-10`.
fn by_number(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(letters);
        let digits = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(digits);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

/// The sources that read files which the owner has.
pub fn importing() -> impl Iterator<Item = &'static dyn Source> {
    registry().iter().copied().filter(|source| source.import().is_some())
}

#[cfg(test)]
mod tests {
    use super::by_number;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["c-10.json", "c-2.json", "c.json", "b-3.json"];
        names.sort_by_cached_key(|name| by_number(name));
        assert_eq!(names, ["b-3.json", "c-2.json", "c-10.json", "c.json"]);
    }
}
