//! Enums as stored in archives: by number or by name.

/// Enums that are stored by explicit numbers, so that a new variant does not relabel what is stored. A number written
/// by a later version reads as the variant after `else`.
macro_rules! stored_by_number {
    ($($name:ident else $unknown:ident),+) => {$(
        impl $name {
            pub fn stored(self) -> i64 {
                self as i64
            }

            pub fn from_stored(number: i64) -> $name {
                $name::from_repr(number).unwrap_or($name::$unknown)
            }

            pub fn name(self) -> &'static str {
                self.into()
            }
        }
    )+};
}

/// Enums that are stored, queried and returned by name.
macro_rules! named {
    ($($name:ident),+) => {$(
        impl $name {
            pub fn name(self) -> &'static str {
                self.into()
            }

            pub fn from_name(name: &str) -> Option<$name> {
                name.parse().ok()
            }
        }
    )+};
}

pub(crate) use {named, stored_by_number};

#[cfg(test)]
mod tests {
    use crate::{CallKind, MessageKind, Operation, PassageKind, Role, Tally};

    #[test]
    fn numbers_in_archives_keep_their_meaning() {
        let kinds = "function shell edit read search web mcp agent script orphan";
        let names: Vec<&str> = (0..10).map(|number| CallKind::from_stored(number).name()).collect();
        assert_eq!(names.join(" "), kinds);
        let operations = "read create update delete move_to move_from";
        let names: Vec<&str> = (0..6).map(|number| Operation::from_stored(number).name()).collect();
        assert_eq!(names.join(" "), operations);
        let kinds = "prompt answer thinking injected summary notice agent command result unsent";
        let names: Vec<&str> = (0..10).map(|number| MessageKind::from_stored(number).name()).collect();
        assert_eq!(names.join(" "), kinds);
        let roles = "user assistant system developer tool";
        let names: Vec<&str> = (0..5).map(|number| Role::from_stored(number).name()).collect();
        assert_eq!(names.join(" "), roles);
        let tallies = "nothing record message aside rewritten rewritten_record";
        let names: Vec<&str> = (0..6).map(|number| Tally::from_stored(number).name()).collect();
        assert_eq!(names.join(" "), tallies);
        let passages = [PassageKind::User, PassageKind::Call, PassageKind::Files, PassageKind::Output];
        assert_eq!(passages.map(PassageKind::stored), [0, 3, 5, 7]);
        assert_eq!(PassageKind::from_stored(8), None);
        assert_eq!((CallKind::from_stored(99), Operation::Delete.stored()), (CallKind::Function, 3));
    }
}
