//! What a call changed in files, as readable diffs.

use similar::TextDiff;

use super::entry_builder::EntryBuilder;
use super::transcript::ChangeView;
use crate::view::door::{Door, Extent};
use crate::view::lineage::hunks::work_of;
use annals_core::{FileWork, Operation, Result, Shown};
use annals_store::{CallRow, Contents, TouchRow};

/// Most changes reported per call.
const MOST: usize = 50;

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
        let changed = work.iter().filter(|work| !work.is_read()).take(MOST);
        Ok(changed.map(|work| change(self.view.door, work)).collect())
    }
}

fn change(door: &Door, work: &FileWork) -> ChangeView {
    let shown = |text: &Option<String>| {
        let (shown, full) = door.preview(text.as_deref().unwrap_or_default(), Extent::Start);
        (shown.to_string(), full.is_some())
    };
    // Mask first: a secret cut in two by the diff would not be recognised.
    let ((before, cut_before), (after, cut_after)) = (shown(&work.before.text), shown(&work.after.text));
    let start = |piece: &annals_core::FileRegion| piece.range.map(|range| range.start);
    let mut diff = String::new();
    if let Some(from) = &work.moved_from {
        diff.push_str(&format!("--- {}\n+++ {}\n", door.text(from), door.text(&work.path)));
    }
    // Both sides start at the same line; an empty side starts at 0.
    let (old, new) = (start(&work.before), start(&work.after));
    if let Some(first) = old.or(new) {
        let line = |start: Option<u32>, text: &str| if text.is_empty() { 0 } else { start.unwrap_or(first) };
        diff.push_str(&format!("@@ -{} +{} @@\n", line(old, &before), line(new, &after)));
    }
    let compared = TextDiff::from_lines(before.as_str(), after.as_str());
    for change in compared.iter_all_changes() {
        diff.push_str(&change.tag().to_string());
        diff.push_str(change.value().trim_end_matches('\n'));
        diff.push('\n');
    }
    if cut_before || cut_after {
        diff.push_str("… and more\n");
    }
    let operation = if work.moved_from.is_some() { Operation::MoveTo } else { work.operation };
    ChangeView { path: door.text(&work.path), operation: operation.name(), diff: Shown::new(diff) }
}
