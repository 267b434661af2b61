//! Usage over time as bars: days, weeks or months, stacked by model, project or assistant.

use std::collections::BTreeMap;

use super::assistant::colour;
use super::filters::{Filters, Period};
use super::html::Html;
use super::plot::{Bar, FILLS, Level, Series, Unit, stacked_bars};
use crate::view::format;
use crate::view::{UsagePoint, View, source_labels};
use annals_core::{Result, Time};
use annals_store::UsageBy;

/// Most bars of single days, and of weeks.
const MOST_DAYS: i64 = 92;
const MOST_WEEKS: i64 = 104;

/// A plot and its caption.
pub(super) struct Figure {
    pub caption: String,
    pub svg: Html,
}

/// Figures that share a legend.
pub(super) struct Figures {
    pub figures: Vec<Figure>,
    pub legend: Vec<Series>,
}

/// What a bar represents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Day,
    Week,
    Month,
}

impl Step {
    /// Wide enough to be clicked, whatever the period.
    fn of(days: i64) -> Step {
        match days {
            ..=MOST_DAYS => Step::Day,
            days if days <= MOST_WEEKS * 7 => Step::Week,
            _ => Step::Month,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Step::Day => "day",
            Step::Week => "week",
            Step::Month => "month",
        }
    }

    /// The part of a month's budget that a step may cost.
    fn budget(self, month: f64) -> Level {
        let (amount, what) = match self {
            Step::Day => (month * 12.0 / 365.0, " a day"),
            Step::Week => (month * 84.0 / 365.0, " a week"),
            Step::Month => (month, ""),
        };
        Level {
            amount,
            name: format!("budget of {} a month: {}{what}", format::money(month), format::money(amount)),
        }
    }

    /// The first day of the step that a day belongs to.
    fn start(self, day: i64) -> i64 {
        match self {
            Step::Day => day,
            // 1970-01-01 was a Thursday.
            Step::Week => day - (day + 3).rem_euclid(7),
            Step::Month => {
                let date = Time::from_day(day).date();
                let number: i64 = date.get(8..10).and_then(|day| day.parse().ok()).unwrap_or(1);
                day - number + 1
            }
        }
    }

    pub(super) fn after(self, start: i64) -> i64 {
        match self {
            Step::Day => start + 1,
            Step::Week => start + 7,
            Step::Month => self.start(start + 31),
        }
    }
}

/// Tokens and cost over a period, by model, project or assistant.
pub(super) fn usage_figures(
    view: &View<'_>,
    filters: &Filters,
    period: Period,
    by: UsageBy,
) -> Result<Figures> {
    let points = view.usage_by_day(by, &filters.of_responses(period))?;
    let first = points.first().map_or(view.now().day(), |point| point.day);
    let budget = view.preferences().and_then(|preferences| preferences.budget_usd);
    // A budget is for everything.
    let budget = budget.filter(|_| filters.are_of_everything());
    Ok(figures(&points, period.days(first, view.now()), by, filters, budget))
}

fn figures(
    points: &[UsagePoint],
    (first, end): (i64, i64),
    by: UsageBy,
    filters: &Filters,
    budget: Option<f64>,
) -> Figures {
    let names = series_names(points, by);
    let place = |point: &UsagePoint| {
        let name = name_of(point, by);
        names.iter().position(|known| *known == name).unwrap_or(names.len().saturating_sub(1))
    };
    let step = Step::of(end - first);
    let mut sums: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
    let mut start = step.start(first);
    while start < end {
        sums.insert(start, vec![(0.0, 0.0); names.len()]);
        start = step.after(start);
    }
    for point in points {
        let sum = sums.get_mut(&step.start(point.day)).and_then(|sums| sums.get_mut(place(point)));
        if let Some((tokens, cost)) = sum {
            *tokens += point.tokens as f64;
            *cost += point.cost_usd.unwrap_or(0.0);
        }
    }
    let bars = |measure: &dyn Fn(&(f64, f64)) -> f64| -> Vec<Bar> {
        sums.iter()
            .map(|(start, sums)| bar(step, *start, sums.iter().map(measure).collect(), filters))
            .collect()
    };
    let (tokens, cost) = (bars(&|sum| sum.0), bars(&|sum| sum.1));
    let legend: Vec<Series> =
        names.iter().enumerate().map(|(number, name)| series(number, name, by)).collect();
    let has_cost = cost.iter().any(|bar| bar.parts.iter().sum::<f64>() > 0.0);
    let levels: Vec<Level> = budget.map(|budget| step.budget(budget)).into_iter().collect();
    let figure = |what: &str, bars: &[Bar], unit, levels: &[Level]| {
        let title = format!("{what} by {} and {}", step.name(), noun(by));
        Figure {
            svg: stacked_bars(bars, &legend, unit, &title, levels),
            caption: format!("{title}. Click a bar to see its sessions."),
        }
    };
    let mut figures = Vec::new();
    if has_cost {
        figures.push(figure("Estimated cost", &cost, Unit::Dollars, &levels));
    }
    figures.push(figure("Tokens", &tokens, Unit::Tokens, &[]));
    Figures { figures, legend }
}

