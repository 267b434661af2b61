//! Keeps the archive current while it is served: a cheap refresh on request, nothing while idle.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::{Mutex, Notify};

use super::events::{Events, Work};
use super::{GRACE, Stop};
use crate::view::DiskState;
use annals_core::{Result, Time};
use annals_store::CaptureFailure;

/// Captures new data and reports the state of the homes. Provided by the caller of the server.
pub type Refresh = Arc<dyn Fn(&dyn Fn(Work)) -> Refreshed + Send + Sync>;

/// The result of a refresh.
pub struct Refreshed {
    pub disk: Vec<DiskState>,
    /// Something was new: such a refresh takes longer than the next one.
    pub news: bool,
    pub outcome: RefreshOutcome,
}

/// How a refresh ended.
pub enum RefreshOutcome {
    /// Everything that can be read is in the archive.
    Captured { unreadable: Option<UnreadableFiles> },
    /// Another process is capturing.
    Waiting(String),
    /// Nothing could be captured.
    Failed(CaptureFailure),
}

/// Files of clients that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFiles {
    pub since: String,
    /// For the log.
    pub what: String,
}

/// What keeps new data out of the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    pub failure: Option<CaptureFailure>,
    pub unreadable: Option<UnreadableFiles>,
    /// Who is writing to the archive, if it is another process.
    pub waiting: Option<String>,
}

impl Trouble {
    /// Since when something is not captured.
    pub(super) fn since(&self) -> Option<String> {
        let failing = self.failure.as_ref().map(|failure| failure.since.rfc3339());
        failing.into_iter().chain(self.unreadable.as_ref().map(|files| files.since.clone())).min()
    }
}

/// How long a request waits for a refresh.
const PATIENCE: Duration = Duration::from_secs(2);
/// A refresh with more to read takes longer than that, and nobody waits for it.
const LONG: u64 = 64 << 20;
/// A refresh this short runs before every request; a longer one only after a change.
const CHEAP: Duration = Duration::from_millis(15);
/// A longer refresh is followed by a pause of this many times its length, so that at most a ninth of the time is
/// spent refreshing.
const PAUSE: u32 = 8;
/// Changes within this time are refreshed together.
const GATHER: Duration = Duration::from_millis(500);
/// Time between refreshes without requests, so that nothing is deleted before it is captured.
const SELDOM: Duration = Duration::from_secs(600);

pub(super) struct Freshness {
    refresh: Option<Refresh>,
    last: Arc<Mutex<Option<LastRefresh>>>,
    disk: Arc<RwLock<Vec<DiskState>>>,
    /// A refresh has ended.
    ran: Arc<AtomicBool>,
    trouble: Arc<RwLock<Trouble>>,
    now: fn() -> Time,
    /// The directories are watched, and nothing changed since the last refresh.
    watched: AtomicBool,
    changed: Arc<AtomicBool>,
    /// Someone asked for a refresh, whatever the last one cost.
    asked: AtomicBool,
    events: Arc<Events>,
}

#[derive(Clone, Copy)]
struct LastRefresh {
    ended: Instant,
    took: Duration,
}

impl LastRefresh {
    /// Whether a request refreshes again. `worth_it`: something may have changed.
    fn is_due(self, now: Instant, worth_it: bool) -> bool {
        self.took <= CHEAP || worth_it && now.duration_since(self.ended) >= self.took * PAUSE
    }
}

impl Freshness {
    pub(super) fn new(
        refresh: Option<Refresh>,
        disk: Vec<DiskState>,
        events: Arc<Events>,
        now: fn() -> Time,
    ) -> Freshness {
        Freshness {
            refresh,
            now,
            trouble: Arc::default(),
            last: Arc::default(),
            disk: Arc::new(RwLock::new(disk)),
            ran: Arc::default(),
            watched: AtomicBool::new(false),
            changed: Arc::default(),
            asked: AtomicBool::new(false),
            events,
        }
    }

