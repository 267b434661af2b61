//! Which files of OpenCode's folders are kept, left out, and never opened, with the reasons, and how its databases are
//! read.

use crate::home::rules;
use annals_core::{ChildTable, Database, Footprint, LineTable, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

/// Each release channel has its own.
const DATABASE: &str = "opencode*.db";

/// The folders with data and settings have no names in common.
const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("**/{auth,mcp-auth,account,credentials}.json*", "credentials", "login tokens"),
    Rule::database(DATABASE, "databases", "conversations, projects and settings of the client"),
    Rule::left_out("*.db-{wal,shm,journal}", "databases", "logs of databases, read with them"),
    Rule::keep("storage/{session,message,part,todo}/**", "transcripts", "conversations of older clients"),
    Rule::keep("project/*/storage/{session,todo}/**", "transcripts", "conversations of the oldest clients"),
    Rule::authored("storage/project/*.json", "projects", "project", "directories that sessions ran in"),
    Rule::keep("storage/session_diff/*.json", "changes", "what sessions changed, as the client sums it up"),
    Rule::left_out("storage/share", "credentials", "addresses and secrets of shared sessions"),
    Rule::left_out(
        "project/*/storage/session/share",
        "credentials",
        "addresses and secrets of shared sessions",
    ),
    Rule::keep("{storage,project/*/storage}/migration", "machinery", "the version of the store"),
    Rule::keep("project/*/app.json", "projects", "state of projects"),
    Rule::read("tool-output/*", "tool outputs", "tool_output", "outputs too long for the transcript"),
    Rule::left_out("{snapshot,project/*/snapshots}", "restore points", "shadow repositories of projects"),
    Rule::left_out("{log,bin,repos,worktree,locks}", "machinery", "logs, programs and working copies"),
    Rule::left_out("**/{.git,node_modules}", "caches", "repositories and installed packages"),
    Rule::left_out(
        "{package.json,package-lock.json,bun.lock,bun.lockb,.gitignore}",
        "caches",
        "packages of the client",
    ),
    Rule::authored("{command,commands}/**", "commands", "authored", "commands written by the user"),
    Rule::authored("{agent,agents,mode,modes}/**", "agents", "authored", "agents written by the user"),
    Rule::authored("{skill,skills}/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored(
        "{plugin,plugins,tool,tools}/**",
        "extensions",
        "authored",
        "programs written by the user",
    ),
    Rule::authored("plans/*.md", "plans", "authored", "plans written by the assistant"),
    Rule::authored("themes/**", "settings", "authored", "colours"),
    Rule::authored(
        "{opencode,config,tui}.{json,jsonc}",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored("{opencode.json,opencode.jsonc}", "settings", "authored", "settings of the repository"),
    Rule::authored(
        ".opencode/{opencode.json,opencode.jsonc}",
        "settings",
        "authored",
        "settings of the repository",
    ),
    Rule::authored(".opencode/{command,commands}/**", "commands", "authored", "commands of the repository"),
    Rule::authored(
        ".opencode/{agent,agents,mode,modes}/**",
        "agents",
        "authored",
        "agents of the repository",
    ),
    Rule::authored(".opencode/{skill,skills}/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".opencode/plans/*.md", "plans", "authored", "plans for the repository"),
    Rule::authored(
        ".opencode/{plugin,plugins,tool,tools}/**",
        "extensions",
        "authored",
        "programs of the repository",
    ),
];

/// A conversation: a line for the session with its list, and one for each message with its parts.
const CONVERSATION: &[LineTable] = &[
    LineTable {
        table: "session",
        document_column: "id",
        key_column: "id",
        order: "id",
        changed_column: "time_updated",
        children: &[ChildTable {
            table: "todo",
            document_column: "session_id",
            parent_column: "session_id",
            order: "position",
            changed_column: "time_updated",
        }],
    },
    LineTable {
        table: "message",
        document_column: "session_id",
        key_column: "id",
        order: "time_created,id",
        changed_column: "time_updated",
        children: &[ChildTable {
            table: "part",
            document_column: "session_id",
            parent_column: "message_id",
            order: "id",
            changed_column: "time_updated",
        }],
    },
];

const fn not_read(table: &'static str, why: &'static str) -> Database {
    Database::not_read(DATABASE, table, why).in_every_file()
}

pub const DATABASES: &[Database] = &[
    Database::documents(DATABASE, "session", "conversation", CONVERSATION, "conversations").in_every_file(),
    Database::rows(DATABASE, "project", "id", "project", "directories that sessions ran in").in_every_file(),
    Database::state(DATABASE, "migration", "versions of the database; kept with its schema for restore")
        .in_every_file(),
    Database::state(
        DATABASE,
        "__drizzle_migrations",
        "versions of the database; kept with its schema for restore",
    )
    .in_every_file(),
    Database::state(DATABASE, "data_migration", "versions of the data; kept with the schema for restore")
        .in_every_file(),
    not_read("event", "changes of the other tables, whole records once more"),
    not_read("event_sequence", "counters of the changes"),
    not_read("session_message", "a coming form of messages, not in use"),
    not_read("session_input", "a coming form of messages, not in use"),
    not_read("session_context_epoch", "a coming form of messages, not in use"),
    not_read("session_entry", "a coming form of messages, not in use"),
    not_read("permission", "approvals given to tools"),
    not_read("project_directory", "directories of projects, which sessions have"),
    not_read("workspace", "copies of projects that the client works in"),
    not_read("session_share", "secrets of shared sessions"),
    not_read("account", "login tokens"),
    not_read("account_state", "which account is in use"),
    not_read("control_account", "login tokens"),
    not_read("credential", "login tokens"),
];
