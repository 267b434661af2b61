//! Records besides conversations: the fields under the provider's names, and normalized ones beside them.

use serde_json::{Map, Value, json};

use super::content::MessageFields;
use super::nodes::node_of_row;
use super::times::{moment, time_value};
use crate::json::{Json, unescape};

/// A record as it was found, and what is known of it beyond that.
struct Found<'a> {
    json: Json<'a>,
    fields: Map<String, Value>,
}

impl<'a> Found<'a> {
    fn of(key: &str, json: Json<'a>) -> Found<'a> {
        let mut fields = Map::from_iter([("id".to_owned(), Value::from(key))]);
        if let Value::Object(own) = json.value() {
            fields.extend(own);
        }
        Found { json, fields }
    }

    fn first(&self, names: &[&str]) -> Value {
        first_of(&[self.json], names)
    }

    fn put(mut self, name: &str, value: Value) -> Found<'a> {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// When it was created and last changed, where known.
    fn with_times(mut self) -> Found<'a> {
        let created = self.time(&["created_at", "created_timestamp", "create_time", "created"]);
        let updated = self.time(&["updated_at", "last_updated", "update_time"]);
        for (name, time) in [("created_at", created), ("updated_at", updated)] {
            if !time.is_null() {
                self = self.put(name, time);
            }
        }
        self
    }

    fn time(&self, names: &[&str]) -> Value {
        time_value(names.iter().filter_map(|name| self.json.get(name)).find_map(moment))
    }

    fn record(self) -> Option<Value> {
        Some(Value::Object(self.fields))
    }
}

/// The first of these names that has a value, in the first object that has one.
fn first_of(objects: &[Json<'_>], names: &[&str]) -> Value {
    let found = objects.iter().flat_map(|object| names.iter().filter_map(|name| object.get(name)));
    found.map(Json::value).find(|value| !value.is_null()).unwrap_or_default()
}

pub fn memory(key: &str, bytes: &[u8]) -> Option<Value> {
    let found = Found::of(key, Json::parse(bytes).filter(|json| json.is_object())?).with_times();
    let kind = found.first(&["type", "memory_type", "kind"]);
    found.put("type", kind).record()
}

pub fn share(key: &str, bytes: &[u8]) -> Option<Value> {
    let found = Found::of(key, Json::parse(bytes).filter(|json| json.is_object())?).with_times();
    let url = match found.first(&["share_url", "url"]) {
        Value::Null => Value::from(format!("https://chatgpt.com/share/{key}")),
        url => url,
    };
    found.put("url", url).record()
}

/// A rating. Its comment is JSON within a text.
pub fn feedback(key: &str, bytes: &[u8]) -> Option<Value> {
    let found = Found::of(key, Json::parse(bytes).filter(|json| json.is_object())?).with_times();
    let content = found.json.get_text("content").unwrap_or_default();
    let inner = Json::parse(content.as_bytes()).filter(|inner| inner.is_object());
    let (comment, tags) = match inner {
        Some(inner) => (first_of(&[inner], &["text", "comment"]), first_of(&[inner], &["tags"])),
        None => {
            (Some(content).filter(|text| !text.is_empty()).map(Value::from).unwrap_or_default(), Value::Null)
        }
    };
    found.put("comment", comment).put("tags", tags).record()
}

/// A model: its own entry, or the whole document, which also says which plan has it.
pub fn model(key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes)?;
    let pages: Vec<Json<'_>> = json.get("pages").into_iter().flat_map(Json::items).collect();
    let listed = |name: &'static str| pages.iter().flat_map(move |page| page.get(name)).flat_map(Json::items);
    let is_it = |json: &Json<'_>, name: &str| json.get_text(name).as_deref() == Some(key);
    let item = listed("models").find(|item| is_it(item, "slug")).unwrap_or(json);
    let category = listed("categories").find(|category| is_it(category, "default_model"));
    let around: Vec<Json<'_>> = [Some(item), category].into_iter().flatten().collect();
    let own = |names: &[&str]| first_of(&[item], names);
    let found = Found::of(key, item)
        .put("name", own(&["name", "title"]))
        .put("type", own(&["type", "model_type", "reasoning_type"]))
        .put("available_to_tier", first_of(&around, &["available_to_tier", "subscription_level"]))
        .put("context_window", own(&["context_window", "max_tokens"]))
        .put("knowledge_cutoff", own(&["knowledge_cutoff", "knowledge_cutoff_date"]));
    found.record()
}

