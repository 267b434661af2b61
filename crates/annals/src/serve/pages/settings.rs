//! The settings page: the sources with how to set them up, what is archived, and who may read it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::assistant::colour;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::api::parameters::{Nothing, Params};
use crate::view::format;
use crate::view::{SourceCard, View};
use annals_core::Result;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    cards: Vec<Card>,
    /// Sources that were not found on this machine.
    folded: Vec<Card>,
    facts: Vec<(&'static str, String)>,
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
    render(app, caller, move |view| settings(view, theme).map(Some)).await
}

fn settings(view: &View<'_>, theme: Theme) -> Result<SettingsPage> {
    let cards = view.cards()?;
    let (shown, folded) = SourceCard::fold(&cards);
    let sum = |of: fn(&SourceCard) -> i64| cards.iter().map(of).sum::<i64>();
    let index = view.index_audit()?;
    let machines: Vec<String> = view.choices()?.machines.iter().map(ToString::to_string).collect();
    Ok(SettingsPage {
        frame: Frame::new("/settings", "Settings", theme),
        facts: vec![
            ("sessions", format::number(sum(|card| card.session_count))),
            ("messages", format::number(sum(|card| card.message_count))),
            ("files", format::number(sum(|card| card.files))),
            ("archived", format::size(sum(|card| card.bytes))),
            ("search index", format::size(index.bytes)),
            ("machines", machines.join(", ")),
            ("annals", env!("CARGO_PKG_VERSION").to_owned()),
        ],
        cards: shown.into_iter().map(card).collect(),
        folded: folded.into_iter().map(card).collect(),
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
