//! Tokens and estimated cost, and the responses behind them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{Params, UsageParameters};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::{Answered, Desk, Refusals, answer};
use crate::view;
use crate::view::{ResponsePage, UsageQuery, UsageReport, exact_session};
use annals_core::Result;

/// Get tokens and estimated cost, each response counted once
#[utoipa::path(get, path = "/api/v1/usage", tag = "usage", params(UsageParameters),
    responses((status = 200, description = "Sums, and models without a price", body = UsageReport), Refusals))]
pub async fn sums(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<UsageParameters>,
) -> Answered {
    ask(app, asker, headers, parameters, view::usage).await
}

/// List the responses behind the sums, and copies that are not counted
#[utoipa::path(get, path = "/api/v1/usage/responses", tag = "usage", params(UsageParameters),
    responses((status = 200, description = "A page of responses, each with its price", body = ResponsePage),
              Refusals))]
pub async fn responses(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<UsageParameters>,
) -> Answered {
    ask(app, asker, headers, parameters, view::responses).await
}

type Question<T> =
    fn(&annals_core::Scope, &annals_store::Store, &view::Door, &UsageQuery, annals_core::Time) -> Result<T>;

async fn ask<T: serde::Serialize + 'static>(
    app: Arc<App>,
    asker: Asker,
    headers: HeaderMap,
    parameters: UsageParameters,
    question: Question<T>,
) -> Answered {
    let (mut ask, session) = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk: &Desk<'_>| {
        if let Some((source, id)) = session {
            let found = exact_session(desk.scope, desk.store, desk.door, &source, &id, desk.now)?;
            let Some(session) = found else { return Ok(None) };
            ask.filter.session = Some(session.row);
            // One session is wanted whole, however old it is.
            ask.days = None;
        }
        question(desk.scope, desk.store, desk.door, &ask, desk.now).map(Some)
    })
    .await)
}
