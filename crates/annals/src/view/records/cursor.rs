//! Cursors of record lists: a position within a list, or the state that a list ended with.

use crate::view::paging::{not_a_cursor, read_numbers, write_numbers};
use annals_core::Result;
use annals_store::{ArchiveState, RowPlace};

/// A place in a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Only what later commits changed; everything if 0.
    pub changed_after: i64,
    /// The archive when the list started: what changes meanwhile is in the next one.
    pub state: ArchiveState,
    /// Rows that are gone come first.
    pub removed_after: Option<i64>,
    pub rows_after: RowPlace,
}

impl Position {
    /// Reads a cursor, which is a `next_cursor` or a `state`; from the start without one.
    pub fn read(cursor: Option<&str>, now: ArchiveState) -> Result<Position> {
        let start =
            Position { changed_after: 0, state: now, removed_after: None, rows_after: RowPlace(0, 0, -1) };
        let Some(cursor) = cursor else { return Ok(start) };
        if let Ok([commit, rebuilds]) = read_numbers(cursor) {
            // Rows that were rebuilt have to be read again from the start.
            let known = rebuilds == now.rebuilds && commit > 0;
            return Ok(match known {
                true => Position { changed_after: commit, removed_after: Some(0), ..start },
                false => start,
            });
        }
        let [changed_after, commit, rebuilds, is_removed, a, b, c] = read_numbers(cursor)?;
        if rebuilds != now.rebuilds {
            return Err(not_a_cursor(cursor).hint("the archive was rebuilt: start again without a cursor"));
        }
        let (removed_after, rows_after) = match is_removed {
            0 => (None, RowPlace(a, b, c)),
            _ => (Some(a), start.rows_after),
        };
        Ok(Position { changed_after, state: ArchiveState { commit, rebuilds }, removed_after, rows_after })
    }

    pub fn mode(self) -> &'static str {
        if self.changed_after == 0 { "full" } else { "changes" }
    }

    pub fn behind_removed(self, id: i64) -> String {
        Position { removed_after: Some(id), ..self }.write()
    }

    pub fn behind_row(self, row: RowPlace) -> String {
        Position { removed_after: None, rows_after: row, ..self }.write()
    }

    fn write(self) -> String {
        let ArchiveState { commit, rebuilds } = self.state;
        let (is_removed, RowPlace(a, b, c)) = match self.removed_after {
            Some(id) => (1, RowPlace(id, 0, 0)),
            None => (0, self.rows_after),
        };
        write_numbers(&[self.changed_after, commit, rebuilds, is_removed, a, b, c])
    }
}

/// The cursor for what changes after this list.
pub(super) fn write_state(state: ArchiveState) -> String {
    write_numbers(&[state.commit, state.rebuilds])
}

#[cfg(test)]
mod tests {
    use super::{Position, write_state};
    use annals_store::{ArchiveState, RowPlace};

    #[test]
    fn cursors_lead_back_to_their_places() {
        let now = ArchiveState { commit: 9, rebuilds: 1 };
        let start = Position::read(None, now).unwrap();
        assert_eq!((start.changed_after, start.removed_after), (0, None));
        let row = Position::read(Some(&start.behind_row(RowPlace(1, 2, 3))), now).unwrap();
        assert_eq!(row, Position { rows_after: RowPlace(1, 2, 3), ..start });
        let later = Position::read(Some(&write_state(now)), ArchiveState { commit: 12, ..now }).unwrap();
        assert_eq!((later.changed_after, later.removed_after), (9, Some(0)));
        assert_eq!(later.state.commit, 12);
        let removed = Position::read(Some(&later.behind_removed(7)), now).unwrap();
        assert_eq!(removed.removed_after, Some(7));
        assert_eq!(removed.changed_after, 9);
    }

    #[test]
    fn a_rebuilt_archive_is_read_again() {
        let before = ArchiveState { commit: 9, rebuilds: 1 };
        let now = ArchiveState { commit: 20, rebuilds: 2 };
        assert_eq!(Position::read(Some(&write_state(before)), now).unwrap().changed_after, 0);
        let inside = Position::read(None, before).unwrap().behind_row(RowPlace(1, 2, 3));
        assert!(Position::read(Some(&inside), now).is_err());
        assert!(Position::read(Some("anything"), now).is_err());
    }
}
