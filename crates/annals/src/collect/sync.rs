//! One run: lists the homes, captures changes with two threads, commits in batches, marks deleted files.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::home::choice::Chosen;
use super::home::documents::{CapturedHome, HomeDocuments};
use super::home::plan::{Compared, Job, Plan, plan};
use super::home::repositories;
use super::home::walk::{Detail, HomeState, Rules, Survey, state_of, survey};
use super::import::drops::import_drops;
use super::ingest::capture::{CaptureOutcome, CaptureReport, Capturer};
use super::options::{Environment, Nobody, Progress, SourceReport, SyncOptions, Totals};
use super::run::{self, Run};
use annals_core::{
    Database, FailureKind, FileId, GapStream, InstanceId, LineStatus, Result, Scope, SourceStatus, Stream,
    Time,
};
use annals_sources::{Home, REPOSITORIES, Settings, Source};
use annals_store::{Batch, SURVEY, Store, Writer};

/// Raw bytes and batches between two commits.
const COMMIT_BYTES: u64 = 32 << 20;
const COMMIT_BATCHES: u32 = 2_000;

/// How often an opportunistic sync that finds nothing new records that it ran.
const IDLE_RECORD_INTERVAL: i64 = 60_000_000;

/// The cursor with the choice of projects that a home was captured with.
const CHOICE: &str = "choice";

/// The homes of a source and whether they can be read.
pub fn survey_homes(source: &'static dyn Source, settings: &dyn Settings) -> Vec<(Home, HomeState)> {
    let homes = source.homes(settings).into_iter().map(|home| (state_of(&home), home));
    let homes = homes.filter(|(state, home)| !(home.is_addition && *state == HomeState::Missing));
    homes.map(|(state, home)| (home, state)).collect()
}

/// Lists a home in detail without touching the archive.
pub fn survey_home(source: &'static dyn Source, home: &Home) -> Result<Survey> {
    survey(home, &Rules::of(source.manifest()), Detail::Weighed)
}

