//! The identity of a line: equal in every copy of it, whatever the copy leaves out.
//!
//! A fork or a spawned thread copies lines of its parent, with other times and without some of them. Where turns have ids,
//! a line is known by its turn. Before that it is known by the lines back to the `session_meta` of the thread it was
//! written for; only lines that no copy leaves out are links of that chain.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::json::Json;
use annals_core::ContentKey;

/// How much of each end of a long line makes its key: turn and call ids are there.
const KEYED_END: usize = 4096;
/// Messages of a turn that are remembered to distinguish repeated ones.
const REPEATED: usize = 256;

/// Events that make a row and have no id of their own.
const ROWS: &[&str] = &[
    "message",
    "user_message",
    "agent_message",
    "task_complete",
    "turn_complete",
    "turn_aborted",
    "context_compacted",
    "thread_rolled_back",
    "entered_review_mode",
    "exited_review_mode",
    "error",
    "undo_completed",
];

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Chain {
    link: Option<ContentKey>,
    turn: Option<String>,
    /// Keys of messages since the last link: equal words may be repeated.
    keys: VecDeque<ContentKey>,
}

impl Chain {
    pub(super) fn is_empty(&self) -> bool {
        self.link.is_none()
    }

    /// From here on lines are of this thread.
    pub(super) fn start(&mut self, thread: &str) {
        *self = Chain { link: Some(ContentKey::of(&[thread.as_bytes()])), ..Chain::default() };
    }

    /// The key of a wrapped line.
    pub(super) fn wrapped(&mut self, kind: &str, payload: Json<'_>, session: &str) -> ContentKey {
        let inner = payload.get_text("type").unwrap_or_default();
        if opens_turn(kind, &inner) {
            self.enter(payload.get_text("turn_id").as_deref());
        }
        let link = self.turn.is_none() && matches!(kind, "response_item" | "compacted");
        self.next(payload.bytes(), link, ROWS.contains(&inner.as_ref()), session)
    }

    /// The key of a line of a file without events: every line is a link.
    pub(super) fn bare(&mut self, bytes: &[u8], session: &str) -> ContentKey {
        let link = self.turn.is_none();
        self.next(bytes, link, false, session)
    }

    fn enter(&mut self, turn: Option<&str>) {
        // Migrated files have turn ids that were made up and are the same in all of them.
        let Some(turn) = turn.filter(|turn| turn.len() >= 32) else { return };
        if self.turn.as_deref() != Some(turn) {
            self.turn = Some(turn.to_owned());
            self.link = Some(ContentKey::of(&[b"turn", turn.as_bytes()]));
            self.keys.clear();
        }
    }

    fn next(&mut self, bytes: &[u8], link: bool, row: bool, session: &str) -> ContentKey {
        let before = self.link.unwrap_or_else(|| ContentKey::of(&[session.as_bytes()]));
        let mut key = if bytes.len() <= 2 * KEYED_END {
            before.then(bytes)
        } else {
            let (head, tail) = (&bytes[..KEYED_END], &bytes[bytes.len() - KEYED_END..]);
            before.then(&ContentKey::of(&[&bytes.len().to_le_bytes(), head, tail]).stored().to_le_bytes())
        };
        if link {
            self.link = Some(key);
            self.keys.clear();
        } else if row {
            while self.keys.contains(&key) {
                key = key.then(b"again");
            }
            if self.keys.len() >= REPEATED {
                self.keys.pop_front();
            }
            self.keys.push_back(key);
        }
        key
    }
}

fn opens_turn(kind: &str, inner: &str) -> bool {
    kind == "turn_context" || (kind == "event_msg" && matches!(inner, "task_started" | "turn_started"))
}

#[cfg(test)]
mod tests {
    use super::Chain;
    use crate::json::Json;
    use annals_core::ContentKey;

    const TURN: &str = r#"{"type":"task_started","turn_id":"0199c0de-0000-7000-8000-0000000000aa"}"#;
    const CALL: &str = r#"{"type":"function_call","call_id":"c1"}"#;
    const ENDED: &str = r#"{"type":"exec_command_end","call_id":"c1"}"#;
    const COUNT: &str = r#"{"type":"token_count","info":null}"#;
    const WORDS: &str = r#"{"type":"message","role":"assistant","content":[]}"#;

    /// The key of the last of these lines.
    fn key(lines: &[(&str, &str)]) -> ContentKey {
        let mut chain = Chain::default();
        chain.start("thread");
        let keys = lines
            .iter()
            .map(|(kind, payload)| chain.wrapped(kind, Json::parse(payload.as_bytes()).unwrap(), "thread"));
        keys.last().unwrap()
    }

    #[test]
    fn events_that_a_copy_leaves_out_change_nothing() {
        let (call, ended) = (("response_item", CALL), ("event_msg", ENDED));
        let (count, words) = (("event_msg", COUNT), ("response_item", WORDS));
        assert_eq!(key(&[call, ended, count, words]), key(&[call, words]));
        assert_ne!(key(&[call, words]), key(&[words]), "without turns, calls are links");
        let turn = ("event_msg", TURN);
        assert_eq!(key(&[turn, call, words]), key(&[turn, words]), "with turns they may be missing too");
        assert_eq!(key(&[words, turn, words]), key(&[turn, words]), "and so may whole turns");
    }

    #[test]
    fn equal_words_are_told_apart() {
        let (turn, words) = (("event_msg", TURN), ("response_item", WORDS));
        assert_ne!(key(&[turn, words]), key(&[turn, words, words]));
        let aborted = ("event_msg", r#"{"type":"turn_aborted","reason":"interrupted"}"#);
        assert_ne!(key(&[aborted]), key(&[aborted, aborted]));
    }

    #[test]
    fn turn_ids_that_are_made_up_are_no_identity() {
        let made = ("event_msg", r#"{"type":"task_started","turn_id":"rollout-3"}"#);
        let words = ("response_item", WORDS);
        assert_ne!(key(&[words, made, words]), key(&[made, words]));
    }
}
