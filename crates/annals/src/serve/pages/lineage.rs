//! The lineage page: a file as last archived, each line with the session that wrote it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;

use super::html::{Html, in_address, text};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::{LineageParameters, Params};
use crate::view::format;
use crate::view::{Lineage, Origin};
use annals_core::Shown;

#[derive(Template)]
#[template(path = "lineage.html")]
struct LineagePage {
    frame: Frame,
    name: String,
    file: String,
    search: String,
    about: String,
    stretches: Vec<Stretch>,
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
    let query = parameters.read()?;
    Ok(render(app, caller, move |view| {
        let found = view.lineage_with_text(&query)?;
        Ok(found.map(|(lineage, lines)| lineage_page(&lineage, &lines, theme)))
    })
    .await)
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
        frame: Frame::new("/sessions", name.clone(), theme),
        name,
        search: in_address(&format!("file:\"{file}\"")),
        file,
        about,
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
    let title = origin.title.as_ref().map_or("untitled".to_owned(), ToString::to_string);
    let prompt = origin.prompt.as_ref().map_or(String::new(), ToString::to_string);
    let when = origin.at.as_deref().map_or(String::new(), format::minute);
    let model = origin.model.clone().unwrap_or_default();
    let parts: Vec<&str> = [when.as_str(), model.as_str(), origin.tool.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    (address, title, prompt, parts.join(" · "))
}
