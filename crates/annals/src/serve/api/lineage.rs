//! Where lines of code come from, for files that sessions worked on.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::parameters::{LineageParameters, Params};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view;
use crate::view::Lineage;

/// Which session, prompt and call wrote each line of a file, as the archive last saw it
///
/// No file of the disk is read: the lines are those that sessions wrote or read. Only the owner is answered, and only
/// about files below the folder of a session.
#[utoipa::path(get, path = "/api/v1/lineage", tag = "lineage", params(LineageParameters),
    responses((status = 200, description = "Stretches of lines with their origins", body = Lineage), Refusals))]
pub async fn of_file(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<LineageParameters>,
) -> Answered {
    let ask = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| view::lineage(desk.scope, desk.store, desk.door, &ask)).await)
}
