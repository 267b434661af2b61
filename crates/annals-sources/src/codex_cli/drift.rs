//! What is new inside of lines whose type is known: fields, and parts of messages and outputs.

use crate::json::Object;
use annals_core::Item;

/// Fields of a wrapped line.
pub const ENVELOPE: &[&str] = &["timestamp", "ordinal", "type", "payload", "metadata"];

/// Fields of `session_meta`, bare first lines included.
pub const SESSION_META: &[&str] = &[
    "id",
    "session_id",
    "timestamp",
    "cwd",
    "originator",
    "cli_version",
    "instructions",
    "source",
    "thread_source",
    "model_provider",
    "git",
    "base_instructions",
    "forked_from_id",
    "forked_from_ordinal_exclusive",
    "parent_thread_id",
    "agent_nickname",
    "agent_role",
    "agent_path",
    "agent_type",
    "history_mode",
    "history_base",
    "subagent_history_start_ordinal",
    "context_window",
    "dynamic_tools",
    "selected_capability_roots",
    "memory_mode",
    "multi_agent_version",
    "runtime_workspace_roots",
];

/// Parts of what was said, of reasoning and of outputs.
const PARTS: &[&str] = &[
    "input_text",
    "output_text",
    "input_image",
    "input_audio",
    "text",
    "Text",
    "image",
    "local_image",
    "audio",
    "local_audio",
    "skill",
    "mention",
    "encrypted_content",
    "summary_text",
    "reasoning_text",
    "refusal",
];

/// Roles of messages.
const ROLES: &[&str] = &["user", "assistant", "developer", "system"];

pub fn each_unknown_field(object: &Object<'_>, known: &[&str], what: &str, out: &mut Vec<Item>) {
    for (name, _) in object.fields() {
        if !known.iter().any(|known| known.as_bytes() == *name) {
            out.push(Item::Drift(format!("{what} field/{}", String::from_utf8_lossy(name))));
        }
    }
}

pub fn each_unknown_part(kind: &str, item: &Object<'_>, out: &mut Vec<Item>) {
    if let Some(role) = item.get_text("role").filter(|role| !ROLES.contains(&role.as_ref())) {
        out.push(Item::Drift(format!("{kind} role/{role}")));
    }
    for name in ["content", "summary", "output"] {
        let parts = item.get(name).filter(|parts| parts.is_array());
        for part in parts.iter().flat_map(|parts| parts.items()) {
            let part = part.get_text("type").unwrap_or_default();
            if !PARTS.contains(&part.as_ref()) {
                out.push(Item::Drift(format!("{kind} part/{part}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ENVELOPE, each_unknown_field, each_unknown_part};
    use crate::json::Json;
    use annals_core::Item;

    #[test]
    fn what_is_new_inside_of_a_line_is_named() {
        let mut out = Vec::new();
        let line = Json::parse(br#"{"timestamp":"x","type":"event_msg","payload":{},"aura":1}"#).unwrap();
        each_unknown_field(&line.object(), ENVELOPE, "line", &mut out);
        let message = br#"{"role":"oracle","content":[{"type":"input_text"},{"type":"smell"}]}"#;
        each_unknown_part("message", &Json::parse(message).unwrap().object(), &mut out);
        let known = br#"{"role":"user","content":[{"type":"input_text"}],"output":"text"}"#;
        each_unknown_part("message", &Json::parse(known).unwrap().object(), &mut out);
        let kinds: Vec<Item> = ["line field/aura", "message role/oracle", "message part/smell"]
            .map(|kind| Item::Drift(kind.into()))
            .into();
        assert_eq!(out, kinds);
    }
}
