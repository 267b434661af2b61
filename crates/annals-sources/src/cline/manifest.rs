//! The manifest of Cline: its settings, its streams, and what of the platform it covers.

use super::footprint::FOOTPRINT;
use crate::home::authored::HOOK;
use crate::home::streams::{
    AGENTS, COMMANDS, EXTENSIONS, INSTRUCTIONS, MESSAGES, SESSIONS, SETTINGS, SKILLS, SUB_AGENTS, TOOL_CALLS,
    variable,
};
use annals_core::{Family, Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "cline",
    label: "Cline",
    route: "cline",
    reader_version: 2,
    summary: "conversations, sub-agents and authored files of Cline's command line and its editor extension",
    setup_hint: "run `cline` once, or set CLINE_DATA_DIR (its data directory, or the extension's)",
    default_homes: &["~/.cline"],
    variables: &[variable(
        "CLINE_DATA_DIR",
        "cline.data",
        "data directory of the client, or the extension's folder in an editor's globalStorage",
        "~/.cline/data",
        ValueKind::Text,
    )],
    streams: STREAMS,
    searched: &[],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "cline --id {id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    SUB_AGENTS,
    INSTRUCTIONS,
    COMMANDS,
    AGENTS,
    SKILLS,
    Stream::mutable_records("hooks", "scripts that run on events", Family::Authored, HOOK),
    SETTINGS,
    EXTENSIONS,
];

const SURFACE: &[Surface] = &[
    Surface::collected("sessions and tasks", "sessions"),
    Surface::collected("messages with thinking", "messages"),
    Surface::collected("tool calls with results, as blocks and as markup", "tool_calls"),
    Surface::collected("sub-agent transcripts", "subagent_transcripts"),
    Surface::collected("rules", "project_instructions"),
    Surface::collected("workflows", "slash_commands"),
    Surface::collected("agents", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("hooks", "hooks"),
    Surface::collected("settings", "settings"),
    Surface::partial("plugins", "extensions", "manifests, commands, agents and skills; not their code"),
    Surface::partial(
        "the call that started a sub-agent",
        "subagent_transcripts",
        "the client does not note it",
    ),
    Surface::omitted("keys of providers", "secrets"),
    Surface::omitted("databases", "the sessions again, teams and schedules"),
    Surface::omitted("shadow repositories", "copies of the project's files"),
    Surface::omitted("logs, caches, state of the client", "machinery"),
];
