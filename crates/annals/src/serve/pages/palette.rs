//! What the command palette offers for some words: sessions, projects and a file; pages and actions are known to the
//! script.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::html::in_address;
use super::rows::SessionLine;
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::answer as answered;
use crate::serve::api::parameters::Params;
use crate::view::format;
use crate::view::{Paging, SessionQuery, View};
use annals_core::Result;
use annals_store::SessionFilter;

/// Sessions and projects offered at once.
const SESSIONS: i64 = 8;
const PROJECTS: usize = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    #[serde(default)]
    q: String,
}

#[derive(Serialize)]
struct Offers {
    items: Vec<Offer>,
}

#[derive(Serialize)]
struct Offer {
    kind: &'static str,
    title: String,
    detail: String,
    href: String,
}

pub(super) async fn answer(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(words): Params<Words>,
) -> Response {
    answered(app, caller, headers, move |view| offers(view, words.q.trim()).map(Some)).await
}

fn offers(view: &View<'_>, words: &str) -> Result<Offers> {
    let filter = SessionFilter {
        words: Some(words.to_owned()).filter(|words| !words.is_empty()),
        ..SessionFilter::default()
    };
    let query = SessionQuery { filter, page: Paging { limit: SESSIONS, cursor: None }, brief: true };
    let list = match view.sessions(&query) {
        // Words that are too long or too many fit nothing.
        Err(error) if error.is_bad_request() => Vec::new(),
        found => found?.sessions,
    };
    let mut items: Vec<Offer> = list
        .iter()
        .map(SessionLine::of)
        .map(|line| Offer {
            kind: "Session",
            detail: line
                .project
                .map_or_else(|| line.source.to_owned(), |(name, _)| format!("{} · {name}", line.source)),
            title: line.title,
            href: line.href,
        })
        .collect();
    if !words.is_empty() {
        let wanted = words.to_lowercase();
        let projects = view.choices()?.projects.into_iter();
        let fitting =
            projects.filter(|path| format::last_part(path.as_str()).to_lowercase().contains(&wanted));
        items.extend(fitting.take(PROJECTS).map(|path| Offer {
            kind: "Project",
            title: format::last_part(path.as_str()).to_owned(),
            detail: path.to_string(),
            href: format!("/sessions?project={}", in_address(path.as_str())),
        }));
        if words.contains(['.', '/']) && !words.contains(' ') {
            items.push(Offer {
                kind: "File",
                title: format!("Who wrote {words}"),
                detail: String::new(),
                href: format!("/lineage?file={}", in_address(words)),
            });
        }
        items.push(Offer {
            kind: "Search",
            title: format!("Search everything for “{words}”"),
            detail: String::new(),
            href: format!("/search?q={}", in_address(words)),
        });
    }
    Ok(Offers { items })
}
