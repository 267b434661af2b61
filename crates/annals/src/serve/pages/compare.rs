//! The compare page: two sessions or two models side by side.

use askama::Template;
use serde::Deserialize;

use super::filters::{Bar, Filtered, Filters};
use super::html::in_address;
use super::rows::{SessionLine, title};
use super::{Frame, PageRequest, Theme};
use crate::serve::answer::Answered;
use crate::view::format;
use crate::view::{Branch, Paging, SessionQuery, SessionView, UsageQuery, View};
use annals_core::{Error, Result, Time};
use annals_store::{SessionFilter, UsageBy};

/// Prompts of each session that are listed.
const PROMPTS: usize = 60;
/// Sessions offered for comparison.
const OFFERED: i64 = 40;

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    frame: Frame,
    tab: &'static str,
    /// Only models are compared in a period.
    bar: Option<Bar>,
    /// What is compared: name, address, whether it is chosen.
    kinds: Vec<(&'static str, String, bool)>,
    /// For the form: the two fields with their labels, the value that each has, and the values that each offers.
    of: &'static str,
    fields: Vec<Field>,
    kept: Vec<(&'static str, String)>,
    problem: Option<String>,
    measures: Vec<MeasureLine>,
    sides: Vec<Side>,
}

struct Field {
    name: &'static str,
    label: &'static str,
    /// Value, text, whether it is chosen.
    options: Vec<(String, String, bool)>,
}

/// One of the two things.
#[derive(Default)]
struct Side {
    title: String,
    href: String,
    about: String,
    prompts: Vec<PromptLine>,
    more: Option<String>,
}

struct PromptLine {
    href: String,
    text: String,
    spent: String,
}

#[derive(Debug, PartialEq, Eq)]
struct MeasureLine {
    name: &'static str,
    values: [String; 2],
    /// How much more the other one has, if both are known.
    difference: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    /// `models`, or nothing for sessions.
    of: String,
    one: String,
    other: String,
}

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let compares_models = match parameters.of.as_str() {
        "" => false,
        "models" => true,
        _ => Err(Error::bad_request("invalid value of `of`").hint("use models, or leave it out"))?,
    };
    asker
        .show(move |view, theme| match compares_models {
            true => models_page(view, &filters.or_days("90"), &parameters, theme),
            false => sessions_page(view, &parameters, theme),
        })
        .await
}

fn frame_of(of: &'static str, theme: Theme) -> ComparePage {
    ComparePage {
        frame: Frame::new("/insights", "Compare", theme),
        tab: "compare",
        bar: None,
        kinds: vec![
            ("Sessions", "/compare".to_owned(), of.is_empty()),
            ("Models", "/compare?of=models".to_owned(), of == "models"),
        ],
        of,
        fields: Vec::new(),
        kept: Vec::new(),
        problem: None,
        measures: Vec::new(),
        sides: Vec::new(),
    }
}

fn sessions_page(view: &View<'_>, parameters: &Parameters, theme: Theme) -> Result<ComparePage> {
    let mut page = frame_of("", theme);
    let mut found = Vec::new();
    for id in [&parameters.one, &parameters.other] {
        let session = match id.trim() {
            "" => None,
            id => {
                let session = match id.split_once(':') {
                    Some((source, id)) => view.exact_session(source, id)?,
                    None => view.find_session(id).map_err(|error| Error::bad_request(error.what))?,
                };
                if session.is_none() {
                    page.problem = Some(format!("There is no session {}.", view.show(id)));
                }
                session
            }
        };
        found.push(session);
    }
    let recent = SessionQuery {
        filter: SessionFilter {
            // Sessions of one project are compared most.
            project: found.iter().flatten().find_map(|session| session.cwd.as_ref()).map(ToString::to_string),
            ..SessionFilter::default()
        },
        page: Paging { limit: OFFERED, cursor: None },
        brief: true,
    };
    let offered = view.sessions(&recent)?.sessions;
    for ((name, label), chosen) in [("one", "Session"), ("other", "With")].into_iter().zip(&found) {
        let value = |session: &SessionView| format!("{}:{}", session.source, session.session_id);
        let chosen_value = chosen.as_ref().map(value).unwrap_or_default();
        let mut options: Vec<(String, String, bool)> = offered
            .iter()
            .map(|session| (value(session), title_with_time(session), value(session) == chosen_value))
            .collect();
        if let Some(session) = chosen
            && options.iter().all(|(.., chosen)| !chosen)
        {
            options.insert(0, (chosen_value, title_with_time(session), true));
        }
        page.fields.push(Field { name, label, options });
    }
    if let [Some(one), Some(other)] = found.as_slice() {
        page.frame.title = format!("{} and {}", title(one), title(other));
        page.measures = session_measures(view, [one, other])?;
        page.sides = vec![side(view, one)?, side(view, other)?];
    }
    Ok(page)
}

