//! The files page: what sessions did in folders and to files, and the files that they worked on last.

use askama::Template;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::assistant::colour;
use super::filters::{Bar, Filtered, Filters};
use super::html::{Html, in_address};
use super::lineage::address_of;
use super::plot::{self, Bar as PlotBar, Series, Unit, stacked_bars};
use super::{Frame, PageRequest, Theme, html_response};
use crate::serve::answer::{Answered, Refusal, with_view};
use crate::view::format;
use crate::view::{FileList, FolderEntry, Paging, View, WrittenByMonth, source_labels};
use annals_core::{Error, Result};
use annals_store::WorkFilter;

/// Rows of a folder until all are asked for.
const ROWS: usize = 200;
/// Files in a page of the latest.
const LATEST: i64 = 50;

#[derive(Template)]
#[template(path = "files.html")]
struct FolderPage {
    frame: Frame,
    bar: Bar,
    /// The folder itself, and the folders that contain it with their addresses.
    folder: Option<String>,
    parents: Vec<(String, String)>,
    /// Where the sessions in it are listed.
    sessions: String,
    plot: Option<Html>,
    legend: Vec<Series>,
    rows: Vec<Row>,
    /// How many there are, and where all of them are listed.
    rest: Option<(String, String)>,
    assistants: Vec<(String, &'static str)>,
}

#[derive(Template)]
#[template(path = "files_latest.html")]
struct LatestPage {
    frame: Frame,
    rows: Vec<LatestRow>,
    more: Option<String>,
}

struct Row {
    address: String,
    name: String,
    folder: Option<String>,
    is_file: bool,
    written: String,
    replaced: String,
    edits: String,
    reads: String,
    sessions: String,
    at: Option<(String, String)>,
    /// Who wrote how much: parts of a bar with their place, width and colour.
    shares: Vec<(i64, i64, String)>,
    /// The same in words.
    shared: String,
}

struct LatestRow {
    address: String,
    name: String,
    folder: String,
    edits: String,
    reads: String,
    sessions: String,
    at: Option<(String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    folder: String,
    /// `latest`, or nothing for folders.
    view: String,
    cursor: String,
    /// `all`, or nothing for the start of a folder.
    rows: String,
}

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    show(asker, filters, parameters).await
}

pub(super) async fn show(asker: PageRequest, filters: Filters, parameters: Parameters) -> Answered {
    let PageRequest { app, caller, theme } = asker;
    let latest = match parameters.view.as_str() {
        "" => false,
        "latest" => true,
        _ => Err(Error::bad_request("invalid value of `view`").hint("use latest, or leave it out"))?,
    };
    let rendered = with_view(app, caller, move |view| {
        let page = match latest {
            true => latest_page(view, &parameters, theme)?.map(|page| page.render()),
            false => folder_page(view, &filters, &parameters, theme)?.map(|page| page.render()),
        };
        page.transpose().map_err(|_| Error::new("cannot render the page"))
    });
    Ok(match rendered.await? {
        Some(html) => html_response(StatusCode::OK, html),
        None => Refusal::not_found("not found").hint("only the owner sees files").into_response(),
    })
}

fn folder_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &Parameters,
    theme: Theme,
) -> Result<Option<FolderPage>> {
    let folder = Some(parameters.folder.trim().trim_end_matches('/')).filter(|folder| !folder.is_empty());
    let period = filters.period()?;
    let filter = WorkFilter {
        source: Some(filters.source.clone()).filter(|source| !source.is_empty()),
        since: period.since,
        until: period.until,
    };
    let Some(entries) = view.folder(folder, &filter)? else { return Ok(None) };
    let address = |folder: &str| filters.address("/files", &[("folder", folder)]);
    let most = entries.iter().map(|entry| entry.written).max().unwrap_or(0);
    let shown = if parameters.rows == "all" { entries.len() } else { ROWS };
    let rest = (entries.len() > shown).then(|| {
        let every = [("folder", folder.unwrap_or_default()), ("rows", "all")];
        (format!("{shown} of {}", format::number(entries.len())), filters.address("/files", &every))
    });
    let present =
        |name: &str| entries.iter().any(|entry| entry.shares.iter().any(|(source, _)| source == name));
    let assistants = source_labels().filter(|(name, _)| present(name));
    let assistants = assistants.map(|(name, label)| (colour(name), label)).collect();
    let rows = entries.iter().take(shown).map(|entry| row(entry, folder.is_none(), most, &address)).collect();
    // The plot is about all files.
    let written = folder.is_none().then(|| view.written_by_month()).transpose()?.unwrap_or_default();
    let (plot, legend) = plot_of(&written);
    let mut parents: Vec<(String, String)> = Vec::new();
    for (at, _) in folder.unwrap_or_default().match_indices('/').filter(|(at, _)| *at > 0) {
        let path = &folder.unwrap_or_default()[..at];
        parents.push((format::last_part(path).to_owned(), address(path)));
    }
    let title = folder.map_or("Files", format::last_part).to_owned();
    let bar = Bar::of(view, "/files", filters, &[])?.keeping(&[("folder", folder.unwrap_or_default())]);
    Ok(Some(FolderPage {
        frame: Frame::new("/files", title, theme).with_filters(filters),
        bar,
        folder: folder.map(|folder| view.show(folder).to_string()),
        sessions: filters.address("/sessions", &[("project", folder.unwrap_or_default())]),
        parents: parents.into_iter().map(|(name, address)| (view.show(&name).to_string(), address)).collect(),
        plot,
        legend,
        rows,
        rest,
        assistants,
    }))
}

