//! The bar of filters that pages share: a period, a project, an assistant, a model and a machine, all in the address.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::html::in_address;
use crate::config::now;
use crate::serve::answer::Refusal;
use crate::serve::api::parameters::{days_of, parameters_of, parse_time, source_of};
use crate::view::format;
use crate::view::{Choices, View, source_labels};
use annals_core::{Result, Time};
use annals_store::{ResponseFilter, SessionFilter};

/// Projects in the list of the bar.
const LISTED: usize = 60;

/// What the bar says; everything else in the address belongs to the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    /// A number of days, or `all`.
    pub days: String,
    pub since: String,
    pub until: String,
    pub compare: String,
    pub source: String,
    pub project: String,
    pub model: String,
    pub machine: String,
}

const NAMES: [&str; 8] = ["days", "since", "until", "compare", "source", "project", "model", "machine"];

/// The filters of the bar, and the other parameters of a page.
pub(super) struct Filtered<T>(pub Filters, pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Filtered<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> std::result::Result<Self, Refusal> {
        let pairs: Vec<(String, String)> = parameters_of(&parts.uri)?;
        let (bar, rest): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(name, _)| NAMES.contains(&name.as_str()));
        let mut filters: Filters = read(&bar)?;
        // Any name that people use for a source.
        filters.source = source_of(given(&filters.source))?.unwrap_or_default();
        filters.period()?;
        Ok(Filtered(filters, read(&rest)?))
    }
}

fn read<T: DeserializeOwned>(pairs: &[(String, String)]) -> std::result::Result<T, Refusal> {
    // With empty values: an unknown name is refused, whatever its value.
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", in_address(name), in_address(value)));
    let query = pairs.collect::<Vec<_>>().join("&");
    let uri = Uri::try_from(format!("/?{query}")).unwrap_or_default();
    parameters_of(&uri)
}

fn given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// A query string of the pairs that have a value.
pub(super) fn query_of<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let pairs: Vec<String> = pairs
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(name, value)| format!("{}={}", in_address(name), in_address(value)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// A stretch of complete days of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub since: Option<Time>,
    pub until: Option<Time>,
}

impl Period {
    /// The first day, and the one after the last.
    pub(super) fn days(self, first_known: i64, now: Time) -> (i64, i64) {
        let until = self.until.map_or(now.day() + 1, |until| last_day(until) + 1);
        let since = self.since.map_or(first_known, Time::day);
        (since.min(until - 1), until)
    }

    /// The period of the same length just before.
    pub(super) fn before(self, now: Time) -> Option<Period> {
        let since = self.since?;
        let (first, end) = self.days(since.day(), now);
        Some(Period { since: Some(Time::from_day(first - (end - first))), until: Some(since) })
    }
}

/// The last day that is touched before a moment.
fn last_day(until: Time) -> i64 {
    Time::from_micros(until.micros() - 1).day()
}

impl Filters {
    fn pairs(&self) -> [(&'static str, &str); 8] {
        [
            ("days", &self.days),
            ("since", &self.since),
            ("until", &self.until),
            ("compare", &self.compare),
            ("source", &self.source),
            ("project", &self.project),
            ("model", &self.model),
            ("machine", &self.machine),
        ]
    }

    /// An address with these filters, of which some are set anew, and other parameters.
    pub(super) fn address(&self, path: &str, set: &[(&str, &str)]) -> String {
        let kept = self.pairs().into_iter().filter(|(name, _)| set.iter().all(|(new, _)| new != name));
        format!("{path}{}", query_of(kept.chain(set.iter().copied())))
    }

    /// The period as given; everything if nothing is.
    pub(super) fn period(&self) -> Result<Period> {
        let (since, until) = (parse_time(given(&self.since))?, parse_time(given(&self.until))?);
        let days = given(&self.days).map(|days| days_of(Some(days))).transpose()?.flatten();
        // A range that was entered counts, not the preset before it.
        let start = days.filter(|_| since.is_none() && until.is_none());
        let start = start.map(|days| Time::from_day(now().day().saturating_sub(days - 1)));
        Ok(Period { since: since.or(start), until })
    }

    /// The same with a number of days where nothing is given.
    pub(super) fn or_days(mut self, days: &str) -> Filters {
        if [&self.days, &self.since, &self.until].iter().all(|text| text.trim().is_empty()) {
            days.clone_into(&mut self.days);
        }
        self
    }

    /// No filter but a period.
    pub(super) fn are_of_everything(&self) -> bool {
        [&self.source, &self.project, &self.model, &self.machine].iter().all(|text| text.trim().is_empty())
    }

    pub(super) fn compares(&self) -> bool {
        self.compare == "true"
    }

    /// The parameters that have a value.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.pairs().into_iter().filter(|(_, value)| !value.trim().is_empty())
    }

