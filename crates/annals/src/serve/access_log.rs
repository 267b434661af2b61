//! Keeps the log of who read whose sessions: an answer about somebody else's session goes out once it is in the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::access::Caller;
use crate::view::Accesses;
use annals_core::{AccessKind, Error, MemberId, Result, Scope, SessionId, Time};
use annals_store::Store;

/// How long an entry is not written again.
const FRESH: i64 = 60_000_000;
/// Entries that are remembered.
const MOST: usize = 10_000;

/// Who read what, and how.
type Entry = (Option<MemberId>, SessionId, AccessKind);

/// What was written a moment ago, and the handle that writes.
#[derive(Default)]
pub(super) struct AccessLog {
    store: Mutex<Option<Store>>,
    recent: Mutex<HashMap<Entry, Time>>,
}

impl AccessLog {
    /// Writes what is new. Members wait for it and get no answer if it fails; the owner of the machine has the archive anyway.
    pub fn write(
        &self,
        data_dir: &Path,
        reader: &Store,
        caller: Caller,
        accesses: Accesses,
        now: Time,
    ) -> Result<()> {
        if let Scope::Member(_) = caller.scope {
            return Ok(());
        }
        let mut sessions = accesses.into_sessions();
        let is_fresh = |at: &Time| now.micros().saturating_sub(at.micros()).abs() < FRESH;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        sessions
            .retain(|(session, kind)| !recent.get(&(caller.member, *session, *kind)).is_some_and(is_fresh));
        if sessions.is_empty() {
            return Ok(());
        }
        let others = reader.sessions_of_others(caller.member, &sessions)?;
        if !others.is_empty() {
            match self.write_entries(data_dir, caller.member, &others, now) {
                Ok(()) => {}
                Err(error) if caller.member.is_none() => {
                    tracing::warn!("the log of accesses is not complete: {}", error.chain());
                }
                Err(error) => {
                    tracing::error!("the log of accesses cannot be written: {}", error.chain());
                    return Err(Error::new("the log of accesses cannot be written, so nothing is shown"));
                }
            }
        }
        if recent.len() + sessions.len() > MOST {
            recent.clear();
        }
        recent.extend(sessions.into_iter().map(|(session, kind)| ((caller.member, session, kind), now)));
        Ok(())
    }

    fn write_entries(
        &self,
        data_dir: &Path,
        viewer: Option<MemberId>,
        sessions: &[(SessionId, AccessKind)],
        now: Time,
    ) -> Result<()> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = match store.take() {
            Some(writer) => writer,
            None => Store::open(data_dir)?,
        };
        writer.record_accesses(viewer, sessions, now)?;
        *store = Some(writer);
        Ok(())
    }
}
