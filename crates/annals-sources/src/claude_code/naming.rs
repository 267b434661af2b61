//! Which session a file belongs to: the client names files by their session, and its lines name it too. A file that was
//! renamed, or copied under another name, is still the session that its lines name.

use serde::{Deserialize, Serialize};

use super::kinds::stem;
use crate::json::{Json, Object};
use annals_core::Item;

/// Rows that wait for a row with a name, and their bytes. The client writes a handful of them at the start of a file.
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// The name of a file's session, as far as it is decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Naming {
    /// The session that the lines name, if it is not the file's own name.
    pub name: Option<String>,
    pub decided: bool,
    /// Rows without a name at the start of a file: their offsets and bytes.
    pub waiting: Vec<(u64, String)>,
    waiting_bytes: usize,
}

impl Naming {
    /// A name that the client gave is kept: lines that a fork copied may carry the id of their origin.
    pub fn of_file(&mut self, path: &str) -> String {
        let own = stem(path);
        self.decided |= is_uuid(own);
        self.name.clone().unwrap_or_else(|| own.to_owned())
    }

    /// Keeps a row until the session is known. Without room for it, the file's own name has to do.
    pub fn hold(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        if self.waiting.len() >= MOST_ROWS || self.waiting_bytes + text.len() > MOST_BYTES {
            return false;
        }
        self.waiting_bytes += text.len();
        self.waiting.push((offset, text.to_owned()));
        true
    }
}

/// What a row says about the session of its file.
pub(super) enum RowName {
    Named(String),
    /// A part of a conversation that names no session.
    Nameless,
    /// A title, a snapshot or the like: the rows after it decide.
    Undecided,
}

pub(super) fn name_in(object: &Object<'_>, is_agent_file: bool) -> RowName {
    let text = |name: &str| object.get_text(name).filter(|text| !text.is_empty());
    let sidechain = object.get("isSidechain").and_then(Json::boolean) == Some(true);
    match (text("agentId").filter(|_| sidechain), text("sessionId")) {
        (Some(agent), _) => RowName::Named(format!("agent-{agent}")),
        (None, Some(_)) if is_agent_file => RowName::Nameless,
        (None, Some(session)) => RowName::Named(session.into_owned()),
        (None, None) if text("uuid").is_some() || object.get("message").is_some() => RowName::Nameless,
        (None, None) => RowName::Undecided,
    }
}

/// Whether an item has nothing to do with the session of its file.
pub(super) fn is_independent(item: &Item) -> bool {
    matches!(item, Item::Summary(_) | Item::Drift(_))
}

fn is_uuid(name: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    name.len() == 36
        && name.bytes().enumerate().all(|(at, byte)| match dashes.contains(&at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::{Naming, is_uuid};

    #[test]
    fn only_names_of_the_client_are_sessions() {
        assert!(is_uuid("11906c19-379b-4081-8da7-a0f4923759b6"));
        for name in ["full", "11906c19-379b-4081-8da7-a0f4923759b6 (1)", "agent-a140d30", "", "é"] {
            assert!(!is_uuid(name), "{name}");
        }
    }

    #[test]
    fn little_is_held() {
        let mut naming = Naming::default();
        assert!((0..300).filter(|row| naming.hold(*row, b"{}")).count() == super::MOST_ROWS);
        let mut naming = Naming::default();
        assert!(!naming.hold(0, &vec![b' '; super::MOST_BYTES + 1]));
        assert!(!naming.hold(0, b"\xff"));
    }
}