fn title_with_time(session: &SessionView) -> String {
    let at = session.last_message_at.as_deref().map(|at| format!(" · {}", format::minute(at)));
    format!("{}{}", title(session), at.unwrap_or_default())
}

fn side(view: &View<'_>, session: &SessionView) -> Result<Side> {
    let line = SessionLine::of(session);
    let outline = view.outline(session, &Branch::Current)?;
    let count = outline.prompts.len();
    let prompts = outline.prompts.into_iter().take(PROMPTS).map(|prompt| PromptLine {
        href: format!("{0}?at={1}#m-{1}", line.href, prompt.id),
        text: prompt.text.to_string(),
        spent: prompt.cost_usd.map_or(String::new(), format::money),
    });
    let about = [Some(line.source.to_owned()), line.project.map(|(name, _)| name), Some(line.models)];
    Ok(Side {
        prompts: prompts.collect(),
        more: (count > PROMPTS).then(|| format::counted(count - PROMPTS, "more prompt")),
        about: about.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "),
        title: line.title,
        href: line.href,
    })
}

fn session_measures(view: &View<'_>, sessions: [&SessionView; 2]) -> Result<Vec<MeasureLine>> {
    let mut tallies = Vec::new();
    for session in sessions {
        tallies.push(view.session_tally(session)?);
    }
    let failed = |at: usize| tallies.get(at).map(|tally| tally.failed_calls as f64);
    let agents = |at: usize| tallies.get(at).map(|tally| tally.agents as f64);
    let [one, other] = sessions;
    let both = |name, unit, value: &dyn Fn(&SessionView) -> Option<f64>| {
        MeasureLine::of(name, unit, [value(one), value(other)])
    };
    let count = |count: i64| Some(count as f64);
    Ok(vec![
        both("Duration", Unit::Time, &lasted),
        both("Prompts", Unit::Count, &|session| count(session.user_message_count)),
        both("Messages", Unit::Count, &|session| count(session.message_count)),
        both("Tool calls", Unit::Count, &|session| count(session.tool_call_count)),
        MeasureLine::of("Failed calls", Unit::Count, [failed(0), failed(1)]),
        MeasureLine::of("Sub-agents", Unit::Count, [agents(0), agents(1)]),
        both("Tokens", Unit::Count, &|session| count(session.tokens.total)),
        both("Output tokens", Unit::Count, &|session| count(session.tokens.output)),
        both("Input from the cache", Unit::Share, &|session| {
            cached(session.tokens.input, session.tokens.cache_read, session.tokens.cache_write)
        }),
        both("Estimated cost", Unit::Money, &|session| session.cost_usd),
        both("Cost per prompt", Unit::Money, &|session| per(session.cost_usd, session.user_message_count)),
    ])
}

/// Milliseconds from the first message to the last one.
fn lasted(session: &SessionView) -> Option<f64> {
    let time = |at: &Option<String>| at.as_deref().and_then(Time::parse).map(Time::micros);
    let (first, last) = (time(&session.first_message_at)?, time(&session.last_message_at)?);
    Some((last.saturating_sub(first) / 1_000) as f64)
}

/// The share of the input that came from the cache.
fn cached(input: i64, read: i64, write: i64) -> Option<f64> {
    let all = input + read + write;
    (all > 0).then(|| read as f64 / all as f64)
}

fn per(sum: Option<f64>, count: i64) -> Option<f64> {
    sum.filter(|_| count > 0).map(|sum| sum / count as f64)
}

fn models_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &Parameters,
    theme: Theme,
) -> Result<ComparePage> {
    let mut page = frame_of("models", theme);
    let models: Vec<String> = view.choices()?.models.iter().map(ToString::to_string).collect();
    let chosen = [parameters.one.trim(), parameters.other.trim()];
    for ((name, label), chosen) in [("one", "Model"), ("other", "With")].into_iter().zip(chosen) {
        let options = models.iter().map(|model| (model.clone(), model.clone(), model == chosen)).collect();
        page.fields.push(Field { name, label, options });
    }
    page.frame = page.frame.with_filters(filters);
    page.kept = filters.given().map(|(name, value)| (name, value.to_owned())).collect();
    let kept = [("of", "models"), ("one", chosen[0]), ("other", chosen[1])];
    page.bar = Some(Bar::of(view, "/compare", filters, &["project", "machine"])?.keeping(&kept));
    if chosen.iter().any(|model| model.is_empty()) {
        return Ok(page);
    }
    if let Some(missing) = chosen.into_iter().find(|chosen| models.iter().all(|model| model != chosen)) {
        page.problem = Some(format!("No session used a model {}.", view.show(missing)));
        return Ok(page);
    }
    page.measures = model_measures(view, filters, chosen)?;
    page.sides = chosen
        .map(|model| Side {
            title: model.to_owned(),
            href: filters.address("/sessions", &[("model", model)]),
            ..Side::default()
        })
        .into();
    page.frame.title = format!("{} and {}", chosen[0], chosen[1]);
    Ok(page)
}

