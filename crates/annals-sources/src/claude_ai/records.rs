//! Records of an account: artifacts, attachments, projects, memories, the account.

use serde_json::{Value, json};

use crate::json::Json;

pub const ARTIFACTS: &str = "artifacts";

/// The id of the artifact that a call makes or changes.
pub fn artifact_in(tool: &str, input: Option<Json<'_>>) -> Option<String> {
    let id = input.filter(|_| tool == "artifacts")?.get_text("id")?;
    (!id.is_empty()).then(|| id.into_owned())
}

/// What a record says.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    let json = Json::parse(bytes)?;
    let text = |json: Json<'_>, name: &str| json.get_text(name).map(|text| text.into_owned());
    Some(match stream {
        ARTIFACTS => {
            let input = json.get("input")?;
            let field = |name: &str| text(input, name);
            let (session, id) = key.rsplit_once('/').unwrap_or(("", key));
            json!({
                "id": key,
                "session_id": session,
                "artifact_id": id,
                "title": field("title"),
                "type": field("type"),
                "language": field("language"),
                "command": field("command"),
                // A change has the text that it replaces and the one it puts in.
                "content": field("content").or_else(|| field("new_str")),
                "replaces": field("old_str"),
            })
        }
        "attachments" => json!({
            "id": key,
            "message_id": key.rsplit_once('/').map_or(key, |(message, _)| message),
            "file_name": text(json, "file_name"),
            "file_type": text(json, "file_type"),
            "file_size": json.get("file_size").map(Json::value),
            "extracted_content": text(json, "extracted_content"),
        }),
        "projects" => {
            let documents = json.get("docs");
            let document = |document: Json<'_>| {
                json!({
                    "id": text(document, "uuid"),
                    "file_name": text(document, "filename"),
                    "content": text(document, "content"),
                    "created_at": text(document, "created_at"),
                })
            };
            let documents: Vec<Value> =
                documents.iter().flat_map(|documents| documents.items()).map(document).collect();
            json!({
                "id": key,
                "name": text(json, "name"),
                "description": text(json, "description"),
                "instructions": text(json, "prompt_template"),
                "documents": documents,
                "created_at": text(json, "created_at"),
                "updated_at": text(json, "updated_at"),
            })
        }
        "memories" => {
            let of_projects = json.get("project_memories").filter(|memories| memories.is_object());
            json!({
                "id": key,
                "text": text(json, "conversations_memory"),
                "projects": of_projects.map_or_else(|| json!({}), Json::value),
                "files": json.get("memory_files").map(Json::value),
            })
        }
        "account" => {
            json!({"id": key, "name": text(json, "full_name"), "email": text(json, "email_address")})
        }
        _ => return None,
    })
}
