//! Skills, commands, agents, memory notes, instructions, settings and plugins of a Claude Code home as records.

use serde_json::{Value, json};

use crate::home::authored::{
    SkillPlace, in_repository, markdown, script, settings, skill, without_environments,
};

/// The stream and key of an authored file, by where it stands.
pub fn place(path: &str) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &["/.claude/"]) {
        let (stream, key) = place(inner);
        // Instructions may be in the repository and in its `.claude` at once.
        let is_inside = stream == "project_instructions"
            && !inner.contains('/')
            && path.ends_with(&format!("/.claude/{inner}"));
        return (stream, format!("{repository}#{}{key}", if is_inside { ".claude/" } else { "" }));
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
        "hooks" => ("hooks", without("hooks/", "")),
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
        "skills" => skill(key, &skill_place(key), bytes),
        "hooks" => script(key, file_path(key, "hooks/"), bytes),
        "memory_notes" => {
            let mut note = markdown(key, bytes);
            let (folder, file) = key.split_once('/').unwrap_or((key, key));
            note["project_folder"] = Value::from(folder);
            note["project_path"] = Value::Null;
            note["filename"] = Value::from(file);
            let front = &note["front_matter"];
            note["updated_at"] =
                front.get("updated_at").or(front.get("updated")).cloned().unwrap_or_default();
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

/// Where a file with this key is: below the home, or in a repository.
fn file_path(key: &str, folder: &str) -> String {
    match key.rsplit_once('#') {
        Some((repository, name)) => format!("{repository}/.claude/{folder}{name}"),
        None => format!("{folder}{key}"),
    }
}

fn skill_place(key: &str) -> SkillPlace<'_> {
    let (repository, name) = key.rsplit_once('#').map_or((None, key), |(before, name)| (Some(before), name));
    let (inside, installed_from) = match (repository, name.split_once('/')) {
        (None, Some(("synced", _))) => ("synced/", Some("synced from the account")),
        (None, Some((".trash", _))) => (".trash/", Some("removed")),
        _ => ("", None),
    };
    SkillPlace {
        name: &name[inside.len()..],
        scope: if repository.is_some() { "project" } else { "user" },
        folder: match repository {
            Some(repository) => format!("{repository}/.claude/skills/"),
            None => format!("skills/{inside}"),
        },
        installed_from,
    }
}

/// The folder name that the client gives a project: every letter that is not of ASCII is replaced, as is any sign.
pub fn project_folder(path: &str) -> String {
    const LONGEST: usize = 200;
    let units = path.encode_utf16().map(|unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    });
    units.take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::{place, project_folder, record};
    use serde_json::{Value, json};

    #[test]
    fn folders_are_named_as_the_client_names_them() {
        assert_eq!(project_folder("/tmp/x/beta.app_v2 café"), "-tmp-x-beta-app-v2-caf-");
        assert_eq!(project_folder("/a/\u{1f980}"), "-a---");
        assert_eq!(project_folder(&"/a".repeat(150)).len(), 200);
    }

    #[test]
    fn skills_say_where_they_are_and_where_they_come_from() {
        let front = b"---\nname: Shout\nsource: https://example.org/shout\ntriggers:\n  - loud\n  - bell\n---\nLoud.\n";
        let shown = |key: &str, bytes: &[u8]| {
            let skill = record("skills", key, bytes).expect("a skill");
            ["scope", "path", "installed_from", "supporting_file"].map(|name| skill[name].clone())
        };
        let own = record("skills", "shout", front).expect("a skill");
        assert_eq!(own["triggers"], json!(["loud", "bell"]));
        let from = json!("https://example.org/shout");
        let skill = |scope: &str, path: &str, from: &Value, file: bool| {
            [json!(scope), json!(path), from.clone(), json!(file)]
        };
        assert_eq!(shown("shout", front), skill("user", "skills/shout/SKILL.md", &from, false));
        assert_eq!(shown("a/shout", front), skill("user", "skills/a/shout/SKILL.md", &from, false));
        assert_eq!(shown("a/voice.txt", b"x"), skill("user", "skills/a/voice.txt", &Value::Null, true));
        assert_eq!(shown("a/run", b"x"), skill("user", "skills/a/run", &Value::Null, true));
        assert_eq!(shown("notes.md", front), skill("user", "skills/notes.md", &from, true));
        assert_eq!(
            shown("synced/whisper", b"x"),
            skill("user", "skills/synced/whisper/SKILL.md", &json!("synced from the account"), false)
        );
        assert_eq!(
            shown("/home/ada/gauge#shout", b"x"),
            skill("project", "/home/ada/gauge/.claude/skills/shout/SKILL.md", &Value::Null, false)
        );
    }

    #[test]
    fn hooks_are_kept_as_they_are() {
        assert_eq!(place("hooks/pre/check.sh"), ("hooks", "pre/check.sh".into()));
        let hook = record("hooks", "pre/check.sh", b"#!/bin/sh\n").expect("a hook");
        assert_eq!(
            hook,
            json!({"id": "pre/check.sh", "name": "check.sh", "path": "hooks/pre/check.sh", "body": "#!/bin/sh\n", "bytes": 10})
        );
        let binary = record("hooks", "/home/ada/x#a", b"\xff\0").expect("a hook");
        assert_eq!((&binary["path"], &binary["body"]), (&json!("/home/ada/x/.claude/hooks/a"), &Value::Null));
    }

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
        assert_eq!(
            place("repositories/home/ada/gauge/.claude/CLAUDE.md"),
            ("project_instructions", "/home/ada/gauge#.claude/CLAUDE.md".into())
        );
        assert_eq!(place("CLAUDE.md"), ("project_instructions", "CLAUDE.md".into()));
        assert_eq!(place("settings.json"), ("settings", "settings.json".into()));
    }
}
