//! Documents of the account besides conversations: memories, custom GPTs, projects, settings and so on.
//!
//! Each is a file of the archive that is replaced whole: `{"listing": NAME, "pages": […], "details": […]}` around the answers as
//! they came. What is no longer in it has ended.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::extras;
use super::gizmos::{both, gizmo};
use super::nodes::offset_in;
use super::pointers::id_of_pointer;
use super::times::moment;
use crate::json::{Json, Line};
use crate::live::Listing;
use crate::{Facts, Reader};
use annals_core::{ContentKey, Document, Item, Span, Verdict};

pub const GPTS: &str = "custom_gpts";
pub const PROJECTS: &str = "projects";
pub const SHARES: &str = "shared_conversations";
pub const INSTRUCTIONS: &str = "custom_instructions";
pub const ACCOUNT: &str = "account";
pub const MODELS: &str = "models";
pub const SETTINGS: &str = "settings";
pub const DATA_CONTROLS: &str = "data_controls";
pub const BETA_FEATURES: &str = "beta_features";
pub const MEMORIES: &str = "memories";
pub const MEMORY_SUMMARY: &str = "memory_summary";
pub const PINS: &str = "pins";
pub const AUTOMATIONS: &str = "automations";
pub const TASKS: &str = "tasks";
pub const GROUP_CHATS: &str = "group_chats";
pub const CLOUD_TASKS: &str = "cloud_tasks";
pub const FILE_LIBRARY: &str = "library_files";
pub const GENERATED_IMAGES: &str = "generated_images";

pub const LISTINGS: &[Listing] = &[
    Listing { name: ACCOUNT, stream: "account", daily: false },
    Listing { name: SETTINGS, stream: "settings", daily: false },
    Listing { name: DATA_CONTROLS, stream: "settings", daily: true },
    Listing { name: BETA_FEATURES, stream: "settings", daily: true },
    Listing { name: MODELS, stream: "models", daily: true },
    Listing { name: MEMORIES, stream: "memories", daily: false },
    Listing { name: MEMORY_SUMMARY, stream: "memory_summary", daily: true },
    Listing { name: INSTRUCTIONS, stream: "custom_instructions", daily: false },
    Listing { name: GPTS, stream: "custom_gpts", daily: false },
    Listing { name: PROJECTS, stream: "projects", daily: false },
    Listing { name: SHARES, stream: "shared_conversations", daily: false },
    Listing { name: PINS, stream: "pins", daily: true },
    Listing { name: AUTOMATIONS, stream: "automations", daily: true },
    Listing { name: TASKS, stream: "tasks", daily: true },
    Listing { name: GROUP_CHATS, stream: "group_chats", daily: true },
    Listing { name: CLOUD_TASKS, stream: "cloud_tasks", daily: true },
    Listing { name: FILE_LIBRARY, stream: "library_files", daily: true },
    Listing { name: GENERATED_IMAGES, stream: "generated_images", daily: true },
];

/// Documents that are no longer requested: older archives have them.
const FORMER: &[Listing] = &[Listing { name: "workspaces", stream: "account", daily: false }];

/// The items of a page with their ids; `None` when the page is not what it should be.
pub fn items<'a>(name: &str, page: Json<'a>) -> Option<Vec<(String, Json<'a>)>> {
    let items = items_with_ids(name, page)?.into_iter();
    Some(items.filter_map(|(id, item)| Some((id?, item))).collect())
}

/// The items of a page, and how many have no id; `None` when the page is not what it should be, as when no item has
/// one.
pub fn items_and_nameless<'a>(name: &str, page: Json<'a>) -> Option<(Vec<(String, Json<'a>)>, usize)> {
    let listed = items_with_ids(name, page)?;
    let all = listed.len();
    let named: Vec<(String, Json<'a>)> =
        listed.into_iter().filter_map(|(id, item)| Some((id?, item))).collect();
    let nameless = all - named.len();
    (!named.is_empty() || nameless == 0).then_some((named, nameless))
}

/// Whether the document is one record rather than a list of them.
pub fn is_one_document(name: &str) -> bool {
    [ACCOUNT, SETTINGS, DATA_CONTROLS, BETA_FEATURES, INSTRUCTIONS, MEMORY_SUMMARY].contains(&name)
}

/// The list of a page. Under another than its first name, or none, an empty one may be of something else.
pub fn array<'a>(page: Json<'a>, names: &[&str]) -> Option<Json<'a>> {
    let named = |name: &&str| page.get(name).filter(|list| list.is_array());
    let first = names.first().and_then(named);
    let others = names.iter().skip(1).filter_map(named).chain(page.is_array().then_some(page));
    first.or_else(|| others.into_iter().find(|list| list.items().next().is_some()))
}

