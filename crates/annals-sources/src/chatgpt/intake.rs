//! Recognises the members of an export, and splits their elements into captures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use memchr::memmem;
use serde_json::{Map, Value, json};

use super::files;
use super::files::Kept;
use super::nodes::{CONVERSATION, conversation_id, nodes};
use super::times::moment;
use crate::import::sidecar::sidecar;
use crate::json::{Json, Opened, unescape};
use crate::{
    Capture, ElementBody, Import, Intake, IntakeOptions, Judgement, KnownRecords, Member, Settings, Shape,
    Taking, path_part,
};
use annals_core::{Result, Time};

pub(super) struct Exports;

impl Import for Exports {
    fn intake(&self, options: IntakeOptions, _settings: &dyn Settings) -> Box<dyn Intake> {
        Box::new(ExportIntake { options, ..ExportIntake::default() })
    }

    fn drop_folders(&self, _settings: &dyn Settings) -> Vec<PathBuf> {
        Vec::new()
    }
}

#[derive(Default)]
struct ExportIntake {
    options: IntakeOptions,
    /// The archive that the provider's privacy desk hands out: conversations in zips beside billing and contact data.
    privacy_archive: bool,
    /// Names of members, without their folders.
    seen: BTreeSet<String>,
    /// Parts that the export itself lists.
    listed: Vec<String>,
    /// Files whose bytes are left out: name, size, first bytes.
    assets: Vec<(String, u64, Vec<u8>)>,
    /// Custom instructions as they were at some moment, by what they are.
    contexts: BTreeMap<&'static str, Vec<(Time, String)>>,
}

/// Members that are records of their own; the order does not matter.
const SIDE_FILES: &[(&str, &str, &str)] = &[
    ("user.json", "account", "account"),
    ("user_settings.json", "settings", "settings"),
    ("message_feedback.json", "feedback", "feedback"),
    ("shared_conversations.json", "shared conversations", "shared_conversations"),
    ("model_comparisons.json", "model comparisons", "side_files"),
    ("group_chats.json", "group chats", "side_files"),
    ("sectioned_conversations.json", "sections", "side_files"),
];

/// Members that are lists of other things.
const OTHERS: &[&str] = &["export_manifest.json", "library_files.json", "conversation_asset_file_names.json"];

impl Intake for ExportIntake {
    fn names(&mut self, names: &[&str]) {
        self.privacy_archive = names.iter().any(|name| name.contains("User Online Activity/"));
        self.seen.extend(names.iter().map(|name| base_name(name).to_owned()));
    }

