//! The secrets page: where secrets appear, never their values.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::html::in_address;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::api::parameters::{Nothing, Params};
use crate::serve::api::secrets::{SecretAnswer, current_results};
use crate::view::SecretView;
use crate::view::format;

/// Sessions listed per secret.
const LISTED_SESSIONS: usize = 4;

#[derive(Template)]
#[template(path = "secrets.html")]
struct SecretsPage {
    frame: Frame,
    looking: bool,
    done: u64,
    all: u64,
    total: String,
    looked_at: Option<(String, String)>,
    secrets: Vec<SecretLine>,
}

struct SecretLine {
    mark: String,
    times: String,
    first: String,
    last: String,
    tools: String,
    places: String,
    /// The start of an id, and the address.
    sessions: Vec<(String, String)>,
    more: usize,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let theme = Theme::of(&headers);
    let looking = app.clone();
    render(app, caller, move |view| {
        let run = view.last_run()?;
        Ok(Some(secrets_page(&current_results(&looking, caller.scope, run), theme)))
    })
    .await
}

fn secrets_page(answer: &SecretAnswer, theme: Theme) -> SecretsPage {
    SecretsPage {
        frame: Frame::new("/secrets", "Secrets", theme),
        looking: answer.status == "looking",
        done: answer.sessions_looked_at,
        all: answer.session_count,
        total: format::counted(answer.secrets.len() as i64, "secret"),
        looked_at: answer.looked_at.clone().map(|at| {
            let shown = format::minute(&at);
            (at, shown)
        }),
        secrets: answer.secrets.iter().map(line).collect(),
    }
}

fn line(secret: &SecretView) -> SecretLine {
    let day = |at: &Option<String>| at.as_deref().map_or(String::new(), |at| format::day(at).to_owned());
    let tools: Vec<&str> = secret.tools.iter().map(|tool| tool.as_str()).collect();
    let sessions = secret.sessions.iter().take(LISTED_SESSIONS).map(|id| {
        let short: String = id.chars().take(8).collect();
        (short, format!("/sessions?include_subagents=true&q={}", in_address(id)))
    });
    SecretLine {
        mark: secret.mark.clone(),
        times: format::number(secret.occurrences),
        first: day(&secret.first_seen_at),
        last: day(&secret.last_seen_at),
        tools: tools.join(", "),
        places: secret.places.join(", "),
        more: secret.session_count.saturating_sub(LISTED_SESSIONS),
        sessions: sessions.collect(),
    }
}
