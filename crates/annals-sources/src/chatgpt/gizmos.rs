//! Custom GPTs and projects: found in their wrapping, with what their details and the listing have.

use serde_json::{Value, json};

use super::times::{moment, time_value};
use crate::json::Json;

/// Custom GPTs and projects come wrapped, in several ways.
pub fn gizmo(item: Json<'_>) -> Json<'_> {
    wrapping(item).pop().unwrap_or(item)
}

/// An item, and what it wraps, level by level.
fn wrapping(item: Json<'_>) -> Vec<Json<'_>> {
    let mut levels = vec![item];
    for _ in 0..3 {
        let inner = levels.last().and_then(|outer| {
            let within = ["resource", "gizmo", "info"].iter().find_map(|name| outer.get(name));
            within.filter(|within| within.is_object())
        });
        levels.extend(inner);
    }
    levels
}

/// The id of a custom GPT or project, and its files.
pub fn gizmo_files(item: Json<'_>) -> (Option<String>, Vec<Json<'_>>) {
    let found = Gizmo::of(item);
    let id = found.inner.iter().find_map(|inner| inner.get_text("id")).map(|id| id.into_owned());
    let files = found.around.iter().filter_map(|place| place.get("files")).find(|files| files.is_array());
    (id, files.into_iter().flat_map(Json::items).collect())
}

/// The answer of a detail, and the item as it was listed; an item without a detail is itself.
pub fn both(item: Json<'_>) -> Vec<Json<'_>> {
    match item.get("detail_of") {
        Some(_) => [item.get("answer"), item.get("listed")].into_iter().flatten().collect(),
        None => vec![item],
    }
}

pub fn gpt_record(key: &str, bytes: &[u8]) -> Value {
    let Some(item) = Json::parse(bytes) else { return json!({"id": key}) };
    let gizmo = Gizmo::of(item);
    json!({
        "id": key,
        "short_url": gizmo.beside("short_url"),
        "name": gizmo.shown("name"),
        "description": gizmo.shown("description"),
        "welcome_message": gizmo.shown("welcome_message"),
        "prompt_starters": gizmo.shown("prompt_starters"),
        "picture": gizmo.shown("profile_picture_url"),
        "author": gizmo.author(),
        "instructions": gizmo.configured("instructions"),
        "tools": gizmo.configured("tools"),
        "files": gizmo.beside("files"),
        "access": gizmo.access(),
        "created_at": gizmo.time(&["created_at", "create_time"]),
        "updated_at": gizmo.time(&["updated_at", "last_updated"]),
        "content": gizmo.content(),
    })
}

pub fn project_record(key: &str, bytes: &[u8]) -> Value {
    let Some(item) = Json::parse(bytes) else { return json!({"id": key}) };
    let gizmo = Gizmo::of(item);
    json!({
        "id": key,
        "name": gizmo.shown("name"),
        "description": gizmo.shown("description"),
        "instructions": gizmo.configured("instructions"),
        "files": gizmo.beside("files"),
        "created_at": gizmo.time(&["created_at", "create_time"]),
        "updated_at": gizmo.time(&["updated_at", "last_updated"]),
        "content": gizmo.content(),
    })
}

/// A custom GPT or project: what is in the middle of its wrapping, and what is on the way there. Its detail comes first; what
/// that lacks, the listing may have.
struct Gizmo<'a> {
    items: Vec<Json<'a>>,
    inner: Vec<Json<'a>>,
    around: Vec<Json<'a>>,
}

impl<'a> Gizmo<'a> {
    fn of(item: Json<'a>) -> Gizmo<'a> {
        let items = both(item);
        let inner: Vec<Json<'a>> = items.iter().map(|item| gizmo(*item)).collect();
        let around: Vec<Json<'a>> = items.iter().flat_map(|item| wrapping(*item)).collect();
        Gizmo { around, items, inner }
    }

    fn first(&self, places: &[Json<'a>], names: &[&str]) -> Value {
        let found = places.iter().flat_map(|place| names.iter().filter_map(|name| place.get(name)));
        found.map(Json::value).find(|value| !value.is_null()).unwrap_or_default()
    }

    fn within(&self, name: &str) -> Vec<Json<'a>> {
        self.around.iter().filter_map(|place| place.get(name)).filter(|found| found.is_object()).collect()
    }

    fn shown(&self, name: &str) -> Value {
        self.first(&self.within("display"), &[name])
    }

    fn author(&self) -> Value {
        self.first(&self.within("author"), &["display_name", "user_id"])
    }

    fn beside(&self, name: &str) -> Value {
        self.first(&self.around, &[name])
    }

    /// Some accounts have what its author chose in one place.
    fn configured(&self, name: &str) -> Value {
        let places: Vec<Json<'a>> = self.around.iter().copied().chain(self.within("config")).collect();
        self.first(&places, &[name])
    }

    fn time(&self, names: &[&str]) -> Value {
        let found = self.inner.iter().flat_map(|place| names.iter().filter_map(|name| place.get(name)));
        time_value(found.into_iter().find_map(moment))
    }

    /// All of it: the detail, with what only the listing has.
    fn content(&self) -> Value {
        let mut whole = Value::Null;
        for item in &self.items {
            fill(&mut whole, item.value());
        }
        whole
    }

    /// Who can use it, in one of three words; others, such as those of workspaces, stay as they are.
    fn access(&self) -> Value {
        let access = self.first(&self.around, &["share_recipient", "sharing", "access"]);
        let tags = self.inner.iter().filter_map(|inner| inner.get("tags")).flat_map(Json::items);
        let tags: Vec<String> = tags.filter_map(|tag| tag.text().map(|tag| tag.into_owned())).collect();
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

/// Adds what a value lacks.
fn fill(value: &mut Value, other: Value) {
    match (value, other) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, other) in others {
                fill(fields.entry(name).or_insert(Value::Null), other);
            }
        }
        (value, other) if value.is_null() => *value = other,
        _ => {}
    }
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
}
