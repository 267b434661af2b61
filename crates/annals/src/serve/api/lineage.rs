//! The origin of lines of code, for files that sessions worked on.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{LineageParameters, Params};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::Lineage;

/// Get which session, prompt and tool call wrote each line of a file
///
/// No file on disk is read: the lines are those that sessions wrote or read. Available only to the owner, and only
/// for files below the directory of a session.
#[utoipa::path(get, path = "/api/v1/lineage", tag = "lineage", params(LineageParameters),
    responses((status = 200, description = "Spans of lines with their origins", body = Lineage), Refusals))]
pub async fn of_file(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<LineageParameters>,
) -> Answered {
    let query = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| view.lineage(&query)).await)
}
