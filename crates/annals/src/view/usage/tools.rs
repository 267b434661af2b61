//! Tool analytics: calls by tool, files read and written, commands.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::view::audit::status::SourceState;
use crate::view::context::View;
use annals_core::{CallKind, Operation, Result, Shown, Time};
use annals_sources::Source;
use annals_store::{CallFilter, NameId, SessionFilter};

/// Most entries in each list.
const TOP: usize = 20;
const DAY: i64 = 86_400_000_000;

#[derive(Debug, Serialize, ToSchema)]
pub struct ToolAnalytics {
    #[serde(flatten)]
    pub state: SourceState,
    /// Null if all days are included.
    pub date_range_days: Option<i64>,
    /// Sessions active in this period.
    pub session_count: i64,
    pub tool_call_count: i64,
    pub failed_call_count: i64,
    /// Calls by tool, most first.
    #[schema(value_type = HashMap<String, i64>)]
    pub tool_counts: ToolCounts,
    /// Of those, calls that failed.
    #[schema(value_type = HashMap<String, i64>)]
    pub failed_counts: ToolCounts,
    /// How long calls took, by tool.
    #[serde(skip)]
    #[schema(ignore)]
    pub times: BTreeMap<String, CallTimes>,
    pub top_files_read: Vec<FileCount>,
    pub top_files_written: Vec<FileCount>,
    pub top_commands: Vec<CommandCount>,
}

/// Names of tools and how often each was called.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct ToolCounts(pub Map<String, Value>);

impl ToolCounts {
    fn of(counts: Vec<(String, i64)>) -> ToolCounts {
        ToolCounts(counts.into_iter().map(|(name, count)| (name, Value::from(count))).collect())
    }
}

/// How often which duration was measured. Durations keep two digits, so that there are few of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTimes {
    counts: BTreeMap<i64, i64>,
    slowest: i64,
}

impl CallTimes {
    fn add(&mut self, milliseconds: i64) {
        let digits = milliseconds.checked_ilog10().unwrap_or(0);
        let step = 10_i64.pow(digits.saturating_sub(1));
        *self.counts.entry(milliseconds / step * step).or_default() += 1;
        self.slowest = self.slowest.max(milliseconds);
    }

