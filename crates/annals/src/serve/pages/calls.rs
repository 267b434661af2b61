//! The list of calls behind a number: those of a tool, those that failed, the slowest ones.

use askama::Template;
use serde::Deserialize;

use super::assistant::colour;
use super::filters::{Bar, Filtered, Filters};
use super::html::in_address;
use super::tools::queries;
use super::{Frame, PageRequest, Theme};
use crate::serve::answer::Answered;
use crate::view::format;
use crate::view::{CallLine, View};
use annals_core::{Error, Result};
use annals_store::{CallOrder, CallPart};

/// Calls on the page.
const LISTED: usize = 100;

#[derive(Template)]
#[template(path = "calls.html")]
struct CallsPage {
    frame: Frame,
    bar: Bar,
    title: String,
    /// Name, address, whether it is chosen.
    parts: Vec<(&'static str, String, bool)>,
    orders: Vec<(&'static str, String, bool)>,
    rows: Vec<CallRow>,
    /// There may be more than are listed.
    cut: Option<String>,
}

pub(super) struct CallRow {
    pub href: String,
    pub tool: String,
    pub call: String,
    pub session: String,
    pub label: &'static str,
    pub colour: String,
    pub project: String,
    pub at: Option<(String, String)>,
    /// How it ended, if it failed.
    pub failure: Option<String>,
    pub took: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    tool: String,
    failed: String,
    order: String,
}

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let filters = filters.or_days("30");
    asker.show(move |view, theme| calls_page(view, &filters, &parameters, theme)).await
}

fn calls_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &Parameters,
    theme: Theme,
) -> Result<CallsPage> {
    let Parameters { tool, failed, order } = parameters;
    let part = match failed.as_str() {
        "" | "false" => CallPart::All,
        "true" => CallPart::Failed,
        _ => Err(Error::bad_request("invalid value of `failed`").hint("use true or false"))?,
    };
    let sorted = match order.as_str() {
        "" => CallOrder::Latest,
        "slowest" => CallOrder::Slowest,
        _ => Err(Error::bad_request("invalid value of `order`").hint("use slowest, or leave it out"))?,
    };
    let rows = call_rows(view, filters, tool, (part, sorted), LISTED)?;
    let address = |failed: &str, order: &str| {
        filters.address("/tools/calls", &[("tool", tool), ("failed", failed), ("order", order)])
    };
    let only_failed = if part == CallPart::Failed { "true" } else { "" };
    let calls = if part == CallPart::Failed { "Failed calls" } else { "Calls" };
    let title = if tool.is_empty() { calls.to_owned() } else { format!("{calls} of {}", view.show(tool)) };
    Ok(CallsPage {
        frame: Frame::new("/tools", title.clone(), theme).with_filters(filters),
        bar: Bar::of(view, "/tools/calls", filters, &["project", "machine"])?.keeping(&[
            ("tool", tool),
            ("failed", only_failed),
            ("order", order),
        ]),
        title,
        parts: vec![
            ("All", address("", order), part == CallPart::All),
            ("Failed", address("true", order), part == CallPart::Failed),
        ],
        orders: vec![
            ("Latest", address(only_failed, ""), sorted == CallOrder::Latest),
            ("Slowest", address(only_failed, "slowest"), sorted == CallOrder::Slowest),
        ],
        cut: (rows.len() == LISTED).then(|| {
            let which = if sorted == CallOrder::Slowest { "slowest" } else { "latest" };
            format!("The {LISTED} {which} calls. A shorter period shows others.")
        }),
        rows,
    })
}

/// The first calls of what the bar includes; of all tools if none is named.
pub(super) fn call_rows(
    view: &View<'_>,
    filters: &Filters,
    tool: &str,
    which: (CallPart, CallOrder),
    limit: usize,
) -> Result<Vec<CallRow>> {
    let tool = Some(tool.trim()).filter(|tool| !tool.is_empty());
    Ok(view.calls(&queries(filters)?, tool, which, limit)?.into_iter().map(row).collect())
}

fn row(call: CallLine) -> CallRow {
    let title = call.title.as_str().lines().next().unwrap_or_default().trim();
    CallRow {
        href: format!(
            "/sessions/{}/{}?at={2}#m-{2}",
            call.source,
            in_address(&call.session_id),
            in_address(&call.step)
        ),
        call: if title.is_empty() { call.tool.to_string() } else { title.to_owned() },
        tool: call.tool.to_string(),
        session: call.session.map_or("Untitled".to_owned(), |title| title.as_str().trim().to_owned()),
        label: call.provider_label,
        colour: colour(call.source),
        project: call.cwd.map_or(String::new(), |cwd| format::last_part(cwd.as_str()).to_owned()),
        at: call.at.map(|at| (at.clone(), format::minute(&at))),
        failure: call
            .failed
            .then(|| call.exit_code.map_or("failed".to_owned(), |code| format!("exit {code}"))),
        took: call.milliseconds.map_or(String::new(), format::milliseconds),
    }
}
