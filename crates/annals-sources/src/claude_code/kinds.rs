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

/// The identity of a row: the same in a fork's copy.
pub fn row_key(uuid: &str) -> ContentKey {
    ContentKey::of(&[b"row", uuid.as_bytes()])
}

/// The file's name without folder and ending: what a session is called.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The session in `…/<session>/subagents/…`.
pub fn agent_parent(path: &str) -> Option<String> {
    let (before, _) = path.split_once("/subagents/")?;
    before.rsplit('/').next().map(str::to_owned)
}