    fn leaves_closed(&self, name: &str) -> Option<&'static str> {
        let base = base_name(name);
        let allowed =
            name.contains(".zip/") || base.starts_with("Conversations__") || base.starts_with("Files__");
        (self.privacy_archive && !allowed).then_some("billing, contact and other account data")
    }

    fn judge(&mut self, member: &Member<'_>) -> Judgement {
        let base = member.base_name();
        self.seen.insert(base.to_owned());
        if member.head.starts_with(b"PK\x03\x04") {
            return self.judge_zip(member);
        }
        match base {
            "chat.html" => return Judgement::LeaveOut("a web page with the same conversations"),
            "conversations.json.index" => return Judgement::LeaveOut("an index of the conversations"),
            "shopping.json" | "sora.json" | "ads.json" => {
                return Judgement::LeaveOut("shopping, video and advertising data");
            }
            _ => {}
        }
        if is_asset(member) {
            if self.options.with_files {
                return take("files", Shape::Bytes, 4);
            }
            let head = &member.head[..member.head.len().min(64)];
            self.assets.push((member.name.to_owned(), member.size, head.to_vec()));
            return Judgement::LeaveOut("attached file; import it with --with-files");
        }
        self.judge_json(member, base)
    }

    fn take<'e>(
        &mut self,
        member: &Member<'_>,
        element: &'e [u8],
        _archive: &dyn KnownRecords,
    ) -> Result<Option<Vec<Capture<'e>>>> {
        let base = member.base_name();
        if is_asset(member) && !member.head.is_empty() {
            return Ok(Some(asset(member)));
        }
        let parent = member.name.rsplit('/').nth(1).unwrap_or_default();
        if SIDE_FILES.iter().all(|(name, ..)| *name != base)
            && !OTHERS.contains(&base)
            && parent != "textdocs"
        {
            return Ok(self.conversation(element));
        }
        let Some(json) = Json::parse(element) else { return Ok(None) };
        let captures = match base {
            "export_manifest.json" => {
                self.listed = listed(json);
                vec![sidecar("side_files", base, member.modified, element)]
            }
            "library_files.json" => {
                let Some(note) = files::of_library(json) else { return Ok(None) };
                vec![note.capture(element.into())]
            }
            "conversation_asset_file_names.json" => {
                let named = json.fields().filter_map(|(name, value)| files::of_name_map(name, value));
                let notes = named.map(|(note, body)| note.capture(body.into()));
                notes.chain([sidecar("side_files", base, member.modified, element)]).collect()
            }
            _ if parent == "textdocs" && json.get("mapping").is_none() => {
                let key = json.get_text("textdoc_id").or_else(|| json.get_text("id"));
                let key = key.map_or_else(|| base.to_owned(), |key| key.into_owned());
                vec![sidecar("canvas_documents", &key, member.modified, element)]
            }
            _ => match SIDE_FILES.iter().find(|(name, ..)| *name == base) {
                Some((_, _, stream)) => {
                    let Some(key) = side_key(stream, json, base) else { return Ok(None) };
                    vec![sidecar(stream, &key, member.modified, element)]
                }
                None => return Ok(self.conversation(element)),
            },
        };
        Ok(Some(captures))
    }

    fn finish(&mut self, _archive: &dyn KnownRecords) -> Result<Vec<Capture<'static>>> {
        let mut captures = Vec::new();
        for (name, size, head) in &self.assets {
            if let Some((note, body)) = files::of_member(name, *size, head, Kept::No) {
                captures.push(note.capture(body.into()));
            }
        }
        for (what, contexts) in &mut self.contexts {
            contexts.sort();
            contexts.dedup_by(|later, earlier| later.1 == earlier.1);
            for (since, text) in contexts {
                let body = json!({"id": what, "text": text, "since": since.rfc3339()});
                captures.push(Capture {
                    path: format!("custom_instructions/{what}.json-seq"),
                    store: "custom instructions",
                    reader: "side",
                    header: Map::from_iter([
                        ("stream".to_owned(), Value::from("custom_instructions")),
                        ("key".to_owned(), Value::from(*what)),
                        ("at".to_owned(), Value::from(since.rfc3339())),
                    ]),
                    body: ElementBody::Text(serde_json::to_vec(&body)?.into()),
                    counts: false,
                });
            }
        }
        Ok(captures)
    }

    fn missing(&self) -> Vec<String> {
        self.listed.iter().filter(|name| !self.seen.contains(*name)).cloned().collect()
    }
}

impl ExportIntake {
    fn judge_zip(&self, member: &Member<'_>) -> Judgement {
        let base = member.base_name();
        if self.privacy_archive {
            return match base {
                _ if base.starts_with("Conversations__") => Judgement::Open,
                _ if base.starts_with("Files__") && self.options.with_files => Judgement::Open,
                _ if base.starts_with("Files__") => {
                    Judgement::LeaveOut("attached files; import them with --with-files")
                }
                _ => Judgement::LeaveOut("billing, contact and other account data"),
            };
        }
        let dated = base.len() > 64 && base.as_bytes()[..64].iter().all(u8::is_ascii_hexdigit);
        if dated || base.to_lowercase().contains("chatgpt") { Judgement::Open } else { Judgement::Unknown }
    }

    fn judge_json(&self, member: &Member<'_>, base: &str) -> Judgement {
        let fields = member.first_fields();
        let has = |name: &str| fields.iter().any(|(field, _)| *field == name.as_bytes());
        let empty = || {
            let text = member.head.trim_ascii();
            text == b"[]" || text == b"{}"
        };
        if has("chat_messages") {
            return Judgement::Unknown;
        }
        if has("mapping") || has("messages") && (has("page_info") || has("current_node")) {
            return take("conversations", Shape::Elements, 2);
        }
        if has("conversations") && memmem::find(member.head, b"\"mapping\"").is_some() {
            return take("conversations", Shape::Within(&["conversations"]), 2);
        }
        if base == "export_manifest.json" && (has("export_files") || has("logical_files")) {
            return take("export manifest", Shape::Whole, 0);
        }
        if base == "library_files.json" && (has("file_id") || has("file_name") || empty()) {
            return take("file list", Shape::Elements, 1);
        }
        if base == "conversation_asset_file_names.json" {
            return take("file names", Shape::Whole, 1);
        }
        if member.name.rsplit('/').nth(1) == Some("textdocs") && base.ends_with(".json") {
            return take("canvas documents", Shape::Elements, 3);
        }
        let numbered = base.starts_with("conversations") && base.ends_with(".json");
        if numbered && empty() {
            return Judgement::LeaveOut("empty list");
        }
        match SIDE_FILES.iter().find(|(name, ..)| *name == base) {
            Some((_, what, stream)) if *stream == "side_files" => take(what, Shape::Whole, 3),
            Some((_, what, stream)) if expected(stream, &has) || empty() => take(what, Shape::Elements, 3),
            _ => Judgement::Unknown,
        }
    }

