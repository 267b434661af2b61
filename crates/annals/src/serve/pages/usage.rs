//! The usage page: tokens and cost over a period and by model, project and assistant; every bar links to its sessions.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::charts::{Figure, Figures, usage_figures};
use super::filters::{Bar, Filtered, Filters, Period};
use super::plot::Series;
use super::treemap::treemap;
use super::{Frame, PageRequest, Theme, plot};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, with_view};
use crate::view::format;
use crate::view::{Paging, UsageQuery, UsageReport, UsageRow, View, source_labels};
use annals_core::{Error, Result, Time};
use annals_store::UsageBy;

/// Rows in a table until all are asked for.
const LINES: usize = 25;

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    frame: Frame,
    bar: Bar,
    numbers: Vec<Number>,
    unpriced: Vec<(String, String)>,
    /// What charts are stacked by: name, address, whether it is chosen.
    stacks: Vec<(&'static str, String, bool)>,
    plots: Vec<Figure>,
    legend: Vec<Series>,
    /// Projects and models as areas, with their own legend.
    areas: Figures,
    tables: Vec<Table>,
    footnote: String,
}

/// A sum, and how it differs from the period before.
pub(super) struct Number {
    pub value: String,
    pub name: String,
    pub change: Option<String>,
}

struct Table {
    by: &'static str,
    /// What people call it.
    title: &'static str,
    lines: Vec<Line>,
    /// How many rows there are, and where all of them are listed.
    rest: Option<(String, String)>,
    csv: String,
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
    /// What charts are stacked by.
    by: String,
    /// `all`, or nothing for the start of each table.
    rows: String,
}

/// What charts can be stacked by, as in the address and as people call it.
const STACKS: [(&str, &str); 3] = [("model", "Model"), ("project", "Project"), ("source", "Assistant")];

impl Parameters {
    fn by(&self) -> Result<UsageBy> {
        let name = if self.by.is_empty() { "model" } else { &self.by };
        let known = STACKS.iter().any(|(known, _)| *known == name);
        UsageBy::from_name(name)
            .filter(|_| known)
            .ok_or_else(|| Error::bad_request("invalid value of `by`").hint("use model, project or source"))
    }
}

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let filters = filters.or_days("30");
    let by = parameters.by()?;
    asker.show(move |view, theme| usage_page(view, &filters, &parameters, by, theme)).await
}

fn usage_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &Parameters,
    by: UsageBy,
    theme: Theme,
) -> Result<UsagePage> {
    let period = filters.period()?;
    let by_day = report(view, filters, period, UsageBy::Day)?;
    let Figures { figures, legend } = usage_figures(view, filters, period, by)?;
    let all = parameters.rows == "all";
    let mut tables = Vec::new();
    for (kind, title) in [
        (UsageBy::Model, "model"),
        (UsageBy::Project, "project"),
        (UsageBy::Source, "assistant"),
        (UsageBy::Day, "day"),
    ] {
        let report = if kind == UsageBy::Day { None } else { Some(report(view, filters, period, kind)?) };
        let rows = &report.as_ref().unwrap_or(&by_day).rows;
        tables.push(table(rows, kind, title, filters, all, by));
    }
    let before = period.before(view.now()).filter(|_| filters.compares());
    let before = before.map(|before| report(view, filters, before, UsageBy::Day)).transpose()?;
    let set = |name: &'static str, value: &'static str| filters.address("/usage", &[(name, value)]);
    Ok(UsagePage {
        frame: Frame::new("/usage", "Usage", theme).with_filters(filters),
        bar: Bar::of(view, "/usage", filters, &["project", "model", "machine", "compare"])?
            .keeping(&[("by", &parameters.by)]),
        numbers: numbers(&by_day.total, before.as_ref().map(|before| &before.total)),
        unpriced: by_day
            .unpriced_models
            .iter()
            .map(|model| (model.model.to_string(), format!("{} tokens", format::compact(model.tokens))))
            .collect(),
        stacks: STACKS.map(|(value, name)| (name, set("by", value), by.name() == value)).to_vec(),
        plots: if by_day.rows.is_empty() { Vec::new() } else { figures },
        legend,
        areas: treemap(&view.usage_areas(&filters.of_responses(period))?, filters),
        tables,
        footnote: format!(
            "Costs are estimates from list prices. {} in forks and resumed sessions not counted again. Days are in UTC.",
            format::counted(by_day.excluded_copies, "copied response")
        ),
    })
}

