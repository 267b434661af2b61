//! The manifest of outside connectors: all their records in one stream.

use annals_core::{Coverage, Family, Field, Footprint, Manifest, Rows, Semantics, Stream, Surface};

pub static MANIFEST: Manifest = Manifest {
    source: "outside_connectors",
    label: "Outside connectors",
    route: "outside-connectors",
    reader_version: 3,
    summary: "records of your own programs that speak the protocol in docs/protocol.md",
    setup_hint: "run `annals sync --connector PROGRAM` with a program that speaks the protocol in docs/protocol.md",
    default_homes: &[],
    variables: &[],
    streams: STREAMS,
    searched: &["records"],
    footprint: Footprint {
        rules: &[],
        repository_rules: &[],
        otherwise: "nothing on disk is read; the program sends its records",
    },
    databases: &[],
    surface: &[
        Surface::collected("records with their versions and deletions", "records"),
        Surface::collected("schemas of streams", "schemas"),
    ],
    bindings: &["process"],
    retention: None,
    resume_command: "",
};

const STREAMS: &[Stream] = &[
    Stream {
        name: "records",
        what: "one row per record of any connector; `annals records CONNECTOR/STREAM` lists those of one stream",
        family: Family::Settings,
        semantics: Semantics::MutableState,
        rows: Rows::Records,
        cursor_field: "at",
        consent_time_field: Some("emitted_at"),
        coverage: Coverage::FullInventory,
        fields: &[
            Field::new("id", "string", "connector, stream and key"),
            Field::new("connector", "string", "name of the connector"),
            Field::new("stream", "string", "stream of the connector"),
            Field::new("key", "string", "key of the record"),
            Field::new("emitted_at", "string|null", "when it was sent"),
            Field::new("data", "object|null", "the record"),
        ],
    },
    Stream {
        name: "schemas",
        what: "schemas declared by connectors",
        family: Family::Settings,
        semantics: Semantics::MutableState,
        rows: Rows::Records,
        cursor_field: "at",
        consent_time_field: None,
        coverage: Coverage::FullInventory,
        fields: &[
            Field::new("id", "string", "connector and stream"),
            Field::new("connector", "string", "name of the connector"),
            Field::new("stream", "string", "the stream"),
            Field::new("schema", "object", "JSON Schema of the data"),
        ],
    },
];
