//! The sessions page: one list over all sources, with filters in the address.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;

use super::html::in_address;
use super::rows::SessionLine;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
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
    filters: FilterForm,
    choices: Choices,
    /// Name, label, whether it is set.
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

/// The filters as entered.
#[derive(Default)]
struct FilterForm {
    q: String,
    project: String,
    model: String,
    branch: String,
    since: String,
    until: String,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<AllSessionParameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let parameters = parameters.without_blanks();
    let (filter, page) = parameters.clone().read()?;
    Ok(render(app, caller, move |view| {
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
        let text_of = |value: &Option<String>| value.clone().unwrap_or_default();
        Ok(Some(SessionsPage {
            frame: Frame::new("/sessions", "Sessions", theme),
            providers,
            source: text_of(&parameters.source),
            filters: FilterForm {
                q: text_of(&parameters.q),
                project: text_of(&parameters.project),
                model: text_of(&parameters.model),
                branch: text_of(&parameters.branch),
                since: format::day(&text_of(&parameters.since)).to_owned(),
                until: format::day(&text_of(&parameters.until)).to_owned(),
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

/// The address of this list, without some of its parameters.
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
