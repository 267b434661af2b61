//! The status of a source, part of every answer about it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::door::Door;
use annals_core::{Result, Scope, Shown, Time};
use annals_sources::{Source, by_name, of_programs, registry};
use annals_store::Store;

/// Absence is a status, not an error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SourceState {
    pub source: &'static str,
    pub provider_label: &'static str,
    pub source_status: String,
    pub reason: Shown,
    pub setup_hint: &'static str,
    pub source_path: Option<Shown>,
    pub last_scanned_at: Option<String>,
}

/// A source by its name in answers.
// no scope: what there is to ask about is no secret
pub fn source_named(name: &str) -> Option<&'static dyn Source> {
    by_name(name)
}

/// Each source, and its name in addresses of its own.
// no scope: what there is to ask about is no secret
pub fn source_routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    registry().iter().map(|source| (source.manifest().source, source.manifest().route))
}

/// Each source that people talk with, and its name for people.
// no scope: what there is to ask about is no secret
pub fn source_labels() -> impl Iterator<Item = (&'static str, &'static str)> {
    let talked_with = registry().iter().filter(|source| !is_of_programs(**source));
    talked_with.map(|source| (source.manifest().source, source.manifest().label))
}

/// All sources but one: programs of one's own are for those who have some.
pub fn used_sources(scope: &Scope, store: Option<&Store>) -> Result<Vec<&'static dyn Source>> {
    let mut used = registry().to_vec();
    let homes = |source: &str| store.map_or(Ok(Vec::new()), |store| store.homes(scope, Some(source)));
    if homes(of_programs().manifest().source)?.is_empty() {
        used.retain(|source| !is_of_programs(*source));
    }
    Ok(used)
}

fn is_of_programs(source: &dyn Source) -> bool {
    source.manifest().source == of_programs().manifest().source
}

/// What the disk says of a source's homes now: source, path, status and reason.
pub type DiskState = (&'static str, String, String, String);

/// As the last run left it; where none found a home, as the disk is.
pub fn source_state(
    scope: &Scope,
    store: &Store,
    door: &Door,
    source: &'static dyn Source,
    disk: &[DiskState],
) -> Result<SourceState> {
    let manifest = source.manifest();
    let homes = store.homes(scope, Some(manifest.source))?;
    let mut state = SourceState {
        source: manifest.source,
        provider_label: manifest.label,
        source_status: "unavailable".into(),
        reason: Shown::new("no data found"),
        setup_hint: manifest.setup_hint,
        source_path: None,
        last_scanned_at: homes.iter().filter_map(|home| home.last_scanned).max().map(Time::rfc3339),
    };
    for (_, path, status, reason) in disk.iter().filter(|(name, ..)| *name == manifest.source) {
        state.source_path = Some(door.text(path));
        state.source_status.clone_from(status);
        state.reason = door.text(reason);
    }
    for home in &homes {
        state.source_path = Some(door.raw(&home.root));
        state.source_status.clone_from(&home.status);
        state.reason = door.raw(&home.reason);
    }
    let answers = homes.iter().any(|home| home.has_sessions) && state.source_status != "error";
    if answers && state.source_status != "available" {
        state.source_status = "available".into();
        state.reason = Shown::new("the client's files are gone; showing archived data");
    }
    Ok(state)
}
