//! What could not be had, when it is tried again, and what became of it.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::door::Door;
use crate::view::format::wait;
use crate::view::paging::{Paging, read_numbers, write_numbers};
use annals_core::{Result, Scope, Shown, Time};
use annals_store::{GapFilter, GapRow, Store};

#[derive(Debug, Serialize, ToSchema)]
pub struct GapList {
    pub gaps: Vec<GapView>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct GapView {
    pub id: i64,
    pub source: String,
    pub stream: String,
    pub key: Shown,
    /// The reason in one word of the retry policy: unreadable, changing, sign_in, rate_limited, pressure, timeout,
    /// not_found, gone, forbidden, malformed or failed
    pub why: String,
    pub reason: Shown,
    pub status: String,
    /// Why a terminal gap is tried no more: not_found, gone or quarantined
    pub ended: Option<String>,
    pub attempts: i64,
    pub first_seen_at: String,
    pub last_tried_at: String,
    /// Not before then; without it every run tries a gap that is pending
    pub next_try_at: Option<String>,
    /// Until when a gap in progress is with the run that took it
    pub leased_until_at: Option<String>,
    /// When it is tried next, in words
    pub eta: String,
}

/// Statuses of what is not had yet and may still come.
pub const OPEN: &[&str] = &["pending", "in_progress"];
/// Statuses of what is not had.
pub const LACKING: &[&str] = &["pending", "in_progress", "terminal"];

#[derive(Debug, Default)]
pub struct GapQuery {
    pub source: Option<String>,
    /// Any of these; all when empty.
    pub statuses: Vec<String>,
    pub page: Paging,
}

pub fn gaps(scope: &Scope, store: &Store, door: &Door, ask: &GapQuery, now: Time) -> Result<GapList> {
    let [after] = ask.page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
    let limit = ask.page.limit.max(1);
    let statuses: Vec<&str> = ask.statuses.iter().map(String::as_str).collect();
    let filter = GapFilter { source: ask.source.as_deref(), statuses: &statuses };
    let mut rows = store.gaps(scope, &filter, after, limit.saturating_add(1), now)?;
    let more = rows.len() as i64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = rows.last().filter(|_| more).map(|row| write_numbers(&[row.id]));
    let gaps = rows.into_iter().map(|row| GapView {
        id: row.id,
        eta: eta(&row, now),
        source: row.source,
        stream: row.stream,
        key: door.raw(&row.key),
        why: row.why,
        reason: door.raw(&row.reason),
        leased_until_at: row.leased_until.filter(|_| row.status == "in_progress").map(Time::rfc3339),
        status: row.status,
        ended: row.ended,
        attempts: row.attempts,
        first_seen_at: row.first_seen.rfc3339(),
        last_tried_at: row.last_tried.rfc3339(),
        next_try_at: row.next_try.map(Time::rfc3339),
    });
    Ok(GapList { gaps: gaps.collect(), next_cursor })
}

fn eta(row: &GapRow, now: Time) -> String {
    match (row.status.as_str(), row.next_try) {
        ("recovered", _) => "not needed".into(),
        ("terminal", _) if row.ended.as_deref() == Some("quarantined") => "with a newer version".into(),
        ("terminal", _) => "given up".into(),
        ("in_progress", _) => "being tried".into(),
        (_, Some(next)) if next > now => {
            format!("in {}", wait(Duration::from_micros(next.micros().abs_diff(now.micros()))))
        }
        _ if row.stream == "imports" => "at the next import".into(),
        _ => "at the next sync".into(),
    }
}
