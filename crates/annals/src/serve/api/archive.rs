//! Sources, manifests, native records, the audit, and gaps.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{GapParameters, InPath, Nothing, OfSource, Params, RecordParameters};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusals, answer};
use crate::view::{
    Audit, ForgettingAudit, GapList, IndexAudit, Paging, RecordPage, RecordsQuery, SourceCard, View,
    find_recorded_source, find_source,
};
use annals_core::{Result, Time};

#[derive(Serialize, ToSchema)]
pub struct SourceAnswer {
    sources: Vec<SourceCard>,
    next_cursor: Option<String>,
}

/// List sources with their status
#[utoipa::path(get, path = "/api/v1/agent-sessions/sources", tag = "sources",
    responses((status = 200, description = "All known sources", body = SourceAnswer), Refusals))]
pub async fn sources(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, |view| {
        let sources = view.cards()?;
        Ok(Some(SourceAnswer { sources, next_cursor: None }))
    })
    .await
}

/// Get which files a source reads, keeps and never opens
#[utoipa::path(get, path = "/api/v1/sources/{source}/manifest", tag = "sources",
    params(("source" = String, Path, description = "Name of the source")),
    responses((status = 200, description = "The manifest", body = HashMap<String, Value>), Refusals))]
pub async fn manifest(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, move |_| Ok(find_source(source).map(|source| source.manifest()))).await
}

/// List the native records of a stream
#[utoipa::path(get, path = "/api/v1/sources/{source}/streams/{stream}/records", tag = "sources",
    params(("source" = String, Path, description = "Name of the source"),
           ("stream" = String, Path, description = "Stream of the source"), RecordParameters),
    responses((status = 200, description = "A page of records", body = RecordPage), Refusals))]
pub async fn records(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<RecordParameters>,
) -> Answered {
    let (page, since) = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| page_of(view, source, &path.stream, None, (page, since)))
        .await)
}

/// Get all versions of a native record
#[utoipa::path(get, path = "/api/v1/sources/{source}/streams/{stream}/records/{key}", tag = "sources",
    params(("source" = String, Path, description = "Name of the source"),
           ("stream" = String, Path, description = "Stream of the source"),
           ("key" = String, Path, description = "Key of the record")),
    responses((status = 200, description = "All versions of the record", body = RecordPage),
              Refusals))]
pub async fn record(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let page = Paging { limit: 500, cursor: None };
    answer(app, caller, headers, move |view| {
        let found = page_of(view, source, &path.stream, Some(path.key), (page, None))?;
        Ok(found.filter(|page| !page.records.is_empty()))
    })
    .await
}

fn page_of(
    view: &View<'_>,
    source: &str,
    stream: &str,
    key: Option<String>,
    (page, since): (Paging, Option<Time>),
) -> Result<Option<RecordPage>> {
    let Some(source) = find_recorded_source(source) else { return Ok(None) };
    let Some(stream) = source.manifest().stream(stream) else { return Ok(None) };
    let limit = u64::try_from(page.limit).ok();
    let full = key.is_some();
    let query =
        RecordsQuery { key, since, limit, cursor: page.cursor, full, ..RecordsQuery::all(source, stream) };
    view.record_page(&query).map(Some)
}

#[derive(Serialize, ToSchema)]
pub struct AuditAnswer {
    sources: Vec<Audit>,
    /// What was forgotten, in numbers.
    forgotten: Vec<ForgettingAudit>,
    index: IndexAudit,
    next_cursor: Option<String>,
}

/// Account for everything that was captured; `annals audit` also compares with the files on disk
#[utoipa::path(get, path = "/api/v1/audit", tag = "sources",
    responses((status = 200, description = "Accounts by source", body = AuditAnswer), Refusals))]
pub async fn audit(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, caller, headers, |view| {
        let mut sources = Vec::new();
        for source in view.used_sources()? {
            let captured = view.captured(source)?;
            sources.push(view.audit(source, &captured)?);
        }
        let (forgotten, index) = (view.forgettings()?, view.index_audit()?);
        Ok(Some(AuditAnswer { sources, forgotten, index, next_cursor: None }))
    })
    .await
}

/// List what could not be fetched and when it is retried
#[utoipa::path(get, path = "/api/v1/gaps", tag = "sources", params(GapParameters),
    responses((status = 200, description = "A page of gaps", body = GapList), Refusals))]
pub async fn gaps(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<GapParameters>,
) -> Answered {
    let query = parameters.read()?;
    Ok(answer(app, caller, headers, move |view| view.gaps(&query).map(Some)).await)
}
