//! What a source declares: streams with schemas, files it may and must not read, settings.

use serde::Serialize;
use serde::ser::SerializeStruct;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// Constant data of one source; `annals manifest SOURCE` prints it.
#[derive(Debug, Serialize)]
pub struct Manifest {
    pub source: &'static str,
    pub label: &'static str,
    /// Its name in URLs, as in `/api/v1/<route>/sessions`.
    pub route: &'static str,
    /// Incremented when its readers produce other rows from the same bytes.
    pub reader_version: u32,
    pub summary: &'static str,
    pub setup_hint: &'static str,
    pub default_homes: &'static [&'static str],
    pub variables: &'static [Variable],
    pub streams: &'static [Stream],
    /// Streams with searchable text, besides conversations, authored items and memory.
    pub searched: &'static [&'static str],
    pub footprint: Footprint,
    pub databases: &'static [Database],
    /// Everything the platform offers, and how annals covers it.
    pub surface: &'static [Surface],
    pub bindings: &'static [&'static str],
    /// How long the client keeps transcripts before it deletes them.
    pub retention: Option<Retention>,
    /// The command that resumes a session in the client; `{id}` represents the session.
    pub resume_command: &'static str,
}

impl Manifest {
    pub fn stream(&self, name: &str) -> Option<&'static Stream> {
        self.streams.iter().find(|stream| stream.name == name)
    }
}

/// One feature of the platform.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Surface {
    pub item: &'static str,
    pub state: SurfaceState,
    /// Where it is found here; empty if it is not covered.
    pub stream: &'static str,
    pub reason: &'static str,
    /// The document of live collection that makes it complete.
    #[serde(skip)]
    pub live: Option<&'static str>,
}

impl Surface {
    pub const fn collected(item: &'static str, stream: &'static str) -> Surface {
        Surface { item, state: SurfaceState::Collected, stream, reason: "", live: None }
    }

    pub const fn partial(item: &'static str, stream: &'static str, reason: &'static str) -> Surface {
        Surface { item, state: SurfaceState::Partial, stream, reason, live: None }
    }

    /// Partial until live collection has fetched the document.
    pub const fn live(
        item: &'static str,
        stream: &'static str,
        document: &'static str,
        reason: &'static str,
    ) -> Surface {
        Surface { item, state: SurfaceState::Partial, stream, reason, live: Some(document) }
    }

    pub const fn omitted(item: &'static str, reason: &'static str) -> Surface {
        Surface { item, state: SurfaceState::OmittedOnPurpose, stream: "", reason, live: None }
    }

    pub const fn once_collected(self) -> Surface {
        Surface::collected(self.item, self.stream)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SurfaceState {
    Collected,
    Partial,
    OmittedOnPurpose,
}

impl SurfaceState {
    pub fn label(self) -> &'static str {
        match self {
            SurfaceState::Collected => "collected",
            SurfaceState::Partial => "partial",
            SurfaceState::OmittedOnPurpose => "omitted on purpose",
        }
    }
}

/// A settings file of the home, and the key in it that contains a number of days.
#[derive(Debug, Serialize)]
pub struct Retention {
    pub file: &'static str,
    pub key: &'static str,
    pub default_days: i64,
}

/// An environment variable of the client, which is also a key of config.toml.
#[derive(Debug, Serialize)]
pub struct Variable {
    pub name: &'static str,
    pub config_key: &'static str,
    pub what: &'static str,
    pub default: &'static str,
    pub kind: ValueKind,
}

/// The type of a setting. In config.toml each may also be written as a string, as in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    Text,
    /// Separated by commas; an array in config.toml.
    List,
    /// One per line; an array in config.toml.
    Lines,
    /// `yes` or `no`; true or false in config.toml.
    Boolean,
}

/// Path patterns relative to the home; the first match decides.
#[derive(Debug, Serialize)]
pub struct Footprint {
    pub rules: &'static [Rule],
    /// What may be read in repositories that sessions ran in, relative to their root; nothing else is read there.
    pub repository_rules: &'static [Rule],
    pub otherwise: &'static str,
}

/// The kind of files that no rule names.
pub const UNKNOWN_FILES: &str = "unknown";

#[derive(Debug, Serialize)]
pub struct Rule {
    pub pattern: &'static str,
    pub treatment: Treatment,
    /// The kind of file, as the audit calls it.
    pub store: &'static str,
    pub reader: Option<&'static str>,
    pub framing: Framing,
    pub encoding: Encoding,
    /// Its records end when they vanish from it, or when it vanishes from the home.
    pub mutable: bool,
    pub why: &'static str,
}

impl Rule {
    /// A file of lines that is appended to, split by a reader.
    pub const fn lines(
        pattern: &'static str,
        store: &'static str,
        reader: &'static str,
        why: &'static str,
    ) -> Rule {
        let mut rule = Rule::new(Treatment::Capture, pattern, store, why);
        rule.reader = Some(reader);
        rule.framing = Framing::Lines;
        rule
    }

    /// A file that a reader processes as a whole.
    pub const fn read(
        pattern: &'static str,
        store: &'static str,
        reader: &'static str,
        why: &'static str,
    ) -> Rule {
        let mut rule = Rule::new(Treatment::Capture, pattern, store, why);
        rule.reader = Some(reader);
        rule
    }

