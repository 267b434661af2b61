//! Responses: JSON with an ETag, errors as RFC 9457, and a log without content.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::access::Caller;
use super::{App, Reading};
use crate::view::{Accesses, FileEdit, View};
use annals_core::{Arrangement, Error, Result, Scope, visible_json};

/// An error as in RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemDocument {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Identifies the entry in the server's log that has the cause; only if the server failed
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Edits of a file whose content is not known, the latest last; only for lineage
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<FileEdit>,
}

/// The error responses that every route may return.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "the document of the API is made from it")]
pub(super) enum Refusals {
    /// Not modified since the response with this ETag
    #[response(status = 304)]
    NotModified,
    /// Unknown or invalid parameter
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(#[to_schema] ProblemDocument),
    /// Missing or invalid token
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] ProblemDocument),
    /// Host or origin not allowed
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] ProblemDocument),
    /// Not found, or not visible to this token
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] ProblemDocument),
}

/// The error responses of routes that take a body, in addition.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "the document of the API is made from it")]
pub(super) enum BodyRefusals {
    /// The body is too long
    #[response(status = 413, content_type = "application/problem+json")]
    PayloadTooLarge(#[to_schema] ProblemDocument),
    /// The body is not declared as JSON
    #[response(status = 415, content_type = "application/problem+json")]
    UnsupportedMediaType(#[to_schema] ProblemDocument),
}

/// A response or a refusal.
pub(super) type Answered = std::result::Result<Response, Refusal>;

/// A request that is refused.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: StatusCode,
    pub detail: String,
    pub hint: Option<String>,
    /// Id of the log entry that has the cause.
    pub request_id: Option<String>,
    pub edits: Vec<FileEdit>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Refusal {
        Refusal { status, detail: detail.into(), hint: None, request_id: None, edits: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn not_found(what: &str) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, what)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        if error.is_bad_request() {
            let refusal = Refusal::new(StatusCode::BAD_REQUEST, error.what);
            return Refusal { hint: error.hint, ..refusal };
        }
        // File names, statements and the like stay in the local log.
        let id = new_request_id();
        tracing::error!(request_id = %id, "request failed: {}", error.chain());
        let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the archive");
        Refusal { request_id: Some(id), ..refusal.hint("annals doctor") }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let refusal = self.clone();
        let document = ProblemDocument {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("problem"),
            status: self.status.as_u16(),
            detail: self.detail,
            hint: self.hint,
            request_id: self.request_id,
            edits: self.edits,
        };
        let body = visible_json(serde_json::to_vec(&document).unwrap_or_default());
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, [(CONTENT_TYPE, kind)], body).into_response();
        // If a browser requested a page, the refusal is a page too.
        response.extensions_mut().insert(refusal);
        response
    }
}

