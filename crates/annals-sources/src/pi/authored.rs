//! Instructions, prompts, skills, extensions and settings of a Pi home as records.

use serde_json::Value;

use crate::home::authored::{SkillPlace, in_repository, markdown, script, settings, skill};

/// The stream and key of an authored file, by where it is.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.pi/", "/.agents/"]) {
        let (stream, key) = place(inner);
        // A skill may have the same name in both folders.
        let agents = if path.ends_with(&format!("/.agents/{inner}")) { "/.agents" } else { "" };
        return (stream, format!("{repository}{agents}#{key}"));
    }
    let without = |prefix: &str, ending: &str| {
        let rest = path.strip_prefix(prefix).unwrap_or(path);
        rest.strip_suffix(ending).unwrap_or(rest).to_owned()
    };
    match path.split('/').next().unwrap_or_default() {
        "prompts" => ("slash_commands", without("prompts/", ".md")),
        "skills" => ("skills", without("skills/", "/SKILL.md")),
        "extensions" => ("extensions", without("extensions/", "")),
        _ if path.ends_with(".md") => ("project_instructions", path.to_owned()),
        _ => ("settings", path.to_owned()),
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    Some(match stream {
        "project_instructions" | "slash_commands" => markdown(key, bytes),
        "skills" => skill(key, &skill_place(key), bytes),
        "extensions" => script(key, folder_of(key, "extensions"), bytes),
        "settings" => settings(key, bytes),
        _ => return None,
    })
}

/// The path of what a key names, below a folder of the home or of a repository.
fn folder_of(key: &str, folder: &str) -> String {
    match key.rsplit_once('#') {
        Some((repository, name)) => format!("{repository}/.pi/{folder}/{name}"),
        None => format!("{folder}/{key}"),
    }
}

fn skill_place(key: &str) -> SkillPlace<'_> {
    match key.rsplit_once('#') {
        Some((repository, name)) => SkillPlace {
            name,
            scope: "project",
            folder: match repository.ends_with("/.agents") {
                true => format!("{repository}/skills/"),
                false => format!("{repository}/.pi/skills/"),
            },
            installed_from: None,
        },
        None => SkillPlace { name: key, scope: "user", folder: "skills/".into(), installed_from: None },
    }
}

#[cfg(test)]
mod tests {
    use super::{place, record};

    #[test]
    fn authored_files_are_named_by_where_they_are() {
        assert_eq!(place("AGENTS.md"), ("project_instructions", "AGENTS.md".into()));
        assert_eq!(place("prompts/tag.md"), ("slash_commands", "tag".into()));
        assert_eq!(place("skills/dial/SKILL.md"), ("skills", "dial".into()));
        assert_eq!(place("themes/brass.json"), ("settings", "themes/brass.json".into()));
        assert_eq!(
            place("repositories/home/ada/gauge/.pi/extensions/bell.ts"),
            ("extensions", "/home/ada/gauge#bell.ts".into())
        );
    }

    #[test]
    fn files_of_repositories_have_their_path() {
        let path = |stream: &str, key: &str| record(stream, key, b"x").expect("a record")["path"].clone();
        assert_eq!(path("extensions", "/home/ada/gauge#bell.ts"), "/home/ada/gauge/.pi/extensions/bell.ts");
        assert_eq!(path("skills", "/home/ada/gauge#dial"), "/home/ada/gauge/.pi/skills/dial/SKILL.md");
        assert_eq!(path("skills", "dial"), "skills/dial/SKILL.md");
    }
}
