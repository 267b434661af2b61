//! Server-sent events for open pages: the progress of a refresh, and new activity.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::App;
use super::access::Caller;
use super::api::parameters::{Nothing, Params};
use annals_core::Scope;

/// Progress of a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Work {
    pub files: u64,
    pub files_done: u64,
    pub bytes: u64,
    pub bytes_done: u64,
}

impl Work {
    /// How much is done: 0 to 100.
    pub fn percent(self) -> u64 {
        let (done, all) =
            if self.bytes > 0 { (self.bytes_done, self.bytes) } else { (self.files_done, self.files) };
        (done.min(all) * 100).checked_div(all).unwrap_or(100)
    }
}

/// The state sent to open pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct PageState {
    /// The running refresh, if it has something to read.
    sync: Option<Work>,
    /// Grows with each refresh that found something.
    news: u64,
    /// Sessions scanned for secrets, of all; while a scan runs.
    secrets: Option<(u64, u64)>,
}

pub(super) struct Events(watch::Sender<PageState>);

impl Events {
    pub(super) fn new() -> Events {
        Events(watch::Sender::new(PageState::default()))
    }

    pub(super) fn sync(&self, work: Option<Work>) {
        self.update(|now| now.sync = work.filter(|work| work.files > 0));
    }

    /// The running refresh, if it has something to read.
    pub(super) fn work(&self) -> Option<Work> {
        self.0.borrow().sync
    }

    /// Waits for a refresh that has at least this many bytes to read.
    pub(super) async fn wait_for_work(&self, bytes: u64) {
        let is_long = |state: &PageState| state.sync.is_some_and(|work| work.bytes >= bytes);
        // The sender lives as long as `self`.
        drop(self.0.subscribe().wait_for(is_long).await);
    }

    pub(super) fn news(&self) {
        self.update(|now| now.news += 1);
    }

    pub(super) fn secrets(&self, progress: Option<(u64, u64)>) {
        self.update(|now| now.secrets = progress);
    }

    /// Wakes listeners only on changes.
    fn update(&self, change: impl FnOnce(&mut PageState)) {
        self.0.send_if_modified(|now| {
            let before = *now;
            change(now);
            *now != before
        });
    }
}

/// Many progress steps are sent as one.
const PACE: Duration = Duration::from_millis(250);
/// A comment at intervals keeps the connection alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(45);

/// Server-sent events: the state at first, then each change, until the page is closed or the server stops.
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let listener = Listener { state: app.events.0.subscribe(), stop: app.stop.subscribe(), first: true };
    let owner = caller.scope == Scope::Owner;
    let lines = stream::unfold(listener, move |mut listener| async move {
        let mut state = listener.next().await?;
        if !owner {
            state = Some(PageState { news: state.map_or(0, |state| state.news), ..PageState::default() });
        }
        let line = match state.map(|state| serde_json::to_string(&state).unwrap_or_default()) {
            Some(json) => format!("data: {json}\n\n"),
            None => ":\n\n".into(),
        };
        Some((Ok::<Bytes, Infallible>(line.into()), listener))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(lines)).into_response()
}

struct Listener {
    state: watch::Receiver<PageState>,
    stop: watch::Receiver<bool>,
    first: bool,
}

impl Listener {
    /// An event, a keep-alive, or the end.
    async fn next(&mut self) -> Option<Option<PageState>> {
        if std::mem::take(&mut self.first) {
            return Some(Some(*self.state.borrow_and_update()));
        }
        let stopped = async { drop(self.stop.wait_for(|stop| *stop).await) };
        let changed = tokio::select! {
            () = stopped => return None,
            changed = tokio::time::timeout(SIGN_OF_LIFE, self.state.changed()) => changed,
        };
        match changed {
            Ok(Ok(())) => {
                tokio::time::sleep(PACE).await;
                Some(Some(*self.state.borrow_and_update()))
            }
            Ok(Err(_)) => None,
            Err(_) => Some(None),
        }
    }
}
