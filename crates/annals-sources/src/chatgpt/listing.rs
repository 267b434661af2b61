//! Documents of the account besides conversations: memories, custom GPTs, projects, settings and so on.
//!
//! Each is a file of the archive that is replaced whole: `{"listing": NAME, "pages": […], "details": […]}` around the answers as
//! they came. What is no longer in it has ended.

use serde_json::{Value, json};

use super::nodes::offset_in;
use super::times::{moment, time_value};
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
pub const DATA_CONTROLS: &str = "data_controls";

pub const LISTINGS: &[Listing] = &[
    Listing { name: ACCOUNT, stream: "account", daily: false },
    Listing { name: "settings", stream: "settings", daily: false },
    Listing { name: DATA_CONTROLS, stream: "settings", daily: true },
    Listing { name: "beta_features", stream: "settings", daily: true },
    Listing { name: MODELS, stream: "models", daily: true },
    Listing { name: "memories", stream: "memories", daily: false },
    Listing { name: INSTRUCTIONS, stream: "custom_instructions", daily: false },
    Listing { name: GPTS, stream: "custom_gpts", daily: false },
    Listing { name: PROJECTS, stream: "projects", daily: false },
    Listing { name: SHARES, stream: "shared_conversations", daily: false },
];

/// Documents that are no longer requested: older archives have them.
const FORMER: &[Listing] = &[Listing { name: "workspaces", stream: "account", daily: false }];

/// The items of a page with their ids; `None` when the page is not what it should be.
pub fn items<'a>(name: &str, page: Json<'a>) -> Option<Vec<(String, Json<'a>)>> {
    let items = items_with_ids(name, page)?.into_iter();
    Some(items.filter_map(|(id, item)| Some((id?, item))).collect())
}

/// The ids of a page, and how many items have none; `None` when the page is not what it should be, as when no item has
/// one.
pub fn ids(name: &str, page: Json<'_>) -> Option<(Vec<String>, usize)> {
    let items = items_with_ids(name, page)?;
    let all = items.len();
    let ids: Vec<String> = items.into_iter().filter_map(|(id, _)| id).collect();
    let nameless = all - ids.len();
    (!ids.is_empty() || nameless == 0).then_some((ids, nameless))
}

fn items_with_ids<'a>(name: &str, page: Json<'a>) -> Option<Vec<(Option<String>, Json<'a>)>> {
    let text = |item: Json<'a>, id: &str| item.get_text(id).map(|id| id.into_owned());
    let listed = |list: Json<'a>, names: &[&str]| {
        list.items().map(|item| (names.iter().find_map(|name| text(item, name)), item)).collect()
    };
    let array = |name: &str| page.get(name).filter(|list| list.is_array());
    Some(match name {
        "memories" => {
            // Under another name, an empty list may be of something else.
            let renamed = || array("items").filter(|items| items.items().next().is_some());
            listed(array("memories").or_else(renamed)?, &["id"])
        }
        MODELS => listed(array("models")?, &["slug"]),
        SHARES => listed(array("items")?, &["id", "share_id"]),
        GPTS | PROJECTS => {
            let list = container(page);
            let names = ["items", "gizmos", "projects", "cuts", "list"];
            let list = names.iter().find_map(|name| list.get(name).filter(|list| list.is_array()))?;
            list.items().map(|item| (text(gizmo(item), "id"), item)).collect()
        }
        ACCOUNT => vec![(Some(text(page, "id")?), page)],
        // One document, which is one record.
        _ => vec![(Some(name.to_owned()), page)],
    })
}

