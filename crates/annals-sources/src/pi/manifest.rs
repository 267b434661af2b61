//! The manifest of Pi: its settings, its streams, and what of the platform it covers.

use super::footprint::FOOTPRINT;
use crate::home::authored::HOOK;
use crate::home::streams::{
    COMMANDS, INSTRUCTIONS, MESSAGES, SESSIONS, SETTINGS, SKILLS, TOOL_CALLS, variable,
};
use annals_core::{Family, Manifest, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "pi",
    label: "Pi",
    route: "pi",
    reader_version: 3,
    summary: "sessions, prompts, skills, extensions and settings of the Pi coding agent on this machine",
    setup_hint: "run `pi` once, or set PI_CODING_AGENT_DIR (the agent's directory)",
    default_homes: &["~/.pi/agent"],
    variables: &[variable(
        "PI_CODING_AGENT_DIR",
        "pi.home",
        "home of the client",
        "~/.pi/agent",
        ValueKind::Text,
    )],
    streams: &[
        SESSIONS,
        MESSAGES,
        TOOL_CALLS,
        INSTRUCTIONS,
        COMMANDS,
        SKILLS,
        Stream::mutable_records("extensions", "programs that extend the agent", Family::Authored, HOOK),
        SETTINGS,
    ],
    searched: &[],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "pi --session {id}",
};

const SURFACE: &[Surface] = &[
    Surface::collected("sessions and forks", "sessions"),
    Surface::collected("messages with thinking, typed shell commands, summaries", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("instructions and system prompts", "project_instructions"),
    Surface::collected("prompts", "slash_commands"),
    Surface::collected("skills", "skills"),
    Surface::collected("extensions", "extensions"),
    Surface::collected("settings, models and themes", "settings"),
    Surface::partial("branches of a session", "messages", "all of them, in the order they were written"),
    Surface::omitted("complete outputs of long commands", "in the directory for temporary files"),
    Surface::omitted("auth.json", "secrets"),
    Surface::omitted("downloaded programs and packages, debug log", "machinery"),
];