fn items_with_ids<'a>(name: &str, page: Json<'a>) -> Option<Vec<(Option<String>, Json<'a>)>> {
    let text = |item: Json<'a>, id: &str| item.get_text(id).map(|id| id.into_owned());
    let id = |item: Json<'a>, names: &[&str]| names.iter().find_map(|name| text(item, name));
    let listed = |list: Json<'a>, names: &[&str]| list.items().map(|item| (id(item, names), item)).collect();
    Some(match name {
        MEMORIES => listed(array(page, &["memories", "items"])?, &["id"]),
        MODELS => listed(array(page, &["models"])?, &["slug"]),
        SHARES => listed(array(page, &["items"])?, &["id", "share_id"]),
        GPTS | PROJECTS => {
            let list = container(page);
            let names = ["items", "gizmos", "projects", "cuts", "list"];
            let list = names.iter().find_map(|name| list.get(name).filter(|list| list.is_array()))?;
            list.items().map(|item| (text(gizmo(item), "id"), item)).collect()
        }
        PINS => {
            // An account without pins answers with an empty list and nothing around it.
            let list = array(page, &["items", "pins"]).or_else(|| page.is_array().then_some(page))?;
            let inner = |item: Json<'a>| gizmo(item.get("item").unwrap_or(item));
            list.items().map(|item| (id(inner(item), &["id", "conversation_id"]), item)).collect()
        }
        AUTOMATIONS => listed(
            array(page, &["items", "automations", "schedules"])?,
            &["id", "automation_id", "jawbone_id"],
        ),
        TASKS => listed(array(page, &["tasks", "items"])?, &["id", "task_id"]),
        CLOUD_TASKS => listed(array(page, &["items", "tasks"])?, &["id", "task_id"]),
        GROUP_CHATS => {
            let list = array(page, &["rooms", "items"])?;
            let inner = |item: Json<'a>| item.get("room").filter(|room| room.is_object()).unwrap_or(item);
            list.items().map(|item| (id(inner(item), &["id", "room_id"]), item)).collect()
        }
        FILE_LIBRARY => {
            let nested = |item: Json<'a>| item.get("id").and_then(|inner| text(inner, "id"));
            let names = ["file_id", "id", "library_file_id"];
            let list = array(page, &["items", "files", "nodes"])?;
            list.items().map(|item| (id(item, &names).or_else(|| nested(item)), item)).collect()
        }
        GENERATED_IMAGES => {
            let pointed = |item: Json<'a>| image_file(item);
            let list = array(page, &["items", "images"])?;
            list.items().map(|item| (text(item, "id").or_else(|| pointed(item)), item)).collect()
        }
        ACCOUNT => vec![(Some(text(page, "id")?), page)],
        // A summary without words is something else, unless it was streamed to its end.
        MEMORY_SUMMARY if page.get("stream").is_none() && extras::summary_text(page).is_empty() => {
            return None;
        }
        // One document, which is one record.
        _ if page.is_object() => vec![(Some(name.to_owned()), page)],
        _ => return None,
    })
}

/// The file of an image that the assistant made.
pub fn image_file(item: Json<'_>) -> Option<String> {
    let pointer = item.get_text("asset_pointer");
    let pointed = pointer.as_deref().and_then(id_of_pointer).map(str::to_owned);
    pointed.or_else(|| item.get_text("file_id").map(|id| id.into_owned()))
}

