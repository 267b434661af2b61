//! OpenAI API: known by name; there are no readers for it here.

mod manifest;

use serde_json::{Map, Value};

use super::kept::KeptReader;
use super::{FileContext, Home, Reader, Settings, Source};
use crate::model::{Block, Manifest};

pub struct OpenAiApi;

impl Source for OpenAiApi {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, _settings: &dyn Settings) -> Vec<Home> {
        Vec::new()
    }

    fn unit(&self, path: &str) -> String {
        path.to_owned()
    }

    fn reader(&self, _name: &str, _file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        Box::new(KeptReader)
    }

    fn blocks(&self, _lines: &[&[u8]]) -> Vec<Block> {
        Vec::new()
    }

    fn record(&self, _stream: &str, _key: &str, _bytes: &[u8]) -> Option<Value> {
        None
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, _bytes: &[u8]) -> Map<String, Value> {
        Map::new()
    }
}