fn report(view: &View<'_>, filters: &Filters, period: Period, by: UsageBy) -> Result<UsageReport> {
    let page = Paging { limit: i64::MAX, cursor: None };
    view.usage(&UsageQuery { by, days: None, filter: filters.of_responses(period), page })
}

fn numbers(total: &UsageRow, before: Option<&UsageRow>) -> Vec<Number> {
    let number = |value: String, name: &str, now: f64, then: Option<f64>| Number {
        value,
        name: name.to_owned(),
        change: then.map(|then| change(now, then)),
    };
    vec![
        number(
            total.cost_usd.map_or("no price".into(), format::money),
            "estimated cost",
            total.cost_usd.unwrap_or(0.0),
            before.map(|before| before.cost_usd.unwrap_or(0.0)),
        ),
        number(
            format::compact(total.tokens.total),
            "tokens",
            total.tokens.total as f64,
            before.map(|before| before.tokens.total as f64),
        ),
        number(cache_share(total), "of input tokens were cache reads", 0.0, None),
        number(
            format::number(total.response_count),
            "responses",
            total.response_count as f64,
            before.map(|before| before.response_count as f64),
        ),
    ]
}

/// `+12 % to the period before`.
pub(super) fn change(now: f64, then: f64) -> String {
    if then <= 0.0 {
        return "nothing in the period before".to_owned();
    }
    let percent = 100.0 * (now - then) / then;
    format!("{percent:+.0} % to the period before")
}

fn table(
    rows: &[UsageRow],
    by: UsageBy,
    title: &'static str,
    filters: &Filters,
    all: bool,
    stacked: UsageBy,
) -> Table {
    let most = rows.iter().map(measure).fold(0.0, f64::max);
    let shown = if all { rows.len() } else { LINES };
    let lines = rows.iter().take(shown).map(|row| line(row, most, by, filters));
    let address = filters.address("/usage", &[("rows", "all"), ("by", stacked.name())]);
    Table {
        by: by.name(),
        title,
        lines: lines.collect(),
        rest: (rows.len() > shown).then(|| {
            (format!("{shown} of {}", format::number(rows.len())), format!("{address}#by-{}", by.name()))
        }),
        csv: filters.address("/usage/csv", &[("by", by.name())]),
    }
}

/// What the bar of a row shows: its cost, or its tokens where nothing has a price.
fn measure(row: &UsageRow) -> f64 {
    row.cost_usd.unwrap_or(row.tokens.total as f64 / 1e9)
}

fn line(row: &UsageRow, most: f64, by: UsageBy, filters: &Filters) -> Line {
    let key = row.key.as_ref().map(|key| key.as_str());
    let sessions = |set: &[(&str, &str)]| {
        let fixed = [("compare", ""), ("include_subagents", "true")];
        filters.address("/sessions", &[&fixed[..], set].concat())
    };
    let href = match (by, key) {
        (UsageBy::Day, Some(date)) => {
            let day = Time::parse(&format!("{date}T00:00:00Z")).map_or(0, Time::day);
            let next = Time::from_day(day + 1).date();
            sessions(&[("days", ""), ("since", date), ("until", &next)])
        }
        (UsageBy::Model, Some(model)) => sessions(&[("model", model)]),
        (UsageBy::Project, Some(folder)) => sessions(&[("project", folder)]),
        (UsageBy::Source, Some(source)) => sessions(&[("source", source)]),
        (UsageBy::Session | UsageBy::Member, _) | (_, None) => sessions(&[]),
    };
    let tokens = &row.tokens;
    Line {
        name: name_of(row, by),
        href,
        cost: row.cost_usd.map_or("–".into(), format::money),
        tokens: format::compact(tokens.total),
        input: format::compact(tokens.input),
        output: format::compact(tokens.output),
        cache: format::compact(tokens.cache_read),
        cache_share: cache_share(row),
        responses: format::number(row.response_count),
        share: plot::share((measure(row) * 1e6) as i64, (most * 1e6) as i64),
    }
}

