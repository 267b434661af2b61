//! Claude Code: transcripts and sub-agents of every version, full tool results, file snapshots, todos and history.

mod authored;
mod blocks;
mod calls;
mod drift;
mod fields;
mod footprint;
mod history;
mod kinds;
mod manifest;
mod naming;
mod people;
mod projects;
mod queue;
mod replace;
mod sidecars;
mod snapshots;
mod tags;
mod tape;
mod transcript;
mod turns;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::json::{Json, Line};
use crate::{
    AgentClient, Choice, FileContext, Home, LineIds, Reader, Recorder, ServerForm, ServerList, Settings,
    Source,
};
use annals_core::{Block, Manifest};

pub struct ClaudeCode;

/// The setting that leaves the content of file snapshots out.
const SNAPSHOTS: &str = "ANNALS_CLAUDE_FILE_SNAPSHOTS";

impl Source for ClaudeCode {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let include = settings.list("CLAUDE_CODE_PROJECTS_DIR_INCLUDE");
        let exclude = settings.list("CLAUDE_CODE_PROJECTS_DIR_EXCLUDE");
        let chosen = !include.is_empty() || !exclude.is_empty();
        let choice = chosen.then_some(Choice {
            below: "projects",
            include,
            exclude,
            folder_pattern: projects::folder_pattern,
            session_of: projects::session_of,
            shared: projects::HISTORY,
            named: projects::PLANS,
        });
        let follows_links = settings.flag("ANNALS_CLAUDE_FOLLOW_LINKS");
        let without: &[&str] = if settings.flag(SNAPSHOTS) { &[] } else { &["file-history"] };
        let home = |root, prefix| Home {
            root,
            prefix,
            choice: choice.clone(),
            follows_links,
            without,
            ..Home::default()
        };
        let folders = settings.list("CLAUDE_CONFIG_DIR").into_iter();
        let mut homes: Vec<Home> = folders.map(|folder| home(folder.into(), "")).collect();
        if let Some(projects) = settings.get("CLAUDE_CODE_PROJECTS_DIR") {
            homes.push(home(projects.into(), "projects"));
        }
        if homes.is_empty()
            && let Some(user) = settings.user_home()
        {
            homes.push(home(user.join(".claude"), ""));
            // Some clients of 2025 used this place; most people never had one.
            let second = user.join(".config/claude");
            if second.is_dir() {
                homes.push(home(second, ""));
            }
        }
        homes
    }

    fn logical_path(&self, path: &str) -> String {
        path.to_owned()
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let chosen = settings.list("CLAUDE_CONFIG_DIR").into_iter().next().map(PathBuf::from);
        let (root, file) = match chosen {
            Some(root) => (root.clone(), root.join(".claude.json")),
            None => {
                let user = settings.user_home()?;
                (user.join(".claude"), user.join(".claude.json"))
            }
        };
        // The servers of all projects are listed only in the file that also has the account.
        let entry = |command: &str, arguments: &[String]| json!({"type": "stdio", "command": command, "args": arguments, "env": {}});
        let form = ServerForm::Json { key: "mcpServers", entry };
        let servers = Some(ServerList { file, form, holds_credentials: true });
        Some(AgentClient { servers, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "transcript" => Box::new(transcript::TranscriptReader::new(file, saved)),
            "agent_meta" => Box::new(sidecars::AgentMetaReader::new(file)),
            "custom_title" => Box::new(sidecars::CustomTitleReader::new(file)),
            "full_result" => Box::new(sidecars::full_result(file)),
            "snapshot" => Box::new(snapshots::SnapshotReader::new(file)),
            "todos" => Box::new(sidecars::todos(file)),
            "authored" => {
                let (stream, key) = authored::place(&file.path);
                Box::new(WholeFileReader::new(stream, key, file))
            }
            "history" => Box::new(history::reader()),
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        blocks::blocks(lines)
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        sidecars::record(stream, key, bytes).or_else(|| authored::record(stream, key, bytes))
    }

    fn project_of(&self, stream: &str, key: &str, folders: &[String]) -> Option<String> {
        let folder = key.split('/').next().filter(|_| stream == "memory_notes")?;
        folders.iter().find(|path| authored::project_folder(path) == folder).cloned()
    }

    fn content_of(&self, stream: &str, key: &str) -> Option<String> {
        (stream == "file_snapshots").then(|| format!("file-history/{key}"))
    }

    fn described_by(&self, path: &str) -> Option<(&'static str, String)> {
        path.strip_prefix("file-history/").map(|key| ("file_snapshots", key.to_owned()))
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get("message")?.get_text("id").map(Into::into)
    }

    fn names_lines(&self) -> bool {
        true
    }

    fn line_ids(&self, line: &[u8]) -> Option<LineIds> {
        let row = Json::parse(line)?.object();
        let parent = row.get_text("parentUuid").or_else(|| row.get_text("logicalParentUuid"));
        Some(LineIds { id: row.get_text("uuid")?.into_owned(), parent: parent.map(Into::into) })
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn is_co_author(&self, _name: &str, address: &str) -> bool {
        address == "noreply@anthropic.com"
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::ClaudeTape)
    }
}
