//! Where turns begin and end: what the client writes when the assistant works, is done, or was stopped.

use super::kinds::is_housekeeping;
use super::people::{command, texts};
use crate::json::{Json, Object};

/// What a row says about the assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    Works,
    /// The turn ended, or the session did.
    Ended,
}

/// `None` for rows that say nothing of it: titles, output of commands, injected text.
pub fn turn_state(kind: &str, row: &Object<'_>) -> Option<TurnState> {
    let flag = |name: &str| row.get(name).and_then(Json::boolean) == Some(true);
    match kind {
        "assistant" => {
            let message = row.get("message")?;
            let reason = message.get_text("stop_reason");
            // Older clients write no reason on most rows: nobody knows whether these are the last of their turn.
            let ended = reason.is_some_and(|reason| !matches!(reason.as_ref(), "tool_use" | "pause_turn"));
            Some(if ended || flag("isApiErrorMessage") { TurnState::Ended } else { TurnState::Works })
        }
        "user" if flag("isMeta") || flag("isCompactSummary") => None,
        "user" => {
            let texts = texts(row.get("message").and_then(|message| message.get("content")));
            if texts.iter().any(|text| text.starts_with("[Request interrupted by user")) {
                return Some(TurnState::Ended);
            }
            let tagged = texts.iter().find(|text| text.trim_start().starts_with('<'));
            match tagged.map(|text| command(text)) {
                Some(Some(command)) => command_state(&command),
                // Output of a command, or another text that the client added.
                Some(None) => None,
                None => Some(TurnState::Works),
            }
        }
        "system" => match row.get_text("subtype")?.as_ref() {
            "turn_duration" => Some(TurnState::Ended),
            "local_command" => command_state(&command(&row.get_text("content")?)?),
            _ => None,
        },
        "ended-by-model" => Some(TurnState::Ended),
        _ => None,
    }
}

fn command_state(command: &str) -> Option<TurnState> {
    match command.split_whitespace().next()? {
        "/exit" | "/quit" => Some(TurnState::Ended),
        _ if is_housekeeping(command) => None,
        _ => Some(TurnState::Works),
    }
}

#[cfg(test)]
mod tests {
    use super::{TurnState, turn_state};
    use crate::json::Json;

    #[test]
    fn the_client_says_when_a_turn_ends() {
        let read = |line: &str| {
            let row = Json::parse(line.as_bytes()).expect("JSON").object();
            turn_state(&row.get_text("type").expect("a type"), &row)
        };
        for works in [
            r#"{"type":"user","message":{"content":"oil the gears"}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}"#,
            r#"{"type":"user","message":{"content":"<command-name>/review</command-name>"}}"#,
            r#"{"type":"assistant","message":{"stop_reason":"tool_use"}}"#,
            r#"{"type":"assistant","message":{"stop_reason":null}}"#,
        ] {
            assert_eq!(read(works), Some(TurnState::Works), "{works}");
        }
        for ended in [
            r#"{"type":"assistant","message":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"assistant","isApiErrorMessage":true,"message":{}}"#,
            r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result"},{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#,
            r#"{"type":"user","message":{"content":"<command-name>/exit</command-name>"}}"#,
            r#"{"type":"system","subtype":"turn_duration"}"#,
            r#"{"type":"system","subtype":"local_command","content":"<command-name>/exit</command-name>"}"#,
            r#"{"type":"ended-by-model"}"#,
        ] {
            assert_eq!(read(ended), Some(TurnState::Ended), "{ended}");
        }
        for nothing in [
            r#"{"type":"user","isMeta":true,"message":{"content":"Caveat"}}"#,
            r#"{"type":"user","message":{"content":"<local-command-stdout>Bye!</local-command-stdout>"}}"#,
            r#"{"type":"user","message":{"content":"<command-name>/clear</command-name>"}}"#,
            r#"{"type":"system","subtype":"compact_boundary"}"#,
            r#"{"type":"ai-title"}"#,
        ] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
