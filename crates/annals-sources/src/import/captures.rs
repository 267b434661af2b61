//! Reads captures of imports: a header with the origin, then the text.

use serde_json::Value;

use crate::json::{Json, Line};
use crate::{Facts, Reader};
use annals_core::{ContentKey, Document, Family, Field, Item, Span, Stream, Time, Verdict};

/// Where a text came from.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Hash of the container.
    pub container: String,
    pub member: String,
    pub captured_at: Option<Time>,
    /// All fields.
    pub fields: Value,
}

/// Distinguishes headers from texts, which alternate.
#[derive(Debug, Default)]
pub struct Captures {
    header: Option<Header>,
}

impl Captures {
    /// Returns `None` for a header, and the header for the text that follows it.
    pub fn next(&mut self, bytes: &[u8]) -> Option<Header> {
        if self.header.is_some() {
            return self.header.take();
        }
        let json = Json::parse(bytes);
        let text = |name: &str| json.and_then(|json| json.get_text(name)).unwrap_or_default().into_owned();
        self.header = Some(Header {
            container: text("container"),
            member: text("member"),
            captured_at: Time::parse(&text("captured_at")),
            fields: json.map(Json::value).unwrap_or_default(),
        });
        None
    }
}

/// The readers that every source with imports has: `import` and `aside`.
pub fn reader(name: &str, path: &str) -> Option<Box<dyn Reader>> {
    match name {
        "import" => Some(Box::new(ImportReader::new(path))),
        "aside" => Some(Box::new(AsideReader)),
        _ => None,
    }
}

pub fn header_verdict() -> Verdict {
    Verdict::Kept("capture header".into())
}

/// Reads the account of an import: what the container had, and how it was handled.
struct ImportReader {
    captures: Captures,
    key: String,
}

impl ImportReader {
    fn new(path: &str) -> ImportReader {
        let name = path.rsplit('/').next().unwrap_or(path);
        let key = name.split('.').next().unwrap_or(name).to_owned();
        ImportReader { captures: Captures::default(), key }
    }
}

impl Reader for ImportReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else { return header_verdict() };
        out.push(Item::Document(Document {
            stream: "imports",
            key: self.key.clone(),
            session: None,
            at: header.captured_at,
            span: Span { offset, length: bytes.len() as u64 },
            content: ContentKey::of(&[bytes]),
        }));
        Verdict::Kept("import".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Reads what no source took. It counts as unknown, so that the audit shows it.
struct AsideReader;

impl Reader for AsideReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        match line.json() {
            Some(_) => Verdict::Unknown("element of another kind".into()),
            None => Verdict::Malformed("not JSON".into()),
        }
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// The stream of import accounts.
pub const IMPORTS: Stream = Stream::mutable_records(
    "imports",
    "what was in each container that was imported, and what became of it",
    Family::Transcript,
    &[
        Field::new("id", "string", "hash of the container"),
        Field::new("name", "string", "name"),
        Field::new("kind", "string", "file, folder or zip"),
        Field::new(
            "members",
            "array",
            "each member: name, bytes, verdict, and what it is or why it was skipped",
        ),
        Field::new("problems", "array", "what could not be read, and parts that are missing"),
    ],
);
