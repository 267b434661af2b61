//! Instructions, commands, agents, skills, memories and settings as records, where most clients keep them.

use serde_json::{Value, json};

use super::authored::{SkillPlace, in_repository, markdown, settings, skill, without_environments};

/// The names of a client's own folder and of what is in it.
pub struct Names {
    /// `/.name/`, as it is in the path of a file in a repository.
    pub folder: &'static str,
    /// The folder of extensions, and the end of the path of a manifest in it.
    pub extensions: &'static str,
    pub extension_manifest: &'static str,
}

/// The stream and key of an authored file, by where it is.
pub fn place(path: &str, names: &Names) -> (&'static str, String) {
    if let Some((repository, inner)) = in_repository(path, &[names.folder, "/.agents/"]) {
        let (stream, key) = place(inner, names);
        // A skill may have the same name in both folders.
        let agents = if path.ends_with(&format!("/.agents/{inner}")) { "/.agents" } else { "" };
        return (stream, format!("{repository}{agents}#{key}"));
    }
    let without = |prefix: &str, ending: &str| {
        let rest = path.strip_prefix(prefix).unwrap_or(path);
        rest.strip_suffix(ending).unwrap_or(rest).to_owned()
    };
    let top = path.split('/').next().unwrap_or_default();
    let is_extension = top == names.extensions;
    let within = |folder: &str| path.contains(&format!("/{folder}/"));
    match top {
        "commands" => {
            let name = without("commands/", ".toml");
            ("slash_commands", name.strip_suffix(".md").map_or(name.clone(), str::to_owned))
        }
        "skills" => ("skills", without("skills/", "/SKILL.md")),
        "agents" => ("agents", without("agents/", ".md")),
        "policies" => ("settings", path.to_owned()),
        "workflows" => ("slash_commands", path.to_owned()),
        "plans" => ("plans", without("plans/", ".md")),
        "todos" => ("plans", path.to_owned()),
        "memories" => ("memory_notes", path.to_owned()),
        _ if is_extension && path.ends_with(names.extension_manifest) => ("extensions", path.to_owned()),
        _ if is_extension && within("commands") => ("slash_commands", path.to_owned()),
        _ if is_extension && within("agents") => ("agents", path.to_owned()),
        _ if is_extension && within("skills") => ("skills", without("", "/SKILL.md")),
        "tmp" | "projects" if within("memory") => ("memory_notes", path.to_owned()),
        "tmp" | "projects" => ("plans", path.to_owned()),
        _ if path.ends_with(".md") => ("project_instructions", path.to_owned()),
        _ => ("settings", path.to_owned()),
    }
}

/// What a record of these streams says.
pub fn record(stream: &str, key: &str, names: &Names, bytes: &[u8]) -> Option<Value> {
    let text = || String::from_utf8_lossy(bytes);
    Some(match stream {
        "project_instructions" | "agents" | "plans" | "memory_notes" => markdown(key, bytes),
        "slash_commands" => command(key, bytes),
        "skills" => skill(key, &skill_place(key, names), bytes),
        "settings" if key.ends_with(".toml") => toml_settings(key, &text()),
        "settings" => settings(key, bytes),
        "extensions" => extension(key, bytes),
        "tool_outputs" => json!({"id": key, "text": text(), "bytes": bytes.len()}),
        _ => return None,
    })
}

/// A command is Markdown, or TOML with a prompt.
fn command(key: &str, bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let table = toml::from_str::<toml::Table>(&text).ok();
    let Some(prompt) = table.as_ref().and_then(|table| table.get("prompt")).and_then(toml::Value::as_str)
    else {
        return markdown(key, bytes);
    };
    let field = |name: &str| table.as_ref().and_then(|table| table.get(name)).and_then(toml::Value::as_str);
    let name = key.rsplit('#').next().unwrap_or(key).replace('/', ":");
    json!({
        "id": key,
        "name": name,
        "description": field("description"),
        "argument_hint": null,
        "front_matter": {},
        "body": prompt,
    })
}

fn toml_settings(key: &str, text: &str) -> Value {
    let parsed = toml::from_str::<toml::Table>(text).ok();
    match parsed.and_then(|table| serde_json::to_value(table).ok()) {
        Some(settings) => json!({"id": key, "settings": without_environments(settings)}),
        None => json!({"id": key, "settings": null, "unreadable": "not TOML"}),
    }
}

