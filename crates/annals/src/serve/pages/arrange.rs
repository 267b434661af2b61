//! Forms that arrange: plain POST requests, which work without script. `serve/access.rs` lets them come only from pages of
//! this server.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::html::{Html, in_address};
use super::markdown::markdown;
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, arrange};
use crate::serve::api::parameters::{InPath, OfSource};
use crate::view::{ArrangementPatch, SessionView};

/// What the session page shows of an arrangement.
pub(super) struct Arranged {
    pub starred: bool,
    /// This session is hidden; `Left out` says that its project or parent may be.
    pub hidden: bool,
    pub name: String,
    pub tags: Vec<(String, String)>,
    /// As the form edits them.
    pub tag_text: String,
    pub note_text: String,
    pub note: Option<Html>,
}

impl Arranged {
    pub(super) fn of(session: &SessionView) -> Arranged {
        let text =
            |text: &Option<annals_core::Shown>| text.as_ref().map(ToString::to_string).unwrap_or_default();
        let tags: Vec<String> = session.tags.iter().map(ToString::to_string).collect();
        Arranged {
            starred: session.starred,
            hidden: session.hidden,
            name: text(&session.name),
            tag_text: tags.join(", "),
            tags: tags.into_iter().map(|tag| (in_address(&tag), tag)).collect(),
            note: session.note.as_ref().map(|note| markdown(note.as_str())),
            note_text: text(&session.note),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionForm {
    starred: Option<bool>,
    hidden: Option<bool>,
    name: Option<String>,
    /// Separated by commas or spaces.
    tags: Option<String>,
    note: Option<String>,
}

impl SessionForm {
    fn patch(self) -> ArrangementPatch {
        let separates = |letter: char| letter == ',' || letter.is_whitespace();
        let tags = self
            .tags
            .map(|text| text.split(separates).filter(|tag| !tag.is_empty()).map(str::to_owned).collect());
        ArrangementPatch {
            starred: self.starred,
            hidden: self.hidden,
            name: self.name.map(Some),
            tags,
            note: self.note.map(Some),
            ..ArrangementPatch::default()
        }
    }
}

/// Changes a session, and shows it again.
pub(super) async fn session(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    form: Result<Form<SessionForm>, FormRejection>,
) -> Answered {
    let address = format!("/sessions/{source}/{}", in_address(&path.session_id));
    let patch = read(form)?.patch();
    let changed = arrange(&app, caller, move |view| {
        let Some(session) = view.exact_session(source, &path.session_id)? else { return Ok(None) };
        let Some(of) = view.arranged_part(&session, None)? else { return Ok(None) };
        let mut patch = patch;
        // A form sends back what it showed: a mask is not what was written.
        patch.name.take_if(|name| name.as_deref() == session.name.as_ref().map(|name| name.as_str()));
        let note = session.note.as_ref().map(|note| note.as_str().replace("\r\n", "\n"));
        patch.note.take_if(|sent| sent.as_ref().map(|sent| sent.replace("\r\n", "\n")) == note);
        view.arranging(&of, &patch).map(Some)
    });
    match changed.await? {
        Some(()) => Ok(see(&address)),
        None => Err(Refusal::not_found("session not found")),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchToSave {
    name: String,
    /// Without one, the search of this name is removed.
    #[serde(default)]
    q: String,
}

/// Saves a search, and runs it; or removes it.
pub(super) async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    form: Result<Form<SearchToSave>, FormRejection>,
) -> Answered {
    let SearchToSave { name, q } = read(form)?;
    let query = Some(q).filter(|query| !query.trim().is_empty());
    let address =
        query.as_deref().map_or("/search".to_owned(), |query| format!("/search?q={}", in_address(query)));
    arrange(&app, caller, move |view| view.saving(&name, query.as_deref()).map(Some)).await?;
    Ok(see(&address))
}

pub(super) fn read<T>(form: Result<Form<T>, FormRejection>) -> Result<T, Refusal> {
    form.map(|Form(form)| form).map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))
}

pub(super) fn see(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}
