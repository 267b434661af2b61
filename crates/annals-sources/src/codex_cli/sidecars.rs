//! Files besides transcripts: names, rows of the thread table, and plain documents.

use std::collections::BTreeMap;

use serde_json::Value;

use super::authorship::request;
use crate::home::title::title_of;
use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader, each_object};
use annals_core::{ContentKey, Document, Item, SessionFacts, Span, Time, Verdict};

/// `session_index.jsonl`: the last name of a thread wins.
pub struct NameReader {
    names: BTreeMap<String, String>,
}

impl NameReader {
    pub fn new(saved: Option<&str>) -> NameReader {
        NameReader { names: saved.and_then(|saved| serde_json::from_str(saved).ok()).unwrap_or_default() }
    }
}

impl Reader for NameReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        each_object(line, |at, object| {
            let (Some(id), Some(name)) = (object.get_text("id"), object.get_text("thread_name")) else {
                return Verdict::Unknown("name line without id and thread_name".into());
            };
            let updated = object.get_text("updated_at").unwrap_or_default();
            out.push(Item::Document(Document {
                stream: "session_index",
                key: format!("{id}:{updated}"),
                session: Some(id.as_ref().into()),
                at: Time::parse(&updated),
                span: Span { offset: offset + at, length: object.bytes().len() as u64 },
                content: ContentKey::of(&[object.bytes()]),
            }));
            self.names.insert(id.into_owned(), name.into_owned());
            Verdict::Kept("session_index".into())
        })
    }

    fn save(&self) -> String {
        serde_json::to_string(&self.names).unwrap_or_default()
    }

    fn facts(&self) -> Vec<Facts> {
        self.names
            .iter()
            .map(|(id, name)| {
                let mut facts = SessionFacts { name: Some(name.clone()), ..SessionFacts::default() };
                facts.native.insert("name".into(), Value::from(name.as_str()));
                Facts { session: id.as_str().into(), rank: 5, facts }
            })
            .collect()
    }
}

/// One row of the thread table, as a JSON document of its columns.
#[derive(Default)]
pub struct ThreadReader {
    thread: Option<(String, SessionFacts)>,
}

impl Reader for ThreadReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(row) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        let Some(id) = row.get_text("id") else { return Verdict::Unknown("thread row without id".into()) };
        let text =
            |name: &str| row.get_text(name).map(|text| text.into_owned()).filter(|text| !text.is_empty());
        let moment = |name: &str| {
            let millis = row.get_integer(&format!("{name}_ms")).map(Time::from_millis);
            millis.or_else(|| row.get_integer(name).map(Time::from_seconds))
        };
        // The title is the first prompt until somebody gives one; a spawned thread has that of its parent.
        let spawned = text("source").is_some_and(|source| source.contains("thread_spawn"));
        let title =
            text("title").filter(|title| !spawned || text("first_user_message").as_ref() != Some(title));
        let mut facts = SessionFacts {
            cwd: text("cwd"),
            title: title.map(|title| title_of(request(&title).1)),
            name: text("name"),
            client_version: text("cli_version"),
            models: text("model").into_iter().collect(),
            git_branch: text("git_branch"),
            git_commit: text("git_sha"),
            git_url: text("git_origin_url"),
            archived: row.get_integer("archived").map(|archived| archived != 0),
            started_at: moment("created_at"),
            last_at: moment("updated_at"),
            ..SessionFacts::default()
        };
        for name in NATIVE_COLUMNS {
            let Some(value) = row.get(name).map(Json::value) else { continue };
            let value = match &value {
                Value::String(text) if text.is_empty() => continue,
                Value::Null if *name == "name" => continue,
                Value::Number(seconds) if *name == "archived_at" => seconds
                    .as_i64()
                    .map_or(value, |seconds| Value::from(Time::from_seconds(seconds).rfc3339())),
                // Some columns hold JSON as text.
                Value::String(text) if text.starts_with('{') => {
                    Json::parse(text.as_bytes()).map(Json::value).unwrap_or(value)
                }
                _ => value,
            };
            facts.native.insert((*name).into(), value);
        }
        out.push(Item::Document(Document {
            stream: "threads",
            key: id.clone().into_owned(),
            session: Some(id.as_ref().into()),
            at: moment("updated_at"),
            span: Span { offset, length: bytes.len() as u64 },
            content: ContentKey::of(&[bytes]),
        }));
        self.thread = Some((id.into_owned(), facts));
        Verdict::Kept("threads row".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.thread.iter();
        facts
            .map(|(id, facts)| Facts { session: id.as_str().into(), rank: 10, facts: facts.clone() })
            .collect()
    }
}