/// Amounts of days over a period, by project: those with most of it, and the rest as one.
pub(super) fn amounts_over_time(
    points: &[(i64, String, f64)],
    (first, end): (i64, i64),
    (title, unit): (&str, Unit),
    address: &dyn Fn(Step, i64) -> String,
) -> Figures {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, project, amount) in points {
        *totals.entry(project).or_default() += amount;
    }
    let mut ranked: Vec<(&str, f64)> = totals.into_iter().collect();
    ranked.sort_by(|(one, amount), (other, larger)| larger.total_cmp(amount).then(one.cmp(other)));
    let own = if ranked.len() > FILLS { FILLS - 1 } else { ranked.len() };
    let mut names: Vec<String> = ranked
        .iter()
        .take(own)
        .map(|(project, _)| match *project {
            "" => "no directory".to_owned(),
            project => format::last_part(project).to_owned(),
        })
        .collect();
    if own < ranked.len() {
        names.push("other projects".to_owned());
    }
    let step = Step::of(end - first);
    let mut sums: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut start = step.start(first);
    while start < end {
        sums.insert(start, vec![0.0; names.len()]);
        start = step.after(start);
    }
    for (day, project, amount) in points {
        let place = ranked.iter().take(own).position(|(known, _)| known == project).unwrap_or(own);
        if let Some(sum) = sums.get_mut(&step.start(*day)).and_then(|sums| sums.get_mut(place)) {
            *sum += amount;
        }
    }
    let bars: Vec<Bar> =
        sums.into_iter().map(|(start, parts)| bar_of(step, start, parts, address(step, start))).collect();
    let legend: Vec<Series> =
        names.into_iter().enumerate().map(|(number, name)| Series::numbered(number, name)).collect();
    let title = format!("{title} by {} and project", step.name());
    let svg = stacked_bars(&bars, &legend, unit, &title, &[]);
    Figures { figures: vec![Figure { svg, caption: format!("{title}. Click a bar to see them.") }], legend }
}

fn bar(step: Step, start: i64, parts: Vec<f64>, filters: &Filters) -> Bar {
    let (date, until) = (Time::from_day(start).date(), Time::from_day(step.after(start)).date());
    let fixed = [("days", ""), ("compare", ""), ("include_subagents", "true")];
    let days = [("since", date.as_str()), ("until", until.as_str())];
    bar_of(step, start, parts, filters.address("/sessions", &[&fixed[..], &days].concat()))
}

fn bar_of(step: Step, start: i64, parts: Vec<f64>, href: String) -> Bar {
    let date = Time::from_day(start).date();
    Bar {
        tick: match step {
            Step::Day | Step::Week => date.get(5..).unwrap_or_default().to_owned(),
            Step::Month => date.get(..7).unwrap_or_default().to_owned(),
        },
        href,
        label: match step {
            Step::Day => date,
            Step::Week => format!("week of {date}"),
            Step::Month => date.get(..7).unwrap_or_default().to_owned(),
        },
        parts,
    }
}

