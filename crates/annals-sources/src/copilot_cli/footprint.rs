//! Which files of a Copilot home are kept, left out, and never opened, with the reasons, and how its databases are read.

use crate::home::rules;
use annals_core::{Database, Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("config.json*", "credentials", "may have login tokens, where there is no keychain"),
    Rule::never("**/*{oauth,token,credential}*.json", "credentials", "login tokens"),
    Rule::never("mcp-oauth-config/**", "credentials", "login tokens of MCP servers"),
    Rule::lines("session-state/*/events.jsonl", "transcripts", "events", "conversations"),
    Rule::lines(
        "{session-state,history-session-state}/*.jsonl",
        "transcripts",
        "events",
        "conversations of older clients",
    ),
    Rule::keep("history-session-state/**", "transcripts", "conversations of older clients"),
    Rule::read(
        "session-state/*/workspace.yaml",
        "session names",
        "workspace",
        "names and directories of sessions",
    ),
    Rule::authored("session-state/*/plan.md", "plans", "authored", "plans written by the assistant"),
    Rule::authored(
        "session-state/*/{files,research}/**",
        "plans",
        "authored",
        "documents written by the assistant",
    ),
    Rule::keep(
        "session-state/*/checkpoints/*",
        "summaries",
        "summaries of compactions, which transcripts have",
    ),
    Rule::database("session-state/*/session.db", "to-do lists", "to-do lists of sessions"),
    Rule::left_out(
        "session-state/*/{rewind-file-snapshots,rewind-snapshots}",
        "restore points",
        "copies of files before an edit",
    ),
    Rule::left_out("session-state/*/*.lock", "caches", "locks of the running client"),
    Rule::database("session-store.db", "session index", "the client's index over its sessions"),
    Rule::left_out("**/*.db-{wal,shm,journal}", "database side files", "read together with their database"),
    Rule::keep("command-history-state.json", "prompt log", "prompts typed in the terminal, without times"),
    Rule::authored(
        "{settings,mcp-config,permissions-config,lsp-config}.json",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::authored("instructions/**", "instructions", "authored", "instructions for every session"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("hooks/**", "hooks", "authored", "programs that the client runs"),
    Rule::left_out(
        "{logs,pkg,ide,servers,installed-plugins,plugin-data,sidebar-sessions-state,.session-operation-locks}",
        "machinery",
        "logs, downloaded programs and plugins",
    ),
    Rule::left_out("open-sessions-state.json", "machinery", "which sessions are open"),
    Rule::left_out("**/{.git,node_modules,*.lock}", "caches", "repositories, packages and locks"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        ".github/copilot-instructions.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(
        ".github/instructions/**",
        "instructions",
        "authored",
        "instructions for files of the repository",
    ),
    Rule::authored(".github/agents/**", "agents", "authored", "agents of the repository"),
    Rule::authored(".github/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(
        ".github/hooks/**",
        "hooks",
        "authored",
        "programs that the client runs in the repository",
    ),
    Rule::authored(".github/copilot/settings.json", "settings", "authored", "settings of the repository"),
];

const SESSION: &str = "session-state/*/session.db";

const fn of_session(table: &'static str, why: &'static str) -> Database {
    Database::not_read(SESSION, table, why).in_every_file()
}

const fn of_index(table: &'static str) -> Database {
    Database::not_read("session-store.db", table, "derived from the transcripts by the client")
}

pub const DATABASES: &[Database] = &[
    Database::rows(SESSION, "todos", "id", "todo", "to-do lists of sessions").in_every_file(),
    of_session("todo_deps", "which entry waits for which"),
    of_session("inbox_entries", "messages between agents, which transcripts have"),
    of_session("plan", "a table that the model made"),
    of_session("workflow_store_schema", "version of the database"),
    of_index("schema_version"),
    of_index("sessions"),
    of_index("turns"),
    of_index("checkpoints"),
    of_index("session_files"),
    of_index("session_refs"),
    of_index("assistant_usage_events"),
    of_index("search_index"),
    of_index("dynamic_context_items"),
];
