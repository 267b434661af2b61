//! Members in the caller's scope, and who saw their sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{AccessParameters, Nothing, Params};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{AccessList, MemberView};

#[derive(Debug, Serialize, ToSchema)]
pub struct MemberAnswer {
    members: Vec<MemberView>,
    next_cursor: Option<String>,
}

/// List the members whose sessions the caller sees
#[utoipa::path(get, path = "/api/v1/members", tag = "members",
    responses((status = 200, description = "All members in scope: of a member, only they", body = MemberAnswer), Refusals))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, |view| {
        Ok(Some(MemberAnswer { members: view.members()?, next_cursor: None }))
    })
    .await
}

/// List who sees the sessions in scope, and who read them
#[utoipa::path(get, path = "/api/v1/access", tag = "members", params(AccessParameters),
    responses((status = 200, description = "A page of the log, the latest first", body = AccessList), Refusals))]
pub async fn access(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<AccessParameters>,
) -> Answered {
    let query = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| view.accesses(&query).map(Some)).await)
}
