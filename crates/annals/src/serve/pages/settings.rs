//! The settings page: what is captured and when, the sources with how to set them up, and who may read the archive.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::arrange::see;
use super::assistant::colour;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal};
use crate::serve::api::parameters::{Nothing, Params};
use crate::view::format;
use crate::view::{FailureView, SourceCard, View};
use annals_core::{Result, Scope};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    /// The last capture: for machines, and as shown without a script.
    captured: Option<(String, String)>,
    /// This server captures, and the caller may ask for it.
    syncs: Capture,
    failures: Vec<FailureView>,
    cards: Vec<Card>,
    /// Sources that were not found on this machine.
    folded: Vec<Card>,
    facts: Vec<(&'static str, String)>,
    /// Keys of `config.toml` that pages read, what they are for, and their values.
    preferences: Vec<(&'static str, &'static str, String)>,
}

/// What the page offers for capturing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Capture {
    /// A button.
    OnRequest,
    /// The server captures, but this caller cannot ask for it.
    ByItself,
    /// The server shows the archive as it is.
    Off,
}

struct Card {
    source: &'static str,
    label: &'static str,
    colour: String,
    href: String,
    status: String,
    sessions: i64,
    sessions_text: String,
    detail: String,
    kept: Option<String>,
    gaps: Option<(String, String)>,
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
        let capture = match (shared.freshness.is_on(), caller.scope == Scope::Owner) {
            (true, true) => Capture::OnRequest,
            (true, false) => Capture::ByItself,
            (false, _) => Capture::Off,
        };
        let failures = view.failures(shared.failure().as_ref())?;
        settings(view, capture, failures, theme).map(Some)
    })
    .await
}

/// Captures new data now; a long capture continues after the page is shown again.
pub(super) async fn sync(State(app): State<Arc<App>>, caller: Caller) -> Answered {
    if caller.scope != Scope::Owner {
        return Err(Refusal::not_found("not found").hint("only the owner captures"));
    }
    app.freshness.refresh_now().await;
    Ok(see("/settings"))
}

fn settings(
    view: &View<'_>,
    syncs: Capture,
    failures: Vec<FailureView>,
    theme: Theme,
) -> Result<SettingsPage> {
    let cards = view.cards()?;
    let (shown, folded) = SourceCard::fold(&cards);
    let sum = |of: fn(&SourceCard) -> i64| cards.iter().map(of).sum::<i64>();
    let index = view.index_audit()?;
    let machines: Vec<String> = view.choices()?.machines.iter().map(ToString::to_string).collect();
    Ok(SettingsPage {
        frame: Frame::new("/settings", "Settings", theme),
        captured: view.last_scanned()?.map(|at| (at.clone(), format!("{} UTC", format::minute(&at)))),
        syncs,
        failures,
        facts: vec![
            ("sessions", format::number(sum(|card| card.session_count))),
            ("messages", format::number(sum(|card| card.message_count))),
            ("files", format::number(sum(|card| card.files))),
            ("archived", format::size(sum(|card| card.bytes))),
            ("search index", format::size(index.bytes)),
            ("machines", machines.join(", ")),
            ("annals", env!("CARGO_PKG_VERSION").to_owned()),
        ],
        preferences: preferences(view),
        cards: shown.into_iter().map(card).collect(),
        folded: folded.into_iter().map(card).collect(),
    })
}

fn preferences(view: &View<'_>) -> Vec<(&'static str, &'static str, String)> {
    let set = view.preferences();
    let editor =
        set.and_then(|set| set.editor.as_ref()).map_or("none".to_owned(), |editor| editor.to_string());
    let budget = set.and_then(|set| set.budget_usd);
    vec![
        ("editor", "Opens files from pages", editor),
        (
            "budget",
            "What a month may cost",
            budget.map_or("none".to_owned(), |budget| format!("{} a month", format::money(budget))),
        ),
    ]
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
        colour: colour(card.source),
        href: format!("/sessions?source={}", card.source),
        status: card.source_status.to_string(),
        sessions: card.session_count,
        sessions_text: format::counted(card.session_count, "session"),
        detail: parts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        kept: kept(card),
        gaps: (card.gaps_open > 0)
            .then(|| (format::counted(card.gaps_open, "open gap"), format!("/gaps?source={}", card.source))),
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
