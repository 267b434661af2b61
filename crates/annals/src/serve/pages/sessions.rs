//! The sessions page: one list over all sources, grouped by day or ranked, with filters in the address.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use super::assistant::colour;
use super::filters::{Bar, Filtered, Filters};
use super::rows::{SessionLine, mark_days};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::AllSessionParameters;
use crate::view::format;
use crate::view::{SessionOrder, SessionQuery, View, source_labels};
use annals_core::{Error, Result};
use annals_store::{Facet as SharedBy, SessionFilter};

/// Projects among the facets.
const PROJECTS: usize = 8;
/// Sessions on a page.
const ROWS: i64 = 50;

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    frame: Frame,
    bar: Bar,
    facets: Vec<Facet>,
    orders: Vec<(&'static str, String, bool)>,
    /// Rows are grouped by day.
    by_day: bool,
    total: String,
    /// The address of this list, to which its form leads back.
    list: String,
    rows: Vec<SessionLine>,
    more: Option<String>,
}

/// A value that sessions can be narrowed to, with how many there are.
struct Facet {
    name: String,
    colour: Option<String>,
    address: String,
    count: String,
    chosen: bool,
}

/// Parameters besides those of the bar.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListParameters {
    q: String,
    branch: String,
    tag: String,
    /// The session that started those to be listed.
    parent: String,
    include_subagents: String,
    errors: String,
    archived: String,
    gone: String,
    starred: String,
    has_note: String,
    hidden: String,
    sort: String,
    limit: String,
    cursor: String,
}

