//! The manifest of outside connectors: their records in one stream, whatever they are about.

use annals_core::{Coverage, Family, Field, Footprint, Manifest, Rows, Semantics, Stream, Surface};

pub static MANIFEST: Manifest = Manifest {
    source: "outside_connectors",
    label: "Outside connectors",
    route: "outside-connectors",
    reader_version: 1,
    summary: "records of programs of your own, which speak the protocol of docs/protocol.md",
    setup_hint: "run `annals sync --connector PROGRAM` with a program that speaks the protocol of docs/protocol.md",
    default_homes: &[],
    variables: &[],
    streams: STREAMS,
    searched: &[],
    footprint: Footprint {
        rules: &[],
        repository_rules: &[],
        otherwise: "nothing on the disk is read for it: the program hands its records over",
    },
    databases: &[],
    surface: &[
        Surface::collected("records, each with its versions and its end", "records"),
        Surface::collected("schemas of streams", "schemas"),
    ],
    bindings: &["process"],
    retention: None,
    resume_command: "",
};

const STREAMS: &[Stream] = &[
    Stream {
        name: "records",
        what: "one row a record of any connector; `annals records CONNECTOR/STREAM` lists those of one stream",
        family: Family::Settings,
        semantics: Semantics::MutableState,
        rows: Rows::Records,
        primary_key: &["id"],
        cursor_field: "at",
        consent_time_field: Some("emitted_at"),
        coverage: Coverage::FullInventory,
        fields: &[
            Field::new("id", "string", "connector, stream and key"),
            Field::new("connector", "string", "who handed it over"),
            Field::new("stream", "string", "the connector's own name for what it is"),
            Field::new("key", "string", "the connector's own name for this one"),
            Field::new("emitted_at", "string|null", "when it was handed over"),
            Field::new("data", "object|null", "the record itself"),
        ],
    },
    Stream {
        name: "schemas",
        what: "what connectors declared about their streams",
        family: Family::Settings,
        semantics: Semantics::MutableState,
        rows: Rows::Records,
        primary_key: &["id"],
        cursor_field: "at",
        consent_time_field: None,
        coverage: Coverage::FullInventory,
        fields: &[
            Field::new("id", "string", "connector and stream"),
            Field::new("connector", "string", "who declared it"),
            Field::new("stream", "string", "the stream"),
            Field::new("schema", "object", "JSON Schema of the data"),
        ],
    },
];
