//! Diffs whose lines have their numbers: a hunk starts where a number does not follow the one before it.

use super::diff::Changes;

/// The side of a diff that the number of a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffSide {
    Before,
    After,
}

/// Collects such a diff line by line.
#[derive(Debug, Default)]
pub struct NumberedDiff {
    changes: Changes,
    /// The next line on each side, and how far the sides have moved apart.
    before: u32,
    after: u32,
    shift: i64,
}

impl NumberedDiff {
    /// A line with its sign, `-`, `+` or another for a line that is on both sides.
    pub fn line(&mut self, sign: &str, (side, number): (DiffSide, u32), text: &str) {
        let (expected, apart) = match side {
            DiffSide::Before => (self.before, self.shift),
            DiffSide::After => (self.after, -self.shift),
        };
        if expected != number || expected == 0 {
            let opposite = u32::try_from((i64::from(number) + apart).max(1)).unwrap_or(1);
            (self.before, self.after) = match side {
                DiffSide::Before => (number, opposite),
                DiffSide::After => (opposite, number),
            };
            self.changes.start(self.before, self.after);
        }
        let text = format!("{text}\n");
        match sign {
            "-" => {
                self.changes.removed(&text);
                (self.before, self.shift) = (self.before.saturating_add(1), self.shift - 1);
            }
            "+" => {
                self.changes.added(&text);
                (self.after, self.shift) = (self.after.saturating_add(1), self.shift + 1);
            }
            _ => {
                self.changes.unchanged(&text);
                (self.before, self.after) = (self.before.saturating_add(1), self.after.saturating_add(1));
            }
        }
    }

    /// Lines are left out here: the next one starts a hunk.
    pub fn skip(&mut self) {
        (self.before, self.after) = (0, 0);
    }

    pub fn into_changes(self) -> Changes {
        self.changes
    }
}
