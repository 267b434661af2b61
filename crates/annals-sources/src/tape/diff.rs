//! Collects the changes of a diff: each unbroken run of removed and added lines, without context.

use annals_core::{Around, FileRegion, FileWork, Range};
use similar::{ChangeTag, TextDiff};

/// Collects a diff line by line. Without a start, lines have no numbers.
#[derive(Debug, Default)]
pub struct Changes {
    /// The next line before and after the change.
    next: Option<(u32, u32)>,
    removed: Side,
    added: Side,
    /// The unchanged line above the change.
    above: Option<String>,
    found: Vec<Change>,
}

/// One changed place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    pub before: FileRegion,
    pub after: FileRegion,
    pub around: Option<Box<Around>>,
}

#[derive(Debug, Default)]
struct Side {
    first: Option<u32>,
    lines: u32,
    text: String,
}

impl Change {
    /// The same work at this place.
    pub fn of(self, work: &FileWork) -> FileWork {
        FileWork { before: self.before, after: self.after, around: self.around, ..work.clone() }
    }
}

impl Changes {
    /// Starts a hunk at these lines.
    pub fn start(&mut self, before: u32, after: u32) {
        self.close(None);
        self.above = None;
        self.next = Some((before, after));
    }

    /// Starts a hunk at an unknown line.
    pub fn start_anywhere(&mut self) {
        self.close(None);
        self.above = None;
        self.next = None;
    }

    /// A removed line, with its line end if it has one.
    pub fn removed(&mut self, line: &str) {
        // Lines added above belong to another change.
        if self.added.lines > 0 {
            self.close(None);
            self.above = None;
        }
        self.removed.add(line, self.next.map(|(before, _)| before));
        self.next = self.next.map(|(before, after)| (before.saturating_add(1), after));
    }

    /// An added line, with its line end if it has one.
    pub fn added(&mut self, line: &str) {
        self.added.add(line, self.next.map(|(_, after)| after));
        self.next = self.next.map(|(before, after)| (before, after.saturating_add(1)));
    }

    /// A line of context, with its line end if it has one.
    pub fn unchanged(&mut self, line: &str) {
        self.close(Some(line));
        self.above = Some(line.to_owned());
        self.next = self.next.map(|(before, after)| (before.saturating_add(1), after.saturating_add(1)));
    }

    /// The line above has no newline: the file ends there.
    pub fn without_newline(&mut self) {
        let side = if self.added.lines > 0 { &mut self.added } else { &mut self.removed };
        if side.text.ends_with('\n') {
            side.text.pop();
        }
    }

    pub fn finish(mut self) -> Vec<Change> {
        self.close(None);
        self.found
    }

    fn close(&mut self, below: Option<&str>) {
        let (removed, added) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        if removed.lines == 0 && added.lines == 0 {
            return;
        }
        let around = (removed.lines == 0).then(|| self.around(&added, below)).flatten().map(Box::new);
        self.found.push(Change { before: removed.region(), after: added.region(), around });
    }

    /// Inserted lines with the lines above and below; none if no neighbour or no number is known.
    fn around(&self, added: &Side, below: Option<&str>) -> Option<Around> {
        let above = self.above.as_deref();
        let (next_before, _) = self.next?;
        let neighbours = u32::from(above.is_some()) + u32::from(below.is_some());
        let shift = u32::from(above.is_some());
        let (before, after) = (next_before.checked_sub(shift)?, added.first?.checked_sub(shift)?);
        let region = |start: u32, text: String, lines: u32| {
            let range =
                (start > 0 && lines > 0).then(|| Range { start, end: start.saturating_add(lines - 1) });
            FileRegion { range, text: Some(text), given: None }
        };
        let (above, below) = (above.unwrap_or_default(), below.unwrap_or_default());
        (neighbours > 0).then(|| Around {
            before: region(before, [above, below].concat(), neighbours),
            after: region(
                after,
                [above, &added.text, below].concat(),
                added.lines.saturating_add(neighbours),
            ),
        })
    }
}

