//! What the caller arranged: sessions, messages and projects, and saved searches. Everyone has their own.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::parameters::{InPath, Nothing, OfSource, Params, ProjectParameters};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, BodyRefusals, Refusal, Refusals, answer, arrange};
use crate::view::{ArrangementPatch, ArrangementView, SavedSearch, View};
use annals_core::{Arranged, Arrangement, Result};

/// Bytes of a request: a note of control characters is six times as long in JSON.
pub const LONGEST_BODY: usize = 8 << 20;

/// What a request is about.
#[derive(Debug, Clone)]
enum Subject {
    /// Source, session, message.
    Part(&'static str, String, Option<String>),
    Project(String),
}

impl Subject {
    fn of_session(source: &'static str, path: InPath) -> Subject {
        Subject::Part(source, path.session_id, None)
    }

    fn of_message(source: &'static str, path: InPath) -> Subject {
        Subject::Part(source, path.session_id, Some(path.key))
    }

    fn find(&self, view: &View<'_>) -> Result<Option<Arranged>> {
        match self {
            Subject::Part(source, id, message) => match view.exact_session(source, id)? {
                Some(session) => view.arranged_part(&session, message.as_deref()),
                None => Ok(None),
            },
            Subject::Project(path) => view.arranged_project(path),
        }
    }
}

async fn shown(app: Arc<App>, caller: Caller, headers: HeaderMap, subject: Subject) -> Response {
    answer(app, caller, headers, move |view| subject.find(view)?.map(|of| view.arrangement(&of)).transpose())
        .await
}

async fn patched(
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    subject: Subject,
    patch: ArrangementPatch,
) -> Answered {
    let changed = subject.clone();
    let versions = move |view: &View<'_>| -> Result<Option<Vec<Arrangement>>> {
        changed.find(view)?.map(|of| view.arranging(&of, &patch)).transpose()
    };
    match arrange(&app, caller, versions).await? {
        Some(()) => Ok(shown(app, caller, headers, subject).await),
        None => Err(Refusal::not_found("not found")),
    }
}

/// The body of a request. Forms of other sites cannot send JSON.
fn read_body<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> std::result::Result<T, Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not JSON")
            .hint("send it with `Content-Type: application/json`"));
    }
    serde_json::from_slice(body).map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, format!("cannot read the body: {error}"))
            .hint("/docs lists the fields")
    })
}

/// Get what you arranged of a session
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/arrangement", tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session")),
    responses((status = 200, description = "Star, name, tags, note, and whether it is hidden", body = ArrangementView),
              Refusals))]
pub async fn of_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    shown(app, caller, headers, Subject::of_session(source, path)).await
}

/// Star, name, tag, annotate or hide a session
#[utoipa::path(patch, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/arrangement", tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session")),
    request_body = ArrangementPatch,
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView),
              Refusals, BodyRefusals))]
pub async fn patch_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
    body: Bytes,
) -> Answered {
    let patch = read_body(&headers, &body)?;
    patched(app, caller, headers, Subject::of_session(source, path), patch).await
}

/// Remove what you arranged of a session
#[utoipa::path(delete, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/arrangement", tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session")),
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView), Refusals))]
pub async fn delete_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Answered {
    let subject = Subject::of_session(source, path);
    patched(app, caller, headers, subject, ArrangementPatch::clearing()).await
}

/// Get what you arranged of a message
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/messages/{key}/arrangement",
    tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"),
           ("key" = String, Path, description = "Id of the message")),
    responses((status = 200, description = "Star, name, tags and note", body = ArrangementView), Refusals))]
pub async fn of_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    shown(app, caller, headers, Subject::of_message(source, path)).await
}

/// Star, name, tag or annotate a message
#[utoipa::path(patch, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/messages/{key}/arrangement",
    tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"),
           ("key" = String, Path, description = "Id of the message")),
    request_body = ArrangementPatch,
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView),
              Refusals, BodyRefusals))]
