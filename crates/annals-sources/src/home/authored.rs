//! Files that a user or an assistant wrote to shape later sessions, as records with versions.

use serde_json::{Map, Value, json};

use super::front_matter;
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Document, Field, Item, Span, Time, Verdict};

/// Fields of a hook script.
pub const HOOK: &[Field] = &[
    Field::new("id", "string", "path below the directory of hooks, with its repository before a #"),
    Field::new("name", "string", "file name"),
    Field::new("path", "string", "path below the home, or absolute in a repository"),
    Field::preview("body", "string|null", "the text; none if it is not text", "records … --key ID --full"),
    Field::new("bytes", "integer", "length in bytes"),
];

/// Reads a whole file as one record of a stream.
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

/// Archived files of repositories are below this folder, which no home contains.
pub const REPOSITORIES: &str = "repositories";

/// Splits `repositories/<folder>/<inner>`. The inner path starts after a marker folder, or is the file name.
pub fn in_repository<'p>(path: &'p str, markers: &[&str]) -> Option<(&'p str, &'p str)> {
    let rest = path.strip_prefix(REPOSITORIES).filter(|rest| rest.starts_with('/'))?;
    let last = markers.iter().filter_map(|marker| rest.rfind(marker).map(|at| (at, marker))).max();
    // The client creates worktrees inside its own folder; each is a repository.
    let inner = last.map(|(at, marker)| (&rest[..at], &rest[at + marker.len()..]));
    let inner = inner.filter(|(_, inner)| !inner.starts_with("worktrees/"));
    inner.or_else(|| rest.rsplit_once('/'))
}

/// A Markdown document: the usual fields by name, all front matter, and the body.
pub fn markdown(key: &str, bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let (fields, body) = front_matter::split(&text);
    let named = |name: &str| fields.get(name).map_or(Value::Null, to_text);
    let last = key.rsplit(['/', '#']).next().unwrap_or(key);
    let name = named("name");
    json!({
        "id": key,
        "name": if name.is_null() { Value::from(last) } else { name },
        "description": named("description"),
        "argument_hint": named("argument-hint"),
        "front_matter": fields,
        "body": body,
    })
}

/// Turns a value back into text where text is expected: `[name]` is a list in YAML, but a hint to its author.
fn to_text(value: &Value) -> Value {
    match value {
        Value::Null | Value::String(_) => value.clone(),
        Value::Array(items) => {
            let words =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            Value::from(format!("[{}]", words.collect::<Vec<_>>().join(", ")))
        }
        other => Value::from(other.to_string()),
    }
}

/// The location of a skill.
pub struct SkillPlace<'k> {
    /// The folders below `skills/`, and the file unless it is `SKILL.md`.
    pub name: &'k str,
    /// `user`, `project` or another origin.
    pub scope: &'static str,
    /// The folder of all skills, with a trailing slash.
    pub folder: String,
    pub installed_from: Option<&'static str>,
}

/// A skill, or a file next to one.
pub fn skill(key: &str, place: &SkillPlace<'_>, bytes: &[u8]) -> Value {
    let mut skill = markdown(key, bytes);
    let front = |names: &[&str]| {
        let found = names.iter().find_map(|name| skill["front_matter"].get(*name));
        found.filter(|value| !value.is_null()).cloned()
    };
    let is_described = front(&["name", "description"]).is_some();
    let file = place.name.rsplit('/').next().unwrap_or_default();
    let is_skill = match file.ends_with(".md") {
        true => false,
        false => is_described || !place.name.contains(['/', '.']),
    };
    let path = if is_skill { "/SKILL.md" } else { "" };
    let triggers = front(&["when_to_use", "when-to-use", "triggers", "trigger", "paths", "globs"]);
    let installed_from = front(&["source", "installed_from", "installed-from"])
        .or_else(|| skill["front_matter"]["metadata"].get("source").cloned())
        .or_else(|| place.installed_from.map(Value::from));
    let allowed_tools = front(&["allowed-tools"]);
    skill["scope"] = Value::from(place.scope);
    skill["path"] = Value::from(format!("{}{}{path}", place.folder, place.name));
    skill["triggers"] = triggers.unwrap_or_default();
    skill["installed_from"] = installed_from.unwrap_or_default();
    skill["allowed_tools"] = allowed_tools.unwrap_or_default();
    skill["supporting_file"] = Value::from(!is_skill);
    skill
}

/// An executable file, unchanged; `path` is relative to its folder.
pub fn script(key: &str, path: String, bytes: &[u8]) -> Value {
    json!({
        "id": key,
        "name": key.rsplit(['/', '#']).next().unwrap_or(key),
        "path": path,
        "body": std::str::from_utf8(bytes).ok(),
        "bytes": bytes.len(),
    })
}

/// JSON settings with the values of every `env` masked; only names are kept.
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
                        mask_values(inside)
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

fn mask_values(fields: Map<String, Value>) -> Value {
    Value::Object(fields.into_iter().map(|(name, _)| (name, Value::from("[masked]"))).collect())
}

#[cfg(test)]
mod tests {
    use super::{in_repository, markdown, settings};
    use serde_json::json;

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
        assert_eq!(markdown("/home/ada/gauge#dial", b"Dial.")["name"], "dial");
    }

    #[test]
    fn worktrees_are_repositories() {
        let inner = |path: &'static str| in_repository(path, &["/.own/"]);
        assert_eq!(inner("repositories/e/.own/skills/x"), Some(("/e", "skills/x")));
        assert_eq!(inner("repositories/e/sub/RULES.md"), Some(("/e/sub", "RULES.md")));
        assert_eq!(
            inner("repositories/e/.own/worktrees/t/RULES.md"),
            Some(("/e/.own/worktrees/t", "RULES.md"))
        );
        assert_eq!(
            inner("repositories/e/.own/worktrees/t/.own/rules/a.md"),
            Some(("/e/.own/worktrees/t", "rules/a.md"))
        );
        assert_eq!(inner("repositoriesx/e"), None);
    }

    #[test]
    fn fields_that_are_words_stay_words() {
        let shown = markdown("x", b"---\nname: 42\nargument-hint: [name, 2]\ndescription: true\n---\n");
        assert_eq!(
            (&shown["name"], &shown["argument_hint"], &shown["description"]),
            (&json!("42"), &json!("[name, 2]"), &json!("true"))
        );
        assert_eq!(shown["front_matter"]["argument-hint"], json!(["name", 2]));
    }
}
