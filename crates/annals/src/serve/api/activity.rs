//! Sessions of all sources, activity by day, and the outline of a session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::parameters::{
    AllSessionParameters, BranchParameters, DailyParameters, InPath, Nothing, OfSource, Params,
};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{Activity, Branch, DailyUsage, LineView, Outline, SessionList, SessionQuery};

/// Days of a heat map.
const YEAR: i64 = 371;

/// List sessions of all sources, newest first
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", params(AllSessionParameters),
    responses((status = 200, description = "A page of sessions", body = SessionList), Refusals))]
pub async fn all_sessions(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<AllSessionParameters>,
) -> Answered {
    let (filter, page) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| {
        let query = SessionQuery { filter, page, brief: true };
        view.sessions(&query).map(Some)
    })
    .await)
}

/// Count messages by day in the last year
#[utoipa::path(get, path = "/api/v1/activity", tag = "usage",
    responses((status = 200, description = "Days with messages", body = Activity), Refusals))]
pub async fn year(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, |view| view.activity(YEAR).map(Some)).await
}

/// Get tokens and estimated cost by day and model
#[utoipa::path(get, path = "/api/v1/usage/days", tag = "usage", params(DailyParameters),
    responses((status = 200, description = "Days with responses", body = DailyUsage), Refusals))]
pub async fn days(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<DailyParameters>,
) -> Answered {
    let (filter, days) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| view.daily_usage(&filter, days).map(Some)).await)
}

/// Get the prompts of a session and its number of steps
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/outline", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"), BranchParameters),
    responses((status = 200, description = "Outline of the session", body = Outline), Refusals))]
pub async fn outline(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<BranchParameters>,
) -> Response {
    answer(app, caller, headers, move |view| {
        let found = view.exact_session(source, &path.session_id)?;
        let branch = Branch::parse(parameters.branch.as_deref());
        found.map(|session| view.outline(&session, &branch)).transpose()
    })
    .await
}

#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct LineAnswer {
    lines: Vec<LineView>,
    next_cursor: Option<String>,
}

/// Get the original lines of a message or tool call
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/lines/{key}", tag = "sessions",
    params(("source" = String, Path, description = "Name of the source"),
           ("session_id" = String, Path, description = "Complete id of the session"),
           ("key" = String, Path, description = "Id of the message")),
    responses((status = 200, description = "Lines as the client wrote them", body = LineAnswer), Refusals))]
pub async fn lines(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, move |view| {
        let found = view.exact_session(source, &path.session_id)?;
        let Some(session) = found else { return Ok(None) };
        let lines = view.lines(&session, &path.key)?;
        Ok(lines.map(|lines| LineAnswer { lines, next_cursor: None }))
    })
    .await
}
