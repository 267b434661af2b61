//! Which files of a Claude Code home are kept, left out, and never opened, with the reasons.

use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    repository_rules: REPOSITORY_RULES,
    otherwise: "a file that no pattern names is not opened; it is reported as unaccounted",
};

const RULES: &[Rule] = &[
    Rule::never("**/.credentials.json", "credentials", "login tokens"),
    Rule::never("{hfi-auth,mcp-needs-auth-cache}.json", "credentials", "login tokens"),
    Rule::never("{.claude,.config}.json", "credentials", "account, keys and MCP tokens"),
    Rule::never("backups", "credentials", "copies of the file with account and keys"),
    Rule::never("sessions", "live processes", "keys of running clients"),
    Rule::never("**/*.key", "credentials", "keys of running clients"),
    Rule::never("{shell-snapshots,session-env}", "shell snapshots", "holds the shell's variables"),
    Rule::never("{debug,dump-prompts}", "debug logs", "may hold headers and keys"),
    Rule::left_out("projects/*/*/resume-head.jsonl", "caches", "byte offsets, no transcript"),
    Rule::lines("projects/*/*.jsonl", "transcripts", "transcript", "the conversations"),
    Rule::keep("projects/*/*/subagents/**/journal.jsonl", "workflows", "journals of workflow runs"),
    Rule::lines(
        "projects/*/*/subagents/**/*.jsonl",
        "sub-agents",
        "transcript",
        "what sub-agents said and did",
    ),
    Rule::read(
        "projects/*/*/subagents/**/*.meta.json",
        "sub-agents",
        "agent_meta",
        "what a sub-agent is and who called it",
    ),
    Rule::read(
        "projects/*/*/tool-results/**",
        "full tool results",
        "full_result",
        "outputs too long for the transcript",
    ),
    Rule::read("projects/*/*/custom-title.json", "titles", "custom_title", "the name that the person gave"),
    Rule::keep(
        "projects/*/*/{workflows,remote-agents}/**",
        "workflows",
        "records of workflows and cloud agents",
    ),
    Rule::authored(
        "projects/*/memory/**",
        "memory notes",
        "authored",
        "what the assistant remembers of a project",
    ),
    Rule::keep(
        "projects/*/{sessions-index.json,.session-aliases}",
        "indexes",
        "the client's own list of sessions",
    ),
    Rule::lines("history.jsonl", "prompt history", "history", "every prompt typed, also of deleted sessions"),
    Rule::keep("{paste-cache,image-cache,uploads}/**", "pastes", "pasted bodies that the history refers to"),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    Rule::authored("todos/*.json", "todos", "todos", "to-do lists"),
    Rule::authored("tasks/*/*.json", "todos", "todos", "tasks"),
    Rule::read(
        "file-history/*/*",
        "file snapshots",
        "snapshot",
        "files as they were before an edit; the client deletes them",
    ),
    Rule::authored("plans/**", "plans", "authored", "plan documents"),
    Rule::authored(
        "{skills,commands,agents,output-styles,rules,workflows,themes}/**",
        "authored",
        "authored",
        "what the person wrote",
    ),
    Rule::authored(
        "{CLAUDE.md,CLAUDE.local.md,keybindings.json,loop.md}",
        "authored",
        "authored",
        "what the person told every session",
    ),
    Rule::authored("agent-memory/**", "memory notes", "authored", "what agents remember"),
    Rule::authored(
        "{settings,settings.local}.json",
        "settings",
        "authored",
        "settings; values that look secret are masked on every way out",
    ),
    Rule::authored(
        "plugins/{installed_plugins,installed_plugins_v2,known_marketplaces}.json",
        "plugins",
        "authored",
        "which plugins there are",
    ),
    Rule::left_out("plugins/*", "plugin caches", "checked-out code of others"),
    Rule::left_out(
        "{cache,local,chrome,ide,state,jobs,teams,traces,telemetry,statsig,startup-perf,usage-data}",
        "machinery",
        "caches, locks and telemetry of the client",
    ),
    Rule::left_out(
        "{remote-settings.json,stats-cache.json,.last-cleanup,daemon*,feedback*}",
        "machinery",
        "caches and marks of the client",
    ),
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("CLAUDE.md", "instructions", "authored", "what sessions in the repository are told"),
    Rule::authored(
        "CLAUDE.local.md",
        "instructions",
        "authored",
        "what the person's sessions there are told",
    ),
    Rule::authored(
        ".claude/CLAUDE.md",
        "instructions",
        "authored",
        "what sessions in the repository are told",
    ),
    Rule::authored(".claude/settings.json", "settings", "authored", "settings of the repository"),
    Rule::authored(".claude/settings.local.json", "settings", "authored", "the person's settings there"),
    Rule::authored(".claude/skills/**", "authored", "authored", "skills of the repository"),
    Rule::authored(".claude/commands/**", "authored", "authored", "commands of the repository"),
    Rule::authored(".claude/agents/**", "authored", "authored", "agents of the repository"),
    Rule::authored(".claude/rules/**", "authored", "authored", "rules of the repository"),
    Rule::authored(".claude/output-styles/**", "authored", "authored", "output styles of the repository"),
];
