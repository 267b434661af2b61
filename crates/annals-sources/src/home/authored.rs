//! Files that a user or an assistant wrote to shape later sessions, as records with versions.

use serde_json::{Map, Value, json};

use super::front_matter;
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// A whole file as one record of a stream.
pub struct WholeFileReader {
    stream: &'static str,
    key: String,
    session: Option<String>,
    at: Option<Time>,
}

impl WholeFileReader {
    pub fn new(stream: &'static str, key: String, file: &FileContext) -> WholeFileReader {
        WholeFileReader { stream, key, session: None, at: file.modified }
    }

    /// The session that the file belongs to.
    pub fn of_session(mut self, session: Option<&str>) -> WholeFileReader {
        self.session = session.map(str::to_owned);
        self
    }
}

impl Reader for WholeFileReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        out.push(Item::Document(Document {
            stream: self.stream,
            key: self.key.clone(),
            session: self.session.as_deref().map(Into::into),
            at: self.at,
            span: Span { offset, length: bytes.len() as u64 },
            content: ContentKey::of(&[bytes]),
        }));
        Verdict::Kept(self.stream.into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Archived files of repositories are below this folder, which no home has.
pub const REPOSITORIES: &str = "repositories";

/// Splits `repositories/<folder>/<inner>`; the inner path starts behind a marker folder, or is the file's name.
pub fn in_repository<'p>(path: &'p str, markers: &[&str]) -> Option<(&'p str, &'p str)> {
    let rest = path.strip_prefix(REPOSITORIES)?;
    for marker in markers {
        if let Some((repository, inner)) = rest.split_once(marker) {
            return Some((repository, inner));
        }
    }
    rest.rsplit_once('/')
}

/// A Markdown document: the usual fields by their own names, all front matter beside them, and the body.
pub fn markdown(key: &str, bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let (fields, body) = front_matter::split(&text);
    let named = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
    let last = key.rsplit('/').next().unwrap_or(key);
    json!({
        "id": key,
        "name": fields.get("name").cloned().unwrap_or_else(|| Value::from(last)),
        "description": named("description"),
        "argument_hint": named("argument-hint"),
        "front_matter": fields,
        "body": body,
    })
}

/// JSON settings with the values of every `env` masked: names tell enough.
pub fn settings(key: &str, bytes: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => json!({"id": key, "settings": without_environments(value)}),
        Err(_) => json!({"id": key, "settings": null, "unreadable": "not JSON"}),
    }
}

/// Values below `env` and `headers` are secrets more often than not.
pub fn without_environments(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let value = match (name.as_str(), value) {
                    ("env" | "headers" | "http_headers" | "env_http_headers", Value::Object(inside)) => {
                        masked(inside)
                    }
                    (_, value) => without_environments(value),
                };
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_environments).collect()),
        other => other,
    }
}

fn masked(fields: Map<String, Value>) -> Value {
    Value::Object(fields.into_iter().map(|(name, _)| (name, Value::from("[masked]"))).collect())
}

#[cfg(test)]
mod tests {
    use super::{markdown, settings};

    #[test]
    fn environments_keep_their_names_only() {
        let shown = settings(
            "settings.json",
            br#"{"env":{"TOKEN":"abc"},"model":"x","mcp":[{"headers":{"A":"b"}}]}"#,
        );
        assert_eq!(shown["settings"]["env"]["TOKEN"], "[masked]");
        assert_eq!(shown["settings"]["mcp"][0]["headers"]["A"], "[masked]");
        assert_eq!(shown["settings"]["model"], "x");
    }

    #[test]
    fn a_document_without_front_matter_is_named_by_its_file() {
        let shown = markdown("git/commit", b"Commit it.");
        assert_eq!(shown["name"], "commit");
        assert_eq!(shown["body"], "Commit it.");
    }
}
