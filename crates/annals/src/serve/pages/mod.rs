//! The web pages: rendered from templates inside the program; they load nothing from elsewhere.

mod ansi;
mod arrange;
mod assets;
mod assistant;
mod audit;
mod calls;
mod charts;
mod code;
mod compare;
mod diff;
mod entries;
mod export;
mod files;
mod filters;
mod gaps;
mod home;
mod html;
mod icons;
mod insights;
mod library;
mod lineage;
mod markdown;
mod members;
mod moments;
mod palette;
mod paste;
mod plot;
mod rows;
mod search;
mod search_help;
mod secrets;
mod selected;
mod session;
mod sessions;
mod settings;
mod tagged;
mod tools;
mod touched;
mod trace;
mod treemap;
mod usage;
mod week;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::App;
use super::access::Caller;
use super::answer::{Answered, Refusal, with_view};
use crate::view::View;
use annals_core::Result;
use filters::Filters;

pub(super) use assets::is_asset;
pub use export::{IndexLine, SessionDocument, write_index, write_session};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home::page))
        .route("/sessions", get(sessions::page))
        .route("/sessions/selected", post(selected::change))
        .route("/sessions/{source}/{session_id}", get(session::page).post(arrange::session))
        .route("/sessions/{source}/{session_id}/steps", get(session::steps))
        .route("/sessions/{source}/{session_id}/outline", get(session::outline))
        .route("/sessions/{source}/{session_id}/markdown", get(session::markdown))
        .route("/sessions/{source}/{session_id}/find", get(session::find))
        .route("/sessions/{source}/{session_id}/raw/{key}", get(session::raw))
        .route("/sessions/{source}/{session_id}/output/{key}/{number}", get(session::output))
        .route("/sessions/{source}/{session_id}/picture/{key}/{number}", get(session::picture))
        .route("/search", get(search::page).post(arrange::search))
        .route("/tools", get(tools::page))
        .route("/tools/calls", get(calls::page))
        .route("/usage", get(usage::page))
        .route("/usage/csv", get(usage::csv))
        .route("/library", get(library::page))
        .route("/library/item", get(library::item))
        .route("/files", get(files::page))
        .route("/lineage", get(lineage::page).post(lineage::pasted))
        .route("/insights", get(insights::page))
        .route("/insights/moments", get(moments::page))
        .route("/week", get(week::page))
        .route("/week/markdown", get(week::markdown))
        .route("/compare", get(compare::page))
        .route("/audit", get(audit::page))
        .route("/secrets", get(secrets::page))
        .route("/gaps", get(gaps::page))
        .route("/settings", get(settings::page).post(settings::sync))
        .route("/members", get(members::page))
        .route("/palette", get(palette::answer))
        .route("/assets/{key}", get(assets::asset))
}

/// What a browser may do on our pages: show them and send requests to this server, nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// The layout around every page.
#[derive(Debug, Clone)]
struct Frame {
    title: String,
    /// The address of the section that this page belongs to.
    place: &'static str,
    theme: &'static str,
    styles: &'static str,
    script: &'static str,
    filters: Filters,
}

impl Frame {
    fn new(place: &'static str, title: impl Into<String>, theme: Theme) -> Frame {
        Frame {
            title: title.into(),
            place,
            theme: theme.name,
            styles: assets::styles_address(),
            script: assets::script_address(),
            filters: Filters::default(),
        }
    }

    /// The pages that share filters keep those of this page in the addresses of the menu.
    fn with_filters(mut self, filters: &Filters) -> Frame {
        self.filters = filters.clone();
        self
    }

    fn menu(&self) -> Vec<MenuEntry> {
        let entries = [
            ("/", "Home", "home"),
            ("/sessions", "Sessions", "sessions"),
            ("/search", "Search", "search"),
            ("/files", "Files", "files"),
            ("/usage", "Usage", "usage"),
            ("/tools", "Tools", "tools"),
            ("/insights", "Insights", "insights"),
            ("/library", "Library", "library"),
            ("/audit", "Trust", "trust"),
            ("/settings", "Settings", "settings"),
        ];
        entries
            .map(|(path, name, icon)| MenuEntry {
                address: if FILTERED.contains(&path) {
                    self.filters.address(path, &[])
                } else {
                    path.to_owned()
                },
                name,
                icon: icons::icon(icon),
                is_here: path == self.place,
            })
            .into()
    }
}

