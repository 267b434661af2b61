//! Browsers: a link or a token starts a session, a cookie continues it. The cookie is worth nothing elsewhere: it is no
//! token, ends after a week without use, and belongs to one port.

use std::sync::{Arc, PoisonError};

use axum::http::header::{CACHE_CONTROL, COOKIE, LOCATION, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::App;
use super::access::unauthorized;
use crate::view::new_token;
use annals_core::Time;
use annals_store::{BrowserHolder, NewBrowser};

/// How long a session lasts without being used.
const LIFE: i64 = 7 * 24 * 3_600;
/// Minimum time between two renewals.
const RENEWED_AFTER: i64 = 3_600;
/// Letters of the browser's name that are stored.
const LONGEST_AGENT: usize = 120;
const SECOND: i64 = 1_000_000;

/// What starts a session.
pub(super) enum Key {
    /// A link that works once.
    Link(String),
    /// The token of the owner or a member.
    Token(String),
}

/// The value of the cookie of this port, if the browser sent one.
pub(super) fn cookie(headers: &HeaderMap, port: u16) -> Option<String> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let name = name(headers, port);
    pairs.find(|(sent, _)| *sent == name).map(|(_, value)| value.to_owned())
}

/// Browsers send cookies to every port of a host, so the name contains the port. Over TLS the prefix makes sure that no
/// other host set it.
fn name(headers: &HeaderMap, port: u16) -> String {
    let prefix = if is_encrypted(headers) { "__Host-" } else { "" };
    format!("{prefix}annals_{port}")
}

/// Whether the proxy in front of the server speaks TLS. Lying about it only changes the name of one's own cookie.
fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
}

fn set_cookie(headers: &HeaderMap, port: u16, value: &str) -> Option<HeaderValue> {
    let name = name(headers, port);
    let secure = if is_encrypted(headers) { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={LIFE}{secure}");
    HeaderValue::try_from(cookie).ok()
}

/// Starts a session and removes the key from the address: a redirect leaves no entry in the browser's history.
pub(super) async fn enter(app: &Arc<App>, key: &Key, headers: &HeaderMap) -> Response {
    let (holder, refusal) = match key {
        Key::Link(link) => (
            app.holder_of_link(link).await,
            unauthorized("this link is invalid or was used").hint("`annals members link` prints another one"),
        ),
        Key::Token(token) => (
            app.holder_of(token).await,
            unauthorized("invalid token in this link").hint("`annals members link` prints a valid link"),
        ),
    };
    let Some(holder) = holder else { return refusal.into_response() };
    let token = new_token();
    if !app.start_browser(&token, holder, headers).await {
        return refusal.into_response();
    }
    match set_cookie(headers, app.port(), &token) {
        Some(cookie) => {
            let home = [(LOCATION, HeaderValue::from_static("/"))];
            let fresh = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (StatusCode::SEE_OTHER, home, fresh, [(SET_COOKIE, cookie)]).into_response()
        }
        None => refusal.into_response(),
    }
}

impl App {
    /// The session of a cookie, and the cookie again if it was renewed.
    pub(super) async fn browser_of(
        self: &Arc<Self>,
        cookie: &str,
        headers: &HeaderMap,
    ) -> Option<(BrowserHolder, Option<HeaderValue>)> {
        let (app, hash, port) = (self.clone(), self.token_key.hash(cookie), self.port());
        let found = tokio::task::spawn_blocking(move || {
            let now = (app.now)();
            let (session, is_kept) = app.find_browser(&hash, port, now)?;
            let unused = now.micros().saturating_sub(session.last_used.micros());
            let renews = unused > RENEWED_AFTER * SECOND;
            if renews {
                app.renew_browser(session.id, is_kept, now, after(now, LIFE));
            }
            Some((session.holder, renews))
        });
        let (holder, renews) = found.await.ok().flatten()?;
        let renewed = if renews { set_cookie(headers, port, cookie) } else { None };
        Some((holder, renewed))
    }

    async fn holder_of_link(self: &Arc<Self>, link: &str) -> Option<BrowserHolder> {
        let (app, hash) = (self.clone(), self.token_key.hash(link));
        let used = tokio::task::spawn_blocking(move || {
            let writer = app.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let now = (app.now)();
            let was_used = app.used_links.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash);
            if was_used {
                return None;
            }
            writer.use_browser_link(&hash, now).unwrap_or_else(|error| {
                // The disk may be full, and the person who opens the link wants to know why.
                tracing::warn!("cannot use up a link in the archive: {error}");
                let holder = writer.browser_link(&hash, now).ok().flatten();
                app.used_links.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
                holder
            })
        });
        used.await.ok().flatten()
    }

    async fn start_browser(
        self: &Arc<Self>,
        token: &str,
        holder: BrowserHolder,
        headers: &HeaderMap,
    ) -> bool {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("unknown");
        let agent: String = agent.chars().take(LONGEST_AGENT).collect();
        let (app, hash) = (self.clone(), self.token_key.hash(token));
        let started = tokio::task::spawn_blocking(move || {
            let (now, port, member) = ((app.now)(), app.port(), holder.member);
            let browser = NewBrowser {
                hash: &hash,
                member,
                port,
                agent: &agent,
                expires_at: after(now, LIFE),
                ends_at: holder.ends_at,
            };
            app.keep_browser(&browser, now)
        });
        started.await.is_ok_and(|started| started.is_ok())
    }
}

fn after(now: Time, seconds: i64) -> Time {
    Time::from_micros(now.micros().saturating_add(seconds * SECOND))
}
