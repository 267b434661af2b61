//! SVG plots: a year as a heat map, days as stacked bars, counts as bars in a list; every part is labelled.

use std::fmt::Write as _;

use super::html::{Html, escaped};
use crate::view::{WeekHours, format};

/// A day and its activity.
pub(super) struct HeatDay {
    /// Days since 1970.
    pub day: i64,
    pub date: String,
    /// In whole units: messages, or cents.
    pub amount: i64,
    /// As people read it.
    pub shown: String,
}

const CELL: i64 = 13;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Weeks from left to right, Monday at the top. More activity is darker and larger, so that it is readable without
/// colour.
pub(super) fn heat_map(days: &[HeatDay], what: &str) -> Html {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Html::default() };
    // 1970-01-01 was a Thursday.
    let weekday = |day: i64| (day + 3).rem_euclid(7);
    let monday = first.day - weekday(first.day);
    let weeks = (last.day - monday) / 7 + 1;
    let steps = steps(days);
    let (left, top) = (34, 20);
    let (width, height) = (left + weeks * CELL + 4, top + 7 * CELL + 4);
    let mut svg = format!(
        "<svg class=\"heat\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"group\" \
         aria-label=\"{} by day\">",
        escaped(what)
    );
    for (row, name) in [(0, "Mon"), (2, "Wed"), (4, "Fri")] {
        let _ = write!(svg, "<text x=\"0\" y=\"{}\">{name}</text>", top + row * CELL + 10);
    }
    let mut month_before = String::new();
    let mut free_from = 0;
    for day in days {
        let x = left + (day.day - monday) / 7 * CELL;
        let y = top + weekday(day.day) * CELL;
        let month = day.date.get(5..7).unwrap_or_default();
        if month != month_before {
            let name = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
            if let Some(name) = name.filter(|_| x >= free_from) {
                let _ = write!(svg, "<text x=\"{x}\" y=\"12\">{name}</text>");
                free_from = x + 30;
            }
            month.clone_into(&mut month_before);
        }
        let level = steps.iter().filter(|step| day.amount >= **step).count() as i64;
        let size = [4, 5, 7, 9, 11][level as usize];
        let inset = (CELL - 2 - size) / 2;
        let cell = format!(
            "<rect class=\"l{level}\" x=\"{}\" y=\"{}\" width=\"{size}\" height=\"{size}\" rx=\"1\"/>",
            x + inset,
            y + inset
        );
        let title = format!("{}: {}", day.date, day.shown);
        if day.amount == 0 {
            let _ = write!(svg, "<g><title>{}</title>{cell}</g>", escaped(&title));
        } else {
            let _ = write!(
                svg,
                "<a href=\"/sessions?since={0}&amp;until={1}\" aria-label=\"{2}\" tabindex=\"-1\"><title>{2}</title>{cell}</a>",
                day.date,
                annals_core::Time::from_day(day.day + 1).date(),
                escaped(&title)
            );
        }
    }
    svg.push_str("</svg>");
    Html(svg)
}

