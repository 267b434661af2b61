//! The moments behind the numbers of the insights page: their words, their place on a chart, and the list of them.

use askama::Template;
use serde::Deserialize;

use super::assistant::colour;
use super::charts::Step;
use super::filters::{Bar, Filtered, Filters};
use super::html::in_address;
use super::{Frame, PageRequest, Theme};
use crate::serve::answer::Answered;
use crate::view::format;
use crate::view::{InsightKind, Insights, Moment, View};
use annals_core::{ContentKey, Error, Result, Shown, Time};
use annals_store::Between;

/// Moments on the page.
const LISTED: usize = 100;

/// How pages call a kind: in a tile, on the page that lists it, and what its amount is.
pub(super) struct KindWords {
    pub tile: &'static str,
    pub title: &'static str,
    pub column: &'static str,
    pub unit: &'static str,
    /// What exactly is counted.
    pub meaning: &'static str,
}

pub(super) fn words_for(kind: InsightKind) -> KindWords {
    let words = |tile, title, column, unit, meaning| KindWords { tile, title, column, unit, meaning };
    match kind {
        InsightKind::Failed => words(
            "failed calls",
            "Failed calls",
            "failed",
            "calls",
            "Calls whose client reports a failure, or an exit code other than 0.",
        ),
        InsightKind::Interrupted => words(
            "interrupted turns",
            "Interrupted turns",
            "interrupted",
            "turns",
            "Turns that a person stopped, as the client notes it.",
        ),
        InsightKind::Repeated => words(
            "repeated prompts",
            "Repeated prompts",
            "repeated",
            "prompts",
            "Prompts with the same words as another one in the same directory, whatever their case, spacing and signs.",
        ),
        InsightKind::Compacted => words(
            "compactions",
            "Compactions",
            "compactions",
            "compactions",
            "The client replaced a conversation by a summary, because it was too long or because a person wanted it.",
        ),
        InsightKind::Context => words(
            "tokens in the largest context",
            "Largest contexts",
            "largest context",
            "tokens",
            "The most tokens that one response of a session was sent, cached or not.",
        ),
        InsightKind::Rewritten => words(
            "lines rewritten within an hour",
            "Lines rewritten within an hour",
            "rewritten lines",
            "lines",
            "Lines that an edit replaced less than an hour after another edit wrote them, where clients record line numbers.",
        ),
        InsightKind::Missed => words(
            "for cache misses",
            "Cache misses",
            "cache misses",
            "US dollars",
            "At least half of the tokens that the cache held were sent again: what that cost more than reading them there.",
        ),
    }
}

/// The moments that the filters include, with their directories as they are shown.
pub(super) struct Found {
    pub insights: Insights,
    pub folders: Vec<Option<Shown>>,
}

impl Found {
    pub(super) fn of(view: &View<'_>, filters: &Filters) -> Result<Found> {
        let insights = view.insights(&filters.of_sessions()?, between(filters)?)?;
        let folders = view.folders_of(&insights);
        Ok(Found { insights, folders })
    }

    pub(super) fn of_kind(&self, kind: InsightKind) -> impl Iterator<Item = (&Moment, &str)> {
        let folders = self.folders.iter().map(|folder| folder.as_ref().map_or("", |folder| folder.as_str()));
        self.insights.moments.iter().zip(folders).filter(move |(moment, _)| moment.kind == kind)
    }
}

fn between(filters: &Filters) -> Result<Between> {
    let period = filters.period()?;
    let (first, last) = (Time::from_micros(i64::MIN), Time::from_micros(i64::MAX));
    Ok((period.since.unwrap_or(first), period.until.unwrap_or(last)))
}

/// A moment in a list.
pub(super) struct MomentRow {
    pub href: String,
    pub about: String,
    /// The session, if that is not what the row starts with.
    pub session: String,
    pub label: &'static str,
    pub colour: String,
    pub project: String,
    pub at: (String, String),
    pub amount: String,
}

pub(super) fn moment_row(view: &View<'_>, moment: &Moment, folder: &str) -> Result<Option<MomentRow>> {
    let Some(shown) = view.moment(moment)? else { return Ok(None) };
    let session = shown.session.map_or("Untitled".to_owned(), |title| title.as_str().trim().to_owned());
    let about = shown.about.map(|about| about.as_str().trim().lines().next().unwrap_or_default().to_owned());
    let place = shown.step.map_or(String::new(), |step| format!("?at={step}#m-{step}"));
    let at = moment.at.rfc3339();
    let is_single = matches!(
        moment.kind,
        InsightKind::Failed | InsightKind::Interrupted | InsightKind::Repeated | InsightKind::Compacted
    );
    Ok(Some(MomentRow {
        href: format!("/sessions/{}/{}{place}", shown.source, in_address(&shown.session_id)),
        about: about.filter(|about| !about.is_empty()).unwrap_or_default(),
        session,
        label: shown.provider_label,
        colour: colour(shown.source),
        project: if folder.is_empty() { String::new() } else { format::last_part(folder).to_owned() },
        at: (at.clone(), format::minute(&at)),
        amount: if is_single { String::new() } else { moment.kind.write(moment.amount) },
    }))
}

