//! The insights page: what cost most, took longest and failed most, and when; every number links to what is behind it.

use std::collections::BTreeMap;

use askama::Template;
use serde::Deserialize;

use super::calls::{CallRow, call_rows};
use super::charts::{Figure, Figures, amounts_over_time};
use super::filters::{Bar, Filtered, Filters};
use super::html::Html;
use super::moments::{Found, MomentRow, address, bar_address, by_day, moment_row, words_for};
use super::plot::{Series, Unit, hour_map};
use super::rows::SessionLine;
use super::tools::sums;
use super::{Frame, PageRequest, Theme};
use crate::serve::answer::Answered;
use crate::view::format;
use crate::view::{InsightKind, Moment, Paging, SessionOrder, SessionQuery, View};
use annals_core::{ContentKey, Error, Result};
use annals_store::{CallOrder, CallPart};

/// Sessions and moments in each list.
const TOP: usize = 5;
/// Calls in the list of the slowest.
const SLOWEST: usize = 8;
/// Tools in the list of failures, and projects in the table.
const TOOLS: usize = 8;
const PROJECTS: usize = 12;
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
    tiles: Vec<Tile>,
    /// What is charted: name, address, whether it is chosen.
    charts: Vec<(&'static str, String, bool)>,
    figures: Vec<Figure>,
    legend: Vec<Series>,
    columns: Vec<&'static str>,
    projects: Vec<ProjectLine>,
    /// How many there are, and where all of them are listed.
    rest: Option<(String, String)>,
    moments: Vec<MomentList>,
    unread: Option<String>,
    lists: Vec<List>,
    failures: Vec<ToolLine>,
    failed: String,
    /// The slowest calls, and where more of them are.
    rows: Vec<CallRow>,
    slowest: String,
    hours: Option<Html>,
}

/// A number, and where what is behind it is listed.
struct Tile {
    value: String,
    name: &'static str,
    meaning: &'static str,
    address: String,
}

struct ProjectLine {
    name: String,
    path: String,
    sessions: String,
    /// A number and its address for each column; nothing where there is none.
    numbers: Vec<Option<(String, String)>>,
}

struct MomentList {
    title: &'static str,
    meaning: &'static str,
    address: String,
    rows: Vec<MomentLine>,
}

/// A moment, or several with the same words.
struct MomentLine {
    moment: MomentRow,
    /// Where those with the same words are.
    same: Option<String>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    /// The kind that is charted.
    chart: String,
    /// `all`, or nothing for the start of the table.
    rows: String,
}

/// What is charted: everything that adds up.
const CHARTS: [InsightKind; 6] = [
    InsightKind::Failed,
    InsightKind::Interrupted,
    InsightKind::Repeated,
    InsightKind::Compacted,
    InsightKind::Rewritten,
    InsightKind::Missed,
];

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let filters = filters.or_days("30");
    let chart = match parameters.chart.as_str() {
        "" => None,
        name => Some(CHARTS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = CHARTS.map(InsightKind::name).join(", ");
            Error::bad_request("invalid value of `chart`").hint(format!("use one of {names}"))
        })?),
    };
    asker.show(move |view, theme| insights(view, &filters, chart, parameters.rows == "all", theme)).await
}

