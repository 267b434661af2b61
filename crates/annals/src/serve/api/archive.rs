//! Sources, manifests, native records, the audit, gaps, and whether the server is well.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{GapParameters, InPath, Nothing, OfSource, PageParameters, Params};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::{Answered, Desk, Refusals, answer};
use crate::view;
use crate::view::cards;
use crate::view::{
    Audit, GapList, IndexAudit, Paging, RecordPage, RecordsQuery, SourceCard, record_page, source_named,
    used_sources,
};
use annals_core::Result;

#[derive(Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
    version: &'static str,
}

/// Whether the server answers
#[utoipa::path(get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub async fn health() -> Response {
    let health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, serde_json::to_vec(&health).unwrap_or_default()).into_response()
}

#[derive(Serialize, ToSchema)]
pub struct SourceAnswer {
    sources: Vec<SourceCard>,
    next_cursor: Option<String>,
}

/// A card for each source, whether it has data or how to set it up
#[utoipa::path(get, path = "/api/v1/agent-sessions/sources", tag = "sources",
    responses((status = 200, description = "All sources that annals knows", body = SourceAnswer), Refusals))]
pub async fn sources(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, asker, headers, |desk| {
        let sources = cards(desk.scope, Some(desk.store), desk.door, desk.disk, desk.now)?;
        Ok(Some(SourceAnswer { sources, next_cursor: None }))
    })
    .await
}

/// What a source reads, keeps and never opens
#[utoipa::path(get, path = "/api/v1/sources/{source}/manifest", tag = "sources",
    params(("source" = String, Path, description = "The name of a source")),
    responses((status = 200, description = "The manifest", body = HashMap<String, Value>), Refusals))]
pub async fn manifest(
    State(app): State<Arc<App>>,
    asker: Asker,
    OfSource(source): OfSource,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, asker, headers, move |_| Ok(source_named(source).map(|source| source.manifest()))).await
}

/// Native records of a stream
#[utoipa::path(get, path = "/api/v1/sources/{source}/streams/{stream}/records", tag = "sources",
    params(("source" = String, Path, description = "The name of a source"),
           ("stream" = String, Path, description = "A stream of its manifest"), PageParameters),
    responses((status = 200, description = "A page of records", body = RecordPage), Refusals))]
pub async fn records(
    State(app): State<Arc<App>>,
    asker: Asker,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<PageParameters>,
) -> Answered {
    let page = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| page_of(desk, source, &path.stream, None, page)).await)
}

/// All versions of one native record
#[utoipa::path(get, path = "/api/v1/sources/{source}/streams/{stream}/records/{key}", tag = "sources",
    params(("source" = String, Path, description = "The name of a source"),
           ("stream" = String, Path, description = "A stream of its manifest"),
           ("key" = String, Path, description = "The key of a record")),
    responses((status = 200, description = "The record, in every version that was kept", body = RecordPage),
              Refusals))]
pub async fn record(
    State(app): State<Arc<App>>,
    asker: Asker,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let page = Paging { limit: 500, cursor: None };
    answer(app, asker, headers, move |desk| {
        let found = page_of(desk, source, &path.stream, Some(path.key), page)?;
        Ok(found.filter(|page| !page.records.is_empty()))
    })
    .await
}

fn page_of(
    desk: &Desk<'_>,
    source: &str,
    stream: &str,
    key: Option<String>,
    page: Paging,
) -> Result<Option<RecordPage>> {
    let Some(source) = source_named(source) else { return Ok(None) };
    let Some(stream) = source.manifest().stream(stream) else { return Ok(None) };
    let limit = u64::try_from(page.limit).ok();
    let full = key.is_some();
    let ask = RecordsQuery { source, stream, key, within: None, limit, cursor: page.cursor, full };
    record_page(desk.scope, desk.store, desk.door, &ask, desk.now).map(Some)
}

#[derive(Serialize, ToSchema)]
pub struct AuditAnswer {
    sources: Vec<Audit>,
    index: IndexAudit,
    next_cursor: Option<String>,
}

/// What was captured, kept and not understood; `annals audit` at the machine also looks at the disk
#[utoipa::path(get, path = "/api/v1/audit", tag = "sources",
    responses((status = 200, description = "An account for each source", body = AuditAnswer), Refusals))]
pub async fn audit(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    answer(app, asker, headers, |desk| {
        let mut sources = Vec::new();
        for source in used_sources(desk.scope, Some(desk.store))? {
            let captured = view::captured(desk.scope, desk.store, source)?;
            sources.push(view::audit(desk.scope, desk.store, desk.door, source, &captured, desk.now)?);
        }
        let index = view::index_audit(desk.scope, desk.store)?;
        Ok(Some(AuditAnswer { sources, index, next_cursor: None }))
    })
    .await
}

/// What could not be read, and what became of it
#[utoipa::path(get, path = "/api/v1/gaps", tag = "sources", params(GapParameters),
    responses((status = 200, description = "A page of gaps", body = GapList), Refusals))]
pub async fn gaps(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<GapParameters>,
) -> Answered {
    let ask = parameters.read()?;
    Ok(answer(app, asker, headers, move |desk| {
        view::gaps(desk.scope, desk.store, desk.door, &ask, desk.now).map(Some)
    })
    .await)
}
