//! Keeps the archive current while it is asked: a cheap look at what changed before an answer, none at rest.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::App;
use crate::view::DiskState;

/// Captures what is new and tells what the homes look like. Whoever puts the program together gives it.
pub type Look = Arc<dyn Fn() -> Vec<DiskState> + Send + Sync>;

/// An answer does not wait longer for a look that finds much.
const PATIENCE: Duration = Duration::from_secs(2);
/// A look as short as this is worth it before every answer.
const CHEAP: Duration = Duration::from_millis(15);
/// After a longer one there is a pause of so many times its length: looking takes a ninth of the time at most.
const PAUSE: u32 = 8;
/// Who asks so soon after such a look does not wait for the next one: it goes on behind the answer.
const SOON: Duration = Duration::from_secs(1);
/// How often there is a look when nobody asks, so that nothing is deleted unseen.
const SELDOM: Duration = Duration::from_secs(600);

pub(super) struct Freshness {
    look: Option<Look>,
    last: Arc<Mutex<Option<LastLook>>>,
    disk: Arc<RwLock<Vec<DiskState>>>,
}

struct LastLook {
    ended: Instant,
    took: Duration,
}

impl Freshness {
    pub(super) fn new(look: Option<Look>) -> Freshness {
        Freshness { look, last: Arc::default(), disk: Arc::default() }
    }

    pub(super) fn disk(&self) -> Vec<DiskState> {
        self.disk.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One asker looks at a time; the others take what there is, except before the very first look has ended.
    pub(super) async fn look_before_answer(&self) {
        let Some(look) = self.look.clone() else { return };
        let last = match self.last.clone().try_lock_owned() {
            Ok(last) => last,
            Err(_) if self.disk().is_empty() => {
                match tokio::time::timeout(PATIENCE, self.last.clone().lock_owned()).await {
                    Ok(last) => last,
                    Err(_) => return,
                }
            }
            Err(_) => return,
        };
        let longer = last.as_ref().filter(|last| last.took > CHEAP);
        if longer.is_some_and(|last| last.ended.elapsed() < last.took * PAUSE) {
            return;
        }
        let soon = longer.is_some_and(|last| last.ended.elapsed() < SOON);
        let disk = self.disk.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let mut last = last;
            let begun = Instant::now();
            let found = look();
            *disk.write().unwrap_or_else(PoisonError::into_inner) = found;
            *last = Some(LastLook { ended: Instant::now(), took: begun.elapsed() });
        });
        if !soon {
            // What takes longer goes on behind the answer.
            drop(tokio::time::timeout(PATIENCE, looking).await);
        }
    }
}

pub(super) async fn now_and_then(app: Arc<App>) {
    loop {
        app.freshness.look_before_answer().await;
        tokio::time::sleep(SELDOM).await;
    }
}
