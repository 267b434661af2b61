//! What an account has besides conversations, memories and custom GPTs: pins, scheduled tasks, group chats, coding tasks in the cloud, its
//! files and images, and the summary of its memory. Each has the fields that people look for, and `content` as it came.

use serde_json::{Value, json};

use super::gizmos::both;
use super::listing::image_file;
use super::times::{moment, time_value};
use crate::json::Json;
use annals_core::{Family, Field, Stream};

const CONTENT: Field = Field::new("content", "object|null", "complete content");
const TITLE: Field = Field::new("title", "string|null", "title");
const CONVERSATION: Field = Field::new("conversation_id", "string|null", "its conversation");
const CREATED: Field = Field::new("created_at", "string|null", "time of creation, RFC 3339 UTC");
const UPDATED: Field = Field::new("updated_at", "string|null", "time of the last change, RFC 3339 UTC");

pub const MEMORY_SUMMARY: Stream = Stream::mutable_records(
    "memory_summary",
    "what the assistant knows about the user, in its own words, fetched once a day",
    Family::Memory,
    &[
        Field::new("id", "string", "always `memory_summary`"),
        Field::new("text", "string", "the summary"),
        Field::new("content", "object|null", "complete content; streamed answers as one text"),
    ],
);

pub const PINS: Stream = Stream::mutable_records(
    "pins",
    "pinned conversations and projects, fetched once a day",
    Family::Settings,
    &[
        Field::new("id", "string", "id of the conversation or project"),
        Field::new("kind", "string", "conversation or project"),
        Field::new("title", "string|null", "title or name"),
        Field::new("pinned_at", "string|null", "time of pinning, RFC 3339 UTC"),
        CONTENT,
    ],
);

pub const AUTOMATIONS: Stream = Stream::mutable_records(
    "automations",
    "scheduled tasks: what the assistant does at which time, fetched once a day",
    Family::Authored,
    &[
        Field::new("id", "string", "id of the task"),
        TITLE,
        Field::new("prompt", "string|null", "what the assistant is to do"),
        Field::new("schedule", "string|object|null", "when it runs"),
        Field::new("is_enabled", "boolean|null", "whether it runs"),
        CONVERSATION,
        CREATED,
        UPDATED,
        CONTENT,
    ],
);

pub const TASKS: Stream = Stream::mutable_records(
    "tasks",
    "tasks in the background, such as deep research, fetched once a day",
    Family::Transcript,
    &[
        Field::new("id", "string", "id of the task"),
        TITLE,
        Field::new("type", "string|null", "kind of task"),
        Field::new("status", "string|null", "what became of it"),
        CONVERSATION,
        CREATED,
        UPDATED,
        CONTENT,
    ],
);

pub const CLOUD_TASKS: Stream = Stream::mutable_records(
    "cloud_tasks",
    "coding tasks in the cloud with their last turns, fetched once a day",
    Family::Transcript,
    &[
        Field::new("id", "string", "id of the task"),
        TITLE,
        Field::new("status", "string|null", "what became of it"),
        Field::new("archived", "boolean|null", "archived by the user"),
        Field::new("environment", "string|null", "repository or environment"),
        CREATED,
        UPDATED,
        Field::new("detail", "object|null", "the task and its last turns, as in the account"),
        CONTENT,
    ],
);

pub const GROUP_CHATS: Stream = Stream::mutable_records(
    "group_chats",
    "conversations with other people, with their newest messages, fetched once a day",
    Family::Transcript,
    &[
        Field::new("id", "string", "id of the room"),
        Field::new("name", "string|null", "name of the room"),
        Field::new("members", "array|null", "who is in it"),
        Field::new("messages", "array|null", "the newest hundred messages, as in the account"),
        CREATED,
        UPDATED,
        CONTENT,
    ],
);

