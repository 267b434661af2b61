//! Streams and fields that sources with a home have in common.

use annals_core::{Coverage, Family, Field, Rows, Semantics, Stream, ValueKind, Variable};

/// How to get the complete value of a field.
const WHOLE: &str = "records … --key ID --full";

pub const SESSIONS: Stream = transcript(
    "sessions",
    "one row per session, joined from all files about it",
    Rows::Sessions,
    Semantics::MutableState,
    "last_event_at",
    SESSION,
);

pub const MESSAGES: Stream = transcript(
    "messages",
    "one row per prompt, answer of the model, or injected text",
    Rows::Messages,
    Semantics::AppendOnly,
    "at",
    MESSAGE,
);

/// Messages of conversations that branch.
pub const BRANCHING_MESSAGES: Stream = transcript(
    "messages",
    "one row per prompt, answer of the model, or injected text, on any branch",
    Rows::Messages,
    Semantics::AppendOnly,
    "at",
    BRANCHING_MESSAGE,
);

pub const TOOL_CALLS: Stream = transcript(
    "tool_calls",
    "one row per call, with its result",
    Rows::Calls,
    Semantics::AppendOnly,
    "at",
    CALL,
);

pub const SUB_AGENTS: Stream = transcript(
    "subagent_transcripts",
    "transcripts of sub-agents, with the session that started them",
    Rows::Agents,
    Semantics::MutableState,
    "last_event_at",
    SESSION,
);

pub const TOOL_OUTPUTS: Stream = transcript(
    "tool_outputs",
    "complete outputs that were too long for the transcript",
    Rows::Records,
    Semantics::AppendOnly,
    "at",
    &[
        Field::new("id", "string", "session and file name"),
        Field::preview("text", "string", "the output", WHOLE),
        Field::new("bytes", "integer", "length in bytes"),
    ],
);

pub const INSTRUCTIONS: Stream = Stream::mutable_records(
    "project_instructions",
    "instructions for every session, or for those in a repository",
    Family::Authored,
    DOCUMENT,
);

pub const COMMANDS: Stream = Stream::mutable_records(
    "slash_commands",
    "commands, with directories as namespaces",
    Family::Authored,
    DOCUMENT,
);

pub const AGENTS: Stream =
    Stream::mutable_records("agents", "agents written by the user", Family::Authored, DOCUMENT);

pub const SKILLS: Stream =
    Stream::mutable_records("skills", "skills and their supporting files", Family::Authored, SKILL);

pub const PLANS: Stream = Stream::mutable_records("plans", "plan documents", Family::Authored, DOCUMENT);

pub const MEMORY: Stream =
    Stream::mutable_records("memory_notes", "memories that the assistant wrote", Family::Memory, DOCUMENT);

pub const SETTINGS: Stream = Stream::mutable_records(
    "settings",
    "settings; environment values masked",
    Family::Settings,
    &[
        Field::new("id", "string", "the file"),
        Field::new("settings", "object|array|null", "all settings, environment values masked"),
        Field::new("unreadable", "string|null", "why the settings could not be read"),
    ],
);

pub const EXTENSIONS: Stream = Stream::mutable_records(
    "extensions",
    "manifests of extensions",
    Family::Settings,
    &[
        Field::new("id", "string", "path of the manifest"),
        Field::new("name", "string|null", "name of the extension"),
        Field::new("extension_version", "string|null", "version of the extension"),
        Field::new("manifest", "object|null", "complete content, environment values masked"),
        Field::new("unreadable", "string|null", "why the manifest could not be read"),
    ],
);

pub const PROJECTS: Stream = Stream::mutable_records(
    "projects",
    "directories that sessions ran in",
    Family::Settings,
    &[
        Field::new("id", "string", "the file"),
        Field::new("projects", "object", "directories, with the client's name or trust for each"),
    ],
);

pub const DOCUMENT: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "from the front matter, or the file name"),
    Field::new("description", "string|array|null", "purpose"),
    Field::new("argument_hint", "string|array|null", "expected arguments"),
    Field::new("front_matter", "object", "complete content"),
    Field::preview("body", "string", "the text", WHOLE),
];

pub const SKILL: &[Field] = &[
    Field::new("id", "string", "name, with its repository before a #"),
    Field::new("name", "string|null", "from the front matter, or the directory name"),
    Field::new("description", "string|array|null", "purpose, and when it is used"),
    Field::new("argument_hint", "string|array|null", "expected arguments"),
    Field::new("front_matter", "object", "complete content"),
    Field::preview("body", "string", "the text", WHOLE),
    Field::new("allowed_tools", "string|array|null", "tools it may use"),
    Field::new("scope", "string", "user or project"),
    Field::new("path", "string", "path below the home, or absolute in a repository"),
    Field::new("triggers", "string|array|object|null", "when it is used, from the front matter"),
    Field::new("installed_from", "string|array|object|null", "origin, if not written by the user"),
    Field::new("supporting_file", "boolean", "a file beside the skill document"),
];

