//! Live collection through the user's browser: gaps first, then new conversations. It can be stopped at any time and
//! resumes where it was.
//!
//! A conversation is done when its captures, the moment of its change and the end of its gap are committed together. A
//! list's cursor moves when everything above it is done or a gap.

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
use annals_core::{Error, FailureKind, Result, SourceStatus, Time};
use annals_sources::{Judged, Listed, Live, Source, Way};
use annals_store::{DueGap, Lease, Store};
use browser::BrowserSetup;
use pace::{Bucket, Pace};
use talk::{Stop, Talk};
use write::Keeper;

/// Gaps of things that are fetched one by one, by their ids.
pub const THINGS: &str = "conversations";
/// Gaps of lists that could not be walked to their end.
pub const LISTS: &str = "lists";
/// Gaps of documents.
pub const DOCUMENTS: &str = "documents";
/// Gaps of bytes that were asked for; also the stream of what is known about files.
pub const FILES: &str = "files";
/// The cursor that holds what was learnt.
pub const LEARNT: &str = "live";
/// Days after which lists are walked to their end again: what vanishes from a list while it is walked moves another
/// thing from one page to the one before.
const WALK_AGAIN: i64 = 7;
const LEASE: i64 = 24 * 60 * 60 * 1_000_000;

pub struct LiveOptions {
    pub source: &'static dyn Source,
    pub setup: BrowserSetup,
    pub pace: Pace,
    /// Only what could not be fetched before.
    pub gaps_only: bool,
    /// Also the bytes of files.
    pub with_files: bool,
    /// Lists to their end, also where everything was seen.
    pub full: bool,
    /// Goes on at the provider's pace when its measure is used up.
    pub waits: bool,
}

/// What became of a run.
#[derive(Debug, Default)]
pub struct LiveReport {
    pub source: &'static str,
    pub label: &'static str,
    /// Conversations that were fetched, and those of them that gaps were for.
    pub fetched: u64,
    pub recovered: u64,
    /// Listed, and known as they are.
    pub unchanged: u64,
    pub documents: u64,
    pub files: u64,
    pub new_gaps: u64,
    pub gaps_open: u64,
    pub captured_bytes: u64,
    pub requests: u64,
    /// Until all gaps are served, at the pace that was learnt.
    pub time_left: Duration,
    pub problems: Vec<String>,
    pub stop: Option<Stop>,
}

/// News for whoever watches.
#[derive(Debug, Clone, Copy)]
pub struct LiveNews {
    pub done: u64,
    pub wanted: u64,
    pub time_left: Duration,
}

/// Kept between runs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Learnt {
    pub bucket: Bucket,
    /// The day on which each daily document was had.
    pub days: BTreeMap<String, i64>,
    /// The day on which all lists were walked to their end.
    walked: Option<i64>,
    /// Whose account it is.
    owner: String,
}

/// A thing to fetch.
#[derive(Debug, Clone)]
pub struct FetchItem {
    pub id: String,
    /// When it was changed, as the list says.
    pub updated: Option<Time>,
    pub is_gap: bool,
}

impl FetchItem {
    /// The moment as cursors and gaps remember it. Lists and details write it with different precision.
    pub fn mark(&self) -> String {
        self.updated.map_or_else(String::new, |at| (at.micros() / 1_000).to_string())
    }
}

pub struct LiveRun<'r> {
    pub live: &'static dyn Live,
    pub talk: Talk,
    pub keeper: Keeper,
    pub learnt: Learnt,
    pub report: LiveReport,
    pub pace: Pace,
    pub now: fn() -> Time,
    pub waits: bool,
    /// Nothing more is asked singly: the provider's measure is used up.
    pub exhausted: bool,
    /// Whether several can be asked for at once.
    pub several: bool,
    pub way: Way,
    /// Pages of things that were refused in the middle, by their ids.
    pub started: HashMap<String, (Way, Vec<String>)>,
    pub tell: &'r mut dyn FnMut(LiveNews),
}

/// Where the profile of a source's browser is.
pub fn profile_of(home: &std::path::Path, source: &str) -> std::path::PathBuf {
    home.join("browser").join(source)
}

/// Opens a window for the owner to log in, once. The caller holds the lock.
pub fn connect(ask: &LiveOptions, environment: &Environment<'_>, patience: Duration) -> Result<Option<Stop>> {
    let (live, name) = (live_of(ask.source)?, ask.source.manifest());
    let origin = live.origin(environment.settings);
    let opened = Talk::open(live, name.label, &ask.setup, origin, ask.pace, environment.now);
    let logged_in = opened.and_then(|mut talk| {
        let waited = talk.wait_for_login(patience);
        // In an orderly way: the browser writes down what it needs to know the owner again.
        talk.close();
        waited
    });
    if let Err(stop) = logged_in {
        return Ok(Some(stop));
    }
    let mut store = Store::open(environment.home)?;
    let mut writer = store.writer((environment.now)())?;
    writer.connect(name.source)?;
    writer.commit()?;
    Ok(None)
}