    /// The conversation itself, and notes about the files in it.
    fn conversation<'e>(&mut self, element: &'e [u8]) -> Option<Vec<Capture<'e>>> {
        let conversation = Json::parse_first(element)?.object();
        if conversation.get("mapping").is_none() && conversation.get("messages").is_none() {
            return None;
        }
        let id = conversation_id(&conversation, element);
        let mut captures = vec![Capture {
            path: format!("conversations/{}.json-seq", path_part(&id)),
            store: "conversations",
            reader: "conversation",
            header: Map::new(),
            body: ElementBody::Text(element.into()),
            counts: true,
        }];
        let speaks_of = |what: &[u8]| memmem::find(element, what).is_some();
        let has_files = [b"\"file-".as_slice(), b"\"file_", b"://file", b"#file", b"sandbox:/"]
            .into_iter()
            .any(speaks_of);
        let has_context = speaks_of(b"\"user_editable_context\"");
        if !has_files && !has_context {
            return Some(captures);
        }
        for node in nodes(Opened::parse(element, CONVERSATION)?) {
            let Some(message) = node.message.map(|message| message.json) else { continue };
            if has_files {
                for (note, body) in files::of_message(&id, &unescape(node.key), message) {
                    captures.push(note.capture(body));
                }
            }
            let content = message.get("content").filter(|_| has_context);
            let context = content.filter(|content| {
                content.get_text("content_type").as_deref() == Some("user_editable_context")
            });
            let at = message.get("create_time").or_else(|| conversation.get("create_time")).and_then(moment);
            let (Some(context), Some(at)) = (context, at) else { continue };
            for (name, what) in [("user_profile", "profile"), ("user_instructions", "instructions")] {
                if let Some(text) = context.get_text(name).filter(|text| !text.is_empty()) {
                    self.contexts.entry(what).or_default().push((at, text.into_owned()));
                }
            }
        }
        Some(captures)
    }
}

/// A conversation that came by itself, and notes about the files in it.
pub fn conversation_captures(element: &[u8]) -> Option<Vec<Capture<'_>>> {
    ExportIntake::default().conversation(element)
}

fn take(what: &'static str, shape: Shape, order: u8) -> Judgement {
    Judgement::Take(Taking { what, shape, order, has_secrets: false })
}

fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// What the first record of such a file has.
fn expected(stream: &str, has: &dyn Fn(&str) -> bool) -> bool {
    match stream {
        "account" => has("id") && (has("email") || has("chatgpt_plus_user")),
        "settings" => has("settings") || has("user_id"),
        "feedback" => has("rating"),
        _ => has("conversation_id"),
    }
}

fn side_key(stream: &str, json: Json<'_>, base: &str) -> Option<String> {
    let text = |name: &str| json.get_text(name).map(|text| text.into_owned());
    match stream {
        "side_files" => Some(base.to_owned()),
        "settings" => Some(text("user_id").unwrap_or_else(|| "settings".to_owned())),
        _ => text("id"),
    }
}

/// Parts that hold data of the person and that the export says it has.
fn listed(manifest: Json<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for file in manifest.get("export_files").into_iter().flat_map(Json::items) {
        names.extend(file.get_text("path").map(|path| base_name(&path).to_owned()));
    }
    for (_, logical) in manifest.get("logical_files").into_iter().flat_map(Json::fields) {
        let files = logical.get("files").into_iter().flat_map(Json::items);
        names.extend(files.filter_map(|file| file.text().map(|path| base_name(&path).to_owned())));
    }
    names.sort();
    names.dedup();
    names
}

fn is_asset(member: &Member<'_>) -> bool {
    let base = member.base_name();
    files::id_in_name(base).is_some() && !base.ends_with(".json")
        || base.ends_with(".dat")
        || member.name.contains("/audio/") && (base.ends_with(".wav") || base.ends_with(".mp3"))
}

fn asset(member: &Member<'_>) -> Vec<Capture<'static>> {
    let base = member.base_name();
    let id = files::id_in_name(base).unwrap_or(base);
    let kept = Capture {
        path: files::asset_path(id),
        store: "files",
        reader: "asset",
        header: Map::new(),
        body: ElementBody::Member,
        counts: false,
    };
    let note = files::of_member(member.name, member.size, member.head, Kept::Yes);
    std::iter::once(kept).chain(note.map(|(note, body)| note.capture(body.into()))).collect()
}
