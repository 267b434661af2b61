//! Search over everything that was said and done.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{Params, SearchParameters};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view;
use crate::view::SearchAnswer;

/// Sessions and authored things that hold what was asked for, best first
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(SearchParameters),
    responses((status = 200, description = "A page of sessions with their best passages", body = SearchAnswer),
              Refusals))]
pub async fn found(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<SearchParameters>,
) -> Answered {
    let ask = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| {
        view::search(desk.scope, desk.store, desk.door, &ask, desk.now).map(Some)
    })
    .await)
}
