//! The sessions page: one list over all sources, with filters in the address.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;

use super::html::in_address;
use super::rows::SessionLine;
use super::{Frame, Theme, shown};
use crate::serve::App;
use crate::serve::access::Asker;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::{AllSessionParameters, Params};
use crate::view::format;
use crate::view::{Choices, SessionQuery, source_labels};

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    frame: Frame,
    providers: Vec<Provider>,
    source: String,
    filters: Words,
    choices: Choices,
    /// Name, words, whether it is set.
    flags: Vec<(&'static str, &'static str, bool)>,
    total: String,
    rows: Vec<SessionLine>,
    more: Option<String>,
}

struct Provider {
    href: String,
    name: &'static str,
    chosen: bool,
}

/// The filters as they were written.
#[derive(Default)]
struct Words {
    q: String,
    project: String,
    model: String,
    branch: String,
    since: String,
    until: String,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    asker: Asker,
    headers: HeaderMap,
    Params(parameters): Params<AllSessionParameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let parameters = parameters.without_blanks();
    let (filter, page) = parameters.clone().read()?;
    Ok(shown(app, asker, move |view| {
        let query = SessionQuery { filter, page, brief: true };
        let list = view.sessions(&query)?;
        let without = |name: &str| address(&parameters, &[name, "cursor"]);
        let mut providers =
            vec![Provider { href: without("source"), name: "All", chosen: parameters.source.is_none() }];
        for (source, name) in source_labels() {
            let rest = without("source");
            let join = if rest.contains('?') { '&' } else { '?' };
            providers.push(Provider {
                href: format!("{rest}{join}source={source}"),
                name,
                chosen: parameters.source.as_deref() == Some(source),
            });
        }
        let more = list.next_cursor.as_ref().map(|cursor| {
            let rest = without("cursor");
            let join = if rest.contains('?') { '&' } else { '?' };
            format!("{rest}{join}cursor={}", in_address(cursor))
        });
        let words_of = |value: &Option<String>| value.clone().unwrap_or_default();
        Ok(Some(SessionsPage {
            frame: Frame::new("/sessions", "Sessions", theme),
            providers,
            source: words_of(&parameters.source),
            filters: Words {
                q: words_of(&parameters.q),
                project: words_of(&parameters.project),
                model: words_of(&parameters.model),
                branch: words_of(&parameters.branch),
                since: format::day(&words_of(&parameters.since)).to_owned(),
                until: format::day(&words_of(&parameters.until)).to_owned(),
            },
            choices: view.choices()?,
            flags: vec![
                ("errors", "with errors", parameters.errors == Some(true)),
                ("include_subagents", "include sub-agents", parameters.include_subagents == Some(true)),
                ("archived", "archived", parameters.archived == Some(true)),
                ("gone", "deleted by client", parameters.gone == Some(true)),
            ],
            total: format::counted(list.total, "session"),
            rows: list.sessions.iter().map(SessionLine::of).collect(),
            more,
        }))
    })
    .await)
}

/// The address of the list as it was asked for, without some of its parameters.
fn address(parameters: &AllSessionParameters, without: &[&str]) -> String {
    let fields = serde_json::to_value(parameters).unwrap_or_default();
    let mut pairs = Vec::new();
    for (name, value) in fields.as_object().into_iter().flatten() {
        if !without.contains(&name.as_str()) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            pairs.push(format!("{name}={}", in_address(&value)));
        }
    }
    if pairs.is_empty() { "/sessions".into() } else { format!("/sessions?{}", pairs.join("&")) }
}
