//! Access control: allowed hosts and origins, tokens and cookies, and the scope they grant.

use std::sync::{Arc, PoisonError};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::Refusal;
use super::browsers::{Key, cookie, enter};
use super::network::NamedUser;
use super::{App, pages};
use crate::view::stored_local_token;
use annals_core::{MemberId, Scope, Time};
use annals_store::BrowserHolder;

/// Host names that always mean this machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Paths that reveal nothing about the archive.
const OPEN: [&str; 3] = ["/healthz", "/openapi.json", "/docs"];
/// Minimum time between two updates of a token's last use.
const LAST_USE: i64 = 60_000_000;

/// Who sent the request, once their token is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub scope: Scope,
    /// None for the owner of the machine.
    pub member: Option<MemberId>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Caller, Refusal> {
        parts.extensions.get::<Caller>().copied().ok_or_else(no_token)
    }
}

/// Runs before every route.
pub(super) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let page = pages::is_page(&request).then(|| request.headers().clone());
    let response = match admit(&app, &mut request).await {
        Ok(Admitted::In(renewed)) => {
            let mut response = next.run(request).await;
            if let Some(cookie) = renewed {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Ok(Admitted::With(key)) => enter(&app, &key, request.headers()).await,
        Err(refusal) => refusal.into_response(),
    };
    let refusal = response.extensions().get::<Refusal>().cloned();
    with_security_headers(match (page, refusal) {
        (Some(headers), Some(refusal)) => pages::refusal_page(&refusal, &headers),
        _ => response,
    })
}

/// How a request is authenticated.
enum Admitted {
    /// By a token or a cookie; the cookie may have been renewed.
    In(Option<HeaderValue>),
    /// By a link.
    With(Key),
}

async fn admit(app: &Arc<App>, request: &mut Request) -> Result<Admitted, Refusal> {
    let user = app.network.admit(request)?;
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !app.is_allowed_host(host) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "host not allowed")
            .hint("use http://127.0.0.1, or allow the host with `annals serve --host NAME`"));
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !name.is_some_and(|name| app.is_allowed_host(name)) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "origin not allowed"));
        }
    }
    let path = request.uri().path();
    if OPEN.contains(&path) || pages::is_asset(path) {
        return Ok(Admitted::In(None));
    }
    let query = request.uri().query().filter(|_| path == "/").unwrap_or_default();
    if let Some(token) = query.strip_prefix("token=") {
        return Ok(Admitted::With(Key::Token(token.to_owned())));
    }
    if let Some(once) = query.strip_prefix("once=") {
        return Ok(Admitted::With(Key::Link(once.to_owned())));
    }
    // Browsers send cookies by themselves, and proxies know them by something like that.
    let sent_by_browser =
        bearer(headers).is_none() && (user.is_some() || cookie(headers, app.port()).is_some());
    if sent_by_browser && !request.method().is_safe() && !is_from_own_page(headers) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "a browser makes changes only from a page of this server",
        )
        .hint("programs send `Authorization: Bearer TOKEN`"));
    }
    let (holder, renewed) = match (bearer(headers), user, cookie(headers, app.port())) {
        (Some(token), _, _) => {
            let holder = app.holder_of(&token).await.ok_or_else(|| {
                unauthorized("invalid token").hint("`annals serve` prints the token with --json")
            })?;
            (holder, None)
        }
        (None, Some(user), _) => {
            let holder = app.member_named(user).await.ok_or_else(|| {
                Refusal::new(StatusCode::FORBIDDEN, "the proxy names a user who is no member")
                    .hint("the owner of the hub adds members with `annals members add NAME`")
            })?;
            (holder, None)
        }
        (None, None, Some(cookie)) => {
            let known = app.browser_of(&cookie, headers).await;
            let (holder, renewed) = known.ok_or_else(|| {
                unauthorized("this browser is logged out")
                    .hint("`annals members link` prints a link that logs it in again")
            })?;
            (holder, renewed)
        }
        (None, None, None) => return Err(no_token()),
    };
    request.extensions_mut().insert(Caller { scope: holder.scope, member: holder.member });
    Ok(Admitted::In(renewed))
}

impl App {
    fn is_allowed_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        LOCAL.contains(&name) || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    /// Whose token it is. Compares hashes, so that timing reveals nothing about tokens.
    pub(super) async fn holder_of(self: &Arc<Self>, token: &str) -> Option<BrowserHolder> {
        let (app, hash) = (self.clone(), self.token_key.hash(token));
        let holder = tokio::task::spawn_blocking(move || {
            let store = app.reading.reader().ok()?;
            // Read again for every request: it may have been replaced.
            // An archive that cannot be written may have none.
            let own = stored_local_token(&store).map(|own| own.or_else(|| app.passing_token.clone()));
            let own = own.map(|own| own.map(|own| app.token_key.hash(&own)));
            let now = (app.now)();
            let holder = store.token_holder(&hash, now);
            app.reading.give_back(store);
            if own.ok()? == Some(hash) {
                return Some(BrowserHolder { member: None, scope: Scope::Owner, ends_at: None });
            }
            let holder = holder.ok()??;
            let last = holder.last_used.map_or(i64::MIN, Time::micros);
            if now.micros().saturating_sub(last) > LAST_USE {
                let writer = app.writer.lock().unwrap_or_else(PoisonError::into_inner);
                // The response does not depend on it.
                drop(writer.record_token_use(holder.token, now));
            }
            Some(BrowserHolder {
                member: Some(holder.member),
                scope: holder.scope,
                ends_at: holder.expires_at,
            })
        });
        holder.await.ok().flatten()
    }
}

impl App {
    /// The member that a trusted proxy names.
    async fn member_named(self: &Arc<Self>, user: NamedUser) -> Option<BrowserHolder> {
        let app = self.clone();
        let holder = tokio::task::spawn_blocking(move || {
            let store = app.reading.reader().ok()?;
            let holder = store.holder_named(&user.0);
            app.reading.give_back(store);
            holder.ok()?
        });
        holder.await.ok().flatten()
    }
}

/// Whether a browser says that the request comes from a page of this server. Other ports of the host, which other
/// programs listen on, get the cookie sent along too.
fn is_from_own_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site == "same-origin");
    let origin = headers.get(ORIGIN).map(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| headers.get(HOST).is_some_and(|host| host == authority))
    });
    // Every browser sends one of them; what it sends must agree.
    (site.is_some() || origin.is_some()) && site.unwrap_or(true) && origin.unwrap_or(true)
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

fn no_token() -> Refusal {
    unauthorized("token required")
        .hint("send `Authorization: Bearer TOKEN`, or open the link that `annals serve` prints")
}

pub(super) fn unauthorized(detail: &str) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, detail)
}

/// Security headers of every response.
fn with_security_headers(mut response: Response) -> Response {
    let unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Forms of our own pages send their origin only with a referrer; nobody else gets one.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("default-src 'none'"));
    if unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"annals\""));
    }
    response
}