/// Longer texts are not compared: one change has all of them.
const COMPARED: usize = 4 << 20;

/// The changed places between two texts of a file.
pub fn between(before: &str, after: &str) -> Vec<Change> {
    if before.len() + after.len() > COMPARED {
        let region = |text: &str| match text.is_empty() {
            true => FileRegion::default(),
            false => FileRegion::lines(1, text.to_owned()),
        };
        return vec![Change { before: region(before), after: region(after), around: None }];
    }
    let mut changes = Changes::default();
    changes.start(1, 1);
    for change in TextDiff::from_lines(before, after).iter_all_changes() {
        match change.tag() {
            ChangeTag::Delete => changes.removed(change.value()),
            ChangeTag::Insert => changes.added(change.value()),
            ChangeTag::Equal => changes.unchanged(change.value()),
        }
    }
    changes.finish()
}

impl Side {
    fn add(&mut self, line: &str, number: Option<u32>) {
        if self.lines == 0 {
            self.first = number;
        }
        self.lines = self.lines.saturating_add(1);
        self.text.push_str(line);
    }

    fn region(self) -> FileRegion {
        if self.lines == 0 {
            return FileRegion::default();
        }
        let range = self.first.filter(|first| *first > 0);
        let range = range.map(|start| Range { start, end: start.saturating_add(self.lines - 1) });
        FileRegion { range, text: Some(self.text), given: None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Changes, between};
    use annals_core::{Around, FileRegion, Range};

    #[test]
    fn two_texts_differ_in_their_changed_places() {
        let found = between("a\nb\nc\nd\n", "a\nB\r\nc\nd\ne");
        assert_eq!(found.len(), 2);
        assert_eq!((&found[0].before, &found[0].after), (&region(2, 2, "b\n"), &region(2, 2, "B\r\n")));
        assert_eq!(found[1].after, region(5, 5, "e"));
        assert_eq!(between("same\n", "same\n"), []);
    }

    fn region(start: u32, end: u32, text: &str) -> FileRegion {
        FileRegion { range: Some(Range { start, end }), text: Some(text.to_owned()), given: None }
    }

    #[test]
    fn each_run_is_a_separate_change() {
        let mut changes = Changes::default();
        changes.start(3, 3);
        changes.unchanged("a\n");
        changes.removed("b\n");
        changes.added("B\n");
        changes.added("C\n");
        changes.unchanged("d\n");
        changes.removed("e\n");
        let expected = [
            Change { before: region(4, 4, "b\n"), after: region(4, 5, "B\nC\n"), around: None },
            Change { before: region(6, 6, "e\n"), ..Change::default() },
        ];
        assert_eq!(changes.finish(), expected);
    }

    #[test]
    fn insertions_have_their_neighbours() {
        let mut changes = Changes::default();
        changes.start(3, 4);
        changes.unchanged("a\n");
        changes.added("x\n");
        changes.unchanged("b\n");
        changes.added("y");
        changes.without_newline();
        let found = changes.finish();
        let around = Around { before: region(3, 4, "a\nb\n"), after: region(4, 6, "a\nx\nb\n") };
        assert_eq!(
            found[0],
            Change { after: region(5, 5, "x\n"), around: Some(Box::new(around)), ..Change::default() }
        );
        let around = Around { before: region(4, 4, "b\n"), after: region(6, 7, "b\ny") };
        assert_eq!(
            found[1],
            Change { after: region(7, 7, "y"), around: Some(Box::new(around)), ..Change::default() }
        );
    }

    #[test]
    fn changes_without_numbers_have_no_range() {
        let mut changes = Changes::default();
        changes.added("x\n");
        changes.start_anywhere();
        changes.removed("y\n");
        let expected = [
            Change { after: FileRegion::text("x\n"), ..Change::default() },
            Change { before: FileRegion::text("y\n"), ..Change::default() },
        ];
        assert_eq!(changes.finish(), expected);
    }
}
