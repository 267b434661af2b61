//! Full-text search.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{Params, SearchParameters};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::SearchAnswer;

/// Search sessions and the library
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(SearchParameters),
    responses((status = 200, description = "A page of results with their best passages", body = SearchAnswer),
              Refusals))]
pub async fn found(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<SearchParameters>,
) -> Answered {
    let query = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| view.search(&query).map(Some)).await)
}
