//! Prompts, skills, rules, settings and memories of a Codex home as records.

use serde_json::{Value, json};

use crate::home::authored::{REPOSITORIES, in_repository, markdown, without_environments};
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// The stream and key of an authored file, by where it stands.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.codex/", "/.agents/"]) {
        let (stream, key) = place(inner);
        return (stream, format!("{repository}#{key}"));
    }
    let without = |prefix: &str, ending: &str| {
        let rest = path.strip_prefix(prefix).unwrap_or(path);
        rest.strip_suffix(ending).unwrap_or(rest).to_owned()
    };
    if path.starts_with("prompts/") {
        ("prompts", without("prompts/", ".md"))
    } else if path.starts_with("skills/") {
        ("skills", without("skills/", "/SKILL.md"))
    } else if path.starts_with("agents/") {
        ("agents", without("agents/", ".toml"))
    } else if path.starts_with("memories/") {
        ("memories", without("memories/", ".md"))
    } else if path.ends_with(".md") {
        ("project_instructions", path.to_owned())
    } else {
        ("config", path.to_owned())
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    Some(match stream {
        "prompts" | "memories" | "project_instructions" => markdown(key, bytes),
        "skills" => {
            let mut skill = markdown(key, bytes);
            skill["vendor"] = Value::from(key.contains(".system/"));
            let name = key.rsplit('#').next().unwrap_or(key);
            let own = name.strip_prefix(".system/").unwrap_or(name);
            skill["supporting_file"] = Value::from(own.contains('/'));
            skill
        }
        "approval_rules" => rule(key, &String::from_utf8_lossy(bytes)),
        "config" | "agents" => config(key, &String::from_utf8_lossy(bytes)),
        _ => return None,
    })
}

/// `rules/*.rules`: every call of `prefix_rule` and its like is a record of its own.
pub struct RulesReader {
    file: String,
    at: Option<Time>,
}

impl RulesReader {
    pub fn new(file: &FileContext) -> RulesReader {
        RulesReader { file: file.path.clone(), at: file.modified }
    }
}

impl Reader for RulesReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        for (start, end) in calls(bytes) {
            let text = &bytes[start..end];
            let name = self.file.trim_start_matches("rules/").trim_end_matches(".rules");
            let name = name.strip_prefix(REPOSITORIES).unwrap_or(name);
            let parsed = rule("", &String::from_utf8_lossy(text));
            out.push(Item::Document(Document {
                stream: "approval_rules",
                key: format!("{name}:{}", parsed["pattern"]),
                session: None,
                at: self.at,
                span: Span { offset: offset + start as u64, length: (end - start) as u64 },
                content: ContentKey::of(&[text]),
            }));
        }
        Verdict::Kept("approval_rules".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Where calls of rule functions begin and end; brackets in strings and comments do not count.
fn calls(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut at, mut start, mut depth) = (0, None, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' => {
                if depth == 0 {
                    let name = bytes[..at]
                        .iter()
                        .rev()
                        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
                    start = Some(at - name.count());
                }
                depth += 1;
            }
            b')' if depth > 0 => {
                depth -= 1;
                if let Some(begin) = start.filter(|_| depth == 0) {
                    found.push((begin, at + 1));
                    start = None;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Function, pattern, decision and the reason given.
fn rule(key: &str, text: &str) -> Value {
    let function = text.split('(').next().unwrap_or_default().trim();
    let argument = |name: &str| -> Option<Value> {
        let (_, rest) = text.split_once(&format!("{name}="))?;
        let end = if rest.trim_start().starts_with('[') { closing(rest)? } else { rest.find([',', ')'])? };
        let value = rest[..end].trim();
        let value = if value.starts_with('"') {
            let closed = rest.trim_start().get(1..)?.find('"')? + 2;
            &rest.trim_start()[..closed]
        } else {
            value
        };
        serde_json::from_str(value).ok()
    };
    json!({
        "id": key,
        "function": function,
        "pattern": argument("pattern").or_else(|| argument("name")).or_else(|| argument("host")),
        "decision": argument("decision").unwrap_or_else(|| Value::from("allow")),
        "justification": argument("justification"),
        "text": text,
    })
}

/// Behind the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'[' if !quoted => depth += 1,
            b']' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Settings as JSON, environments masked; the trust of each project as a map.
fn config(key: &str, text: &str) -> Value {
    let parsed = match key.ends_with(".json") {
        true => serde_json::from_str::<Value>(text).ok(),
        false => toml::from_str::<toml::Table>(text).ok().and_then(|table| serde_json::to_value(table).ok()),
    };
    let Some(settings) = parsed.map(without_environments) else {
        return json!({"id": key, "settings": null, "unreadable": "neither TOML nor JSON"});
    };
    let trust: serde_json::Map<String, Value> = settings["projects"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(path, project)| (path.clone(), project["trust_level"].clone()))
        .collect();
    json!({
        "id": key,
        "model": settings.get("model"),
        "reasoning_effort": settings.get("model_reasoning_effort"),
        "sandbox_mode": settings.get("sandbox_mode"),
        "approval_policy": settings.get("approval_policy"),
        "project_trust": trust,
        "mcp_servers": settings["mcp_servers"].as_object().map(|servers| servers.keys().cloned().collect::<Vec<_>>()),
        "settings": settings,
    })
}

#[cfg(test)]
mod tests {
    use super::{calls, config, rule};
    use serde_json::json;

    #[test]
    fn every_rule_is_read() {
        let text = "# prefix_rule(in a comment)\nprefix_rule(pattern=[\"git\", [\"status\", \"log\"]], decision=\"prompt\",\n  \
            justification=\"look, (then) go\")\nprefix_rule(pattern=[\"ls\"])\n";
        let found = calls(text.as_bytes());
        assert_eq!(found.len(), 2);
        let first = rule("k", &text[found[0].0..found[0].1]);
        assert_eq!(first["pattern"], json!(["git", ["status", "log"]]));
        assert_eq!(first["decision"], "prompt");
        assert_eq!(first["justification"], "look, (then) go");
        assert_eq!(rule("k", &text[found[1].0..found[1].1])["decision"], "allow");
        assert!(calls(b"prefix_rule(never closed").is_empty());
    }

    #[test]
    fn settings_are_shown_without_their_secrets() {
        let text = "model = \"m\"\n[projects.\"/home/ada\"]\ntrust_level = \"trusted\"\n[mcp_servers.bell.env]\nKEY = \"v\"\n";
        let shown = config("config.toml", text);
        assert_eq!(shown["project_trust"]["/home/ada"], "trusted");
        assert_eq!(shown["settings"]["mcp_servers"]["bell"]["env"]["KEY"], "[masked]");
        assert_eq!(shown["mcp_servers"], json!(["bell"]));
        assert_eq!(config("config.toml", "= broken")["settings"], serde_json::Value::Null);
    }
}
