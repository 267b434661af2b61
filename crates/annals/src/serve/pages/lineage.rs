//! The lineage page: a file as last archived, each line with the session that wrote it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;

use super::html::{Html, in_address, text};
use super::plot::{Bar, Series, Unit, stacked_bars};
use super::{Frame, Theme, html_response};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, with_view};
use crate::serve::api::parameters::{LineageParameters, LineageRequest, Params};
use crate::view::format;
use crate::view::{FileList, FoundFile, Lineage, Origin, UnseenFile, WrittenByMonth};
use annals_core::{Error, Shown};

#[derive(Template)]
#[template(path = "lineage.html")]
struct LineagePage {
    frame: Frame,
    name: String,
    file: String,
    search: String,
    about: String,
    /// Path and address of files that fit as well.
    others: Vec<(String, String)>,
    stretches: Vec<Stretch>,
}

#[derive(Template)]
#[template(path = "lineage_files.html")]
struct FilesPage {
    frame: Frame,
    plot: Option<Html>,
    legend: Vec<Series>,
    rows: Vec<FileRow>,
    more: Option<String>,
}

struct FileRow {
    address: String,
    name: String,
    folder: String,
    edits: String,
    reads: String,
    sessions: String,
    when: String,
}

#[derive(Template)]
#[template(path = "lineage_unseen.html")]
struct UnseenPage {
    frame: Frame,
    name: String,
    file: String,
    reason: String,
    part: Option<String>,
    others: Vec<(String, String)>,
    edits: Vec<EditRow>,
}

struct EditRow {
    origin: (String, String, String, String),
    operation: &'static str,
    line: Option<u32>,
    before: Option<Html>,
    after: Option<Html>,
}

struct Stretch {
    grade: &'static str,
    /// Address, title, prompt, time and model.
    origin: Option<(String, String, String, String)>,
    lines: Vec<(usize, Html)>,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<LineageParameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let request = parameters.of_form().read()?;
    let rendered = with_view(app, caller, move |view| {
        let page = match &request {
            LineageRequest::List(page) => {
                let files = view.lineage_files(page)?;
                // The plot is about all files: it belongs to the first page.
                let written = page.cursor.is_none().then(|| view.written_by_month()).transpose()?;
                files.map(|files| {
                    (StatusCode::OK, files_page(&files, &written.unwrap_or_default(), theme).render())
                })
            }
            LineageRequest::File(query) => view.lineage(query)?.map(|found| match found {
                FoundFile::Known(lineage, lines) => {
                    (StatusCode::OK, lineage_page(&lineage, &lines, theme).render())
                }
                FoundFile::Unseen(unseen) => (StatusCode::NOT_FOUND, unseen_page(&unseen, theme).render()),
            }),
        };
        let Some((status, html)) = page else { return Ok(None) };
        Ok(Some((status, html.map_err(|_| Error::new("cannot render the page"))?)))
    });
    Ok(match rendered.await? {
        Some((status, html)) => html_response(status, html),
        None => Refusal::not_found("not found").hint("/files lists the files").into_response(),
    })
}

fn address_of(file: &str) -> String {
    format!("/lineage?file={}", in_address(file))
}

fn others_of(others: &[Shown]) -> Vec<(String, String)> {
    others.iter().map(|path| (path.to_string(), address_of(path.as_str()))).collect()
}

