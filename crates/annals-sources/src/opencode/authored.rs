//! Instructions, commands, agents, skills, plans and settings as records.

use serde_json::{Value, json};

use crate::home::authored::{SkillPlace, in_repository, markdown, script, settings, skill};

/// The stream and key of an authored file, by where it is.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.opencode/"]) {
        let (stream, key) = place(inner);
        return (stream, format!("{repository}#{key}"));
    }
    let (folder, rest) = path.split_once('/').unwrap_or(("", path));
    let without = |ending: &str| rest.strip_suffix(ending).unwrap_or(rest).to_owned();
    match folder {
        "command" | "commands" => ("slash_commands", without(".md")),
        "agent" | "agents" | "mode" | "modes" => ("agents", without(".md")),
        "skill" | "skills" => ("skills", without("/SKILL.md")),
        "plugin" | "plugins" | "tool" | "tools" => ("extensions", path.to_owned()),
        "plans" => ("plans", without(".md")),
        _ if path.ends_with(".md") => ("project_instructions", path.to_owned()),
        _ => ("settings", path.to_owned()),
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    let value = || serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    Some(match stream {
        "project_instructions" | "slash_commands" | "agents" | "plans" => markdown(key, bytes),
        "skills" => skill(key, &skill_place(key), bytes),
        "extensions" => {
            let path = match key.rsplit_once('#') {
                Some((repository, name)) => format!("{repository}/.opencode/{name}"),
                None => key.to_owned(),
            };
            script(key, path, bytes)
        }
        "settings" => settings(key, bytes),
        "tool_outputs" => json!({"id": key, "text": String::from_utf8_lossy(bytes), "bytes": bytes.len()}),
        "todos" => json!({"id": key, "todos": value()}),
        "projects" => json!({"id": key, "worktree": value()["worktree"], "project": value()}),
        _ => return None,
    })
}

fn skill_place(key: &str) -> SkillPlace<'_> {
    match key.rsplit_once('#') {
        Some((repository, name)) => SkillPlace {
            name,
            scope: "project",
            folder: format!("{repository}/.opencode/skill/"),
            installed_from: None,
        },
        None => SkillPlace { name: key, scope: "user", folder: "skill/".into(), installed_from: None },
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn authored_files_are_named_by_where_they_are() {
        assert_eq!(place("AGENTS.md"), ("project_instructions", "AGENTS.md".into()));
        assert_eq!(place("command/git/tag.md"), ("slash_commands", "git/tag".into()));
        assert_eq!(place("agents/oiler.md"), ("agents", "oiler".into()));
        assert_eq!(place("skill/dial/SKILL.md"), ("skills", "dial".into()));
        assert_eq!(place("opencode.json"), ("settings", "opencode.json".into()));
        assert_eq!(
            place("repositories/home/ada/gauge/.opencode/tool/bell.ts"),
            ("extensions", "/home/ada/gauge#tool/bell.ts".into())
        );
        assert_eq!(
            place("repositories/home/ada/gauge/AGENTS.md"),
            ("project_instructions", "/home/ada/gauge#AGENTS.md".into())
        );
    }
}
