//! The home page: what this month costs, what runs now and ran today, a chart, a year, the hours of the week.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use super::assistant::colour;
use super::charts::{Figure, usage_figures};
use super::filters::Filters;
use super::html::Html;
use super::plot::{HeatDay, Series, heat_map, hour_map};
use super::rows::{SessionLine, mark_days};
use super::usage::{Number, change};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::Params;
use crate::view::format;
use crate::view::{FailureView, Paging, Preferences, SessionQuery, SourceCard, UsagePoint, View};
use annals_core::{Error, Result, Time};
use annals_store::{ResponseFilter, UsageBy};

/// Complete weeks, plus the days of the current one.
const DAYS: i64 = 371;
const RECENT: i64 = 12;
/// Sessions listed as running.
const RUNNING: usize = 5;
/// Days whose pace a forecast goes by.
const PACE: i64 = 14;
/// Days of the map of hours.
const HOURS: i64 = 90;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    /// What is not captured, since when and why.
    failures: Vec<Failure>,
    headline: String,
    is_empty: bool,
    tiles: Vec<Number>,
    running: Vec<SessionLine>,
    /// Name, address, whether it is chosen.
    stacks: Vec<(&'static str, String, bool)>,
    measures: Vec<(&'static str, String, bool)>,
    chart: Option<Figure>,
    legend: Vec<Series>,
    heats: Vec<(&'static str, String, bool)>,
    heat: Html,
    year: Option<String>,
    hours: Option<Html>,
    recent: Vec<SessionLine>,
    sources: Vec<Source>,
    missing: usize,
}

struct Failure {
    what: String,
    hint: Option<String>,
}

/// A source in the line at the end.
struct Source {
    name: &'static str,
    label: &'static str,
    colour: String,
    href: String,
    count: String,
    gaps: Option<(String, String)>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    /// What the chart is stacked by.
    by: String,
    /// `tokens`, or nothing for cost.
    chart: String,
    /// `cost`, or nothing for messages.
    heat: String,
}

impl Parameters {
    fn with(&self, name: &str, value: &str) -> String {
        let pairs = [("by", &self.by), ("chart", &self.chart), ("heat", &self.heat)];
        let pairs = pairs.map(|(known, before)| (known, if known == name { value } else { before.as_str() }));
        format!("/{}", super::filters::query_of(pairs.into_iter()))
    }

    /// What the chart is stacked by, if all that is asked for exists.
    fn by(&self) -> Result<UsageBy> {
        if !["", "tokens"].contains(&self.chart.as_str()) {
            return Err(Error::bad_request("invalid value of `chart`").hint("use tokens, or leave it out"));
        }
        if !["", "cost"].contains(&self.heat.as_str()) {
            return Err(Error::bad_request("invalid value of `heat`").hint("use cost, or leave it out"));
        }
        match self.by.as_str() {
            "" | "model" => Ok(UsageBy::Model),
            "project" => Ok(UsageBy::Project),
            "source" => Ok(UsageBy::Source),
            _ => Err(Error::bad_request("invalid value of `by`").hint("use model, project or source")),
        }
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let shared = app.clone();
    let by = parameters.by()?;
    Ok(render(app, caller, move |view| {
        let failures = view.failures(shared.failure().as_ref())?;
        home(view, &failures, &parameters, by, theme).map(Some)
    })
    .await)
}

fn home(
    view: &View<'_>,
    failures: &[FailureView],
    parameters: &Parameters,
    by: UsageBy,
    theme: Theme,
) -> Result<HomePage> {
    let today = view.now().day();
    let activity = view.activity(DAYS)?;
    let messages: HashMap<i64, i64> = activity
        .days
        .iter()
        .filter_map(|day| Some((Time::parse(&format!("{}T00:00:00Z", day.date))?.day(), day.message_count)))
        .collect();
    let since = Some(Time::from_day(today - DAYS + 1));
    let points =
        view.usage_by_day(UsageBy::Source, &ResponseFilter { since, ..ResponseFilter::default() })?;
    let costs = costs_by_day(&points);
    let cards = view.cards()?;
    let (shown, folded) = SourceCard::fold(&cards);
    let query =
        SessionQuery { page: Paging { limit: RECENT, cursor: None }, brief: true, ..SessionQuery::default() };
    let recent = view.sessions(&query)?.sessions;
    let running =
        recent.iter().filter(|session| session.is_active).take(RUNNING).map(SessionLine::of).collect();
    let mut rows = Vec::new();
    for session in &recent {
        rows.push(SessionLine::of(session).with_tally(session, view.session_tally(session)?));
    }
    mark_days(&mut rows);
    let filters = Filters::default().or_days("30");
    let figures = usage_figures(view, &filters, filters.period()?, by)?;
    let measures = [("Cost", ""), ("Tokens", "tokens")];
    let wants_tokens = parameters.chart == "tokens";
    // The last of the figures is that of tokens; that of cost is missing where nothing has a price.
    let mut plots = figures.figures;
    let chart = if wants_tokens { plots.pop() } else { plots.drain(..).next() };
    let by_cost = parameters.heat == "cost";
    let count: i64 = cards.iter().map(|card| card.session_count).sum();
    let kept: i64 = cards.iter().map(|card| card.bytes).sum();
    let hours = view.week_hours(HOURS)?;
    let in_year: i64 = messages.values().sum();
    let failures = failures.iter().map(|failure| Failure {
        what: failure.sentence(),
        hint: failure.hint.as_ref().map(ToString::to_string),
    });
    let chosen = |now: &str, value: &str| now == value || (value == "model" && now.is_empty());
    Ok(HomePage {
        frame: Frame::new("/", "Home", theme),
        failures: failures.collect(),
        headline: match count {
            0 => "No sessions yet".into(),
            _ => format!("{}, {} archived", format::counted(count, "session"), format::size(kept)),
        },
        is_empty: recent.is_empty(),
        tiles: tiles(today, &messages, &costs, view.preferences()),
        running,
        stacks: [("Model", "model"), ("Project", "project"), ("Assistant", "source")]
            .map(|(name, value)| (name, parameters.with("by", value), chosen(&parameters.by, value)))
            .to_vec(),
        measures: measures
            .map(|(name, value)| (name, parameters.with("chart", value), parameters.chart == value))
            .to_vec(),
        chart: chart.filter(|_| !points.is_empty()),
        legend: figures.legend,
        heats: [("Messages", ""), ("Cost", "cost")]
            .map(|(name, value)| (name, parameters.with("heat", value), parameters.heat == value))
            .to_vec(),
        heat: heat(today, by_cost, &messages, &costs),
        year: (in_year > 0).then(|| {
            format!(
                "{} on {}. Click a day to see its sessions.",
                format::counted(in_year, "message"),
                format::counted(messages.len(), "day")
            )
        }),
        hours: hours.iter().flatten().any(|count| *count > 0).then(|| hour_map(&hours, "prompts")),
        recent: rows,
        sources: shown.iter().map(|card| source(card)).collect(),
        missing: folded.len(),
    })
}

fn costs_by_day(points: &[UsagePoint]) -> HashMap<i64, f64> {
    let mut costs: HashMap<i64, f64> = HashMap::new();
    for point in points {
        *costs.entry(point.day).or_default() += point.cost_usd.unwrap_or(0.0);
    }
    costs
}

/// The numbers at the top: this month and what it may come to, today, and how steady the work is.
fn tiles(
    today: i64,
    messages: &HashMap<i64, i64>,
    costs: &HashMap<i64, f64>,
    preferences: Option<&Preferences>,
) -> Vec<Number> {
    // An empty sum of floats is -0.0.
    let spent = |days: std::ops::RangeInclusive<i64>| -> f64 {
        days.filter_map(|day| costs.get(&day)).sum::<f64>() + 0.0
    };
    let first = first_of_month(today);
    let month = spent(first..=today);
    let last_first = first_of_month(first - 1);
    // The same number of days of the last month.
    let then = spent(last_first..=(last_first + (today - first)).min(first - 1));
    let days_left = first_of_month(first + 31) - 1 - today;
    let pace = spent(today - PACE + 1..=today) / PACE as f64;
    let forecast = month + pace * days_left as f64;
    let active = (today - 29..=today).filter(|day| messages.contains_key(day)).count();
    let tile =
        |value: String, name: &str, change: Option<String>| Number { value, name: name.to_owned(), change };
    let pace_text = format!("{} a day in the last {PACE} days", format::money(pace));
    let budget = preferences.and_then(|preferences| preferences.budget_usd).map(|budget| {
        format!("{} of the budget of {}", format::percent(forecast / budget), format::money(budget))
    });
    vec![
        tile(
            format::money(month),
            "this month",
            Some(
                change(month, then)
                    .replace("in the period before", "last month")
                    .replace("the period before", "last month"),
            ),
        ),
        tile(format::money(forecast), "forecast for the month", Some(budget.unwrap_or(pace_text))),
        tile(
            format::money(spent(today..=today)),
            "today",
            Some(format::counted(messages.get(&today).copied().unwrap_or(0), "message")),
        ),
        tile(
            format::counted(streak(today, messages), "day"),
            "streak",
            Some(format!("active on {active} of the last 30 days")),
        ),
    ]
}

/// Days with messages in a row, up to today or yesterday.
fn streak(today: i64, messages: &HashMap<i64, i64>) -> i64 {
    let last = if messages.contains_key(&today) { today } else { today - 1 };
    (0..).take_while(|back| messages.contains_key(&(last - back))).count() as i64
}

fn first_of_month(day: i64) -> i64 {
    let date = Time::from_day(day).date();
    let number: i64 = date.get(8..10).and_then(|day| day.parse().ok()).unwrap_or(1);
    day - number + 1
}

fn heat(today: i64, by_cost: bool, messages: &HashMap<i64, i64>, costs: &HashMap<i64, f64>) -> Html {
    let days: Vec<HeatDay> = (today - DAYS + 1..=today)
        .map(|day| {
            let (amount, shown) = if by_cost {
                let cost = costs.get(&day).copied().unwrap_or(0.0);
                ((cost * 100.0).ceil() as i64, format::money(cost))
            } else {
                let count = messages.get(&day).copied().unwrap_or(0);
                (count, format::counted(count, "message"))
            };
            HeatDay { day, date: Time::from_day(day).date(), amount, shown }
        })
        .collect();
    heat_map(&days, if by_cost { "Cost" } else { "Messages" })
}

fn source(card: &SourceCard) -> Source {
    Source {
        name: card.source,
        label: card.provider_label,
        colour: colour(card.source),
        href: format!("/sessions?source={}", card.source),
        count: format::counted(card.session_count, "session"),
        gaps: (card.gaps_open > 0)
            .then(|| (format::counted(card.gaps_open, "open gap"), format!("/gaps?source={}", card.source))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{first_of_month, streak, tiles};
    use crate::view::Preferences;
    use annals_core::Time;

    fn day(date: &str) -> i64 {
        Time::parse(&format!("{date}T00:00:00Z")).unwrap().day()
    }

    #[test]
    fn a_streak_lasts_until_a_day_is_missed() {
        let active = |days: &[i64]| -> HashMap<i64, i64> { days.iter().map(|day| (*day, 1)).collect() };
        assert_eq!(streak(100, &active(&[98, 99, 100])), 3);
        assert_eq!(streak(100, &active(&[98, 99])), 2, "today is not over");
        assert_eq!(streak(100, &active(&[97, 98])), 0);
        assert_eq!(first_of_month(day("2026-03-31")), day("2026-03-01"));
    }

    #[test]
    fn a_month_is_compared_with_the_same_days_and_forecast_by_its_pace() {
        let today = day("2026-11-14");
        let costs: HashMap<i64, f64> = (day("2026-10-01")..=today)
            .map(|day| (day, if day < first_of_month(today) { 1.0 } else { 2.0 }))
            .collect();
        let preferences = Preferences { budget_usd: Some(80.0), ..Preferences::default() };
        let tiles = tiles(today, &HashMap::new(), &costs, Some(&preferences));
        assert_eq!(
            (tiles[0].value.as_str(), tiles[0].change.as_deref()),
            ("$28.00", Some("+100 % to last month"))
        );
        // Sixteen days are left, at two dollars a day.
        assert_eq!(tiles[1].value, "$60.00");
        assert_eq!(tiles[1].change.as_deref(), Some("75 % of the budget of $80.00"));
    }
}
