//! The manifest of Gemini CLI: its settings, its streams, and what of the platform it covers.

use super::footprint::FOOTPRINT;
use crate::gemini_family::streams::{CHECKPOINTS, HISTORY};
use crate::home::streams::{
    AGENTS, COMMANDS, EXTENSIONS, INSTRUCTIONS, MEMORY, MESSAGES, PLANS, PROJECTS, SESSIONS, SETTINGS,
    SKILLS, SUB_AGENTS, TOOL_CALLS, TOOL_OUTPUTS, variable,
};
use annals_core::{Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "gemini_cli",
    label: "Gemini CLI",
    route: "gemini",
    reader_version: 2,
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
    HISTORY,
    CHECKPOINTS,
    INSTRUCTIONS,
    COMMANDS,
    AGENTS,
    SKILLS,
    PLANS,
    MEMORY,
    SETTINGS,
    EXTENSIONS,
    PROJECTS,
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
    Surface::partial(
        "extensions",
        "extensions",
        "manifests, instructions, commands, agents and skills; not their code",
    ),
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