/// The caller holds the lock.
pub fn sync(
    options: &SyncOptions,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<SourceReport>> {
    let mut store = run::open(environment, options.sources.iter().copied())?;
    let mut reports = Vec::new();
    let mut visits = Vec::new();
    let mut jobs = VecDeque::new();
    for source in &options.sources {
        let mut report = SourceReport {
            source: *source,
            homes: Vec::new(),
            totals: Totals::default(),
            warnings: Vec::new(),
        };
        for (home, state) in survey_homes(*source, environment.settings) {
            let place = reports.len();
            visits.extend(visit(&store, options, environment, place, home, state, &mut report, &mut jobs)?);
        }
        reports.push(report);
    }
    if let Some(member) = &options.member {
        let instances: Vec<InstanceId> = visits.iter().map(|visit| visit.instance).collect();
        store.assign_homes(&instances, member)?;
    }
    let mut run = None;
    if !options.opportunistic || !jobs.is_empty() {
        run = Some(Run::start(&store, environment, "sync")?);
    }
    // What was written last is asked for first.
    jobs.make_contiguous().sort_by_key(|job: &Job| std::cmp::Reverse(job.found.stat.modified));
    let (files, bytes) = (jobs.len() as u64, jobs.iter().map(|job: &Job| job.found.size).sum());
    progress.begin(files, bytes);
    let places: BTreeMap<InstanceId, usize> =
        visits.iter().map(|visit| (visit.instance, visit.place)).collect();
    let scope = CaptureScope { places: &places, verifies: options.verify };
    capture_all(&mut store, environment, jobs, &scope, &mut reports, progress)?;
    progress.end();
    if options.repositories {
        let jobs = repository_jobs(&store, options, &mut visits, &mut reports)?;
        capture_all(&mut store, environment, jobs, &scope, &mut reports, &mut Nobody)?;
    }
    let mut changed = run.is_some();
    for report in reports.iter_mut().filter(|_| !options.gaps_only) {
        let (source, member) = (report.source, options.member.as_deref());
        changed |= import_drops(source, environment, member, report, &mut Nobody)?;
    }
    for visit in &visits {
        changed |= finish_visit(&mut store, options, environment, visit, &mut reports[visit.place])?;
    }
    let run = match run {
        Some(run) => run,
        None if changed => Run::start(&store, environment, "sync")?,
        None => return Ok(reports),
    };
    let summary: Vec<String> = reports.iter().map(|report| format!("{:?}", report.totals)).collect();
    run.finish(&mut store, &summary.join("\n"))?;
    Ok(reports)
}

/// Plans the capture of files in repositories. Their folders are known once transcripts are captured.
fn repository_jobs(
    store: &Store,
    options: &SyncOptions,
    visits: &mut [Visit],
    reports: &mut [SourceReport],
) -> Result<VecDeque<Job>> {
    let mut jobs = VecDeque::new();
    let names = store.forgotten_names()?;
    for visit in visits.iter_mut().filter(|visit| visit.state == HomeState::Available) {
        let rules = visit.source.manifest().footprint.repository_rules;
        let captured = store.captured_files_below(visit.instance, REPOSITORIES)?;
        let report = &mut reports[visit.place];
        let mut survey = Survey::default();
        let never = Rules::of(visit.source.manifest());
        let mut places = BTreeSet::new();
        for folder in store.scoped(Scope::Owner).session_folders(visit.instance)? {
            let path = Path::new(&folder);
            if !path.is_absolute() || path.parent().is_none() || !path.is_dir() {
                continue;
            }
            places.extend(repositories::folders_above(path));
        }
        for place in &places {
            let found = repositories::survey_folder(place, &visit.root, rules, &never);
            survey.found.extend(found.found);
            for link in found.outside {
                report.warnings.push(format!("{link}: link to outside of the repository not followed"));
            }
        }
        let surveyed: Vec<String> = places
            .iter()
            .map(|place| format!("{}{}/", REPOSITORIES, place.folder.to_string_lossy()))
            .collect();
        survey.found.sort_by(|a, b| a.path.cmp(&b.path));
        survey.found.dedup_by(|a, b| a.path == b.path);
        // Files of a repository that is not present now are not gone.
        let captured = captured
            .into_iter()
            .filter(|file| surveyed.iter().any(|root| file.path.starts_with(root.as_str())));
        report.totals.found_files += survey.found.len() as u64;
        report.totals.found_bytes += survey.found.iter().map(|found| found.size).sum::<u64>();
        let compared = Compared { captured: captured.collect(), names: names.clone() };
        let plan = plan(visit.instance, visit.source, &mut survey, compared, options.since, options.verify);
        report.totals.unchanged_files += plan.unchanged.0;
        report.totals.gone_files += plan.gone.len() as u64;
        let selection = FileSelection::of(store, options, visit.instance)?;
        visit.gone.extend(plan.gone.into_iter().filter(|_| !options.gaps_only));
        jobs.extend(selection.select(plan.jobs, &mut report.totals));
    }
    Ok(jobs)
}

/// Selects the files of a home that a run captures.
enum FileSelection {
    All,
    /// Files that could not be read, and everything in folders that could not.
    Gaps {
        files: HashSet<String>,
        folders: Vec<String>,
        databases: bool,
    },
}

impl FileSelection {
    fn of(store: &Store, options: &SyncOptions, instance: InstanceId) -> Result<FileSelection> {
        if let Some(damaged) = &options.damaged {
            let of_home = damaged.iter().filter(|(home, _)| *home == instance);
            let files: HashSet<String> = of_home.map(|(_, path)| path.clone()).collect();
            let databases = !files.is_empty();
            return Ok(FileSelection::Gaps { files, folders: Vec::new(), databases });
        }
        if !options.gaps_only {
            return Ok(FileSelection::All);
        }
        let mut files: HashSet<String> = store.open_gaps(instance, GapStream::Files)?.into_iter().collect();
        files.extend(store.open_gaps(instance, GapStream::Content)?);
        let folders = store.open_gaps(instance, GapStream::Folders)?;
        let databases = !store.open_gaps(instance, GapStream::Databases)?.is_empty();
        Ok(FileSelection::Gaps { files, folders, databases })
    }

    fn is_empty(&self) -> bool {
        match self {
            FileSelection::All => false,
            FileSelection::Gaps { files, folders, databases } => {
                files.is_empty() && folders.is_empty() && !databases
            }
        }
    }

    fn select(&self, jobs: Vec<Job>, totals: &mut Totals) -> Vec<Job> {
        let FileSelection::Gaps { files, folders, .. } = self else { return jobs };
        let found = jobs.len();
        let below = |path: &str, folder: &str| {
            folder == "." || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let is_selected =
            |path: &str| files.contains(path) || folders.iter().any(|folder| below(path, folder));
        let selected: Vec<Job> = jobs.into_iter().filter(|job| is_selected(&job.found.path)).collect();
        totals.put_off_files += (found - selected.len()) as u64;
        selected
    }
}

/// A home that is captured by this run.
struct Visit {
    place: usize,
    instance: InstanceId,
    source: &'static dyn Source,
    root: PathBuf,
    state: HomeState,
    survey: Survey,
    gone: Vec<FileId>,
    /// The choice of projects, if it changed and every file was compared with it.
    new_choice: Option<String>,
}

#[allow(clippy::too_many_arguments, reason = "the parts of one run, used once")]
fn visit(
    store: &Store,
    options: &SyncOptions,
    environment: &Environment<'_>,
    place: usize,
    home: Home,
    state: HomeState,
    report: &mut SourceReport,
    jobs: &mut VecDeque<Job>,
) -> Result<Option<Visit>> {
    let source = report.source;
    let manifest = source.manifest();
    let root = home.root.canonicalize().unwrap_or_else(|_| home.root.clone());
    let root_name = root.to_string_lossy().into_owned();
    let known = store.known_instance(manifest.source, &environment.machine, &root_name)?.is_some();
    if state != HomeState::Available && !known {
        report.homes.push((home.root, state));
        return Ok(None);
    }
    let instance = store.instance(manifest.source, &environment.machine, &root_name, (environment.now)())?;
    let selection = FileSelection::of(store, options, instance)?;
    if selection.is_empty() {
        report.homes.push((home.root, state));
        return Ok(None);
    }
    // A refresh measures nothing that it leaves out.
    let detail = if options.opportunistic { Detail::Names } else { Detail::Weighed };
    let mut survey = match &state {
        HomeState::Available => survey(&home, &Rules::of(manifest), detail)?,
        HomeState::Unreadable(why) => {
            Survey { unreadable: vec![(String::new(), why.clone())], ..Survey::default() }
        }
        HomeState::Missing | HomeState::Empty => Survey::default(),
    };
    let totals = &mut report.totals;
    totals.found_files += survey.found.len() as u64;
    totals.found_bytes += survey.found.iter().map(|found| found.size).sum::<u64>();
    totals.left_out_files += survey.left_out.iter().map(|left| left.files).sum::<u64>();
    totals.unaccounted_files += survey.unaccounted.len() as u64;
    totals.links_out += survey.outside.len() as u64;
    let has_databases = !survey.databases.is_empty() && manifest.databases.iter().any(Database::is_read);
    let has_groups = source.grouping().is_some() && !survey.found.is_empty();
    let transcripts =
        has_databases || has_groups || survey.found.iter().any(|found| found.rule.reader.is_some());
    let mut captured = store.captured_files(instance)?;
    // Repositories are surveyed later, once their folders are known.
    captured.retain(|file| !file.path.starts_with(REPOSITORIES));
    let nothing = !transcripts && captured.is_empty();
    let state = if state == HomeState::Available && nothing { HomeState::Empty } else { state };
    // Other projects may be excluded now, in files that did not change.
    let choice = Chosen::fingerprint(home.choice.as_ref());
    let new_choice = store.cursor(instance, CHOICE)?.unwrap_or_default() != choice;
    let verify = options.verify || new_choice;
    let compared = Compared { captured, names: store.forgotten_names()? };
    let Plan { jobs: new, unchanged, put_off, gone } =
        plan(instance, source, &mut survey, compared, options.since, verify);
    let complete = state == HomeState::Available && options.since.is_none() && !options.gaps_only;
    let new_choice = Some(choice).filter(|_| new_choice && complete);
    // Only a complete run marks files as gone.
    let gone = if options.gaps_only { Vec::new() } else { gone };
    totals.unchanged_files += unchanged.0;
    totals.put_off_files += put_off;
    totals.gone_files += gone.len() as u64;
    for pattern in &survey.unmatched {
        report.warnings.push(format!("no project matches the pattern {pattern} of the settings"));
    }
    for path in &survey.outside {
        report.warnings.push(format!("{path}: link to outside of the home not followed"));
    }
    jobs.extend(selection.select(new, totals));
    report.homes.push((home.root, state.clone()));
    Ok(Some(Visit { place, instance, source, root, state, survey, gone, new_choice }))
}

/// What the captures of a run have in common.
struct CaptureScope<'a> {
    /// The report of each home.
    places: &'a BTreeMap<InstanceId, usize>,
    verifies: bool,
}

fn capture_all(
    store: &mut Store,
    environment: &Environment<'_>,
    jobs: VecDeque<Job>,
    scope: &CaptureScope<'_>,
    reports: &mut [SourceReport],
    progress: &mut dyn Progress,
) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let threads = environment.threads.clamp(1, jobs.len());
    let forgotten = Arc::new(store.forgotten()?);
    let mut capturers = Vec::new();
    for _ in 0..threads {
        let store = Store::open(environment.data_dir)?;
        capturers.push(Capturer::new(store, scope.verifies, Arc::clone(&forgotten))?);
    }
    let jobs = Mutex::new(jobs);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<CaptureReport>(4);
    std::thread::scope(|threads| {
        for mut capturer in capturers {
            let (sender, jobs, stop) = (sender.clone(), &jobs, &stop);
            threads.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(job) = job else { break };
                    capturer.capture(&job, &mut |report| {
                        if sender.send(report).is_err() {
                            stop.store(true, Ordering::Relaxed);
                        }
                    });
                }
            });
        }
        drop(sender);
        let written = write_all(store, environment, &receiver, scope.places, reports, progress);
        stop.store(true, Ordering::Relaxed);
        // Threads that wait for space in the queue resume, see the mark and end.
        for _ in receiver {}
        written
    })
}

