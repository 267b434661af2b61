//! What every answer is made from: the archive as visible to the caller, the door for its texts, and the time.

use super::audit::status::DiskState;
use super::door::Door;
use super::members::Accesses;
use super::preferences::Preferences;
use annals_core::{Result, Shown, Time};
use annals_store::Archive;

/// Answers queries. Each query is a method in the file of its subject.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) archive: Archive<'a>,
    pub(super) door: &'a Door,
    pub(super) now: Time,
    /// The state of the sources' homes at the last refresh; empty for callers who may not see it.
    pub(super) disk: &'a [DiskState],
    /// How much of what a running capture found is in the archive, in percent.
    pub(super) captured_percent: Option<u64>,
    preferences: Option<&'a Preferences>,
    /// Where what is shown of sessions is noted.
    pub(super) accesses: Option<&'a Accesses>,
}

impl<'a> View<'a> {
    pub fn new(archive: Archive<'a>, door: &'a Door, now: Time) -> View<'a> {
        View { archive, door, now, disk: &[], captured_percent: None, preferences: None, accesses: None }
    }

    pub fn while_capturing(self, captured_percent: Option<u64>) -> View<'a> {
        View { captured_percent, ..self }
    }

    pub fn noting(self, accesses: &'a Accesses) -> View<'a> {
        View { accesses: Some(accesses), ..self }
    }

    /// For what is read and not shown.
    pub(super) fn noting_nothing(self) -> View<'a> {
        View { accesses: None, ..self }
    }

    pub fn with_disk(self, disk: &'a [DiskState]) -> View<'a> {
        View { disk, ..self }
    }

    pub fn with_preferences(self, preferences: &'a Preferences) -> View<'a> {
        View { preferences: Some(preferences), ..self }
    }

    /// What pages need of the settings, where there are any.
    pub fn preferences(&self) -> Option<&'a Preferences> {
        self.preferences
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// For texts of a run itself, such as a file name in a warning.
    pub fn show(&self, text: &str) -> Shown {
        self.door.text(text)
    }

    /// Runs `work` on a consistent snapshot of the archive.
    pub fn at_once<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.archive.in_snapshot(work)
    }

    /// The number of the last run that wrote; answers do not change until it does.
    pub fn last_run(&self) -> Result<i64> {
        Ok(self.archive.last_run()?)
    }

    /// The number of the last commit that changed rows.
    pub fn last_commit(&self) -> Result<i64> {
        Ok(self.archive.state()?.commit)
    }
}
