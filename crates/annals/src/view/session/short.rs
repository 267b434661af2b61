//! Short ids: as many letters of a session's id as no other session's id begins with.

use crate::view::context::View;
use annals_core::Result;

/// Fewer letters are hard to recognise.
const LEAST: usize = 8;

/// The ids of all sessions, to tell one from the others.
#[derive(Debug, Default)]
pub struct ShortIds {
    /// In order; empty if ids are shown complete.
    keys: Vec<String>,
}

impl View<'_> {
    pub fn short_ids(&self) -> Result<ShortIds> {
        let mut keys = self.archive.session_keys()?;
        // The order of bytes, whatever the collation of the archive.
        keys.sort_unstable();
        keys.dedup();
        Ok(ShortIds { keys })
    }
}

impl ShortIds {
    /// The start of an id that is enough to find its session.
    pub fn of<'i>(&self, id: &'i str) -> &'i str {
        let Ok(at) = self.keys.binary_search_by(|key| key.as_str().cmp(id)) else { return id };
        let before = at.checked_sub(1).and_then(|before| self.keys.get(before));
        let neighbours = before.into_iter().chain(self.keys.get(at + 1));
        let shared = neighbours.map(|other| common_start(id, other)).max().unwrap_or(0);
        let enough = (shared + 1).max(LEAST);
        let end = (enough..id.len()).find(|end| id.is_char_boundary(*end)).unwrap_or(id.len());
        &id[..end]
    }
}

fn common_start(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::ShortIds;

    #[test]
    fn an_id_is_as_long_as_it_takes() {
        let keys = ["0199a1b2-0000-1", "0199a1b2-0000-2", "5e551011-0000-4000", "agent-a", "agent-ab", "é"];
        let short = ShortIds { keys: keys.map(str::to_owned).to_vec() };
        let found = keys.map(|key| short.of(key));
        assert_eq!(found, ["0199a1b2-0000-1", "0199a1b2-0000-2", "5e551011", "agent-a", "agent-ab", "é"]);
        assert_eq!(short.of("not one of them"), "not one of them");
        assert_eq!(ShortIds::default().of("5e551011-0000-4000"), "5e551011-0000-4000");
    }
}
