//! Collects the changes of a diff: each unbroken run of removed and added lines, without context.

use annals_core::{FileRegion, Range};

/// Collects a diff line by line. Without a start, lines have no numbers.
#[derive(Debug, Default)]
pub struct Changes {
    /// The next line before and after the change.
    next: Option<(u32, u32)>,
    removed: Side,
    added: Side,
    found: Vec<(FileRegion, FileRegion)>,
}

#[derive(Debug, Default)]
struct Side {
    first: Option<u32>,
    lines: u32,
    text: String,
}

impl Changes {
    /// Starts a hunk at these lines.
    pub fn start(&mut self, before: u32, after: u32) {
        self.close();
        self.next = Some((before, after));
    }

    /// Starts a hunk at an unknown line.
    pub fn start_anywhere(&mut self) {
        self.close();
        self.next = None;
    }

    pub fn removed(&mut self, line: &str) {
        // Lines added above belong to another change.
        if self.added.lines > 0 {
            self.close();
        }
        self.removed.add(line, self.next.map(|(before, _)| before));
        self.next = self.next.map(|(before, after)| (before.saturating_add(1), after));
    }

    pub fn added(&mut self, line: &str) {
        self.added.add(line, self.next.map(|(_, after)| after));
        self.next = self.next.map(|(before, after)| (before, after.saturating_add(1)));
    }

    pub fn unchanged(&mut self) {
        self.close();
        self.next = self.next.map(|(before, after)| (before.saturating_add(1), after.saturating_add(1)));
    }

    /// Returns each change as the region before and after.
    pub fn finish(mut self) -> Vec<(FileRegion, FileRegion)> {
        self.close();
        self.found
    }

    fn close(&mut self) {
        let (removed, added) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        if removed.lines > 0 || added.lines > 0 {
            self.found.push((removed.piece(), added.piece()));
        }
    }
}

impl Side {
    fn add(&mut self, line: &str, number: Option<u32>) {
        if self.lines == 0 {
            self.first = number;
        }
        self.lines = self.lines.saturating_add(1);
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn piece(self) -> FileRegion {
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
    use super::Changes;
    use annals_core::{FileRegion, Range};

    fn piece(start: u32, end: u32, text: &str) -> FileRegion {
        FileRegion { range: Some(Range { start, end }), text: Some(text.to_owned()), given: None }
    }

    #[test]
    fn each_run_is_a_separate_change() {
        let mut changes = Changes::default();
        changes.start(3, 3);
        changes.unchanged();
        changes.removed("b");
        changes.added("B");
        changes.added("C");
        changes.unchanged();
        changes.removed("e");
        let expected =
            vec![(piece(4, 4, "b\n"), piece(4, 5, "B\nC\n")), (piece(6, 6, "e\n"), FileRegion::default())];
        assert_eq!(changes.finish(), expected);
    }

    #[test]
    fn changes_without_numbers_have_no_range() {
        let mut changes = Changes::default();
        changes.added("x");
        changes.start_anywhere();
        changes.removed("y");
        let found = changes.finish();
        assert_eq!(
            found,
            [
                (FileRegion::default(), FileRegion::text("x\n")),
                (FileRegion::text("y\n"), FileRegion::default())
            ]
        );
    }
}
