//! What a source declares: its streams, the files it may and must not read, settings.

use serde::Serialize;
use utoipa::ToSchema;

use crate::stream::Stream;

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