    pub(super) fn disk(&self) -> Vec<DiskState> {
        self.disk.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much of what the running capture found is in the archive.
    pub(super) fn captured_percent(&self) -> Option<u64> {
        self.events.work().map(Work::percent)
    }

    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the archive is refreshed at all.
    pub(super) fn is_on(&self) -> bool {
        self.refresh.is_some()
    }

    /// Refreshes even if nothing seems to have changed; while another refresh runs, after it.
    pub(super) async fn refresh_now(&self) {
        self.asked.store(true, Ordering::Relaxed);
        self.refresh_on_request().await;
    }

    /// Only one request refreshes at a time; the others use the current data, except until the first refresh has
    /// ended or proves to be long.
    pub(super) async fn refresh_on_request(&self) {
        let Some(refresh) = self.refresh.clone() else { return };
        let last = match self.last.clone().try_lock_owned() {
            Ok(last) => last,
            Err(_) if !self.ran.load(Ordering::Relaxed) => {
                match self.wait_for(self.last.clone().lock_owned()).await {
                    Some(last) => last,
                    None => return,
                }
            }
            Err(_) => return,
        };
        let is_asked = self.asked.swap(false, Ordering::Relaxed);
        if !is_asked && last.is_some_and(|last| !last.is_due(Instant::now(), self.is_worth_it())) {
            return;
        }
        self.changed.store(false, Ordering::Relaxed);
        let (disk, events, trouble, now) =
            (self.disk.clone(), self.events.clone(), self.trouble.clone(), (self.now)());
        let ran = self.ran.clone();
        let running = tokio::task::spawn_blocking(move || {
            let mut last = last;
            let started = Instant::now();
            let refreshed = catch_unwind(AssertUnwindSafe(|| refresh(&|work| events.sync(Some(work)))));
            // Whatever happened, pages must not wait for progress any more.
            events.sync(None);
            let refreshed = match refreshed {
                Ok(refreshed) => refreshed,
                Err(_) => Refreshed {
                    disk: disk.read().unwrap_or_else(PoisonError::into_inner).clone(),
                    news: false,
                    outcome: RefreshOutcome::Failed(CaptureFailure {
                        since: now,
                        what: "the refresh panicked".to_owned(),
                        hint: Some("annals sync -v".to_owned()),
                        files: Vec::new(),
                        file_count: 0,
                    }),
                },
            };
            note_outcome(&trouble, refreshed.outcome);
            if refreshed.news {
                events.news();
            }
            *disk.write().unwrap_or_else(PoisonError::into_inner) = refreshed.disk;
            ran.store(true, Ordering::Relaxed);
            let took = if refreshed.news { Duration::ZERO } else { started.elapsed() };
            *last = Some(LastRefresh { ended: Instant::now(), took });
        });
        // A longer refresh continues after the response.
        drop(self.wait_for(running).await);
    }

    /// Waits for a refresh, unless it takes too long.
    async fn wait_for<T>(&self, refresh: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            ended = refresh => Some(ended),
            () = self.events.wait_for_work(LONG) => None,
            () = tokio::time::sleep(PATIENCE) => None,
        }
    }

    /// Failures are retried whether or not something changes in the homes.
    fn is_worth_it(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
            || !self.watched.load(Ordering::Relaxed)
            || self.trouble().failure.is_some()
    }
}

/// Remembers since when refreshes fail; each new cause is logged once.
fn note_outcome(noted: &RwLock<Trouble>, outcome: RefreshOutcome) {
    let mut noted = noted.write().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        RefreshOutcome::Waiting(what) => noted.waiting = Some(what),
        RefreshOutcome::Failed(mut failure) => {
            noted.waiting = None;
            let before = noted.failure.as_ref();
            if before.is_none_or(|before| before.what != failure.what) {
                let (count, files) = (failure.file_count, failure.files.join(", "));
                tracing::error!(
                    "cannot capture new data: {}; not captured: {count} files: {files}",
                    failure.what
                );
            }
            failure.since = before.map_or(failure.since, |before| before.since.min(failure.since));
            noted.failure = Some(failure);
        }
        RefreshOutcome::Captured { unreadable } => {
            noted.waiting = None;
            if let Some(before) = noted.failure.take() {
                tracing::info!("new data is captured again, after failing since {}", before.since.rfc3339());
            }
            if let Some(files) = unreadable.as_ref().filter(|files| noted.unreadable.as_ref() != Some(*files))
            {
                tracing::warn!("{}", files.what);
            }
            noted.unreadable = unreadable;
        }
    }
}

