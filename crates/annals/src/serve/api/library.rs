//! Skills, prompts, rules, instructions and memory, with their versions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{ItemParameters, LibraryParameters, Params};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{ItemVersion, LibraryItem};

#[derive(Serialize, ToSchema)]
pub struct LibraryAnswer {
    items: Vec<LibraryItem>,
    next_cursor: Option<String>,
}

/// List skills, prompts, rules, instructions and memory in effect
#[utoipa::path(get, path = "/api/v1/library", tag = "library", params(LibraryParameters),
    responses((status = 200, description = "Items in effect at a time", body = LibraryAnswer),
              Refusals))]
pub async fn items(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<LibraryParameters>,
) -> Answered {
    let (query, then) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| {
        let items = view.library(&query, then)?;
        Ok(Some(LibraryAnswer { items, next_cursor: None }))
    })
    .await)
}

#[derive(Serialize, ToSchema)]
pub struct ItemAnswer {
    #[serde(flatten)]
    item: LibraryItem,
    /// Oldest first, each with its difference to the one before
    history: Vec<ItemVersion>,
}

/// Get all versions of an item
#[utoipa::path(get, path = "/api/v1/library/item", tag = "library", params(ItemParameters),
    responses((status = 200, description = "The item and its versions", body = ItemAnswer), Refusals))]
pub async fn item(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<ItemParameters>,
) -> Answered {
    let (query, id) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| {
        let mut found = view.history(&query, &id)?;
        let exact = found.iter().position(|(item, _)| item.id.as_str() == id).unwrap_or(0);
        let first = (!found.is_empty()).then(|| found.swap_remove(exact));
        Ok(first.map(|(item, history)| ItemAnswer { item, history }))
    })
    .await)
}
