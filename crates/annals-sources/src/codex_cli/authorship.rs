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
pub(super) enum Author {
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

/// True when nothing but injected text is in the message: words may be a part beside it.
fn opens_injected(message: &Object<'_>) -> bool {
    let Some(content) = message.get("content") else { return false };
    if content.is_string() {
        return is_injected(content);
    }
    let mut injected = false;
    for part in content.items() {
        match part.get("text") {
            Some(text) if is_injected(text) => injected = true,
            Some(text) if is_image_wrapper(text.inner().unwrap_or_default()) => {}
            Some(text) if text.head(64).trim().is_empty() => {}
            _ => return false,
        }
    }
    injected
}

fn is_injected(text: Json<'_>) -> bool {
    is_injected_text(&text.head(64))
}

/// By the opening of a text.
pub fn is_injected_text(text: &str) -> bool {
    INJECTED.iter().any(|injected| text.trim_start().starts_with(injected))
}

fn is_image_wrapper(inner: &[u8]) -> bool {
    inner.starts_with(b"<image name=") || inner == b"</image>"
}

/// The headline above the words in a prompt that an editor put together.
const REQUEST: &str = "## My request for Codex:";

/// The context that an editor puts above a prompt, if there is any, and the person's words.
pub fn request(text: &str) -> (Option<&str>, &str) {
    let start = text.trim_start();
    if !start.starts_with("# ") {
        return (None, text);
    }
    let found = start.match_indices(REQUEST).find(|(at, _)| start[..*at].ends_with('\n'));
    match found.map(|(at, _)| (&start[..at], start[at + REQUEST.len()..].trim())) {
        Some((context, words)) if !words.is_empty() => (Some(context.trim()), words),
        // There is no prompt: the context is all there is.
        _ => (None, text),
    }
}

/// More blocks than this that nobody closes are no citations.
const MOST_OPEN: usize = 16;

/// What two records of one message have in common: citations of memories are in one of them only. The text is still
/// escaped.
pub fn without_citations(typed: &[u8]) -> Cow<'_, [u8]> {
    let mut rest = typed;
    let mut kept: Vec<u8> = Vec::new();
    let mut open = 0;
    while let Some(at) = memchr::memmem::find(rest, b"<oai-") {
        let Some(length) = citation(&rest[at..]) else {
            open += 1;
            if open >= MOST_OPEN {
                break;
            }
            kept.extend_from_slice(&rest[..at + 1]);
            rest = &rest[at + 1..];
            continue;
        };
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + length..];
    }
    if rest.len() + kept.len() == typed.len() {
        return Cow::Borrowed(typed);
    }
    kept.extend_from_slice(rest);
    let mut end = kept.len();
    loop {
        let text = &kept[..end];
        end = match text {
            [before @ .., b'\\', b'n' | b'r' | b't'] | [before @ .., b' '] => before.len(),
            _ => break,
        };
    }
    kept.truncate(end);
    Cow::Owned(kept)
}

/// The length of the block `<oai-x>…</oai-x>` that a text opens with.
fn citation(text: &[u8]) -> Option<usize> {
    let name =
        text.get(1..)?.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let close = [b"</", &text[1..1 + name], b">"].concat();
    memchr::memmem::find(text, &close).map(|at| at + close.len())
}

/// The typed text of a message, still escaped, without the client's wrapping of attached images: equal for the
/// response item and the event of one message.
pub fn typed_bytes(content: Json<'_>) -> Cow<'_, [u8]> {
    if let Some(inner) = content.inner() {
        return Cow::Borrowed(inner);
    }
    let injected = |part: Json<'_>| part.get("text").is_none_or(is_injected);
    let alone = content.items().all(injected);
    let mut typed = Cow::Borrowed(&b""[..]);
    for part in content.items() {
        let Some(text) = part.get("text") else { continue };
        let Some(inner) = text.inner().filter(|inner| !is_image_wrapper(inner)) else { continue };
        // Injected text may be a part beside the words; alone it is what the message says.
        if is_injected(text) && !alone {
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
    use super::{Author, author, request, typed_bytes, without_citations};
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

    #[test]
    fn words_beside_injected_parts_are_the_persons() {
        let both = r#"{"content":[{"text":"<environment_context>x"},{"text":"look"}]}"#;
        assert_eq!(author(&json(both).object()), Author::Unmarked);
        assert_eq!(typed_bytes(json(both).get("content").unwrap()), &b"look"[..]);
        let two = r##"{"content":[{"text":"<environment_context>x"},{"text":"# AGENTS.md instructions"}]}"##;
        assert_eq!(author(&json(two).object()), Author::Client);
        let alone = r#"[{"text":"<environment_context>x"}]"#;
        assert_eq!(typed_bytes(json(alone)), &b"<environment_context>x"[..]);
    }

    #[test]
    fn an_editors_context_is_above_the_words() {
        let text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs: src/a.rs\n\n## My request for Codex:\nOil it\n";
        let (context, words) = request(text);
        assert_eq!(context, Some("# Context from my IDE setup:\n\n## Open tabs:\n- a.rs: src/a.rs"));
        assert_eq!(words, "Oil it");
        assert_eq!(request("# Plan\nOil it"), (None, "# Plan\nOil it"));
        assert_eq!(request("plain"), (None, "plain"));
    }

    #[test]
    fn citations_are_left_out_of_a_comparison() {
        let with =
            br"Done.\n\n<oai-mem-citation>\n<citation_entries>a</citation_entries>\n</oai-mem-citation>\n";
        assert_eq!(without_citations(with), &b"Done."[..]);
        assert_eq!(without_citations(br"Done.\n"), &br"Done.\n"[..]);
        assert_eq!(without_citations(b"see <oai-x> there"), &b"see <oai-x> there"[..]);
        assert_eq!(without_citations(b"a <oai-x>b</oai-x> c"), &b"a  c"[..]);
    }
}
