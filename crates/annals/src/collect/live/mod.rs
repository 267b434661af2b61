//! Live collection through the user's browser: gaps first, then new conversations. It can be stopped at any time and
//! resumes where it was. A conversation is done when its captures, its modification time and the end of its gap are
//! committed together. The cursor of a list moves when everything above it is done or a gap.

pub(super) mod browser;
pub(super) mod devtools;
pub(super) mod fetch;
pub(super) mod lists;
pub(super) mod pace;
pub(super) mod talk;
pub(super) mod write;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::import::instance_of;
use super::options::Environment;
use super::run::{self, Run};
use annals_core::{Error, FailureKind, GapStream, InstanceId, Result, SourceStatus, Time};
use annals_sources::{Judged, Listed, Live, Source, Way};
use annals_store::{DueGap, Lease, Store};
use browser::BrowserSetup;
use pace::{Bucket, Pace};
use talk::{Stop, Talk};
use write::Keeper;

/// The stream of records about files.
const FILE_RECORDS: &str = "files";
/// The cursor that stores what runs learn about the provider.
pub const PROVIDER_STATE: &str = "live";
/// Days after which lists are walked to the end again: an item that vanishes during a walk moves another one to the
/// previous page.
const WALK_AGAIN: i64 = 7;
const LEASE: i64 = 24 * 60 * 60 * 1_000_000;

pub struct LiveOptions {
    pub source: &'static dyn Source,
    pub setup: BrowserSetup,
    pub pace: Pace,
    /// Only retry gaps.
    pub gaps_only: bool,
    /// Also fetch attached files.
    pub with_files: bool,
    /// Walk lists to the end, even if everything was seen.
    pub full: bool,
    /// Keep going at the provider's pace once the rate limit is reached.
    pub waits: bool,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct LiveReport {
    pub source: &'static str,
    pub label: &'static str,
    /// Conversations fetched, and how many of them were gaps.
    pub fetched: u64,
    pub recovered: u64,
    /// Listed, and unchanged.
    pub unchanged: u64,
    pub documents: u64,
    pub files: u64,
    pub new_gaps: u64,
    pub gaps_open: u64,
    pub captured_bytes: u64,
    pub requests: u64,
    /// Estimated time until all gaps are fetched, at the learned pace.
    pub time_left: Duration,
    pub warnings: Vec<String>,
    pub stop: Option<Stop>,
}

/// Progress, for display.
#[derive(Debug, Clone, Copy)]
pub struct LiveProgress {
    pub done: u64,
    pub total: u64,
    pub time_left: Duration,
}

/// What runs learn about the provider, kept between runs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderState {
    pub bucket: Bucket,
    /// The day on which each daily document was last fetched.
    pub days: BTreeMap<String, i64>,
    /// The day on which each document was last found to be missing in this account.
    pub absent: BTreeMap<String, i64>,
    /// The day on which each document last failed.
    pub failed: BTreeMap<String, i64>,
    /// The day on which all lists were last walked to the end.
    walked: Option<i64>,
    /// The account.
    owner: String,
}

/// A conversation to fetch.
#[derive(Debug, Clone)]
pub struct FetchItem {
    pub id: String,
    /// When it was modified, according to the list.
    pub updated: Option<Time>,
    pub is_gap: bool,
}

impl FetchItem {
    /// The modification time as stored in cursors and gaps. Lists and details have different precision.
    pub fn mark(&self) -> String {
        self.updated.map_or_else(String::new, |at| (at.micros() / 1_000).to_string())
    }
}

pub struct LiveRun<'r> {
    pub live: &'static dyn Live,
    pub talk: Talk,
    pub keeper: Keeper,
    pub state: ProviderState,
    pub report: LiveReport,
    pub pace: Pace,
    pub now: fn() -> Time,
    pub waits: bool,
    /// No more single requests: the rate limit was reached.
    pub exhausted: bool,
    /// Whether conversations can be requested in batches.
    pub several: bool,
    pub way: Way,
    /// How often the page size of each list was halved, because the provider refused larger pages.
    pub halvings: HashMap<String, u32>,
    /// Pages of conversations that were refused halfway, by id.
    pub started: HashMap<String, (Way, Vec<String>)>,
    pub progress: &'r mut dyn FnMut(LiveProgress),
}

/// Path of the browser profile of a source.
pub fn profile_of(data_dir: &std::path::Path, source: &str) -> std::path::PathBuf {
    data_dir.join("browser").join(source)
}

/// Opens a window for the user to log in once. The caller holds the lock.
pub fn connect(
    options: &LiveOptions,
    environment: &Environment<'_>,
    patience: Duration,
) -> Result<Option<Stop>> {
    let (live, name) = (live_of(options.source)?, options.source.manifest());
    let origin = live.origin(environment.settings);
    let opened = Talk::open(live, name.label, &options.setup, origin, options.pace, environment.now);
    let logged_in = opened.and_then(|mut talk| {
        let waited = talk.wait_for_login(patience);
        // Close cleanly: the browser saves what it needs to recognise the user.
        talk.close();
        waited
    });
    if let Err(stop) = logged_in {
        return Ok(Some(stop));
    }
    let mut store = Store::open(environment.data_dir)?;
    let mut writer = store.writer((environment.now)())?;
    writer.connect(name.source)?;
    writer.commit()?;
    Ok(None)
}

