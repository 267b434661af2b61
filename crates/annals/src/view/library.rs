//! The library: skills, prompts, rules, instructions and memory of all sources, at any time, with their versions.

use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;
use utoipa::ToSchema;

use super::context::View;
use super::door::Door;
use annals_core::{Encoding, Family, Manifest, Result, Shown, Stream, Time};
use annals_sources::{Source, registry};
use annals_store::{Contents, ItemRow};

#[derive(Debug, Clone, Default)]
pub struct LibraryQuery {
    pub source: Option<String>,
    /// Only this stream.
    pub kind: Option<String>,
    /// Only items of this repository, and the user's.
    pub project: Option<String>,
    /// Only items that are in effect in a session with these native fields.
    pub session: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct LibraryItem {
    pub source: &'static str,
    pub kind: &'static str,
    pub family: Family,
    /// `user` or `project`.
    pub scope: &'static str,
    pub project: Option<Shown>,
    pub name: Shown,
    pub id: Shown,
    pub bytes: u64,
    pub changed_at: String,
    pub version: i64,
    pub versions: i64,
    pub path: Shown,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ItemVersion {
    pub version: i64,
    pub changed_at: String,
    pub deleted_at: Option<String>,
    pub bytes: u64,
    /// Unified diff to the previous version; the complete text of the first.
    pub diff: Shown,
}

/// A version of a library item as it is stored.
pub(super) struct StoredItem {
    pub source: &'static dyn Source,
    pub stream: &'static Stream,
    pub row: ItemRow,
}

impl View<'_> {
    /// Everything in effect at `then`.
    pub fn library(&self, query: &LibraryQuery, then: Time) -> Result<Vec<LibraryItem>> {
        let mut items = Vec::new();
        for (source, stream) in shelves(query) {
            let manifest = source.manifest();
            for row in self.archive.items_in_force(manifest.source, stream.name, then)? {
                let item = item(self.door, manifest, stream, &row);
                let elsewhere = match (&query.project, row.key.split_once('#')) {
                    (Some(wanted), Some((project, _))) => wanted != project,
                    _ => false,
                };
                let applies = match &query.session {
                    Some(session) => source.applies(stream.name, &row.key, session),
                    None => true,
                };
                if applies && !elsewhere {
                    items.push(item);
                }
            }
        }
        Ok(items)
    }
}

/// Streams of authored items, memory and settings.
pub fn library_kinds() -> impl Iterator<Item = &'static str> {
    shelves(&LibraryQuery::default()).into_iter().map(|(_, stream)| stream.name)
}

impl View<'_> {
    /// Times at which something in the library changed, oldest first; if there are very many, the latest.
    pub fn library_moments(&self) -> Result<Vec<Time>> {
        let streams: Vec<&str> = library_kinds().collect();
        Ok(self.archive.item_moments(&streams, MOMENTS)?)
    }
}

/// Positions of the slider.
const MOMENTS: i64 = 200;

