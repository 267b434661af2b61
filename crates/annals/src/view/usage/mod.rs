//! Tokens and cost, counted once: sums by day, model, project, session, source or member, and the responses behind them.

pub(super) mod activity;
pub(super) mod calls;
pub(super) mod prices;
pub(super) mod reported;
pub(super) mod tools;

use std::collections::BTreeMap;

use jiff::ToSpan;
use serde::Serialize;
use utoipa::ToSchema;

use super::context::View;
use super::door::Door;
use super::paging::{Paging, read_numbers, write_numbers};
use super::session::list::TokenSums;
use annals_core::{Calendar, Period, Result, Shown, Time, Tokens, is_utc, zoned};
use annals_sources::by_name;
use annals_store::{ResponseFilter, ResponseRow, RowPlace, UsageBy};
use prices::{Cost, Price, millionths};
use reported::{ResponseCost, SessionTotals};

#[derive(Debug, Clone)]
pub struct UsageQuery {
    pub by: UsageBy,
    /// Number of days, including today; all if none.
    pub days: Option<i64>,
    pub filter: ResponseFilter,
    pub page: Paging,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct UsageReport {
    pub by: &'static str,
    pub date_range_days: Option<i64>,
    pub rows: Vec<UsageRow>,
    pub next_cursor: Option<String>,
    pub total: UsageRow,
    /// Models without a price: their tokens are counted, their cost is not.
    pub unpriced_models: Vec<UnpricedModel>,
    /// Copies of responses in forks and resumed sessions; each response counts in its original session.
    pub excluded_copies: i64,
    /// Sessions that are hidden; what they used is counted.
    pub hidden_session_count: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct UsageRow {
    /// A date, model, directory, session, source or member; null if unknown.
    pub key: Option<Shown>,
    pub source: Option<String>,
    pub tokens: TokenSums,
    pub response_count: i64,
    /// Of all responses that have a price or a cost that the client reports; null if none has.
    pub cost_usd: Option<f64>,
    pub billing_source: &'static str,
    pub unpriced_models: Vec<Shown>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct UnpricedModel {
    pub model: Shown,
    pub response_count: i64,
    pub tokens: i64,
}

/// What a sum groups by, and the source if that is more specific.
type GroupKey = (Option<String>, Option<String>);

#[derive(Debug, Default)]
struct Group {
    tokens: Tokens,
    responses: i64,
    cost: Cost,
}

impl View<'_> {
    pub fn usage(&self, query: &UsageQuery) -> Result<UsageReport> {
        let filter = ranged(&self.named_responses(&query.filter)?, query.days, self.now);
        let mut groups: BTreeMap<GroupKey, Group> = BTreeMap::new();
        let mut total = Group::default();
        for sum in self.usage_sums(query.by, &filter)? {
            let key = match query.by {
                UsageBy::Day => (sum.day != 0).then(|| Time::from_day(sum.shown_day).date()),
                UsageBy::Model | UsageBy::Project | UsageBy::Session | UsageBy::Source | UsageBy::Member => {
                    sum.group.as_ref().map(|group| String::from_utf8_lossy(group.expose()).into_owned())
                }
            };
            let source =
                (query.by == UsageBy::Session || query.by == UsageBy::Source).then(|| sum.source.clone());
            let group = groups.entry((key, source)).or_default();
            for group in [group, &mut total] {
                group.responses += sum.responses;
                group.cost.add(&sum);
                group.tokens += sum.tokens;
            }
        }
        let mut groups: Vec<(GroupKey, Group)> = groups.into_iter().collect();
        match query.by {
            UsageBy::Day => groups.reverse(),
            UsageBy::Model | UsageBy::Project | UsageBy::Session | UsageBy::Source | UsageBy::Member => {
                let dear = |group: &Group| (group.cost.known().unwrap_or(0.0), group.tokens.total());
                groups.sort_by(|(_, left), (_, right)| {
                    dear(right).partial_cmp(&dear(left)).unwrap_or(std::cmp::Ordering::Equal)
                });
            }
        }
        let [skipped] = query.page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.page.limit).unwrap_or(usize::MAX).max(1);
        let more = groups.len().saturating_sub(skipped) > limit;
        let rows = groups.into_iter().skip(skipped).take(limit);
        let unpriced = total.cost.unpriced.iter().map(|(model, unpriced)| UnpricedModel {
            model: self.door.text(model),
            response_count: unpriced.responses,
            tokens: unpriced.tokens,
        });
        Ok(UsageReport {
            by: query.by.name(),
            date_range_days: query.days,
            rows: rows.map(|((key, source), group)| row(self.door, key, source, &group)).collect(),
            next_cursor: more.then(|| write_numbers(&[skipped.saturating_add(limit) as i64])),
            unpriced_models: unpriced.collect(),
            total: row(self.door, None, None, &total),
            excluded_copies: self.archive.count_copied_responses(&filter)?,
            hidden_session_count: self.archive.count_hidden()?,
        })
    }
}

/// Days are complete days, of UTC or of the time zone that people mean.
fn ranged(filter: &ResponseFilter, days: Option<i64>, now: Time) -> ResponseFilter {
    if let (Some(days), true) = (days, filter.local_days && !is_utc()) {
        let first = zoned(now).and_then(|here| here.date().checked_sub((days.max(1) - 1).days()).ok());
        let since =
            first.and_then(|first| Period::of(Calendar::Day, first).bounds().ok()).map(|(from, _)| from);
        return ResponseFilter { since: filter.since.or(since), ..filter.clone() };
    }
    let since_day = days.map(|days| now.day().saturating_sub(days.max(1) - 1));
    ResponseFilter { since_day: filter.since_day.or(since_day), ..filter.clone() }
}

fn row(door: &Door, key: Option<String>, source: Option<String>, group: &Group) -> UsageRow {
    UsageRow {
        key: key.map(|key| door.text(&key)),
        source,
        tokens: group.tokens.into(),
        response_count: group.responses,
        cost_usd: group.cost.known(),
        billing_source: group.cost.source_of_known(),
        unpriced_models: group.cost.unpriced.keys().map(|model| door.text(model)).collect(),
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ResponsePage {
    pub responses: Vec<ResponseView>,
    pub next_cursor: Option<String>,
}

/// One response: how it counts, or why it does not.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResponseView {
    /// The provider's id if the client recorded it, otherwise ours.
    pub response_id: Shown,
    pub source: String,
    pub session_id: String,
    pub at: Option<String>,
    pub model: Option<Shown>,
    pub tokens: TokenSums,
    pub cost_usd: Option<f64>,
    pub billing_source: &'static str,
    /// The row of the price table used; null if the client reports what the response cost.
    pub price: Option<Price>,
    /// A copy counts in its original session: `counted_in`.
    pub copied: bool,
    pub counted_in: Option<String>,
}

impl View<'_> {
    /// The responses and excluded copies behind a sum.
    pub fn responses(&self, query: &UsageQuery) -> Result<ResponsePage> {
        let filter = ranged(&self.named_responses(&query.filter)?, query.days, self.now);
        let after = match &query.page.cursor {
            Some(cursor) => {
                let [session, file, place] = read_numbers(cursor)?;
                RowPlace(session, file, place)
            }
            None => RowPlace::default(),
        };
        let limit = usize::try_from(query.page.limit).unwrap_or(usize::MAX).max(1);
        let mut contents = self.archive.contents();
        let mut rows: Vec<ResponseRow> = Vec::new();
        self.archive.each_response(&filter, after, &mut |row| {
            rows.push(row);
            Ok(rows.len() <= limit)
        })?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| more).map(|row| {
            let RowPlace(session, file, place) = row.offset;
            write_numbers(&[session, file, place])
        });
        let mut totals = SessionTotals::default();
        let mut responses = Vec::with_capacity(rows.len());
        for row in rows {
            let line = contents.span(row.file, row.span)?;
            let id = by_name(&row.source).and_then(|source| source.response_id(line.expose()));
            let cost = self.response_cost(&row, &mut totals, filter.session)?;
            responses.push(response(self.door, row, cost, id));
        }
        Ok(ResponsePage { responses, next_cursor })
    }
}

fn response(door: &Door, row: ResponseRow, cost: ResponseCost, id: Option<String>) -> ResponseView {
    let dollars = cost.cost.filter(|_| !row.copied).map(|cost| millionths(cost.dollars()));
    ResponseView {
        response_id: door.text(&id.unwrap_or_else(|| row.key.hex())),
        source: row.source,
        session_id: row.session,
        at: row.at.map(Time::rfc3339),
        model: row.model.as_deref().map(|model| door.text(model)),
        tokens: row.tokens.into(),
        cost_usd: dollars,
        billing_source: if row.copied { "unknown" } else { cost.billing_source },
        price: cost.price.cloned(),
        copied: row.copied,
        counted_in: row.counted_in,
    }
}