/// Pages that have the bar of filters.
const FILTERED: [&str; 5] = ["/sessions", "/files", "/usage", "/tools", "/insights"];

/// A link of the menu.
struct MenuEntry {
    address: String,
    name: &'static str,
    icon: html::Html,
    is_here: bool,
}

/// The user's theme.
#[derive(Debug, Clone, Copy)]
struct Theme {
    name: &'static str,
}

impl Theme {
    /// Stored in a cookie, so that a dark page is dark from the start.
    fn of(headers: &HeaderMap) -> Theme {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).map(str::trim);
        let theme = pairs.find_map(|pair| pair.strip_prefix("theme="));
        Theme {
            name: match theme {
                Some("dark") => "dark",
                Some("light") => "light",
                _ => "system",
            },
        }
    }
}

/// Who wants a page, and in which theme.
struct PageRequest {
    app: Arc<App>,
    caller: Caller,
    theme: Theme,
}

impl FromRequestParts<Arc<App>> for PageRequest {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> std::result::Result<PageRequest, Refusal> {
        let caller = Caller::from_request_parts(parts, app).await?;
        Ok(PageRequest { app: Arc::clone(app), caller, theme: Theme::of(&parts.headers) })
    }
}

impl PageRequest {
    async fn show<T: Template + Send + 'static>(
        self,
        question: impl FnOnce(&View<'_>, Theme) -> Result<T> + Send + 'static,
    ) -> Answered {
        let theme = self.theme;
        Ok(render(self.app, self.caller, move |view| question(view, theme).map(Some)).await)
    }
}

/// Runs a query and renders the result as a page; an empty result is a page that says so.
async fn render<T: Template + Send + 'static>(
    app: Arc<App>,
    caller: Caller,
    question: impl FnOnce(&View<'_>) -> Result<Option<T>> + Send + 'static,
) -> Response {
    let rendered = with_view(app, caller, move |view| {
        let found = question(view)?;
        let shown = found.map(|found| found.render()).transpose();
        shown.map_err(|_| annals_core::Error::new("cannot render the page"))
    });
    match rendered.await {
        Ok(Some(html)) => html_response(StatusCode::OK, html),
        Ok(None) => Refusal::not_found("not found").into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn html_response(status: StatusCode, html: String) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let fresh = HeaderValue::from_static("private, no-cache");
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, fresh), (CONTENT_SECURITY_POLICY, POLICY)];
    (status, headers, html::visible(html)).into_response()
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    frame: Frame,
    status: u16,
    heading: &'static str,
    detail: String,
    hint: Option<String>,
    request_id: Option<String>,
}

/// Whether an address is that of a page: errors there are shown as pages.
pub(super) fn is_page(request: &Request) -> bool {
    let path = request.uri().path();
    let program = path.starts_with("/api/") || path == "/healthz" || path == "/openapi.json";
    let accepts = request.headers().get(axum::http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
    !program && accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// A refusal as a page that says what to do.
pub(super) fn refusal_page(refusal: &Refusal, headers: &HeaderMap) -> Response {
    let heading = match refusal.status {
        StatusCode::UNAUTHORIZED => "Not signed in",
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::FORBIDDEN => "Not allowed",
        _ => "Something went wrong",
    };
    let mut frame = Frame::new("", heading, Theme::of(headers));
    frame.place = "";
    let page = RefusedPage {
        frame,
        status: refusal.status.as_u16(),
        heading,
        detail: refusal.detail.clone(),
        hint: refusal.hint.clone(),
        request_id: refusal.request_id.clone(),
    };
    let html = page.render().unwrap_or_else(|_| heading.to_owned());
    html_response(refusal.status, html)
}
