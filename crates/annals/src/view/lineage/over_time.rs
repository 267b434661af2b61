//! Lines over time: who wrote those that stand today, by the month of their commit, and how long lines of sessions
//! survive.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::hunks::{CodeFile, HunkReader, is_same_file, written_lines};
use super::{Blame, Share, shares};
use crate::view::context::View;
use annals_core::{Result, Shown, Time, line_fingerprint};
use annals_sources::by_name;

/// Days after which lines are looked for.
pub const SURVIVAL_DAYS: [i64; 4] = [1, 7, 30, 90];
/// Calls on one file whose lines are followed. If there are more, the last ones are used.
const MOST_CALLS: usize = 500;
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// As for deadlines: a commit takes its time from before its hooks.
const SLACK_MICROS: i64 = 5 * 60 * 1_000_000;
/// Models with a series of their own in a plot.
const MOST_SERIES: usize = 6;

/// The shares of one month: of the lines that were committed in it and stand today.
#[derive(Debug, Default, Serialize)]
pub struct MonthShares {
    /// `2026-03`, or `uncommitted`.
    pub month: String,
    pub lines: usize,
    /// Lines that sessions wrote.
    pub written_by_sessions: usize,
    pub sessions: Vec<Share>,
    pub models: Vec<Share>,
    /// Authors of the commits.
    pub people: Vec<Share>,
}

/// When and by whom a line was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedLine {
    pub at: Time,
    pub author: String,
}

/// Sums by month.
#[derive(Default)]
pub struct MonthSums {
    months: BTreeMap<String, MonthCounts>,
}

#[derive(Default)]
struct MonthCounts {
    lines: usize,
    written: usize,
    sessions: BTreeMap<String, (Option<Shown>, usize)>,
    models: BTreeMap<String, (Option<Shown>, usize)>,
    people: BTreeMap<String, (Option<Shown>, usize)>,
}

impl MonthSums {
    pub fn add(&mut self, view: &View<'_>, blame: &Blame, commits: &[Option<CommittedLine>]) {
        for span in &blame.spans {
            let origin = span.origin.filter(|_| span.grade != "read");
            let origin = origin.and_then(|origin| blame.origins.get(origin));
            for line in span.start..=span.end {
                let commit = commits.get(line - 1).and_then(Option::as_ref);
                let month = commit.map_or("uncommitted".to_owned(), |commit| month_of(commit.at));
                let counts = self.months.entry(month).or_default();
                counts.lines += 1;
                if let Some(origin) = origin {
                    counts.written += 1;
                    let model = origin.model.clone().unwrap_or_else(|| "unknown".into());
                    let session = counts.sessions.entry(origin.session_id.clone());
                    session.or_insert((origin.heading().cloned(), 0)).1 += 1;
                    counts.models.entry(model).or_default().1 += 1;
                }
                if let Some(commit) = commit {
                    let author = view.door.text(&commit.author).to_string();
                    counts.people.entry(author).or_default().1 += 1;
                }
            }
        }
    }

    pub fn finish(self) -> Vec<MonthShares> {
        let month = |(month, counts): (String, MonthCounts)| MonthShares {
            month,
            lines: counts.lines,
            written_by_sessions: counts.written,
            sessions: shares(counts.sessions, counts.lines),
            models: shares(counts.models, counts.lines),
            people: shares(counts.people, counts.lines),
        };
        self.months.into_iter().map(month).collect()
    }
}

fn month_of(at: Time) -> String {
    at.date().get(..7).unwrap_or_default().to_owned()
}

/// How many lines of sessions still stand some days after they were committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Survival {
    pub days: i64,
    /// Lines committed at least `days` days ago.
    pub committed: usize,
    pub standing: usize,
    pub share: f64,
}

/// Distinctive lines that one call wrote to a file.
#[derive(Debug, Clone)]
pub struct WrittenEdit {
    pub at: Time,
    pub lines: Vec<u64>,
}

/// A committed state of a file: its lines, and how often each occurs.
#[derive(Debug, Clone)]
pub struct FileState {
    pub at: Time,
    lines: HashMap<u64, usize>,
}

impl FileState {
    pub fn new(at: Time, text: &str) -> FileState {
        let mut lines = HashMap::new();
        for line in text.lines() {
            *lines.entry(line_fingerprint(line).hash).or_default() += 1;
        }
        FileState { at, lines }
    }

    /// Those of these lines that the state has, each as often as it occurs there and more often than `before`, the state
    /// that it follows: a file that is written whole repeats what others wrote.
    fn common(&self, lines: &[u64], before: Option<&FileState>) -> Vec<u64> {
        let mut left = self.lines.clone();
        for (line, count) in before.into_iter().flat_map(|before| &before.lines) {
            left.entry(*line).and_modify(|left| *left = left.saturating_sub(*count));
        }
        let mut take = |line: &&u64| match left.get_mut(*line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        };
        lines.iter().filter(|line| take(line)).copied().collect()
    }
}

