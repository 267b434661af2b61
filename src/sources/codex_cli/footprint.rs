//! Which files of a Codex home are kept, left out, and never opened, with the reasons.

use crate::model::{Database, Encoding, Footprint, Framing, Rule, Treatment};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    otherwise: "a file that no pattern names is not opened; it is reported as unaccounted",
};

const RULES: &[Rule] = &[
    never("**/auth.json", "credentials", "login tokens"),
    never("**/.credentials.json", "credentials", "login tokens of MCP servers"),
    never("secrets", "credentials", "encrypted secrets"),
    never("**/*.age", "credentials", "encrypted secrets"),
    never("proxy", "credentials", "keys of the network proxy"),
    never("logs_*.sqlite*", "trace log", "holds whole process environments, keys included"),
    never("shell_snapshots", "shell snapshots", "holds every exported variable of the shell"),
    lines("{sessions,archived_sessions}/**/rollout-*.jsonl", "transcripts", "rollout", "the conversations"),
    Rule {
        pattern: "{sessions,archived_sessions}/**/rollout-*.jsonl.zst",
        treatment: Treatment::Capture,
        store: "transcripts",
        reader: Some("rollout"),
        framing: Framing::Lines,
        encoding: Encoding::Zstd,
        why: "conversations that the client compressed",
    },
    whole(
        "sessions/**/rollout-*.json",
        "transcripts",
        Some("rollout_document"),
        "conversations of the first client",
    ),
    lines("history.jsonl", "prompt history", "history", "prompts typed in the terminal client"),
    whole("history.json", "prompt history", None, "prompts typed in the first client"),
    lines("session_index.jsonl", "session names", "session_index", "names that the person gave"),
    database("state_*.sqlite", "thread table", "titles, archive marks and settings of each thread"),
    database("goals_*.sqlite", "goals", "goals of threads"),
    database("queue_*.sqlite", "queued prompts", "prompts that were not sent yet"),
    database("memories_*.sqlite", "memories", "what the client remembers of earlier sessions"),
    left_out("*.sqlite-{wal,shm}", "database side files", "read together with their database"),
    left_out("thread_history_*.sqlite", "thread history", "made by the client from the transcripts"),
    whole(
        "{AGENTS,AGENTS.override,instructions}.md",
        "instructions",
        None,
        "what the person told every session",
    ),
    whole("rules/**", "approval rules", None, "which commands may run"),
    whole("prompts/**", "prompts", None, "prompts that the person wrote"),
    left_out("skills/.system", "vendor skills", "shipped and rewritten by the client"),
    whole("skills/**", "skills", None, "skills that the person wrote or installed"),
    whole("agents/**", "agents", None, "agents that the person wrote"),
    whole("memories/**", "memories", None, "what the client remembers of earlier sessions"),
    whole("{attachments,generated_images}/**", "attachments", None, "files that transcripts refer to"),
    whole(
        "*config.{toml,json,yaml,yml}",
        "config",
        None,
        "settings; values that look secret are masked on every way out",
    ),
    whole(
        "{hooks.json,environments.toml}",
        "config",
        None,
        "settings; values that look secret are masked on every way out",
    ),
    left_out(
        "{packages,plugins,.tmp,tmp,cache,db-backups,thread-writer-locks}",
        "caches",
        "copies that the client makes again",
    ),
    left_out("app-server-*", "caches", "sockets and locks of the background server"),
    left_out("{models_cache.json,version.json}", "caches", "fetched by the client again"),
    left_out("{log,*.log}", "logs", "operational messages of the client"),
    left_out("**/*.lock", "caches", "locks of the running client"),
    left_out(
        "{installation_id,.*_migration}",
        "telemetry",
        "marks of the installation, nothing of the person's",
    ),
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
        pattern: "goals_*.sqlite",
        table: "thread_goals",
        key_column: "thread_id",
        reader: "kept",
        why: "goals that the person set",
    },
    Database {
        pattern: "queue_*.sqlite",
        table: "queued_items",
        key_column: "id",
        reader: "kept",
        why: "prompts that exist nowhere else yet",
    },
    Database {
        pattern: "memories_*.sqlite",
        table: "stage1_outputs",
        key_column: "thread_id",
        reader: "kept",
        why: "memories in the making",
    },
];

const fn lines(pattern: &'static str, store: &'static str, reader: &'static str, why: &'static str) -> Rule {
    Rule {
        pattern,
        treatment: Treatment::Capture,
        store,
        reader: Some(reader),
        framing: Framing::Lines,
        encoding: Encoding::Plain,
        why,
    }
}

const fn whole(
    pattern: &'static str,
    store: &'static str,
    reader: Option<&'static str>,
    why: &'static str,
) -> Rule {
    Rule {
        pattern,
        treatment: Treatment::Capture,
        store,
        reader,
        framing: Framing::Whole,
        encoding: Encoding::Plain,
        why,
    }
}

const fn never(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
    Rule {
        pattern,
        treatment: Treatment::Never,
        store,
        reader: None,
        framing: Framing::Whole,
        encoding: Encoding::Plain,
        why,
    }
}

const fn left_out(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
    Rule {
        pattern,
        treatment: Treatment::LeftOut,
        store,
        reader: None,
        framing: Framing::Whole,
        encoding: Encoding::Plain,
        why,
    }
}

const fn database(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
    Rule {
        pattern,
        treatment: Treatment::Database,
        store,
        reader: None,
        framing: Framing::Whole,
        encoding: Encoding::Plain,
        why,
    }
}