/// The caller holds the lock.
pub fn collect_live(
    options: &LiveOptions,
    environment: &Environment<'_>,
    progress: &mut dyn FnMut(LiveProgress),
) -> Result<LiveReport> {
    let (live, manifest) = (live_of(options.source)?, options.source.manifest());
    let now = (environment.now)();
    let mut store = run::open(environment, [options.source])?;
    let instance = instance_of(&store, options.source, environment, None)?;
    let run = Run::start(&store, environment, "sync live")?;
    // We hold the lock, so whoever leased gaps is dead.
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, live.version(), now)?;
    writer.commit()?;
    let state = load_state(&store, instance)?;
    let origin = live.origin(environment.settings);
    let mut report = LiveReport { source: manifest.source, label: manifest.label, ..LiveReport::default() };
    let opened =
        Talk::open(live, manifest.label, &options.setup, origin.clone(), options.pace, environment.now);
    match opened {
        Err(stop) => report.stop = Some(stop),
        Ok(talk) => {
            let keeper = Keeper::new(environment, options.source, instance, origin)?;
            let mut live_run = LiveRun {
                live,
                talk,
                keeper,
                state,
                report,
                pace: options.pace,
                now: environment.now,
                waits: options.waits,
                exhausted: false,
                several: true,
                way: Way::Tree,
                halvings: HashMap::new(),
                started: HashMap::new(),
                progress,
            };
            let ended = live_run.run(options);
            live_run.finish(ended)?;
            report = live_run.report;
            live_run.talk.close();
        }
    }
    let mut writer = store.writer((environment.now)())?;
    writer.release_gaps(instance, None)?;
    writer.set_instance_status(instance, SourceStatus::Available, "", (environment.now)())?;
    writer.commit()?;
    report.gaps_open = store.open_gaps(instance, GapStream::Conversations)?.len() as u64;
    let bucket = load_state(&store, instance)?.bucket;
    report.time_left = bucket.time_for(report.gaps_open, options.pace, (environment.now)());
    let summary = format!("{} fetched, {} gaps open", report.fetched, report.gaps_open);
    run.finish(&mut store, &summary)?;
    Ok(report)
}

/// Number of missing conversations, and how long they take at the learned pace; None if nothing is missing.
pub fn time_left(
    source: &'static dyn Source,
    environment: &Environment<'_>,
    pace: Pace,
) -> Result<Option<(u64, Duration)>> {
    let store = Store::open(environment.data_dir)?;
    let instance = instance_of(&store, source, environment, None)?;
    let open = store.open_gaps(instance, GapStream::Conversations)?.len() as u64;
    let state = load_state(&store, instance)?;
    Ok((open > 0).then(|| (open, state.bucket.time_for(open, pace, (environment.now)()))))
}

/// Disconnects: deletes the profile with its session, and what was learned about the provider. The account stays
/// known: what another account does not list was not deleted.
pub fn disconnect(source: &'static dyn Source, environment: &Environment<'_>) -> Result<()> {
    let name = source.manifest().source;
    let mut store = Store::open(environment.data_dir)?;
    if store.is_connected(name)? {
        let instance = instance_of(&store, source, environment, None)?;
        let kept = ProviderState { owner: load_state(&store, instance)?.owner, ..ProviderState::default() };
        let mut writer = store.writer((environment.now)())?;
        writer.disconnect(name)?;
        writer.set_cursor(instance, PROVIDER_STATE, &serde_json::to_string(&kept)?)?;
        writer.commit()?;
    }
    let profile = profile_of(environment.data_dir, name);
    if profile.is_dir() {
        std::fs::remove_dir_all(&profile)?;
    }
    Ok(())
}