/// Watches the homes for as long as it lives. If they cannot be watched, refreshes on request and at intervals must
/// suffice.
pub(super) struct HomeWatch {
    watcher: Option<RecommendedWatcher>,
    homes: Vec<PathBuf>,
    /// Homes that exist and are watched.
    followed: HashSet<PathBuf>,
    changed: Arc<AtomicBool>,
    wake: Arc<Notify>,
}

impl HomeWatch {
    pub(super) fn start(homes: &[PathBuf], freshness: &Freshness) -> HomeWatch {
        let mut watch = HomeWatch::of(homes.to_vec(), freshness.changed.clone());
        freshness.watched.store(watch.follow(), Ordering::Relaxed);
        watch
    }

    fn of(homes: Vec<PathBuf>, changed: Arc<AtomicBool>) -> HomeWatch {
        let wake = Arc::new(Notify::new());
        let (notifier, noted) = (wake.clone(), changed.clone());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                noted.store(true, Ordering::Relaxed);
                notifier.notify_one();
            }
        });
        HomeWatch { watcher: watcher.ok(), homes, followed: HashSet::new(), changed, wake }
    }

    /// Watches homes that exist by now, and where the others would be created. Returns whether all are watched.
    fn follow(&mut self) -> bool {
        let HomeWatch { watcher: Some(watcher), homes, followed, changed, wake } = self else { return false };
        let mut all = true;
        for home in homes.iter() {
            if !home.is_dir() {
                followed.remove(home);
                let above = home.ancestors().skip(1).find(|above| above.is_dir());
                all &= above.is_some_and(|above| {
                    followed.iter().any(|home| above.starts_with(home))
                        || watcher.watch(above, RecursiveMode::NonRecursive).is_ok()
                });
            } else if !followed.contains(home) {
                let is_watched = watcher.watch(home, RecursiveMode::Recursive).is_ok();
                all &= is_watched;
                if is_watched {
                    followed.insert(home.clone());
                    // Something may have been written before.
                    changed.store(true, Ordering::Relaxed);
                    wake.notify_one();
                }
            }
        }
        all
    }
}

/// Refreshes at the start, after changes, and at intervals.
pub(super) async fn keep_current(freshness: Arc<Freshness>, mut watch: HomeWatch) {
    loop {
        freshness.refresh_on_request().await;
        // Changes during a pause are not lost.
        if !freshness.changed.load(Ordering::Relaxed) {
            drop(tokio::time::timeout(SELDOM, watch.wake.notified()).await);
        }
        // Clients write a line at a time: one refresh for many lines.
        tokio::time::sleep(GATHER).await;
        freshness.watched.store(watch.follow(), Ordering::Relaxed);
    }
}

/// What is captured without a server.
pub struct WatchSetup {
    pub refresh: Refresh,
    /// Directories in which a change triggers a refresh.
    pub homes: Vec<PathBuf>,
    pub now: fn() -> Time,
}