/// Hours of the week, Monday at the top, from midnight to midnight; more is darker and larger.
pub(super) fn hour_map(hours: &WeekHours, what: &str) -> Html {
    let (left, top, wide) = (34, 18, 26);
    let (width, height) = (left + 24 * wide + 4, top + 7 * wide / 2 + 4);
    let row_height = wide / 2;
    let mut svg = format!(
        "<svg class=\"heat hours\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{} by hour of the week\">",
        escaped(what)
    );
    for hour in (0..24).step_by(3) {
        let _ = write!(svg, "<text x=\"{}\" y=\"11\">{hour}</text>", left + hour * wide);
    }
    let most = hours.iter().flatten().copied().max().unwrap_or(0).max(1);
    for (row, (name, day)) in WEEKDAYS.iter().zip(hours).enumerate() {
        let y = top + row as i64 * row_height;
        let _ = write!(svg, "<text x=\"0\" y=\"{}\">{name}</text>", y + 10);
        for (hour, count) in day.iter().enumerate() {
            // The root shows differences among small counts.
            let level =
                if *count == 0 { 0 } else { 1 + ((*count as f64 / most as f64).sqrt() * 3.0).round() as i64 };
            let _ = write!(
                svg,
                "<g><title>{name} {hour}:00: {} {what}</title><rect class=\"l{}\" x=\"{}\" y=\"{y}\" width=\"{}\" \
                 height=\"{}\" rx=\"2\"/></g>",
                format::number(*count),
                level.min(4),
                left + hour as i64 * wide,
                wide - 2,
                row_height - 2
            );
        }
    }
    svg.push_str("</svg>");
    Html(svg)
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The thresholds of the four levels: quartiles of the days with activity.
fn steps(days: &[HeatDay]) -> Vec<i64> {
    let mut amounts: Vec<i64> = days.iter().map(|day| day.amount).filter(|amount| *amount > 0).collect();
    amounts.sort_unstable();
    if amounts.is_empty() {
        return Vec::new();
    }
    let at = |part: usize| amounts[(amounts.len() - 1) * part / 4];
    vec![1, at(1).max(2), at(2).max(3), at(3).max(4)]
}

/// The bar of a day: its parts from the bottom up, in the order of the legend.
pub(super) struct Bar {
    pub label: String,
    /// The same, short, for the axis.
    pub tick: String,
    pub href: String,
    pub parts: Vec<f64>,
}

/// What the height of bars represents.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Tokens,
    Dollars,
    Lines,
    /// Something that is counted.
    Count(&'static str),
}

impl Unit {
    fn write(self, amount: f64) -> String {
        match self {
            Unit::Tokens | Unit::Lines | Unit::Count(_) => format::compact(amount.round() as i64),
            Unit::Dollars => format::money(amount),
        }
    }

    /// Whether there are no parts of one.
    fn is_whole(self) -> bool {
        match self {
            Unit::Tokens | Unit::Lines | Unit::Count(_) => true,
            Unit::Dollars => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Tokens => "tokens",
            Unit::Dollars => "US dollars",
            Unit::Lines => "lines",
            Unit::Count(name) => name,
        }
    }
}

/// Number of fill styles; further series share the last one.
pub(super) const FILLS: usize = 6;

/// What is stacked in bars: its name, and the class that fills it.
#[derive(Clone)]
pub(super) struct Series {
    pub name: String,
    pub class: String,
}

impl Series {
    /// The series with this number, in the order of the legend.
    pub(super) fn numbered(number: usize, name: String) -> Series {
        Series { name, class: format!("f{}", number.min(FILLS - 1)) }
    }
}

/// Room for bars.
const WIDTH: f64 = 900.0;

/// A line across the bars, such as a limit.
pub(super) struct Level {
    pub amount: f64,
    pub name: String,
}

/// Bars over days with an axis; each bar links to what it represents.
pub(super) fn stacked_bars(
    bars: &[Bar],
    series: &[Series],
    unit: Unit,
    what: &str,
    levels: &[Level],
) -> Html {
    let sums = bars.iter().map(|bar| bar.parts.iter().sum::<f64>());
    let highest = sums.chain(levels.iter().map(|level| level.amount)).fold(0.0, f64::max);
    let (top_value, ticks) = axis(highest, unit.is_whole());
    let (left, top, plot_height) = (64.0, 22.0, 180.0);
    let step = (WIDTH / bars.len().max(1) as f64).clamp(4.0, 48.0);
    // Few bars do not make a plot narrow: it is scaled to the page.
    let width = left + (step * bars.len() as f64).max(WIDTH) + 8.0;
    let height = top + plot_height + 26.0;
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"group\" aria-label=\"{}\">{}",
        escaped(what),
        patterns()
    );
    let _ = write!(svg, "<text class=\"unit\" x=\"0\" y=\"12\">{}</text>", unit.name());
    for tick in ticks {
        let y = top + plot_height - tick / top_value * plot_height;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{width:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 4.0,
            escaped(&unit.write(tick))
        );
    }
    let every = (bars.len() as f64 / 12.0).ceil().max(1.0) as usize;
    for (number, bar) in bars.iter().enumerate() {
        let x = left + step * number as f64;
        let total: f64 = bar.parts.iter().sum();
        if number % every == 0 {
            let short = &bar.tick;
            let y = top + plot_height + 16.0;
            // The last one stays within the plot.
            let (x, anchor) = if x > width - 48.0 { (width, " text-anchor=\"end\"") } else { (x, "") };
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{}</text>",
                escaped(short)
            );
        }
        if total <= 0.0 {
            continue;
        }
        let mut title = format!("{}: {} {}", bar.label, unit.write(total), unit.name());
        for (series, part) in series.iter().zip(&bar.parts).filter(|(_, part)| **part > 0.0) {
            let _ = write!(title, "\n{}: {}", series.name, unit.write(*part));
        }
        let _ = write!(
            svg,
            "<a href=\"{}\" aria-label=\"{}\"><title>{}</title>",
            escaped(&bar.href),
            escaped(&title.replace('\n', ", ")),
            escaped(&title)
        );
        let mut y = top + plot_height;
        for (series, part) in series.iter().zip(&bar.parts).filter(|(_, part)| **part > 0.0) {
            let tall = part / top_value * plot_height;
            y -= tall;
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                series.class,
                x + step * 0.1,
                step * 0.8,
                tall.max(0.5)
            );
        }
        svg.push_str("</a>");
    }
    for level in levels {
        let y = top + plot_height - level.amount / top_value * plot_height;
        let _ = write!(
            svg,
            "<g class=\"level\"><line x1=\"{left}\" x2=\"{width:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{width:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
            y - 4.0,
            escaped(&level.name)
        );
    }
    svg.push_str("</svg>");
    Html(svg)
}

