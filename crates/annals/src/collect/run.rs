//! Start and end of every run that writes.

use super::options::Environment;
use annals_core::{Result, Time};
use annals_sources::Source;
use annals_store::Store;

/// Opens the archive, rebuilding rows if readers have changed. The caller holds the lock.
pub fn open(
    environment: &Environment<'_>,
    sources: impl IntoIterator<Item = &'static dyn Source>,
) -> Result<Store> {
    let mut store = Store::open(environment.data_dir)?;
    let now = (environment.now)();
    if store.has_unfinished_forgetting(now)? {
        super::forget::finish(environment.data_dir, now)?;
        store = Store::open(environment.data_dir)?;
    }
    let mut is_behind = false;
    for source in sources {
        let manifest = source.manifest();
        is_behind |= store.needs_rebuild(manifest.source, manifest.reader_version)?;
    }
    if is_behind {
        super::rebuild(environment.data_dir, now, &mut |_| {})?;
    }
    Ok(store)
}

/// An entry in the table of runs. An interrupted run has no end.
pub struct Run {
    id: i64,
    now: fn() -> Time,
}

impl Run {
    pub fn start(store: &Store, environment: &Environment<'_>, what: &str) -> Result<Run> {
        let id = store.start_run(what, (environment.now)())?;
        Ok(Run { id, now: environment.now })
    }

    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn finish(self, store: &mut Store, summary: &str) -> Result<()> {
        store.finish_run(self.id, summary, (self.now)())?;
        Ok(store.checkpoint()?)
    }
}
