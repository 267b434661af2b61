//! The manifest of Claude Code: its streams and their fields.

use super::footprint::FOOTPRINT;
use annals_core::{
    Coverage, Family, Field, Manifest, Retention, Rows, Semantics, Stream, Surface, ValueKind, Variable,
};

pub static MANIFEST: Manifest = Manifest {
    source: "claude_code",
    label: "Claude Code",
    route: "claude-code",
    reader_version: 4,
    summary: "transcripts, sub-agents, full tool results, file snapshots, to-do lists and prompt history",
    setup_hint: "run `claude` once, or set CLAUDE_CONFIG_DIR (a home) or CLAUDE_CODE_PROJECTS_DIR (a projects folder)",
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
    stream(
        "sessions",
        "one row a transcript file",
        Rows::Sessions,
        Semantics::MutableState,
        "last_event_at",
        SESSION,
    ),
    stream(
        "messages",
        "one row an answer of the model, a prompt, or injected text",
        Rows::Messages,
        Semantics::AppendOnly,
        "at",
        MESSAGE,
    ),
    stream(
        "tool_calls",
        "one row an invocation, its result paired by id",
        Rows::Calls,
        Semantics::AppendOnly,
        "at",
        CALL,
    ),
    stream(
        "attachments",
        "every other row, typed as found: attachments, modes, snapshots, hooks, queue",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[Field::new("type", "string", "the row's type")],
    ),
    stream(
        "subagent_transcripts",
        "transcripts of sub-agents, under the session that started them",
        Rows::Agents,
        Semantics::MutableState,
        "last_event_at",
        SESSION,
    ),
    stream(
        "tool_results_full",
        "outputs too long for the transcript, whole",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("id", "string", "session and file name"),
            Field::preview("text", "string", "the output", "records … --key ID --full"),
            Field::new("bytes", "integer", "its length"),
        ],
    ),
    stream(
        "file_snapshots",
        "files as they were before an edit, joined to path, session and prompt",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("id", "string", "session and backup name"),
            Field::new("session_id", "string", "session"),
            Field::new("path", "string", "the file, relative to the working folder or absolute"),
            Field::new("version", "integer|null", "number of the backup"),
            Field::new("message_id", "string|null", "the prompt before whose turn the file was so"),
            Field::new("bytes_at", "string", "where `restore` writes its bytes"),
        ],
    ),
    stream(
        "todos",
        "to-do lists and tasks, a new version for every change",
        Rows::Records,
        Semantics::MutableState,
        "at",
        &[],
    ),
    stream(
        "history",
        "every prompt typed, also of sessions that are gone",
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
            Field::new("project", "string|null", "working folder"),
            Field::new("sessionId", "string|null", "session"),
            Field::new("pastedContents", "object|null", "pasted bodies, or the names of their files"),
        ],
    ),
    Stream::mutable_records("skills", "skills and their supporting files", Family::Authored, SKILL),
    Stream::mutable_records("slash_commands", "commands, namespaces by folder", Family::Authored, DOCUMENT),
    Stream::mutable_records("agents", "agents that the person wrote", Family::Authored, DOCUMENT),
    Stream::mutable_records(
        "output_styles",
        "output styles that the person wrote",
        Family::Authored,
        DOCUMENT,
    ),
    Stream::mutable_records("plans", "plan documents", Family::Authored, DOCUMENT),
    Stream::mutable_records(
        "project_instructions",
        "what every session, or those of a repository, are told; rules too",
        Family::Authored,
        DOCUMENT,
    ),
    Stream::mutable_records(
        "memory_notes",
        "what the assistant remembers of a project",
        Family::Memory,
        NOTE,
    ),
    Stream::mutable_records(
        "settings",
        "permissions, hooks and MCP servers; values of env masked",
        Family::Settings,
        SETTINGS,
    ),
    Stream::mutable_records("plugins", "registry of plugins and marketplaces", Family::Settings, PLUGINS),
];

const DOCUMENT: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "as its front matter says, or its file"),
    Field::new("description", "string|array|null", "what it is for"),
    Field::new("argument_hint", "string|array|null", "what to give it"),
    Field::new("front_matter", "object", "all of it"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
];

const SKILL: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "as its front matter says, or its folder"),
    Field::new("description", "string|array|null", "what it is for, and when it is used"),
    Field::new("argument_hint", "string|array|null", "what to give it"),
    Field::new("front_matter", "object", "all of it"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
    Field::new("allowed_tools", "string|array|null", "tools it may use"),
    Field::new("triggers", "string|array|null", "when it is used, where its front matter says so"),
    Field::new("installed_from", "string|null", "where it came from, when not from the person"),
    Field::new("supporting_file", "boolean", "stands beside the skill's own document"),
];

const NOTE: &[Field] = &[
    Field::new("id", "string", "project folder and file"),
    Field::new("name", "string|null", "as its front matter says, or its file"),
    Field::new("description", "string|array|null", "what it is about"),
    Field::new("argument_hint", "string|array|null", "not used by notes"),
    Field::new("front_matter", "object", "all of it"),
    Field::preview("body", "string", "the text", "records … --key ID --full"),
    Field::new("project_folder", "string", "the client's folder of the project"),
];