const NATIVE_COLUMNS: &[&str] = &[
    "name",
    "source",
    "originator",
    "thread_source",
    "model_provider",
    "archived_at",
    "tokens_used",
    "first_user_message",
    "sandbox_policy",
    "approval_mode",
    "agent_nickname",
    "agent_role",
    "agent_path",
    "memory_mode",
    "reasoning_effort",
    "history_mode",
    "is_pinned",
    "project_id",
];

/// A row of another table, kept as a record as it is.
pub struct RowReader {
    stream: &'static str,
    key: String,
}

impl RowReader {
    pub fn new(stream: &'static str, file: &FileContext) -> RowReader {
        // `<pattern>/<table>/<key>`: a key may have slashes.
        RowReader { stream, key: file.path.splitn(3, '/').nth(2).unwrap_or_default().to_owned() }
    }
}

impl Reader for RowReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(row) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        let names = ["thread_id", "parent_thread_id", "assigned_thread_id"];
        let session = names.iter().find_map(|name| row.get_text(name));
        out.push(Item::Document(Document {
            stream: self.stream,
            key: self.key.clone(),
            session: session.map(|session| session.as_ref().into()),
            at: updated_at(&row),
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

/// When a row was changed last, or made: in milliseconds or in seconds, by the name of the column.
fn updated_at(row: &Json<'_>) -> Option<Time> {
    let millis = |name: &str| row.get_integer(name).map(Time::from_millis);
    let seconds = |name: &str| row.get_integer(name).map(Time::from_seconds);
    millis("updated_at_ms")
        .or_else(|| seconds("updated_at"))
        .or_else(|| millis("created_at_ms"))
        .or_else(|| seconds("created_at"))
        .or_else(|| seconds("generated_at"))
}

#[cfg(test)]
mod tests {
    use super::ThreadReader;
    use crate::Reader;
    use crate::json::Scan;

    fn title(row: &str) -> Option<String> {
        let mut reader = ThreadReader::default();
        reader.read(0, Scan::new(row.as_bytes()).line(), &mut Vec::new());
        reader.facts().into_iter().next().and_then(|facts| facts.facts.title)
    }

    #[test]
    fn names_and_times_of_the_table_are_facts() {
        let mut reader = ThreadReader::default();
        let row = r#"{"id":"t","name":"Engine","archived_at":1772442000,"updated_at":1772442000}"#;
        reader.read(0, Scan::new(row.as_bytes()).line(), &mut Vec::new());
        let native = reader.facts().remove(0).facts.native;
        assert_eq!(native["name"], "Engine");
        assert_eq!(native["archived_at"], "2026-03-02T09:00:00.000Z");
        let mut reader = ThreadReader::default();
        reader.read(0, Scan::new(br#"{"id":"t","name":null}"#).line(), &mut Vec::new());
        assert!(!reader.facts().remove(0).facts.native.contains_key("name"), "another file may have one");
    }

    #[test]
    fn titles_of_the_table_are_one_line_of_words() {
        let editor =
            r##"{"id":"t","title":"# Context from my IDE setup:\n\n## My request for Codex:\nOil it"}"##;
        assert_eq!(title(editor).as_deref(), Some("Oil it"));
        let spawned = r#"{"id":"t","title":"Take it apart","first_user_message":"Take it apart",
            "source":"{\"subagent\":{\"thread_spawn\":{}}}"}"#;
        assert_eq!(title(spawned), None, "the parent's");
        assert_eq!(title(r#"{"id":"t","title":"Engine"}"#).as_deref(), Some("Engine"));
    }
}
