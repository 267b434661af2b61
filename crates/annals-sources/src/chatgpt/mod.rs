//! ChatGPT: conversations and account data, from exports and live from the user's browser.

mod assemble;
mod canvas;
mod content;
mod conversation;
mod extras;
mod files;
mod gizmos;
mod intake;
mod links;
mod listing;
mod live;
mod manifest;
mod metadata;
mod native;
mod nodes;
mod pages;
mod pointers;
mod records;
mod sidecar;
mod streams;
mod times;
mod tree;

use serde_json::{Map, Value, json};

use crate::home::kept::KeptReader;
use crate::import::captures;
use crate::json::{Json, Line};
use crate::{FileContext, Import, Live, Reader, Source};
use annals_core::{Block, Manifest};

pub struct ChatGpt;

impl Source for ChatGpt {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "conversation" => Box::new(conversation::ConversationReader::default()),
            "file" => Box::new(files::FileReader::default()),
            "listing" => Box::new(listing::ListingReader),
            "side" => Box::new(sidecar::reader()),
            _ => captures::reader(name, &file.path).unwrap_or_else(|| Box::new(KeptReader)),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| content::blocks(line.bytes())).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        match stream {
            "files" => Some(files::record(key, bytes)),
            "settings" => records::settings(key, bytes),
            "side_files" => Some(json!({"id": key, "content": parsed(bytes)})),
            "custom_gpts" => Some(gizmos::gpt_record(key, bytes)),
            "projects" => Some(gizmos::project_record(key, bytes)),
            "custom_instructions" => listing::instructions_record(key, bytes),
            "memories" => records::memory(key, bytes),
            "models" => records::model(key, bytes),
            "account" => records::account(key, bytes),
            "feedback" => records::feedback(key, bytes),
            "shared_conversations" => records::share(key, bytes),
            "canvas_documents" => records::canvas(key, bytes),
            "conversation_versions" => Some(metadata::version(key, bytes)),
            canvas::STREAM => canvas::record(key, bytes),
            _ => extras::record(stream, key, bytes),
        }
    }

    fn applies(&self, stream: &str, key: &str, session: &Value) -> bool {
        match stream {
            // A project or custom GPT is in effect in its own conversations.
            "projects" => session["project_id"] == key || session["gizmo_id"] == key,
            "custom_gpts" => session["gizmo_id"] == key,
            // What was written together, and what is done later, is in effect nowhere.
            "canvas_documents" | canvas::STREAM | "automations" => false,
            _ => true,
        }
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        native::native(bytes)
    }

    fn message_fields(&self, session: &str, bytes: &[u8]) -> Map<String, Value> {
        native::message_fields(session, bytes)
    }

    fn import(&self) -> Option<&'static dyn Import> {
        Some(&intake::Exports)
    }

    fn live(&self) -> Option<&'static dyn Live> {
        Some(&live::OwnPage)
    }
}

fn parsed(bytes: &[u8]) -> Value {
    Json::parse(bytes).map(Json::value).unwrap_or_default()
}
