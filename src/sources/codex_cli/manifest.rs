//! The manifest of Codex CLI: its streams and their fields.

use super::footprint::{DATABASES, FOOTPRINT};
use crate::model::{Coverage, Family, Field, Manifest, Rows, Semantics, Stream, Variable};

pub static MANIFEST: Manifest = Manifest {
    source: "codex_cli",
    label: "Codex CLI",
    reader_version: 1,
    summary: "transcripts, thread table, prompt history and names that Codex CLI keeps on this machine",
    setup_hint: "run `codex` once, or set CODEX_HOME (a Codex home) or CODEX_SESSIONS_PATH (a sessions folder)",
    default_homes: &["~/.codex"],
    variables: &[
        Variable {
            name: "CODEX_HOME",
            config_key: "codex_cli.home",
            what: "the client's home",
            default: "~/.codex",
        },
        Variable {
            name: "CODEX_SESSIONS_PATH",
            config_key: "codex_cli.sessions_path",
            what: "a sessions folder alone, without a home around it",
            default: "",
        },
        Variable {
            name: "CODEX_SESSIONS_DIR",
            config_key: "codex_cli.sessions_dir",
            what: "another name for CODEX_SESSIONS_PATH",
            default: "",
        },
    ],
    streams: STREAMS,
    footprint: FOOTPRINT,
    databases: DATABASES,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "codex resume {id}",
};

