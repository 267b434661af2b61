//! OpenCode: conversations in files and in databases, and the files that shape them.

mod authored;
mod blocks;
mod calls;
mod conversation;
mod files;
mod footprint;
mod grouping;
mod manifest;
mod row;
mod tape;
mod usage;

use serde_json::{Map, Value};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::json::{Json, Line};
use crate::{FileContext, Grouping, Home, Reader, Recorder, Settings, Source};
use annals_core::{Block, Manifest};

pub struct OpenCode;

impl Source for OpenCode {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    /// The folder with the data, and the one with the settings.
    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let user = settings.user_home();
        let folder = |variable: &str, default: &str| {
            let base = settings.get(variable).map(Into::into);
            base.or_else(|| user.as_ref().map(|user| user.join(default)))
                .map(|base: std::path::PathBuf| base.join("opencode"))
        };
        let data = folder("XDG_DATA_HOME", ".local/share");
        let config = settings.get("OPENCODE_CONFIG_DIR").map(Into::into);
        let config = config.or_else(|| folder("XDG_CONFIG_HOME", ".config"));
        let home = |root: Option<std::path::PathBuf>, is_addition: bool| {
            root.map(|root| Home { root, is_addition, ..Home::default() })
        };
        [home(data, false), home(config, true)].into_iter().flatten().collect()
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "conversation" => Box::new(conversation::ConversationReader::new(file, saved)),
            "project" => {
                let name = file.path.rsplit('/').next().unwrap_or_default();
                // The database may have the same project in another state.
                let key = match name.strip_suffix(".json") {
                    Some(name) => format!("files/{name}"),
                    None => name.to_owned(),
                };
                Box::new(WholeFileReader::new("projects", key, file))
            }
            "tool_output" => {
                let key = file.path.rsplit('/').next().unwrap_or_default().to_owned();
                Box::new(WholeFileReader::new("tool_outputs", key, file))
            }
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
        let row = line.get("message").unwrap_or(line);
        row.get_text("id").map(Into::into)
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn is_co_author(&self, name: &str, address: &str) -> bool {
        name.eq_ignore_ascii_case("opencode") || address.ends_with("@opencode.ai")
    }

    fn grouping(&self) -> Option<&'static dyn Grouping> {
        Some(&grouping::OpenCodeFiles)
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::OpenCodeTape)
    }
}
