//! The manifest of ChatGPT: where its data comes from, and what of it is not collected.

use super::streams::STREAMS;
use annals_core::{Footprint, Manifest, Surface, ValueKind, Variable};

pub static MANIFEST: Manifest = Manifest {
    source: "chatgpt",
    label: "ChatGPT",
    route: "chatgpt",
    reader_version: 6,
    summary: "conversations with ChatGPT, from data exports or live through your own browser",
    setup_hint: "in ChatGPT open Settings > Data controls > Export data (the download link arrives by email and expires after 24 hours), then run `annals import FILE.zip`; or log in once with `annals connect chatgpt`",
    default_homes: &[],
    variables: &[Variable {
        name: super::live::ORIGIN_VARIABLE,
        config_key: "chatgpt.url",
        what: "address of the page that `annals connect chatgpt` opens",
        default: super::live::ORIGIN,
        kind: ValueKind::Text,
    }],
    streams: STREAMS,
    searched: &[],
    footprint: Footprint {
        rules: &[],
        repository_rules: &[],
        otherwise: "only files given to `annals import` are read, and responses to the browser that \
                    `annals connect chatgpt` opened",
    },
    databases: &[],
    surface: SURFACE,
    bindings: &["import", "browser"],
    retention: None,
    resume_command: "https://chatgpt.com/c/{id}",
};

const SURFACE: &[Surface] = &[
    Surface::collected("conversations", "conversations"),
    Surface::collected("messages on all branches", "messages"),
    Surface::live("tool calls and results", "tool_calls", "account", "live; not in exports since mid-2026"),
    Surface::partial("files", "files", "metadata; content with --with-files"),
    Surface::partial(
        "files made by code in the sandbox",
        "files",
        "content with --with-files, while the provider keeps the sandbox",
    ),
    Surface::live(
        "files of projects and custom GPTs",
        "files",
        "projects",
        "live; content with --with-files",
    ),
    Surface::live("file library", "library_files", "library_files", "live; exports have an older list"),
    Surface::live("generated images", "generated_images", "generated_images", "live only"),
    Surface::collected("shared conversations", "shared_conversations"),
    Surface::live(
        "custom instructions",
        "custom_instructions",
        "custom_instructions",
        "live; from exports only as conversations show them",
    ),
    Surface::partial(
        "canvas documents",
        "canvas_documents",
        "rare in exports; later changes to their texts are in tool calls",
    ),
    Surface::partial(
        "canvas documents as they are now",
        "canvas_texts",
        "live, with each conversation that has one; not in exports",
    ),
    Surface::collected("account", "account"),
    Surface::collected("settings", "settings"),
    Surface::live(
        "data controls",
        "settings",
        "data_controls",
        "live; exports have only the training setting",
    ),
    Surface::collected("feedback", "feedback"),
    Surface::live("memories", "memories", "memories", "live only; not in exports"),
    Surface::live("memory summary", "memory_summary", "memory_summary", "live only, once a day"),
    Surface::live("custom GPTs", "custom_gpts", "custom_gpts", "live only; not in exports"),
    Surface::live("projects", "projects", "projects", "live only; exports contain only their ids"),
    Surface::live("available models", "models", "models", "live only"),
    Surface::live("pinned conversations and projects", "pins", "pins", "live only, once a day"),
    Surface::live("scheduled tasks", "automations", "automations", "live only, once a day"),
    Surface::live("tasks in the background", "tasks", "tasks", "live only, once a day"),
    Surface::partial(
        "group chats and rooms",
        "group_chats",
        "live only, once a day; the newest hundred messages of each",
    ),
    Surface::live(
        "coding tasks in the cloud",
        "cloud_tasks",
        "cloud_tasks",
        "live only, once a day; last turns",
    ),
    Surface::omitted("connected apps and their accounts", "credentials of other services; never requested"),
    Surface::omitted("older versions of library files", "only the newest is fetched"),
    Surface::omitted("tokens and cost", "not in exports, and not estimated"),
    Surface::omitted("temporary chats", "not in exports or lists"),
    Surface::omitted("voice audio", "transcripts are in messages; audio with --with-files"),
    Surface::omitted("shopping, video and advertising data", "not conversations"),
    Surface::omitted("billing and contact data of the privacy archive", "not opened"),
    Surface::omitted("access token and cookies", "credentials; they never leave the page"),
    Surface::omitted("device id", "identifies the browser; it never leaves the page"),
    Surface::omitted(
        "workspace admin data: audit logs, SCIM, member lists, action logs",
        "not the user's own; never requested",
    ),
];
