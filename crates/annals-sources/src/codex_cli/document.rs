//! Reads transcripts of the first client version: one object with all items.

use super::rollout::RolloutReader;
use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader};
use annals_core::{Item, Verdict};

/// The first client's file: one object with all items, rewritten each turn.
pub struct DocumentReader {
    lines: RolloutReader,
}

impl DocumentReader {
    pub fn new(file: &FileContext) -> DocumentReader {
        DocumentReader { lines: RolloutReader::new(file, None) }
    }
}

impl Reader for DocumentReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(document) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        let (Some(session), Some(items)) = (document.get("session"), document.get("items")) else {
            return Verdict::Unknown("document without session and items".into());
        };
        // Offsets of pieces follow from where they are in the file's own bytes.
        let place =
            |piece: Json<'_>| offset + (piece.bytes().as_ptr() as usize - bytes.as_ptr() as usize) as u64;
        self.lines.object(place(session), &session.object(), out);
        self.lines.state.facts.native.remove("started_at_zone");
        for item in items.items() {
            self.lines.object(place(item), &item.object(), out);
        }
        Verdict::Kept("document".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        self.lines.facts()
    }
}