fn extension(key: &str, bytes: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(manifest) => json!({
            "id": key,
            "name": manifest.get("name"),
            "extension_version": manifest.get("version"),
            "manifest": without_environments(manifest.clone()),
        }),
        Err(_) => {
            json!({"id": key, "name": null, "extension_version": null, "manifest": null, "unreadable": "not JSON"})
        }
    }
}

fn skill_place<'k>(key: &'k str, names: &Names) -> SkillPlace<'k> {
    if let Some((repository, name)) = key.rsplit_once('#') {
        let folder = match repository.ends_with("/.agents") {
            true => format!("{repository}/skills/"),
            false => format!("{repository}{}skills/", names.folder),
        };
        return SkillPlace { name, scope: "project", folder, installed_from: None };
    }
    let extensions = names.extensions;
    let below = key.strip_prefix(extensions).and_then(|rest| rest.strip_prefix('/'));
    match below.and_then(|rest| rest.split_once("/skills/")) {
        Some((extension, name)) => SkillPlace {
            name,
            scope: "extension",
            folder: format!("{extensions}/{extension}/skills/"),
            installed_from: Some("extension"),
        },
        None => SkillPlace { name: key, scope: "user", folder: "skills/".into(), installed_from: None },
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, place, record};
    use serde_json::json;

    const NAMES: Names =
        Names { folder: "/.oil/", extensions: "extensions", extension_manifest: "/extension.json" };

    #[test]
    fn authored_files_are_named_by_where_they_are() {
        let placed = |path: &'static str| place(path, &NAMES);
        assert_eq!(placed("OIL.md"), ("project_instructions", "OIL.md".into()));
        assert_eq!(placed("commands/git/tag.toml"), ("slash_commands", "git/tag".into()));
        assert_eq!(placed("skills/dial/SKILL.md"), ("skills", "dial".into()));
        assert_eq!(
            placed("tmp/gauge/memory/MEMORY.md"),
            ("memory_notes", "tmp/gauge/memory/MEMORY.md".into())
        );
        assert_eq!(placed("tmp/gauge/1/plans/a.md"), ("plans", "tmp/gauge/1/plans/a.md".into()));
        assert_eq!(placed("settings.json"), ("settings", "settings.json".into()));
        assert_eq!(
            placed("repositories/home/ada/gauge/.oil/commands/tag.toml"),
            ("slash_commands", "/home/ada/gauge#tag".into())
        );
        assert_eq!(
            placed("repositories/home/ada/gauge/OIL.md"),
            ("project_instructions", "/home/ada/gauge#OIL.md".into())
        );
        assert_eq!(
            placed("extensions/clock/extension.json"),
            ("extensions", "extensions/clock/extension.json".into())
        );
    }

    #[test]
    fn commands_are_toml_or_markdown() {
        let toml = record(
            "slash_commands",
            "git/tag",
            &NAMES,
            b"description = \"Tag it\"\nprompt = \"Tag {{args}}\"",
        );
        let toml = toml.expect("a command");
        assert_eq!((&toml["name"], &toml["body"]), (&json!("git:tag"), &json!("Tag {{args}}")));
        let markdown = record("slash_commands", "tag", &NAMES, b"---\ndescription: Tag it\n---\nTag");
        assert_eq!(markdown.expect("a command")["description"], "Tag it");
    }

    #[test]
    fn skills_of_repositories_and_extensions_have_their_path() {
        let path = |key: &str| {
            record("skills", key, &NAMES, b"---\nname: d\n---\n").expect("a skill")["path"].clone()
        };
        assert_eq!(path("dial"), "skills/dial/SKILL.md");
        assert_eq!(path("/home/ada/gauge#dial"), "/home/ada/gauge/.oil/skills/dial/SKILL.md");
        assert_eq!(path("/home/ada/gauge/.agents#dial"), "/home/ada/gauge/.agents/skills/dial/SKILL.md");
        assert_eq!(path("extensions/clock/skills/dial"), "extensions/clock/skills/dial/SKILL.md");
    }
}