fn insights(
    view: &View<'_>,
    filters: &Filters,
    chart: Option<InsightKind>,
    all: bool,
    theme: Theme,
) -> Result<InsightsPage> {
    let found = Found::of(view, filters)?;
    let present = |kind: &InsightKind| found.of_kind(*kind).next().is_some();
    let kinds: Vec<InsightKind> = InsightKind::ALL.into_iter().filter(present).collect();
    let charted = chart.or_else(|| CHARTS.into_iter().find(present));
    let Figures { figures, legend } = match charted {
        Some(kind) => chart_of(view, filters, &found, kind)?,
        None => Figures { figures: Vec::new(), legend: Vec::new() },
    };
    let mut projects = project_lines(filters, &found, &kinds);
    let count = projects.len();
    projects.truncate(if all { count } else { PROJECTS });
    let sums = sums(view, filters)?;
    let hours = view.week_hours(DAYS)?;
    let set = |kind: InsightKind| filters.address("/insights", &[("chart", kind.name())]);
    Ok(InsightsPage {
        frame: Frame::new("/insights", "Insights", theme).with_filters(filters),
        tab: "insights",
        bar: Bar::of(view, "/insights", filters, &["project", "machine"])?
            .keeping(&[("chart", chart.map_or("", InsightKind::name))]),
        tiles: kinds.iter().map(|kind| tile(filters, &found, *kind)).collect(),
        charts: CHARTS
            .into_iter()
            .filter(|kind| present(kind) || Some(*kind) == charted)
            .map(|kind| (words_for(kind).title, set(kind), Some(kind) == charted))
            .collect(),
        figures,
        legend,
        columns: kinds.iter().map(|kind| words_for(*kind).column).collect(),
        rest: (count > projects.len()).then(|| {
            let address = filters.address("/insights", &[("rows", "all")]);
            (format!("{} of {}", projects.len(), format::number(count)), format!("{address}#projects"))
        }),
        projects,
        moments: moment_lists(view, filters, &found)?,
        unread: (found.insights.unread > 0).then(|| {
            let count = format::counted(found.insights.unread, "older row");
            format!("{count} of this period not read for repeated prompts and interruptions: a shorter period has all.")
        }),
        lists: session_lists(view, filters)?,
        failures: failures(filters, &sums),
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

fn tile(filters: &Filters, found: &Found, kind: InsightKind) -> Tile {
    let words = words_for(kind);
    Tile {
        value: kind.write(kind.total(found.insights.of(kind))),
        name: words.tile,
        meaning: words.meaning,
        address: address(filters, kind, &[]),
    }
}

fn chart_of(view: &View<'_>, filters: &Filters, found: &Found, kind: InsightKind) -> Result<Figures> {
    let points = by_day(found, kind);
    let words = words_for(kind);
    let unit = match kind {
        InsightKind::Missed => Unit::Dollars,
        InsightKind::Context => Unit::Tokens,
        InsightKind::Rewritten => Unit::Lines,
        InsightKind::Failed | InsightKind::Interrupted | InsightKind::Repeated | InsightKind::Compacted => {
            Unit::Count(words.unit)
        }
    };
    let first = points.iter().map(|(day, ..)| *day).min().unwrap_or(view.now().day());
    let days = filters.period()?.days(first, view.now());
    Ok(amounts_over_time(&points, days, (words.title, unit), &|step, start| {
        bar_address(filters, kind, step, start)
    }))
}

/// Projects with most moments first.
fn project_lines(filters: &Filters, found: &Found, shown: &[InsightKind]) -> Vec<ProjectLine> {
    let mut projects: BTreeMap<&str, BTreeMap<InsightKind, Vec<&Moment>>> = BTreeMap::new();
    for kind in InsightKind::ALL {
        for (moment, folder) in found.of_kind(kind) {
            projects.entry(folder).or_default().entry(kind).or_default().push(moment);
        }
    }
    let mut projects: Vec<(&str, BTreeMap<InsightKind, Vec<&Moment>>)> =
        projects.into_iter().filter(|(folder, _)| !folder.is_empty()).collect();
    projects.sort_by_key(|(_, kinds)| std::cmp::Reverse(kinds.values().map(Vec::len).sum::<usize>()));
    let lines = projects.into_iter().map(|(folder, kinds)| ProjectLine {
        name: format::last_part(folder).to_owned(),
        path: folder.to_owned(),
        sessions: filters.address("/sessions", &[("compare", ""), ("project", folder)]),
        numbers: shown
            .iter()
            .map(|kind| {
                let amount = kind.total(kinds.get(kind)?.iter().copied());
                Some((kind.write(amount), address(filters, *kind, &[("folder", folder)])))
            })
            .collect(),
    });
    lines.collect()
}

/// The first moments of each kind; those with the same words are one.
fn moment_lists(view: &View<'_>, filters: &Filters, found: &Found) -> Result<Vec<MomentList>> {
    let mut lists = Vec::new();
    // Failed calls are listed by tool.
    for kind in InsightKind::ALL.into_iter().filter(|kind| *kind != InsightKind::Failed) {
        let mut groups: Vec<(&Moment, &str, usize)> = Vec::new();
        let mut places: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for (moment, folder) in found.of_kind(kind) {
            let same = moment.words.map(|words| (folder, words.hex()));
            match same.as_ref().and_then(|same| places.get(same)).and_then(|at| groups.get_mut(*at)) {
                Some((.., count)) => *count += 1,
                None => {
                    places.extend(same.map(|same| (same, groups.len())));
                    groups.push((moment, folder, 1));
                }
            }
        }
        groups.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        let mut rows = Vec::new();
        for (moment, folder, count) in groups.into_iter().take(TOP) {
            let Some(mut row) = moment_row(view, moment, folder)? else { continue };
            let same = moment.words.map(|words: ContentKey| {
                address(filters, kind, &[("folder", folder), ("words", &words.hex())])
            });
            if same.is_some() {
                row.amount = format!("{}×", format::number(count));
            }
            rows.push(MomentLine { moment: row, same });
        }
        if !rows.is_empty() {
            let words = words_for(kind);
            let address = address(filters, kind, &[]);
            lists.push(MomentList { title: words.title, meaning: words.meaning, address, rows });
        }
    }
    Ok(lists)
}

fn session_lists(view: &View<'_>, filters: &Filters) -> Result<Vec<List>> {
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
            page: Paging { limit: TOP as i64, cursor: None },
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
    Ok(lists)
}

fn failures(filters: &Filters, sums: &super::tools::Sums) -> Vec<ToolLine> {
    let mut failures: Vec<(&String, i64, i64)> =
        sums.tools.iter().map(|(name, tool)| (name, tool.calls, tool.failed)).collect();
    failures.retain(|(_, calls, failed)| *failed > 0 && *calls >= FEWEST_CALLS);
    failures.sort_by_key(|(name, _, failed)| (std::cmp::Reverse(*failed), *name));
    let lines = failures.into_iter().take(TOOLS).map(|(name, calls, failed)| ToolLine {
        name: name.clone(),
        href: filters.address("/tools/calls", &[("tool", name), ("failed", "true")]),
        calls_address: filters.address("/tools/calls", &[("tool", name)]),
        failed: format::number(failed),
        calls: format::number(calls),
        rate: format::percent(failed as f64 / calls.max(1) as f64),
    });
    lines.collect()
}
