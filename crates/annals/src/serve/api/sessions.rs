//! Sessions, their messages and tool analytics: the same four routes for every source.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;

use super::arrangement;
use super::parameters::{
    DayParameters, InPath, MessageParameters, Nothing, OfSource, Params, SessionParameters,
};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{
    SessionList, SessionQuery, SessionView, SourceState, ToolAnalytics, ToolsQuery, TranscriptPage,
    find_source,
};

/// Below `/api/v1/agent-sessions/{source}`, and below the route of each source.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sessions", get(list))
        .route("/sessions/{session_id}", get(one))
        .route("/sessions/{session_id}/messages", get(messages))
        .route(
            "/sessions/{session_id}/arrangement",
            get(arrangement::of_session)
                .patch(arrangement::patch_session)
                .delete(arrangement::delete_session),
        )
        .route(
            "/sessions/{session_id}/messages/{key}/arrangement",
            get(arrangement::of_message)
                .patch(arrangement::patch_message)
                .delete(arrangement::delete_message),
        )
        .route("/sessions/{session_id}/outline", get(super::activity::outline))
        .route("/sessions/{session_id}/lines/{key}", get(super::activity::lines))
        .route("/analytics/tools", get(analytics))
}

#[derive(Serialize, ToSchema)]
pub struct SessionAnswer {
    #[serde(flatten)]
    state: SourceState,
    #[serde(flatten)]
    list: SessionList,
}

/// List sessions of a source, newest first
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"), SessionParameters),
    responses((status = 200, description = "A page of sessions, with the status of the source", body = SessionAnswer),
              Refusals))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    headers: HeaderMap,
    Params(parameters): Params<SessionParameters>,
) -> Answered {
    let (filter, page) = parameters.read(source)?;
    Ok(answer(app, caller, headers, move |view| {
        let Some(source) = find_source(source) else { return Ok(None) };
        let state = view.source_state(source)?;
        let query = SessionQuery { filter, page, brief: true };
        let list = view.sessions(&query)?;
        Ok(Some(SessionAnswer { state, list }))
    })
    .await)
}

/// Get a session
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session")),
    responses((status = 200, description = "The session", body = SessionView), Refusals))]
pub async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, move |view| view.exact_session(source, &path.session_id)).await
}

#[derive(Serialize, ToSchema)]
pub struct MessageAnswer {
    source: &'static str,
    session_id: String,
    #[serde(flatten)]
    page: TranscriptPage,
}

/// List the messages of a session, in order
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/messages", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"), MessageParameters),
    responses((status = 200, description = "A page of messages and tool calls with their results",
               body = MessageAnswer), Refusals))]
pub async fn messages(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<MessageParameters>,
) -> Answered {
    let (query, page) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| {
        let found = view.exact_session(source, &path.session_id)?;
        let Some(session) = found else { return Ok(None) };
        let page = view.transcript_page(&session, query, &page)?;
        Ok(Some(MessageAnswer { source, session_id: session.session_id, page }))
    })
    .await)
}

/// Count tool calls, files and commands of a source
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/analytics/tools", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"), DayParameters),
    responses((status = 200, description = "Counts in this period", body = ToolAnalytics), Refusals))]
pub async fn analytics(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    headers: HeaderMap,
    Params(parameters): Params<DayParameters>,
) -> Answered {
    let days = parameters.read()?;
    let project = parameters.project;
    Ok(answer(app, caller, headers, move |view| {
        let Some(source) = find_source(source) else { return Ok(None) };
        let query = ToolsQuery { source, days, since: None, until: None, machine: None, project };
        view.tools(&query).map(Some)
    })
    .await)
}
