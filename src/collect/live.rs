//! Live collection: what the owner's browser may ask of a provider, gaps first, then what is new; all of it can be
//! stopped at any moment and goes on where it was.
//!
//! A conversation is done when its captures, the moment of its change and the end of its gap are committed together. A
//! list's cursor moves when everything above it is done or a gap.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::browser::BrowserSetup;
use super::import::instance_of;
use super::live_pace::{Bucket, Pace};
use super::live_talk::{Retry, Stop, Talk};
use super::live_write::Keeper;
use super::sync::Environment;
use crate::model::{Problem, Result, Scope, Time, Why};
use crate::sources::{Judged, Listed, Listing, Live, Page, Source, Way};
use crate::store::{DueGap, Lease, Store};

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
/// Pages of one list; more would be one that never ends.
const MOST_PAGES: usize = 5_000;
const LEASE: i64 = 24 * 60 * 60 * 1_000_000;

pub struct LiveAsk {
    pub source: &'static dyn Source,
    pub setup: BrowserSetup,
    pub pace: Pace,
    /// Only what could not be had before.
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
pub struct Wanted {
    pub id: String,
    /// When it was changed, as the list says.
    pub updated: Option<Time>,
    pub is_gap: bool,
}

impl Wanted {
    /// The moment as cursors and gaps remember it. Lists and details write it with different precision.
    pub fn mark(&self) -> String {
        self.updated.map_or_else(String::new, |at| (at.micros() / 1_000).to_string())
    }
}

pub struct Run<'r> {
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
    pub begun: HashMap<String, (Way, Vec<String>)>,
    pub tell: &'r mut dyn FnMut(LiveNews),
}

/// Where the profile of a source's browser is.
pub fn profile_of(home: &std::path::Path, source: &str) -> std::path::PathBuf {
    home.join("browser").join(source)
}

/// Opens a window for the owner to log in, once. The caller holds the lock.
pub fn connect(
    ask: &LiveAsk,
    environment: &Environment<'_>,
    scope: &Scope,
    patience: Duration,
) -> Result<Option<Stop>> {
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
    let mut writer = store.writer(scope, (environment.now)())?;
    writer.connect(name.source)?;
    writer.commit()?;
    Ok(None)
}

/// The caller holds the lock.
pub fn collect_live(
    ask: &LiveAsk,
    environment: &Environment<'_>,
    scope: &Scope,
    tell: &mut dyn FnMut(LiveNews),
) -> Result<LiveReport> {
    let (live, manifest) = (live_of(ask.source)?, ask.source.manifest());
    let now = (environment.now)();
    let mut store = Store::open(environment.home)?;
    if store.needs_rebuild(scope, manifest.source, manifest.reader_version)? {
        super::rebuild(environment.home, scope, now, &mut |_| {})?;
    }
    let instance = instance_of(&store, scope, ask.source, environment, None)?;
    let run = store.start_run(scope, "sync live", now)?;
    // The lock is held: whoever had gaps is dead.
    let mut writer = store.writer(scope, now)?;
    writer.release_gaps(instance, None)?;
    writer.reopen_gaps(instance, live.version(), now)?;
    writer.commit()?;
    let learnt = learnt(&store, scope, instance)?;
    let origin = live.origin(environment.settings);
    let mut report = LiveReport { source: manifest.source, label: manifest.label, ..LiveReport::default() };
    let opened = Talk::open(live, manifest.label, &ask.setup, origin.clone(), ask.pace, environment.now);
    match opened {
        Err(stop) => report.stop = Some(stop),
        Ok(talk) => {
            let keeper = Keeper::new(environment, scope, ask.source, instance, origin)?;
            let mut run = Run {
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
                begun: HashMap::new(),
                tell,
            };
            let ended = run.all(ask);
            run.finish(ended)?;
            report = run.report;
            run.talk.close();
        }
    }
    let mut writer = store.writer(scope, (environment.now)())?;
    writer.release_gaps(instance, None)?;
    writer.set_instance_status(instance, "available", "", (environment.now)())?;
    writer.commit()?;
    report.gaps_open = store.open_gaps(scope, instance, THINGS)?.len() as u64;
    let bucket = self::learnt(&store, scope, instance)?.bucket;
    report.time_left = bucket.time_for(report.gaps_open, ask.pace, (environment.now)());
    let summary = format!("{} fetched, {} gaps open", report.fetched, report.gaps_open);
    store.finish_run(scope, run, &summary, (environment.now)())?;
    store.checkpoint()?;
    Ok(report)
}

