//! The archive itself as a source of records: what people arranged. It is no provider and not in the registry.

use serde_json::{Map, Value};

use crate::home::kept::KeptReader;
use crate::json::Line;
use crate::{FileContext, Reader, Source};
use annals_core::{Block, Coverage, Family, Field, Footprint, Manifest, Rows, Semantics, Stream, Surface};

pub struct Annals;

static MANIFEST: Manifest = Manifest {
    source: "annals",
    label: "annals",
    route: "annals",
    reader_version: 1,
    summary: "what people arranged in this archive",
    setup_hint: "run `annals star SESSION`",
    default_homes: &[],
    variables: &[],
    streams: STREAMS,
    searched: &[],
    footprint: Footprint {
        rules: &[],
        repository_rules: &[],
        otherwise: "nothing on disk is read; the archive has its records",
    },
    databases: &[],
    surface: &[Surface::collected(
        "stars, tags, names, notes, hidden marks and saved searches",
        "arrangement",
    )],
    bindings: &[],
    retention: None,
    resume_command: "",
};

const STREAMS: &[Stream] = &[Stream {
    name: "arrangement",
    what: "stars, tags, names, notes and hidden marks of sessions, messages and projects, and saved searches",
    family: Family::Authored,
    semantics: Semantics::MutableState,
    rows: Rows::Arrangement,
    cursor_field: "at",
    consent_time_field: Some("at"),
    coverage: Coverage::FullInventory,
    fields: &[
        Field::new("id", "string", "kind, what is arranged, field and tag"),
        Field::new("at", "string", "when it was said"),
        Field::new("kind", "string", "session, message, project or search"),
        Field::new("source", "string|null", "source of the session"),
        Field::new("target", "string", "id of the session, path of the project or name of the search"),
        Field::new("message_id", "string|null", "id of the message"),
        Field::new("field", "string", "star, tag, name, note, hidden or query"),
        Field::new("tag", "string|null", "the tag"),
        Field::new("value", "string|null", "the name, note or query; null once it is removed"),
    ],
}];

impl Source for Annals {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn reader(&self, _name: &str, _file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        Box::new(KeptReader)
    }

    fn line_blocks(&self, _lines: &[Line<'_>]) -> Vec<Block> {
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
