//! Which files of a Codex home are kept, left out, and never opened, with the reasons.

use annals_core::{Database, Encoding, Footprint, Framing, Rule, Treatment};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    repository_rules: REPOSITORY_RULES,
    otherwise: "files that match no pattern are not opened; they are reported as unaccounted",
};

const RULES: &[Rule] = &[
    Rule::never("**/auth.json", "credentials", "login tokens"),
    Rule::never("**/.credentials.json", "credentials", "login tokens of MCP servers"),
    Rule::never("secrets", "credentials", "encrypted secrets"),
    Rule::never("**/*.age", "credentials", "encrypted secrets"),
    Rule::never("proxy", "credentials", "keys of the network proxy"),
    Rule::never("logs_*.sqlite*", "trace log", "contains process environments, keys included"),
    Rule::never("shell_snapshots", "shell snapshots", "contains the exported shell variables"),
    Rule::lines("{sessions,archived_sessions}/**/rollout-*.jsonl", "transcripts", "rollout", "conversations"),
    Rule {
        pattern: "{sessions,archived_sessions}/**/rollout-*.jsonl.zst",
        treatment: Treatment::Capture,
        store: "transcripts",
        reader: Some("rollout"),
        framing: Framing::Lines,
        encoding: Encoding::Zstd,
        mutable: false,
        why: "compressed conversations",
    },
    Rule::read(
        "sessions/**/rollout-*.json",
        "transcripts",
        "rollout_document",
        "conversations of the first client version",
    ),
    Rule::lines("history.jsonl", "prompt history", "history", "prompts typed in the terminal client"),
    Rule::read("history.json", "prompt history", "history_list", "prompts typed in the first client version"),
    Rule::lines("session_index.jsonl", "session names", "session_index", "thread names given by the user"),
    Rule::database("state_*.sqlite", "thread table", "title, archive status and settings of each thread"),
    Rule::database("goals_*.sqlite", "goals", "goals of threads"),
    Rule::database("queue_*.sqlite", "queued prompts", "prompts not sent yet"),
    Rule::database("memories_*.sqlite", "memories", "memories of earlier sessions"),
    Rule::left_out("*.sqlite-{wal,shm}", "database side files", "read together with their database"),
    Rule::left_out("thread_history_*.sqlite", "thread history", "derived from the transcripts by the client"),
    Rule::authored(
        "{AGENTS,AGENTS.override,instructions}.md",
        "instructions",
        "authored",
        "instructions for every session",
    ),
    Rule::authored("rules/**", "approval rules", "rules", "commands that are allowed"),
    Rule::authored("prompts/**", "prompts", "authored", "prompts written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("memories/**", "memories", "authored", "memories of earlier sessions"),
    Rule::keep("{attachments,generated_images}/**", "attachments", "files that transcripts refer to"),
    Rule::authored(
        "*config.{toml,json,yaml,yml}",
        "config",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::authored(
        "{hooks.json,environments.toml}",
        "config",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::left_out(
        "{packages,plugins,.tmp,tmp,cache,db-backups,thread-writer-locks}",
        "caches",
        "caches that the client regenerates",
    ),
    Rule::left_out("app-server-*", "caches", "sockets and locks of the background server"),
    Rule::left_out("{models_cache.json,version.json}", "caches", "downloaded again by the client"),
    Rule::left_out("{log,*.log}", "logs", "log messages of the client"),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    Rule::left_out("{installation_id,.*_migration}", "telemetry", "installation markers without user data"),
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        "AGENTS.override.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".codex/config.toml", "config", "authored", "settings of the repository"),
    Rule::authored(
        ".codex/rules/**",
        "approval rules",
        "rules",
        "commands that are allowed in the repository",
    ),
    Rule::authored(".codex/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];

pub const DATABASES: &[Database] = &[
    Database {
        pattern: "state_*.sqlite",
        table: "threads",
        key_column: "id",
        reader: "thread_row",
        why: "authoritative titles, names, archive status and settings",
    },
    Database {
        pattern: "state_*.sqlite",
        table: "thread_spawn_edges",
        key_column: "child_thread_id",
        reader: "spawn_edges",
        why: "parent and child threads",
    },
    Database {
        pattern: "state_*.sqlite",
        table: "agent_jobs",
        key_column: "id",
        reader: "agent_jobs",
        why: "jobs distributed to agents",
    },
    Database {
        pattern: "goals_*.sqlite",
        table: "thread_goals",
        key_column: "thread_id",
        reader: "goals",
        why: "goals set by the user",
    },
    Database {
        pattern: "queue_*.sqlite",
        table: "queued_items",
        key_column: "id",
        reader: "queued_prompts",
        why: "prompts that exist nowhere else",
    },
    Database {
        pattern: "memories_*.sqlite",
        table: "stage1_outputs",
        key_column: "thread_id",
        reader: "memory_drafts",
        why: "memory drafts",
    },
];