const STREAMS: &[Stream] = &[
    Stream {
        name: "sessions",
        what: "one row a thread, joined from its transcripts, the thread table and the names file",
        family: Family::Transcript,
        semantics: Semantics::MutableState,
        rows: Rows::Sessions,
        primary_key: &["id"],
        cursor_field: "last_event_at",
        consent_time_field: Some("started_at"),
        coverage: Coverage::FullInventory,
        fields: &[
            alias("id", "session_id", "string", "thread id"),
            field("cwd", "string|null", "working folder at the start"),
            field("title", "string|null", "name, title or first prompt"),
            field("name", "string|null", "name that the person gave"),
            field("originator", "string|null", "program that started the thread"),
            alias(
                "source",
                "native.source",
                "string|object|null",
                "how it was started: cli, exec, vscode, a sub-agent",
            ),
            alias("cli_version", "client_version", "string|null", "client that wrote the transcript"),
            field("model_provider", "string|null", "provider id from the client's config"),
            field("models", "array", "models in the order of their first use"),
            field("git_commit", "string|null", "commit at the start"),
            field("git_branch", "string|null", "branch at the start"),
            field("git_origin_url", "string|null", "remote of the repository"),
            alias("started_at", "first_message_at", "string|null", "start, RFC 3339 UTC"),
            alias("last_event_at", "last_message_at", "string|null", "time of the last line"),
            field("archived", "boolean", "archived by the person"),
            field("archived_at", "string|number|null", "when it was archived"),
            field(
                "tokens_used",
                "integer|null",
                "the client's own running total; a fork's includes its parent's",
            ),
            field("first_user_message", "string|null", "as the thread table has it"),
            field("sandbox_policy", "string|object|null", "sandbox of the thread"),
            field("approval_mode", "string|object|null", "when the client asks before it acts"),
            field("reasoning_effort", "string|null", "effort setting"),
            field("memory_mode", "string|null", "whether the thread feeds memories"),
            field("agent_nickname", "string|null", "name of a sub-agent"),
            field("agent_role", "string|null", "role of a sub-agent"),
            field("agent_path", "string|null", "place in the tree of agents"),
            field("parent_session_id", "string|null", "thread this one was forked from or spawned by"),
            field("parent_kind", "string|null", "fork, sub_agent, review or revert"),
            field("message_count", "integer", "prompts and answers"),
            field("user_message_count", "integer", "the person's own messages"),
            field("assistant_message_count", "integer", "the assistant's messages"),
            alias("function_call_count", "tool_call_count", "integer", "calls of every kind"),
            field("tokens", "object", "tokens of all responses, counted once"),
            field("source_gone", "boolean", "the client no longer has the transcript"),
        ],
    },
    Stream {
        name: "messages",
        what: "one row a message; event and response item of one message are merged",
        family: Family::Transcript,
        semantics: Semantics::AppendOnly,
        rows: Rows::Messages,
        primary_key: &["session_id", "id"],
        cursor_field: "at",
        consent_time_field: Some("at"),
        coverage: Coverage::FullInventory,
        fields: &[
            field("id", "string", "made from the content, stable over forks, archive and rebuild"),
            field("session_id", "string", "thread id"),
            field("role", "string", "user, assistant, system or developer"),
            field("kind", "string", "prompt, answer, thinking, injected, summary, notice or agent"),
            field("at", "string|null", "time of the line"),
            field("model", "string|null", "model of the turn"),
            field("copied", "boolean", "stands in another session too and is counted there"),
            preview("blocks", "array", "text, thinking, image and event blocks", "records … --key ID --full"),
            field("native", "object", "type, ids, turn and phase as the client wrote them"),
        ],
    },
    Stream {
        name: "function_calls",
        what: "one row an invocation, its output paired by call id",
        family: Family::Transcript,
        semantics: Semantics::AppendOnly,
        rows: Rows::Calls,
        primary_key: &["session_id", "id"],
        cursor_field: "at",
        consent_time_field: Some("at"),
        coverage: Coverage::FullInventory,
        fields: &[
            field("id", "string", "made from the content, stable over forks, archive and rebuild"),
            field("session_id", "string", "thread id"),
            field("call_id", "string", "the provider's call id"),
            field("name", "string", "tool name, with its namespace"),
            field("kind", "string", "shell, edit, search, web, mcp, agent, script, function"),
            field("title", "string", "the command, path or query in a line"),
            field("at", "string|null", "time of the call"),
            field("ok", "boolean|null", "null when the client recorded no outcome"),
            field("exit_code", "integer|null", "exit code of a command"),
            field("duration_ms", "integer|null", "time it took, where recorded"),
            field("parent_call", "string|null", "the script call that made this one"),
            field("copied", "boolean", "stands in another session too and is counted there"),
            preview("input", "string|object|array|null", "arguments", "records … --key ID --full"),
            preview("output", "string|null", "output for the model", "records … --key ID --full"),
            field("files", "array", "files read or changed, with line ranges where recorded"),
        ],
    },
    Stream {
        name: "threads",
        what: "rows of the thread table as the client has them, a new version for every change",
        family: Family::Transcript,
        semantics: Semantics::MutableState,
        rows: Rows::Records,
        primary_key: &["id"],
        cursor_field: "updated_at",
        consent_time_field: None,
        coverage: Coverage::FullInventory,
        fields: &[field("id", "string", "thread id")],
    },
    Stream {
        name: "history",
        what: "prompts typed in the terminal client",
        family: Family::Transcript,
        semantics: Semantics::AppendOnly,
        rows: Rows::Records,
        primary_key: &["session_id", "ts"],
        cursor_field: "ts",
        consent_time_field: Some("ts"),
        coverage: Coverage::FullInventory,
        fields: &[
            field("session_id", "string", "thread id"),
            field("ts", "integer", "seconds since 1970"),
            preview("text", "string", "the prompt", "records … --key KEY --full"),
        ],
    },
    Stream {
        name: "session_index",
        what: "names that were given to threads, every renaming a row",
        family: Family::Transcript,
        semantics: Semantics::AppendOnly,
        rows: Rows::Records,
        primary_key: &["id", "updated_at"],
        cursor_field: "updated_at",
        consent_time_field: Some("updated_at"),
        coverage: Coverage::FullInventory,
        fields: &[
            field("id", "string", "thread id"),
            field("thread_name", "string", "the name"),
            field("updated_at", "string", "when it was given"),
        ],
    },
];

const fn field(name: &'static str, kind: &'static str, what: &'static str) -> Field {
    Field { name, kind, what, preview: None, from: name }
}

const fn preview(name: &'static str, kind: &'static str, what: &'static str, whole: &'static str) -> Field {
    Field { name, kind, what, preview: Some(whole), from: name }
}

/// The client's name for something every source has.
const fn alias(name: &'static str, from: &'static str, kind: &'static str, what: &'static str) -> Field {
    Field { name, kind, what, preview: None, from }
}
