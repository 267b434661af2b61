//! Classifies `user` rows part by part: the person's words, a command, a result, or text of the client.

use std::borrow::Cow;

use super::tags::{self, Piece, TextKind, pieces, text_kind};
use crate::json::{Json, Object};
use annals_core::MessageKind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserContent {
    /// Results of tools belong to their calls; words typed beside them are a prompt.
    Results(Option<Spoken>),
    Text(Spoken),
}

/// What a row says, and the person's words in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    pub kind: MessageKind,
    /// For a prompt the words without what was put beside them; otherwise the text as it is.
    pub words: String,
}

/// Who wrote a row of this origin when it was no person.
pub(super) const OTHER_ORIGINS: &[&str] = &[
    "task-notification",
    "coordinator",
    "channel",
    "teammate",
    "peer",
    "cross-session",
    "agent",
    "scheduled-task",
    "auto-continuation",
    "hook",
    "system",
];

pub fn user_content(row: &Object<'_>, content: Option<Json<'_>>) -> UserContent {
    let flag = |name: &str| row.get(name).and_then(Json::boolean) == Some(true);
    let mut spoken = spoken(content);
    if content.is_some_and(holds_result) {
        let typed = spoken.kind == MessageKind::Prompt && !spoken.words.is_empty() && !flag("isMeta");
        return UserContent::Results(typed.then_some(spoken));
    }
    let origin = row.get("origin").and_then(|origin| origin.get_text("kind"));
    spoken.kind = if flag("isCompactSummary") {
        MessageKind::Summary
    } else if origin.is_some_and(|kind| OTHER_ORIGINS.contains(&kind.as_ref())) {
        MessageKind::Agent
    } else if flag("isMeta") && spoken.kind != MessageKind::Agent {
        MessageKind::Injected
    } else {
        spoken.kind
    };
    UserContent::Text(spoken)
}

/// What a text, or a list of parts, says: every part is judged by itself.
pub fn spoken(content: Option<Json<'_>>) -> Spoken {
    let texts = texts(content);
    let kinds: Vec<TextKind> = texts.iter().map(|text| text_kind(text)).collect();
    let has = |kind: TextKind| kinds.contains(&kind);
    // A picture is sent by somebody: with nothing but context beside it, it is the prompt.
    let picture = content.iter().flat_map(|content| content.items()).any(is_picture);
    let kind = if has(TextKind::Command) {
        MessageKind::Command
    } else if has(TextKind::Typed) {
        MessageKind::Prompt
    } else if has(TextKind::Interruption) {
        MessageKind::Notice
    } else if has(TextKind::Agent) {
        MessageKind::Agent
    } else if has(TextKind::Printed) {
        MessageKind::Command
    } else if has(TextKind::Summary) {
        MessageKind::Summary
    } else if has(TextKind::Context) && !picture {
        MessageKind::Injected
    } else {
        MessageKind::Prompt
    };
    let mut words = String::new();
    for (text, part) in texts.iter().zip(&kinds) {
        let text = match (kind, part) {
            (MessageKind::Prompt, TextKind::Typed) => typed_words(text),
            (MessageKind::Prompt, _) => continue,
            _ => Cow::Borrowed(text.as_ref()),
        };
        if !words.is_empty() && !text.is_empty() {
            words.push('\n');
        }
        words.push_str(&text);
    }
    Spoken { kind, words }
}

/// The command that a row names, with its arguments: `/ns:hello world`.
pub fn command(text: &str) -> Option<String> {
    let inner = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner.trim())
    };
    if let Some(shell) = inner("bash-input") {
        return Some(format!("!{shell}"));
    }
    let name = inner("command-name").or_else(|| {
        let message = inner("command-message")?;
        Some(message.split_once(" is running").map_or(message, |(name, _)| name))
    })?;
    let name = name.trim_start_matches('/');
    let arguments = inner("command-args").unwrap_or_default();
    Some(format!("/{name} {arguments}").trim_end().to_owned()).filter(|command| command != "/")
}

