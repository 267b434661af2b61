//! Style sheet and script of the pages, with addresses that change with their content.

use std::sync::OnceLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::serve::answer::Refusal;
use crate::serve::api::parameters::InPath;

pub(super) const STYLES: &str = include_str!("annals.css");
const SCRIPT: &str = concat!(
    include_str!("script/start.js"),
    include_str!("script/lists.js"),
    include_str!("script/session.js"),
    include_str!("script/find.js"),
    include_str!("script/palette.js"),
    include_str!("script/keys.js"),
);
const ICON: &str = include_str!("annals.svg");

pub(super) fn styles_address() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| address("annals.css", STYLES))
}

pub(super) fn script_address() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| address("annals.js", SCRIPT))
}

fn address(name: &str, text: &str) -> String {
    format!("/assets/{name}?v={}", &blake3::hash(text.as_bytes()).to_hex()[..12])
}

/// Files that reveal nothing about the archive.
pub(in crate::serve) fn is_asset(path: &str) -> bool {
    path.starts_with("/assets/")
}

pub(super) async fn asset(path: InPath) -> Response {
    let (kind, text) = match path.key.as_str() {
        "annals.css" => ("text/css; charset=utf-8", STYLES),
        "annals.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "annals.svg" => ("image/svg+xml", ICON),
        _ => return Refusal::not_found("file not found").into_response(),
    };
    let headers: [(HeaderName, HeaderValue); 2] = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable")),
    ];
    (headers, text).into_response()
}