/// The account: a file of an export, or the answers of the page about the person and about the workspaces.
pub fn account(key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes)?;
    let person = json.get("pages").and_then(|pages| pages.items().next()).unwrap_or(json);
    let detail = json.get("details").and_then(|details| details.items().next());
    // Documents of older archives have the answer alone.
    let checked = detail.map_or(json, |detail| detail.get("answer").unwrap_or(detail));
    let accounts = checked.get("accounts").filter(|accounts| accounts.is_object());
    let mut found = Found::of(key, person);
    for name in ["accounts", "account_ordering"] {
        if let Some(value) = checked.get(name) {
            found = found.put(name, value.value());
        }
    }
    let workspaces = accounts.map(workspaces);
    let default =
        accounts.and_then(|accounts| accounts.get("default")).and_then(|entry| entry.get("account"));
    let first = workspaces.as_ref().and_then(|workspaces| workspaces.first());
    let plan = [
        found.first(&["plan", "plan_type"]),
        default.map(|account| first_of(&[account], &["plan_type"])).unwrap_or_default(),
        first.map(|workspace| workspace["plan"].clone()).unwrap_or_default(),
        match found.first(&["chatgpt_plus_user"]) {
            Value::Bool(true) => Value::from("plus"),
            _ => Value::Null,
        },
    ];
    let plan = plan.into_iter().find(|plan| !plan.is_null()).unwrap_or_default();
    let email = found.first(&["email"]);
    let created = found.time(&["created_at", "created"]);
    found
        .put("email", email)
        .put("created_at", created)
        .put("plan", plan)
        .put("workspaces", json!(workspaces))
        .record()
}

/// Each workspace once: the default one is listed under its id too.
fn workspaces(accounts: Json<'_>) -> Vec<Value> {
    let mut workspaces: Vec<Value> = Vec::new();
    for (name, entry) in accounts.fields() {
        let account = entry.get("account").unwrap_or(entry);
        let id = account.get_text("account_id").map_or_else(|| unescape(name), |id| id.into_owned());
        if workspaces.iter().any(|known| known["id"] == *id) {
            continue;
        }
        workspaces.push(json!({
            "id": id,
            "name": first_of(&[account], &["name"]),
            "plan": first_of(&[account], &["plan_type"]),
            "structure": first_of(&[account], &["structure"]),
            "role": first_of(&[account], &["account_user_role", "role"]),
        }));
    }
    workspaces
}

/// Settings, with what becomes of conversations: whether models may be trained on them, and how long they are kept.
pub fn settings(key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes)?;
    let within = ["settings", "data_controls"].iter().filter_map(|name| json.get(name));
    let places: Vec<Json<'_>> = std::iter::once(json).chain(within).collect();
    let is_true = |names: &[&str]| first_of(&places, names).as_bool();
    let allowed = is_true(&["training_allowed", "allow_training", "training"]);
    let allowed = allowed.or_else(|| is_true(&["training_opt_out"]).map(|refused| !refused));
    Some(json!({
        "id": key,
        "settings": json.value(),
        "training_allowed": allowed,
        "retention": first_of(&places, &["retention", "data_retention", "retention_days"]),
    }))
}

