//! The library page: items by kind and project, at any time, and the versions of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;

use super::diff::push_diff;
use super::html::{Html, in_address, text};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::{ItemParameters, LibraryParameters, Params, parse_time};
use crate::view::format;
use crate::view::{ItemVersion, LibraryItem, LibraryQuery, View, library_kinds, source_labels};
use annals_core::{Result, Shown, Time};

#[derive(Template)]
#[template(path = "library.html")]
struct LibraryPage {
    frame: Frame,
    sources: Vec<(&'static str, &'static str, bool)>,
    kinds: Vec<(&'static str, bool)>,
    project: String,
    projects: Vec<Shown>,
    as_of: String,
    as_of_text: String,
    /// Times at which something changed, oldest first; the last is now.
    moments: Vec<String>,
    moments_text: String,
    moment: usize,
    total: String,
    shelves: Vec<Shelf>,
    /// The other moment that this one is compared with, as a field takes it.
    since: String,
    /// What changed between the two.
    changes: Option<Changes>,
}

/// What is different between two moments.
struct Changes {
    title: String,
    lines: Vec<(&'static str, ItemLine)>,
    same: String,
}

/// Parameters of the page: those of the list over HTTP, and another moment to compare with.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    source: Option<String>,
    kind: Option<String>,
    project: Option<String>,
    as_of: Option<String>,
    since: Option<String>,
}

struct Shelf {
    kind: &'static str,
    label: &'static str,
    items: Vec<ItemLine>,
}

struct ItemLine {
    href: String,
    name: String,
    project: String,
    project_name: String,
    at: (String, String),
    size: String,
    versions: i64,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let since = given(parameters.since);
    let filters = LibraryParameters {
        source: given(parameters.source),
        kind: given(parameters.kind),
        project: given(parameters.project),
        as_of: given(parameters.as_of),
    };
    let since = parse_time(since.as_deref())?;
    let (query, then) = filters.clone().read()?;
    Ok(render(app, caller, move |view| {
        let mut page = library_page(view, &filters, &query, then, theme)?;
        if let Some(since) = since {
            page.since = as_field(since);
            page.changes = Some(changes(view, &query, since, then)?);
        }
        Ok(Some(page))
    })
    .await)
}

/// A moment as a field for times takes it.
fn as_field(moment: Time) -> String {
    moment.rfc3339().get(..19).unwrap_or_default().to_owned()
}

/// Items that came, went or have another version; whichever of the moments is earlier is the one before.
fn changes(view: &View<'_>, query: &LibraryQuery, one: Time, other: Time) -> Result<Changes> {
    let (before, after) = (one.min(other), one.max(other));
    let key = |item: &LibraryItem| (item.source, item.kind, item.id.to_string());
    let old: BTreeMap<_, LibraryItem> =
        view.library(query, before)?.into_iter().map(|item| (key(&item), item)).collect();
    let new: BTreeMap<_, LibraryItem> =
        view.library(query, after)?.into_iter().map(|item| (key(&item), item)).collect();
    let mut lines = Vec::new();
    for (of, item) in &new {
        match old.get(of) {
            None => lines.push(("added", line(item))),
            Some(known) if known.version != item.version => lines.push(("changed", line(item))),
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|(of, _)| !new.contains_key(*of)).map(|(_, item)| ("removed", line(item)));
    let same = new.len() - lines.len();
    lines.extend(gone);
    // Without a moment, the list is that of now.
    let minute = |moment: Time| format::minute(&moment.min(view.now()).rfc3339());
    Ok(Changes {
        title: format!("{} to {} UTC", minute(before), minute(after)),
        same: format!("{} unchanged", format::counted(same, "item")),
        lines,
    })
}

fn library_page(
    view: &View<'_>,
    filters: &LibraryParameters,
    query: &LibraryQuery,
    then: Time,
    theme: Theme,
) -> Result<LibraryPage> {
    let items = view.library(query, then)?;
    let changes = view.library_moments()?;
    let moments: Vec<String> = changes.iter().map(|moment| moment.rfc3339()).collect();
    let chosen = filters.as_of.as_ref().map(|_| then);
    let moment = chosen.map_or(moments.len(), |then| changes.partition_point(|change| *change <= then));
    let mut shelves: Vec<Shelf> = Vec::new();
    for item in &items {
        let label = source_labels().find(|(source, _)| *source == item.source).map_or("", |(_, label)| label);
        let known = shelves.iter().position(|shelf| shelf.kind == item.kind && shelf.label == label);
        let at = known.unwrap_or_else(|| {
            shelves.push(Shelf { kind: item.kind, label, items: Vec::new() });
            shelves.len() - 1
        });
        if let Some(shelf) = shelves.get_mut(at) {
            shelf.items.push(line(item));
        }
    }
    let kinds: BTreeSet<&'static str> = library_kinds().collect();
    // The step after the last change is now.
    let mut steps = moments.clone();
    steps.push(String::new());
    Ok(LibraryPage {
        frame: Frame::new("/library", "Library", theme),
        sources: source_labels()
            .map(|(source, label)| (source, label, query.source.as_deref() == Some(source)))
            .collect(),
        kinds: kinds.into_iter().map(|kind| (kind, query.kind.as_deref() == Some(kind))).collect(),
        project: query.project.clone().unwrap_or_default(),
        projects: view.choices()?.projects,
        as_of: chosen.map_or(String::new(), as_field),
        as_of_text: chosen
            .map_or("current".into(), |then| format!("as of {} UTC", format::minute(&then.rfc3339()))),
        moments_text: steps.join(" "),
        moments: steps,
        moment: moment.saturating_sub(usize::from(chosen.is_some())),
        total: format::counted(items.len(), "item"),
        shelves,
        since: String::new(),
        changes: None,
    })
}

fn line(item: &LibraryItem) -> ItemLine {
    let project = item.project.as_ref().map_or("", |project| project.as_str());
    ItemLine {
        href: format!(
            "/library/item?source={}&kind={}&id={}",
            item.source,
            item.kind,
            in_address(item.id.as_str())
        ),
        name: item.name.to_string(),
        project_name: if project.is_empty() { "user".into() } else { format::last_part(project).to_owned() },
        project: project.to_owned(),
        at: (item.changed_at.clone(), format::minute(&item.changed_at)),
        size: format::size(item.bytes as i64),
        versions: item.versions,
    }
}

#[derive(Template)]
#[template(path = "library_item.html")]
struct ItemPage {
    frame: Frame,
    kind: &'static str,
    label: &'static str,
    name: String,
    facts: Vec<(&'static str, String)>,
    versions: Vec<VersionHtml>,
}

struct VersionHtml {
    number: i64,
    at: (String, String),
    ended: Option<String>,
    size: String,
    diff: Html,
}

pub(super) async fn item(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<ItemParameters>,
) -> std::result::Result<Response, crate::serve::answer::Refusal> {
    let theme = Theme::of(&headers);
    let (query, id) = parameters.read()?;
    Ok(render(app, caller, move |view| {
        let found = view.history(&query, &id)?;
        let mut exact = found.into_iter().filter(|(item, _)| item.id.as_str() == id);
        Ok(exact.next().map(|(item, versions)| item_page(&item, &versions, theme)))
    })
    .await)
}

fn item_page(item: &LibraryItem, versions: &[ItemVersion], theme: Theme) -> ItemPage {
    let facts =
        [("file", Some(item.path.to_string())), ("project", item.project.as_ref().map(ToString::to_string))];
    let shown = versions.iter().rev().map(|version| {
        let mut diff = String::new();
        // The first version has no diff: it is shown in full.
        match version.version == 1 {
            true => diff = text(version.diff.as_str()).0,
            false => push_diff(&mut diff, version.diff.as_str()),
        }
        VersionHtml {
            number: version.version,
            at: (version.changed_at.clone(), format::minute(&version.changed_at)),
            ended: version.deleted_at.as_deref().map(format::minute),
            size: format::size(version.bytes as i64),
            diff: Html(diff),
        }
    });
    ItemPage {
        frame: Frame::new("/library", item.name.to_string(), theme),
        kind: item.kind,
        label: source_labels().find(|(source, _)| *source == item.source).map_or("", |(_, label)| label),
        name: item.name.to_string(),
        facts: facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        versions: shown.collect(),
    }
}
