//! Usage as areas: a rectangle for each project, divided among its models.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::charts::{Figure, Figures};
use super::filters::Filters;
use super::html::{Html, escaped};
use super::plot::{FILLS, Series};
use crate::view::UsageArea;
use crate::view::format;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;
/// Projects with a rectangle; the others share one.
const PROJECTS: usize = 14;
/// Room for the name of a project above its models.
const HEAD: f64 = 18.0;
/// Smaller rectangles have no name.
const NAMED: (f64, f64) = (54.0, 30.0);
/// The width of a letter.
const LETTER: f64 = 6.6;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// A project, or those that are too small for a rectangle.
struct Project<'a> {
    name: &'a str,
    /// The directory; none for several.
    path: Option<&'a str>,
    amount: f64,
    models: BTreeMap<&'a str, f64>,
}

/// By cost where something has a price, and by tokens otherwise; nothing if there is nothing to compare.
pub(super) fn treemap(areas: &[UsageArea], filters: &Filters) -> Figures {
    let none = || Figures { figures: Vec::new(), legend: Vec::new() };
    let by_cost = areas.iter().any(|area| area.cost_usd.is_some_and(|cost| cost > 0.0));
    let amount = |area: &UsageArea| if by_cost { area.cost_usd.unwrap_or(0.0) } else { area.tokens as f64 };
    let mut by_model: BTreeMap<&str, f64> = BTreeMap::new();
    let mut by_project: BTreeMap<Option<&str>, BTreeMap<&str, f64>> = BTreeMap::new();
    for area in areas.iter().filter(|area| amount(area) > 0.0) {
        let model = area.model.as_ref().map_or("unknown model", |model| model.as_str());
        *by_model.entry(model).or_default() += amount(area);
        let project = area.project.as_ref().map(|project| project.as_str());
        *by_project.entry(project).or_default().entry(model).or_default() += amount(area);
    }
    if by_project.len() < 2 && by_model.len() < 2 {
        return none();
    }
    let mut models: Vec<(&str, f64)> = by_model.into_iter().collect();
    models.sort_by(|(one, amount), (other, larger)| larger.total_cmp(amount).then(one.cmp(other)));
    let own = if models.len() > FILLS { FILLS - 1 } else { models.len() };
    let series = |model: &str| models.iter().take(own).position(|(known, _)| *known == model).unwrap_or(own);
    let write = |amount: f64| match by_cost {
        true => format::money(amount),
        false => format!("{} tokens", format::compact(amount as i64)),
    };
    let projects = projects_of(by_project);
    let amounts: Vec<f64> = projects.iter().map(|project| project.amount).collect();
    let whole = Area { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let title = if by_cost { "Estimated cost by project and model" } else { "Tokens by project and model" };
    let mut svg = format!(
        "<svg class=\"treemap\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"group\" \
         aria-label=\"{title}\">"
    );
    for (project, area) in projects.iter().zip(squarify(&amounts, whole)) {
        let is_named = area.width >= NAMED.0 && area.height >= NAMED.1;
        if is_named {
            let room = ((area.width - 8.0) / LETTER) as usize;
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                area.x + 4.0,
                area.y + 13.0,
                escaped(&cut(&format!("{} {}", project.name, write(project.amount)), room))
            );
        }
        let head = if is_named { HEAD } else { 0.0 };
        let inner = Area { y: area.y + head, height: area.height - head, ..area };
        let mut parts: Vec<(&str, f64)> =
            project.models.iter().map(|(model, amount)| (*model, *amount)).collect();
        parts.sort_by(|(one, amount), (other, larger)| larger.total_cmp(amount).then(one.cmp(other)));
        let amounts: Vec<f64> = parts.iter().map(|(_, amount)| *amount).collect();
        for ((model, amount), area) in parts.iter().zip(squarify(&amounts, inner)) {
            let fixed = [("compare", ""), ("include_subagents", "true"), ("model", *model)];
            let path = project.path.map(|path| ("project", path));
            let known =
                fixed.into_iter().filter(|(name, value)| *name != "model" || *value != "unknown model");
            let set: Vec<(&str, &str)> = known.chain(path).collect();
            let label = format!("{}, {model}: {}", project.name, write(*amount));
            let _ = write!(
                svg,
                "<a href=\"{}\" aria-label=\"{2}\"><title>{2}</title><rect class=\"f{1}\" x=\"{3:.1}\" y=\"{4:.1}\" \
                 width=\"{5:.1}\" height=\"{6:.1}\"/></a>",
                escaped(&filters.address("/sessions", &set)),
                series(model).min(FILLS - 1),
                escaped(&label),
                area.x + 1.0,
                area.y + 1.0,
                (area.width - 2.0).max(0.5),
                (area.height - 2.0).max(0.5)
            );
        }
    }
    svg.push_str("</svg>");
    let mut names: Vec<String> = models.iter().take(own).map(|(model, _)| (*model).to_owned()).collect();
    if own < models.len() {
        names.push("other models".to_owned());
    }
    let legend = names.into_iter().enumerate().map(|(number, name)| Series::numbered(number, name)).collect();
    let caption = format!("{title}. Click an area to see its sessions.");
    Figures { figures: vec![Figure { svg: Html(svg), caption }], legend }
}