/// Lists of custom GPTs may be within another object.
pub fn container(page: Json<'_>) -> Json<'_> {
    page.get("list").filter(|list| list.is_object()).unwrap_or(page)
}

#[derive(Default)]
pub struct ListingReader;

impl Reader for ListingReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let Some(json) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        let name = json.get_text("listing").unwrap_or_default();
        let Some(listing) = LISTINGS.iter().chain(FORMER).find(|listing| listing.name == name) else {
            return Verdict::Unknown("listing of no stream".into());
        };
        let details: Vec<Detail<'_>> =
            json.get("details").into_iter().flat_map(Json::items).filter_map(Detail::of).collect();
        let pages = json.get("pages").into_iter().flat_map(Json::items);
        let mut emitted: HashSet<String> = HashSet::new();
        for (key, item) in pages.flat_map(|page| items(listing.name, page).unwrap_or_default()) {
            if !emitted.insert(key.clone()) {
                continue;
            }
            let detail = details.iter().find(|detail| detail.id == key);
            let item = detail.filter(|_| listing.name != ACCOUNT).map_or(item, |detail| detail.whole);
            let moments = ["updated_at", "last_updated", "update_time", "created_at", "create_time"];
            let places = both(item);
            let at = moments
                .iter()
                .find_map(|name| places.iter().find_map(|place| gizmo(*place).get(name).and_then(moment)));
            // What else is in these documents belongs to each of their items.
            let (start, length, content) = match listing.name {
                ACCOUNT | MODELS => (offset, bytes.len(), around(json, item)),
                name => {
                    let start = offset + offset_in(bytes, item.bytes()) as u64;
                    (start, item.bytes().len(), lasting(name, item))
                }
            };
            let session = item.get_text("conversation_id").filter(|_| listing.name == GENERATED_IMAGES);
            out.push(Item::Document(Document {
                stream: listing.stream,
                key,
                session: session.map(|session| session.into()),
                at,
                span: Span { offset: start, length: length as u64 },
                content,
            }));
        }
        Verdict::Kept(listing.name.into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// What an item has beyond the listing. Documents of older archives have the answer alone.
struct Detail<'a> {
    id: String,
    whole: Json<'a>,
}

impl<'a> Detail<'a> {
    fn of(detail: Json<'a>) -> Option<Detail<'a>> {
        let named = detail.get_text("detail_of");
        let id = named.or_else(|| gizmo(detail).get_text("id"))?.into_owned();
        Some(Detail { id, whole: detail })
    }
}

/// An item and its detail as one text: the answer, and what the listing had, so that neither takes away from the other.
pub fn detailed(id: &str, listed: &str, answer: &str) -> String {
    format!("{{\"detail_of\":{},\"listed\":{listed},\"answer\":{answer}}}", Value::from(id))
}

/// The fields of an item that only change when the item does.
fn lasting(name: &str, item: Json<'_>) -> ContentKey {
    match name {
        // Links get a new signature with each response.
        GENERATED_IMAGES => {
            let fields = item.fields().filter(|(name, _)| !name.ends_with(b"url") && *name != b"encodings");
            let parts: Vec<&[u8]> = fields.flat_map(|(name, value)| [name, value.bytes()]).collect();
            ContentKey::of(&parts)
        }
        MEMORY_SUMMARY => ContentKey::of(&[extras::summary_text(item).as_bytes()]),
        _ => ContentKey::of(&[item.bytes()]),
    }
}

/// An item with what its document says besides its items.
fn around(document: Json<'_>, item: Json<'_>) -> ContentKey {
    let pages = document.get("pages").into_iter().flat_map(Json::items);
    let categories = pages.filter_map(|page| page.get("categories"));
    let details = document.get("details").into_iter().flat_map(Json::items);
    let details = details.map(|detail| detail.get("answer").unwrap_or(detail));
    let parts: Vec<&[u8]> = std::iter::once(item).chain(categories).chain(details).map(Json::bytes).collect();
    ContentKey::of(&parts)
}

/// Custom instructions: as a conversation showed them, or as the account has them.
pub fn instructions_record(key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes)?;
    if json.get("text").is_some() {
        return None;
    }
    let names = [
        "name_user_message",
        "role_user_message",
        "about_user_message",
        "other_user_message",
        "about_model_message",
        "traits_model_message",
    ];
    let mut texts: Vec<String> = Vec::new();
    for text in names.iter().filter_map(|name| json.get_text(name)).filter(|text| !text.is_empty()) {
        // The same text stands under old and new names.
        if texts.iter().all(|known| *known != text) {
            texts.push(text.into_owned());
        }
    }
    let field = |names: &[&str]| {
        let found = names.iter().filter_map(|name| json.get(name)).map(Json::value);
        found.into_iter().find(|value| !value.is_null()).unwrap_or_default()
    };
    Some(json!({
        "id": key,
        "text": texts.join("\n\n"),
        "since": null,
        "enabled": field(&["enabled"]),
        "about_user": field(&["about_user_message", "other_user_message"]),
        "about_model": field(&["about_model_message"]),
        "name": field(&["name_user_message"]),
        "role": field(&["role_user_message"]),
        "traits": field(&["traits_model_message"]),
        "disabled_tools": field(&["disabled_tools"]),
        "content": json.value(),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::gizmos::gpt_record;
    use super::*;

    #[test]
    fn a_detail_takes_nothing_away_from_the_listing() {
        let listed = r#"{"resource":{"gizmo":{"id":"g-1","short_url":"g-1-x","display":{"name":"Keeper",
            "description":"Keeps"},"share_recipient":"link","files":[{"id":"file-1"}]}}}"#;
        let answer = r#"{"gizmo":{"id":"g-1","display":{"name":"Keeper 2","description":null},
            "config":{"instructions":"Shine.","tools":[{"type":"browser"}]}}}"#;
        let record = gpt_record("g-1", detailed("g-1", listed, answer).as_bytes());
        let fields = ["name", "description", "short_url", "access", "instructions"].map(|name| &record[name]);
        assert_eq!(fields, ["Keeper 2", "Keeps", "g-1-x", "shared_link", "Shine."]);
        assert_eq!(
            (&record["tools"][0]["type"], &record["files"][0]["id"]),
            (&json!("browser"), &json!("file-1"))
        );
        let content = &record["content"];
        assert_eq!(content["gizmo"]["display"]["name"], "Keeper 2");
        assert_eq!(content["resource"]["gizmo"]["share_recipient"], "link");
        // In the document, the record is both.
        let page = format!("{{\"items\":[{listed}]}}");
        let detail = detailed("g-1", listed, answer);
        let document = format!("{{\"listing\":\"custom_gpts\",\"pages\":[{page}],\"details\":[{detail}]}}");
        let scan = crate::json::Scan::new(document.as_bytes());
        let mut out = Vec::new();
        ListingReader.read(0, scan.line(), &mut out);
        let [Item::Document(found)] = out.as_slice() else { panic!("{out:?}") };
        let (start, end) = (found.span.offset as usize, (found.span.offset + found.span.length) as usize);
        assert_eq!(&document[start..end], detail);
    }

    #[test]
    fn custom_gpts_are_found_in_every_wrapping() {
        let wrapped = [
            r#"{"items":[{"resource":{"gizmo":{"id":"g-1"}}}]}"#,
            r#"{"gizmos":[{"gizmo":{"id":"g-1"}}]}"#,
            r#"{"cuts":[{"resource":{"id":"g-1"}}]}"#,
            r#"{"list":{"items":[{"gizmo":{"gizmo":{"id":"g-1"},"files":[]}}]}}"#,
            r#"{"list":[{"id":"g-1"}]}"#,
        ];
        for page in wrapped {
            let found = items(GPTS, Json::parse(page.as_bytes()).unwrap()).unwrap();
            assert_eq!(found.len(), 1, "{page}");
            assert_eq!(found[0].0, "g-1", "{page}");
        }
        assert!(items(GPTS, Json::parse(b"{\"detail\":1}").unwrap()).is_none());
        assert!(items("memories", Json::parse(b"{\"items\":[]}").unwrap()).is_none());
    }
}
