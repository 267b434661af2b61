//! Metadata of files in conversations, merged from every reference to them.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::listing::{FILE_LIBRARY, GENERATED_IMAGES, GPTS, PROJECTS};
use super::pointers::{pointed, sandbox_id};
use super::times::{moment, moment_of, time_value};
use super::{gizmos, listing, pointers};
use crate::import::captures::{Captures, header_verdict};
use crate::json::{Json, Line, unescape};
use crate::{Capture, ElementBody, Facts, Reader, path_part};
use annals_core::{ContentKey, Document, Item, Span, Verdict};

/// A place that speaks of a file.
#[derive(Debug, Clone)]
pub struct Note {
    pub id: String,
    pub place: &'static str,
    pub conversation: Option<String>,
    pub message: Option<String>,
    /// The custom GPT or project that has it.
    pub gizmo: Option<String>,
}

/// Whether the bytes of a file are in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Yes,
    No,
}

pub fn asset_path(id: &str) -> String {
    format!("assets/{}", path_part(id))
}

impl Note {
    fn new(id: String, place: &'static str) -> Note {
        Note { id, place, conversation: None, message: None, gizmo: None }
    }

    pub fn capture(self, body: Cow<'_, [u8]>) -> Capture<'_> {
        let mut header = Map::from_iter([
            ("key".to_owned(), Value::from(self.id.as_str())),
            ("place".to_owned(), Value::from(self.place)),
        ]);
        header.extend(self.conversation.map(|id| ("conversation_id".to_owned(), Value::from(id))));
        header.extend(self.message.map(|id| ("message_id".to_owned(), Value::from(id))));
        header.extend(self.gizmo.map(|id| ("gizmo_id".to_owned(), Value::from(id))));
        Capture {
            path: format!("files/{}.json-seq", path_part(&self.id)),
            store: "notes about files",
            reader: "file",
            header,
            body: ElementBody::Text(body),
            counts: false,
        }
    }
}

/// A record of the export's list of files.
pub fn of_library(record: Json<'_>) -> Option<Note> {
    let id = record.get_text("file_id").or_else(|| record.get("id")?.get_text("id"))?;
    let mut note = Note::new(id.into_owned(), "library");
    let text = |name: &str| record.get_text(name).map(|text| text.into_owned());
    note.conversation = text("origination_thread_id").or_else(|| text("initiating_conversation_id"));
    note.message = text("origination_message_id");
    Some(note)
}

/// `"file-XXXX.dat": "name"`. Names may hold folders of somebody's machine: the last part is enough.
pub fn of_name_map(member: &[u8], name: Json<'_>) -> Option<(Note, Vec<u8>)> {
    let member = unescape(member);
    let id = id_in_name(&member).or_else(|| member.strip_suffix(".dat"))?;
    let name = name.text()?;
    let last = name.rsplit(['/', '\\']).next().unwrap_or(&name);
    let body = serde_json::to_vec(&json!({"member": member, "name": last})).ok()?;
    Some((Note::new(id.to_owned(), "name"), body))
}

/// A file of the export.
pub fn of_member(name: &str, size: u64, head: &[u8], kept: Kept) -> Option<(Note, Vec<u8>)> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let id = id_in_name(base).unwrap_or(base.strip_suffix(".dat").unwrap_or(base));
    let own = base.strip_prefix(id).map(|rest| rest.trim_start_matches('-')).unwrap_or(base);
    let own = Some(own).filter(|own| !own.is_empty() && !own.starts_with('.'));
    let mut body = json!({"member": name, "size": size, "name": own, "mime_type": media_type(head, base)});
    if kept == Kept::Yes {
        body["archived_as"] = Value::from(asset_path(id));
    }
    Some((Note::new(id.to_owned(), "member"), serde_json::to_vec(&body).ok()?))
}

/// The bytes of a file that was requested by id.
pub fn of_bytes(id: &str, bytes: &[u8]) -> Option<(Note, Vec<u8>)> {
    let kind = media_type(&bytes[..bytes.len().min(64)], id);
    let body = json!({"member": id, "size": bytes.len(), "mime_type": kind, "archived_as": asset_path(id)});
    Some((Note::new(id.to_owned(), "member"), serde_json::to_vec(&body).ok()?))
}