/// The texts of a row, whatever its shape.
pub fn texts(content: Option<Json<'_>>) -> Vec<Cow<'_, str>> {
    let Some(content) = content else { return Vec::new() };
    if let Some(text) = content.text() {
        return vec![text];
    }
    let is_text = |part: Json<'_>| part.get_text("type").is_none_or(|kind| kind == "text");
    content
        .items()
        .filter_map(|part| part.text().or_else(|| part.get_text("text").filter(|_| is_text(part))))
        .filter(|text| !text.trim().is_empty())
        .collect()
}

/// The words of a text without the context that was put before, between or after them.
fn typed_words(text: &str) -> Cow<'_, str> {
    let pieces = pieces(text);
    if let [Piece::Words(words)] = pieces.as_slice() {
        return Cow::Borrowed(words.trim());
    }
    let words: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Words(words) => Some(words.trim()).filter(|words| !words.is_empty()),
            Piece::Context { .. } => None,
        })
        .collect();
    Cow::Owned(words.join("\n"))
}

/// The first text of a row, as far as a comparison needs it.
pub fn opening(content: Option<Json<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if content.is_string() {
        return content.head(2_000);
    }
    let text = content.items().find_map(|part| if part.is_string() { Some(part) } else { part.get("text") });
    text.map(|text| text.head(2_000)).unwrap_or_default()
}

fn holds_result(content: Json<'_>) -> bool {
    content.items().any(|part| part.get_text("type").is_some_and(|kind| kind == "tool_result"))
}

fn is_picture(part: Json<'_>) -> bool {
    part.get_text("type").is_some_and(|kind| kind == "image" || kind == "document")
}

/// The words of a message that another session, a task or a teammate sent, for a title.
pub fn message_words(text: &str) -> String {
    tags::without_tags(text)
}

#[cfg(test)]
mod tests {
    use super::{Spoken, UserContent, command, user_content};
    use crate::json::Json;
    use annals_core::MessageKind;

    fn read(row: &str) -> UserContent {
        let row = Json::parse(row.as_bytes()).unwrap().object();
        user_content(&row, row.get("message").and_then(|message| message.get("content")))
    }

    fn kind(row: &str) -> MessageKind {
        match read(row) {
            UserContent::Text(spoken) => spoken.kind,
            UserContent::Results(_) => MessageKind::Result,
        }
    }

    fn of_text(text: &str) -> MessageKind {
        kind(&serde_json::json!({"message": {"content": text}}).to_string())
    }

    fn prompt(words: &str) -> UserContent {
        UserContent::Text(Spoken { kind: MessageKind::Prompt, words: words.into() })
    }

