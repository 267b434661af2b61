//! Instructions, agents, skills, plans and settings as records.

use serde_json::{Value, json};

use crate::home::authored::{SkillPlace, in_repository, markdown, script, settings, skill};

/// The stream and key of an authored file, by where it is.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.github/"]) {
        let (stream, key) = place(inner);
        return (stream, format!("{repository}#{key}"));
    }
    let (folder, rest) = path.split_once('/').unwrap_or(("", path));
    let without = |endings: &[&str]| {
        endings.iter().find_map(|ending| rest.strip_suffix(ending)).unwrap_or(rest).to_owned()
    };
    match folder {
        "agents" => ("agents", without(&[".agent.md", ".md"])),
        "skills" => ("skills", without(&["/SKILL.md"])),
        "hooks" => ("hooks", rest.to_owned()),
        "session-state" => ("plans", without(&[".md"])),
        _ if path.ends_with(".md") => ("project_instructions", path.to_owned()),
        _ => ("settings", path.to_owned()),
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    Some(match stream {
        "project_instructions" | "agents" | "plans" => markdown(key, bytes),
        "skills" => skill(key, &skill_place(key), bytes),
        "hooks" => {
            let path = match key.rsplit_once('#') {
                Some((repository, name)) => format!("{repository}/.github/hooks/{name}"),
                None => format!("hooks/{key}"),
            };
            script(key, path, bytes)
        }
        "settings" => settings(key, bytes),
        "todos" => json!({"id": key, "todo": serde_json::from_slice::<Value>(bytes).unwrap_or_default()}),
        _ => return None,
    })
}

fn skill_place(key: &str) -> SkillPlace<'_> {
    match key.rsplit_once('#') {
        Some((repository, name)) => SkillPlace {
            name,
            scope: "project",
            folder: format!("{repository}/.github/skills/"),
            installed_from: None,
        },
        None => SkillPlace { name: key, scope: "user", folder: "skills/".into(), installed_from: None },
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn authored_files_are_named_by_where_they_are() {
        assert_eq!(place("agents/oiler.agent.md"), ("agents", "oiler".into()));
        assert_eq!(place("skills/dial/SKILL.md"), ("skills", "dial".into()));
        assert_eq!(place("session-state/5e55/plan.md"), ("plans", "5e55/plan".into()));
        assert_eq!(place("mcp-config.json"), ("settings", "mcp-config.json".into()));
        assert_eq!(
            place("repositories/home/ada/gauge/.github/copilot-instructions.md"),
            ("project_instructions", "/home/ada/gauge#copilot-instructions.md".into())
        );
    }
}
