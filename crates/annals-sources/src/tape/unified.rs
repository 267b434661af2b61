//! Reads unified diffs: which lines they change, and the text of these lines.

use super::diff::Changes;

/// Lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchRange {
    pub start: u32,
    pub end: u32,
}

/// One changed place; a side is `None` where the file has no line there, as before a pure insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchHunk {
    pub before: Option<PatchRange>,
    pub after: Option<PatchRange>,
}

/// The hunks of a unified diff, each narrowed from its context to the lines removed and added.
pub fn unified_diff_hunks(diff: &str) -> Vec<PatchHunk> {
    let mut hunks = Vec::new();
    let mut open: Option<OpenHunk> = None;
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.extend(open.take().and_then(OpenHunk::finish));
            open = OpenHunk::from_header(line);
        } else if let Some(hunk) = &mut open {
            hunk.take_line(line);
        }
    }
    hunks.extend(open.and_then(OpenHunk::finish));
    hunks
}

/// The changed places of a unified diff with their lines.
pub fn unified_diff_changes(diff: &str) -> Changes {
    let mut changes = Changes::default();
    let mut open: Option<OpenHunk> = None;
    for line in diff.lines() {
        if line.starts_with("@@") {
            open = OpenHunk::from_header(line);
            match &open {
                Some(hunk) => changes.start(hunk.before.line, hunk.after.line),
                None => changes.start_anywhere(),
            }
            continue;
        }
        let Some(hunk) = &mut open else { continue };
        let (before, after) = (hunk.before.left, hunk.after.left);
        hunk.take_line(line);
        match line.as_bytes().first() {
            Some(b'-') if before > 0 => changes.removed(&format!("{}\n", &line[1..])),
            Some(b'+') if after > 0 => changes.added(&format!("{}\n", &line[1..])),
            Some(b' ') | None if before > 0 && after > 0 => {
                changes.unchanged(&format!("{}\n", line.get(1..).unwrap_or_default()));
            }
            Some(b'\\') => changes.without_newline(),
            _ => {}
        }
    }
    changes
}

/// A hunk of a unified diff while its lines are read.
///
/// The counts of the header bound it, so that the `---` of a following file is not taken for a removed line.
struct OpenHunk {
    before: Side,
    after: Side,
}

struct Side {
    line: u32,
    left: u32,
    changed: Option<PatchRange>,
}

impl OpenHunk {
    /// Reads `@@ -a,b +c,d @@`, where a missing count is 1.
    fn from_header(line: &str) -> Option<OpenHunk> {
        let mut words = line.strip_prefix("@@ ")?.split_ascii_whitespace();
        let before = Side::from_header(words.next()?.strip_prefix('-')?)?;
        let after = Side::from_header(words.next()?.strip_prefix('+')?)?;
        Some(OpenHunk { before, after })
    }

    fn take_line(&mut self, line: &str) {
        match line.bytes().next() {
            Some(b'-') => self.before.take_line(true),
            Some(b'+') => self.after.take_line(true),
            // Some tools strip the space of an empty context line.
            Some(b' ') | None => {
                self.before.take_line(false);
                self.after.take_line(false);
            }
            Some(b'\\') => {}
            Some(_) => {
                self.before.left = 0;
                self.after.left = 0;
            }
        }
    }

    fn finish(self) -> Option<PatchHunk> {
        let hunk = PatchHunk { before: self.before.changed, after: self.after.changed };
        (hunk.before.is_some() || hunk.after.is_some()).then_some(hunk)
    }
}

impl Side {
    fn from_header(numbers: &str) -> Option<Side> {
        let (line, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
        Some(Side { line: line.parse().ok()?, left: count.parse().ok()?, changed: None })
    }

    fn take_line(&mut self, changed: bool) {
        if self.left == 0 {
            return;
        }
        if changed {
            self.changed.get_or_insert(PatchRange { start: self.line, end: self.line }).end = self.line;
        }
        self.left -= 1;
        self.line = self.line.saturating_add(1);
    }
}
