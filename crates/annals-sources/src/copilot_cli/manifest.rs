//! The manifest of Copilot CLI: its settings, its streams, and what of the platform it covers.

use super::footprint::{DATABASES, FOOTPRINT};
use crate::home::authored::HOOK;
use crate::home::streams::{
    AGENTS, INSTRUCTIONS, MESSAGES, PLANS, SESSIONS, SETTINGS, SKILLS, SUB_AGENTS, TOOL_CALLS, variable,
};
use annals_core::{Family, Field, Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "copilot_cli",
    label: "Copilot CLI",
    route: "copilot",
    reader_version: 1,
    summary: "sessions, sub-agents, plans, to-do lists and authored files of GitHub Copilot CLI on this machine",
    setup_hint: "run `copilot` once, or set COPILOT_HOME (the client's directory)",
    default_homes: &["~/.copilot"],
    variables: &[variable(
        "COPILOT_HOME",
        "copilot_cli.home",
        "home of the client",
        "~/.copilot",
        ValueKind::Text,
    )],
    streams: &[
        SESSIONS,
        MESSAGES,
        TOOL_CALLS,
        SUB_AGENTS,
        Stream::mutable_records(
            "todos",
            "entries of to-do lists",
            Family::Transcript,
            &[
                Field::new("id", "string", "session and entry"),
                Field::new("todo", "object|null", "the entry with its title and status"),
            ],
        ),
        INSTRUCTIONS,
        AGENTS,
        SKILLS,
        Stream::mutable_records("hooks", "programs that the client runs", Family::Authored, HOOK),
        PLANS,
        SETTINGS,
    ],
    searched: &[],
    footprint: FOOTPRINT,
    databases: DATABASES,
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "copilot --resume={id}",
};

const SURFACE: &[Surface] = &[
    Surface::collected("sessions", "sessions"),
    Surface::collected("messages with reasoning, summaries and errors", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("sub-agents", "subagent_transcripts"),
    Surface::collected("to-do lists", "todos"),
    Surface::collected("instructions", "project_instructions"),
    Surface::collected("agents", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("hooks", "hooks"),
    Surface::collected("plans and documents of sessions", "plans"),
    Surface::collected("settings and MCP servers", "settings"),
    Surface::partial("prompt log", "", "the file is kept; its entries have no times"),
    Surface::partial(
        "summaries of compactions",
        "messages",
        "the files are kept; transcripts have the texts",
    ),
    Surface::omitted("the client's index over its sessions", "derived from the transcripts"),
    Surface::omitted("config.json", "may have login tokens"),
    Surface::omitted("file restore points", "copies of the project's files"),
    Surface::omitted("logs, plugins, downloaded programs", "machinery"),
];
