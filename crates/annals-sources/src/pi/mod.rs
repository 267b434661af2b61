//! Pi: sessions of the coding agent, and the files that shape them.

mod authored;
mod blocks;
mod files;
mod footprint;
mod manifest;
mod tape;
mod transcript;

use serde_json::{Map, Value};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::json::{Json, Line};
use crate::{AgentClient, FileContext, Home, LineIds, Reader, Recorder, Settings, Source};
use annals_core::{Block, Manifest};

pub struct Pi;

impl Source for Pi {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let root = settings.get("PI_CODING_AGENT_DIR").map(Into::into);
        let root = root.or_else(|| settings.user_home().map(|user| user.join(".pi/agent")));
        root.into_iter().map(|root| Home { root, ..Home::default() }).collect()
    }

    /// The client has no MCP servers, only skills.
    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root = self.homes(settings).into_iter().next()?.root;
        Some(AgentClient { servers: None, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "transcript" => Box::new(transcript::TranscriptReader::new(file, saved)),
            "authored" => {
                let (stream, key) = authored::place(&file.path);
                Box::new(WholeFileReader::new(stream, key, file))
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
        let line = Json::parse(line)?;
        let response = line.get("message").and_then(|message| message.get_text("responseId"));
        response.or_else(|| line.get_text("id")).map(Into::into)
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

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::PiTape)
    }
}
