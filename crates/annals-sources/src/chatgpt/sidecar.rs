//! Records besides conversations: account, settings, feedback, shares, canvas documents, custom instructions.

use serde_json::Value;

use super::files::header_time;
use crate::import::captures::{Captures, header_verdict};
use crate::json::Line;
use crate::{Facts, Reader};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// Captures of one record. An older export that comes later is kept, and changes nothing.
#[derive(Default)]
pub struct SideReader {
    captures: Captures,
    newest: Option<Time>,
}

/// The streams that such records belong to.
const STREAMS: &[&str] = &[
    "account",
    "settings",
    "feedback",
    "shared_conversations",
    "canvas_documents",
    super::canvas::STREAM,
    "custom_instructions",
    "side_files",
];

impl Reader for SideReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else { return header_verdict() };
        let text = |name: &str| header.fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(stream) = STREAMS.iter().find(|stream| **stream == text("stream")) else {
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
            content: content(stream, bytes),
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

/// The same instructions since another moment are the same.
fn content(stream: &str, bytes: &[u8]) -> ContentKey {
    use crate::json::Json;
    match stream {
        "custom_instructions" => {
            let text = Json::parse(bytes).and_then(|json| json.get_text("text"));
            ContentKey::of(&[text.unwrap_or_default().as_bytes()])
        }
        _ => ContentKey::of(&[bytes]),
    }
}
