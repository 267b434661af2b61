//! Reads files that are kept but not parsed.

use crate::json::Line;
use crate::{Facts, Reader};
use annals_core::{Item, Verdict};

pub struct KeptReader;

impl Reader for KeptReader {
    fn read(&mut self, _offset: u64, _line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        Verdict::Kept("file".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}