fn write_all(
    store: &mut Store,
    environment: &Environment<'_>,
    receiver: &Receiver<CaptureReport>,
    places: &BTreeMap<InstanceId, usize>,
    reports: &mut [SourceReport],
    progress: &mut dyn Progress,
) -> Result<()> {
    let now = (environment.now)();
    let mut writer = store.writer(now)?;
    let (mut bytes, mut batches) = (0, 0);
    let mut damaged = HashSet::new();
    for report in receiver {
        match report {
            CaptureReport::Batch(batch) => {
                let place = places.get(&batch.instance).copied();
                if let Some(report) = place.and_then(|place| reports.get_mut(place)) {
                    count(&mut report.totals, &batch);
                }
                let new_bytes = batch.new_bytes;
                progress.advance(0, new_bytes);
                bytes += new_bytes;
                batches += 1;
                writer.apply(*batch)?;
            }
            CaptureReport::Restat { file, path, stat } => writer.restat(file, &path, stat)?,
            CaptureReport::Gap { instance, stream, path, why, reason } => {
                writer.open_gap(instance, stream, &path, (why, &reason), now)?;
                let place = places.get(&instance).copied();
                if let Some(report) = place.and_then(|place| reports.get_mut(place)) {
                    report.warnings.push(format!("{path}: {reason}"));
                    report.totals.unreadable += u64::from(stream == GapStream::Files);
                }
                damaged.insert((instance, stream, path));
            }
            CaptureReport::Done { instance, path, bytes, outcome } => {
                progress.advance(1, bytes);
                let place = places.get(&instance).copied();
                if let Some(report) = place.and_then(|place| reports.get_mut(place)) {
                    match outcome {
                        CaptureOutcome::New => report.totals.new_files += 1,
                        CaptureOutcome::Changed => report.totals.changed_files += 1,
                        CaptureOutcome::Unchanged => report.totals.unchanged_files += 1,
                        CaptureOutcome::Healed => report.totals.healed_files += 1,
                        CaptureOutcome::Failed => report.totals.failed_files += 1,
                    }
                }
                let was_damaged = |stream| damaged.contains(&(instance, stream, path.clone()));
                if outcome != CaptureOutcome::Failed && !was_damaged(GapStream::Files) {
                    writer.close_gap(instance, GapStream::Files, &path, now)?;
                }
                // Unchanged content is still damaged.
                let has_new_content = outcome == CaptureOutcome::New || outcome == CaptureOutcome::Changed;
                if has_new_content && !was_damaged(GapStream::Content) {
                    writer.close_gap(instance, GapStream::Content, &path, now)?;
                }
            }
        }
        if bytes >= COMMIT_BYTES || batches >= COMMIT_BATCHES {
            writer.commit()?;
            writer = store.writer(now)?;
            (bytes, batches) = (0, 0);
        }
    }
    Ok(writer.commit()?)
}

