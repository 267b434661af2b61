//! Reads the output of a connector: schemas and records, one message per line.

use serde_json::Value;

use crate::json::Line;
use crate::{Facts, Reader};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// The folder of a file is its connector's name.
pub struct WireReader {
    connector: String,
}

impl WireReader {
    pub fn new(path: &str) -> WireReader {
        WireReader { connector: path.split('/').next().unwrap_or(path).to_owned() }
    }
}

impl Reader for WireReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
            return Verdict::Malformed("not JSON".into());
        };
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let connector = &self.connector;
        let (stream, key, content) = match text("type") {
            "RECORD" => {
                let key = format!("{connector}/{}/{}", text("stream"), text("key"));
                ("records", key, &message["data"])
            }
            "SCHEMA" => ("schemas", format!("{connector}/{}", text("stream")), &message["schema"]),
            "" => return Verdict::Malformed("no message".into()),
            other if is_kind(other) => return Verdict::Unknown(other.to_owned()),
            _ => return Verdict::Unknown("message of an odd kind".into()),
        };
        let at = Time::parse(text("emitted_at"));
        if text("op") == "delete" {
            out.push(Item::Ended { stream, key, at });
            return Verdict::Kept("deletion".into());
        }
        out.push(Item::Document(Document {
            stream,
            key,
            session: None,
            at,
            span: Span { offset, length: bytes.len() as u64 },
            content: content_key(content),
        }));
        Verdict::Kept(if stream == "records" { "record" } else { "schema" }.into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Whether a type from a line may be used as a name in counts; a line can contain anything.
fn is_kind(name: &str) -> bool {
    name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// The key of a version: equal data is the same version, however it is formatted.
pub fn content_key(data: &Value) -> ContentKey {
    ContentKey::of(&[data.to_string().as_bytes()])
}