/// A document that was written together: the call that began it, or a file of the export.
pub fn canvas(key: &str, bytes: &[u8]) -> Option<Value> {
    if let Some(json) = Json::parse(bytes).filter(|json| json.is_object() && json.get("author").is_none()) {
        let found = Found::of(key, json).with_times();
        let (title, kind) = (found.first(&["title", "name"]), found.first(&["type", "textdoc_type"]));
        let conversation = found.first(&["conversation_id"]);
        return found.put("title", title).put("type", kind).put("conversation_id", conversation).record();
    }
    let node = node_of_row(bytes)?;
    let mut fields = match node.message.as_ref().map(|message| MessageFields::of(message).input()) {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("content".to_owned(), other)]),
        None => Map::new(),
    };
    let created = node.message.as_ref().and_then(|message| message.get_json("create_time")).and_then(moment);
    let title = fields.get("name").cloned().unwrap_or_default();
    fields.extend([
        ("id".to_owned(), Value::from(key)),
        ("title".to_owned(), title),
        ("conversation_id".to_owned(), Value::Null),
        ("node_id".to_owned(), Value::from(unescape(node.key))),
        ("created_at".to_owned(), time_value(created)),
    ]);
    Some(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_have_times_and_a_type() {
        let native = br#"{"id":"m","content":"Tea.","created_timestamp":1772366400.25,"last_updated":"2026-03-02T00:00:00Z"}"#;
        let memory = memory("m", native).unwrap();
        assert_eq!(memory["created_at"], "2026-03-01T12:00:00.250Z");
        assert_eq!(
            (&memory["updated_at"], &memory["type"]),
            (&json!("2026-03-02T00:00:00.000Z"), &Value::Null)
        );
        assert_eq!(memory["created_timestamp"], 1_772_366_400.25);
    }

    #[test]
    fn models_are_found_in_their_document() {
        let document = br#"{"listing":"models","pages":[{"models":[{"slug":"a"},
            {"slug":"b","title":"B","max_tokens":8192,"reasoning_type":"auto","knowledge_cutoff":"2026-01"}],
            "categories":[{"category":"x","subscription_level":"plus","default_model":"b"}]}],"details":[]}"#;
        let model = model("b", document).unwrap();
        let fields = ["name", "type", "available_to_tier", "context_window", "knowledge_cutoff"];
        assert_eq!(
            fields.map(|name| model[name].clone()),
            [json!("B"), json!("auto"), json!("plus"), json!(8192), json!("2026-01")]
        );
        // An entry by itself, as older archives have it.
        assert_eq!(super::model("a", br#"{"slug":"a","title":"A"}"#).unwrap()["name"], "A");
    }

    #[test]
    fn an_account_has_its_plan_and_workspaces() {
        let document = br#"{"listing":"account","pages":[{"id":"user-1","email":"ada@example.com","created":1772366400}],
            "details":[{"accounts":{"w-2":{"account":{"account_id":"w-2","plan_type":"team","name":"Works"}},
            "default":{"account":{"account_id":"w-1","plan_type":"plus","structure":"personal"}},
            "w-1":{"account":{"account_id":"w-1","plan_type":"plus"}}},"account_ordering":["w-1","w-2"]}]}"#;
        let account = account("user-1", document).unwrap();
        assert_eq!((&account["email"], &account["plan"]), (&json!("ada@example.com"), &json!("plus")));
        let ids: Vec<&Value> = account["workspaces"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, ["w-2", "w-1"]);
        assert_eq!(account["created_at"], "2026-03-01T12:00:00.000Z");
        let exported = super::account("user-1", br#"{"id":"user-1","chatgpt_plus_user":false}"#).unwrap();
        assert_eq!((&exported["plan"], &exported["workspaces"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn settings_tell_what_becomes_of_conversations() {
        let settings_of = |text: &str| settings("s", text.as_bytes()).unwrap();
        assert_eq!(settings_of(r#"{"settings":{"training_allowed":false}}"#)["training_allowed"], false);
        let controls = settings_of(r#"{"training_opt_out":true,"retention_days":30}"#);
        assert_eq!((&controls["training_allowed"], &controls["retention"]), (&json!(false), &json!(30)));
        assert_eq!(settings_of("{}")["training_allowed"], Value::Null);
    }
}
