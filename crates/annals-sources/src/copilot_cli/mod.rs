//! GitHub Copilot CLI: the events of each session, and the files that shape them.

mod authored;
mod blocks;
mod calls;
mod events;
mod files;
mod footprint;
mod manifest;
mod tape;
mod usage;
mod workspace;

use serde_json::{Map, Value, json};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::json::{Json, Line};
use crate::{
    AgentClient, FileContext, Home, LineIds, Reader, Recorder, ServerForm, ServerList, Settings, Source,
};
use annals_core::{Block, Manifest};

pub struct CopilotCli;

impl Source for CopilotCli {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let root = settings.get("COPILOT_HOME").map(Into::into);
        let root = root.or_else(|| settings.user_home().map(|user| user.join(".copilot")));
        root.into_iter().map(|root| Home { root, ..Home::default() }).collect()
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root = self.homes(settings).into_iter().next()?.root;
        let entry = |command: &str, arguments: &[String]| json!({"type": "local", "command": command, "args": arguments, "tools": ["*"]});
        let form = ServerForm::Json { key: "mcpServers", entry };
        let servers = Some(ServerList { file: root.join("mcp-config.json"), form, holds_credentials: false });
        Some(AgentClient { servers, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "events" => Box::new(events::EventReader::new(file, saved)),
            "workspace" => Box::new(workspace::WorkspaceReader::new(file)),
            "todo" => {
                let (session, key) =
                    (session_in(&file.path), file.path.rsplit('/').next().unwrap_or_default());
                let record = format!("{}/{key}", session.unwrap_or_default());
                Box::new(WholeFileReader::new("todos", record, file).of_session(session))
            }
            "authored" => {
                let (stream, key) = authored::place(&file.path);
                Box::new(WholeFileReader::new(stream, key, file).of_session(session_in(&file.path)))
            }
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(*line)).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        authored::record(stream, key, bytes)
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        let data = Json::parse(line)?.get("data")?;
        let usage = data.get("usage").and_then(|usage| usage.get_text("apiCallId"));
        usage.or_else(|| data.get_text("apiCallId")).map(Into::into)
    }

    fn names_lines(&self) -> bool {
        true
    }

    fn line_ids(&self, line: &[u8]) -> Option<LineIds> {
        let line = Json::parse(line)?.object();
        let parent = line.get_text("parentId").map(Into::into);
        Some(LineIds { id: line.get_text("id")?.into_owned(), parent })
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn is_co_author(&self, name: &str, address: &str) -> bool {
        name.eq_ignore_ascii_case("copilot") && address.ends_with("@users.noreply.github.com")
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::CopilotTape)
    }
}

/// The session whose folder a file is in.
fn session_in(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    parts.next().filter(|folder| *folder == "session-state")?;
    let session = parts.next()?;
    Some(session.strip_suffix(".jsonl").unwrap_or(session))
}