fn model_measures(view: &View<'_>, filters: &Filters, models: [&str; 2]) -> Result<Vec<MeasureLine>> {
    let period = filters.period()?;
    let (mut totals, mut sessions) = (Vec::new(), Vec::new());
    for model in models {
        let filters = Filters { model: model.to_owned(), ..filters.clone() };
        let query = UsageQuery {
            by: UsageBy::Model,
            days: None,
            filter: filters.of_responses(period),
            page: Paging { limit: 1, cursor: None },
        };
        totals.push(view.usage(&query)?.total);
        let query = SessionQuery {
            filter: filters.of_sessions()?,
            page: Paging { limit: 1, cursor: None },
            brief: true,
        };
        sessions.push(view.sessions(&query)?.total);
    }
    let ([one, other], [few, many]) = (totals.as_slice(), sessions.as_slice()) else { return Ok(Vec::new()) };
    let both = |name, unit, value: &dyn Fn(&crate::view::UsageRow, i64) -> Option<f64>| {
        MeasureLine::of(name, unit, [value(one, *few), value(other, *many)])
    };
    let count = |count: i64| Some(count as f64);
    Ok(vec![
        both("Sessions", Unit::Count, &|_, sessions| count(sessions)),
        both("Responses", Unit::Count, &|row, _| count(row.response_count)),
        both("Tokens", Unit::Count, &|row, _| count(row.tokens.total)),
        both("Output tokens", Unit::Count, &|row, _| count(row.tokens.output)),
        both("Output tokens per response", Unit::Count, &|row, _| {
            per(count(row.tokens.output), row.response_count).map(f64::round)
        }),
        both("Input from the cache", Unit::Share, &|row, _| {
            cached(row.tokens.input, row.tokens.cache_read, row.tokens.cache_write)
        }),
        both("Estimated cost", Unit::Money, &|row, _| row.cost_usd),
        both("Cost per session", Unit::Money, &|row, sessions| per(row.cost_usd, sessions)),
        both("Cost per 1,000 responses", Unit::Money, &|row, _| {
            per(row.cost_usd, row.response_count).map(|cost| cost * 1_000.0)
        }),
    ])
}

/// What a measure is in.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Money,
    /// Milliseconds.
    Time,
    Share,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Count => format::number(value as i64),
            Unit::Money => format::money(value),
            Unit::Time => format::milliseconds(value as i64),
            Unit::Share => format::percent(value),
        }
    }
}

impl MeasureLine {
    fn of(name: &'static str, unit: Unit, values: [Option<f64>; 2]) -> MeasureLine {
        let difference = match (unit, values) {
            (Unit::Share, [Some(one), Some(other)]) => {
                let points = (100.0 * (other - one)).round() as i64;
                if points == 0 { "same".to_owned() } else { format!("{points:+} points").replace('-', "−") }
            }
            (_, [Some(one), Some(other)]) if one == other => "same".to_owned(),
            (_, [Some(one), Some(other)]) if one > 0.0 && other > 0.0 => match other / one {
                ratio if ratio >= 2.0 => format!("{ratio:.1}×"),
                ratio => format!("{:+.0} %", 100.0 * (ratio - 1.0)).replace('-', "−"),
            },
            _ => String::new(),
        };
        let shown = values.map(|value| value.map_or("–".to_owned(), |value| unit.show(value)));
        MeasureLine { name, values: shown, difference }
    }
}

/// The address at which a session is compared with others.
pub(super) fn address_with(session: &SessionView) -> String {
    format!("/compare?one={}", in_address(&format!("{}:{}", session.source, session.session_id)))
}

#[cfg(test)]
mod tests {
    use super::{MeasureLine, Unit};

    fn difference(unit: Unit, one: f64, other: f64) -> String {
        MeasureLine::of("measure", unit, [Some(one), Some(other)]).difference
    }

    #[test]
    fn differences_are_small_or_large() {
        assert_eq!(difference(Unit::Count, 10.0, 12.0), "+20 %");
        assert_eq!(difference(Unit::Money, 10.0, 4.0), "−60 %");
        assert_eq!(difference(Unit::Count, 10.0, 35.0), "3.5×");
        assert_eq!(difference(Unit::Share, 0.5, 0.61), "+11 points");
        assert_eq!(difference(Unit::Share, 0.5, 0.5), "same");
        assert_eq!(difference(Unit::Time, 7.0, 7.0), "same");
        // From nothing, there is no ratio.
        assert_eq!(difference(Unit::Count, 0.0, 5.0), "");
    }

    #[test]
    fn what_is_unknown_is_not_zero() {
        let line = MeasureLine::of("Estimated cost", Unit::Money, [None, Some(1.5)]);
        assert_eq!((line.values[0].as_str(), line.difference.as_str()), ("–", ""));
    }
}
