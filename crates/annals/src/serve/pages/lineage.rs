//! The pages about one file: each line with the session that wrote it, and its edits with their prompts; and about a text
//! from anywhere.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;

use super::arrange::read;
use super::assistant::colour;
use super::diff::push_diff;
use super::files;
use super::filters::Filters;
use super::html::{Html, in_address, text};
use super::{Frame, PageRequest, Theme, html_response, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, with_view};
use crate::serve::api::parameters::Params;
use crate::view::format;
use crate::view::{
    Blame, CodeFile, FileEdit, FileHistory, FoundFile, Lineage, LineageQuery, Origin, Paging, UnseenFile,
    View,
};
use annals_core::{Error, Result, Shown};

/// Edits in a page of a history.
const EDITS: i64 = 30;

#[derive(Template)]
#[template(path = "lineage.html")]
struct LineagePage {
    frame: Frame,
    about: AboutFile,
    facts: String,
    assistants: Vec<(String, &'static str)>,
    stretches: Vec<Stretch>,
}

#[derive(Template)]
#[template(path = "lineage_unseen.html")]
struct UnseenPage {
    frame: Frame,
    about: AboutFile,
    reason: String,
    part: Option<String>,
    prompts: Vec<PromptEdits>,
}

#[derive(Template)]
#[template(path = "lineage_history.html")]
struct HistoryPage {
    frame: Frame,
    about: AboutFile,
    touches: String,
    prompts: Vec<PromptEdits>,
    more: Option<String>,
}

#[derive(Template)]
#[template(path = "lineage_text.html")]
struct TextPage {
    frame: Frame,
    facts: String,
    assistants: Vec<(String, &'static str)>,
    stretches: Vec<Stretch>,
}

/// What the pages about a file have in common.
struct AboutFile {
    name: String,
    file: String,
    /// The folder that contains it: its path and its address.
    folder: Option<(String, String)>,
    search: String,
    lines: String,
    history: String,
    /// What opens it in an editor.
    editor: Option<String>,
    /// Path and address of files that fit as well.
    others: Vec<(String, String)>,
}

impl AboutFile {
    fn of(view: &View<'_>, file: &str, others: &[Shown]) -> AboutFile {
        let folder = file.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty());
        AboutFile {
            name: format::last_part(file).to_owned(),
            folder: folder.map(|folder| (folder.to_owned(), format!("/files?folder={}", in_address(folder)))),
            search: format!("/search?q={}", in_address(&format!("file:\"{file}\""))),
            lines: address_of(file),
            history: format!("{}&view=history", address_of(file)),
            editor: view
                .preferences()
                .and_then(|preferences| preferences.editor.as_ref()?.address(file, None)),
            others: others.iter().map(|path| (path.to_string(), address_of(path.as_str()))).collect(),
            file: file.to_owned(),
        }
    }
}

/// Edits in a row that one prompt led to.
struct PromptEdits {
    origin: OriginLine,
    edits: Vec<EditLine>,
}

struct EditLine {
    operation: &'static str,
    at: Option<(String, String)>,
    diff: Html,
}

struct Stretch {
    grade: &'static str,
    origin: Option<OriginLine>,
    lines: Vec<(usize, Html)>,
}

/// The call that wrote something, as it is shown.
struct OriginLine {
    href: String,
    title: String,
    prompt: String,
    /// For machines, and as shown without a script.
    at: Option<(String, String)>,
    /// Model and tool.
    facts: String,
    colour: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    file: String,
    /// `history`, or nothing for lines.
    view: String,
    start: Option<usize>,
    end: Option<usize>,
    cursor: String,
}

pub(super) async fn page(asker: PageRequest, Params(parameters): Params<Parameters>) -> Answered {
    if parameters.file.trim().is_empty() {
        return files::show(asker, Filters::default(), files::Parameters::default()).await;
    }
    let PageRequest { app, caller, theme } = asker;
    match parameters.view.as_str() {
        "" => lines(app, caller, parameters, theme).await,
        "history" => Ok(render(app, caller, move |view| history_page(view, &parameters, theme)).await),
        _ => Err(Error::bad_request("invalid value of `view`").hint("use history, or leave it out"))?,
    }
}

async fn lines(app: Arc<App>, caller: Caller, parameters: Parameters, theme: Theme) -> Answered {
    let query = LineageQuery { file: parameters.file, start: parameters.start, end: parameters.end };
    let rendered = with_view(app, caller, move |view| {
        let page = view.lineage(&query)?.map(|found| match found {
            FoundFile::Known(lineage, lines) => {
                (StatusCode::OK, lineage_page(view, &lineage, &lines, theme).render())
            }
            FoundFile::Unseen(unseen) => (StatusCode::NOT_FOUND, unseen_page(view, &unseen, theme).render()),
        });
        let Some((status, html)) = page else { return Ok(None) };
        Ok(Some((status, html.map_err(|_| Error::new("cannot render the page"))?)))
    });
    Ok(match rendered.await? {
        Some((status, html)) => html_response(status, html),
        None => Refusal::not_found("no session worked on such a file")
            .hint("/files lists the files that sessions worked on")
            .into_response(),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextForm {
    text: String,
}

/// Traces a text that was pasted.
pub(super) async fn pasted(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    form: std::result::Result<Form<TextForm>, FormRejection>,
) -> Answered {
    let theme = Theme::of(&headers);
    let text = read(form)?.text.replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(Error::bad_request("the text is empty").hint("paste some lines of it").into());
    }
    Ok(render(app, caller, move |view| text_page(view, text, theme)).await)
}

pub(super) fn address_of(file: &str) -> String {
    format!("/lineage?file={}", in_address(file))
}

fn unseen_page(view: &View<'_>, unseen: &UnseenFile, theme: Theme) -> UnseenPage {
    let about = AboutFile::of(view, unseen.file.as_str(), &unseen.others);
    UnseenPage {
        frame: Frame::new("/files", about.name.clone(), theme),
        about,
        reason: unseen.reason(),
        part: unseen.shown_part(),
        prompts: by_prompt(&unseen.edits),
    }
}

fn history_page(view: &View<'_>, parameters: &Parameters, theme: Theme) -> Result<Option<HistoryPage>> {
    let cursor = Some(parameters.cursor.clone()).filter(|cursor| !cursor.is_empty());
    let page = Paging { limit: EDITS, cursor };
    let Some(history) = view.file_history(parameters.file.trim(), &page)? else { return Ok(None) };
    let FileHistory { file, touches, edits, others, next_cursor } = history;
    let about = AboutFile::of(view, file.as_str(), &others);
    Ok(Some(HistoryPage {
        frame: Frame::new("/files", about.name.clone(), theme),
        touches: format::counted(touches, "time"),
        prompts: by_prompt(&edits),
        more: next_cursor.map(|cursor| format!("{}&cursor={}", about.history, in_address(&cursor))),
        about,
    }))
}

fn by_prompt(edits: &[FileEdit]) -> Vec<PromptEdits> {
    let mut prompts: Vec<PromptEdits> = Vec::new();
    let mut before = None;
    for edit in edits {
        let of = (&edit.origin.source, &edit.origin.session_id, &edit.origin.prompt_id);
        if before != Some(of) {
            prompts.push(PromptEdits { origin: describe(&edit.origin), edits: Vec::new() });
            before = Some(of);
        }
        let mut diff = String::new();
        push_diff(&mut diff, edit.diff().as_str());
        let at = edit.origin.at.clone().map(|at| (at.clone(), format::minute(&at)));
        if let Some(prompt) = prompts.last_mut() {
            prompt.edits.push(EditLine { operation: edit.operation, at, diff: Html(diff) });
        }
    }
    prompts
}

fn lineage_page(view: &View<'_>, lineage: &Lineage, lines: &[Shown], theme: Theme) -> LineagePage {
    let blame = &lineage.blame;
    let about = AboutFile::of(view, blame.file.as_str(), &lineage.others);
    let mut facts = grades(blame);
    if let Some(at) = &lineage.seen_at {
        facts.push_str(&format!(
            " Content as of {} UTC, when a session last saw the file.",
            format::minute(at)
        ));
    }
    if !lineage.complete {
        facts.push_str(" Some edits could not be applied: the file may differ.");
    }
    LineagePage {
        frame: Frame::new("/files", about.name.clone(), theme),
        about,
        facts,
        assistants: assistants(blame),
        stretches: stretches(blame, lines),
    }
}

fn text_page(view: &View<'_>, text: String, theme: Theme) -> Result<Option<TextPage>> {
    let file = CodeFile { path: String::new(), root: None, text, deadlines: Vec::new() };
    let Some((blame, lines)) = view.blame_text(&file)? else { return Ok(None) };
    Ok(Some(TextPage {
        frame: Frame::new("/files", "Who wrote this text", theme),
        facts: grades(&blame),
        assistants: assistants(&blame),
        stretches: stretches(&blame, &lines),
    }))
}

fn grades(blame: &Blame) -> String {
    let grades = &blame.lines;
    let parts = [
        (grades.exact, "exact"),
        (grades.moved, "moved"),
        (grades.changed, "changed"),
        (grades.read, "read"),
        (grades.unknown, "unknown"),
    ];
    let parts = parts.map(|(count, grade)| format!("{} {grade}", format::number(count)));
    format!("{}: {}.", format::counted(grades.total, "line"), parts.join(", "))
}

/// Those that wrote lines, with their colours.
fn assistants(blame: &Blame) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for origin in &blame.origins {
        let assistant = (colour(&origin.source), origin.provider_label);
        if !found.contains(&assistant) {
            found.push(assistant);
        }
    }
    found
}

fn stretches(blame: &Blame, lines: &[Shown]) -> Vec<Stretch> {
    let stretches = blame.spans.iter().map(|span| {
        let numbered = (span.start..=span.end).map(|number| {
            (number, lines.get(number - 1).map_or(Html::default(), |line| text(line.as_str())))
        });
        let origin = span.origin.and_then(|number| blame.origins.get(number));
        Stretch { grade: span.grade, origin: origin.map(describe), lines: numbered.collect() }
    });
    stretches.collect()
}

fn describe(origin: &Origin) -> OriginLine {
    let parts = [origin.model.clone().unwrap_or_default(), origin.tool.clone()];
    OriginLine {
        href: format!(
            "/sessions/{}/{}?at={2}#m-{2}",
            origin.source,
            in_address(&origin.session_id),
            in_address(&origin.message_id)
        ),
        title: origin.heading().map_or("untitled".to_owned(), ToString::to_string),
        prompt: origin.prompt.as_ref().map_or(String::new(), ToString::to_string),
        at: origin.at.clone().map(|at| (at.clone(), format::minute(&at))),
        facts: parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "),
        colour: colour(&origin.source),
    }
}
