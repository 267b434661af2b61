//! Qwen Code: transcripts of every version, sub-agents, prompt log, memories and authored files.

mod blocks;
mod footprint;
mod kinds;
mod manifest;
mod results;
mod sidecars;
mod tape;
mod transcript;

use serde_json::{Map, Value, json};

use crate::gemini_family::{authored, calls, chat, logs, projects};
use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::home::places::{Names, place};
use crate::json::{Json, Line};
use crate::{
    AgentClient, FileContext, Home, LineIds, Reader, Recorder, ServerForm, ServerList, Settings, Source,
};
use annals_core::{Block, Manifest};

pub struct QwenCode;

const NAMES: Names =
    Names { folder: "/.qwen/", extensions: "extensions", extension_manifest: "/qwen-extension.json" };

impl Source for QwenCode {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let root = settings.get("QWEN_HOME").map(Into::into);
        let root = root.or_else(|| settings.user_home().map(|user| user.join(".qwen")));
        root.into_iter().map(|root| Home { root, ..Home::default() }).collect()
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root = self.homes(settings).into_iter().next()?.root;
        let entry = |command: &str, arguments: &[String]| json!({"command": command, "args": arguments});
        let form = ServerForm::Json { key: "mcpServers", entry };
        let servers = Some(ServerList { file: root.join("settings.json"), form, holds_credentials: true });
        Some(AgentClient { servers, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "transcript" => Box::new(transcript::TranscriptReader::new(file, saved)),
            "chat_document" => Box::new(chat::ChatReader::new(file, saved)),
            "agent_card" => Box::new(sidecars::AgentCardReader::new(file)),
            "runs" => Box::new(sidecars::RunsReader),
            "logs" => Box::new(logs::reader()),
            "projects" => Box::new(projects::ProjectsReader::new(file)),
            "checkpoint" => Box::new(authored::checkpoint_reader(file)),
            "tool_output" => {
                let key = calls::output_key(&file.path).unwrap_or_else(|| file.path.clone());
                Box::new(WholeFileReader::new("tool_outputs", key, file))
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
        match stream {
            "client_runs" => sidecars::run(key, bytes),
            _ => authored::record(stream, key, &NAMES, bytes),
        }
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        line.get_text("uuid").or_else(|| line.get_text("id")).map(Into::into)
    }

    fn names_lines(&self) -> bool {
        true
    }

    fn line_ids(&self, line: &[u8]) -> Option<LineIds> {
        let line = Json::parse(line)?.object();
        let parent = line.get_text("parentUuid").map(Into::into);
        Some(LineIds { id: line.get_text("uuid")?.into_owned(), parent })
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::QwenTape)
    }
}