fn name_of(row: &UsageRow, by: UsageBy) -> String {
    let key = row.key.as_ref().map_or("unknown", |key| key.as_str());
    let label = source_labels().find(|(name, _)| by == UsageBy::Source && *name == key);
    label.map_or_else(|| key.to_owned(), |(_, label)| label.to_owned())
}

/// The share of input tokens that were cache reads.
fn cache_share(row: &UsageRow) -> String {
    let sent = row.tokens.input + row.tokens.cache_read + row.tokens.cache_write;
    if sent == 0 { "–".into() } else { format::percent(row.tokens.cache_read as f64 / sent as f64) }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TableParameters {
    by: String,
}

/// A table of the page with all its rows, for spreadsheets.
pub(super) async fn csv(
    State(app): State<Arc<App>>,
    caller: Caller,
    Filtered(filters, parameters): Filtered<TableParameters>,
) -> Answered {
    let filters = filters.or_days("30");
    let by = UsageBy::from_name(&parameters.by).filter(|by| *by != UsageBy::Session).ok_or_else(|| {
        Refusal::from(Error::bad_request("invalid value of `by`").hint("use day, model, project or source"))
    })?;
    let found = with_view(app, caller, move |view| {
        report(view, &filters, filters.period()?, by).map(|report| Some(csv_of(&report, by)))
    });
    Ok(match found.await? {
        Some(text) => csv_response(text),
        None => Refusal::not_found("not found").into_response(),
    })
}

fn csv_response(text: String) -> Response {
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, "attachment; filename=usage.csv")];
    (headers, text).into_response()
}

fn csv_of(report: &UsageReport, by: UsageBy) -> String {
    let mut text =
        format!("{},cost_usd,input,output,cache_read,cache_write,reasoning,total,responses\r\n", by.name());
    for row in &report.rows {
        let tokens = &row.tokens;
        let cost = row.cost_usd.map_or(String::new(), |cost| cost.to_string());
        let numbers = [
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.reasoning,
            tokens.total,
            row.response_count,
        ];
        let numbers = numbers.map(|number| number.to_string()).join(",");
        text.push_str(&format!("{},{cost},{numbers}\r\n", quoted(&name_of(row, by))));
    }
    text
}

/// A field of CSV. What a spreadsheet would take for a formula starts with a quote.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = format!("{}{field}", if formula { "'" } else { "" });
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::{change, quoted, table};
    use crate::serve::pages::filters::Filters;
    use crate::view::UsageRow;
    use annals_core::{Shown, Tokens};
    use annals_store::UsageBy;

    #[test]
    fn a_table_says_what_it_leaves_out() {
        let row = |number: usize| UsageRow {
            key: Some(Shown::new(format!("model-{number}"))),
            source: None,
            tokens: Tokens::default().into(),
            response_count: 1,
            cost_usd: None,
            billing_source: "unknown",
            unpriced_models: Vec::new(),
        };
        let rows: Vec<UsageRow> = (0..30).map(row).collect();
        let of = |rows: &[UsageRow], all| {
            let table = table(rows, UsageBy::Model, "model", &Filters::default(), all, UsageBy::Source);
            (table.lines.len(), table.rest)
        };
        let rest = ("25 of 30".to_owned(), "/usage?rows=all&by=source#by-model".to_owned());
        assert_eq!(of(&rows, false), (25, Some(rest)));
        assert_eq!(of(&rows, true), (30, None));
        assert_eq!(of(&rows[..25], false), (25, None));
    }

    #[test]
    fn fields_of_a_spreadsheet_are_text() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=cmd()"), "'=cmd()");
    }

    #[test]
    fn changes_are_relative() {
        assert_eq!(change(112.0, 100.0), "+12 % to the period before");
        assert_eq!(change(50.0, 100.0), "-50 % to the period before");
        assert_eq!(change(1.0, 0.0), "nothing in the period before");
    }
}
