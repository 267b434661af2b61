//! Coverage grades of a tape: full, partial or none, and why.

use serde_json::{Map, Value};

/// How much of the reads, edits and commands of a session is known.
#[derive(Debug, Default, Clone)]
pub struct CoverageGrades {
    reads: Tally,
    edits: Tally,
    /// Commands whose reads and writes are unknown.
    commands: u64,
    pub lines: u64,
    pub drifted: bool,
    pub orphans: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    known: u64,
    missed: u64,
}

impl CoverageGrades {
    pub fn record_read(&mut self, known: bool) {
        self.reads.count(known);
    }

    pub fn record_edit(&mut self, known: bool) {
        self.edits.count(known);
    }

    /// A command that is known to have only read one file changed nothing.
    pub fn record_command(&mut self, is_read: bool) {
        if is_read {
            self.reads.count(true);
        } else {
            self.commands += 1;
        }
    }

    /// Adds the counts of another file of the same session.
    pub fn merge(&mut self, other: &CoverageGrades) {
        for (mine, theirs) in [(&mut self.reads, other.reads), (&mut self.edits, other.edits)] {
            mine.known += theirs.known;
            mine.missed += theirs.missed;
        }
        self.commands += other.commands;
        self.lines += other.lines;
        self.drifted |= other.drifted;
        self.orphans |= other.orphans;
    }

    /// Writes the coverage fields of `meta`.
    pub fn write_fields(&self, flag: &str, meta: &mut Map<String, Value>) {
        let nothing = self.lines == 0;
        let grade = |partial: bool| match (nothing, partial) {
            (true, _) => "none",
            (false, true) => "partial",
            (false, false) => "full",
        };
        let read = grade(self.reads.missed > 0 || self.commands > 0);
        let edit = grade(self.edits.missed > 0 || self.commands > 0);
        let tool = grade(self.drifted || self.orphans);
        for (name, grade) in [("coverage.read", read), ("coverage.edit", edit), ("coverage.tool", tool)] {
            meta.insert(name.into(), Value::from(grade));
        }
        let flags = [("read", read), ("edit", edit), ("tool", tool)];
        let flags =
            flags.map(|(what, grade)| (format!("{flag}_{what}_partial"), Value::from(grade == "partial")));
        meta.insert("adapter_flags".into(), Value::Object(Map::from_iter(flags)));
    }
}

impl Tally {
    fn count(&mut self, known: bool) {
        if known {
            self.known += 1;
        } else {
            self.missed += 1;
        }
    }
}
