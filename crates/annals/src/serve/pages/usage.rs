//! The usage page: tokens and cost by day, model and project; every bar links to its sessions.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use super::html::{Html, in_address};
use super::plot::{Bar, FILLS, Unit, stacked_bars};
use super::{Frame, Theme, plot, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::{Params, check_source, days_of};
use crate::view::format;
use crate::view::{DailyUsage, ModelUsage, Paging, UsageQuery, UsageRow, View, source_labels};
use annals_core::{Result, Time};
use annals_store::{ResponseFilter, UsageBy};

/// Rows in each table.
const LINES: i64 = 25;
/// Most days in a plot: a bar must be wide enough to click.
const WIDEST: i64 = 180;

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    frame: Frame,
    ranges: Vec<(&'static str, String, bool)>,
    providers: Vec<(&'static str, String, bool)>,
    numbers: Vec<(&'static str, String)>,
    unpriced: Vec<(String, String)>,
    plots: Vec<Figure>,
    legend: Vec<String>,
    tables: Vec<Table>,
    footnote: String,
}

/// A plot and its caption.
pub(super) struct Figure {
    pub caption: String,
    pub svg: Html,
}

struct Table {
    by: &'static str,
    lines: Vec<Line>,
}

struct Line {
    name: String,
    href: String,
    cost: String,
    tokens: String,
    input: String,
    output: String,
    cache: String,
    cache_share: String,
    responses: String,
    share: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    days: String,
    source: String,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let non_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let days = days_of(non_empty(&parameters.days).as_deref())?;
    check_source(non_empty(&parameters.source).as_deref())?;
    Ok(render(app, caller, move |view| usage_page(view, &parameters, days, theme).map(Some)).await)
}

fn usage_page(
    view: &View<'_>,
    parameters: &Parameters,
    days: Option<i64>,
    theme: Theme,
) -> Result<UsagePage> {
    let source = Some(parameters.source.clone()).filter(|source| !source.is_empty());
    let filter = ResponseFilter { source, ..ResponseFilter::default() };
    let daily = view.daily_usage(&filter, days)?;
    let with_source = match parameters.source.as_str() {
        "" => String::new(),
        source => format!("&source={source}"),
    };
    let span = days.unwrap_or_else(|| days_since(&daily, view.now())).min(WIDEST);
    let (plots, legend) = figures(&daily, span, view.now(), &with_source);
    let report = |by: UsageBy| {
        let page = Paging { limit: LINES, cursor: None };
        let query = UsageQuery { by, days, filter: filter.clone(), page };
        view.usage(&query)
    };
    let since = days.map(|days| Time::from_day(view.now().day() - days + 1).date());
    let mut tables = Vec::new();
    let by_day = report(UsageBy::Day)?;
    for (by, kind, report) in [
        ("model", UsageBy::Model, report(UsageBy::Model)?),
        ("project", UsageBy::Project, report(UsageBy::Project)?),
        ("source", UsageBy::Source, report(UsageBy::Source)?),
    ] {
        let most = report.rows.iter().map(|row| row.tokens.total).max().unwrap_or(1);
        let lines = report.rows.iter().map(|row| line(row, most, kind, since.as_deref(), &with_source));
        tables.push(Table { by, lines: lines.collect() });
    }
    let most = by_day.rows.iter().map(|row| row.tokens.total).max().unwrap_or(1);
    let lines = by_day.rows.iter().map(|row| line(row, most, UsageBy::Day, None, &with_source));
    tables.push(Table { by: "day", lines: lines.collect() });
    let total = &by_day.total;
    let days_value = days.map_or("all".to_owned(), |days| days.to_string());
    let range = |value: &str| match parameters.source.as_str() {
        "" => format!("/usage?days={value}"),
        source => format!("/usage?days={value}&source={source}"),
    };
    let mut providers = vec![("All", format!("/usage?days={days_value}"), parameters.source.is_empty())];
    for (source, label) in source_labels() {
        let address = format!("/usage?days={days_value}&source={source}");
        providers.push((label, address, parameters.source == source));
    }
    Ok(UsagePage {
        frame: Frame::new("/usage", "Usage", theme),
        ranges: [
            ("7 days", "7"),
            ("30 days", "30"),
            ("90 days", "90"),
            ("1 year", "365"),
            ("all time", "all"),
        ]
        .map(|(name, value)| (name, range(value), value == days_value))
        .to_vec(),
        providers,
        numbers: vec![
            ("estimated cost", total.cost_usd.map_or("no price".into(), format::money)),
            ("tokens", format::compact(total.tokens.total)),
            ("of input tokens were cache reads", cache_share(total)),
            ("responses", format::number(total.response_count)),
        ],
        unpriced: by_day
            .unpriced_models
            .iter()
            .map(|model| (model.model.to_string(), format!("{} tokens", format::compact(model.tokens))))
            .collect(),
        plots: if daily.days.is_empty() { Vec::new() } else { plots },
        legend,
        tables,
        footnote: format!(
            "Costs are estimates from list prices. {} in forks and resumed sessions not counted again. Days are in UTC.",
            format::counted(by_day.excluded_copies, "copied response")
        ),
    })
}

fn days_since(daily: &DailyUsage, now: Time) -> i64 {
    let first = daily.days.first().and_then(|day| Time::parse(&format!("{}T00:00:00Z", day.date)));
    first.map_or(1, |first| now.day() - first.day() + 1).max(1)
}

fn line(row: &UsageRow, most: i64, by: UsageBy, since: Option<&str>, with_source: &str) -> Line {
    let key = row.key.as_ref().map(|key| key.as_str());
    let since = since.map_or(String::new(), |since| format!("&since={since}"));
    let href = match (by, key) {
        (UsageBy::Day, Some(date)) => day_address(date, with_source),
        (UsageBy::Model, Some(model)) => format!("/sessions?model={}{since}{with_source}", in_address(model)),
        (UsageBy::Project, Some(folder)) => {
            format!("/sessions?project={}{since}{with_source}", in_address(folder))
        }
        (UsageBy::Source, Some(source)) => format!("/sessions?source={}{since}", in_address(source)),
        (UsageBy::Session, _) | (_, None) => "/sessions".into(),
    };
    let tokens = &row.tokens;
    Line {
        name: key.unwrap_or("unknown").to_owned(),
        href,
        cost: row.cost_usd.map_or("–".into(), format::money),
        tokens: format::compact(tokens.total),
        input: format::compact(tokens.input),
        output: format::compact(tokens.output),
        cache: format::compact(tokens.cache_read),
        cache_share: cache_share(row),
        responses: format::number(row.response_count),
        share: plot::share(tokens.total, most),
    }
}

/// The share of input tokens that were cache reads.
fn cache_share(row: &UsageRow) -> String {
    let sent = row.tokens.input + row.tokens.cache_read + row.tokens.cache_write;
    if sent == 0 {
        "–".into()
    } else {
        format!("{:.0} %", 100.0 * row.tokens.cache_read as f64 / sent as f64)
    }
}

/// Address of the sessions that were active on a day.
fn day_address(date: &str, with_source: &str) -> String {
    let next = Time::parse(&format!("{date}T00:00:00Z")).map(|day| Time::from_day(day.day() + 1).date());
    let until = next.map_or(String::new(), |next| format!("&until={next}"));
    format!("/sessions?since={date}{until}&include_subagents=true{with_source}")
}

/// Tokens and cost by day, models stacked, and the legend.
pub(super) fn figures(
    daily: &DailyUsage,
    days: i64,
    now: Time,
    with_source: &str,
) -> (Vec<Figure>, Vec<String>) {
    let mut totals: HashMap<String, i64> = HashMap::new();
    for model in daily.days.iter().flat_map(|day| &day.models) {
        *totals.entry(name_of(model)).or_default() += model.tokens.total;
    }
    let mut names: Vec<(String, i64)> = totals.into_iter().collect();
    names.sort_by(|(left, many), (right, more)| more.cmp(many).then_with(|| left.cmp(right)));
    let mut legend: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    if legend.len() > FILLS {
        legend.truncate(FILLS - 1);
        legend.push("other models".into());
    }
    let place = |model: &ModelUsage| {
        let name = name_of(model);
        legend.iter().position(|known| *known == name).unwrap_or(legend.len().saturating_sub(1))
    };
    let by_date: HashMap<&str, &[ModelUsage]> =
        daily.days.iter().map(|day| (day.date.as_str(), day.models.as_slice())).collect();
    let bars = |measure: &dyn Fn(&ModelUsage) -> f64| -> Vec<Bar> {
        let today = now.day();
        let dates = (today - days + 1..=today).map(|day| Time::from_day(day).date());
        dates
            .map(|date| {
                let mut parts = vec![0.0; legend.len()];
                for model in by_date.get(date.as_str()).copied().unwrap_or_default() {
                    if let Some(part) = parts.get_mut(place(model)) {
                        *part += measure(model);
                    }
                }
                Bar { href: day_address(&date, with_source), label: date, parts }
            })
            .collect()
    };
    let tokens = bars(&|model| model.tokens.total as f64);
    let cost = bars(&|model| model.cost_usd.unwrap_or(0.0));
    let mut figures = vec![Figure {
        caption: "Tokens by day and model. Click a bar to see its sessions.".into(),
        svg: stacked_bars(&tokens, &legend, Unit::Tokens, "Tokens by day and model"),
    }];
    if cost.iter().any(|bar| bar.parts.iter().sum::<f64>() > 0.0) {
        figures.push(Figure {
            caption: "Estimated cost by day and model. Click a bar to see its sessions.".into(),
            svg: stacked_bars(&cost, &legend, Unit::Dollars, "Estimated cost by day and model"),
        });
    }
    (figures, legend)
}

fn name_of(model: &ModelUsage) -> String {
    model.model.as_ref().map_or("unknown".into(), ToString::to_string)
}
