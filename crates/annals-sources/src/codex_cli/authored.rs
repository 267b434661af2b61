//! Prompts, skills, rules, settings and memories of a Codex home as records.

use serde_json::{Value, json};

use super::rules;
use crate::home::authored::{SkillPlace, in_repository, markdown, script, skill, without_environments};

/// The scope of skills that the client ships, and rewrites.
const VENDOR: &str = "system";

/// The stream and key of an authored file, by where it stands.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.codex/", "/.agents/"]) {
        let (stream, key) = place(inner);
        // A skill may have the same name in both folders.
        let agents = if path.ends_with(&format!("/.agents/{inner}")) { "/.agents" } else { "" };
        return (stream, format!("{repository}{agents}#{key}"));
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
    } else if path.starts_with("hooks/") {
        ("hooks", without("hooks/", ""))
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
            let mut skill = skill(key, &skill_place(key), bytes);
            skill["vendor"] = Value::from(skill["scope"] == VENDOR);
            skill
        }
        "hooks" => script(key, hook_path(key), bytes),
        "approval_rules" => rules::record(key, bytes),
        "agents" if key.ends_with(".md") => markdown(key, bytes),
        "config" | "agents" => config(key, &String::from_utf8_lossy(bytes)),
        _ => return None,
    })
}

/// The repository of a key, and the name behind it. `<repository>/.agents` is a folder beside `.codex`.
fn split_key(key: &str) -> (Option<String>, &str) {
    match key.rsplit_once('#') {
        Some((folder, name)) if folder.ends_with("/.agents") => (Some(folder.to_owned()), name),
        Some((repository, name)) => (Some(format!("{repository}/.codex")), name),
        None => (None, key),
    }
}

fn skill_place(key: &str) -> SkillPlace<'_> {
    let (folder, name) = split_key(key);
    let vendor = name.strip_prefix(".system/").filter(|_| folder.is_none());
    SkillPlace {
        name: vendor.unwrap_or(name),
        scope: match (&folder, vendor) {
            (Some(_), _) => "project",
            (None, Some(_)) => VENDOR,
            (None, None) => "user",
        },
        folder: match (folder, vendor) {
            (Some(folder), _) => format!("{folder}/skills/"),
            (None, Some(_)) => "skills/.system/".into(),
            (None, None) => "skills/".into(),
        },
        installed_from: vendor.map(|_| "shipped with the client"),
    }
}

fn hook_path(key: &str) -> String {
    match split_key(key) {
        (Some(folder), name) => format!("{folder}/hooks/{name}"),
        (None, name) => format!("hooks/{name}"),
    }
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
    use super::{config, place, record};
    use serde_json::json;

    #[test]
    fn skills_say_where_they_are_and_where_they_come_from() {
        let skill = |key: &str| {
            record("skills", key, b"---\nname: Dial\npaths: [src]\n---\nDial.\n").expect("a skill")
        };
        let shown =
            |key: &str| ["scope", "path", "installed_from", "vendor"].map(|name| skill(key)[name].clone());
        assert_eq!(shown("dial"), [json!("user"), json!("skills/dial/SKILL.md"), json!(null), json!(false)]);
        assert_eq!(
            shown(".system/dial"),
            [
                json!("system"),
                json!("skills/.system/dial/SKILL.md"),
                json!("shipped with the client"),
                json!(true)
            ]
        );
        assert_eq!(skill("dial")["triggers"], json!(["src"]));
        for (path, key, folder) in [
            ("repositories/home/ada/gauge/.codex/skills/dial/SKILL.md", "/home/ada/gauge#dial", ".codex"),
            (
                "repositories/home/ada/gauge/.agents/skills/dial/SKILL.md",
                "/home/ada/gauge/.agents#dial",
                ".agents",
            ),
        ] {
            assert_eq!(place(path), ("skills", key.to_owned()));
            assert_eq!(skill(key)["path"], format!("/home/ada/gauge/{folder}/skills/dial/SKILL.md"));
            assert_eq!(skill(key)["scope"], "project");
        }
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