/// Attachments of a message, and pointers in its parts. `node` is what messages are known by.
pub fn of_message<'a>(conversation: &str, node: &str, message: Json<'a>) -> Vec<(Note, Cow<'a, [u8]>)> {
    let note = |id: String, place: &'static str| Note {
        conversation: Some(conversation.to_owned()),
        message: Some(node.to_owned()).filter(|node| !node.is_empty()),
        ..Note::new(id, place)
    };
    let mut notes = Vec::new();
    let attachments = message.get("metadata").and_then(|metadata| metadata.get("attachments"));
    for attachment in attachments.into_iter().flat_map(Json::items) {
        let id = attachment.get_text("id").filter(|id| !id.is_empty());
        notes.extend(id.map(|id| (note(id.into_owned(), "attachment"), attachment.bytes().into())));
    }
    let content = |name: &str| message.get("content").and_then(|content| content.get(name));
    let metadata = |name: &str| message.get("metadata").and_then(|metadata| metadata.get(name));
    for pointed in pointed(content, metadata) {
        notes.push((note(pointed.id, "pointer"), pointed.object.bytes().into()));
    }
    let author = message.get("author").and_then(|author| author.get_text("role"));
    for text in pointers::texts(content).iter().filter(|_| author.as_deref() == Some("assistant")) {
        for path in pointers::sandbox_paths(text) {
            let name = path.rsplit('/').next().filter(|name| !name.is_empty());
            let body = json!({"name": name, "sandbox_path": path}).to_string().into_bytes();
            notes.push((note(sandbox_id(conversation, node, &path), "sandbox"), body.into()));
        }
    }
    notes
}

/// Files that a page or a detail of a listing speaks of.
pub fn of_listing(name: &str, body: &str) -> Vec<Capture<'static>> {
    let Some(json) = Json::parse(body.as_bytes()) else { return Vec::new() };
    let listed = || listing::items(name, json).unwrap_or_default().into_iter().map(|(_, item)| item);
    let owned = |note: Note, body: Json<'_>| note.capture(body.bytes().to_vec().into());
    match name {
        FILE_LIBRARY => listed().filter_map(|item| Some(owned(of_library(item)?, item))).collect(),
        GENERATED_IMAGES => listed().filter_map(of_image).collect(),
        GPTS | PROJECTS => {
            // A detail is one of them.
            let items: Vec<Json<'_>> = match listing::items(name, json) {
                Some(items) => items.into_iter().map(|(_, item)| item).collect(),
                None => vec![json],
            };
            items.into_iter().flat_map(of_gizmo).collect()
        }
        _ => Vec::new(),
    }
}

/// Files that the author of a custom GPT or project gave to it.
fn of_gizmo(item: Json<'_>) -> Vec<Capture<'static>> {
    let (gizmo, files) = gizmos::gizmo_files(item);
    let Some(gizmo) = gizmo else { return Vec::new() };
    let mut captures = Vec::new();
    for file in files {
        let id = ["file_id", "id"].iter().find_map(|name| file.get_text(name));
        let Some(id) = id.filter(|id| !id.is_empty()) else { continue };
        let note = Note { gizmo: Some(gizmo.clone()), ..Note::new(id.into_owned(), "project") };
        captures.push(note.capture(file.bytes().to_vec().into()));
    }
    captures
}

/// An image that the assistant made. Its links are signed and die soon.
fn of_image(item: Json<'_>) -> Option<Capture<'static>> {
    let id = listing::image_file(item)?;
    let text = |name: &str| item.get_text(name).map(|text| text.into_owned());
    let mut note = Note::new(id, "image");
    (note.conversation, note.message) = (text("conversation_id"), text("message_id"));
    let names = ["width", "height", "mime_type", "created_at", "size_bytes"];
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.value())));
    let body = serde_json::to_vec(&Value::Object(fields.collect())).ok()?;
    Some(note.capture(body.into()))
}

/// The provider's description of a file.
pub fn of_facts(id: &str, body: &str) -> Option<Capture<'static>> {
    let json = Json::parse(body.as_bytes()).filter(|json| json.is_object())?;
    let is_about_it =
        ["id", "file_id"].iter().filter_map(|name| json.get_text(name)).all(|named| named == id);
    let has_facts = ["name", "file_name", "size", "creation_time", "mime_type"];
    let has_facts = has_facts.iter().any(|name| json.get(name).is_some());
    (is_about_it && has_facts)
        .then(|| Note::new(id.to_owned(), "facts").capture(body.as_bytes().to_vec().into()))
}

/// Whether the provider knows the file under this id; files in old exports have only a name.
pub fn has_an_id(id: &str) -> bool {
    id.starts_with("file-") || id.starts_with("file_")
}

/// The id that a file's name begins with.
pub fn id_in_name(base: &str) -> Option<&str> {
    let rest = base.strip_prefix("file-").or_else(|| base.strip_prefix("file_"))?;
    let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    (length >= 16).then(|| &base[..5 + length])
}

fn media_type(head: &[u8], name: &str) -> Option<&'static str> {
    let magic: [(&[u8], &str); 10] = [
        (b"\x89PNG", "image/png"),
        (b"\xFF\xD8\xFF", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\x1A\x45\xDF\xA3", "video/webm"),
        (b"{", "application/json"),
        (b"<svg", "image/svg+xml"),
    ];
    if head.starts_with(b"RIFF") {
        return match head.get(8..12) {
            Some(b"WEBP") => Some("image/webp"),
            Some(b"WAVE") => Some("audio/wav"),
            _ => None,
        };
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Some("video/mp4");
    }
    let known = magic.iter().find(|(start, _)| head.starts_with(start)).map(|(_, kind)| *kind);
    known.or_else(|| (name.ends_with(".txt") || name.ends_with(".md")).then_some("text/plain"))
}