fn count(totals: &mut Totals, batch: &Batch) {
    totals.captured_bytes += batch.new_bytes;
    for count in batch.rows.iter().flat_map(|rows| &rows.counts) {
        let sum = match count.status {
            LineStatus::Kept => &mut totals.kept_lines,
            LineStatus::Unknown => &mut totals.unknown_lines,
            LineStatus::Malformed => &mut totals.malformed_lines,
            LineStatus::Skipped => &mut totals.skipped_lines,
            LineStatus::Forgotten => &mut totals.forgotten_lines,
            LineStatus::Drift => continue,
        };
        *sum += count.lines;
    }
}

/// Writes databases, deleted files and the status of a home.
fn finish_visit(
    store: &mut Store,
    options: &SyncOptions,
    environment: &Environment<'_>,
    visit: &Visit,
    report: &mut SourceReport,
) -> Result<bool> {
    let now = (environment.now)();
    let scratch = environment.data_dir.join("scratch");
    let gaps = store.open_gaps(visit.instance, GapStream::Folders)?;
    let home = CapturedHome {
        instance: visit.instance,
        source: visit.source,
        databases: &visit.survey.databases,
        ending: &visit.gone,
        scratch: &scratch,
        verify: options.verify,
    };
    let documents = match home.has_documents() {
        true => {
            let archived = Store::open(environment.data_dir)?;
            let mut count_written = |batch: &Batch| count(&mut report.totals, batch);
            HomeDocuments::read(store, &archived, home, now, &mut count_written)?
        }
        false => HomeDocuments::default(),
    };
    let totals = &report.totals;
    let idle = totals.new_files + totals.changed_files + totals.failed_files == 0
        && documents.is_idle()
        && visit.gone.is_empty()
        && visit.new_choice.is_none()
        && visit.survey.unreadable.is_empty()
        && gaps.is_empty();
    let scanned = store.last_scanned(visit.instance)?.map_or(i64::MIN, Time::micros);
    if options.opportunistic && idle && now.micros().saturating_sub(scanned) < IDLE_RECORD_INTERVAL {
        return Ok(false);
    }
    let surveyed = match options.opportunistic || visit.state != HomeState::Available {
        true => None,
        false => Some(serde_json::to_string(&visit.survey.summary(visit.source.manifest()))?),
    };
    let mut writer = store.writer(now)?;
    if let Some(surveyed) = &surveyed {
        writer.set_cursor(visit.instance, SURVEY, surveyed)?;
    }
    if let Some(choice) = &visit.new_choice {
        writer.set_cursor(visit.instance, CHOICE, choice)?;
    }
    let totals = (&mut report.totals, &mut report.warnings);
    let mut gone = documents.write(&mut writer, visit.instance, now, totals, &mut count)?;
    gone.extend(&visit.gone);
    let walked = visit.state == HomeState::Available || visit.state == HomeState::Empty;
    for gap in gaps.iter().filter(|gap| walked && !visit.survey.hides(gap)) {
        writer.close_gap(visit.instance, GapStream::Folders, gap, now)?;
    }
    report.totals.unreadable += visit.survey.unreadable.len() as u64;
    for (path, why) in &visit.survey.unreadable {
        let path = if path.is_empty() { "." } else { path };
        writer.open_gap(visit.instance, GapStream::Folders, path, (FailureKind::Unreadable, why), now)?;
        report.warnings.push(format!("{path}: {why}"));
    }
    writer.mark_gone(&visit.gone, now)?;
    finish_sessions(&mut writer, visit, &gone, now)?;
    let names_projects = |stream: &&Stream| stream.fields.iter().any(|field| field.name == "project_path");
    let streams = visit.source.manifest().streams.iter().filter(names_projects);
    let streams: Vec<&str> = streams.map(|stream| stream.name).collect();
    if !streams.is_empty() && !idle {
        writer.mark_records_of_projects(visit.instance, &streams)?;
    }
    writer.commit()?;
    Ok(!idle)
}

fn finish_sessions(writer: &mut Writer<'_>, visit: &Visit, gone: &[FileId], now: Time) -> Result<()> {
    writer.resolve()?;
    writer.mark_sessions(visit.instance, gone, now)?;
    let (mut status, mut reason) = visit.state.status(true);
    if status == SourceStatus::Available {
        (status, reason) = match writer.has_sessions_or_transcripts(visit.instance)? {
            (true, _) => (status, reason),
            (false, true) => (SourceStatus::Unsupported, "no line of its transcripts can be read"),
            (false, false) => (SourceStatus::Empty, "no sessions in it"),
        };
    }
    Ok(writer.set_instance_status(visit.instance, status, reason, now)?)
}