const SETTINGS: &[Field] = &[
    Field::new("id", "string", "the file"),
    Field::new("settings", "object|null", "all settings, values of environments masked"),
    Field::new("permissions", "object|null", "what is allowed, denied and asked"),
    Field::new("hooks", "object|null", "commands that run on events"),
    Field::new("model", "string|null", "model of new sessions"),
    Field::new("cleanupPeriodDays", "integer|null", "days until the client deletes transcripts"),
    Field::new("enabledMcpjsonServers", "array|null", "MCP servers in use"),
    Field::new("enabledPlugins", "object|null", "plugins in use"),
    Field::new("unreadable", "string|null", "why there are no settings"),
];

const PLUGINS: &[Field] = &[
    Field::new("id", "string", "the file"),
    Field::new("registry", "object|array|null", "as it stands"),
    Field::new("unreadable", "string|null", "why there is none"),
];

const SESSION: &[Field] = &[
    Field::alias("id", "session_id", "string", "name of the file"),
    Field::new("cwd", "string|null", "first working folder that its rows name"),
    Field::alias("project", "project_dir", "string|null", "the project, from the working folder"),
    Field::new("git_branch", "string|null", "last branch that its rows name"),
    Field::new("versions", "array|null", "clients that wrote it"),
    Field::alias("entrypoint", "entrypoints", "array", "cli, sdk-cli and others"),
    Field::new("user_type", "string|null", "as the client says"),
    Field::new("title", "string|null", "given, made by the client, a summary, or the first prompt"),
    Field::new("permission_modes", "array|null", "modes it ran under"),
    Field::new("models", "array", "models in the order of their first use"),
    Field::new("session_ids", "array|null", "other ids that its rows carry"),
    Field::new("parent_session_id", "string|null", "session it was forked from or started by"),
    Field::new("parent_kind", "string|null", "fork or sub_agent"),
    Field::new("agent_type", "string|null", "kind of a sub-agent"),
    Field::new("tool_use_id", "string|null", "call that started a sub-agent"),
    Field::new("worktree", "object|null", "git worktree it ran in"),
    Field::alias("started_at", "first_message_at", "string|null", "time of the first row"),
    Field::alias("last_event_at", "last_message_at", "string|null", "time of the last row"),
    Field::new("message_count", "integer", "prompts and answers as a person counts them"),
    Field::new("user_message_count", "integer", "user records that are not injected and hold no result"),
    Field::new("assistant_message_count", "integer", "answers of the model"),
    Field::new("tool_call_count", "integer", "calls of every kind"),
    Field::new("tokens", "object", "tokens of all answers, counted once"),
    Field::new("source_gone", "boolean", "the client no longer has the transcript"),
];

const MESSAGE: &[Field] = &[
    Field::new("id", "string", "made from the client's ids, stable over forks and rebuild"),
    Field::new("session_id", "string", "session"),
    Field::new("role", "string", "user, assistant or system"),
    Field::new("kind", "string", "prompt, answer, injected, summary, notice, agent, command or result"),
    Field::new("at", "string|null", "time of the row"),
    Field::new("model", "string|null", "model that answered"),
    Field::new("copied", "boolean", "stands in another session too and is counted there"),
    Field::preview("blocks", "array", "text, thinking, image and event blocks", "records … --key ID --full"),
    Field::new("native", "object", "the row's envelope as the client wrote it"),
];

const CALL: &[Field] = &[
    Field::new("id", "string", "made from the tool use id"),
    Field::new("session_id", "string", "session"),
    Field::new("call_id", "string", "tool use id"),
    Field::new("name", "string", "tool name"),
    Field::new("kind", "string", "shell, edit, read, search, web, mcp, agent or function"),
    Field::new("title", "string", "the command, path or pattern in a line"),
    Field::new("at", "string|null", "time of the call"),
    Field::new("model", "string|null", "model that called"),
    Field::new("parent_call", "string|null", "not used by this client"),
    Field::new("ok", "boolean|null", "null while there is no result"),
    Field::new("exit_code", "integer|null", "exit code of a command"),
    Field::new("duration_ms", "integer|null", "time it took, where recorded"),
    Field::new("copied", "boolean", "stands in another session too and is counted there"),
    Field::preview("input", "string|object|array|null", "input", "records … --key ID --full"),
    Field::preview(
        "output",
        "string|null",
        "the whole output where it was kept apart",
        "records … --key ID --full",
    ),
    Field::new("files", "array", "files read or changed, with line ranges where recorded"),
];

const fn stream(
    name: &'static str,
    what: &'static str,
    rows: Rows,
    semantics: Semantics,
    cursor_field: &'static str,
    fields: &'static [Field],
) -> Stream {
    Stream {
        name,
        what,
        family: Family::Transcript,
        semantics,
        rows,
        primary_key: &["id"],
        cursor_field,
        consent_time_field: Some(cursor_field),
        coverage: Coverage::FullInventory,
        fields,
    }
}

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
    Surface::collected("prompt history", "history"),
    Surface::partial("pastes", "", "bytes are kept; the history names them"),
    Surface::omitted("credentials, .claude.json", "secrets"),
    Surface::omitted("telemetry, statsig, debug, caches", "telemetry of the product"),
    Surface::omitted("shell snapshots, session env, plugin caches", "restoration caches and others' code"),
];