/// The largest first; those beyond the last rectangle are one.
fn projects_of<'a>(by_project: BTreeMap<Option<&'a str>, BTreeMap<&'a str, f64>>) -> Vec<Project<'a>> {
    let mut projects: Vec<Project<'a>> = by_project
        .into_iter()
        .map(|(path, models)| Project {
            name: path.map_or("no directory", format::last_part),
            path,
            amount: models.values().sum(),
            models,
        })
        .collect();
    projects.sort_by(|one, other| other.amount.total_cmp(&one.amount).then(one.path.cmp(&other.path)));
    if projects.len() > PROJECTS {
        let mut rest = Project { name: "other projects", path: None, amount: 0.0, models: BTreeMap::new() };
        for project in projects.split_off(PROJECTS - 1) {
            rest.amount += project.amount;
            for (model, amount) in project.models {
                *rest.models.entry(model).or_default() += amount;
            }
        }
        projects.push(rest);
    }
    projects
}

/// Rectangles with these areas that fill a rectangle, each as close to a square as it can be: rows are laid along the
/// shorter side, and a row ends where one more would make its rectangles longer.
fn squarify(amounts: &[f64], whole: Area) -> Vec<Area> {
    let total: f64 = amounts.iter().sum();
    let scale = if total > 0.0 { whole.width * whole.height / total } else { 0.0 };
    let sizes: Vec<f64> = amounts.iter().map(|amount| amount * scale).collect();
    let mut left = whole;
    let mut areas = Vec::with_capacity(sizes.len());
    let mut rest = &sizes[..];
    while !rest.is_empty() {
        let side = left.width.min(left.height).max(f64::MIN_POSITIVE);
        let worst = |row: &[f64]| {
            let sum: f64 = row.iter().sum();
            let breadth = sum / side;
            let ratio = |size: &f64| {
                let length = size / breadth;
                (length / breadth).max(breadth / length)
            };
            row.iter().map(ratio).fold(0.0, f64::max)
        };
        let mut count = 1;
        while count < rest.len() && worst(&rest[..=count]) <= worst(&rest[..count]) {
            count += 1;
        }
        let (row, others) = rest.split_at(count);
        let breadth = row.iter().sum::<f64>() / side;
        let mut at = 0.0;
        for size in row {
            let length = if breadth > 0.0 { size / breadth } else { 0.0 };
            areas.push(match left.width <= left.height {
                true => Area { x: left.x + at, y: left.y, width: length, height: breadth },
                false => Area { x: left.x, y: left.y + at, width: breadth, height: length },
            });
            at += length;
        }
        left = match left.width <= left.height {
            true => Area { y: left.y + breadth, height: (left.height - breadth).max(0.0), ..left },
            false => Area { x: left.x + breadth, width: (left.width - breadth).max(0.0), ..left },
        };
        rest = others;
    }
    areas
}

/// The start of a text that fits.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let start: String = text.chars().take(letters.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{Area, HEIGHT, WIDTH, squarify, treemap};
    use crate::serve::pages::filters::Filters;
    use crate::view::UsageArea;
    use annals_core::Shown;

    #[test]
    fn areas_are_as_large_as_their_amounts_and_stay_inside() {
        let whole = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        for amounts in
            [vec![1.0], vec![6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], vec![1_000.0, 0.001], vec![5.0; 40]]
        {
            let areas = squarify(&amounts, whole);
            let total: f64 = amounts.iter().sum();
            assert_eq!(areas.len(), amounts.len());
            for (area, amount) in areas.iter().zip(&amounts) {
                let expected = amount / total * 240_000.0;
                assert!((area.width * area.height - expected).abs() < 0.5, "{area:?} of {amount}");
                assert!(area.x >= -1e-6 && area.x + area.width <= 600.0 + 1e-6, "{area:?}");
                assert!(area.y >= -1e-6 && area.y + area.height <= 400.0 + 1e-6, "{area:?}");
            }
        }
        let ratio = |area: &Area| (area.width / area.height).max(area.height / area.width);
        let squares = squarify(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], whole);
        assert!(squares.iter().map(ratio).fold(0.0, f64::max) < 3.0, "{squares:?}");
    }

    fn used(project: &str, model: &str, cost: f64) -> UsageArea {
        let text = |text: &str| Some(Shown::new(text.to_owned()));
        UsageArea { project: text(project), model: text(model), tokens: 1, cost_usd: Some(cost) }
    }

    #[test]
    fn every_model_of_a_project_leads_to_its_sessions() {
        let areas = [used("/w/a", "m&n", 3.0), used("/w/a", "o", 1.0), used("/w/<b>", "o", 2.0)];
        let found = treemap(&areas, &Filters::default());
        let svg = &found.figures[0].svg.0;
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(
            svg.contains("href=\"/sessions?include_subagents=true&amp;model=m%26n&amp;project=%2Fw%2Fa\""),
            "{svg}"
        );
        assert!(svg.contains("&lt;b&gt;, o: $2.00") && !svg.contains("<b>"), "{svg}");
        assert_eq!(found.legend.len(), 2);
        assert!(treemap(&areas[..1], &Filters::default()).figures.is_empty(), "nothing to compare");
    }

    #[test]
    fn small_projects_share_an_area() {
        let areas: Vec<UsageArea> =
            (0..40).map(|number| used(&format!("/w/p{number}"), "m", f64::from(40 - number))).collect();
        let svg = &treemap(&areas, &Filters::default()).figures[0].svg.0;
        assert_eq!(svg.matches("<rect").count(), 14);
        // 26 + 25 + … + 1, and the areas of the others.
        assert!(svg.contains("other projects, m: $378.00"), "{svg}");
        assert!(svg.contains(&format!("viewBox=\"0 0 {WIDTH} {HEIGHT}\"")));
    }
}