/// Hatching on top of colours, for those who force colours of their own.
fn patterns() -> String {
    let strokes = [("M0 0L6 6", 1), ("M6 0L0 6", 2), ("M3 0V6", 3), ("M0 3H6", 4), ("M0 0L6 6M6 0L0 6", 5)];
    let mut defs = String::from("<defs>");
    for (path, number) in strokes {
        let _ = write!(
            defs,
            "<pattern id=\"p{number}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <rect class=\"pb{number}\" width=\"6\" height=\"6\"/><path class=\"ps\" d=\"{path}\"/></pattern>"
        );
    }
    defs + "</defs>"
}

/// A round number at or above the highest value, and the ticks up to it.
fn axis(highest: f64, is_whole: bool) -> (f64, Vec<f64>) {
    if highest <= 0.0 {
        return (1.0, vec![0.0]);
    }
    let rough = highest / 4.0;
    let scale = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|part| part * scale).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let step = if is_whole { step.ceil() } else { step };
    let count = (highest / step).ceil() as usize;
    (step * count as f64, (0..=count).map(|number| number as f64 * step).collect())
}

/// Length of a bar, in percent of the longest.
pub(super) fn share(amount: i64, most: i64) -> i64 {
    if amount <= 0 { 0 } else { (amount * 100 / most.max(1)).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_round_and_reach_the_highest() {
        for highest in [0.0, 0.003, 1.0, 7.3, 99.0, 101.0, 1.7e9] {
            let (top, ticks) = axis(highest, false);
            assert!(top >= highest && ticks.len() <= 6, "{highest}: {top} {ticks:?}");
        }
        assert_eq!(axis(9.0, true), (9.0, vec![0.0, 3.0, 6.0, 9.0]), "there is no half of one");
        assert_eq!(axis(2.0, true), (2.0, vec![0.0, 1.0, 2.0]));
    }

    #[test]
    fn a_year_has_a_cell_a_day() {
        let days: Vec<HeatDay> = (20_000..20_371)
            .map(|day| HeatDay {
                day,
                date: annals_core::Time::from_day(day).date(),
                amount: day % 5,
                shown: format!("{} messages", day % 5),
            })
            .collect();
        let svg = heat_map(&days, "messages").0;
        assert_eq!(svg.matches("<rect").count(), 371);
        assert!(svg.contains("2024-10-04: 0 messages"), "{}", &svg[..400]);
        assert!(svg.contains("class=\"l4\"") && svg.contains("class=\"l0\""));
    }

    #[test]
    fn names_in_a_plot_are_text() {
        let bars = [Bar {
            label: "2026-01-01".into(),
            tick: "01-01".into(),
            href: "/x?a=1&b=\"".into(),
            parts: vec![1.0, 2.0],
        }];
        let series = [Series::numbered(0, "<b>".into()), Series::numbered(9, "c".into())];
        let svg = stacked_bars(&bars, &series, Unit::Tokens, "tokens", &[]).0;
        assert!(svg.contains("&lt;b&gt;: 1") && !svg.contains("<b>"));
        assert!(svg.contains("href=\"/x?a=1&amp;b=&quot;\""));
        let limit = Level { amount: 40.0, name: "limit <i>".into() };
        let svg = stacked_bars(&bars, &series, Unit::Tokens, "tokens", &[limit]).0;
        assert!(svg.contains("limit &lt;i&gt;") && svg.contains(">40<"), "the axis reaches the line: {svg}");
    }
}
