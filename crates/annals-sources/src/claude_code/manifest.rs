//! The manifest of Claude Code: its streams and their fields.

use super::fields::ATTACHMENT;
use super::footprint::FOOTPRINT;
use crate::home::authored::HOOK;
use crate::home::streams::transcript;
use annals_core::{
    Family, Field, Manifest, Retention, Rows, Semantics, Stream, Surface, ValueKind, Variable,
};

pub static MANIFEST: Manifest = Manifest {
    source: "claude_code",
    label: "Claude Code",
    route: "claude-code",
    reader_version: 9,
    summary: "transcripts, sub-agents, full tool results, file snapshots, to-do lists and prompt history",
    setup_hint: "run `claude` once, or set CLAUDE_CONFIG_DIR (a home) or CLAUDE_CODE_PROJECTS_DIR (a projects directory)",
    default_homes: &["~/.claude", "~/.config/claude"],
    variables: &[
        variable(
            "CLAUDE_CONFIG_DIR",
            "claude_code.home",
            "the client's home, or a list of homes",
            "~/.claude",
            ValueKind::List,
        ),
        variable(
            "CLAUDE_CODE_PROJECTS_DIR",
            "claude_code.projects_dir",
            "a projects folder alone",
            "",
            ValueKind::Text,
        ),
        variable(
            "CLAUDE_CODE_PROJECTS_DIR_INCLUDE",
            "claude_code.projects_include",
            "list of patterns: only these project folders",
            "",
            ValueKind::List,
        ),
        variable(
            "CLAUDE_CODE_PROJECTS_DIR_EXCLUDE",
            "claude_code.projects_exclude",
            "list of patterns: not these project folders",
            "",
            ValueKind::List,
        ),
        variable(
            "ANNALS_CLAUDE_FILE_SNAPSHOTS",
            "claude_code.file_snapshots",
            "archive the content of files before an edit, which takes most of the space",
            "yes",
            ValueKind::Boolean,
        ),
        variable(
            "ANNALS_CLAUDE_FOLLOW_LINKS",
            "claude_code.follow_links",
            "also archive files outside the home that links in it point to (dotfiles)",
            "no",
            ValueKind::Boolean,
        ),
    ],
    streams: STREAMS,
    searched: &["tool_results_full"],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: Some(Retention { file: "settings.json", key: "cleanupPeriodDays", default_days: 30 }),
    resume_command: "claude --resume {id}",
};

const STREAMS: &[Stream] = &[
    transcript(
        "sessions",
        "one row per transcript file",
        Rows::Sessions,
        Semantics::MutableState,
        "last_event_at",
        SESSION,
    ),
    transcript(
        "messages",
        "one row per prompt, answer of the model, or injected text",
        Rows::Messages,
        Semantics::AppendOnly,
        "at",
        MESSAGE,
    ),
    transcript(
        "tool_calls",
        "one row per call, with its result paired by id",
        Rows::Calls,
        Semantics::AppendOnly,
        "at",
        CALL,
    ),
    transcript(
        "attachments",
        "all other rows with their own type: attachments, modes, snapshots, hooks, queue",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        ATTACHMENT,
    ),
    transcript(
        "subagent_transcripts",
        "transcripts of sub-agents, with the session that started them",
        Rows::Agents,
        Semantics::MutableState,
        "last_event_at",
        SESSION,
    ),
    transcript(
        "tool_results_full",
        "complete outputs that were too long for the transcript",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("id", "string", "session and file name"),
            Field::preview("text", "string", "the output", "records … --key ID --full"),
            Field::new("bytes", "integer", "length in bytes"),
            Field::new("tool_use_id", "string|null", "call whose output it is"),
        ],
    ),
    transcript(
        "file_snapshots",
        "files before an edit, with their path, session and prompt",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("id", "string", "session and backup name"),
            Field::new("session_id", "string", "session"),
            Field::new("path", "string", "path of the file, relative to the working directory or absolute"),
            Field::new("version", "integer|null", "number of the backup"),
            Field::new("message_id", "string|null", "prompt whose turn changed the file"),
            Field::new("bytes_at", "string", "where `annals restore` writes its content"),
            Field::new("size", "integer|null", "length in bytes, if the content is archived"),
            Field::new("hash", "string|null", "BLAKE3 of the content, if it is archived"),
        ],
    ),
    transcript(
        "todos",
        "to-do lists and tasks, a new version for every change",
        Rows::Records,
        Semantics::MutableState,
        "at",
        TASK,
    ),
    transcript(
        "history",
        "every prompt typed, including those of deleted sessions",
        Rows::Records,
        Semantics::AppendOnly,
        "timestamp",
        &[
            Field::preview(
                "display",
                "string",
                "the prompt with placeholders for pastes",
                "records … --key KEY --full",
            ),
            Field::new("timestamp", "integer", "milliseconds since 1970"),
            Field::new("project", "string|null", "working directory"),
            Field::new("sessionId", "string|null", "session"),
            Field::new("pastedContents", "object|null", "pasted texts, or the names of their files"),
        ],
    ),
    Stream::mutable_records("skills", "skills and their supporting files", Family::Authored, SKILL),
    Stream::mutable_records(
        "slash_commands",
        "commands, with directories as namespaces",
        Family::Authored,
        DOCUMENT,
    ),
    Stream::mutable_records("agents", "agents written by the user", Family::Authored, DOCUMENT),
    Stream::mutable_records("hooks", "scripts that settings run on events", Family::Authored, HOOK),
    Stream::mutable_records("output_styles", "output styles written by the user", Family::Authored, DOCUMENT),
    Stream::mutable_records("plans", "plan documents", Family::Authored, DOCUMENT),
    Stream::mutable_records(
        "project_instructions",
        "instructions and rules for every session, or for those in a repository",
        Family::Authored,
        DOCUMENT,
    ),
    Stream::mutable_records("memory_notes", "memories about a project", Family::Memory, NOTE),
    Stream::mutable_records(
        "settings",
        "permissions, hooks and MCP servers; environment values masked",
        Family::Settings,
        SETTINGS,
    ),
    Stream::mutable_records("plugins", "registry of plugins and marketplaces", Family::Settings, PLUGINS),
];