/// Lists of custom GPTs may be within another object.
pub fn container(page: Json<'_>) -> Json<'_> {
    page.get("list").filter(|list| list.is_object()).unwrap_or(page)
}

/// Custom GPTs and projects come wrapped, in several ways.
fn gizmo(item: Json<'_>) -> Json<'_> {
    let mut inner = item;
    for _ in 0..3 {
        let within = ["resource", "gizmo", "info"].iter().find_map(|name| inner.get(name));
        match within.filter(|within| within.is_object()) {
            Some(within) => inner = within,
            None => break,
        }
    }
    inner
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
        let details: Vec<(String, Json<'_>)> = json
            .get("details")
            .into_iter()
            .flat_map(Json::items)
            .filter_map(|detail| Some((gizmo(detail).get_text("id")?.into_owned(), detail)))
            .collect();
        let pages = json.get("pages").into_iter().flat_map(Json::items);
        let mut emitted: Vec<String> = Vec::new();
        for (key, item) in pages.flat_map(|page| items(listing.name, page).unwrap_or_default()) {
            if emitted.contains(&key) {
                continue;
            }
            let item = details.iter().find(|(id, _)| *id == key).map_or(item, |(_, detail)| *detail);
            let moments = ["updated_at", "last_updated", "update_time", "created_at", "create_time"];
            // What else is in these documents belongs to each of their items.
            let (start, length, content) = match listing.name {
                ACCOUNT | MODELS => (offset, bytes.len(), around(json, item)),
                _ => {
                    let start = offset + offset_in(bytes, item.bytes()) as u64;
                    (start, item.bytes().len(), ContentKey::of(&[item.bytes()]))
                }
            };
            out.push(Item::Document(Document {
                stream: listing.stream,
                key: key.clone(),
                session: None,
                at: moments.iter().find_map(|name| gizmo(item).get(name).and_then(moment)),
                span: Span { offset: start, length: length as u64 },
                content,
            }));
            emitted.push(key);
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

/// An item with what its document says besides its items.
fn around(document: Json<'_>, item: Json<'_>) -> ContentKey {
    let pages = document.get("pages").into_iter().flat_map(Json::items);
    let categories = pages.filter_map(|page| page.get("categories"));
    let others = categories.chain(document.get("details"));
    let parts: Vec<&[u8]> = std::iter::once(item).chain(others).map(Json::bytes).collect();
    ContentKey::of(&parts)
}

pub fn gpt_record(key: &str, bytes: &[u8]) -> Value {
    let Some(item) = Json::parse(bytes) else { return json!({"id": key}) };
    let gizmo = Gizmo::of(item);
    json!({
        "id": key,
        "short_url": gizmo.first(&[gizmo.inner], &["short_url"]),
        "name": gizmo.shown("name"),
        "description": gizmo.shown("description"),
        "welcome_message": gizmo.shown("welcome_message"),
        "prompt_starters": gizmo.shown("prompt_starters"),
        "picture": gizmo.shown("profile_picture_url"),
        "author": gizmo.inner.get("author").map(|author| gizmo.first(&[author], &["display_name", "user_id"])),
        "instructions": gizmo.first(&[gizmo.inner], &["instructions"]),
        "tools": gizmo.beside("tools"),
        "files": gizmo.beside("files"),
        "access": gizmo.access(),
        "created_at": gizmo.time(&["created_at", "create_time"]),
        "updated_at": gizmo.time(&["updated_at", "last_updated"]),
        "content": item.value(),
    })
}

pub fn project_record(key: &str, bytes: &[u8]) -> Value {
    let Some(item) = Json::parse(bytes) else { return json!({"id": key}) };
    let gizmo = Gizmo::of(item);
    json!({
        "id": key,
        "name": gizmo.shown("name"),
        "description": gizmo.shown("description"),
        "instructions": gizmo.first(&[gizmo.inner], &["instructions"]),
        "files": gizmo.beside("files"),
        "created_at": gizmo.time(&["created_at", "create_time"]),
        "updated_at": gizmo.time(&["updated_at", "last_updated"]),
        "content": item.value(),
    })
}

/// A custom GPT or project: what is in the middle of its wrapping, and what is on the way there.
struct Gizmo<'a> {
    inner: Json<'a>,
    around: Vec<Json<'a>>,
}

impl<'a> Gizmo<'a> {
    fn of(item: Json<'a>) -> Gizmo<'a> {
        let inner = gizmo(item);
        let around = [Some(item), item.get("resource"), item.get("gizmo"), Some(inner)];
        Gizmo { inner, around: around.into_iter().flatten().collect() }
    }

    fn first(&self, places: &[Json<'a>], names: &[&str]) -> Value {
        let found = places.iter().flat_map(|place| names.iter().filter_map(|name| place.get(name)));
        found.map(Json::value).find(|value| !value.is_null()).unwrap_or_default()
    }

    fn shown(&self, name: &str) -> Value {
        self.inner.get("display").map(|display| self.first(&[display], &[name])).unwrap_or_default()
    }

    fn beside(&self, name: &str) -> Value {
        self.first(&self.around, &[name])
    }

    fn time(&self, names: &[&str]) -> Value {
        time_value(names.iter().filter_map(|name| self.inner.get(name)).find_map(moment))
    }

    /// Who can use it, in one of three words; others, such as those of workspaces, stay as they are.
    fn access(&self) -> Value {
        let access = self.first(&self.around, &["share_recipient", "sharing", "access"]);
        let tags: Vec<String> = self
            .inner
            .get("tags")
            .into_iter()
            .flat_map(Json::items)
            .filter_map(|tag| tag.text().map(|tag| tag.into_owned()))
            .collect();
        let tagged = ["public", "private"].into_iter().find(|name| tags.iter().any(|tag| tag == name));
        match access.as_str().or(tagged) {
            Some("private" | "only_me" | "me") => "private".into(),
            Some("link" | "shared_link" | "anyone_with_link" | "unlisted") => "shared_link".into(),
            Some("marketplace" | "public" | "everyone" | "store") => "public".into(),
            Some(other) => other.into(),
            None => Value::Null,
        }
    }
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
    use super::*;

    #[test]
    fn custom_gpts_say_who_can_use_them() {
        let access = |fields: &str| {
            let item = format!("{{\"gizmo\":{{\"id\":\"g-1\",\"created_at\":1772366400,{fields}}}}}");
            let record = gpt_record("g-1", item.as_bytes());
            assert_eq!(record["created_at"], "2026-03-01T12:00:00.000Z");
            record["access"].clone()
        };
        for (fields, expected) in [
            ("\"share_recipient\":\"private\"", json!("private")),
            ("\"share_recipient\":\"link\"", json!("shared_link")),
            ("\"share_recipient\":\"marketplace\"", json!("public")),
            ("\"share_recipient\":\"workspace\"", json!("workspace")),
            ("\"share_recipient\":null,\"tags\":[\"interactive\",\"public\"]", json!("public")),
            ("\"allowed_sharing_recipients\":[\"link\"]", Value::Null),
        ] {
            assert_eq!(access(fields), expected, "{fields}");
        }
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
