//! The home page: a card for each source, a year of activity, tokens and cost, recent sessions.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::html::Html;
use super::plot::{HeatDay, heat_map};
use super::rows::SessionLine;
use super::usage::{Figure, figures};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::api::parameters::{Nothing, Params};
use crate::view::format;
use crate::view::{FailureView, Paging, SessionQuery, SourceCard, View};
use annals_core::{Result, Time};
use annals_store::ResponseFilter;

/// Complete weeks, plus the days of the current one.
const DAYS: i64 = 371;
const USAGE_DAYS: i64 = 30;
const RECENT: i64 = 8;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    /// What is not captured, since when and why.
    failures: Vec<Failure>,
    headline: String,
    cards: Vec<Card>,
    /// Sources that were not found on this machine.
    folded: Vec<Card>,
    folded_labels: String,
    messages_in_year: i64,
    year_summary: String,
    heat: Html,
    has_usage: bool,
    plots: Vec<Figure>,
    legend: Vec<String>,
    recent: Vec<SessionLine>,
}

struct Failure {
    what: String,
    hint: Option<String>,
}

struct Card {
    source: &'static str,
    label: &'static str,
    href: String,
    status: String,
    sessions: i64,
    sessions_text: String,
    detail: String,
    kept: Option<String>,
    gaps: Option<String>,
    reason: String,
    setup: &'static str,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let theme = Theme::of(&headers);
    let shared = app.clone();
    render(app, caller, move |view| {
        let failures = view.failures(shared.failure().as_ref())?;
        home(view, &failures, theme).map(Some)
    })
    .await
}

fn home(view: &View<'_>, failures: &[FailureView], theme: Theme) -> Result<HomePage> {
    let cards = view.cards()?;
    let year = view.activity(DAYS)?;
    let by_date: HashMap<&str, i64> =
        year.days.iter().map(|day| (day.date.as_str(), day.message_count)).collect();
    let today = view.now().day();
    let days: Vec<HeatDay> = (today - DAYS + 1..=today)
        .map(|day| {
            let date = Time::from_day(day).date();
            let amount = by_date.get(date.as_str()).copied().unwrap_or(0);
            HeatDay { day, date, amount }
        })
        .collect();
    let messages_in_year = year.days.iter().map(|day| day.message_count).sum();
    let usage = view.daily_usage(&ResponseFilter::default(), Some(USAGE_DAYS))?;
    let (plots, legend) = figures(&usage, USAGE_DAYS, view.now(), "");
    let query =
        SessionQuery { page: Paging { limit: RECENT, cursor: None }, brief: true, ..SessionQuery::default() };
    let recent = view.sessions(&query)?;
    let (shown, folded) = SourceCard::fold(&cards);
    let count: i64 = cards.iter().map(|card| card.session_count).sum();
    let kept: i64 = cards.iter().map(|card| card.bytes).sum();
    let failures = failures.iter().map(|failure| Failure {
        what: failure.sentence(),
        hint: failure.hint.as_ref().map(ToString::to_string),
    });
    Ok(HomePage {
        failures: failures.collect(),
        frame: Frame::new("/", "Home", theme),
        headline: match count {
            0 => "No sessions yet".into(),
            _ => format!("{}, {} archived", format::counted(count, "session"), format::size(kept)),
        },
        cards: shown.into_iter().map(card).collect(),
        folded_labels: folded.iter().map(|card| card.provider_label).collect::<Vec<_>>().join(", "),
        folded: folded.into_iter().map(card).collect(),
        messages_in_year,
        year_summary: format!(
            "{} on {}.",
            format::counted(messages_in_year, "message"),
            format::counted(year.days.len() as i64, "day")
        ),
        heat: heat_map(&days, "messages"),
        has_usage: !usage.days.is_empty(),
        plots,
        legend,
        recent: recent.sessions.iter().map(SessionLine::of).collect(),
    })
}

fn card(card: &SourceCard) -> Card {
    let last = card.last_activity_at.as_deref().map(|at| format!("last active {}", format::day(at)));
    let parts = [
        Some(format::counted(card.message_count, "message")),
        Some(format!("{} archived from {}", format::size(card.bytes), format::counted(card.files, "file"))),
        last,
    ];
    Card {
        source: card.source,
        label: card.provider_label,
        href: format!("/sessions?source={}", card.source),
        status: card.source_status.to_string(),
        sessions: card.session_count,
        sessions_text: format::counted(card.session_count, "session"),
        detail: parts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        kept: kept(card),
        gaps: (card.gaps_open > 0).then(|| format::counted(card.gaps_open, "open gap")),
        reason: card.reason.to_string(),
        setup: card.setup_hint,
    }
}

/// Number of sessions that would be lost without this archive.
fn kept(card: &SourceCard) -> Option<String> {
    let sum = card.deleted_this_month;
    (sum > 0).then(|| {
        let sessions = format::counted(sum, "session");
        format!("{sessions} kept that {} deletes this month", card.provider_label)
    })
}
