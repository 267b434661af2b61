//! Kinds of rows that are not conversation, and the names of rows and files.

use annals_core::ContentKey;

/// Copies of prompts and system text, and running totals: kept in the bytes and counted, no conversation.
pub(super) const PLUMBING: &[&str] = &[
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "cost-state",
    "tools-used",
    "atis-latch",
    "isolation-latch",
    "resume-head-vouch",
];

pub(super) const STATE_ROWS: &[&str] = &[
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "continued-in",
    "custom-title",
    "data-flow-incomplete",
    "data-flow-records",
    "derived-from",
    "dev-mods",
    "ended-by-model",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "history-suppression",
    "last-prompt",
    "memory-mode",
    "mode",
    "observer-ref",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "session-owner",
    "summary",
    "tag",
    "turn_end",
    "worktree-state",
];

pub(super) const SYSTEM_ROWS: &[&str] = &[
    "agents_killed",
    "api_error",
    "api_metrics",
    "away_summary",
    "bridge_status",
    "compact_boundary",
    "informational",
    "local_command",
    "memory_saved",
    "microcompact_boundary",
    "model_fallback",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "permission_retry",
    "scheduled_task_fire",
    "session_title_changed",
    "stop_hook_summary",
    "turn_duration",
];

pub(super) const ATTACHMENTS: &[&str] = &[
    "agent_listing_delta",
    "agent_mention",
    "already_read_file",
    "async_hook_response",
    "auto_mode",
    "auto_mode_exit",
    "budget_usd",
    "command_permissions",
    "compact_file_reference",
    "compaction_reminder",
    "context_efficiency",
    "critical_system_reminder",
    "current_session_memory",
    "date",
    "date_change",
    "deferred_tools_delta",
    "diagnostics",
    "directory",
    "dynamic_skill",
    "edited_image_file",
    "edited_text_file",
    "environment",
    "file",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_cancelled",
    "hook_error_during_execution",
    "hook_non_blocking_error",
    "hook_permission_decision",
    "hook_stopped_continuation",
    "hook_success",
    "hook_system_message",
    "instructions",
    "invoked_skills",
    "max_turns_reached",
    "mcp_instructions_delta",
    "mcp_resource",
    "model",
    "nested_memory",
    "opened_file_in_ide",
    "output_style",
    "output_token_usage",
    "pdf_reference",
    "plan_file_reference",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "prompt_snapshot",
    "queued_command",
    "relevant_memories",
    "remote_session_change",
    "selected_lines_in_ide",
    "session_context",
    "silent_turn_reminder",
    "skill_discovery",
    "skill_listing",
    "structured_output",
    "task_reminder",
    "task_status",
    "team_context",
    "teammate_mailbox",
    "todo",
    "todo_reminder",
    "token_usage",
    "ultrathink_effort",
    "verify_plan_reminder",
];

pub(super) const PROGRESS: &[&str] = &[
    "agent_progress",
    "bash_progress",
    "hook_progress",
    "mcp_progress",
    "query_update",
    "search_results_received",
    "skill_progress",
    "waiting_for_task",
];

pub(super) const USER_BLOCKS: &[&str] = &["text", "image", "document", "tool_result"];

pub(super) const ASSISTANT_BLOCKS: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "mcp_tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "image",
    "document",
    "fallback",
    "compaction",
];

/// Parts of a tool's result.
pub(super) const RESULT_PARTS: &[&str] = &["text", "image", "document", "tool_reference", "search_result"];

/// The identity of a row: the same in a fork's copy.
pub fn row_key(uuid: &str) -> ContentKey {
    ContentKey::of(&[b"row", uuid.as_bytes()])
}

/// The file's name without folder and ending: what a session is called.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The session in `projects/<project>/<session>/subagents/…`; without its folder, the rows name it.
pub fn agent_parent(path: &str) -> Option<String> {
    let (before, _) = path.split_once("/subagents/")?;
    let mut folders = before.rsplit('/');
    let session = folders.next()?;
    (folders.next() != Some("projects")).then(|| session.to_owned())
}

/// `2.1.44` as numbers that compare.
pub fn version_number(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// Commands that give the assistant no work: they say nothing of what a session is about.
const HOUSEKEEPING: &[&str] = &[
    "add-dir",
    "agents",
    "bashes",
    "bug",
    "clear",
    "color",
    "compact",
    "config",
    "context",
    "copy",
    "cost",
    "desktop",
    "doctor",
    "effort",
    "exit",
    "export",
    "extra-usage",
    "fast",
    "feedback",
    "fork",
    "help",
    "hooks",
    "ide",
    "install-github-app",
    "keybindings",
    "login",
    "logout",
    "mcp",
    "memory",
    "mobile",
    "model",
    "new",
    "output-style",
    "permissions",
    "plan",
    "plugin",
    "privacy-settings",
    "quit",
    "rate-limit-options",
    "release-notes",
    "reload-plugins",
    "remote-control",
    "remote-env",
    "rename",
    "reset",
    "resume",
    "rewind",
    "sandbox",
    "settings",
    "skills",
    "stats",
    "status",
    "statusline",
    "stickers",
    "tasks",
    "terminal-setup",
    "theme",
    "todos",
    "upgrade",
    "usage",
    "vim",
    "voice",
];

/// `/clear` and the like, and commands for the shell.
pub fn is_housekeeping(command: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default();
    match name.strip_prefix('/') {
        Some(name) => HOUSEKEEPING.contains(&name),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_housekeeping, version_number};

    #[test]
    fn versions_compare() {
        assert_eq!(version_number("2.1.44"), Some([2, 1, 44]));
        assert_eq!(version_number("2.1.44-beta"), Some([2, 1, 44]));
        assert_eq!(version_number("2.1"), None);
        assert!(version_number("2.0.9") < version_number("2.0.10"));
    }

    #[test]
    fn commands_for_the_client_say_nothing() {
        assert!(is_housekeeping("/clear"));
        assert!(is_housekeeping("!ls -l"));
        assert!(!is_housekeeping("/ns:hello world"));
        assert!(!is_housekeeping("/init"));
    }
}