pub const LIBRARY_FILES: Stream = Stream::mutable_records(
    "library_files",
    "the file library, fetched once a day; the same files are in `files`",
    Family::Transcript,
    &[
        Field::new("id", "string", "id of the file"),
        Field::new("name", "string|null", "name"),
        Field::new("mime_type", "string|null", "type"),
        Field::new("size_bytes", "integer|null", "size"),
        Field::new("category", "string|null", "image, text, video, audio, pdf or other"),
        CONVERSATION,
        Field::new("message_id", "string|null", "its message: `id` of messages"),
        Field::new("gizmo_id", "string|null", "its project or custom GPT"),
        CREATED,
        UPDATED,
        CONTENT,
    ],
);

pub const GENERATED_IMAGES: Stream = Stream::mutable_records(
    "generated_images",
    "images that the assistant made, fetched once a day; their files are in `files`",
    Family::Transcript,
    &[
        Field::new("id", "string", "id of the image"),
        Field::new("file_id", "string|null", "its file"),
        TITLE,
        Field::new("prompt", "string|null", "what the assistant drew"),
        CONVERSATION,
        Field::new("message_id", "string|null", "its message: `id` of messages"),
        Field::new("width", "integer|null", "width"),
        Field::new("height", "integer|null", "height"),
        CREATED,
    ],
);

pub const CANVAS_TEXTS: Stream = Stream::mutable_records(
    super::canvas::STREAM,
    "documents written together with the assistant, as they are now",
    Family::Authored,
    &[
        Field::new("id", "string", "id of the document"),
        CONVERSATION,
        TITLE,
        Field::new("type", "string|null", "document, or code/ and the language"),
        Field::new("text", "string|null", "text"),
        Field::new("version", "integer|null", "version of the document"),
        CREATED,
        UPDATED,
        CONTENT,
    ],
);

/// An item and its detail, where it has one.
struct Extra<'a> {
    places: Vec<Json<'a>>,
}

impl<'a> Extra<'a> {
    /// `inner` names objects that may be around what counts.
    fn of(bytes: &'a [u8], inner: &[&str]) -> Option<Extra<'a>> {
        let json = Json::parse(bytes).filter(|json| json.is_object())?;
        let mut places = Vec::new();
        for item in both(json) {
            places.extend(inner.iter().filter_map(|name| item.get(name)).filter(|inner| inner.is_object()));
            places.push(item);
        }
        Some(Extra { places })
    }

    fn all(&self, names: &[&str]) -> impl Iterator<Item = Json<'a>> {
        names.iter().flat_map(|name| self.places.iter().filter_map(move |place| place.get(name)))
    }

    fn first(&self, names: &[&str]) -> Value {
        self.all(names).map(Json::value).find(|value| !value.is_null()).unwrap_or_default()
    }

    /// Only texts: other clients have other kinds of values under the same names.
    fn text(&self, names: &[&str]) -> Value {
        self.all(names).filter(|value| value.is_string()).map(Json::value).next().unwrap_or_default()
    }

    fn integer(&self, names: &[&str]) -> Value {
        self.all(names).filter_map(Json::integer).next().map(Value::from).unwrap_or_default()
    }

    fn boolean(&self, names: &[&str]) -> Value {
        self.all(names).filter_map(Json::boolean).next().map(Value::from).unwrap_or_default()
    }

    fn list(&self, names: &[&str]) -> Value {
        self.all(names).filter(|value| value.is_array()).map(Json::value).next().unwrap_or_default()
    }

    fn time(&self, names: &[&str]) -> Value {
        time_value(self.all(names).find_map(moment))
    }

    fn created(&self) -> Value {
        self.time(&["created_at", "create_time", "created"])
    }

    fn updated(&self) -> Value {
        self.time(&["updated_at", "update_time", "last_updated"])
    }

    /// The item as the listing has it.
    fn listed(&self) -> Value {
        self.places.last().map(|item| item.value()).unwrap_or_default()
    }
}

pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    let kinds = ["kind", "type", "task_type"];
    Some(match stream {
        "memory_summary" => {
            let json = Json::parse(bytes)?;
            json!({"id": key, "text": summary_text(json), "content": json.value()})
        }
        "pins" => {
            let pin = Extra::of(bytes, &["item"])?;
            let gizmo = Extra { places: pin.places.iter().filter_map(|place| place.get("gizmo")).collect() };
            let display =
                Extra { places: gizmo.places.iter().filter_map(|place| place.get("display")).collect() };
            let titles = [pin.text(&["title", "name"]), display.text(&["name"]), gizmo.text(&["name"])];
            json!({
                "id": key,
                "kind": if key.starts_with("g-") { "project" } else { "conversation" },
                "title": titles.into_iter().find(|title| !title.is_null()),
                "pinned_at": pin.time(&["pinned_time", "pinned_at", "create_time"]),
                "content": pin.listed(),
            })
        }
        "automations" => {
            let task = Extra::of(bytes, &["automation"])?;
            json!({
                "id": key,
                "title": task.text(&["title", "name"]),
                "prompt": task.text(&["prompt", "instructions"]),
                "schedule": match task.first(&["schedule", "rrule", "timing"]) {
                    schedule @ (Value::String(_) | Value::Object(_)) => schedule,
                    _ => Value::Null,
                },
                "is_enabled": task.boolean(&["is_enabled", "enabled"]),
                "conversation_id": task.text(&["conversation_id", "original_conversation_id"]),
                "created_at": task.created(),
                "updated_at": task.updated(),
                "content": task.listed(),
            })
        }
        "tasks" => {
            let task = Extra::of(bytes, &["task"])?;
            json!({
                "id": key,
                "title": task.text(&["title", "name"]),
                "type": task.text(&kinds),
                "status": task.text(&["status", "state"]),
                "conversation_id": task.text(&["conversation_id", "original_conversation_id"]),
                "created_at": task.created(),
                "updated_at": task.updated(),
                "content": task.listed(),
            })
        }
        "cloud_tasks" => {
            let task = Extra::of(bytes, &["task"])?;
            let is_detailed = Json::parse(bytes).and_then(|json| json.get("answer"));
            let shown = task.places.iter().filter_map(|place| place.get("task_status_display"));
            let shown = Extra { places: shown.collect() };
            let status = [task.text(&["status", "state"]), shown.text(&["state", "status"])];
            json!({
                "id": key,
                "title": task.text(&["title", "name"]),
                "status": status.into_iter().find(|status| !status.is_null()),
                "archived": task.boolean(&["archived", "is_archived"]),
                "environment": task.text(&["environment_label", "environment_id", "repo", "repository"]),
                "created_at": task.created(),
                "updated_at": task.updated(),
                "detail": is_detailed.map(Json::value),
                "content": task.listed(),
            })
        }
        "group_chats" => {
            let room = Extra::of(bytes, &["room"])?;
            let messages = Json::parse(bytes).and_then(|json| json.get("answer"));
            let messages = Extra { places: messages.into_iter().collect() };
            json!({
                "id": key,
                "name": room.text(&["name", "title"]),
                "members": room.list(&["members", "participants"]),
                "messages": messages.list(&["messages", "items"]),
                "created_at": room.created(),
                "updated_at": room.updated(),
                "content": room.listed(),
            })
        }
        "library_files" => {
            let file = Extra::of(bytes, &[])?;
            json!({
                "id": key,
                "name": file.text(&["file_name", "name"]),
                "mime_type": file.text(&["mime_type"]),
                "size_bytes": file.integer(&["file_size_bytes", "size_bytes", "size"]),
                "category": file.text(&["library_file_category", "category"]),
                "conversation_id": file.text(&["origination_thread_id", "initiating_conversation_id", "conversation_id"]),
                "message_id": file.text(&["origination_message_id", "message_id"]),
                "gizmo_id": file.text(&["gizmo_id"]),
                "created_at": file.time(&["created_at", "file_upload_time", "create_time"]),
                "updated_at": file.updated(),
                "content": file.listed(),
            })
        }
        "generated_images" => {
            let image = Extra::of(bytes, &[])?;
            json!({
                "id": key,
                "file_id": image.places.first().and_then(|item| image_file(*item)),
                "title": image.text(&["title"]),
                "prompt": image.text(&["prompt"]),
                "conversation_id": image.text(&["conversation_id"]),
                "message_id": image.text(&["message_id"]),
                "width": image.integer(&["width"]),
                "height": image.integer(&["height"]),
                "created_at": image.created(),
            })
        }
        _ => return None,
    })
}