fn row(entry: &FolderEntry, is_project: bool, most: i64, address: &dyn Fn(&str) -> String) -> Row {
    let path = entry.path.as_str();
    let name = if is_project { format::last_part(path) } else { entry.name.as_str() };
    let mut start = 0;
    let shares = entry.shares.iter().map(|(source, lines)| {
        let width = plot::share(*lines, most);
        start += width;
        (start - width, width, colour(source))
    });
    let label = |name: &str| source_labels().find(|(known, _)| *known == name).map_or("", |(_, label)| label);
    let all = entry.written.max(1) as f64;
    let shared = entry
        .shares
        .iter()
        .map(|(source, lines)| format!("{} {}", label(source), format::percent(*lines as f64 / all)));
    Row {
        address: if entry.is_file { address_of(path) } else { address(path) },
        name: if entry.is_file { name.to_owned() } else { format!("{name}/") },
        folder: is_project.then(|| path.to_owned()),
        is_file: entry.is_file,
        written: format::number(entry.written),
        replaced: format::number(entry.replaced),
        edits: format::number(entry.edits),
        reads: format::number(entry.reads),
        sessions: format::number(entry.sessions),
        at: entry.last_at.clone().map(|at| (at.clone(), format::minute(&at))),
        shares: shares.collect(),
        shared: shared.collect::<Vec<_>>().join(", "),
    }
}

fn plot_of(written: &WrittenByMonth) -> (Option<Html>, Vec<Series>) {
    let bars: Vec<PlotBar> = written
        .months
        .iter()
        .map(|(month, lines)| PlotBar {
            label: month.clone(),
            tick: month.clone(),
            href: format!("/sessions?since={month}-01&until={}", format::month_after(month)),
            parts: lines.iter().map(|lines| *lines as f64).collect(),
        })
        .collect();
    let models = written.models.iter().enumerate();
    let legend: Vec<Series> = models.map(|(number, model)| Series::numbered(number, model.clone())).collect();
    let plot = (!bars.is_empty()).then(|| {
        stacked_bars(&bars, &legend, Unit::Lines, "Lines written by sessions, by month and model", &[])
    });
    (plot, legend)
}

fn latest_page(view: &View<'_>, parameters: &Parameters, theme: Theme) -> Result<Option<LatestPage>> {
    let cursor = Some(parameters.cursor.clone()).filter(|cursor| !cursor.is_empty());
    let Some(list) = view.lineage_files(&Paging { limit: LATEST, cursor })? else { return Ok(None) };
    let FileList { files, next_cursor } = list;
    let rows = files.iter().map(|file| {
        let path = file.file.as_str();
        let name = path.strip_prefix(file.folder.as_str().trim_end_matches('/')).unwrap_or(path);
        LatestRow {
            address: address_of(path),
            name: name.trim_start_matches('/').to_owned(),
            folder: file.folder.to_string(),
            edits: format::number(file.edits),
            reads: format::number(file.reads),
            sessions: format::number(file.sessions),
            at: file.last_at.clone().map(|at| (at.clone(), format::minute(&at))),
        }
    });
    Ok(Some(LatestPage {
        frame: Frame::new("/files", "Latest files", theme),
        rows: rows.collect(),
        more: next_cursor.map(|cursor| format!("/files?view=latest&cursor={}", in_address(&cursor))),
    }))
}