/// Loads what earlier runs learned about the provider.
fn load_state(store: &Store, instance: InstanceId) -> Result<ProviderState> {
    let kept = store.cursor(instance, PROVIDER_STATE)?;
    Ok(kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn live_of(source: &'static dyn Source) -> Result<&'static dyn Live> {
    source.live().ok_or_else(|| {
        Error::new(format!("cannot connect {}: it is read from files", source.manifest().label))
    })
}

impl LiveRun<'_> {
    fn run(&mut self, options: &LiveOptions) -> std::result::Result<(), Stop> {
        self.talk.check_session()?;
        self.check_owner()?;
        let due = self.claim_due_gaps()?;
        self.fetch_conversations(options, &due)?;
        self.retry_beside(&due)?;
        if !options.gaps_only {
            self.fetch_file_facts()?;
        }
        // Files that were requested and not fetched are gaps like any other.
        if options.with_files || due.iter().any(|gap| GapStream::Files.is(&gap.stream)) {
            self.fetch_files(options.gaps_only || !options.with_files, &due)?;
        }
        Ok(())
    }

    /// Refuses another account: what it does not list would look deleted.
    fn check_owner(&mut self) -> std::result::Result<(), Stop> {
        let owner = self.talk.owner.as_str();
        if self.state.owner.is_empty() || owner.is_empty() || self.state.owner == owner {
            if !owner.is_empty() {
                self.state.owner = owner.to_owned();
            }
            return Ok(());
        }
        Err(self.talk.manual_stop(
            "a different account or workspace is open; log in as before, or use a separate archive (ANNALS_HOME)",
        ))
    }

    fn fetch_conversations(
        &mut self,
        options: &LiveOptions,
        due: &[DueGap],
    ) -> std::result::Result<(), Stop> {
        let is_due =
            |stream: GapStream<'_>, key: &str| due.iter().any(|gap| stream.is(&gap.stream) && gap.key == key);
        let conversations = due.iter().filter(|gap| GapStream::Conversations.is(&gap.stream));
        let conversations = conversations.map(|gap| FetchItem {
            updated: gap.locator.parse().ok().map(Time::from_millis),
            id: gap.key.clone(),
            is_gap: true,
        });
        self.fetch(conversations.collect())?;
        self.keeper.commit(&self.state)?;
        let mut parts: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for listing in self.live.listings() {
            if options.gaps_only && !is_due(GapStream::Documents, listing.name) {
                continue;
            }
            if let Some(ids) = self.listing(listing, is_due(GapStream::Documents, listing.name))? {
                parts.insert(listing.name, ids);
            }
        }
        let mut lists = self.live.lists(&|name| parts.get(name).cloned().unwrap_or_default());
        if options.gaps_only {
            lists.clear();
        }
        for gap in due.iter().filter(|gap| GapStream::Lists.is(&gap.stream)) {
            // Including lists that no longer exist: their gaps have to end.
            if !lists.contains(&gap.key) {
                lists.push(gap.key.clone());
            }
        }
        let mut ends = Vec::new();
        let mut wanted: HashMap<String, FetchItem> = HashMap::new();
        let (seen, missing) = (self.keeper.seen()?, self.keeper.missing(GapStream::Conversations)?);
        let today = (self.now)().day();
        // A day in the future was written by a wrong clock.
        let lately = |walked: i64| (0..WALK_AGAIN).contains(&(today - walked));
        let full = options.full || self.state.walked.is_some_and(|walked| !lately(walked));
        for list in &lists {
            ends.extend(self.walk(list, full, &seen, &missing, &mut wanted)?);
        }
        let all_walked = !options.gaps_only && ends.len() == lists.len();
        if all_walked && (full || self.state.walked.is_none()) {
            self.state.walked = Some(today);
        }
        // Newest first, whichever list they are in.
        let mut wanted: Vec<FetchItem> = wanted.into_values().collect();
        wanted.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.id.cmp(&b.id)));
        let any = !wanted.is_empty();
        self.fetch(wanted)?;
        self.keeper.pass(&self.state, &ends)?;
        if self.exhausted || !any {
            return Ok(());
        }
        // Conversations that changed in the meantime have moved to the top.
        let (seen, missing) = (self.keeper.seen()?, self.keeper.missing(GapStream::Conversations)?);
        let mut late = HashMap::new();
        for list in &lists {
            let page = self.page(list, None)?;
            let items = page.map(|page| page.items).unwrap_or_default();
            let items = items.into_iter().filter_map(|item| to_fetch(item, &seen, &missing));
            late.extend(items.map(|conversation| (conversation.id.clone(), conversation)));
        }
        self.fetch(late.into_values().collect())?;
        self.keeper.commit(&self.state)?;
        Ok(())
    }

    /// Claims the gaps that may be retried now for this run.
    fn claim_due_gaps(&mut self) -> Result<Vec<DueGap>> {
        let now = (self.now)();
        let holder = format!("process {}", std::process::id());
        let lease = Lease { holder: &holder, until: Time::from_micros(now.micros() + LEASE) };
        self.keeper.claim(lease, now)
    }

    fn finish(&mut self, ended: std::result::Result<(), Stop>) -> Result<()> {
        self.keeper.commit(&self.state)?;
        self.report.requests = self.talk.request_count;
        self.report.stop = ended.err();
        Ok(())
    }
}

/// A listed conversation, unless it is archived or known to be missing in this state.
pub fn to_fetch(
    item: Listed,
    seen: &HashMap<String, String>,
    missing: &HashMap<String, String>,
) -> Option<FetchItem> {
    let conversation = FetchItem { id: item.id, updated: item.updated, is_gap: false };
    let mark = conversation.mark();
    let known = [seen, missing].iter().any(|known| known.get(&conversation.id) == Some(&mark));
    (!known).then_some(conversation)
}

pub fn failure_kind(judged: Judged) -> FailureKind {
    match judged {
        Judged::Refused | Judged::Challenge => FailureKind::RateLimited,
        Judged::Expired => FailureKind::SignIn,
        Judged::Forbidden => FailureKind::Forbidden,
        Judged::Missing => FailureKind::NotFound,
        Judged::TooLarge => FailureKind::ShapeChanged,
        Judged::Broken => FailureKind::Pressure,
        Judged::Late | Judged::Unreachable => FailureKind::Timeout,
        Judged::Good => FailureKind::Malformed,
    }
}
