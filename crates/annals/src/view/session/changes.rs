//! What a call changed in files, as readable diffs.

use similar::{ChangeTag, TextDiff};

use super::entry_builder::EntryBuilder;
use super::transcript::ChangeView;
use crate::view::door::{Door, Extent};
use crate::view::lineage::hunks::work_of;
use annals_core::{FileWork, Operation, Result, Shown};
use annals_store::{CallRow, Contents, TouchRow};

/// Most changes reported per call, unless everything is requested.
const MOST: usize = 50;

/// Longer texts are compared only at their starts and ends: the time of a comparison grows with the square of its lines.
const MOST_LINES: usize = 20_000;

impl EntryBuilder<'_> {
    /// Empty if the call failed, or if it is unknown what it did.
    pub fn changes(
        &self,
        contents: &mut Contents<'_>,
        row: &CallRow,
        touches: &[TouchRow],
    ) -> Result<Vec<ChangeView>> {
        let Some(recorder) = self.source.recorder().filter(|_| row.ok != Some(false)) else {
            return Ok(Vec::new());
        };
        let work = work_of(contents, row, touches, recorder, None)?;
        let most = if self.full { usize::MAX } else { MOST };
        let changed = work.iter().filter(|work| !work.is_read()).take(most);
        let extent = Extent::of(self.full);
        Ok(changed.map(|work| change(self.view.door, work, extent)).collect())
    }
}

fn change(door: &Door, work: &FileWork, extent: Extent) -> ChangeView {
    let shown = |text: &Option<String>| {
        let (shown, full) = door.preview(text.as_deref().unwrap_or_default(), extent);
        (shown.to_string(), full.is_some())
    };
    // Mask first: a secret cut in two by the diff would not be recognised.
    let ((before, cut_before), (after, cut_after)) = (shown(&work.before.text), shown(&work.after.text));
    let start = |piece: &annals_core::FileRegion| piece.range.map(|range| range.start);
    let mut diff = String::new();
    if let Some(from) = &work.moved_from {
        diff.push_str(&format!("--- {}\n+++ {}\n", door.text(from), door.text(&work.path)));
    }
    diff.push_str(&diff_of((start(&work.before), &before), (start(&work.after), &after)));
    if cut_before || cut_after {
        diff.push_str("… and more\n");
    }
    let operation = if work.moved_from.is_some() { Operation::MoveTo } else { work.operation };
    ChangeView { path: door.text(&work.path), operation: operation.name(), diff: Shown::new(diff) }
}

/// A unified diff of two texts, with the lines at which they start, as far as they are known.
pub(in crate::view) fn diff_of(
    (old, before): (Option<u32>, &str),
    (new, after): (Option<u32>, &str),
) -> String {
    let mut diff = String::new();
    // Both sides start at the same line; an empty side starts at 0.
    if let Some(first) = old.or(new) {
        let line = |start: Option<u32>, text: &str| if text.is_empty() { 0 } else { start.unwrap_or(first) };
        diff.push_str(&format!("@@ -{} +{} @@\n", line(old, before), line(new, after)));
    }
    push_diff(&mut diff, before, after);
    diff
}

fn push_diff(diff: &mut String, before: &str, after: &str) {
    let mut push = |sign: char, line: &str| {
        diff.push(sign);
        diff.push_str(line.trim_end_matches('\n'));
        diff.push('\n');
    };
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    if old.len() + new.len() <= MOST_LINES {
        for change in TextDiff::from_lines(before, after).iter_all_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            push(sign, change.value());
        }
        return;
    }
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    old[..start].iter().for_each(|line| push(' ', line));
    old_rest[..old_rest.len() - end].iter().for_each(|line| push('-', line));
    new_rest[..new_rest.len() - end].iter().for_each(|line| push('+', line));
    new_rest[new_rest.len() - end..].iter().for_each(|line| push(' ', line));
}