    #[test]
    fn rows_are_what_they_are() {
        assert_eq!(kind(r#"{"message":{"content":"hello"}}"#), MessageKind::Prompt);
        assert_eq!(read(r#"{"message":{"content":[{"type":"tool_result"}]}}"#), UserContent::Results(None));
        assert_eq!(kind(r#"{"isMeta":true,"message":{"content":"x"}}"#), MessageKind::Injected);
        assert_eq!(kind(r#"{"isCompactSummary":true,"message":{"content":"x"}}"#), MessageKind::Summary);
        let text = r#"{"message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        assert_eq!(kind(text), MessageKind::Notice);
        assert_eq!(kind(r#"{"message":{"content":["bare"]}}"#), MessageKind::Prompt);
        let other = r#"{"origin":{"kind":"coordinator"},"message":{"content":"Go on"}}"#;
        assert_eq!(kind(other), MessageKind::Agent);
    }

    #[test]
    fn commands_and_context_are_not_prompts() {
        assert_eq!(of_text("<command-name>/clear</command-name>"), MessageKind::Command);
        assert_eq!(of_text("<bash-input>ls</bash-input>"), MessageKind::Command);
        assert_eq!(of_text("<ide_selection>x</ide_selection>"), MessageKind::Injected);
        assert_eq!(of_text("<ide_selection>x</ide_selection>\nfix it"), MessageKind::Prompt);
        assert_eq!(of_text("<task-notification>"), MessageKind::Agent);
        assert_eq!(of_text("Unknown slash command: rename"), MessageKind::Command);
    }

    #[test]
    fn every_part_is_judged_by_itself() {
        let row = |content: serde_json::Value| {
            read(&serde_json::json!({"message": {"content": content}}).to_string())
        };
        let text = |text: &str| serde_json::json!({"type": "text", "text": text});
        let opened = "<ide_opened_file>The user opened /src/a.rs in the IDE.</ide_opened_file>";
        let selected = "<ide_selection>The user selected the lines 1 to 3:\nfn a()\n</ide_selection>";
        let reminder = "<system-reminder>Today is Monday.</system-reminder>";
        assert_eq!(row(serde_json::json!([text(opened), text("fix it")])), prompt("fix it"));
        assert_eq!(row(serde_json::json!([text("fix it"), text(selected)])), prompt("fix it"));
        let between = [text("fix it"), text(reminder), text("and test it")];
        assert_eq!(row(serde_json::json!(between)), prompt("fix it\nand test it"));
        assert_eq!(row(serde_json::json!([text(reminder), text(opened), text("go")])), prompt("go"));
        assert_eq!(row(format!("fix {opened} it").into()), prompt("fix\nit"));
        assert_eq!(row(format!("{reminder}\n\nfix it\n{selected}").into()), prompt("fix it"));
        let alone =
            UserContent::Text(Spoken { kind: MessageKind::Injected, words: format!("{opened}\n{reminder}") });
        assert_eq!(row(serde_json::json!([text(opened), text(reminder)])), alone);
        let picture = serde_json::json!([{"type": "image", "source": {}}, text(opened)]);
        assert_eq!(row(picture), prompt(""));
        let stopped = [text("[Request interrupted by user]"), text("use the other file")];
        assert_eq!(row(serde_json::json!(stopped)), prompt("use the other file"));
    }

    #[test]
    fn words_beside_a_result_are_a_prompt() {
        let row = r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"stop there"}]}}"#;
        let words = Spoken { kind: MessageKind::Prompt, words: "stop there".into() };
        assert_eq!(read(row), UserContent::Results(Some(words)));
        let interrupted = r#"{"message":{"content":[{"type":"tool_result"},{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;
        assert_eq!(read(interrupted), UserContent::Results(None));
    }

    #[test]
    fn messages_of_others_are_not_prompts() {
        for text in [
            "<teammate-message teammate_id=\"lead\" color=\"blue\">\nStart with the parser.\n</teammate-message>",
            "<bash-notification>\n<shell-id>b1</shell-id>\n</bash-notification>",
            "<agent-notification>\n<agent-id>a1</agent-id>\n</agent-notification>",
            "<task-notification>\n<task-id>a1</task-id>\n</task-notification>\nRead the output file to see it.",
            "Another Claude session sent a message:\n<cross-session-message from=\"x\">hi</cross-session-message>\n\nIMPORTANT: This is NOT from your user.",
            "<channel source=\"chat\">hi</channel>",
        ] {
            assert_eq!(of_text(text), MessageKind::Agent, "{text}");
            let meta = serde_json::json!({"isMeta": true, "message": {"content": text}});
            assert_eq!(kind(&meta.to_string()), MessageKind::Agent, "{text}");
        }
        for text in [
            "what does `<task-notification>` mean?",
            "<channels> is the name of my tag",
            "Why did it say <teammate-message> here?",
        ] {
            assert_eq!(of_text(text), MessageKind::Prompt, "{text}");
        }
        assert_eq!(of_text("Stop hook feedback:\n- [lint]: 2 errors"), MessageKind::Injected);
        assert_eq!(of_text("<post-tool-use-hook>x</post-tool-use-hook>"), MessageKind::Injected);
    }

    #[test]
    fn commands_have_names_and_arguments() {
        let text = "<command-message>ns:hello</command-message>\n<command-name>/ns:hello</command-name>\n<command-args>world</command-args>";
        assert_eq!(command(text).as_deref(), Some("/ns:hello world"));
        let running = "<command-message>ns:hello is running…</command-message>";
        assert_eq!(command(running).as_deref(), Some("/ns:hello"));
        assert_eq!(command("<bash-input>ls -l</bash-input>").as_deref(), Some("!ls -l"));
        assert_eq!(command("<local-command-stdout>x</local-command-stdout>"), None);
    }
}
