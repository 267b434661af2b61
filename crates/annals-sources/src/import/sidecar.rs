//! Records of exports besides conversations: each is a file of the archive that grows with its captures.

use serde_json::{Map, Value};

use super::captures::{Captures, header_verdict};
use crate::json::Line;
use crate::{Capture, ElementBody, Facts, Reader, path_part};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// A capture of a record of a stream, read by `SidecarReader`. `at` is when the record was as it is.
pub fn sidecar<'e>(stream: &'static str, key: &str, at: Option<Time>, element: &'e [u8]) -> Capture<'e> {
    let mut header =
        Map::from_iter([("stream".to_owned(), Value::from(stream)), ("key".to_owned(), Value::from(key))]);
    header.extend(at.map(|at| ("at".to_owned(), Value::from(at.rfc3339()))));
    Capture {
        path: format!("{stream}/{}.json-seq", path_part(key)),
        store: "side files",
        reader: "side",
        header,
        body: ElementBody::Text(element.into()),
        counts: false,
    }
}

/// Captures of one record. An older export that comes later is kept, and changes nothing.
pub struct SidecarReader {
    captures: Captures,
    newest: Option<Time>,
    streams: &'static [&'static str],
    /// Equal for records that say the same.
    content: fn(&str, &[u8]) -> ContentKey,
}

impl SidecarReader {
    pub fn new(streams: &'static [&'static str], content: fn(&str, &[u8]) -> ContentKey) -> SidecarReader {
        SidecarReader { captures: Captures::default(), newest: None, streams, content }
    }
}

impl Reader for SidecarReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else { return header_verdict() };
        let text = |name: &str| header.fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(stream) = self.streams.iter().find(|stream| **stream == text("stream")) else {
            return Verdict::Unknown("record of no stream".into());
        };
        let at = header_time(&header.fields, header.captured_at);
        if at < self.newest {
            return Verdict::Kept(format!("older {stream}"));
        }
        self.newest = at;
        out.push(Item::Document(Document {
            stream,
            key: text("key").to_owned(),
            session: None,
            at,
            span: Span { offset, length: bytes.len() as u64 },
            content: (self.content)(stream, bytes),
        }));
        Verdict::Kept((*stream).into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Moments of such records: what the header says, else when they were captured.
fn header_time(header: &Value, captured_at: Option<Time>) -> Option<Time> {
    header.get("at").and_then(Value::as_str).and_then(Time::parse).or(captured_at)
}
