//! The manifest of Gemini CLI: its settings, its streams, and what of the platform it covers.

use super::authored::{CHECKPOINT, PROJECTS};
use super::footprint::FOOTPRINT;
use crate::home::streams::{
    AGENTS, COMMANDS, INSTRUCTIONS, MEMORY, MESSAGES, PLANS, SESSIONS, SETTINGS, SKILLS, SUB_AGENTS,
    TOOL_CALLS, TOOL_OUTPUTS, transcript, variable,
};
use annals_core::{Family, Field, Manifest, Rows, Semantics, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "gemini_cli",
    label: "Gemini CLI",
    route: "gemini",
    reader_version: 1,
    summary: "chats, sub-agents, prompt log, saved conversations and authored files of Gemini CLI on this machine",
    setup_hint: "run `gemini` once, or set GEMINI_CLI_HOME (the directory with .gemini)",
    default_homes: &["~/.gemini"],
    variables: &[variable(
        "GEMINI_CLI_HOME",
        "gemini_cli.home",
        "directory with the client's home, .gemini",
        "~",
        ValueKind::Text,
    )],
    streams: STREAMS,
    searched: &["tool_outputs"],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "gemini --resume {id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    SUB_AGENTS,
    TOOL_OUTPUTS,
    transcript(
        "history",
        "every prompt typed in the interactive client, including those of deleted sessions",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("sessionId", "string", "session"),
            Field::new("messageId", "integer", "number of the prompt in its session"),
            Field::new("type", "string|null", "always user"),
            Field::preview("message", "string", "what was typed", "records … --key KEY --full"),
            Field::new("timestamp", "string", "RFC 3339 UTC"),
        ],
    ),
    Stream::mutable_records(
        "checkpoints",
        "conversations saved with /chat save",
        Family::Authored,
        CHECKPOINT,
    ),
    INSTRUCTIONS,
    COMMANDS,
    AGENTS,
    SKILLS,
    PLANS,
    MEMORY,
    SETTINGS,
    Stream::mutable_records("projects", "directories that sessions ran in", Family::Settings, PROJECTS),
];

const SURFACE: &[Surface] = &[
    Surface::collected("sessions", "sessions"),
    Surface::collected("messages with thoughts", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("sub-agent transcripts", "subagent_transcripts"),
    Surface::collected("complete tool outputs", "tool_outputs"),
    Surface::collected("prompt log", "history"),
    Surface::collected("saved conversations", "checkpoints"),
    Surface::collected("project instructions and memories", "project_instructions"),
    Surface::collected("commands", "slash_commands"),
    Surface::collected("agents", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("plans", "plans"),
    Surface::collected("auto-memory", "memory_notes"),
    Surface::omitted("extensions", "code of third parties"),
    Surface::collected("settings and policies", "settings"),
    Surface::collected("projects", "projects"),
    Surface::partial(
        "shell commands typed",
        "",
        "the file is kept; chats have those that were run in a session",
    ),
    Surface::omitted("credentials, accounts, OAuth tokens", "secrets"),
    Surface::omitted("shadow repositories, file restore points", "copies of the project's files"),
    Surface::omitted("installation id, state, downloaded programs", "machinery"),
];
