//! Prompt histories: each entry is a record, and a prompt that transcripts may lack.

use std::sync::Arc;

use super::title::title_of;
use crate::{Facts, Reader, each_object, json::Line, json::Object};
use annals_core::{ContentKey, Document, Item, MessageKind, Span, Time, TypedPrompt, Verdict};

/// One entry in the client's format.
pub struct HistoryEntry {
    /// The key of its record.
    pub key: String,
    pub at: Time,
    pub session: Option<Arc<str>>,
    pub project: Option<String>,
    /// The typed text, with pasted texts if available.
    pub text: String,
}

/// Reads a history file: one entry per line, or one list of them.
pub struct HistoryReader {
    /// Parses the entry of a line, or returns what it lacks.
    pub entry: fn(&Object<'_>) -> Result<HistoryEntry, &'static str>,
}

impl Reader for HistoryReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        if let Some(list) = line.json().filter(|list| list.is_array()) {
            let mut verdict = Verdict::Kept("history".into());
            // One without fields was forgotten.
            for item in list.items().filter(|item| !item.object().fields().is_empty()) {
                let at = item.bytes().as_ptr() as usize - line.bytes().as_ptr() as usize;
                let read = self.read_entry(offset + at as u64, &item.object(), out);
                verdict = if matches!(read, Verdict::Kept(_)) { verdict } else { read };
            }
            return verdict;
        }
        each_object(line, |at, object| self.read_entry(offset + at, &object, out))
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

impl HistoryReader {
    fn read_entry(&self, offset: u64, object: &Object<'_>, out: &mut Vec<Item>) -> Verdict {
        let entry = match (self.entry)(object) {
            Ok(entry) => entry,
            Err(lacking) => return Verdict::Unknown(format!("history entry without {lacking}")),
        };
        let span = Span { offset, length: object.bytes().len() as u64 };
        out.push(Item::Document(Document {
            stream: "history",
            key: entry.key,
            session: entry.session.clone(),
            at: Some(entry.at),
            span,
            content: ContentKey::of(&[object.bytes()]),
        }));
        if !entry.text.trim().is_empty() {
            out.push(Item::Typed(TypedPrompt {
                span,
                at: entry.at,
                session: entry.session,
                project: entry.project,
                kind: kind_of(&entry.text),
                words: ContentKey::of_words(&entry.text),
                title: title_of(&entry.text),
            }));
        }
        Verdict::Kept("history".into())
    }
}

/// `/name arguments` and `!line` are for the client; a path at the start of a prompt is not.
fn kind_of(text: &str) -> MessageKind {
    let text = text.trim_start();
    let is_name = |name: &str| {
        name.starts_with(char::is_alphabetic)
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
    };
    let slash = text.strip_prefix('/').and_then(|rest| rest.split(char::is_whitespace).next());
    match text.starts_with('!') || slash.is_some_and(is_name) {
        true => MessageKind::Command,
        false => MessageKind::Prompt,
    }
}

#[cfg(test)]
mod tests {
    use super::kind_of;
    use annals_core::MessageKind;

    #[test]
    fn commands_are_distinguished_from_paths() {
        for command in ["/exit", "/exit ", "/ns:hello world", "!ls -l"] {
            assert_eq!(kind_of(command), MessageKind::Command, "{command}");
        }
        for prompt in ["/src/gears.rs squeaks", "/ or \\?", "oil /exit", "# remember this", "/1 and /2"] {
            assert_eq!(kind_of(prompt), MessageKind::Prompt, "{prompt}");
        }
    }
}
