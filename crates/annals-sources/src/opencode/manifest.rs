//! The manifest of OpenCode: its settings, its streams, and what of the platform it covers.

use super::footprint::{DATABASES, FOOTPRINT};
use crate::home::authored::HOOK;
use crate::home::streams::{
    AGENTS, COMMANDS, INSTRUCTIONS, MESSAGES, PLANS, SESSIONS, SETTINGS, SKILLS, SUB_AGENTS, TOOL_CALLS,
    TOOL_OUTPUTS, variable,
};
use annals_core::{Family, Field, Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "opencode",
    label: "OpenCode",
    route: "opencode",
    reader_version: 3,
    summary: "conversations of every version of OpenCode on this machine, in files and in databases, and authored files",
    setup_hint: "run `opencode` once, or set XDG_DATA_HOME (the directory with opencode)",
    default_homes: &["~/.local/share/opencode", "~/.config/opencode"],
    variables: &[
        variable(
            "XDG_DATA_HOME",
            "opencode.data",
            "directory with the client's data",
            "~/.local/share",
            ValueKind::Text,
        ),
        variable(
            "XDG_CONFIG_HOME",
            "opencode.config",
            "directory with the client's settings",
            "~/.config",
            ValueKind::Text,
        ),
        variable(
            "OPENCODE_CONFIG_DIR",
            "opencode.config_dir",
            "the client's directory of settings",
            "~/.config/opencode",
            ValueKind::Text,
        ),
    ],
    streams: STREAMS,
    searched: &["tool_outputs"],
    footprint: FOOTPRINT,
    databases: DATABASES,
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "opencode --session {id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    SUB_AGENTS,
    TOOL_OUTPUTS,
    Stream::mutable_records(
        "todos",
        "the to-do list of each session",
        Family::Transcript,
        &[
            Field::new("id", "string", "the session"),
            Field::new("todos", "array|null", "entries with content, status and priority"),
        ],
    ),
    INSTRUCTIONS,
    COMMANDS,
    AGENTS,
    SKILLS,
    PLANS,
    Stream::mutable_records("extensions", "plugins and tools written by the user", Family::Authored, HOOK),
    SETTINGS,
    Stream::mutable_records(
        "projects",
        "directories that sessions ran in",
        Family::Settings,
        &[
            Field::new("id", "string", "first commit of the repository, or global"),
            Field::new("worktree", "string|null", "its directory"),
            Field::new("project", "object|array|null", "everything the client notes about it"),
        ],
    ),
];

const SURFACE: &[Surface] = &[
    Surface::collected("sessions, forks and sub-agents", "sessions"),
    Surface::collected("messages with reasoning, attachments and errors", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("complete tool outputs", "tool_outputs"),
    Surface::collected("to-do lists", "todos"),
    Surface::collected("instructions", "project_instructions"),
    Surface::collected("commands", "slash_commands"),
    Surface::collected("agents and modes", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("plans", "plans"),
    Surface::collected("plugins and tools", "extensions"),
    Surface::collected("settings and themes", "settings"),
    Surface::collected("projects", "projects"),
    Surface::omitted(
        "prompt log and state of the terminal",
        "prompts are in conversations; the log has no times",
    ),
    Surface::partial("what a session changed", "", "the files are kept; messages and calls have the changes"),
    Surface::partial("the log of changes", "", "it repeats the other tables"),
    Surface::omitted("credentials, accounts, shared sessions", "secrets"),
    Surface::omitted("shadow repositories", "copies of the project's files"),
    Surface::omitted("logs, downloaded programs, working copies", "machinery"),
];
