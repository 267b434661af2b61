//! The state of the server: whether it is up, when it last captured, and what it cannot capture.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{Nothing, Params};
use crate::serve::App;
use crate::serve::Work;
use crate::serve::access::Caller;
use crate::serve::answer::{Refusals, answer};
use crate::view::FailureView;
use annals_core::Scope;
use annals_store::remembered_failure;

#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` while new data cannot be captured
    status: &'static str,
    version: &'static str,
    /// Since when new data cannot be captured; `/api/v1/status` has the cause
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<String>,
}

/// Check that the server is up
#[utoipa::path(get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, description = "The server is up", body = Health)))]
pub async fn health(State(app): State<Arc<App>>) -> Response {
    let failing_since = app.freshness.trouble().since();
    let status = status_of(failing_since.is_some());
    let health = Health { status, version: env!("CARGO_PKG_VERSION"), failing_since };
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, serde_json::to_vec(&health).unwrap_or_default()).into_response()
}

fn status_of(fails: bool) -> &'static str {
    if fails { "degraded" } else { "ok" }
}

#[derive(Serialize, ToSchema)]
pub struct StatusAnswer {
    /// `ok`, or `degraded` while something cannot be captured
    status: &'static str,
    version: &'static str,
    started_at: String,
    /// Whether the server captures new data, or serves the archive as it is
    refreshes: bool,
    /// When the homes that the caller may see were last scanned
    last_sync_at: Option<String>,
    /// The running capture, if it has something to read; only for the owner
    sync: Option<Work>,
    /// Which other process is writing to the archive; only for the owner
    waiting_for: Option<String>,
    /// Since when something cannot be captured
    failing_since: Option<String>,
    failures: Vec<FailureView>,
    next_cursor: Option<String>,
}

/// Get the state of the server: its last sync, what it cannot capture, and since when
#[utoipa::path(get, path = "/api/v1/status", tag = "server",
    responses((status = 200, description = "The state of the server", body = StatusAnswer), Refusals))]
pub async fn status(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let shared = app.clone();
    answer(app, caller, headers, move |view| {
        let trouble = shared.freshness.trouble();
        let failures = view.failures(shared.failure().as_ref())?;
        let failing_since = failures.iter().map(|failure| failure.since.clone()).min();
        let is_owner = caller.scope == Scope::Owner;
        Ok(Some(StatusAnswer {
            status: status_of(!failures.is_empty()),
            version: env!("CARGO_PKG_VERSION"),
            started_at: shared.started.rfc3339(),
            refreshes: shared.freshness.is_on(),
            last_sync_at: view.last_scanned()?,
            sync: shared.events.work().filter(|_| is_owner),
            waiting_for: trouble.waiting.filter(|_| is_owner).map(|what| view.show(&what).to_string()),
            failing_since,
            failures,
            next_cursor: None,
        }))
    })
    .await
}

impl App {
    /// Why nothing is captured: what this server noted, or else what the last sync of another process did.
    pub(in crate::serve) fn failure(&self) -> Option<annals_store::CaptureFailure> {
        self.freshness.trouble().failure.or_else(|| remembered_failure(&self.reading.data_dir))
    }
}
