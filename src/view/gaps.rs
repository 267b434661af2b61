//! What could not be had, and what became of it.

use serde::Serialize;
use utoipa::ToSchema;

use super::door::Door;
use super::paging::{Paging, read_numbers, write_numbers};
use crate::model::{Result, Scope, Shown, Time};
use crate::store::Store;

#[derive(Debug, Serialize, ToSchema)]
pub struct GapList {
    pub gaps: Vec<GapView>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct GapView {
    pub source: String,
    pub stream: String,
    pub key: Shown,
    pub reason: Shown,
    pub status: String,
    pub attempts: i64,
    pub first_seen_at: String,
    pub last_tried_at: String,
    pub next_try_at: Option<String>,
}

#[derive(Debug, Default)]
pub struct GapAsk {
    pub source: Option<String>,
    pub status: Option<String>,
    pub page: Paging,
}

pub fn gaps(scope: &Scope, store: &Store, door: &Door, ask: &GapAsk) -> Result<GapList> {
    let [after] = ask.page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
    let limit = ask.page.limit.max(1);
    let (source, status) = (ask.source.as_deref(), ask.status.as_deref());
    let mut rows = store.gaps(scope, source, status, after, limit.saturating_add(1))?;
    let more = rows.len() as i64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = rows.last().filter(|_| more).map(|row| write_numbers(&[row.id]));
    let gaps = rows.into_iter().map(|row| GapView {
        source: row.source,
        stream: row.stream,
        key: door.raw(&row.key),
        reason: door.raw(&row.reason),
        status: row.status,
        attempts: row.attempts,
        first_seen_at: row.first_seen.rfc3339(),
        last_tried_at: row.last_tried.rfc3339(),
        next_try_at: row.next_try.map(Time::rfc3339),
    });
    Ok(GapList { gaps: gaps.collect(), next_cursor })
}
