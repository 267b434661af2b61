//! Streams: what records of a source have, as a JSON Schema.

use serde::Serialize;
use serde::ser::SerializeStruct;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

#[derive(Debug)]
pub struct Stream {
    pub name: &'static str,
    pub what: &'static str,
    pub family: Family,
    pub semantics: Semantics,
    pub rows: Rows,
    pub cursor_field: &'static str,
    pub consent_time_field: Option<&'static str>,
    pub coverage: Coverage,
    /// Those of `data`, besides the ones that all streams of this kind have.
    pub fields: &'static [Field],
}

/// Incremented when records get another shape.
const RECORD_VERSION: u32 = 2;

impl Serialize for Stream {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Stream", 10)?;
        out.serialize_field("name", self.name)?;
        out.serialize_field("what", self.what)?;
        out.serialize_field("family", &self.family)?;
        out.serialize_field("semantics", &self.semantics)?;
        out.serialize_field("version", &RECORD_VERSION)?;
        out.serialize_field("primary_key", self.key_fields())?;
        out.serialize_field("cursor_field", self.cursor_field)?;
        out.serialize_field("consent_time_field", &self.consent_time_field)?;
        out.serialize_field("coverage", &self.coverage)?;
        out.serialize_field("schema", &self.schema())?;
        out.end()
    }
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    /// JSON types, for example `string` or `string|null`.
    pub kind: &'static str,
    pub what: &'static str,
    /// Set if lists contain a preview: how to get the complete value.
    pub preview: Option<&'static str>,
    /// The normalized field it is taken from, if the client uses another name.
    pub from: &'static str,
}

const RECORD_FIELDS: &[Field] = &[
    Field::new("id", "string", "key of the record"),
    Field::new("at", "string|null", "time of the record"),
    Field::new("native_id", "string|integer|null", "the client's own id, where it is not unique"),
];

const MESSAGE_FIELDS: &[Field] = &[
    Field::new("parent_id", "string|null", "message before it, if the client says so"),
    Field::new("call_ids", "array", "ids of the calls in it"),
    Field::new("line_ids", "array", "the client's ids of all lines that it was written in"),
];

const CALL_FIELDS: &[Field] = &[
    Field::new("message_id", "string|null", "message that it is part of"),
    Field::new("line_ids", "array", "the client's ids of the lines with its result"),
];

impl Stream {
    /// The fields of `data` that make a record unique.
    pub fn key_fields(&self) -> &'static [&'static str] {
        match self.rows {
            // A fork has copies of its parent's.
            Rows::Messages | Rows::Calls => &["session_id", "id"],
            Rows::Sessions | Rows::Agents | Rows::Records | Rows::Arrangement => &["id"],
        }
    }

    /// All fields of `data`.
    pub fn declared(&self) -> impl Iterator<Item = &'static Field> {
        let common = match self.rows {
            Rows::Messages => MESSAGE_FIELDS,
            Rows::Calls => CALL_FIELDS,
            Rows::Records => RECORD_FIELDS,
            Rows::Sessions | Rows::Agents | Rows::Arrangement => &[],
        };
        let own = self.fields;
        own.iter().chain(common.iter().filter(|field| !own.iter().any(|own| own.name == field.name)))
    }

    /// The fields as JSON Schema 2020-12.
    pub fn schema(&self) -> Value {
        let mut properties = Map::new();
        for field in self.declared() {
            let kinds: Vec<&str> = field.kind.split('|').collect();
            let mut property = match kinds.as_slice() {
                [kind] => json!({"type": kind, "description": field.what}),
                many => json!({"type": many, "description": field.what}),
            };
            if let (Some(preview), Value::Object(object)) = (field.preview, &mut property) {
                object.insert("x_preview".into(), Value::from(preview));
            }
            properties.insert(field.name.into(), property);
        }
        let required = self.declared().filter(|field| !field.kind.contains("null"));
        let required: Vec<&str> = required.map(|field| field.name).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": true,
        })
    }

    /// Records with versions and an end, kept complete.
    pub const fn mutable_records(
        name: &'static str,
        what: &'static str,
        family: Family,
        fields: &'static [Field],
    ) -> Stream {
        Stream {
            name,
            what,
            family,
            semantics: Semantics::MutableState,
            rows: Rows::Records,
            cursor_field: "at",
            consent_time_field: Some("at"),
            coverage: Coverage::FullInventory,
            fields,
        }
    }
}

impl Field {
    pub const fn new(name: &'static str, kind: &'static str, what: &'static str) -> Field {
        Field { name, kind, what, preview: None, from: name }
    }

    /// A field of which lists show the start; `whole` says how to get the rest.
    pub const fn preview(
        name: &'static str,
        kind: &'static str,
        what: &'static str,
        whole: &'static str,
    ) -> Field {
        Field { name, kind, what, preview: Some(whole), from: name }
    }

    /// The client's name for something that every source has.
    pub const fn alias(
        name: &'static str,
        from: &'static str,
        kind: &'static str,
        what: &'static str,
    ) -> Field {
        Field { name, kind, what, preview: None, from }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Transcript,
    Authored,
    Memory,
    Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    AppendOnly,
    MutableState,
}

/// Where the rows of a stream are stored: the normalized transcript, or the plain record table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Sessions,
    /// Sessions that were started by other sessions.
    Agents,
    Messages,
    Calls,
    Records,
    /// What people arranged.
    Arrangement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Every line of every file is counted: kept, unknown, malformed or skipped with a reason.
    FullInventory,
}
