//! The manifest of Claude.ai: its streams, and what of the platform it covers.

use super::records::ARTIFACTS;
use crate::home::streams::{BRANCHING_MESSAGES, SESSIONS, TOOL_CALLS};
use crate::import::captures::IMPORTS;
use annals_core::{Family, Field, Footprint, Manifest, Stream, Surface};

const WHOLE: &str = "records … --key ID --full";

pub static MANIFEST: Manifest = Manifest {
    source: "claude_ai",
    label: "Claude.ai",
    route: "claude-ai",
    reader_version: 1,
    summary: "conversations, projects and memories of Claude.ai, from data exports",
    setup_hint: "in Claude open Settings > Privacy > Export data (the link arrives by email), then run `annals import FILE.zip`",
    default_homes: &[],
    variables: &[],
    streams: STREAMS,
    searched: &["attachments", "artifacts"],
    footprint: Footprint {
        rules: &[],
        repository_rules: &[],
        otherwise: "only files given to `annals import` are read",
    },
    databases: &[],
    surface: SURFACE,
    bindings: &["import"],
    retention: None,
    resume_command: "https://claude.ai/chat/{id}",
};

const STREAMS: &[Stream] = &[
    SESSIONS,
    BRANCHING_MESSAGES,
    TOOL_CALLS,
    Stream::mutable_records(
        ARTIFACTS,
        "documents that the assistant made, with a version for each change",
        Family::Transcript,
        &[
            Field::new("id", "string", "conversation and artifact"),
            Field::new("session_id", "string", "conversation"),
            Field::new("artifact_id", "string", "the assistant's name for it"),
            Field::new("title", "string|null", "title"),
            Field::new("type", "string|null", "media type"),
            Field::new("language", "string|null", "programming language"),
            Field::new("command", "string|null", "create, update or rewrite"),
            Field::preview("content", "string|null", "the text, or what a change puts in", WHOLE),
            Field::preview("replaces", "string|null", "what a change replaces", WHOLE),
        ],
    ),
    Stream::mutable_records(
        "attachments",
        "texts that were attached to messages",
        Family::Transcript,
        &[
            Field::new("id", "string", "message and number"),
            Field::new("message_id", "string", "message"),
            Field::new("file_name", "string|null", "name"),
            Field::new("file_type", "string|null", "type"),
            Field::new("file_size", "integer|null", "size in bytes"),
            Field::preview("extracted_content", "string|null", "the text in it", WHOLE),
        ],
    ),
    Stream::mutable_records(
        "projects",
        "projects with their instructions and documents",
        Family::Authored,
        &[
            Field::new("id", "string", "project"),
            Field::new("name", "string|null", "name"),
            Field::new("description", "string|null", "purpose"),
            Field::preview("instructions", "string|null", "instructions for its conversations", WHOLE),
            Field::preview("documents", "array", "documents with their text", WHOLE),
            Field::new("created_at", "string|null", "RFC 3339"),
            Field::new("updated_at", "string|null", "RFC 3339"),
        ],
    ),
    Stream::mutable_records(
        "memories",
        "what the assistant remembers, of all conversations and of projects",
        Family::Memory,
        &[
            Field::new("id", "string", "account"),
            Field::preview("text", "string|null", "memory of conversations", WHOLE),
            Field::preview("projects", "object", "memories by project", WHOLE),
            Field::preview("files", "array|null", "memories that are files", WHOLE),
        ],
    ),
    Stream::mutable_records(
        "account",
        "the account that was exported",
        Family::Settings,
        &[
            Field::new("id", "string", "account"),
            Field::new("name", "string|null", "full name"),
            Field::new("email", "string|null", "address"),
        ],
    ),
    IMPORTS,
];

const SURFACE: &[Surface] = &[
    Surface::collected("conversations", "sessions"),
    Surface::collected("messages with thinking, on all branches", "messages"),
    Surface::collected("tool calls with results", "tool_calls"),
    Surface::collected("artifacts", "artifacts"),
    Surface::collected("attachments with their text", "attachments"),
    Surface::collected("projects with instructions and documents", "projects"),
    Surface::collected("memories", "memories"),
    Surface::collected("account", "account"),
    Surface::partial("images and other files", "messages", "names; exports do not contain them"),
    Surface::omitted("models and tokens of answers", "exports do not have them"),
];