const DOCUMENT: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "from the front matter, or the file name"),
    Field::new("description", "string|array|null", "purpose"),
    Field::new("argument_hint", "string|array|null", "expected arguments"),
    Field::new("front_matter", "object", "complete content"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
];

const SKILL: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "from the front matter, or the directory name"),
    Field::new("description", "string|array|null", "purpose, and when it is used"),
    Field::new("argument_hint", "string|array|null", "expected arguments"),
    Field::new("front_matter", "object", "complete content"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
    Field::new("allowed_tools", "string|array|null", "tools it may use"),
    Field::new("scope", "string", "user or project"),
    Field::new("path", "string", "path below the home, or absolute in a repository"),
    Field::new("triggers", "string|array|object|null", "when it is used, from the front matter"),
    Field::new("installed_from", "string|array|object|null", "origin, if not written by the user"),
    Field::new("supporting_file", "boolean", "a file beside the skill document"),
];

const NOTE: &[Field] = &[
    Field::new("id", "string", "project directory and file"),
    Field::new("name", "string|null", "from the front matter, or the file name"),
    Field::new("description", "string|array|null", "subject"),
    Field::new("argument_hint", "string|array|null", "not used by notes"),
    Field::new("front_matter", "object", "complete content"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
    Field::new("project_folder", "string", "directory of the project in the client's home"),
    Field::new("project_path", "string|null", "working directory, if a session in it is archived"),
    Field::new("filename", "string", "file, below the directory of memories"),
    Field::new("updated_at", "string|null", "last change"),
];

const TASK: &[Field] = &[
    Field::new("id", "string", "session and agent, or list and number of a task"),
    Field::new("session_id", "string|null", "session, or name of the list of tasks"),
    Field::new("agent_id", "string|null", "agent of a to-do list"),
    Field::new("todos", "array|null", "content, status and activeForm of each entry of a to-do list"),
    Field::new("task_id", "string|null", "number of a task in its list"),
    Field::new("subject", "string|null", "what a task is about"),
    Field::new("description", "string|null", "what is to be done"),
    Field::new("activeForm", "string|null", "the subject while it is worked on"),
    Field::new("status", "string|null", "pending, in_progress, completed or deleted"),
    Field::new("owner", "string|null", "agent that has taken the task"),
    Field::new("blocks", "array|null", "tasks that wait for this one"),
    Field::new("blockedBy", "array|null", "tasks that this one waits for"),
    Field::new("metadata", "object|null", "what the client adds"),
];

const SETTINGS: &[Field] = &[
    Field::new("id", "string", "the file"),
    Field::new("settings", "object|null", "all settings, environment values masked"),
    Field::new("permissions", "object|null", "allowed, denied and ask rules"),
    Field::new("hooks", "object|null", "commands that run on events"),
    Field::new("model", "string|null", "model of new sessions"),
    Field::new("cleanupPeriodDays", "integer|null", "days until the client deletes transcripts"),
    Field::new("enabledMcpjsonServers", "array|null", "MCP servers in use"),
    Field::new("enabledPlugins", "object|null", "plugins in use"),
    Field::new("unreadable", "string|null", "why the settings could not be read"),
];

const PLUGINS: &[Field] = &[
    Field::new("id", "string", "the file"),
    Field::new("registry", "object|array|null", "complete content"),
    Field::new("unreadable", "string|null", "why the registry could not be read"),
];

const SESSION: &[Field] = &[
    Field::alias("id", "session_id", "string", "name of the file"),
    Field::new("cwd", "string|null", "first working directory in its rows"),
    Field::alias("project", "project_dir", "string|null", "project, derived from the working directory"),
    Field::new("git_branch", "string|null", "last branch in its rows"),
    Field::new("versions", "array|null", "versions of the clients that wrote it"),
    Field::alias("entrypoint", "entrypoints", "array", "cli, sdk-cli and others"),
    Field::new("user_type", "string|null", "as the client reports it"),
    Field::new("title", "string|null", "given by the user, generated, a summary, or the first prompt"),
    Field::new("permission_modes", "array|null", "permission modes in use"),
    Field::new("models", "array", "models in order of first use"),
    Field::new("session_ids", "array|null", "other session ids in its rows"),
    Field::new("parent_session_id", "string|null", "session that it was forked from or started by"),
    Field::new("parent_kind", "string|null", "fork or sub_agent"),
    Field::new("agent_type", "string|null", "kind of a sub-agent"),
    Field::new("tool_use_id", "string|null", "call that started a sub-agent"),
    Field::new("worktree", "object|null", "Git worktree"),
    Field::new("started_at", "string|null", "time of the first row"),
    Field::new("first_message_at", "string|null", "time of the first prompt or answer"),
    Field::alias("last_event_at", "last_message_at", "string|null", "time of the last row"),
    Field::new("message_count", "integer", "prompts and answers"),
    Field::new("user_message_count", "integer", "user records that are neither injected nor results"),
    Field::new("assistant_message_count", "integer", "answers of the model"),
    Field::new("tool_call_count", "integer", "tool calls of every kind"),
    Field::new("tokens", "object", "tokens of all answers, counted once"),
    Field::new("source_gone", "boolean", "deleted by the client"),
];

const MESSAGE: &[Field] = &[
    Field::new("id", "string", "derived from the client's ids; stable across forks and rebuilds"),
    Field::new("session_id", "string", "session"),
    Field::new("role", "string", "user, assistant or system"),
    Field::new("kind", "string", "prompt, answer, injected, summary, notice, agent, command or result"),
    Field::new("at", "string|null", "time of the row"),
    Field::new("model", "string|null", "model that answered"),
    Field::new("copied", "boolean", "copied from another session, where it is counted"),
    Field::preview("blocks", "array", "text, thinking, image and event blocks", "records … --key ID --full"),
    Field::new("native", "object", "envelope of the row, as the client wrote it"),
];

const CALL: &[Field] = &[
    Field::new("id", "string", "derived from the tool use id"),
    Field::new("session_id", "string", "session"),
    Field::new("call_id", "string", "tool use id"),
    Field::new("name", "string", "tool name"),
    Field::new("kind", "string", "shell, edit, read, search, web, mcp, agent or function"),
    Field::new("title", "string", "command, path or pattern on one line"),
    Field::new("at", "string|null", "time of the call"),
    Field::new("model", "string|null", "model that called"),
    Field::new("parent_call", "string|null", "not used by this client"),
    Field::new("ok", "boolean|null", "null if there is no result"),
    Field::new("exit_code", "integer|null", "exit code of a command"),
    Field::new("duration_ms", "integer|null", "duration, if recorded"),
    Field::new("copied", "boolean", "copied from another session, where it is counted"),
    Field::preview("input", "string|object|array|null", "input", "records … --key ID --full"),
    Field::preview(
        "output",
        "string|null",
        "output; complete if it is stored in a separate file",
        "records … --key ID --full",
    ),
    Field::new("files", "array", "files read or changed, with line ranges if recorded"),
];

const fn variable(
    name: &'static str,
    config_key: &'static str,
    what: &'static str,
    default: &'static str,
    kind: ValueKind,
) -> Variable {
    Variable { name, config_key, what, default, kind }
}

const SURFACE: &[Surface] = &[
    Surface::collected("sessions", "sessions"),
    Surface::collected("messages", "messages"),
    Surface::collected("attachments and other rows", "attachments"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("skills", "skills"),
    Surface::collected("slash commands", "slash_commands"),
    Surface::collected("memory notes", "memory_notes"),
    Surface::collected("sub-agent transcripts", "subagent_transcripts"),
    Surface::collected("full tool results", "tool_results_full"),
    Surface::collected("file snapshots", "file_snapshots"),
    Surface::collected("project instructions", "project_instructions"),
    Surface::collected("settings", "settings"),
    Surface::collected("todos and tasks", "todos"),
    Surface::collected("plans", "plans"),
    Surface::collected("plugins", "plugins"),
    Surface::collected("agents", "agents"),
    Surface::collected("output styles", "output_styles"),
    Surface::collected("hooks", "hooks"),
    Surface::collected("prompt history", "history"),
    Surface::partial("pastes", "", "content is kept; the history refers to it"),
    Surface::omitted("credentials, .claude.json", "secrets"),
    Surface::omitted("telemetry, statsig, debug, caches", "product telemetry"),
    Surface::omitted("shell snapshots, session env, plugin caches", "caches and third-party code"),
];