/// The names of the series: those with the largest share of tokens or of cost, and the rest as one.
fn series_names(points: &[UsagePoint], by: UsageBy) -> Vec<String> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut total = (1.0, 1e-9);
    for point in points {
        let (tokens, cost) = (point.tokens as f64, point.cost_usd.unwrap_or(0.0));
        let sum = sums.entry(name_of(point, by)).or_default();
        *sum = (sum.0 + tokens, sum.1 + cost);
        total = (total.0 + tokens, total.1 + cost);
    }
    // What is dear counts as much as what is long: neither may vanish among the rest.
    let share = |sum: &(f64, f64)| (sum.0 / total.0).max(sum.1 / total.1);
    let mut ranked: Vec<(String, f64)> = sums.iter().map(|(name, sum)| (name.clone(), share(sum))).collect();
    ranked.sort_by(|(one, share), (other, larger)| larger.total_cmp(share).then_with(|| one.cmp(other)));
    let mut names: Vec<String> = ranked.into_iter().map(|(name, _)| name).collect();
    if names.len() > FILLS {
        names.truncate(FILLS - 1);
        names.push(format!("other {}s", noun(by)));
    }
    names
}

fn series(number: usize, name: &str, by: UsageBy) -> Series {
    match by {
        UsageBy::Source => {
            let label = source_labels().find(|(source, _)| *source == name);
            let shown = label.map_or_else(|| name.to_owned(), |(_, label)| label.to_owned());
            Series { name: shown, class: colour(name) }
        }
        UsageBy::Project => Series::numbered(number, format::last_part(name).to_owned()),
        UsageBy::Day | UsageBy::Model | UsageBy::Session | UsageBy::Member => {
            Series::numbered(number, name.to_owned())
        }
    }
}

fn noun(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Source => "assistant",
        UsageBy::Day | UsageBy::Model | UsageBy::Project | UsageBy::Session | UsageBy::Member => by.name(),
    }
}

fn name_of(point: &UsagePoint, by: UsageBy) -> String {
    point.key.as_ref().map_or_else(|| format!("unknown {}", noun(by)), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::{Step, figures, series_names};
    use crate::serve::pages::filters::Filters;
    use crate::view::UsagePoint;
    use annals_core::{Shown, Time};
    use annals_store::UsageBy;

    fn point(day: i64, model: &str, tokens: i64, cost: f64) -> UsagePoint {
        UsagePoint { day, key: Some(Shown::new(model.to_owned())), tokens, cost_usd: Some(cost) }
    }

    #[test]
    fn steps_start_on_mondays_and_first_days() {
        let day = |date: &str| Time::parse(&format!("{date}T00:00:00Z")).unwrap().day();
        assert_eq!(Step::Week.start(day("2026-11-18")), day("2026-11-16"));
        assert_eq!(Step::Month.start(day("2026-11-18")), day("2026-11-01"));
        assert_eq!(Step::Month.after(day("2026-01-01")), day("2026-02-01"));
        assert_eq!(Step::Month.after(day("2026-12-01")), day("2027-01-01"));
    }

    #[test]
    fn a_long_period_is_shown_as_a_whole() {
        let points: Vec<UsagePoint> = (20_000..20_700).map(|day| point(day, "m", 10, 1.0)).collect();
        let found = figures(&points, (20_000, 20_700), UsageBy::Model, &Filters::default(), Some(365.0));
        let svg = &found.figures[0].svg.0;
        assert!(svg.contains("Estimated cost by week and model"), "{}", &svg[..300]);
        assert!(svg.contains("budget of $365.00 a month: $84.00 a week"), "{svg}");
        let bars = svg.matches("<a href=").count();
        assert!((100..=102).contains(&bars), "{bars} weeks");
    }

    #[test]
    fn what_is_dear_has_a_series_of_its_own() {
        let mut points: Vec<UsagePoint> =
            (0..9).map(|number| point(1, &format!("small-{number}"), 1_000_000, 0.1)).collect();
        points.push(point(1, "dear", 10, 2_477.0));
        let names = series_names(&points, UsageBy::Model);
        assert_eq!((names.len(), names[0].as_str(), names[5].as_str()), (6, "dear", "other models"));
    }
}
