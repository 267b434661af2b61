//! Activity by day: messages, and tokens and cost by model.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::prices::Cost;
use crate::view::context::View;
use crate::view::session::list::TokenSums;
use annals_core::{Result, Shown, Time, Tokens};
use annals_store::{ResponseFilter, UsageBy};

#[derive(Debug, Serialize, ToSchema)]
pub struct Activity {
    pub date_range_days: i64,
    /// Days with messages, in UTC, oldest first.
    pub days: Vec<DayActivity>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DayActivity {
    pub date: String,
    pub message_count: i64,
}

impl View<'_> {
    /// Messages of the last `days` days, including today.
    pub fn activity(&self, days: i64) -> Result<Activity> {
        let first = self.now.day().saturating_sub(days.max(1) - 1);
        let counts = self.archive.messages_by_day(first)?.into_iter();
        let active_days = counts.filter(|count| count.day <= self.now.day()).map(|count| DayActivity {
            date: Time::from_day(count.day).date(),
            message_count: count.messages,
        });
        Ok(Activity { date_range_days: days, days: active_days.collect() })
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DailyUsage {
    pub date_range_days: Option<i64>,
    /// Days with responses, in UTC, oldest first.
    pub days: Vec<DayUsage>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DayUsage {
    pub date: String,
    /// Most tokens first.
    pub models: Vec<ModelUsage>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ModelUsage {
    pub model: Option<Shown>,
    pub response_count: i64,
    pub tokens: TokenSums,
    /// Null if the model has no price.
    pub cost_usd: Option<f64>,
}

#[derive(Default)]
struct Sums {
    responses: i64,
    tokens: Tokens,
    cost: Cost,
}

impl View<'_> {
    /// Tokens and cost by day and model; each response counts once.
    pub fn daily_usage(&self, filter: &ResponseFilter, days: Option<i64>) -> Result<DailyUsage> {
        let since = days.map(|days| self.now.day().saturating_sub(days.max(1) - 1));
        let filter = self.named_responses(filter)?;
        let filter = ResponseFilter { since_day: filter.since_day.or(since), ..filter };
        let mut by_day: BTreeMap<i64, BTreeMap<Option<String>, Sums>> = BTreeMap::new();
        for sum in self.usage_sums(UsageBy::Day, &filter)? {
            let sums = by_day.entry(sum.day).or_default().entry(sum.model.clone()).or_default();
            sums.responses += sum.responses;
            sums.cost.add(&sum);
            sums.tokens += sum.tokens;
        }
        // Responses without a timestamp belong to no day.
        by_day.remove(&0);
        let active_days = by_day.into_iter().map(|(day, models)| {
            let mut models: Vec<ModelUsage> = models
                .into_iter()
                .map(|(model, sums)| ModelUsage {
                    model: model.map(|model| self.door.text(&model)),
                    response_count: sums.responses,
                    tokens: sums.tokens.into(),
                    cost_usd: sums.cost.known(),
                })
                .collect();
            models.sort_by_key(|model| std::cmp::Reverse(model.tokens.total));
            DayUsage { date: Time::from_day(day).date(), models }
        });
        Ok(DailyUsage { date_range_days: days, days: active_days.collect() })
    }
}

/// What was used on one day of UTC, of one model, project or source.
#[derive(Debug)]
pub struct UsagePoint {
    pub day: i64,
    pub key: Option<Shown>,
    pub tokens: i64,
    /// Of all responses that have a price; none if none has.
    pub cost_usd: Option<f64>,
}

impl View<'_> {
    /// Tokens and cost by day and by model, project or source, oldest first; responses without a time belong to no day.
    pub fn usage_by_day(&self, by: UsageBy, filter: &ResponseFilter) -> Result<Vec<UsagePoint>> {
        let filter = self.named_responses(filter)?;
        let mut points: BTreeMap<(i64, Option<Vec<u8>>), Sums> = BTreeMap::new();
        for sum in self.usage_sums(by, &filter)? {
            let key = sum.group.as_ref().map(|group| group.expose().to_vec());
            let point = points.entry((sum.day, key)).or_default();
            point.cost.add(&sum);
            point.tokens += sum.tokens;
        }
        let known = points.into_iter().filter(|((day, _), _)| *day != 0);
        Ok(known
            .map(|((day, key), sums)| UsagePoint {
                day,
                key: key.map(|key| self.door.text(&String::from_utf8_lossy(&key))),
                tokens: sums.tokens.total(),
                cost_usd: sums.cost.known(),
            })
            .collect())
    }
}

/// What one model used in one project.
#[derive(Debug)]
pub struct UsageArea {
    pub project: Option<Shown>,
    pub model: Option<Shown>,
    pub tokens: i64,
    /// Of the responses that have a price; none if none has.
    pub cost_usd: Option<f64>,
}

impl View<'_> {
    /// Tokens and cost by project and model.
    pub fn usage_areas(&self, filter: &ResponseFilter) -> Result<Vec<UsageArea>> {
        let filter = self.named_responses(filter)?;
        let mut areas: BTreeMap<(Option<Vec<u8>>, Option<String>), Sums> = BTreeMap::new();
        for sum in self.archive.usage_sums(UsageBy::Project, &filter)? {
            let project = sum.group.as_ref().map(|group| group.expose().to_vec());
            let area = areas.entry((project, sum.model.clone())).or_default();
            area.cost.add(&sum);
            area.tokens += sum.tokens;
        }
        let areas = areas.into_iter().map(|((project, model), sums)| UsageArea {
            project: project.map(|project| self.door.text(&String::from_utf8_lossy(&project))),
            model: model.map(|model| self.door.text(&model)),
            tokens: sums.tokens.total(),
            cost_usd: sums.cost.known(),
        });
        Ok(areas.collect())
    }
}

/// Values that lists can be filtered by: directories of sessions, models and machines.
#[derive(Debug, Serialize, ToSchema)]
pub struct Choices {
    pub projects: Vec<Shown>,
    pub models: Vec<Shown>,
    pub machines: Vec<Shown>,
}

impl View<'_> {
    pub fn choices(&self) -> Result<Choices> {
        let show = |values: Vec<annals_core::Raw>| values.iter().map(|value| self.door.raw(value)).collect();
        Ok(Choices {
            projects: show(self.archive.projects(200)?),
            models: show(self.archive.models()?),
            machines: show(self.archive.machines()?),
        })
    }
}
