//! Push and pull: the steps of the protocol between archives, each a request with a token. docs/push.md describes them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::sync::Semaphore;

use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Refusal;
use annals_core::{Error, MemberId, Scope};

/// Bytes of a request.
const LONGEST_BODY: usize = 12 << 20;
/// Requests that one member may send in a minute.
const MOST_REQUESTS: u32 = 1_200;
const MINUTE: Duration = Duration::from_secs(60);
/// Requests at a time; pages are answered beside them.
const AT_ONCE: usize = 2;

/// One step of the protocol.
pub struct ExchangeCall<'a> {
    pub step: &'a str,
    /// The member whose token it is; none for the owner of the machine.
    pub member: Option<MemberId>,
    pub scope: Scope,
    pub body: &'a [u8],
}

/// Answers a step, or refuses it with a status.
pub type Exchange = Arc<dyn Fn(&ExchangeCall<'_>) -> Result<Vec<u8>, (u16, Error)> + Send + Sync>;

/// Requests that wait, and those of each member in this minute.
pub struct Exchanging {
    answer: Exchange,
    turns: Semaphore,
    recent: Mutex<HashMap<Option<MemberId>, (Instant, u32)>>,
}

impl Exchanging {
    pub fn new(answer: Exchange) -> Exchanging {
        Exchanging { answer, turns: Semaphore::new(AT_ONCE), recent: Mutex::default() }
    }

    /// Whether a member may send another request now.
    fn has_room(&self, member: Option<MemberId>) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, count) = recent.entry(member).or_insert((Instant::now(), 0));
        if start.elapsed() > MINUTE {
            (*start, *count) = (Instant::now(), 0);
        }
        *count += 1;
        *count <= MOST_REQUESTS
    }
}

pub(in crate::serve) fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/exchange/{step}", post(step)).layer(DefaultBodyLimit::max(LONGEST_BODY))
}

async fn step(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(step): Path<String>,
    body: Bytes,
) -> Response {
    let shared = app.clone();
    let Some(exchanging) = &app.exchange else {
        return Refusal::not_found("this server exchanges nothing").into_response();
    };
    if !exchanging.has_room(caller.member) {
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many requests in a minute");
        return refusal.hint("wait a minute").into_response();
    }
    // Whoever waits here sends nothing more: that is all the back-pressure there has to be.
    let _turn = exchanging.turns.acquire().await;
    // Frames; every other answer is JSON.
    let kind = if step == "content" { "application/octet-stream" } else { "application/json" };
    let answered = tokio::task::spawn_blocking(move || {
        let call = ExchangeCall { step: &step, member: caller.member, scope: caller.scope, body: &body };
        shared.exchange.as_ref().map(|exchanging| (exchanging.answer)(&call))
    });
    let (status, error) = match answered.await {
        Ok(Some(Ok(answer))) => {
            return ([(CONTENT_TYPE, HeaderValue::from_static(kind))], answer).into_response();
        }
        Ok(Some(Err(refused))) => refused,
        Ok(None) => (404, Error::bad_request("this server exchanges nothing")),
        Err(failed) => (500, Error::new(format!("the request handler panicked: {failed}"))),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        return Refusal::from(error).into_response();
    }
    Refusal { hint: error.hint, ..Refusal::new(status, error.what) }.into_response()
}
