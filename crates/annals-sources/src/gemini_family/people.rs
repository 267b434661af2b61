//! Who wrote a user message: a person, or the client in their name.

use std::borrow::Cow;

use crate::json::Json;
use annals_core::MessageKind;

/// How a message begins that the client wrote.
const INJECTED: &[&str] = &[
    "<session_context>",
    "This is the Gemini CLI. We are setting up the context",
    "This is the Qwen Code. We are setting up the context",
    "You have stopped calling tools",
    "You have exceeded the maximum number of turns",
    "System: Please continue.",
    "Please continue.\nSystem:",
];

/// How the result of a `!command` begins.
const COMMAND: &str = "I ran the following shell command:";
/// Before what a command printed.
const PRINTED: &str = "This produced the following result:";
/// How a summary of the conversation so far begins.
const SNAPSHOT: &str = "<state_snapshot>";
/// The client's answer to its own summary.
pub const THANKS: &str = "Got it. Thanks for the additional context!";
/// Before the content of files that a prompt refers to.
pub const REFERENCED: &str = "--- Content from referenced files ---";

/// The text parts of a content: a string, or a list of parts.
pub fn texts(content: Json<'_>) -> Vec<Cow<'_, str>> {
    if let Some(text) = content.text() {
        return vec![text];
    }
    let texts = content.items().filter(|part| part.get("thought").is_none_or(|thought| thought.is_string()));
    texts.filter_map(|part| part.get_text("text")).collect()
}

/// The kind of a user message by its text.
pub fn user_kind(text: &str) -> MessageKind {
    let text = text.trim_start();
    if text.starts_with(SNAPSHOT) {
        MessageKind::Summary
    } else if text.starts_with(COMMAND) {
        MessageKind::Command
    } else if INJECTED.iter().any(|start| text.starts_with(start)) {
        MessageKind::Injected
    } else {
        MessageKind::Prompt
    }
}

/// A `!command` and what it printed.
pub fn typed_command(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix(COMMAND)?;
    let (command, printed) = rest.split_once(PRINTED).unwrap_or((rest, ""));
    Some((unfenced(command), unfenced(printed)))
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```sh").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    inner.strip_suffix("```").unwrap_or(inner).trim_matches('\n')
}

/// The reminder that a prompt begins with, and the words behind it.
pub fn without_reminder(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix("<system-reminder>")?;
    let (reminder, words) = rest.split_once("</system-reminder>")?;
    Some((reminder.trim(), words.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::{typed_command, user_kind, without_reminder};
    use annals_core::MessageKind;

    #[test]
    fn messages_of_the_client_are_told_from_prompts() {
        assert_eq!(user_kind("<session_context>\nThis is"), MessageKind::Injected);
        assert_eq!(user_kind("<state_snapshot>\n<goal>"), MessageKind::Summary);
        assert_eq!(user_kind("I ran the following shell command:\n```sh\nls\n```"), MessageKind::Command);
        assert_eq!(user_kind("Oil the <session_context>"), MessageKind::Prompt);
    }

    #[test]
    fn a_typed_command_is_separate_from_what_it_printed() {
        let text = "I ran the following shell command:\n```sh\nls -l\n```\n\nThis produced the following result:\n```\na\nb\n```";
        assert_eq!(typed_command(text), Some(("ls -l", "a\nb")));
        assert_eq!(typed_command("ls"), None);
    }

    #[test]
    fn reminders_are_separate_from_words() {
        let text = "<system-reminder>be brief</system-reminder>\n\nOil it";
        assert_eq!(without_reminder(text), Some(("be brief", "Oil it")));
        assert_eq!(without_reminder("Oil it"), None);
    }
}