impl ListParameters {
    fn pairs(&self) -> [(&'static str, &str); 12] {
        [
            ("q", &self.q),
            ("branch", &self.branch),
            ("tag", &self.tag),
            ("parent", &self.parent),
            ("include_subagents", &self.include_subagents),
            ("errors", &self.errors),
            ("archived", &self.archived),
            ("gone", &self.gone),
            ("starred", &self.starred),
            ("has_note", &self.has_note),
            ("hidden", &self.hidden),
            ("sort", &self.sort),
        ]
    }

    /// The address of this list with some parameters set anew; its pages start again.
    fn address(&self, filters: &Filters, set: &[(&str, &str)]) -> String {
        let kept = self.pairs().into_iter().filter(|(name, _)| set.iter().all(|(new, _)| new != name));
        let all: Vec<(&str, &str)> = kept.chain(set.iter().copied()).collect();
        filters.address("/sessions", &all)
    }

    fn query(&self, filters: &Filters) -> Result<(SessionQuery, SessionOrder)> {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        let flag = |name: &str, value: &str| match value {
            "" => Ok(None),
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(Error::bad_request(format!("invalid value of `{name}`")).hint("use true or false")),
        };
        let limit = match self.limit.as_str() {
            "" => ROWS,
            text => text.parse().map_err(|_| {
                Error::bad_request("invalid value of `limit`").hint("use a number from 1 to 500")
            })?,
        };
        let parameters = AllSessionParameters {
            source: text(&filters.source),
            project: text(&filters.project),
            model: text(&filters.model),
            branch: text(&self.branch),
            q: text(&self.q),
            include_subagents: flag("include_subagents", &self.include_subagents)?,
            errors: flag("errors", &self.errors)?,
            archived: flag("archived", &self.archived)?,
            gone: flag("gone", &self.gone)?,
            tag: text(&self.tag),
            starred: flag("starred", &self.starred)?,
            has_note: flag("has_note", &self.has_note)?,
            hidden: flag("hidden", &self.hidden)?,
            limit: Some(limit),
            cursor: text(&self.cursor),
            ..AllSessionParameters::default()
        };
        let (filter, page) = parameters.read()?;
        let period = filters.period()?;
        let filter = SessionFilter {
            since: period.since,
            until: period.until,
            machine: text(&filters.machine),
            parent: text(&self.parent),
            ..filter
        };
        let order = SessionOrder::from_name(&self.sort).ok_or_else(|| {
            Error::bad_request("invalid value of `sort`")
                .hint("use latest, cost, messages, failures or duration")
        })?;
        Ok((SessionQuery { filter, page, brief: true }, order))
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Filtered(filters, list): Filtered<ListParameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let (query, order) = list.query(&filters)?;
    Ok(render(app, caller, move |view| sessions_page(view, &filters, &list, &query, order, theme).map(Some))
        .await)
}

fn sessions_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &ListParameters,
    query: &SessionQuery,
    order: SessionOrder,
    theme: Theme,
) -> Result<SessionsPage> {
    let list = view.sessions_in_order(query, order)?;
    let mut rows = Vec::with_capacity(list.sessions.len());
    for session in &list.sessions {
        let line = SessionLine::of(session).with_tally(session, view.session_tally(session)?);
        rows.push(line.selectable(session));
    }
    let by_day = order == SessionOrder::Latest;
    if by_day {
        mark_days(&mut rows);
    }
    let more = list.next_cursor.as_ref().map(|cursor| parameters.address(filters, &[("cursor", cursor)]));
    let orders = [
        ("Latest", ""),
        ("Cost", "cost"),
        ("Messages", "messages"),
        ("Failures", "failures"),
        ("Duration", "duration"),
    ];
    let set = |value: &str| value == "true";
    let bar = Bar::of(view, "/sessions", filters, &["project", "model", "machine"])?
        .with_search("Title or path", "title, path, branch, id", &parameters.q)
        .with_flags(vec![
            ("errors", "with errors", set(&parameters.errors)),
            ("include_subagents", "include sub-agents", set(&parameters.include_subagents)),
            ("archived", "archived", set(&parameters.archived)),
            ("gone", "deleted by client", set(&parameters.gone)),
            ("starred", "starred", set(&parameters.starred)),
            ("has_note", "with a note", set(&parameters.has_note)),
            ("hidden", "hidden", set(&parameters.hidden)),
        ])
        .keeping(&[
            ("branch", &parameters.branch),
            ("tag", &parameters.tag),
            ("parent", &parameters.parent),
            ("sort", &parameters.sort),
        ]);
    Ok(SessionsPage {
        frame: Frame::new("/sessions", "Sessions", theme).with_filters(filters),
        bar,
        facets: facets(view, filters, parameters, &query.filter)?,
        orders: orders
            .map(|(name, value)| {
                let chosen = SessionOrder::from_name(value) == Some(order);
                (name, parameters.address(filters, &[("sort", value)]), chosen)
            })
            .to_vec(),
        by_day,
        total: format::counted(list.total, "session"),
        list: parameters.address(filters, &[]),
        rows,
        more,
    })
}

/// Assistants and projects of the sessions that fit, each as if it were not chosen yet.
fn facets(
    view: &View<'_>,
    filters: &Filters,
    parameters: &ListParameters,
    filter: &SessionFilter,
) -> Result<Vec<Facet>> {
    let address = |name: &str, value: &str| parameters.address(filters, &[(name, value)]);
    let any_source = SessionFilter { source: None, ..filter.clone() };
    let sources = view.session_counts(SharedBy::Source, &any_source)?;
    let all: i64 = sources.iter().map(|(_, count)| *count).sum();
    let mut facets = vec![Facet {
        name: "All".to_owned(),
        colour: None,
        address: address("source", ""),
        count: format::number(all),
        chosen: filters.source.is_empty(),
    }];
    for (source, count) in sources {
        let label = source_labels().find(|(name, _)| *name == source.as_str());
        facets.push(Facet {
            name: label.map_or_else(|| source.to_string(), |(_, label)| label.to_owned()),
            colour: Some(colour(source.as_str())),
            address: address("source", source.as_str()),
            count: format::number(count),
            chosen: filters.source == source.as_str(),
        });
    }
    let any_project = SessionFilter { project: None, project_part: None, ..filter.clone() };
    let projects = view.session_counts(SharedBy::Project, &any_project)?;
    for (project, count) in projects.into_iter().take(PROJECTS) {
        let chosen = filters.project == project.as_str();
        facets.push(Facet {
            name: format::last_part(project.as_str()).to_owned(),
            colour: None,
            address: address("project", if chosen { "" } else { project.as_str() }),
            count: format::number(count),
            chosen,
        });
    }
    Ok(facets)
}