/// How many things are lacking, and how long they take at the pace that was learnt; nothing when none is.
pub fn time_left(
    source: &'static dyn Source,
    environment: &Environment<'_>,
    scope: &Scope,
    pace: Pace,
) -> Result<Option<(u64, Duration)>> {
    let store = Store::open(environment.home)?;
    let instance = instance_of(&store, scope, source, environment, None)?;
    let open = store.open_gaps(scope, instance, THINGS)?.len() as u64;
    let learnt = learnt(&store, scope, instance)?;
    Ok((open > 0).then(|| (open, learnt.bucket.time_for(open, pace, (environment.now)()))))
}

/// Ends it: the profile goes, with the session in it, and what was learnt about the provider. Whose archive it is stays:
/// what another account does not list has not ended.
pub fn disconnect(source: &'static dyn Source, environment: &Environment<'_>, scope: &Scope) -> Result<()> {
    let name = source.manifest().source;
    let mut store = Store::open(environment.home)?;
    if store.is_connected(scope, name)? {
        let instance = instance_of(&store, scope, source, environment, None)?;
        let kept = Learnt { owner: learnt(&store, scope, instance)?.owner, ..Learnt::default() };
        let mut writer = store.writer(scope, (environment.now)())?;
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
fn learnt(store: &Store, scope: &Scope, instance: i64) -> Result<Learnt> {
    let kept = store.cursor(scope, instance, LEARNT)?;
    Ok(kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn live_of(source: &'static dyn Source) -> Result<&'static dyn Live> {
    source.live().ok_or_else(|| {
        Problem::new(format!("{} is read from files, not from a browser", source.manifest().label))
    })
}

impl Run<'_> {
    fn all(&mut self, ask: &LiveAsk) -> std::result::Result<(), Stop> {
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

    fn conversations(&mut self, ask: &LiveAsk, due: &[DueGap]) -> std::result::Result<(), Stop> {
        let is_due = |stream: &str, key: &str| due.iter().any(|gap| gap.stream == stream && gap.key == key);
        let things = due.iter().filter(|gap| gap.stream == THINGS);
        let things = things.map(|gap| Wanted {
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
        let mut wanted: HashMap<String, Wanted> = HashMap::new();
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
        let mut wanted: Vec<Wanted> = wanted.into_values().collect();
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

    fn known_today(&self, listing: &Listing) -> bool {
        listing.daily && self.learnt.days.get(listing.name) == Some(&(self.now)().day())
    }

    /// A document with all its pages, or none of it: what is not whole says nothing about what has ended.
    fn listing(&mut self, listing: &Listing) -> std::result::Result<Option<Vec<String>>, Stop> {
        if self.known_today(listing) {
            return Ok(None);
        }
        let mut way = 0;
        let (mut pages, mut ids): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut place: Option<String> = None;
        while let Some(request) = self.live.listing_request(listing, way, place.as_deref()) {
            let Some((judged, answer)) = self.talk.ask(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => {}
                Judged::Missing if pages.is_empty() => {
                    way += 1;
                    continue;
                }
                Judged::Challenge => return Err(self.talk.challenged()),
                other => return self.no_document(listing, other, "no answer"),
            }
            let Some(page) = self.live.listing_page(listing, place.as_deref(), &answer.body) else {
                return self.no_document(listing, Judged::Broken, "not what it should look like");
            };
            let (before, is_empty) = (ids.len(), page.items.is_empty());
            ids.extend(page.items.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
            let news = ids.len() > before;
            pages.push(answer.body);
            match page.next {
                Some(next) if news && pages.len() < MOST_PAGES => place = Some(next),
                // Paging was seen to go in circles: then what it does not name may be there all the same.
                Some(_) if !is_empty && self.keeper.would_end(listing, &ids)? => {
                    return self.no_document(listing, Judged::Broken, "its pages go in circles");
                }
                Some(_) | None => break,
            }
        }
        if pages.is_empty() {
            // This account has no such thing, and lacks nothing of it.
            self.keeper.close(DOCUMENTS, listing.name)?;
            return Ok(Some(Vec::new()));
        }
        let mut details = Vec::new();
        for id in &ids {
            let Some(request) = self.live.listing_detail(listing, id) else { break };
            let Some((judged, answer)) = self.talk.ask(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => details.push(answer.body),
                // The list says enough of what nobody may see more of.
                Judged::Missing | Judged::Forbidden => {}
                Judged::Challenge => return Err(self.talk.challenged()),
                other => return self.no_document(listing, other, "no answer"),
            }
        }
        self.report.captured_bytes += self.keeper.document(listing, &pages, &details)?;
        self.report.documents += 1;
        self.learnt.days.insert(listing.name.to_owned(), (self.now)().day());
        Ok(Some(ids))
    }

    fn no_document(
        &mut self,
        listing: &Listing,
        judged: Judged,
        what: &str,
    ) -> std::result::Result<Option<Vec<String>>, Stop> {
        self.report.problems.push(format!("{}: {what}; the archive keeps what it has", listing.name));
        self.keeper.fail(DOCUMENTS, listing.name, "", (why_of(judged), what), (self.now)())?;
        Ok(None)
    }

    /// Walks a list down to what was seen before; answers where its cursor may move once all of it is done.
    fn walk(
        &mut self,
        list: &str,
        full: bool,
        seen: &HashMap<String, String>,
        lacking: &HashMap<String, String>,
        wanted: &mut HashMap<String, Wanted>,
    ) -> std::result::Result<Option<(String, String)>, Stop> {
        // A moment that is yet to come would hide all that is new until then.
        let now = (self.now)();
        let has_been = |at: &Time| *at <= now;
        let cursor = if full { None } else { self.keeper.list_cursor(list)?.filter(has_been) };
        let (mut place, mut newest): (Option<String>, Option<Time>) = (None, cursor);
        let mut met = HashSet::new();
        for _ in 0..MOST_PAGES {
            let Some(page) = self.page(list, place.as_deref())? else { return Ok(None) };
            let (mut news, mut reached, is_empty) = (false, false, page.items.is_empty());
            for item in page.items {
                newest = newest.max(item.updated.filter(has_been));
                // Several may have changed at the same moment: that moment is looked at again. What is pinned stands
                // above what is newer: only the last says how far down the page goes.
                if item.updated.is_some() {
                    reached = item.updated < cursor;
                }
                if !met.insert(item.id.clone()) {
                    continue;
                }
                news = true;
                match fresh(item, seen, lacking) {
                    Some(thing) => drop(wanted.insert(thing.id.clone(), thing)),
                    None => self.report.unchanged += 1,
                }
            }
            match page.next {
                Some(next) if news && !reached => place = Some(next),
                Some(_) if !news && !is_empty => {
                    self.breaks_off(list, Why::Pressure, "its pages go in circles")?;
                    return Ok(None);
                }
                Some(_) | None => {
                    let mark = newest.map_or_else(String::new, |at| at.micros().to_string());
                    return Ok(Some((list.to_owned(), mark)));
                }
            }
        }
        self.breaks_off(list, Why::Failed, "too long to be walked to its end")?;
        Ok(None)
    }

    fn breaks_off(&mut self, list: &str, why: Why, what: &str) -> Result<()> {
        self.report.problems.push(format!("the list {list:?} could not be read to its end: {what}"));
        self.keeper.fail(LISTS, list, "", (why, what), (self.now)())
    }

    fn page(&mut self, list: &str, place: Option<&str>) -> std::result::Result<Option<Page<Listed>>, Stop> {
        let request = self.live.list_request(list, place);
        let answer = self.talk.ask(&[request], Retry::Patiently)?.pop();
        let (judged, page) = match answer {
            Some((Judged::Good, answer)) => (Judged::Broken, self.live.list_page(list, place, &answer.body)),
            Some((Judged::Challenge, _)) => return Err(self.talk.challenged()),
            Some((judged, _)) => (judged, None),
            None => (Judged::Late, None),
        };
        if page.is_none() {
            self.breaks_off(list, why_of(judged), "it ends early")?;
        }
        Ok(page)
    }

    fn finish(&mut self, ended: std::result::Result<(), Stop>) -> Result<()> {
        self.keeper.commit(&self.learnt)?;
        self.report.requests = self.talk.asked;
        self.report.stop = ended.err();
        Ok(())
    }
}

/// A listed thing, unless it is known as it is, or known to be lacking as it is.
fn fresh(item: Listed, seen: &HashMap<String, String>, lacking: &HashMap<String, String>) -> Option<Wanted> {
    let thing = Wanted { id: item.id, updated: item.updated, is_gap: false };
    let mark = thing.mark();
    let known = [seen, lacking].iter().any(|known| known.get(&thing.id) == Some(&mark));
    (!known).then_some(thing)
}

pub fn why_of(judged: Judged) -> Why {
    match judged {
        Judged::Refused | Judged::Challenge => Why::RateLimited,
        Judged::Expired => Why::SignIn,
        Judged::Forbidden => Why::Forbidden,
        Judged::Missing => Why::NotFound,
        Judged::Broken => Why::Pressure,
        Judged::Late | Judged::Unreachable => Why::Timeout,
        Judged::Good => Why::Malformed,
    }
}
