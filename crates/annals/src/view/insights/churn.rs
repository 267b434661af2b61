//! Edits that replace lines which were written within the hour before, as far as clients record line numbers.

use super::{About, InsightKind, Insights, Moment, StepPlace};
use crate::view::context::View;
use annals_core::{Operation, Range, Raw, Result, Time};
use annals_store::{Between, SessionFilter};

const HOUR: i64 = 3_600_000_000;
/// Stretches of lines that are remembered of a file.
const STRETCHES: usize = 1_000;

pub(super) fn add(
    view: &View<'_>,
    filter: &SessionFilter,
    between: Between,
    insights: &mut Insights,
) -> Result<()> {
    let mut edited: Option<(String, Raw)> = None;
    let mut written = Written::default();
    view.archive.edits_between(filter, between, &mut |row| {
        let is_same = |(machine, path): &(String, Raw)| *machine == row.machine && *path == row.path;
        if !edited.as_ref().is_some_and(is_same) {
            edited = Some((row.machine, row.path.clone()));
            written = Written::default();
        }
        let rewritten = match row.operation {
            // Numbers of a file that was there before mean other lines.
            Operation::Create | Operation::Delete | Operation::MoveTo | Operation::MoveFrom => {
                written = Written::default();
                written.edit(row.place.at, None, row.after)
            }
            Operation::Update | Operation::Read => written.edit(row.place.at, row.before, row.after),
        };
        if rewritten > 0 {
            let (step, about) = (StepPlace::Key(row.step), About::Path(row.path));
            insights.moments.push(Moment::new(
                InsightKind::Rewritten,
                row.place,
                rewritten as f64,
                step,
                about,
            ));
        }
    })?;
    Ok(())
}

/// Lines of one file, and when they were written: first, behind the last, and the time.
#[derive(Debug, Default)]
struct Written {
    stretches: Vec<(i64, i64, Time)>,
}

impl Written {
    /// Replaces the lines of `before` by those of `after`; returns how many of them are younger than an hour.
    fn edit(&mut self, at: Time, before: Option<Range>, after: Option<Range>) -> i64 {
        let bounds = |range: Range| (i64::from(range.start), i64::from(range.end) + 1);
        let (first, end) = match (before, after) {
            (Some(before), _) => bounds(before),
            // Lines are put in before the one that has this number.
            (None, Some(after)) => (bounds(after).0, bounds(after).0),
            (None, None) => return 0,
        };
        let added = after.map_or(0, |after| bounds(after).1 - bounds(after).0);
        let moved = added - (end - first);
        let mut rewritten = 0;
        let mut kept = Vec::with_capacity(self.stretches.len() + 2);
        for (start, stop, then) in std::mem::take(&mut self.stretches) {
            if at.micros() - then.micros() > HOUR {
                continue;
            }
            rewritten += (stop.min(end) - start.max(first)).max(0);
            if start < first {
                kept.push((start, stop.min(first), then));
            }
            if stop > end {
                kept.push((start.max(end) + moved, stop + moved, then));
            }
        }
        if let Some(after) = after {
            let (start, stop) = bounds(after);
            kept.push((start, stop, at));
        }
        let old = kept.len().saturating_sub(STRETCHES);
        self.stretches = kept.split_off(old);
        rewritten
    }
}

#[cfg(test)]
mod tests {
    use super::Written;
    use annals_core::{Range, Time};

    fn lines(start: u32, end: u32) -> Option<Range> {
        Some(Range { start, end })
    }

    #[test]
    fn lines_move_with_the_edits_before_them() {
        let mut written = Written::default();
        let minute = |minutes: i64| Time::from_micros(minutes * 60_000_000);
        assert_eq!(written.edit(minute(0), None, lines(1, 10)), 0, "new lines");
        // Two lines are put in before the fifth: it is the seventh now.
        assert_eq!(written.edit(minute(1), None, lines(5, 6)), 0);
        assert_eq!(written.stretches.iter().map(|(start, stop, _)| stop - start).sum::<i64>(), 12);
        assert_eq!(written.edit(minute(2), lines(12, 14), lines(12, 12)), 1, "only the last was written");
        // What was rewritten is young again, the rest is not.
        assert_eq!(written.edit(minute(62), lines(1, 12), None), 1);
        assert_eq!(written.edit(minute(63), lines(1, 99), None), 0);
        assert_eq!(written.edit(minute(64), None, None), 0, "no numbers");
    }
}
