//! Tokens and estimated cost, and the responses behind them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{Params, UsageParameters};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{ResponsePage, UsageQuery, UsageReport, View};
use annals_core::Result;

/// Get tokens and estimated cost, each response counted once
#[utoipa::path(get, path = "/api/v1/usage", tag = "usage", params(UsageParameters),
    responses((status = 200, description = "Sums, and models without a price", body = UsageReport), Refusals))]
pub async fn sums(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<UsageParameters>,
) -> Answered {
    answer_usage(app, caller, headers, parameters, |view, query| view.usage(query)).await
}

/// List the responses behind the sums, and copies that are not counted
#[utoipa::path(get, path = "/api/v1/usage/responses", tag = "usage", params(UsageParameters),
    responses((status = 200, description = "A page of responses, each with its price", body = ResponsePage),
              Refusals))]
pub async fn responses(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<UsageParameters>,
) -> Answered {
    answer_usage(app, caller, headers, parameters, |view, query| view.responses(query)).await
}

type Question<T> = fn(&View<'_>, &UsageQuery) -> Result<T>;

async fn answer_usage<T: serde::Serialize + 'static>(
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    parameters: UsageParameters,
    question: Question<T>,
) -> Answered {
    let (mut query, session) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view: &View<'_>| {
        if let Some((source, id)) = session {
            let found = view.exact_session(&source, &id)?;
            let Some(session) = found else { return Ok(None) };
            query.filter.session = Some(session.row);
            // A single session is complete, however old it is.
            query.days = None;
        }
        question(view, &query).map(Some)
    })
    .await)
}
