//! The manifest of Kimi Code: its settings, its streams, and what of the platform it covers.

use super::footprint::FOOTPRINT;
use crate::home::streams::{
    AGENTS, COMMANDS, EXTENSIONS, INSTRUCTIONS, MESSAGES, PROJECTS, SESSIONS, SETTINGS, SKILLS, SUB_AGENTS,
    TOOL_CALLS, TOOL_OUTPUTS, variable,
};
use annals_core::{Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "kimi_code",
    label: "Kimi Code",
    route: "kimi",
    reader_version: 1,
    summary: "sessions, sub-agents and authored files of Kimi Code on this machine",
    setup_hint: "run `kimi` once, or set KIMI_CODE_HOME (the client's directory)",
    default_homes: &["~/.kimi-code"],
    variables: &[variable(
        "KIMI_CODE_HOME",
        "kimi_code.home",
        "home of the client",
        "~/.kimi-code",
        ValueKind::Text,
    )],
    streams: STREAMS,
    searched: &["tool_outputs"],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "kimi --session {id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    SUB_AGENTS,
    TOOL_OUTPUTS,
    INSTRUCTIONS,
    COMMANDS,
    AGENTS,
    SKILLS,
    SETTINGS,
    EXTENSIONS,
    PROJECTS,
];

const SURFACE: &[Surface] = &[
    Surface::collected("sessions and forks", "sessions"),
    Surface::collected("messages with thinking, reminders of the client, summaries", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("sub-agent transcripts", "subagent_transcripts"),
    Surface::collected("complete tool outputs", "tool_outputs"),
    Surface::collected("instructions", "project_instructions"),
    Surface::collected("commands", "slash_commands"),
    Surface::collected("agents", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("settings", "settings"),
    Surface::collected("workspaces", "projects"),
    Surface::partial("plugins", "extensions", "manifests, commands, agents and skills; not their code"),
    Surface::partial(
        "lines typed",
        "",
        "the file is kept; it has no times, and transcripts have the prompts",
    ),
    Surface::omitted("credentials, tokens, MCP servers with headers", "secrets"),
    Surface::omitted("copies of files before an edit", "copies of the project's files"),
    Surface::omitted("logs, caches, state of the client", "machinery"),
];
