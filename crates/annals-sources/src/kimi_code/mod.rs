//! Kimi Code: logs of agents, session cards, and the files that shape sessions.

mod blocks;
mod calls;
mod files;
mod footprint;
mod kinds;
mod manifest;
mod places;
mod sidecars;
mod tape;
mod transcript;

use serde_json::{Map, Value};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::home::places::{Names, place, record};
use crate::json::{Json, Line};
use crate::{AgentClient, FileContext, Home, Reader, Recorder, Settings, Source};
use annals_core::{Block, Manifest};

pub struct KimiCode;

const NAMES: Names =
    Names { folder: "/.kimi-code/", extensions: "plugins", extension_manifest: "/plugin.json" };

impl Source for KimiCode {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let root = settings.get("KIMI_CODE_HOME").map(Into::into);
        let root = root.or_else(|| settings.user_home().map(|user| user.join(".kimi-code")));
        root.into_iter().map(|root| Home { root, ..Home::default() }).collect()
    }

    /// Its servers are listed beside their headers, in a file that is never opened.
    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root = self.homes(settings).into_iter().next()?.root;
        Some(AgentClient { servers: None, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "transcript" => Box::new(transcript::TranscriptReader::new(file, saved)),
            "state" => Box::new(sidecars::StateReader::new(file)),
            "workspaces" => Box::new(sidecars::WorkspacesReader::new(file)),
            "tool_output" => {
                let key = places::output_key(&file.path).unwrap_or_else(|| file.path.clone());
                let session = places::place_of(&file.path);
                let session = session.map(|place| places::agent_session(place.session, place.agent));
                Box::new(WholeFileReader::new("tool_outputs", key, file).of_session(session.as_deref()))
            }
            "authored" => {
                let (stream, key) = place(&file.path, &NAMES);
                Box::new(WholeFileReader::new(stream, key, file))
            }
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(*line)).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        match stream {
            "projects" => Some(sidecars::workspaces(key, bytes)),
            _ => record(stream, key, &NAMES, bytes),
        }
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        let event = line.get("event").and_then(|event| event.get_text("stepUuid"));
        event.or_else(|| line.get_text("promptId")).map(Into::into)
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::KimiTape)
    }
}
