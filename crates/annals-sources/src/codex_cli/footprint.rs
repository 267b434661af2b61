//! Which files of a Codex home are kept, left out, and never opened, with the reasons.

use annals_core::{Database, Encoding, Footprint, Framing, Rule, Treatment};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    repository_rules: REPOSITORY_RULES,
    otherwise: "a file that no pattern names is not opened; it is reported as unaccounted",
};

const RULES: &[Rule] = &[
    Rule::never("**/auth.json", "credentials", "login tokens"),
    Rule::never("**/.credentials.json", "credentials", "login tokens of MCP servers"),
    Rule::never("secrets", "credentials", "encrypted secrets"),
    Rule::never("**/*.age", "credentials", "encrypted secrets"),
    Rule::never("proxy", "credentials", "keys of the network proxy"),
    Rule::never("logs_*.sqlite*", "trace log", "holds whole process environments, keys included"),
    Rule::never("shell_snapshots", "shell snapshots", "holds every exported variable of the shell"),
    Rule::lines(
        "{sessions,archived_sessions}/**/rollout-*.jsonl",
        "transcripts",
        "rollout",
        "the conversations",
    ),
    Rule {
        pattern: "{sessions,archived_sessions}/**/rollout-*.jsonl.zst",
        treatment: Treatment::Capture,
        store: "transcripts",
        reader: Some("rollout"),
        framing: Framing::Lines,
        encoding: Encoding::Zstd,
        mutable: false,
        why: "conversations that the client compressed",
    },
    Rule::read(
        "sessions/**/rollout-*.json",
        "transcripts",
        "rollout_document",
        "conversations of the first client",
    ),
    Rule::lines("history.jsonl", "prompt history", "history", "prompts typed in the terminal client"),
    Rule::keep("history.json", "prompt history", "prompts typed in the first client"),
    Rule::lines("session_index.jsonl", "session names", "session_index", "names that the person gave"),
    Rule::database("state_*.sqlite", "thread table", "titles, archive marks and settings of each thread"),
    Rule::database("goals_*.sqlite", "goals", "goals of threads"),
    Rule::database("queue_*.sqlite", "queued prompts", "prompts that were not sent yet"),
    Rule::database("memories_*.sqlite", "memories", "what the client remembers of earlier sessions"),
    Rule::left_out("*.sqlite-{wal,shm}", "database side files", "read together with their database"),
    Rule::left_out("thread_history_*.sqlite", "thread history", "made by the client from the transcripts"),
    Rule::authored(
        "{AGENTS,AGENTS.override,instructions}.md",
        "instructions",
        "authored",
        "what the person told every session",
    ),
    Rule::authored("rules/**", "approval rules", "rules", "which commands may run"),
    Rule::authored("prompts/**", "prompts", "authored", "prompts that the person wrote"),
    Rule::authored("skills/**", "skills", "authored", "skills that the person wrote or installed"),
    Rule::authored("agents/**", "agents", "authored", "agents that the person wrote"),
    Rule::authored("memories/**", "memories", "authored", "what the client remembers of earlier sessions"),
    Rule::keep("{attachments,generated_images}/**", "attachments", "files that transcripts refer to"),
    Rule::authored(
        "*config.{toml,json,yaml,yml}",
        "config",
        "authored",
        "settings; values that look secret are masked on every way out",
    ),
    Rule::authored(
        "{hooks.json,environments.toml}",
        "config",
        "authored",
        "settings; values that look secret are masked on every way out",
    ),
    Rule::left_out(
        "{packages,plugins,.tmp,tmp,cache,db-backups,thread-writer-locks}",
        "caches",
        "copies that the client makes again",
    ),
    Rule::left_out("app-server-*", "caches", "sockets and locks of the background server"),
    Rule::left_out("{models_cache.json,version.json}", "caches", "fetched by the client again"),
    Rule::left_out("{log,*.log}", "logs", "operational messages of the client"),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    Rule::left_out(
        "{installation_id,.*_migration}",
        "telemetry",
        "marks of the installation, nothing of the person's",
    ),
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "what sessions in the repository are told"),
    Rule::authored(
        "AGENTS.override.md",
        "instructions",
        "authored",
        "what sessions in the repository are told",
    ),
    Rule::authored(".codex/config.toml", "config", "authored", "settings of the repository"),
    Rule::authored(".codex/rules/**", "approval rules", "rules", "which commands may run there"),
    Rule::authored(".codex/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];

pub const DATABASES: &[Database] = &[
    Database {
        pattern: "state_*.sqlite",
        table: "threads",
        key_column: "id",
        reader: "thread_row",
        why: "the truth for titles, names, archive marks and settings",
    },
    Database {
        pattern: "state_*.sqlite",
        table: "thread_spawn_edges",
        key_column: "child_thread_id",
        reader: "spawn_edges",
        why: "which thread started which",
    },
    Database {
        pattern: "state_*.sqlite",
        table: "agent_jobs",
        key_column: "id",
        reader: "agent_jobs",
        why: "jobs that were spread over agents",
    },
    Database {
        pattern: "goals_*.sqlite",
        table: "thread_goals",
        key_column: "thread_id",
        reader: "goals",
        why: "goals that the person set",
    },
    Database {
        pattern: "queue_*.sqlite",
        table: "queued_items",
        key_column: "id",
        reader: "queued_prompts",
        why: "prompts that exist nowhere else yet",
    },
    Database {
        pattern: "memories_*.sqlite",
        table: "stage1_outputs",
        key_column: "thread_id",
        reader: "memory_drafts",
        why: "memories in the making",
    },
];
