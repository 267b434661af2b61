//! Cline: conversations of its command line and its editor extension, and the files that shape them.

mod blocks;
mod calls;
mod cards;
mod files;
mod footprint;
mod manifest;
mod markup;
mod messages;
mod places;
mod tape;

use serde_json::{Map, Value, json};

use crate::home::authored::{WholeFileReader, in_repository, script};
use crate::home::kept::KeptReader;
use crate::home::places::{Names, place, record};
use crate::json::{Json, Line};
use crate::{AgentClient, FileContext, Home, Reader, Recorder, ServerForm, ServerList, Settings, Source};
use annals_core::{Block, Manifest};

pub struct Cline;

const NAMES: Names = Names { folder: "/.cline/", extensions: "plugins", extension_manifest: "/plugin.json" };

/// Editors that the extension is installed in, where they keep their data.
const EDITOR_FOLDERS: [&str; 2] = [".config", "Library/Application Support"];
const EDITORS: &[&str] = &["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
const EXTENSION: &str = "User/globalStorage/saoudrizwan.claude-dev";

impl Source for Cline {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let data = |root| Home { root, prefix: "data", ..Home::default() };
        if let Some(root) = settings.get("CLINE_DATA_DIR") {
            return vec![data(root.into())];
        }
        let Some(user) = settings.user_home() else { return Vec::new() };
        let mut homes = vec![Home { root: user.join(".cline"), ..Home::default() }];
        let editors =
            EDITORS.iter().flat_map(|editor| EDITOR_FOLDERS.map(|folder| user.join(folder).join(editor)));
        let extensions = editors.map(|editor| editor.join(EXTENSION)).filter(|folder| folder.is_dir());
        homes.extend(extensions.map(data));
        homes
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let home = self.homes(settings).into_iter().next()?;
        let data = if home.prefix.is_empty() { home.root.join("data") } else { home.root.clone() };
        let entry = |command: &str, arguments: &[String]| json!({"command": command, "args": arguments});
        let form = ServerForm::Json { key: "mcpServers", entry };
        let file = data.join("settings/cline_mcp_settings.json");
        let servers = Some(ServerList { file, form, holds_credentials: true });
        let skills = home.prefix.is_empty().then(|| home.root.join("skills"));
        Some(AgentClient { servers, skills })
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "messages" => Box::new(messages::MessagesReader::new(file)),
            "shown" => Box::new(cards::ShownReader::new(file)),
            "session_card" => Box::new(cards::CardReader::of_session(file)),
            "task_card" => Box::new(cards::CardReader::of_task(file)),
            "tasks" => Box::new(cards::CardReader::of_tasks()),
            "authored" => {
                let (stream, key) = authored(&file.path);
                Box::new(WholeFileReader::new(stream, key, file))
            }
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(*line)).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        if stream == "hooks" {
            let path = match key.rsplit_once('#') {
                Some((repository, name)) => format!("{repository}/.cline/hooks/{name}"),
                None => format!("hooks/{key}"),
            };
            return Some(script(key, path, bytes));
        }
        record(stream, key, &NAMES, bytes)
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get_text("id").map(Into::into)
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::ClineTape)
    }
}

/// The stream and key of an authored file: hooks, and rules that may be one file without an ending.
fn authored(path: &str) -> (&'static str, String) {
    let in_repository = in_repository(path, &[NAMES.folder]);
    if let Some((repository, name)) = in_repository.filter(|(_, inner)| *inner == ".clinerules") {
        return ("project_instructions", format!("{repository}#{name}"));
    }
    let (repository, inner) = in_repository.map_or((None, path), |(folder, inner)| (Some(folder), inner));
    match inner.strip_prefix("hooks/") {
        Some(hook) => ("hooks", repository.map_or(hook.to_owned(), |folder| format!("{folder}#{hook}"))),
        None => place(path, &NAMES),
    }
}

#[cfg(test)]
mod tests {
    use super::authored;

    #[test]
    fn rules_and_hooks_are_named_by_where_they_are() {
        assert_eq!(authored("rules/oil.md"), ("project_instructions", "rules/oil.md".into()));
        assert_eq!(authored("hooks/bell.sh"), ("hooks", "bell.sh".into()));
        let of = |path: &str| authored(&format!("repositories/home/ada/gauge/{path}"));
        assert_eq!(of(".clinerules"), ("project_instructions", "/home/ada/gauge#.clinerules".into()));
        assert_eq!(of(".cline/hooks/bell.sh"), ("hooks", "/home/ada/gauge#bell.sh".into()));
        assert_eq!(of(".cline/skills/dial/SKILL.md"), ("skills", "/home/ada/gauge#dial".into()));
    }
}
