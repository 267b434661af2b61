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

/// Fields of the payloads of lines, by the type of the line.
const PAYLOADS: &[(&str, &[&str])] = &[
    ("response_item", RESPONSE_ITEM),
    ("event_msg", EVENT),
    ("turn_context", TURN_CONTEXT),
    (
        "compacted",
        &[
            "message",
            "replacement_history",
            "replacement_history_metadata",
            "retained_context",
            "latest_token_usage_record",
            "resume_metadata",
            "compaction_response_id",
            "mcp_resource_origins",
            "window_number",
            "window_id",
            "first_window_id",
            "previous_window_id",
        ],
    ),
    (
        "token_usage_record",
        &[
            "thread_id",
            "turn_id",
            "root_turn_id",
            "session_id",
            "response_id",
            "usage",
            "turn_token_usage",
            "thread_token_usage",
        ],
    ),
    ("world_state", &["full", "state"]),
    (
        "inter_agent_communication",
        &["author", "recipient", "other_recipients", "content", "encrypted_content", "trigger_turn"],
    ),
    ("inter_agent_communication_metadata", &["trigger_turn"]),
];

const RESPONSE_ITEM: &[&str] = &[
    "type",
    "id",
    "role",
    "content",
    "phase",
    "status",
    "end_turn",
    "internal_chat_message_metadata_passthrough",
    "summary",
    "encrypted_content",
    "name",
    "namespace",
    "arguments",
    "call_id",
    "output",
    "input",
    "action",
    "execution",
    "tools",
    "revised_prompt",
    "result",
    "author",
    "recipient",
    "ghost_commit",
    "duration_ms",
];

/// Fields of all events.
const EVENT: &[&str] = &[
    "type",
    "turn_id",
    "root_turn_id",
    "thread_id",
    "threadId",
    "call_id",
    "message",
    "kind",
    "client_id",
    "images",
    "local_images",
    "text_elements",
    "audio",
    "local_audio",
    "phase",
    "memory_citation",
    "text",
    "info",
    "rate_limits",
    "model_context_window",
    "collaboration_mode_kind",
    "turn_attribution",
    "trace_id",
    "last_agent_message",
    "started_at",
    "completed_at",
    "started_at_ms",
    "completed_at_ms",
    "duration_ms",
    "time_to_first_token_ms",
    "error",
    "reason",
    "target",
    "user_facing_hint",
    "review_output",
    "num_turns",
    "item",
    "command",
    "parsed_cmd",
    "cwd",
    "source",
    "interaction_input",
    "process_id",
    "stdout",
    "stderr",
    "aggregated_output",
    "formatted_output",
    "exit_code",
    "duration",
    "status",
    "success",
    "auto_approved",
    "changes",
    "invocation",
    "mcp_app_resource_uri",
    "result",
    "query",
    "action",
    "results",
    "path",
    "revised_prompt",
    "saved_path",
    "goal",
    "thread_settings",
    "thread_name",
    "codex_error_info",
    "additional_details",
    "agent_thread_id",
    "agent_path",
    "sender_thread_id",
    "receiver_thread_id",
    "receiver_thread_ids",
    "receiver_agents",
    "receiver_agent_nickname",
    "receiver_agent_role",
    "agent_statuses",
    "statuses",
    "new_thread_id",
    "new_agent_nickname",
    "new_agent_role",
    "prompt",
    "model",
    "reasoning_effort",
    "tool",
    "namespace",
    "arguments",
    "content_items",
];

const TURN_CONTEXT: &[&str] = &[
    "turn_id",
    "root_turn_id",
    "trace_id",
    "cwd",
    "workspace_roots",
    "current_date",
    "timezone",
    "approval_policy",
    "approvals_reviewer",
    "sandbox_policy",
    "file_system_sandbox_policy",
    "permission_profile",
    "network",
    "model",
    "comp_hash",
    "personality",
    "collaboration_mode",
    "multi_agent_version",
    "realtime_active",
    "effort",
    "summary",
    "base_instructions",
    "user_instructions",
    "developer_instructions",
    "final_output_json_schema",
    "truncation_policy",
    "disabled_plugin_ids",
];

/// Fields of the items of paginated files.
const COMPLETED_ITEM: &[&str] = &[
    "type",
    "id",
    "client_id",
    "content",
    "phase",
    "memory_citation",
    "summary_text",
    "raw_content",
    "text",
    "command",
    "cwd",
    "parsed_cmd",
    "source",
    "status",
    "aggregated_output",
    "formatted_output",
    "exit_code",
    "duration",
    "process_id",
    "interaction_input",
    "changes",
    "stdout",
    "stderr",
    "auto_approved",
    "server",
    "tool",
    "namespace",
    "arguments",
    "result",
    "error",
    "readOnlyHint",
    "mcp_app_resource_uri",
    "success",
    "content_items",
    "query",
    "action",
    "results",
    "sender_thread_id",
    "receiver_thread_ids",
    "receiver_agents",
    "prompt",
    "model",
    "reasoning_effort",
    "agents_states",
    "kind",
    "agent_thread_id",
    "agent_path",
    "target",
    "user_facing_hint",
    "review",
    "review_output",
    "path",
    "revised_prompt",
    "saved_path",
    "fragments",
    "duration_ms",
];

/// Parts of messages, of reasoning and of outputs.
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

/// What a patch does to a file.
const CHANGES: &[&str] = &["add", "delete", "update"];

/// Roles of messages.
const ROLES: &[&str] = &["user", "assistant", "developer", "system"];

pub fn each_unknown_field(object: &Object<'_>, known: &[&str], what: &str, out: &mut Vec<Item>) {
    for (name, _) in object.fields() {
        if !known.iter().any(|known| known.as_bytes() == *name) {
            out.push(Item::Drift(format!("{what} field/{}", String::from_utf8_lossy(name))));
        }
    }
}

/// Fields of a payload whose line is of a known type.
pub fn each_unknown_in_payload(line: &str, payload: &Object<'_>, out: &mut Vec<Item>) {
    let known = PAYLOADS.iter().find(|(name, _)| *name == line);
    if let Some((_, known)) = known {
        each_unknown_field(payload, known, line, out);
    }
    each_unknown_change(payload, out);
}

fn each_unknown_change(object: &Object<'_>, out: &mut Vec<Item>) {
    for (_, change) in object.get("changes").iter().flat_map(|changes| changes.fields()) {
        let kind = change.get_text("type");
        if let Some(kind) = kind.filter(|kind| !CHANGES.contains(&kind.as_ref())) {
            out.push(Item::Drift(format!("change/{kind}")));
        }
    }
}

/// Fields of a completed item.
pub fn each_unknown_in_item(kind: &str, item: &Object<'_>, out: &mut Vec<Item>) {
    each_unknown_field(item, COMPLETED_ITEM, kind, out);
    each_unknown_change(item, out);
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
