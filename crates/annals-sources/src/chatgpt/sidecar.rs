//! Records besides conversations: account, settings, feedback, shares, canvas documents, custom instructions.

use crate::import::sidecar::SidecarReader;
use crate::json::Json;
use annals_core::ContentKey;

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

pub fn reader() -> SidecarReader {
    SidecarReader::new(STREAMS, content)
}

/// The same instructions since another moment are the same.
fn content(stream: &str, bytes: &[u8]) -> ContentKey {
    match stream {
        "custom_instructions" => {
            let text = Json::parse(bytes).and_then(|json| json.get_text("text"));
            ContentKey::of(&[text.unwrap_or_default().as_bytes()])
        }
        _ => ContentKey::of(&[bytes]),
    }
}