    /// Adds those of another source.
    pub fn merge(&mut self, other: &CallTimes) {
        for (milliseconds, count) in &other.counts {
            *self.counts.entry(*milliseconds).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
    }

    /// In milliseconds, to two digits.
    pub fn median(&self) -> Option<i64> {
        let half = (self.counts.values().sum::<i64>() + 1) / 2;
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= half
        });
        found.map(|(milliseconds, _)| *milliseconds)
    }

    /// In milliseconds; none if no duration is known.
    pub fn slowest(&self) -> Option<i64> {
        (!self.counts.is_empty()).then_some(self.slowest)
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct FileCount {
    pub path: Shown,
    pub count: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CommandCount {
    pub command: Shown,
    pub count: i64,
}

#[derive(Clone)]
pub struct ToolsQuery {
    pub source: &'static dyn Source,
    /// Number of days; all if none.
    pub days: Option<i64>,
    /// From this moment on, instead of a number of days.
    pub since: Option<Time>,
    /// Before this moment.
    pub until: Option<Time>,
    /// Only homes of this machine.
    pub machine: Option<String>,
    /// Only sessions that ran in this directory or below it.
    pub project: Option<String>,
}

impl View<'_> {
    pub fn tools(&self, query: &ToolsQuery) -> Result<ToolAnalytics> {
        let ToolsQuery { source, days, project, machine, .. } = query;
        let project = &project.as_deref().map(|project| self.project_named(project)).transpose()?;
        let (days, manifest) = (*days, source.manifest());
        let since = days.map_or(i64::MIN, |days| self.now.micros().saturating_sub(days.saturating_mul(DAY)));
        let since = query.since.unwrap_or(Time::from_micros(since));
        let calls_of = CallFilter {
            source: manifest.source,
            since,
            until: query.until.unwrap_or(Time::from_micros(i64::MAX)),
            project: project.as_deref(),
            machine: machine.as_deref(),
        };
        let mut counts: HashMap<NameId, (i64, i64)> = HashMap::new();
        let mut times: HashMap<NameId, CallTimes> = HashMap::new();
        let mut commands: HashMap<String, i64> = HashMap::new();
        let (mut calls, mut failed) = (0, 0);
        self.archive.each_call_tally(&calls_of, &mut |call| {
            if call.kind == CallKind::Shell && !call.title.is_empty() {
                match commands.get_mut(call.title) {
                    Some(count) => *count += 1,
                    None => drop(commands.insert(call.title.to_owned(), 1)),
                }
            }
            // Calls made by a script are reported with the script.
            if !call.inner {
                let failure = i64::from(call.ok == Some(false));
                let count = counts.entry(call.name).or_default();
                *count = (count.0 + 1, count.1 + failure);
                calls += 1;
                failed += failure;
                if let Some(milliseconds) = call.milliseconds.filter(|milliseconds| *milliseconds >= 0) {
                    times.entry(call.name).or_default().add(milliseconds);
                }
            }
        })?;
        let mut read: HashMap<NameId, i64> = HashMap::new();
        let mut written: HashMap<NameId, i64> = HashMap::new();
        self.archive.each_touch_tally(&calls_of, &mut |path, operation| {
            let counts = if operation == Operation::Read { &mut read } else { &mut written };
            *counts.entry(path).or_default() += 1;
        })?;
        let mut tool_counts = Vec::with_capacity(counts.len());
        let mut failed_counts = Vec::new();
        let mut times_by_tool = BTreeMap::new();
        for (id, (count, failures)) in counts {
            let name = self.door.raw(&self.archive.name(id)?).to_string();
            if failures > 0 {
                failed_counts.push((name.clone(), failures));
            }
            if let Some(times) = times.remove(&id) {
                times_by_tool.insert(name.clone(), times);
            }
            tool_counts.push((name, count));
        }
        most_first(&mut tool_counts);
        most_first(&mut failed_counts);
        let mut commands: Vec<(String, i64)> = commands.into_iter().collect();
        most_first(&mut commands);
        let filter = SessionFilter {
            source: Some(manifest.source.to_owned()),
            since: query.since.or(days.map(|_| since)),
            until: query.until,
            machine: machine.clone(),
            project: project.clone(),
            ..SessionFilter::default()
        };
        Ok(ToolAnalytics {
            state: self.source_state(*source)?,
            date_range_days: days,
            session_count: self.archive.count_sessions(self.without_guesses(&filter)?.as_ref())?,
            tool_call_count: calls,
            failed_call_count: failed,
            tool_counts: ToolCounts::of(tool_counts),
            failed_counts: ToolCounts::of(failed_counts),
            times: times_by_tool,
            top_files_read: self.top_files(read)?,
            top_files_written: self.top_files(written)?,
            top_commands: commands
                .into_iter()
                .take(TOP)
                .map(|(command, count)| CommandCount { command: self.door.text(&command), count })
                .collect(),
        })
    }
}

/// Sorts equal counts by name, so that the order is deterministic.
fn most_first(counts: &mut [(String, i64)]) {
    counts.sort_unstable_by(|(left, many), (right, more)| more.cmp(many).then_with(|| left.cmp(right)));
}

impl View<'_> {
    fn top_files(&self, counts: HashMap<NameId, i64>) -> Result<Vec<FileCount>> {
        let mut counts: Vec<(NameId, i64)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(path, count)| (std::cmp::Reverse(*count), *path));
        // Names decide among equal counts: consider all that tie with the last one.
        let least = counts.get(TOP - 1).map_or(0, |(_, count)| *count);
        let mut counts_by_path = Vec::new();
        for (path, count) in counts.into_iter().take_while(|(_, count)| *count >= least).take(2_000) {
            let path = self.archive.name(path)?;
            counts_by_path.push((String::from_utf8_lossy(path.expose()).into_owned(), count));
        }
        most_first(&mut counts_by_path);
        counts_by_path.truncate(TOP);
        Ok(counts_by_path
            .into_iter()
            .map(|(path, count)| FileCount { path: self.door.text(&path), count })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::CallTimes;

    #[test]
    fn half_of_the_calls_took_at_most_the_median() {
        let mut times = CallTimes::default();
        assert_eq!((times.median(), times.slowest()), (None, None));
        for milliseconds in [0, 7, 12, 1_234, 98_765] {
            times.add(milliseconds);
        }
        assert_eq!((times.median(), times.slowest()), (Some(12), Some(98_765)));
        let mut others = CallTimes::default();
        for _ in 0..9 {
            others.add(1_299);
        }
        times.merge(&others);
        assert_eq!((times.median(), times.slowest()), (Some(1_200), Some(98_765)), "two digits");
    }
}