/// Follows the lines of edits through the states of a file, which are in order of time.
pub fn follow(edits: &[WrittenEdit], states: &[FileState], now: Time, sums: &mut [Survival; 4]) {
    for edit in edits {
        let first = states
            .iter()
            .position(|state| state.at.micros().saturating_add(SLACK_MICROS) >= edit.at.micros());
        let Some(first) = first else { continue };
        let before = first.checked_sub(1).map(|before| &states[before]);
        let committed = states[first].common(&edit.lines, before);
        let start = states[first].at.micros();
        for (sum, days) in sums.iter_mut().zip(SURVIVAL_DAYS) {
            sum.days = days;
            let until = start.saturating_add(days * DAY_MICROS);
            if until > now.micros() {
                continue;
            }
            let later = states[first..].iter().rev().find(|state| state.at.micros() <= until);
            sum.committed += committed.len();
            sum.standing += later.map_or(0, |state| state.common(&committed, None).len());
            sum.share = sum.standing as f64 / sum.committed.max(1) as f64;
        }
    }
}

/// Lines that sessions wrote in a month, by model.
#[derive(Debug, Default)]
pub struct WrittenByMonth {
    pub models: Vec<String>,
    /// Month and lines of each model.
    pub months: Vec<(String, Vec<i64>)>,
}

impl View<'_> {
    /// The edits of a file that sessions made, in order of time.
    pub fn edits_of(&self, file: &CodeFile) -> Result<Vec<WrittenEdit>> {
        let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
        let calls = self.archive.calls_by_file_name(&std::iter::once(name.clone()).collect())?;
        let mut reader = HunkReader::new(self.archive);
        let mut edits = Vec::new();
        let calls = calls.get(&name).into_iter().flatten();
        let mut newest: Vec<_> = calls.map(|(call, session)| (*call, *session)).collect();
        let older = newest.len().saturating_sub(MOST_CALLS);
        for ((in_file, place), session) in newest.drain(older..) {
            let Some(row) = self.archive.call_at(session, in_file, place)? else { continue };
            let (Some(at), false, false) = (row.at, row.copied, row.ok == Some(false)) else { continue };
            let Some((source, folder)) = reader.session(session)? else { continue };
            let Some(recorder) = by_name(&source).and_then(|source| source.recorder()) else { continue };
            for work in reader.work(&row, recorder, folder.as_deref())? {
                if work.is_read() || !is_same_file(file, &work.path, folder.as_deref()) {
                    continue;
                }
                let lines = written_lines(&work).into_iter();
                let lines = lines.filter(|line| !line.context && line.print.is_distinctive);
                let lines: Vec<u64> = lines.map(|line| line.print.hash).collect();
                if !lines.is_empty() {
                    edits.push(WrittenEdit { at, lines });
                }
            }
        }
        edits.sort_by_key(|edit| edit.at);
        Ok(edits)
    }

    /// Lines that edits wrote, by month and model, as far as the client recorded their numbers; for the owner.
    pub fn written_by_month(&self) -> Result<WrittenByMonth> {
        let mut by_month: BTreeMap<String, HashMap<String, i64>> = BTreeMap::new();
        let mut by_model: HashMap<String, i64> = HashMap::new();
        for (day, model, lines) in self.archive.lines_written()? {
            let model = model.unwrap_or_else(|| "unknown".to_owned());
            *by_model.entry(model.clone()).or_default() += lines;
            let month = by_month.entry(month_of(Time::from_day(day))).or_default();
            *month.entry(model).or_default() += lines;
        }
        let mut models: Vec<(String, i64)> = by_model.into_iter().collect();
        models.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let mut models: Vec<String> = models.into_iter().map(|(model, _)| model).collect();
        if models.len() > MOST_SERIES {
            models.truncate(MOST_SERIES - 1);
            models.push("other models".to_owned());
        }
        let last = models.len().saturating_sub(1);
        let months = by_month.into_iter().map(|(month, lines)| {
            let mut parts = vec![0; models.len()];
            for (model, lines) in lines {
                parts[models.iter().position(|known| *known == model).unwrap_or(last)] += lines;
            }
            (month, parts)
        });
        let months = months.collect();
        Ok(WrittenByMonth { models, months })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i64) -> Time {
        Time::from_day(20_000 + number)
    }

    #[test]
    fn lines_are_followed_from_their_first_commit() {
        let lines = ["def count_gears(engine):", "total = len(engine.gears)", "return total_of_the_gears"];
        let edit = WrittenEdit { at: day(0), lines: lines.map(|line| line_fingerprint(line).hash).to_vec() };
        let states = [
            FileState::new(day(-5), "before_everything = True\n"),
            FileState::new(day(1), &lines.join("\n")),
            FileState::new(day(5), &lines[..2].join("\n")),
            FileState::new(day(40), lines[0]),
        ];
        let mut sums = [Survival::default(); 4];
        follow(&[edit], &states, day(60), &mut sums);
        let found = sums.map(|sum| (sum.days, sum.committed, sum.standing));
        // Ninety days have not passed.
        assert_eq!(found, [(1, 3, 3), (7, 3, 2), (30, 3, 2), (90, 0, 0)]);
    }

    #[test]
    fn a_file_that_is_written_whole_repeats_what_others_wrote() {
        let lines = ["def count_gears(engine):", "total = len(engine.gears)"];
        let edit = WrittenEdit { at: day(0), lines: lines.map(|line| line_fingerprint(line).hash).to_vec() };
        let states = [FileState::new(day(-5), lines[0]), FileState::new(day(0), &lines.join("\n"))];
        let mut sums = [Survival::default(); 4];
        follow(&[edit], &states, day(1), &mut sums);
        assert_eq!((sums[0].committed, sums[0].standing), (1, 1));
    }
}
