//! Outside connectors: the user's own programs that send records, one message per line.

mod manifest;
mod reader;

use serde_json::{Map, Value, json};

use crate::home::kept::KeptReader;
use crate::json::Line;
use crate::{FileContext, Reader, Source};
use annals_core::{Block, Manifest};

pub use reader::content_key;

pub struct OutsideConnectors;

impl Source for OutsideConnectors {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "wire" => Box::new(reader::WireReader::new(&file.path)),
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, _lines: &[Line<'_>]) -> Vec<Block> {
        Vec::new()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        let message: Value = serde_json::from_slice(bytes).ok()?;
        let (connector, _) = key.split_once('/')?;
        Some(match stream {
            "records" => json!({
                "id": key,
                "connector": connector,
                "stream": message["stream"],
                "key": message["key"],
                "emitted_at": message["emitted_at"],
                "data": message["data"],
            }),
            _ => json!({
                "id": key,
                "connector": connector,
                "stream": message["stream"],
                "schema": message["schema"],
            }),
        })
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, _bytes: &[u8]) -> Map<String, Value> {
        Map::new()
    }
}