const SESSION: &[Field] = &[
    Field::alias("id", "session_id", "string", "the client's id of the session"),
    Field::new("cwd", "string|null", "working directory"),
    Field::new("git_branch", "string|null", "branch, if the client records it"),
    Field::new("title", "string|null", "given by the user, generated, or the first prompt"),
    Field::new("client_version", "string|null", "version of the client, if it is recorded"),
    Field::new("models", "array", "models in order of first use"),
    Field::new("parent_session_id", "string|null", "session that it was forked from or started by"),
    Field::new("parent_kind", "string|null", "fork or sub_agent"),
    Field::new("started_at", "string|null", "start, RFC 3339 UTC"),
    Field::new("first_message_at", "string|null", "time of the first prompt or answer"),
    Field::alias("last_event_at", "last_message_at", "string|null", "time of the last line"),
    Field::new("message_count", "integer", "prompts and answers"),
    Field::new("user_message_count", "integer", "messages by the user"),
    Field::new("assistant_message_count", "integer", "answers of the model"),
    Field::new("tool_call_count", "integer", "tool calls of every kind"),
    Field::new("tokens", "object", "tokens of all responses, counted once"),
    Field::new("source_gone", "boolean", "deleted by the client"),
];

const MESSAGE: &[Field] = &[
    Field::new("id", "string", "derived from the client's ids; stable across copies and rebuilds"),
    Field::new("session_id", "string", "session"),
    Field::new("role", "string", "user, assistant or system"),
    Field::new("kind", "string", "prompt, answer, injected, summary, notice, agent, command or result"),
    Field::new("at", "string|null", "time of the message"),
    Field::new("model", "string|null", "model that answered"),
    Field::new("copied", "boolean", "copied from another place, where it is counted"),
    Field::preview("blocks", "array", "text, thinking, image and event blocks", WHOLE),
    Field::new("native", "object", "other fields, as the client wrote them"),
];

const BRANCHING_MESSAGE: &[Field] = &[
    Field::new("id", "string", "derived from the client's ids; stable across copies and rebuilds"),
    Field::new("session_id", "string", "session"),
    Field::new("role", "string", "user, assistant or system"),
    Field::new("kind", "string", "prompt, answer, injected, summary, notice, agent, command or result"),
    Field::new("at", "string|null", "time of the message"),
    Field::new("model", "string|null", "model that answered"),
    Field::new("copied", "boolean", "copied from another place, where it is counted"),
    Field::new("children_ids", "array", "ids of the following messages, one per branch"),
    Field::new("on_current_branch", "boolean", "on the branch that the client shows"),
    Field::preview("blocks", "array", "text, thinking, image and event blocks", WHOLE),
    Field::new("native", "object", "other fields, as the client wrote them"),
];

const CALL: &[Field] = &[
    Field::new("id", "string", "derived from the call's id"),
    Field::new("session_id", "string", "session"),
    Field::new("call_id", "string", "the client's id of the call"),
    Field::new("name", "string", "tool name"),
    Field::new("kind", "string", "shell, edit, read, search, web, mcp, agent or function"),
    Field::new("title", "string", "command, path or pattern on one line"),
    Field::new("at", "string|null", "time of the call"),
    Field::new("model", "string|null", "model that called"),
    Field::new("parent_call", "string|null", "call whose script made this one"),
    Field::new("ok", "boolean|null", "null if there is no result"),
    Field::new("exit_code", "integer|null", "exit code of a command"),
    Field::new("duration_ms", "integer|null", "duration, if recorded"),
    Field::new("copied", "boolean", "copied from another place, where it is counted"),
    Field::preview("input", "string|object|array|null", "input", WHOLE),
    Field::preview("output", "string|null", "output; complete if it is stored in a separate file", WHOLE),
    Field::new("files", "array", "files read or changed, with line ranges if known"),
];

/// A stream of the transcript family.
pub const fn transcript(
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
        cursor_field,
        consent_time_field: Some(cursor_field),
        coverage: Coverage::FullInventory,
        fields,
    }
}

/// A setting that is text, without a default.
pub const fn variable(
    name: &'static str,
    config_key: &'static str,
    what: &'static str,
    default: &'static str,
    kind: ValueKind,
) -> Variable {
    Variable { name, config_key, what, default, kind }
}
