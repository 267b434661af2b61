//! Separates prompts from text that the client puts into user messages.

use std::borrow::Cow;

use crate::json::{Json, Object};

/// Openings of injected text, for transcripts that carry no better mark.
const INJECTED: &[&str] = &[
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<user_action>",
    "<hook_prompt",
    "<external_",
    "<recommended_plugins>",
    "<codex_internal_context",
    "<goal_context>",
    "<model_switch>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<collaboration_mode>",
    "<multi_agent_",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    Person,
    Client,
    /// Nothing in the message says; an event may.
    Unmarked,
}

/// Who wrote a message with role `user`.
pub fn author(message: &Object<'_>) -> Author {
    let kinds = message
        .get("internal_chat_message_metadata_passthrough")
        .and_then(|metadata| metadata.get("content_item_kinds"));
    if let Some(kinds) = kinds {
        let mut marked = false;
        for kind in kinds.items().filter_map(Json::text) {
            if kind.starts_with("user.") {
                return Author::Person;
            }
            marked |= kind != "unknown";
        }
        if marked {
            return Author::Client;
        }
    }
    if opens_injected(message) { Author::Client } else { Author::Unmarked }
}

fn opens_injected(message: &Object<'_>) -> bool {
    let Some(content) = message.get("content") else { return false };
    let first =
        content.items().find_map(|part| part.get("text")).map(|text| text.head(64)).unwrap_or_default();
    INJECTED.iter().any(|opening| first.trim_start().starts_with(opening))
}

/// The typed text of a message, still escaped, without the client's wrapping of attached images: equal for the
/// response item and the event of one message.
pub fn typed_bytes(content: Json<'_>) -> Cow<'_, [u8]> {
    if let Some(inner) = content.inner() {
        return Cow::Borrowed(inner);
    }
    let mut typed = Cow::Borrowed(&b""[..]);
    for part in content.items() {
        let Some(inner) = part.get("text").and_then(Json::inner) else { continue };
        if inner.starts_with(b"<image name=") || inner == b"</image>" {
            continue;
        }
        // Nearly always one part: a long text is not copied.
        if typed.is_empty() {
            typed = Cow::Borrowed(inner);
        } else {
            typed.to_mut().extend_from_slice(inner);
        }
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::{Author, author, typed_bytes};
    use crate::json::Json;

    fn json(text: &str) -> Json<'_> {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn marks_decide_before_openings() {
        let marked = r#"{"content":[{"text":"<skill> is my word"}],
            "internal_chat_message_metadata_passthrough":{"content_item_kinds":["user.text"]}}"#;
        assert_eq!(author(&json(marked).object()), Author::Person);
        let injected = r#"{"content":[{"text":"anything"}],
            "internal_chat_message_metadata_passthrough":{"content_item_kinds":["shell.user_command"]}}"#;
        assert_eq!(author(&json(injected).object()), Author::Client);
        assert_eq!(author(&json(r#"{"content":[{"text":"\n<skill>x"}]}"#).object()), Author::Client);
        assert_eq!(author(&json(r#"{"content":[{"text":"plain"}]}"#).object()), Author::Unmarked);
    }

    #[test]
    fn image_wrappers_are_not_typed() {
        let parts = r#"[{"text":"<image name=[Image #1]>"},{"image_url":"data:"},{"text":"</image>"},{"text":"look"}]"#;
        assert_eq!(typed_bytes(json(parts)), &b"look"[..]);
        assert_eq!(typed_bytes(json(r#""look""#)), &b"look"[..]);
    }
}
