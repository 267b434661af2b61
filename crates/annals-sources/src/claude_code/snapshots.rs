//! Copies of files that the client made before editing them, so that their lines can be traced.

use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{
    Item, Passage, PassageKind, TermSet, Time, Verdict, each_sampled_line_term, line_fingerprint,
};

/// `file-history/<session>/<hash>@v<n>`. Its session may be gone, so the passage names none.
pub struct SnapshotReader {
    at: Option<Time>,
}

impl SnapshotReader {
    pub fn new(file: &FileContext) -> SnapshotReader {
        SnapshotReader { at: file.modified }
    }
}

impl Reader for SnapshotReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        // Pictures and the like have no lines.
        if let Ok(text) = std::str::from_utf8(bytes) {
            let mut terms = TermSet::default();
            each_sampled_line_term(text.lines().map(line_fingerprint), |term| terms.add(&term));
            let terms = terms.take();
            if !terms.is_empty() {
                let kind = PassageKind::Output;
                out.push(Item::Passage(Passage { session: None, offset, kind, at: self.at, terms }));
            }
        }
        Verdict::Kept("file".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}
