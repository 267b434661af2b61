//! The status of a source, included in every answer about it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use annals_core::{Result, Shown, SourceStatus, Time};
use annals_sources::{Source, by_common_name, by_name, of_archive, of_programs, registry};

/// Absence is a status, not an error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SourceState {
    pub source: &'static str,
    pub provider_label: &'static str,
    #[schema(value_type = String)]
    pub source_status: SourceStatus,
    pub reason: Shown,
    pub setup_hint: &'static str,
    pub source_path: Option<Shown>,
    pub last_scanned_at: Option<String>,
}

/// Looks up a source by name.
pub fn find_source(name: &str) -> Option<&'static dyn Source> {
    by_name(name)
}

/// Looks up what has records: a source, or the archive itself.
pub fn find_recorded_source(name: &str) -> Option<&'static dyn Source> {
    by_name(name).or_else(|| Some(of_archive()).filter(|source| source.manifest().source == name))
}

/// The name of a source from any name that people use for it.
pub fn source_by_common_name(name: &str) -> Option<&'static str> {
    by_common_name(name).map(|source| source.manifest().source)
}

/// Every source with its name in URLs.
pub fn source_routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    registry().iter().map(|source| (source.manifest().source, source.manifest().route))
}

/// Every source used by people, with its label.
pub fn source_labels() -> impl Iterator<Item = (&'static str, &'static str)> {
    sources_of_people().map(|source| (source.manifest().source, source.manifest().label))
}

/// All sources except API traces of the user's own programs.
pub(super) fn sources_of_people() -> impl Iterator<Item = &'static dyn Source> {
    registry().iter().copied().filter(|source| !is_api_traces(*source))
}

impl View<'_> {
    /// All sources; API traces only if there are some.
    pub fn used_sources(&self) -> Result<Vec<&'static dyn Source>> {
        let has_programs = !self.archive.homes(Some(of_programs().manifest().source))?.is_empty();
        Ok(if has_programs { registry().to_vec() } else { sources_of_people().collect() })
    }
}

fn is_api_traces(source: &dyn Source) -> bool {
    source.manifest().source == of_programs().manifest().source
}

/// A source with several homes has the status of the one that says most: a directory of settings without sessions does not
/// make a source empty whose sessions are in another one.
pub(super) fn weight(status: SourceStatus) -> u8 {
    match status {
        SourceStatus::Unavailable => 0,
        SourceStatus::Empty => 1,
        SourceStatus::Unsupported => 2,
        SourceStatus::Error => 3,
        SourceStatus::Available => 4,
    }
}

/// The current state of a source's homes on disk: source, path, status and reason.
pub type DiskState = (&'static str, String, SourceStatus, String);

impl View<'_> {
    /// When a home was last scanned.
    pub fn last_scanned(&self) -> Result<Option<String>> {
        let homes = self.archive.homes(None)?;
        Ok(homes.iter().filter_map(|home| home.last_scanned).max().map(Time::rfc3339))
    }

    /// The state after the last run, or on disk if no run found a home.
    pub fn source_state(&self, source: &'static dyn Source) -> Result<SourceState> {
        let manifest = source.manifest();
        let homes = self.archive.homes(Some(manifest.source))?;
        let mut state = SourceState {
            source: manifest.source,
            provider_label: manifest.label,
            source_status: SourceStatus::Unavailable,
            reason: Shown::new("no data found"),
            setup_hint: manifest.setup_hint,
            source_path: None,
            last_scanned_at: homes.iter().filter_map(|home| home.last_scanned).max().map(Time::rfc3339),
        };
        let disk = self.disk.iter().filter(|(name, ..)| *name == manifest.source);
        if let Some((_, path, status, reason)) = disk.max_by_key(|(_, _, status, _)| weight(*status)) {
            state.source_path = Some(self.door.text(path));
            state.source_status = *status;
            state.reason = self.door.text(reason);
        }
        if let Some(home) = homes.iter().max_by_key(|home| weight(home.status)) {
            state.source_path = Some(self.door.raw(&home.root));
            state.source_status = home.status;
            state.reason = self.door.raw(&home.reason);
        }
        let answers =
            homes.iter().any(|home| home.has_sessions) && state.source_status != SourceStatus::Error;
        if answers && state.source_status != SourceStatus::Available {
            state.source_status = SourceStatus::Available;
            state.reason = Shown::new("the client's files are gone; showing archived data");
        }
        Ok(state)
    }
}
