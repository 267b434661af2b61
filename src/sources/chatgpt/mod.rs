//! ChatGPT: conversations and what is beside them, from exports that the owner has.

mod files;
mod intake;
mod manifest;
mod nodes;
mod side;
mod times;

use serde_json::{Map, Value};

use super::kept::KeptReader;
use super::{FileContext, Home, Import, Reader, Settings, Source, captures};
use crate::model::{Block, Manifest};

pub struct ChatGpt;

impl Source for ChatGpt {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, _settings: &dyn Settings) -> Vec<Home> {
        Vec::new()
    }

    fn unit(&self, path: &str) -> String {
        path.to_owned()
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "file" => Box::new(files::FileReader::new(file)),
            "side" => Box::new(side::SideReader::default()),
            _ => captures::reader(name, &file.path).unwrap_or_else(|| Box::new(KeptReader)),
        }
    }

    fn blocks(&self, _lines: &[&[u8]]) -> Vec<Block> {
        Vec::new()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        (stream == "files").then(|| files::record(key, bytes))
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, _bytes: &[u8]) -> Map<String, Value> {
        Map::new()
    }

    fn import(&self) -> Option<&'static dyn Import> {
        Some(&intake::Exports)
    }
}