    /// A file whose bytes are kept.
    pub const fn keep(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
        Rule::new(Treatment::Capture, pattern, store, why)
    }

    pub const fn database(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
        Rule::new(Treatment::Database, pattern, store, why)
    }

    /// A file that no rule before this one names.
    pub const fn unknown(pattern: &'static str, why: &'static str) -> Rule {
        Rule::new(Treatment::Unknown, pattern, UNKNOWN_FILES, why)
    }

    pub const fn left_out(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
        Rule::new(Treatment::LeftOut, pattern, store, why)
    }

    pub const fn never(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
        Rule::new(Treatment::Never, pattern, store, why)
    }

    const fn new(
        treatment: Treatment,
        pattern: &'static str,
        store: &'static str,
        why: &'static str,
    ) -> Rule {
        Rule {
            pattern,
            treatment,
            store,
            reader: None,
            framing: Framing::Whole,
            encoding: Encoding::Plain,
            mutable: false,
            why,
        }
    }

    /// A file that a person or an assistant wrote: a record with versions and an end.
    pub const fn authored(
        pattern: &'static str,
        store: &'static str,
        reader: &'static str,
        why: &'static str,
    ) -> Rule {
        let mut rule = Rule::read(pattern, store, reader, why);
        rule.mutable = true;
        rule
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// The bytes are kept, with versions.
    Capture,
    /// Kept when it is a small text whose name does not suggest credentials; else reported, and not opened.
    Unknown,
    /// Read through the declared database, row by row; the file itself is not kept.
    Database,
    /// Left out on purpose.
    LeftOut,
    /// Never opened.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// One object per line, appended to.
    Lines,
    /// JSON texts, each terminated by the byte 0x1E, which JSON cannot contain; appended to by annals itself.
    Sequence,
    /// Read and replaced as a whole.
    Whole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    Plain,
    Zstd,
}

/// A table of an SQLite database of the client, its rows kept as documents.
#[derive(Debug, Serialize)]
pub struct Database {
    pub pattern: &'static str,
    pub table: &'static str,
    /// Several columns are separated by commas.
    pub key_column: &'static str,
    /// Empty when the table is not read.
    pub reader: &'static str,
    /// The state of the database itself: kept with its schema, so that a restored database opens.
    pub is_state: bool,
    /// Which files that match the pattern are read.
    pub files: DatabaseFiles,
    /// Tables whose rows with the same key are one document of lines; empty if each row is a document.
    pub lines: &'static [LineTable],
    pub why: &'static str,
}

/// Which of several databases that match a pattern have the client's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseFiles {
    /// The one with the highest number in its name replaces the others.
    Newest,
    Every,
}

/// A table whose rows are lines of documents: `{"table": row, "child": [rows]}`.
#[derive(Debug, Serialize)]
pub struct LineTable {
    pub table: &'static str,
    /// The column with the key of the document.
    pub document_column: &'static str,
    pub key_column: &'static str,
    /// The order of the lines, and the columns that change with a row.
    pub order: &'static str,
    pub changed_column: &'static str,
    pub children: &'static [ChildTable],
}

/// A table whose rows are on the lines of other rows.
#[derive(Debug, Serialize)]
pub struct ChildTable {
    pub table: &'static str,
    pub document_column: &'static str,
    /// The column with the key of the row that they belong to.
    pub parent_column: &'static str,
    pub order: &'static str,
    pub changed_column: &'static str,
}

impl Database {
    /// A table whose rows are documents, in the newest file that matches the pattern.
    pub const fn rows(
        pattern: &'static str,
        table: &'static str,
        key_column: &'static str,
        reader: &'static str,
        why: &'static str,
    ) -> Database {
        let (is_state, files, lines) = (false, DatabaseFiles::Newest, &[] as &[LineTable]);
        Database { pattern, table, key_column, reader, is_state, files, lines, why }
    }

    /// Tables whose rows with the same key are one document of lines.
    pub const fn documents(
        pattern: &'static str,
        name: &'static str,
        reader: &'static str,
        lines: &'static [LineTable],
        why: &'static str,
    ) -> Database {
        Database { lines, ..Database::rows(pattern, name, "", reader, why) }
    }

    /// A table whose rows are not kept, and the reason.
    pub const fn not_read(pattern: &'static str, table: &'static str, why: &'static str) -> Database {
        Database::rows(pattern, table, "", "", why)
    }

    /// A table in which the client notes the state of the database, such as its migrations.
    pub const fn state(pattern: &'static str, table: &'static str, why: &'static str) -> Database {
        Database { is_state: true, ..Database::not_read(pattern, table, why) }
    }

    /// In every file that matches the pattern.
    pub const fn in_every_file(self) -> Database {
        Database { files: DatabaseFiles::Every, ..self }
    }

    pub fn is_read(&self) -> bool {
        !self.reader.is_empty()
    }

    /// The tables whose rows it keeps or names.
    pub fn tables(&self) -> Vec<&'static str> {
        if self.lines.is_empty() {
            return vec![self.table];
        }
        let children = |line: &LineTable| line.children.iter().map(|child| child.table).collect::<Vec<_>>();
        self.lines.iter().flat_map(|line| [vec![line.table], children(line)].concat()).collect()
    }
}

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