/// Runs on a separate thread, since the archive blocks; `None` is 404.
pub(super) async fn answer<T: Serialize>(
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    question: impl FnOnce(&View<'_>) -> Result<Option<T>> + Send + 'static,
) -> Response {
    answer_or_refuse(app, caller, headers, move |view| Ok(question(view)?.map(Ok))).await
}

/// The same, for a question whose answer may be a refusal.
pub(super) async fn answer_or_refuse<T: Serialize>(
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    question: impl FnOnce(&View<'_>) -> Result<Option<std::result::Result<T, Refusal>>> + Send + 'static,
) -> Response {
    let found = with_view(app, caller, move |view| match question(view)? {
        Some(Ok(found)) => Ok(Some(Ok(visible_json(serde_json::to_vec(&found)?)))),
        Some(Err(refusal)) => Ok(Some(Err(refusal))),
        None => Ok(None),
    });
    match found.await {
        Ok(Some(Ok(body))) => with_etag(&headers, body),
        Ok(None) => Refusal::not_found("not found").into_response(),
        Ok(Some(Err(refusal))) | Err(refusal) => refusal.into_response(),
    }
}

/// Reads from the archive, after a refresh.
pub(super) async fn with_view<T: Send + 'static>(
    app: Arc<App>,
    caller: Caller,
    question: impl FnOnce(&View<'_>) -> Result<Option<T>> + Send + 'static,
) -> std::result::Result<Option<T>, Refusal> {
    Ok(read(&app.reading, caller, question).await?)
}

/// The same, for other protocols.
pub(super) async fn read<T: Send + 'static>(
    reading: &Arc<Reading>,
    caller: Caller,
    question: impl FnOnce(&View<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    reading.freshness.refresh_on_request().await;
    // Far more threads than processors would slow each other down; requests are handled in order of arrival.
    let shared = reading.clone();
    let _turn = reading.turns.acquire().await;
    let answer = tokio::task::spawn_blocking(move || -> Result<T> {
        let is_owner = caller.scope == Scope::Owner;
        let disk = if is_owner { shared.freshness.disk() } else { Vec::new() };
        let store = shared.reader()?;
        let accesses = Accesses::default();
        let view = shared.view(&store, caller.scope, &disk);
        // Members see only their own.
        let view = if matches!(caller.scope, Scope::Member(_)) { view } else { view.noting(&accesses) };
        let found = view.at_once(|| question(&view));
        let noted = shared.access_log.write(&shared.data_dir, &store, caller, accesses, (shared.now)());
        shared.give_back(store);
        noted.and(found)
    });
    answer.await.unwrap_or_else(|failed| Err(Error::new(format!("the request handler panicked: {failed}"))))
}

/// Stores what `changes` makes of the archive as the caller sees it; `None` is 404.
pub(super) async fn arrange(
    app: &Arc<App>,
    caller: Caller,
    changes: impl FnOnce(&View<'_>) -> Result<Option<Vec<Arrangement>>> + Send + 'static,
) -> std::result::Result<Option<()>, Refusal> {
    let Some(versions) = with_view(app.clone(), caller, changes).await? else { return Ok(None) };
    if versions.is_empty() {
        return Ok(Some(()));
    }
    let cannot = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "cannot write to the archive");
    if app.in_memory {
        return Err(cannot().hint("it is on a read-only or full disk: run `annals doctor`"));
    }
    let writing = app.clone();
    let written = tokio::task::spawn_blocking(move || {
        let mut writer = writing.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.arrange(caller.scope, &versions).map_err(Error::from)
    });
    match written.await {
        Ok(Ok(_)) => Ok(Some(())),
        Ok(Err(error)) if error.is_bad_request() => Err(error.into()),
        Ok(Err(error)) => {
            tracing::error!("cannot write an arrangement: {}", error.chain());
            Err(cannot().hint("something else may be writing to it: try again"))
        }
        Err(failed) => Err(Error::new(format!("the request handler panicked: {failed}")).into()),
    }
}

/// Unique enough to find one entry in a log.
fn new_request_id() -> String {
    let mut bytes = [0; 8];
    // Without randomness the id is all zeros, and the log still has the cause.
    let _ = getrandom::fill(&mut bytes);
    annals_core::to_hex(&bytes)
}

fn with_etag(headers: &HeaderMap, body: Vec<u8>) -> Response {
    let hash = blake3::hash(&body).to_hex();
    let etag = format!("W/\"{}\"", &hash[..32]);
    let matches = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let matches = matches.flat_map(|value| value.split(',')).any(|tag| tag.trim() == etag);
    let etag = HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static(""));
    let cache = HeaderValue::from_static("private, no-cache");
    let headers = [(ETAG, etag), (CACHE_CONTROL, cache)];
    if matches {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, kind, body).into_response()
}

pub(super) async fn no_route() -> Response {
    Refusal::not_found("not found").hint("/docs lists all routes").into_response()
}

pub(super) async fn no_method() -> Response {
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    // The router adds which methods are.
    refusal.hint("the header `Allow` lists the methods; /docs lists all routes").into_response()
}

/// One line per request: method, route without its values, status, time, size.
pub(super) async fn write_log(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    if app.log.is_none() {
        return next.run(request).await;
    }
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    if let Some(log) = &app.log {
        let bytes = response.body().size_hint().exact().map_or("-".to_owned(), |bytes| bytes.to_string());
        let refusal = response.extensions().get::<Refusal>();
        let id = refusal.and_then(|refusal| refusal.request_id.as_deref());
        log(&format!(
            "{} {method} {} {} {:.1} ms {bytes} bytes{}",
            (app.now)().rfc3339(),
            route.as_deref().unwrap_or("(no route)"),
            response.status().as_u16(),
            started.elapsed().as_secs_f64() * 1_000.0,
            id.map(|id| format!(" request_id={id}")).unwrap_or_default()
        ));
    }
    response
}