/// The caller holds the lock.
pub fn collect_live(
    ask: &LiveOptions,
    environment: &Environment<'_>,
    tell: &mut dyn FnMut(LiveNews),
) -> Result<LiveReport> {
    let (live, manifest) = (live_of(ask.source)?, ask.source.manifest());
    let now = (environment.now)();
    let mut store = run::open(environment, [ask.source])?;
    let instance = instance_of(&store, ask.source, environment, None)?;
    let run = Run::start(&store, environment, "sync live")?;
    // The lock is held: whoever had gaps is dead.
    let mut writer = store.writer(now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, live.version(), now)?;
    writer.commit()?;
    let learnt = learnt(&store, instance)?;
    let origin = live.origin(environment.settings);
    let mut report = LiveReport { source: manifest.source, label: manifest.label, ..LiveReport::default() };
    let opened = Talk::open(live, manifest.label, &ask.setup, origin.clone(), ask.pace, environment.now);
    match opened {
        Err(stop) => report.stop = Some(stop),
        Ok(talk) => {
            let keeper = Keeper::new(environment, ask.source, instance, origin)?;
            let mut live_run = LiveRun {
                live,
                talk,
                keeper,
                learnt,
                report,
                pace: ask.pace,
                now: environment.now,
                waits: ask.waits,
                exhausted: false,
                several: true,
                way: Way::Tree,
                started: HashMap::new(),
                tell,
            };
            let ended = live_run.all(ask);
            live_run.finish(ended)?;
            report = live_run.report;
            live_run.talk.close();
        }
    }
    let mut writer = store.writer((environment.now)())?;
    writer.release_gaps(instance, None)?;
    writer.set_instance_status(instance, SourceStatus::Available, "", (environment.now)())?;
    writer.commit()?;
    report.gaps_open = store.open_gaps(instance, THINGS)?.len() as u64;
    let bucket = self::learnt(&store, instance)?.bucket;
    report.time_left = bucket.time_for(report.gaps_open, ask.pace, (environment.now)());
    let summary = format!("{} fetched, {} gaps open", report.fetched, report.gaps_open);
    run.finish(&mut store, &summary)?;
    Ok(report)
}

/// How many things are lacking, and how long they take at the pace that was learnt; nothing when none is.
pub fn time_left(
    source: &'static dyn Source,
    environment: &Environment<'_>,
    pace: Pace,
) -> Result<Option<(u64, Duration)>> {
    let store = Store::open(environment.home)?;
    let instance = instance_of(&store, source, environment, None)?;
    let open = store.open_gaps(instance, THINGS)?.len() as u64;
    let learnt = learnt(&store, instance)?;
    Ok((open > 0).then(|| (open, learnt.bucket.time_for(open, pace, (environment.now)()))))
}

/// Ends it: the profile goes, with the session in it, and what was learnt about the provider. Whose archive it is stays:
/// what another account does not list has not ended.
pub fn disconnect(source: &'static dyn Source, environment: &Environment<'_>) -> Result<()> {
    let name = source.manifest().source;
    let mut store = Store::open(environment.home)?;
    if store.is_connected(name)? {
        let instance = instance_of(&store, source, environment, None)?;
        let kept = Learnt { owner: learnt(&store, instance)?.owner, ..Learnt::default() };
        let mut writer = store.writer((environment.now)())?;
        writer.disconnect(name)?;
        writer.set_cursor(instance, LEARNT, &serde_json::to_string(&kept)?)?;
        writer.commit()?;
    }
    let profile = profile_of(environment.home, name);
    if profile.is_dir() {
        std::fs::remove_dir_all(&profile)?;
    }
    Ok(())
}

