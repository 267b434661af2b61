//! Gemini CLI: chats of every version, sub-agents, prompt log, saved conversations and authored files.

mod footprint;
mod manifest;
mod tape;

use serde_json::{Map, Value, json};

use crate::gemini_family::{authored, blocks, calls, chat, logs, projects};
use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::home::places::{Names, place};
use crate::json::{Json, Line};
use crate::{AgentClient, FileContext, Home, Reader, Recorder, ServerForm, ServerList, Settings, Source};
use annals_core::{Block, Manifest};

pub struct GeminiCli;

const NAMES: Names =
    Names { folder: "/.gemini/", extensions: "extensions", extension_manifest: "/gemini-extension.json" };

impl Source for GeminiCli {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        // The variable replaces the user's home, not the client's.
        let user = settings.get("GEMINI_CLI_HOME").map(Into::into).or_else(|| settings.user_home());
        let root = user.map(|user| user.join(".gemini"));
        root.into_iter().map(|root| Home { root, ..Home::default() }).collect()
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root = self.homes(settings).into_iter().next()?.root;
        let entry = |command: &str, arguments: &[String]| json!({"command": command, "args": arguments});
        let form = ServerForm::Json { key: "mcpServers", entry };
        let servers = Some(ServerList { file: root.join("settings.json"), form, holds_credentials: false });
        Some(AgentClient { servers, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "chat" | "chat_document" => Box::new(chat::ChatReader::new(file, saved)),
            "logs" => Box::new(logs::reader()),
            "projects" => Box::new(projects::ProjectsReader::new(file)),
            "checkpoint" => Box::new(authored::checkpoint_reader(file)),
            "tool_output" => {
                let key = calls::output_key(&file.path).unwrap_or_else(|| file.path.clone());
                let session = key.strip_prefix("session-").and_then(|key| key.split('/').next());
                Box::new(WholeFileReader::new("tool_outputs", key.clone(), file).of_session(session))
            }
            "authored" => {
                let (stream, key) = place(&file.path, &NAMES);
                Box::new(WholeFileReader::new(stream, key, file))
            }
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        blocks::blocks(lines)
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        authored::record(stream, key, &NAMES, bytes)
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get_text("id").map(Into::into)
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::GeminiTape)
    }
}