/// The words of the summary. It is streamed in pieces: lines of `data:` with some JSON, or text.
pub fn summary_text(answer: Json<'_>) -> String {
    let names = ["text", "delta", "summary", "content", "v"];
    let words =
        |json: Json<'_>| names.iter().find_map(|name| json.get_text(name)).map(|text| text.into_owned());
    let Some(stream) = answer.get_text("stream") else { return words(answer).unwrap_or_default() };
    let mut text = String::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data:")) {
        let data = data.strip_prefix(' ').unwrap_or(data);
        match Json::parse(data.as_bytes()) {
            Some(json) if json.is_object() => text.push_str(&words(json).unwrap_or_default()),
            Some(json) => text.push_str(&json.text().unwrap_or_default()),
            None if data != "[DONE]" => text.push_str(data),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_summary_is_one_text() {
        let answer = json!({"stream": "event: delta\ndata: {\"delta\":\"Sails \"}\n\ndata: \"a lot\"\ndata: [DONE]\n"});
        let answer = answer.to_string();
        assert_eq!(summary_text(Json::parse(answer.as_bytes()).unwrap()), "Sails a lot");
        assert_eq!(summary_text(Json::parse(br#"{"summary":"Sails."}"#).unwrap()), "Sails.");
    }

    #[test]
    fn records_have_what_their_streams_declare() {
        let detailed = super::super::listing::detailed(
            "t1",
            r#"{"id":"t1","title":"Fix the lamp","created_at":1772366400,"archived":false}"#,
            r#"{"task":{"id":"t1","title":"Fix the lamp","status":"completed"},"current_user_turn":{"id":"u1"}}"#,
        );
        let table = [
            (&CLOUD_TASKS, detailed.as_str()),
            (&PINS, r#"{"item_type":"project","item":{"gizmo":{"id":"g-p-1","display":{"name":"Aurora"}}}}"#),
            (
                &AUTOMATIONS,
                r#"{"id":"a1","title":"Tide","prompt":"Tell the tide","schedule":"RRULE:FREQ=DAILY"}"#,
            ),
            (&TASKS, r#"{"id":"x","status":"done","type":"deep_research"}"#),
            (&GROUP_CHATS, r#"{"room":{"id":"r1","name":"Crew","members":[{"id":"u1"}]}}"#),
            (&LIBRARY_FILES, r#"{"file_id":"file-1","file_name":"chart.pdf","file_size_bytes":12}"#),
            (&GENERATED_IMAGES, r#"{"id":"i1","asset_pointer":"sediment://file_1","width":1024}"#),
            (&MEMORY_SUMMARY, r#"{"summary":"Sails."}"#),
        ];
        for (stream, bytes) in table {
            let record = record(stream.name, "key", bytes.as_bytes()).unwrap();
            let fields = record.as_object().unwrap();
            for field in stream.fields {
                let kind = match &fields[field.name] {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "integer",
                    Value::String(_) => "string",
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                };
                assert!(field.kind.split('|').any(|known| known == kind), "{} {}", stream.name, field.name);
            }
            assert_eq!(fields.len(), stream.fields.len(), "{record}");
        }
        let task = record("cloud_tasks", "t1", detailed.as_bytes()).unwrap();
        assert_eq!(
            (&task["status"], &task["created_at"]),
            (&json!("completed"), &json!("2026-03-01T12:00:00.000Z"))
        );
        assert_eq!(task["detail"]["current_user_turn"]["id"], "u1");
        let pin = record("pins", "g-p-1", table[1].1.as_bytes()).unwrap();
        assert_eq!((&pin["kind"], &pin["title"]), (&json!("project"), &json!("Aurora")));
    }
}
