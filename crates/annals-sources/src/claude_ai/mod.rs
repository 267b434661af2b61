//! Claude.ai: conversations, projects and memories from data exports.

mod blocks;
mod conversation;
mod intake;
mod manifest;
mod records;

use serde_json::{Map, Value};

use crate::home::kept::KeptReader;
use crate::import::captures;
use crate::import::sidecar::SidecarReader;
use crate::json::Line;
use crate::{FileContext, Import, Reader, Source};
use annals_core::{Block, ContentKey, Manifest};

pub struct ClaudeAi;

/// Records that are members of an export, or elements of one.
const SIDES: &[&str] = &["projects", "memories", "account"];

impl Source for ClaudeAi {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "conversation" => Box::new(conversation::ConversationReader::default()),
            "side" => Box::new(SidecarReader::new(SIDES, |_, bytes| ContentKey::of(&[bytes]))),
            _ => captures::reader(name, &file.path).unwrap_or_else(|| Box::new(KeptReader)),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(*line)).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        records::record(stream, key, bytes)
    }

    fn applies(&self, stream: &str, key: &str, session: &Value) -> bool {
        // A project is in effect in its own conversations.
        stream != "projects" || session["project_id"] == key
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn import(&self) -> Option<&'static dyn Import> {
        Some(&intake::Exports)
    }
}
