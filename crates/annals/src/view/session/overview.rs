//! Many sessions at once: in the order of a measure, counted by what they have in common, and when people work.

use std::collections::HashMap;

use crate::view::context::View;
use crate::view::paging::{read_numbers, write_numbers};
use crate::view::session::list::{SessionList, SessionQuery, SessionView};
use crate::view::usage::prices::Cost;
use crate::view::usage::reported::SessionTotals;
use annals_core::{Result, SessionId, Shown, Time, zoned};
use annals_store::{Facet, Measure, SessionFilter, SessionTally};

/// What a list of sessions is ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionOrder {
    #[default]
    Latest,
    Cost,
    Messages,
    Failures,
    Duration,
}

impl SessionOrder {
    pub fn from_name(name: &str) -> Option<SessionOrder> {
        match name {
            "" | "latest" => Some(SessionOrder::Latest),
            "cost" => Some(SessionOrder::Cost),
            "messages" => Some(SessionOrder::Messages),
            "failures" => Some(SessionOrder::Failures),
            "duration" => Some(SessionOrder::Duration),
            _ => None,
        }
    }
}

/// Prompts by weekday, Monday first, and hour of the day.
pub type WeekHours = [[i64; 24]; 7];

const HOUR: i64 = 3_600_000_000;

impl View<'_> {
    /// Sessions in any order. All but the latest first are ranked as a whole for every page.
    pub fn sessions_in_order(&self, query: &SessionQuery, order: SessionOrder) -> Result<SessionList> {
        let filter = self.without_guesses(&query.filter)?;
        let ranked = match order {
            SessionOrder::Latest => return self.sessions(query),
            SessionOrder::Cost => self.dearest(&filter)?,
            SessionOrder::Messages => self.archive.sessions_by(Measure::Messages, &filter)?,
            SessionOrder::Failures => self.archive.sessions_by(Measure::Failures, &filter)?,
            SessionOrder::Duration => self.archive.sessions_by(Measure::Duration, &filter)?,
        };
        let [skipped] = query.page.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
        let (skipped, limit) = (skipped.max(0), query.page.limit.max(1));
        let at = |number: i64| usize::try_from(number).unwrap_or(usize::MAX).min(ranked.len());
        let end = skipped.saturating_add(limit);
        let mut sessions = Vec::new();
        for row in &ranked[at(skipped)..at(end)] {
            sessions.extend(self.session_of_row(*row)?);
        }
        let more = at(end) < ranked.len();
        Ok(SessionList {
            sessions,
            next_cursor: more.then(|| write_numbers(&[end])),
            total: self.archive.count_sessions(&filter)?,
        })
    }

    /// Sessions that have a price, the most expensive first.
    fn dearest(&self, filter: &SessionFilter) -> Result<Vec<SessionId>> {
        let mut costs: HashMap<SessionId, Cost> = HashMap::new();
        let mut totals = SessionTotals::default();
        for (session, mut sum) in self.archive.usage_of_sessions(filter)? {
            self.divide(&mut sum, &mut totals, None)?;
            costs.entry(session).or_default().add(&sum);
        }
        let mut ranked: Vec<(f64, SessionId)> =
            costs.into_iter().filter_map(|(session, cost)| Some((cost.known()?, session))).collect();
        ranked.sort_by(|(dear, one), (dearer, other)| dearer.total_cmp(dear).then(other.cmp(one)));
        Ok(ranked.into_iter().map(|(_, session)| session).collect())
    }

    pub fn session_tally(&self, session: &SessionView) -> Result<SessionTally> {
        Ok(self.archive.session_tally(session.row)?)
    }

    /// How many sessions that fit have what in common, most first.
    pub fn session_counts(&self, facet: Facet, filter: &SessionFilter) -> Result<Vec<(Shown, i64)>> {
        let filter = self.without_guesses(filter)?;
        let counts = self.archive.session_counts(facet, &filter)?.into_iter();
        Ok(counts.map(|(value, count)| (self.door.raw(&value), count)).collect())
    }

    /// When people wrote prompts in the last days, in the time zone that they mean.
    pub fn week_hours(&self, days: i64) -> Result<WeekHours> {
        let since = Time::from_day(self.now.day().saturating_sub(days.max(1) - 1));
        let mut hours = WeekHours::default();
        for (hour, prompts) in self.archive.prompts_by_hour(since)? {
            let Some(here) = zoned(Time::from_micros(hour.saturating_mul(HOUR))) else { continue };
            let weekday = usize::try_from(here.weekday().to_monday_zero_offset()).unwrap_or(0);
            let hour = usize::try_from(here.hour()).unwrap_or(0);
            if let Some(count) = hours.get_mut(weekday).and_then(|day| day.get_mut(hour)) {
                *count += prompts;
            }
        }
        Ok(hours)
    }
}
