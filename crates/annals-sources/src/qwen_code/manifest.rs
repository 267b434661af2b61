//! The manifest of Qwen Code: its settings, its streams, and what of the platform it covers.

use super::footprint::FOOTPRINT;
use crate::gemini_family::streams::{CHECKPOINTS, HISTORY};
use crate::home::streams::{
    AGENTS, COMMANDS, EXTENSIONS, INSTRUCTIONS, MEMORY, MESSAGES, PLANS, PROJECTS, SESSIONS, SETTINGS,
    SKILLS, SUB_AGENTS, TOOL_CALLS, TOOL_OUTPUTS, transcript, variable,
};
use annals_core::{Field, Manifest, Rows, Semantics, Stream, Surface, ValueKind};

pub static MANIFEST: Manifest = Manifest {
    source: "qwen_code",
    label: "Qwen Code",
    route: "qwen",
    reader_version: 2,
    summary: "sessions, sub-agents, prompt log, memories and authored files of Qwen Code on this machine",
    setup_hint: "run `qwen` once, or set QWEN_HOME (the client's directory)",
    default_homes: &["~/.qwen"],
    variables: &[variable("QWEN_HOME", "qwen_code.home", "home of the client", "~/.qwen", ValueKind::Text)],
    streams: STREAMS,
    searched: &["tool_outputs"],
    footprint: FOOTPRINT,
    databases: &[],
    surface: SURFACE,
    bindings: &["filesystem"],
    retention: None,
    resume_command: "qwen --resume {id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    SUB_AGENTS,
    TOOL_OUTPUTS,
    HISTORY,
    transcript(
        "client_runs",
        "what the client counted in each of its runs, kept when transcripts are deleted",
        Rows::Records,
        Semantics::AppendOnly,
        "at",
        &[
            Field::new("id", "string", "session and time of the end"),
            Field::new("sessionId", "string", "session"),
            Field::new("timestamp", "integer", "end, milliseconds since 1970"),
            Field::new("startTime", "integer|null", "start, milliseconds since 1970"),
            Field::new("project", "string|null", "working directory"),
            Field::new("models", "object|null", "requests and tokens by model"),
            Field::new("tools", "object|null", "calls by tool"),
            Field::new("files", "object|null", "lines added and removed"),
            Field::new("skills", "object|null", "uses by skill"),
            Field::new("durationMs", "integer|null", "length in milliseconds"),
            Field::new("totalLatencyMs", "integer|null", "time that the model took, in milliseconds"),
            Field::new("version", "integer|string|null", "version of the line"),
        ],
    ),
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
    Surface::collected("sessions, forks", "sessions"),
    Surface::collected("messages with thoughts, commands of the client, summaries", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("sub-agent transcripts", "subagent_transcripts"),
    Surface::collected("complete tool outputs", "tool_outputs"),
    Surface::collected("prompt log", "history"),
    Surface::collected("totals of each run", "client_runs"),
    Surface::collected("saved conversations", "checkpoints"),
    Surface::collected("project instructions", "project_instructions"),
    Surface::collected("commands and workflows", "slash_commands"),
    Surface::collected("agents", "agents"),
    Surface::collected("skills", "skills"),
    Surface::collected("plans and to-do lists", "plans"),
    Surface::collected("memories", "memory_notes"),
    Surface::partial(
        "extensions",
        "extensions",
        "manifests, instructions, commands, agents and skills; not their code",
    ),
    Surface::collected("settings", "settings"),
    Surface::collected("projects", "projects"),
    Surface::partial("rewound parts of a session", "messages", "all of them, in the order they were written"),
    Surface::partial("shell commands typed", "", "the file is kept; transcripts do not have them"),
    Surface::omitted("credentials, accounts, OAuth tokens, .env", "secrets"),
    Surface::omitted("restore points, copies of files", "copies of the project's files"),
    Surface::omitted("debug logs, state, downloaded programs", "machinery"),
];
