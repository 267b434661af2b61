//! Which files of a Claude Code home are kept, left out, and never opened, with the reasons.

use crate::model::{Encoding, Footprint, Framing, Rule, Treatment};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    otherwise: "a file that no pattern names is not opened; it is reported as unaccounted",
};

const RULES: &[Rule] = &[
    rule(Treatment::Never, "**/.credentials.json", "credentials", None, "login tokens"),
    rule(Treatment::Never, "{hfi-auth,mcp-needs-auth-cache}.json", "credentials", None, "login tokens"),
    rule(Treatment::Never, "{.claude,.config}.json", "credentials", None, "account, keys and MCP tokens"),
    rule(Treatment::Never, "backups", "credentials", None, "copies of the file with account and keys"),
    rule(Treatment::Never, "sessions", "live processes", None, "keys of running clients"),
    rule(Treatment::Never, "**/*.key", "credentials", None, "keys of running clients"),
    rule(
        Treatment::Never,
        "{shell-snapshots,session-env}",
        "shell snapshots",
        None,
        "holds the shell's variables",
    ),
    rule(Treatment::Never, "{debug,dump-prompts}", "debug logs", None, "may hold headers and keys"),
    rule(Treatment::LeftOut, "projects/*/*/resume-head.jsonl", "caches", None, "byte offsets, no transcript"),
    lines("projects/*/*.jsonl", "transcripts", "transcript", "the conversations"),
    keep("projects/*/*/subagents/**/journal.jsonl", "workflows", "journals of workflow runs"),
    lines("projects/*/*/subagents/**/*.jsonl", "sub-agents", "transcript", "what sub-agents said and did"),
    read(
        "projects/*/*/subagents/**/*.meta.json",
        "sub-agents",
        "agent_meta",
        "what a sub-agent is and who called it",
    ),
    read(
        "projects/*/*/tool-results/**",
        "full tool results",
        "full_result",
        "outputs too long for the transcript",
    ),
    read("projects/*/*/custom-title.json", "titles", "custom_title", "the name that the person gave"),
    keep("projects/*/*/{workflows,remote-agents}/**", "workflows", "records of workflows and cloud agents"),
    keep("projects/*/memory/**", "memory notes", "what the assistant remembers of a project"),
    keep("projects/*/{sessions-index.json,.session-aliases}", "indexes", "the client's own list of sessions"),
    lines("history.jsonl", "prompt history", "history", "every prompt typed, also of deleted sessions"),
    keep("{paste-cache,image-cache,uploads}/**", "pastes", "pasted bodies that the history refers to"),
    rule(Treatment::LeftOut, "**/*.lock", "caches", None, "locks of the running client"),
    read("todos/*.json", "todos", "todos", "to-do lists"),
    read("tasks/*/*.json", "todos", "todos", "tasks"),
    keep("file-history/*/*", "file snapshots", "files as they were before an edit; the client deletes them"),
    keep("plans/**", "plans", "plan documents"),
    keep(
        "{skills,commands,agents,output-styles,rules,workflows,themes}/**",
        "authored",
        "what the person wrote",
    ),
    keep(
        "{CLAUDE.md,CLAUDE.local.md,keybindings.json,loop.md}",
        "authored",
        "what the person told every session",
    ),
    keep("agent-memory/**", "memory notes", "what agents remember"),
    keep(
        "{settings,settings.local}.json",
        "settings",
        "settings; values that look secret are masked on every way out",
    ),
    keep(
        "plugins/{installed_plugins,installed_plugins_v2,known_marketplaces}.json",
        "plugins",
        "which plugins there are",
    ),
    rule(Treatment::LeftOut, "plugins/*", "plugin caches", None, "checked-out code of others"),
    rule(
        Treatment::LeftOut,
        "{cache,local,chrome,ide,state,jobs,teams,traces,telemetry,statsig,startup-perf,usage-data}",
        "machinery",
        None,
        "caches, locks and telemetry of the client",
    ),
    rule(
        Treatment::LeftOut,
        "{remote-settings.json,stats-cache.json,.last-cleanup,daemon*,feedback*}",
        "machinery",
        None,
        "caches and marks of the client",
    ),
];

const fn lines(pattern: &'static str, store: &'static str, reader: &'static str, why: &'static str) -> Rule {
    let mut lines = rule(Treatment::Capture, pattern, store, Some(reader), why);
    lines.framing = Framing::Lines;
    lines
}

const fn read(pattern: &'static str, store: &'static str, reader: &'static str, why: &'static str) -> Rule {
    rule(Treatment::Capture, pattern, store, Some(reader), why)
}

const fn keep(pattern: &'static str, store: &'static str, why: &'static str) -> Rule {
    rule(Treatment::Capture, pattern, store, None, why)
}

const fn rule(
    treatment: Treatment,
    pattern: &'static str,
    store: &'static str,
    reader: Option<&'static str>,
    why: &'static str,
) -> Rule {
    Rule { pattern, treatment, store, reader, framing: Framing::Whole, encoding: Encoding::Plain, why }
}