/// What earlier runs learnt about the provider.
fn learnt(store: &Store, instance: i64) -> Result<Learnt> {
    let kept = store.cursor(instance, LEARNT)?;
    Ok(kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn live_of(source: &'static dyn Source) -> Result<&'static dyn Live> {
    source.live().ok_or_else(|| {
        Error::new(format!("cannot connect {}: it is read from files", source.manifest().label))
    })
}

impl LiveRun<'_> {
    fn all(&mut self, ask: &LiveOptions) -> std::result::Result<(), Stop> {
        self.talk.begin()?;
        self.same_owner()?;
        let due = self.due()?;
        self.conversations(ask, &due)?;
        // Bytes that were asked for once and not had are gaps like others.
        if ask.with_files || due.iter().any(|gap| gap.stream == FILES) {
            self.files(ask.gaps_only || !ask.with_files, &due)?;
        }
        Ok(())
    }

    /// What is not in another's listing has not ended: two accounts do not go into one archive.
    fn same_owner(&mut self) -> std::result::Result<(), Stop> {
        let owner = self.talk.owner.as_str();
        if self.learnt.owner.is_empty() || owner.is_empty() || self.learnt.owner == owner {
            if !owner.is_empty() {
                self.learnt.owner = owner.to_owned();
            }
            return Ok(());
        }
        Err(self.talk.manual(
            "another account or workspace is open than before; log in as before, or give it an archive of its own \
             (ANNALS_HOME)",
        ))
    }

    fn conversations(&mut self, ask: &LiveOptions, due: &[DueGap]) -> std::result::Result<(), Stop> {
        let is_due = |stream: &str, key: &str| due.iter().any(|gap| gap.stream == stream && gap.key == key);
        let things = due.iter().filter(|gap| gap.stream == THINGS);
        let things = things.map(|gap| FetchItem {
            updated: gap.locator.parse().ok().map(Time::from_millis),
            id: gap.key.clone(),
            is_gap: true,
        });
        self.fetch(things.collect())?;
        self.keeper.commit(&self.learnt)?;
        let mut parts: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for listing in self.live.listings() {
            if ask.gaps_only && !is_due(DOCUMENTS, listing.name) {
                continue;
            }
            if let Some(ids) = self.listing(listing)? {
                parts.insert(listing.name, ids);
            }
        }
        let mut lists = self.live.lists(&|name| parts.get(name).cloned().unwrap_or_default());
        if ask.gaps_only {
            lists.clear();
        }
        for gap in due.iter().filter(|gap| gap.stream == LISTS) {
            // Also what is no longer named anywhere: its gap has to end.
            if !lists.contains(&gap.key) {
                lists.push(gap.key.clone());
            }
        }
        let mut ends = Vec::new();
        let mut wanted: HashMap<String, FetchItem> = HashMap::new();
        let (seen, lacking) = (self.keeper.seen()?, self.keeper.lacking(THINGS)?);
        let today = (self.now)().day();
        // A day that is yet to come was told by a clock that was wrong.
        let lately = |walked: i64| (0..WALK_AGAIN).contains(&(today - walked));
        let full = ask.full || self.learnt.walked.is_some_and(|walked| !lately(walked));
        for list in &lists {
            ends.extend(self.walk(list, full, &seen, &lacking, &mut wanted)?);
        }
        let all_walked = !ask.gaps_only && ends.len() == lists.len();
        if all_walked && (full || self.learnt.walked.is_none()) {
            self.learnt.walked = Some(today);
        }
        // The newest first, whichever list they are in.
        let mut wanted: Vec<FetchItem> = wanted.into_values().collect();
        wanted.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.id.cmp(&b.id)));
        let any = !wanted.is_empty();
        self.fetch(wanted)?;
        self.keeper.pass(&self.learnt, &ends)?;
        if self.exhausted || !any {
            return Ok(());
        }
        // What was said meanwhile has moved to the top.
        let (seen, lacking) = (self.keeper.seen()?, self.keeper.lacking(THINGS)?);
        let mut late = HashMap::new();
        for list in &lists {
            let page = self.page(list, None)?;
            let items = page.map(|page| page.items).unwrap_or_default();
            let items = items.into_iter().filter_map(|item| fresh(item, &seen, &lacking));
            late.extend(items.map(|thing| (thing.id.clone(), thing)));
        }
        self.fetch(late.into_values().collect())?;
        self.keeper.commit(&self.learnt)?;
        Ok(())
    }

    /// Gaps that may be tried now, as this run's own.
    fn due(&mut self) -> Result<Vec<DueGap>> {
        let now = (self.now)();
        let holder = format!("process {}", std::process::id());
        let lease = Lease { holder: &holder, until: Time::from_micros(now.micros() + LEASE) };
        self.keeper.claim(lease, now)
    }

    fn finish(&mut self, ended: std::result::Result<(), Stop>) -> Result<()> {
        self.keeper.commit(&self.learnt)?;
        self.report.requests = self.talk.asked;
        self.report.stop = ended.err();
        Ok(())
    }
}

/// A listed thing, unless it is known as it is, or known to be lacking as it is.
pub fn fresh(
    item: Listed,
    seen: &HashMap<String, String>,
    lacking: &HashMap<String, String>,
) -> Option<FetchItem> {
    let thing = FetchItem { id: item.id, updated: item.updated, is_gap: false };
    let mark = thing.mark();
    let known = [seen, lacking].iter().any(|known| known.get(&thing.id) == Some(&mark));
    (!known).then_some(thing)
}

pub fn why_of(judged: Judged) -> FailureKind {
    match judged {
        Judged::Refused | Judged::Challenge => FailureKind::RateLimited,
        Judged::Expired => FailureKind::SignIn,
        Judged::Forbidden => FailureKind::Forbidden,
        Judged::Missing => FailureKind::NotFound,
        Judged::Broken => FailureKind::Pressure,
        Judged::Late | Judged::Unreachable => FailureKind::Timeout,
        Judged::Good => FailureKind::Malformed,
    }
}