    pub(super) fn of_sessions(&self) -> Result<SessionFilter> {
        let period = self.period()?;
        let text = |text: &str| given(text).map(str::to_owned);
        Ok(SessionFilter {
            source: text(&self.source),
            project: text(&self.project),
            model: text(&self.model),
            machine: text(&self.machine),
            since: period.since,
            until: period.until,
            ..SessionFilter::default()
        })
    }

    pub(super) fn of_responses(&self, period: Period) -> ResponseFilter {
        let text = |text: &str| given(text).map(str::to_owned);
        ResponseFilter {
            source: text(&self.source),
            project: text(&self.project),
            model: text(&self.model),
            machine: text(&self.machine),
            since: period.since,
            until: period.until,
            ..ResponseFilter::default()
        }
    }
}

/// The bar as it is shown.
pub(super) struct Bar {
    pub action: &'static str,
    pub filters: Filters,
    /// Name, address, whether it is chosen.
    pub presets: Vec<(&'static str, String, bool)>,
    /// What the period is, if it is no preset.
    pub custom: bool,
    /// The name of a field, its label, the option for all, and options as value, text, and whether it is chosen.
    pub choices: Vec<Choice>,
    pub can_compare: bool,
    /// The dates of the range, as date fields take them.
    pub since: String,
    pub until: String,
    /// Label, what it finds, and words.
    pub search: Option<(&'static str, &'static str, String)>,
    /// Name, label, whether it is set.
    pub flags: Vec<(&'static str, &'static str, bool)>,
    /// Other parameters of the page that the form keeps.
    pub kept: Vec<(&'static str, String)>,
}

pub(super) struct Choice {
    pub name: &'static str,
    pub label: &'static str,
    pub all: &'static str,
    pub options: Vec<(String, String, bool)>,
}

impl Bar {
    /// The bar of a page. `fields` are those that the page can filter by.
    pub(super) fn of(
        view: &View<'_>,
        action: &'static str,
        filters: &Filters,
        fields: &[&str],
    ) -> Result<Bar> {
        let choices = view.choices()?;
        let today = now();
        let (month, last_month) = months(today);
        let preset = |name, set: [(&'static str, &str); 3]| {
            let chosen = set.iter().all(|(name, value)| {
                let now = filters.pairs().into_iter().find(|(known, _)| known == name);
                now.is_some_and(|(_, now)| now == *value)
            });
            (name, filters.address(action, &set), chosen)
        };
        let days = |days| [("days", days), ("since", ""), ("until", "")];
        let mut presets = vec![
            preset("7 days", days("7")),
            preset("30 days", days("30")),
            preset("90 days", days("90")),
            preset("1 year", days("365")),
            preset("This month", [("days", ""), ("since", &month), ("until", "")]),
            preset("Last month", [("days", ""), ("since", &last_month), ("until", &month)]),
            preset("All time", days("all")),
        ];
        let none = [&filters.days, &filters.since, &filters.until].iter().all(|text| text.is_empty());
        if let Some(all) = presets.last_mut().filter(|_| none) {
            all.2 = true;
        }
        let shows = |name: &str| fields.contains(&name);
        let mut fields = vec![choice(
            ("source", "Assistant", "All assistants"),
            source_labels().map(|(source, label)| (source.to_owned(), label.to_owned())).collect(),
            &filters.source,
        )];
        if shows("project") {
            let options = project_names(&choices);
            fields.push(choice(("project", "Project", "All projects"), options, &filters.project));
        }
        if shows("model") {
            let models = choices.models.iter().map(|model| (model.to_string(), model.to_string()));
            fields.push(choice(("model", "Model", "All models"), models.collect(), &filters.model));
        }
        if shows("machine") && (choices.machines.len() > 1 || !filters.machine.is_empty()) {
            let machines = choices.machines.iter().map(|name| (name.to_string(), name.to_string()));
            fields.push(choice(("machine", "Machine", "All machines"), machines.collect(), &filters.machine));
        }
        Ok(Bar {
            action,
            custom: presets.iter().all(|(.., chosen)| !chosen),
            presets,
            filters: filters.clone(),
            choices: fields,
            can_compare: shows("compare"),
            since: date(&filters.since),
            until: date(&filters.until),
            search: None,
            flags: Vec::new(),
            kept: Vec::new(),
        })
    }

    pub(super) fn with_search(mut self, label: &'static str, finds: &'static str, words: &str) -> Bar {
        self.search = Some((label, finds, words.to_owned()));
        self
    }

    pub(super) fn with_flags(mut self, flags: Vec<(&'static str, &'static str, bool)>) -> Bar {
        self.flags = flags;
        self
    }

    /// Parameters without a value are left out.
    pub(super) fn keeping(mut self, kept: &[(&'static str, &str)]) -> Bar {
        for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
            for (_, address, _) in &mut self.presets {
                let separator = if address.contains('?') { '&' } else { '?' };
                address.push_str(&format!("{separator}{name}={}", in_address(value)));
            }
            self.kept.push((*name, (*value).to_owned()));
        }
        self
    }
}

/// The day of a time as entered, for a field that takes only dates.
fn date(text: &str) -> String {
    parse_time(given(text)).ok().flatten().map_or(String::new(), Time::date)
}

/// A list to choose from; what is chosen is in it, wherever it comes from.
fn choice(
    (name, label, all): (&'static str, &'static str, &'static str),
    options: Vec<(String, String)>,
    chosen: &str,
) -> Choice {
    let mut options: Vec<(String, String, bool)> =
        options.into_iter().map(|(value, text)| (value.clone(), text, value == chosen)).collect();
    if !chosen.is_empty() && options.iter().all(|(.., chosen)| !chosen) {
        options.insert(0, (chosen.to_owned(), format::last_part(chosen).to_owned(), true));
    }
    Choice { name, label, all, options }
}

/// Projects by the names of their directories, with the path where two have one name.
fn project_names(choices: &Choices) -> Vec<(String, String)> {
    let paths: Vec<&str> = choices.projects.iter().map(|path| path.as_str()).take(LISTED).collect();
    let name = |path: &str| {
        let last = format::last_part(path);
        let same = paths.iter().filter(|other| format::last_part(other) == last).count();
        if same > 1 { path.to_owned() } else { last.to_owned() }
    };
    paths.iter().map(|path| ((*path).to_owned(), name(path))).collect()
}

/// The first days of this month and of the last one.
fn months(now: Time) -> (String, String) {
    let today = now.date();
    let first = |date: &str| date.get(..8).map_or(String::new(), |month| format!("{month}01"));
    let this = first(&today);
    let day: i64 = today.get(8..10).and_then(|day| day.parse().ok()).unwrap_or(1);
    (this, first(&Time::from_day(now.day() - day).date()))
}

#[cfg(test)]
mod tests {
    use super::{Filters, Period, months};
    use annals_core::Time;

    #[test]
    fn an_address_keeps_what_is_not_set() {
        let filters =
            Filters { days: "30".into(), project: "/a b".into(), model: "m".into(), ..Filters::default() };
        assert_eq!(filters.address("/x", &[]), "/x?days=30&project=%2Fa%20b&model=m");
        assert_eq!(
            filters.address("/x", &[("days", ""), ("since", "2026-01-01"), ("sort", "cost")]),
            "/x?project=%2Fa%20b&model=m&since=2026-01-01&sort=cost"
        );
        assert_eq!(Filters::default().address("/x", &[]), "/x");
    }

    #[test]
    fn the_period_before_has_the_same_length() {
        let now = Time::parse("2026-11-15T10:00:00Z").unwrap();
        let day = |date: &str| Time::parse(&format!("{date}T00:00:00Z")).unwrap();
        let month = Period { since: Some(day("2026-11-01")), until: None };
        assert_eq!(
            month.before(now),
            Some(Period { since: Some(day("2026-10-17")), until: Some(day("2026-11-01")) })
        );
        let week = Period { since: Some(day("2026-03-02")), until: Some(day("2026-03-09")) };
        assert_eq!(week.before(now).unwrap().since, Some(day("2026-02-23")));
        assert_eq!(Period { since: None, until: None }.before(now), None);
        assert_eq!(months(now), ("2026-11-01".to_owned(), "2026-10-01".to_owned()));
        assert_eq!(months(day("2026-01-31")).1, "2025-12-01");
    }
}
