//! The insights page: what cost most, took longest and failed most, and when; every number links to what is behind it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;

use super::calls::{CallRow, call_rows};
use super::filters::{Bar, Filtered, Filters};
use super::html::Html;
use super::plot::hour_map;
use super::rows::SessionLine;
use super::tools::sums;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::Nothing;
use crate::view::format;
use crate::view::{Paging, SessionOrder, SessionQuery, View};
use annals_core::Result;
use annals_store::{CallOrder, CallPart};

/// Sessions in each list.
const TOP: i64 = 5;
/// Calls in the list of the slowest.
const SLOWEST: usize = 8;
/// Tools in the list of failures.
const TOOLS: usize = 8;
/// Calls below which a rate says little.
const FEWEST_CALLS: i64 = 5;
/// Days of the map of hours.
const DAYS: i64 = 90;

#[derive(Template)]
#[template(path = "insights.html")]
struct InsightsPage {
    frame: Frame,
    tab: &'static str,
    bar: Bar,
    lists: Vec<List>,
    failures: Vec<ToolLine>,
    failed: String,
    /// The slowest calls, and where more of them are.
    rows: Vec<CallRow>,
    slowest: String,
    hours: Option<Html>,
}

struct List {
    title: &'static str,
    /// Where the whole list is.
    address: String,
    rows: Vec<SessionLine>,
}

struct ToolLine {
    name: String,
    href: String,
    calls_address: String,
    failed: String,
    calls: String,
    rate: String,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Filtered(filters, Nothing {}): Filtered<Nothing>,
) -> Answered {
    let theme = Theme::of(&headers);
    let filters = filters.or_days("30");
    Ok(render(app, caller, move |view| insights(view, &filters, theme).map(Some)).await)
}

fn insights(view: &View<'_>, filters: &Filters, theme: Theme) -> Result<InsightsPage> {
    let orders = [
        ("Most expensive sessions", SessionOrder::Cost, "cost"),
        ("Sessions with most failures", SessionOrder::Failures, "failures"),
        ("Longest sessions", SessionOrder::Duration, "duration"),
        ("Sessions with most messages", SessionOrder::Messages, "messages"),
    ];
    let mut lists = Vec::new();
    for (title, order, name) in orders {
        let query = SessionQuery {
            filter: filters.of_sessions()?,
            page: Paging { limit: TOP, cursor: None },
            brief: true,
        };
        let list = view.sessions_in_order(&query, order)?;
        let mut rows = Vec::new();
        for session in &list.sessions {
            rows.push(SessionLine::of(session).with_tally(session, view.session_tally(session)?));
        }
        let address = filters.address("/sessions", &[("compare", ""), ("sort", name)]);
        lists.push(List { title, address, rows });
    }
    let sums = sums(view, filters)?;
    let mut failures: Vec<(&String, i64, i64)> =
        sums.tools.iter().map(|(name, tool)| (name, tool.calls, tool.failed)).collect();
    failures.retain(|(_, calls, failed)| *failed > 0 && *calls >= FEWEST_CALLS);
    failures.sort_by_key(|(name, _, failed)| (std::cmp::Reverse(*failed), *name));
    let failures = failures.into_iter().take(TOOLS).map(|(name, calls, failed)| ToolLine {
        name: name.clone(),
        href: filters.address("/tools/calls", &[("tool", name), ("failed", "true")]),
        calls_address: filters.address("/tools/calls", &[("tool", name)]),
        failed: format::number(failed),
        calls: format::number(calls),
        rate: format::percent(failed as f64 / calls.max(1) as f64),
    });
    let hours = view.week_hours(DAYS)?;
    Ok(InsightsPage {
        frame: Frame::new("/insights", "Insights", theme).with_filters(filters),
        tab: "insights",
        bar: Bar::of(view, "/insights", filters, &["project", "machine"])?,
        lists,
        failures: failures.collect(),
        failed: format!(
            "{} of {} failed ({})",
            format::number(sums.failed),
            format::counted(sums.calls, "call"),
            format::percent(sums.failed as f64 / sums.calls.max(1) as f64)
        ),
        rows: call_rows(view, filters, "", (CallPart::All, CallOrder::Slowest), SLOWEST)?,
        slowest: filters.address("/tools/calls", &[("compare", ""), ("order", "slowest")]),
        hours: hours.iter().flatten().any(|count| *count > 0).then(|| hour_map(&hours, "prompts")),
    })
}