pub async fn patch_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
    body: Bytes,
) -> Answered {
    let patch = read_body(&headers, &body)?;
    patched(app, caller, headers, Subject::of_message(source, path), patch).await
}

/// Remove what you arranged of a message
#[utoipa::path(delete, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/messages/{key}/arrangement",
    tag = "arrangement",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"),
           ("key" = String, Path, description = "Id of the message")),
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView), Refusals))]
pub async fn delete_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Answered {
    let subject = Subject::of_message(source, path);
    patched(app, caller, headers, subject, ArrangementPatch::clearing()).await
}

/// Get what you arranged of a project
#[utoipa::path(get, path = "/api/v1/projects/arrangement", tag = "arrangement", params(ProjectParameters),
    responses((status = 200, description = "Star, name, tags, note, and whether it is hidden", body = ArrangementView),
              Refusals))]
pub async fn of_project(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<ProjectParameters>,
) -> Response {
    shown(app, caller, headers, Subject::Project(parameters.project)).await
}

/// Star, name, tag, annotate or hide a project
#[utoipa::path(patch, path = "/api/v1/projects/arrangement", tag = "arrangement", params(ProjectParameters),
    request_body = ArrangementPatch,
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView),
              Refusals, BodyRefusals))]
pub async fn patch_project(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<ProjectParameters>,
    body: Bytes,
) -> Answered {
    let patch = read_body(&headers, &body)?;
    patched(app, caller, headers, Subject::Project(parameters.project), patch).await
}

/// Remove what you arranged of a project
#[utoipa::path(delete, path = "/api/v1/projects/arrangement", tag = "arrangement", params(ProjectParameters),
    responses((status = 200, description = "The arrangement after the change", body = ArrangementView), Refusals))]
pub async fn delete_project(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<ProjectParameters>,
) -> Answered {
    let subject = Subject::Project(parameters.project);
    patched(app, caller, headers, subject, ArrangementPatch::clearing()).await
}

#[derive(Serialize, ToSchema)]
pub struct SearchesAnswer {
    searches: Vec<SavedSearch>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchToSave {
    /// As in `q` of a search
    query: String,
}

/// List saved searches
#[utoipa::path(get, path = "/api/v1/searches", tag = "arrangement",
    responses((status = 200, description = "Your saved searches, by name", body = SearchesAnswer), Refusals))]
pub async fn searches(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, |view| {
        Ok(Some(SearchesAnswer { searches: view.saved_searches()?, next_cursor: None }))
    })
    .await
}

/// Save a search under a name
#[utoipa::path(put, path = "/api/v1/searches/{name}", tag = "arrangement",
    params(("name" = String, Path, description = "Name of the saved search")), request_body = SearchToSave,
    responses((status = 200, description = "Your saved searches after the change", body = SearchesAnswer),
              Refusals, BodyRefusals))]
pub async fn save_search(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
    body: Bytes,
) -> Answered {
    let SearchToSave { query } = read_body(&headers, &body)?;
    arrange(&app, caller, move |view| view.saving(&path.name, Some(&query)).map(Some)).await?;
    Ok(searches(State(app), caller, headers, Params(Nothing {})).await)
}

/// Remove a saved search
#[utoipa::path(delete, path = "/api/v1/searches/{name}", tag = "arrangement",
    params(("name" = String, Path, description = "Name of the saved search")),
    responses((status = 200, description = "Your saved searches after the change", body = SearchesAnswer), Refusals))]
pub async fn remove_search(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Answered {
    let removed = arrange(&app, caller, move |view| {
        let is_known = view.query_of_saved(&path.name)?.is_some();
        Ok(if is_known { Some(view.saving(&path.name, None)?) } else { None })
    });
    match removed.await? {
        Some(()) => Ok(searches(State(app), caller, headers, Params(Nothing {})).await),
        None => Err(Refusal::not_found("no search is saved under this name")),
    }
}