impl View<'_> {
    /// All versions of the items whose id is, or ends with, `name`.
    pub fn history(&self, query: &LibraryQuery, name: &str) -> Result<Vec<(LibraryItem, Vec<ItemVersion>)>> {
        let mut found = Vec::new();
        let mut contents = self.archive.contents();
        for (source, stream) in shelves(query) {
            let manifest = source.manifest();
            for key in self.archive.item_keys(manifest.source, stream.name)? {
                let last = key.rsplit(['/', '#', ':']).next().unwrap_or(&key);
                let full = format!("{}/{key}", stream.name);
                if key != name && last != name && full != name {
                    continue;
                }
                let rows = self.archive.item_versions(manifest.source, stream.name, &key)?;
                let mut before = String::new();
                let mut versions = Vec::new();
                for row in &rows {
                    let text = shown_text(self.door, source, stream, &mut contents, row)?;
                    let diff = match versions.is_empty() {
                        true => text.clone(),
                        false => {
                            TextDiff::from_lines(&before, &text).unified_diff().context_radius(2).to_string()
                        }
                    };
                    versions.push(ItemVersion {
                        version: row.version,
                        changed_at: row.changed_at.rfc3339(),
                        deleted_at: row.deleted_at.map(Time::rfc3339),
                        bytes: row.span.length,
                        // Both texts have passed the door.
                        diff: Shown::new(diff),
                    });
                    before = text;
                }
                if let Some(row) = rows.last() {
                    found.push((item(self.door, manifest, stream, row), versions));
                }
            }
        }
        Ok(found)
    }

    /// Visits every version of every library item.
    pub(super) fn each_item(
        &self,
        query: &LibraryQuery,
        visit: &mut dyn FnMut(StoredItem) -> Result<()>,
    ) -> Result<()> {
        for (source, stream) in shelves(query) {
            let name = source.manifest().source;
            for key in self.archive.item_keys(name, stream.name)? {
                for row in self.archive.item_versions(name, stream.name, &key)? {
                    visit(StoredItem { source, stream, row })?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn item_of(&self, stored: &StoredItem) -> LibraryItem {
        item(self.door, stored.source.manifest(), stored.stream, &stored.row)
    }

    /// The text of a version, masked.
    pub(super) fn item_text(&self, stored: &StoredItem, contents: &mut Contents<'_>) -> Result<String> {
        shown_text(self.door, stored.source, stored.stream, contents, &stored.row)
    }

    /// Every version of every library item, masked, with the time it took effect.
    pub(super) fn history_texts(
        &self,
        query: &LibraryQuery,
        is_wanted: &mut dyn FnMut(&ItemRow) -> bool,
        visit: &mut dyn FnMut(&str, &str),
    ) -> Result<()> {
        let mut contents = self.archive.contents();
        self.each_item(query, &mut |stored| {
            if is_wanted(&stored.row) {
                visit(&self.item_text(&stored, &mut contents)?, &stored.row.changed_at.rfc3339());
            }
            Ok(())
        })
    }
}

fn shown_text(
    door: &Door,
    source: &'static dyn Source,
    stream: &'static Stream,
    contents: &mut Contents<'_>,
    row: &ItemRow,
) -> Result<String> {
    let raw = contents.span_of_version(row.file, row.file_version, Encoding::Plain, row.span)?;
    Ok(match source.record(stream.name, &row.key, raw.expose()) {
        // Settings contain environments: only show what their record shows.
        Some(record) if stream.family == Family::Settings => {
            serde_json::to_string_pretty(&door.json(record))? + "\n"
        }
        _ => door.raw(&raw).to_string(),
    })
}

/// Streams of authored items, memory and settings that match the query.
fn shelves(query: &LibraryQuery) -> Vec<(&'static dyn Source, &'static Stream)> {
    let sources = registry().iter().copied();
    let wanted =
        sources.filter(|source| query.source.as_deref().is_none_or(|name| name == source.manifest().source));
    let shelves =
        wanted.flat_map(|source| source.manifest().streams.iter().map(move |stream| (source, stream)));
    shelves
        .filter(|(_, stream)| stream.family != Family::Transcript)
        .filter(|(_, stream)| query.kind.as_deref().is_none_or(|kind| kind == stream.name))
        .collect()
}

fn item(door: &Door, manifest: &'static Manifest, stream: &'static Stream, row: &ItemRow) -> LibraryItem {
    let (project, name) = match row.key.split_once('#') {
        Some((project, name)) => (Some(project), name),
        None => (None, row.key.as_str()),
    };
    LibraryItem {
        source: manifest.source,
        kind: stream.name,
        family: stream.family,
        scope: if project.is_some() { "project" } else { "user" },
        project: project.map(|project| door.text(project)),
        name: door.text(name),
        id: door.text(&row.key),
        bytes: row.span.length,
        changed_at: row.changed_at.rfc3339(),
        version: row.version,
        versions: row.versions,
        path: door.text(&row.path),
    }
}
