//! What could not be fetched, and when it is retried.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::format::wait;
use crate::view::paging::{Paging, read_numbers, write_numbers};
use annals_core::{GapStream, Result, Shown, Time};
use annals_store::{GapFilter, GapRow};

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
    /// The cause, as the retry policy names it: unreadable, changing, sign_in, rate_limited, pressure, timeout,
    /// not_found, gone, forbidden, malformed, shape_changed or failed
    pub why: String,
    pub reason: Shown,
    pub status: String,
    /// Why a terminal gap is no longer retried: not_found, gone or quarantined
    pub ended: Option<String>,
    pub attempts: i64,
    pub first_seen_at: String,
    pub last_tried_at: String,
    /// Not retried before then; if missing, every run retries a pending gap
    pub next_try_at: Option<String>,
    /// How long a gap in progress is reserved for the run that retries it
    pub leased_until_at: Option<String>,
    /// When it is retried next, for people
    pub eta: String,
}

/// Statuses of gaps that may still be recovered.
pub const OPEN: &[&str] = &["pending", "in_progress"];
/// Statuses of all that is missing.
pub const MISSING: &[&str] = &["pending", "in_progress", "terminal"];

#[derive(Debug, Default)]
pub struct GapQuery {
    pub source: Option<String>,
    /// Any of these; all if empty.
    pub statuses: Vec<String>,
    pub page: Paging,
}

impl View<'_> {
    pub fn gaps(&self, query: &GapQuery) -> Result<GapList> {
        let [after] = query.page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
        let limit = query.page.limit.max(1);
        let statuses: Vec<&str> = query.statuses.iter().map(String::as_str).collect();
        let filter = GapFilter { source: query.source.as_deref(), statuses: &statuses };
        let mut rows = self.archive.gaps(&filter, after, limit.saturating_add(1), self.now)?;
        let more = rows.len() as i64 > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next_cursor = rows.last().filter(|_| more).map(|row| write_numbers(&[row.id]));
        let gaps = rows.into_iter().map(|row| GapView {
            id: row.id,
            eta: eta(&row, self.now),
            source: row.source,
            stream: row.stream,
            key: self.door.raw(&row.key),
            why: row.why,
            reason: self.door.raw(&row.reason),
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
}

fn eta(row: &GapRow, now: Time) -> String {
    match (row.status.as_str(), row.next_try) {
        ("recovered", _) => "not needed".into(),
        ("terminal", _) if row.ended.as_deref() == Some("quarantined") => "after an update of annals".into(),
        ("terminal", _) => "given up".into(),
        ("in_progress", _) => "in progress".into(),
        (_, Some(next)) if next > now => {
            format!("in {}", wait(Duration::from_micros(next.micros().abs_diff(now.micros()))))
        }
        _ if GapStream::Imports.is(&row.stream) => "on the next import".into(),
        _ => "on the next sync".into(),
    }
}
