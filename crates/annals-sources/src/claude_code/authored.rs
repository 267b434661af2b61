//! Skills, commands, agents, memory notes, instructions, settings and plugins of a Claude Code home as records.

use serde_json::{Value, json};

use crate::home::authored::{in_repository, markdown, settings, without_environments};

/// The stream and key of an authored file, by where it stands.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.claude/"]) {
        let (stream, key) = place(inner);
        return (stream, format!("{repository}#{key}"));
    }
    let without = |prefix: &str, ending: &str| {
        let rest = path.strip_prefix(prefix).unwrap_or(path);
        rest.strip_suffix(ending).unwrap_or(rest).to_owned()
    };
    let folder = path.split('/').next().unwrap_or_default();
    match folder {
        "skills" => ("skills", without("skills/", "/SKILL.md")),
        // Folders are namespaces: `commands/git/commit.md` is typed as `/git:commit`.
        "commands" => ("slash_commands", without("commands/", ".md").replace('/', ":")),
        "agents" => ("agents", without("agents/", ".md")),
        "output-styles" => ("output_styles", without("output-styles/", ".md")),
        "plans" => ("plans", without("plans/", ".md")),
        "agent-memory" => ("memory_notes", path.to_owned()),
        "projects" => ("memory_notes", without("projects/", "").replacen("/memory/", "/", 1)),
        "plugins" => ("plugins", without("plugins/", ".json")),
        "settings.json" | "settings.local.json" | "keybindings.json" => ("settings", path.to_owned()),
        _ => ("project_instructions", path.to_owned()),
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    Some(match stream {
        "skills" => {
            let mut skill = markdown(key, bytes);
            let name = key.rsplit('#').next().unwrap_or(key);
            let (installed_from, own) = match name.split_once('/') {
                Some(("synced", own)) => (Value::from("synced from the account"), own),
                Some((".trash", own)) => (Value::from("removed"), own),
                _ => (Value::Null, name),
            };
            skill["installed_from"] = installed_from;
            skill["supporting_file"] = Value::from(own.contains('/'));
            let front = |name: &str| skill["front_matter"].get(name).cloned();
            skill["triggers"] =
                front("when_to_use").or(front("triggers")).or(front("paths")).unwrap_or_default();
            skill["allowed_tools"] = skill["front_matter"]["allowed-tools"].clone();
            skill
        }
        "memory_notes" => {
            let mut note = markdown(key, bytes);
            note["project_folder"] = Value::from(key.split('/').next().unwrap_or_default());
            note
        }
        "slash_commands" | "agents" | "output_styles" | "plans" | "project_instructions" => {
            markdown(key, bytes)
        }
        "settings" => {
            let mut shown = settings(key, bytes);
            for name in [
                "permissions",
                "hooks",
                "model",
                "cleanupPeriodDays",
                "enabledMcpjsonServers",
                "enabledPlugins",
            ] {
                shown[name] = shown["settings"].get(name).cloned().unwrap_or(Value::Null);
            }
            shown
        }
        "plugins" => match serde_json::from_slice::<Value>(bytes) {
            Ok(registry) => json!({"id": key, "registry": without_environments(registry)}),
            Err(_) => json!({"id": key, "registry": null, "unreadable": "not JSON"}),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn files_know_their_stream() {
        assert_eq!(place("skills/shout/SKILL.md"), ("skills", "shout".into()));
        assert_eq!(place("skills/shout/voice.txt"), ("skills", "shout/voice.txt".into()));
        assert_eq!(place("commands/git/commit.md"), ("slash_commands", "git:commit".into()));
        assert_eq!(place("projects/-home-ada/memory/tabs.md"), ("memory_notes", "-home-ada/tabs.md".into()));
        assert_eq!(
            place("repositories/home/ada/gauge/.claude/skills/shout/SKILL.md"),
            ("skills", "/home/ada/gauge#shout".into())
        );
        assert_eq!(
            place("repositories/home/ada/gauge/CLAUDE.md"),
            ("project_instructions", "/home/ada/gauge#CLAUDE.md".into())
        );
        assert_eq!(place("CLAUDE.md"), ("project_instructions", "CLAUDE.md".into()));
        assert_eq!(place("settings.json"), ("settings", "settings.json".into()));
    }
}
