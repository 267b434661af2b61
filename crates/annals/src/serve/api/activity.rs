//! What pages show beside lists: all sessions, activity by day, and a session from above.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::parameters::{
    AllSessionParameters, BranchParameters, DailyParameters, InPath, Nothing, OfSource, Params,
};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view;
use crate::view::{
    Activity, Branch, DailyUsage, LineView, Outline, SessionList, SessionQuery, exact_session,
};

/// Days of a heat map.
const YEAR: i64 = 371;

/// Sessions of all sources, newest first
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", params(AllSessionParameters),
    responses((status = 200, description = "A page of sessions", body = SessionList), Refusals))]
pub async fn all_sessions(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<AllSessionParameters>,
) -> Answered {
    let (filter, page) = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| {
        let ask = SessionQuery { filter, page, brief: true };
        view::sessions(desk.scope, desk.store, desk.door, &ask, desk.now).map(Some)
    })
    .await)
}

/// Messages by day of the last year
#[utoipa::path(get, path = "/api/v1/activity", tag = "usage",
    responses((status = 200, description = "Days on which something was said", body = Activity), Refusals))]
pub async fn year(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, asker, headers, |desk| view::activity(desk.scope, desk.store, YEAR, desk.now).map(Some)).await
}

/// Tokens and cost of each day by model
#[utoipa::path(get, path = "/api/v1/usage/days", tag = "usage", params(DailyParameters),
    responses((status = 200, description = "Days with responses", body = DailyUsage), Refusals))]
pub async fn days(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<DailyParameters>,
) -> Answered {
    let (filter, days) = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| {
        view::daily_usage(desk.scope, desk.store, desk.door, &filter, days, desk.now).map(Some)
    })
    .await)
}

/// The prompts of a session and how many steps it has
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/outline", tag = "sessions",
    params(("source" = String, Path, description = "The name of a source"),
           ("session_id" = String, Path, description = "The whole id of a session"), BranchParameters),
    responses((status = 200, description = "The session from above", body = Outline), Refusals))]
pub async fn outline(
    State(app): State<Arc<App>>,
    asker: Asker,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<BranchParameters>,
) -> Response {
    answer(app, asker, headers, move |desk| {
        let found = exact_session(desk.scope, desk.store, desk.door, source, &path.session_id, desk.now)?;
        let branch = Branch::named(parameters.branch.as_deref());
        found.map(|session| view::outline(desk.scope, desk.store, desk.door, &session, &branch)).transpose()
    })
    .await
}

#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct LineAnswer {
    lines: Vec<LineView>,
    next_cursor: Option<String>,
}

/// The captured lines of one message or call
#[utoipa::path(get, path = "/api/v1/agent-sessions/{source}/sessions/{session_id}/lines/{key}", tag = "sessions",
    params(("source" = String, Path, description = "The name of a source"),
           ("session_id" = String, Path, description = "The whole id of a session"),
           ("key" = String, Path, description = "The id of a message")),
    responses((status = 200, description = "Lines as the client wrote them", body = LineAnswer), Refusals))]
pub async fn lines(
    State(app): State<Arc<App>>,
    asker: Asker,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, asker, headers, move |desk| {
        let found = exact_session(desk.scope, desk.store, desk.door, source, &path.session_id, desk.now)?;
        let Some(session) = found else { return Ok(None) };
        let lines = view::lines(desk.scope, desk.store, desk.door, &session, &path.key)?;
        Ok(lines.map(|lines| LineAnswer { lines, next_cursor: None }))
    })
    .await
}
