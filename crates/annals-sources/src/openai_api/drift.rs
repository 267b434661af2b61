//! What is new inside of a trace: items, roles of messages and parts of their content.

use crate::json::Json;

/// Items of the Responses API.
const ITEMS: &[&str] = &[
    "message",
    "reasoning",
    "compaction",
    "mcp_approval_request",
    "mcp_approval_response",
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "mcp_call",
    "image_generation_call",
    "tool_search_call",
    "program",
    "function_call_output",
    "custom_tool_call_output",
    "computer_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "tool_search_output",
    "program_output",
    "mcp_list_tools",
    "item_reference",
];

/// Items that are no step of a conversation.
pub const ASIDE: &[&str] = &["", "message", "mcp_list_tools", "item_reference"];

const ROLES: &[&str] = &["user", "assistant", "model", "system", "developer", "tool", "function"];

/// Parts of messages, of reasoning and of outputs.
const PARTS: &[&str] = &[
    "text",
    "input_text",
    "output_text",
    "summary_text",
    "reasoning_text",
    "refusal",
    "image_url",
    "input_image",
    "computer_screenshot",
    "input_audio",
    "output_audio",
    "file",
    "input_file",
];

/// Lists of items and of messages in requests and responses.
const LISTS: &[&str] = &["input", "output", "data", "items", "messages"];

/// Calls `visit` with the kind of everything in a request or a response that is not known.
pub fn each_unknown(body: Json<'_>, visit: &mut dyn FnMut(String)) {
    for list in LISTS.iter().filter_map(|name| body.get(name)) {
        list.items().filter(|item| item.is_object()).for_each(|item| of_item(item, visit));
    }
    for choice in body.get("choices").iter().flat_map(|choices| choices.items()) {
        choice.get("message").into_iter().for_each(|message| of_item(message, visit));
    }
}

fn of_item(item: Json<'_>, visit: &mut dyn FnMut(String)) {
    if let Some(kind) = item.get_text("type").filter(|kind| !ITEMS.contains(&kind.as_ref())) {
        visit(format!("item/{kind}"));
    }
    if let Some(role) = item.get_text("role").filter(|role| !ROLES.contains(&role.as_ref())) {
        visit(format!("role/{role}"));
    }
    for name in ["content", "summary", "output"] {
        for part in item.get(name).iter().flat_map(|parts| parts.items()) {
            if let Some(kind) = part.get_text("type").filter(|kind| !PARTS.contains(&kind.as_ref())) {
                visit(format!("part/{kind}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::each_unknown;
    use crate::json::Json;

    fn unknown(body: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_unknown(Json::parse(body.as_bytes()).unwrap(), &mut |kind| found.push(kind));
        found
    }

    #[test]
    fn what_is_new_is_named() {
        let request =
            r#"{"input":[{"type":"dream_call"},{"role":"oracle","content":[{"type":"smell"},"bare"]}]}"#;
        assert_eq!(unknown(request), ["item/dream_call", "role/oracle", "part/smell"]);
        let response =
            r#"{"choices":[{"message":{"role":"assistant","content":[{"type":"text"},{"type":"dream"}]}}]}"#;
        assert_eq!(unknown(response), ["part/dream"]);
        assert_eq!(unknown(r#"{"input":"words","messages":[{"role":"user","content":"words"}]}"#), [""; 0]);
    }
}