/// Keeps the archive current until the process is stopped. Calls `ready` once changes are noticed.
pub fn watch(setup: WatchSetup, ready: impl FnOnce() -> Result<()>) -> Result<()> {
    let freshness =
        Arc::new(Freshness::new(Some(setup.refresh), Vec::new(), Arc::new(Events::new()), setup.now));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()?;
    let ended = runtime.block_on(async {
        let mut stop = Stop::listen()?;
        let watch = HomeWatch::start(&setup.homes, &freshness);
        ready()?;
        tokio::select! {
            () = keep_current(freshness, watch) => {}
            () = stop.received() => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(GRACE);
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_long_refresh_is_followed_by_a_pause_and_needs_a_reason() {
        let now = Instant::now();
        let due = |took: Duration, later: Duration, worth_it: bool| {
            LastRefresh { ended: now, took }.is_due(now + later, worth_it)
        };
        assert!(due(CHEAP, Duration::ZERO, false), "a short one costs nothing");
        let long = CHEAP * 10;
        assert!(!due(long, long * PAUSE, false), "nothing changed");
        assert!(!due(long, long * (PAUSE - 1), true), "too soon");
        assert!(due(long, long * PAUSE, true));
    }

    fn failure(what: &str, since: Time) -> CaptureFailure {
        let files = vec!["/a.jsonl".to_owned()];
        CaptureFailure { since, what: what.to_owned(), hint: None, files, file_count: 1 }
    }

    fn count_of(count: &AtomicUsize) -> i64 {
        count.load(Ordering::Relaxed) as i64 - 1
    }

    /// Counts refreshes; each finds something new, unless it fails.
    fn counting(fails: bool) -> (Freshness, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let refresh: Refresh = Arc::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let since = Time::from_seconds(7 + count_of(&counted));
            let outcome = match fails {
                true => RefreshOutcome::Failed(failure("disk full", since)),
                false => RefreshOutcome::Captured { unreadable: None },
            };
            Refreshed { disk: Vec::new(), news: true, outcome }
        });
        (Freshness::new(Some(refresh), Vec::new(), Arc::new(Events::new()), || Time::from_seconds(7)), count)
    }

    fn wait<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn the_next_request_refreshes_again() {
        let (freshness, count) = counting(false);
        for request in 1..=3 {
            wait(freshness.refresh_on_request());
            assert_eq!(count.load(Ordering::Relaxed), request);
        }
        assert_eq!(freshness.trouble(), Trouble::default());
    }

    #[test]
    fn failures_are_known_since_the_first() {
        let (freshness, count) = counting(true);
        wait(freshness.refresh_on_request());
        wait(freshness.refresh_on_request());
        let trouble = freshness.trouble();
        assert_eq!(trouble.failure, Some(failure("disk full", Time::from_seconds(7))));
        assert_eq!(trouble.since(), Some(Time::from_seconds(7).rfc3339()));
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert!(freshness.is_worth_it());
    }

    /// A client that is installed while the server runs is watched like the others, however deep its home is.
    #[test]
    fn homes_that_appear_later_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a/b/home");
        let changed = Arc::new(AtomicBool::new(false));
        let mut watch = HomeWatch::of(vec![home.clone()], changed.clone());
        let mut notices = |what: &str, change: &dyn Fn()| {
            changed.store(false, Ordering::Relaxed);
            change();
            let started = Instant::now();
            while !changed.load(Ordering::Relaxed) {
                assert!(started.elapsed() < Duration::from_secs(30), "{what} went unnoticed");
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(watch.follow());
        };
        notices("nothing yet", &|| changed.store(true, Ordering::Relaxed));
        notices("a directory above", &|| std::fs::create_dir(folder.path().join("a")).unwrap());
        notices("the home", &|| std::fs::create_dir_all(&home).unwrap());
        notices("a directory in it", &|| std::fs::create_dir(home.join("sessions")).unwrap());
        notices("a file below", &|| std::fs::write(home.join("sessions/one.jsonl"), "{}").unwrap());
        notices("the end of the home", &|| std::fs::remove_dir_all(&home).unwrap());
        notices("another home", &|| std::fs::create_dir_all(home.join("sessions")).unwrap());
        notices("a file below that", &|| std::fs::write(home.join("sessions/two.jsonl"), "{}").unwrap());
    }

    #[test]
    fn trouble_ends_with_its_cause() {
        let noted = RwLock::new(Trouble::default());
        let now = || noted.read().unwrap().clone();
        note_outcome(&noted, RefreshOutcome::Waiting("`annals sync`".to_owned()));
        assert_eq!((now().waiting.as_deref(), now().since()), (Some("`annals sync`"), None));
        let files = UnreadableFiles { since: "2026".to_owned(), what: "denied".to_owned() };
        note_outcome(&noted, RefreshOutcome::Captured { unreadable: Some(files) });
        assert_eq!((now().waiting, now().since().as_deref()), (None, Some("2026")));
        note_outcome(&noted, RefreshOutcome::Failed(failure("disk full", Time::from_seconds(7))));
        assert_eq!(now().since(), Some(Time::from_seconds(7).rfc3339()), "the older of both");
        note_outcome(&noted, RefreshOutcome::Captured { unreadable: None });
        assert_eq!(now(), Trouble::default());
    }
}