/// Notes about one file. Its record is all of them, so that what one place lacks another gives.
#[derive(Default)]
pub struct FileReader {
    captures: Captures,
    /// The conversation that was named first.
    conversation: Option<String>,
}

impl Reader for FileReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(header) = self.captures.next(bytes) else { return header_verdict() };
        let text = |name: &str| header.fields.get(name).and_then(Value::as_str);
        if self.conversation.is_none() {
            self.conversation = text("conversation_id").map(str::to_owned);
        }
        let made = Json::parse(bytes).and_then(|json| json.get("created_at")).and_then(moment);
        out.push(Item::Document(Document {
            stream: "files",
            key: text("key").unwrap_or_default().to_owned(),
            session: self.conversation.as_deref().map(Into::into),
            at: made.or(header.captured_at),
            span: Span { offset: 0, length: offset + bytes.len() as u64 },
            content: ContentKey::of(&[&offset.to_le_bytes(), bytes]),
        }));
        Verdict::Kept(text("place").unwrap_or("note").to_owned())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// Which place is believed first.
const PLACES: [&str; 9] =
    ["library", "facts", "attachment", "name", "project", "image", "pointer", "sandbox", "member"];

/// The notes joined: for each field the first place that has it, and which place that was.
pub fn record(key: &str, notes: &[u8]) -> Value {
    let mut ranked: Vec<(usize, Value, Value)> = Vec::new();
    let mut captures = Captures::default();
    for piece in notes.split(|byte| *byte == 0x1E).filter(|piece| !piece.is_empty()) {
        let Some(header) = captures.next(piece) else { continue };
        let place = header.fields.get("place").and_then(Value::as_str).unwrap_or_default();
        let rank = PLACES.iter().position(|known| *known == place).unwrap_or(PLACES.len());
        ranked.push((rank, header.fields, Json::parse(piece).map(Json::value).unwrap_or_default()));
    }
    // The newest note of a place comes first.
    ranked.reverse();
    ranked.sort_by_key(|(rank, ..)| *rank);
    let mut provenance = Map::new();
    let mut first = |field: &str, names: &[&str]| {
        for (rank, header, body) in &ranked {
            for name in names {
                // What headers say of the export is not about the file.
                let own = ["conversation_id", "message_id", "gizmo_id", "content_sha256"].contains(name);
                let value = body.get(*name).or_else(|| header.get(*name).filter(|_| own));
                let value = value.filter(|value| !value.is_null());
                if let Some(value) = value {
                    let place = PLACES.get(*rank).copied().unwrap_or("other");
                    provenance.insert(field.to_owned(), Value::from(place));
                    return value.clone();
                }
            }
        }
        Value::Null
    };
    let fields = [
        ("name", first("name", &["file_name", "name"])),
        ("mime_type", first("mime_type", &["mime_type"])),
        ("size_bytes", first("size_bytes", &["file_size_bytes", "size", "size_bytes"])),
        ("width", first("width", &["width"])),
        ("height", first("height", &["height"])),
        ("category", first("category", &["library_file_category"])),
        ("artifact_type", first("artifact_type", &["library_artifact_type"])),
        (
            "conversation_id",
            first(
                "conversation_id",
                &["origination_thread_id", "initiating_conversation_id", "conversation_id"],
            ),
        ),
        ("message_id", first("message_id", &["origination_message_id", "message_id"])),
        ("gizmo_id", first("gizmo_id", &["gizmo_id"])),
        ("sandbox_path", first("sandbox_path", &["sandbox_path"])),
        (
            "created_at",
            time_value(moment_of(&first("created_at", &["created_at", "creation_time", "file_upload_time"]))),
        ),
        // Of the bytes that are here, rather than what an export says of them.
        (
            "sha256",
            Some(first("sha256", &["content_sha256"]))
                .filter(|hash| !hash.is_null())
                .unwrap_or_else(|| first("sha256", &["sha256_digest"])),
        ),
        ("member", first("member", &["member"])),
        ("archived_as", first("archived_as", &["archived_as"])),
    ];
    let mut record = Map::from_iter([("id".to_owned(), Value::from(key))]);
    record.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    let archived = ranked.iter().map(|(.., body)| body).find(|body| body.get("archived_as").is_some());
    for (name, own, listed) in [("mime", "mime_type", "mime_type"), ("size", "size", "size_bytes")] {
        let own = archived.and_then(|body| body.get(own)).filter(|value| !value.is_null());
        let value = own.or_else(|| record.get(listed)).cloned().unwrap_or_default();
        record.insert(name.to_owned(), value);
    }
    record.insert("provenance".to_owned(), Value::Object(provenance));
    Value::Object(record)
}