fn files_page(list: &FileList, written: &WrittenByMonth, theme: Theme) -> FilesPage {
    let bars: Vec<Bar> = written
        .months
        .iter()
        .map(|(month, lines)| Bar {
            label: month.clone(),
            tick: month.clone(),
            href: format!("/sessions?since={month}-01&until={}", format::month_after(month)),
            parts: lines.iter().map(|lines| *lines as f64).collect(),
        })
        .collect();
    let models = written.models.iter().enumerate();
    let legend: Vec<Series> = models.map(|(number, model)| Series::numbered(number, model.clone())).collect();
    let plot = (!bars.is_empty())
        .then(|| stacked_bars(&bars, &legend, Unit::Lines, "Lines written by sessions, by month and model"));
    let rows = list.files.iter().map(|file| {
        let path = file.file.as_str();
        let name = path.strip_prefix(file.folder.as_str().trim_end_matches('/')).unwrap_or(path);
        FileRow {
            address: address_of(path),
            name: name.trim_start_matches('/').to_owned(),
            folder: file.folder.to_string(),
            edits: format::number(file.edits),
            reads: format::number(file.reads),
            sessions: format::number(file.sessions),
            when: file.last_at.as_deref().map_or(String::new(), format::minute),
        }
    });
    FilesPage {
        frame: Frame::new("/files", "Files", theme),
        plot,
        legend,
        rows: rows.collect(),
        more: list.next_cursor.as_ref().map(|cursor| format!("/files?cursor={}", in_address(cursor))),
    }
}

fn unseen_page(unseen: &UnseenFile, theme: Theme) -> UnseenPage {
    let file = unseen.file.to_string();
    let name = format::last_part(&file).to_owned();
    let shown = |shown: &Option<Shown>| shown.as_ref().map(|shown| text(shown.as_str()));
    let edits = unseen.edits.iter().map(|edit| EditRow {
        origin: describe_origin(&edit.origin),
        operation: edit.operation,
        line: edit.start,
        before: shown(&edit.before),
        after: shown(&edit.after),
    });
    UnseenPage {
        frame: Frame::new("/files", name.clone(), theme),
        name,
        file,
        reason: unseen.reason(),
        part: unseen.shown_part(),
        others: others_of(&unseen.others),
        edits: edits.collect(),
    }
}

fn lineage_page(lineage: &Lineage, lines: &[Shown], theme: Theme) -> LineagePage {
    let blame = &lineage.blame;
    let file = blame.file.to_string();
    let name = format::last_part(&file).to_owned();
    let grades = &blame.lines;
    let mut about = format!(
        "{}: {} exact, {} moved, {} changed, {} read, {} unknown.",
        format::counted(grades.total as i64, "line"),
        grades.exact,
        grades.moved,
        grades.changed,
        grades.read,
        grades.unknown
    );
    if let Some(at) = &lineage.seen_at {
        about.push_str(&format!(
            " Content as of {} UTC, when a session last saw the file.",
            format::minute(at)
        ));
    }
    if !lineage.complete {
        about.push_str(" Some edits could not be applied: the file may differ.");
    }
    let stretches = blame.spans.iter().map(|span| {
        let numbered = (span.start..=span.end).map(|number| {
            (number, lines.get(number - 1).map_or(Html::default(), |line| text(line.as_str())))
        });
        let origin = span.origin.and_then(|number| blame.origins.get(number));
        Stretch { grade: span.grade, origin: origin.map(describe_origin), lines: numbered.collect() }
    });
    LineagePage {
        frame: Frame::new("/files", name.clone(), theme),
        name,
        search: in_address(&format!("file:\"{file}\"")),
        file,
        about,
        others: others_of(&lineage.others),
        stretches: stretches.collect(),
    }
}

fn describe_origin(origin: &Origin) -> (String, String, String, String) {
    let address = format!(
        "/sessions/{}/{}?at={2}#m-{2}",
        origin.source,
        in_address(&origin.session_id),
        in_address(&origin.message_id)
    );
    let title = origin.heading().map_or("untitled".to_owned(), ToString::to_string);
    let prompt = origin.prompt.as_ref().map_or(String::new(), ToString::to_string);
    let when = origin.at.as_deref().map_or(String::new(), format::minute);
    let model = origin.model.clone().unwrap_or_default();
    let parts: Vec<&str> = [when.as_str(), model.as_str(), origin.tool.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    (address, title, prompt, parts.join(" · "))
}
