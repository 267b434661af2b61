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