#[derive(Template)]
#[template(path = "moments.html")]
struct MomentsPage {
    frame: Frame,
    bar: Bar,
    title: &'static str,
    meaning: &'static str,
    total: String,
    unit: &'static str,
    /// What the list is narrowed to besides the bar, and where all of it is.
    within: Vec<String>,
    all: String,
    /// Name, address, whether it is chosen.
    kinds: Vec<(&'static str, String, bool)>,
    rows: Vec<MomentRow>,
    /// Moments differ by more than their number.
    has_amounts: bool,
    cut: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    what: String,
    /// One working directory, without those below it.
    folder: String,
    /// The words of repeated prompts.
    words: String,
    /// The first day of a stretch, and the one after the last.
    first: String,
    end: String,
}

/// The address of the list of a kind.
pub(super) fn address(filters: &Filters, kind: InsightKind, set: &[(&str, &str)]) -> String {
    let fixed = [("what", kind.name()), ("compare", "")];
    filters.address("/insights/moments", &[&fixed[..], set].concat())
}

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let filters = filters.or_days("30");
    let kind = InsightKind::from_name(&parameters.what).ok_or_else(|| {
        let names = InsightKind::ALL.map(InsightKind::name).join(", ");
        Error::bad_request("invalid value of `what`").hint(format!("use one of {names}"))
    })?;
    asker.show(move |view, theme| moments_page(view, &filters, &parameters, kind, theme)).await
}

fn moments_page(
    view: &View<'_>,
    filters: &Filters,
    parameters: &Parameters,
    kind: InsightKind,
    theme: Theme,
) -> Result<MomentsPage> {
    let day = |name: &str, date: &str| match date {
        "" => Ok(None),
        date => Time::parse(&format!("{date}T00:00:00Z"))
            .map(|time| Some(time.day()))
            .ok_or_else(|| Error::bad_request(format!("invalid value of `{name}`")).hint("use a date")),
    };
    let (first, end) = (day("first", &parameters.first)?, day("end", &parameters.end)?);
    let words = match parameters.words.as_str() {
        "" => None,
        words => Some(ContentKey::from_hex(words).ok_or_else(|| {
            Error::bad_request("invalid value of `words`").hint("use an address of the insights page")
        })?),
    };
    let found = Found::of(view, filters)?;
    let is_within = |(moment, folder): &(&Moment, &str)| {
        (parameters.folder.is_empty() || *folder == parameters.folder)
            && words.is_none_or(|words| moment.words == Some(words))
            && first.is_none_or(|first| moment.at.day() >= first)
            && end.is_none_or(|end| moment.at.day() < end)
    };
    let listed: Vec<(&Moment, &str)> = found.of_kind(kind).filter(is_within).collect();
    let mut rows = Vec::new();
    for (moment, folder) in listed.iter().take(LISTED) {
        rows.extend(moment_row(view, moment, folder)?);
    }
    let mut within = Vec::new();
    if !parameters.folder.is_empty() {
        within.push(format!("in {}", view.show(&parameters.folder)));
    }
    if words.is_some() {
        within.push("of the same words".to_owned());
    }
    match (first, end) {
        (Some(first), Some(end)) if end == first + 1 => within.push(format!("on {}", parameters.first)),
        (None, None) => {}
        _ => within.push(format!("from {} to before {}", parameters.first, parameters.end)),
    }
    let kept = [
        ("what", kind.name()),
        ("folder", &parameters.folder),
        ("words", &parameters.words),
        ("first", &parameters.first),
        ("end", &parameters.end),
    ];
    let KindWords { title, meaning, unit, .. } = words_for(kind);
    let only_folder = [("folder", parameters.folder.as_str())];
    Ok(MomentsPage {
        frame: Frame::new("/insights", title, theme).with_filters(filters),
        bar: Bar::of(view, "/insights/moments", filters, &["project", "machine"])?.keeping(&kept),
        title,
        meaning,
        total: kind.write(kind.total(listed.iter().map(|(moment, _)| *moment))),
        unit,
        within,
        all: address(filters, kind, &[]),
        kinds: InsightKind::ALL
            .map(|other| (words_for(other).title, address(filters, other, &only_folder), other == kind))
            .to_vec(),
        cut: (listed.len() > LISTED).then(|| {
            format!("The first {LISTED} of {}. A shorter period shows others.", format::number(listed.len()))
        }),
        has_amounts: rows.iter().any(|row| !row.amount.is_empty()),
        rows,
    })
}

/// Amounts over time, by directory.
pub(super) fn by_day(found: &Found, kind: InsightKind) -> Vec<(i64, String, f64)> {
    found.of_kind(kind).map(|(moment, folder)| (moment.at.day(), folder.to_owned(), moment.amount)).collect()
}

/// Where the moments of a bar are listed.
pub(super) fn bar_address(filters: &Filters, kind: InsightKind, step: Step, start: i64) -> String {
    let (first, end) = (Time::from_day(start).date(), Time::from_day(step.after(start)).date());
    address(filters, kind, &[("first", &first), ("end", &end)])
}
