//! Which files of a Claude Code home are kept, left out, and never opened, with the reasons.

use crate::home::rules;
use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("**/.credentials.json", "credentials", "login tokens"),
    Rule::never("{hfi-auth,mcp-needs-auth-cache}.json", "credentials", "login tokens"),
    Rule::never("{.claude,.config}.json", "credentials", "account, keys and MCP tokens"),
    Rule::never("backups", "credentials", "copies of the file that contains account and keys"),
    Rule::never("sessions", "live processes", "keys of running clients"),
    Rule::never("**/*.key", "credentials", "keys of running clients"),
    Rule::never("{shell-snapshots,session-env}", "shell snapshots", "contains shell variables"),
    Rule::never("{debug,dump-prompts}", "debug logs", "may contain headers and keys"),
    Rule::left_out("projects/*/*/resume-head.jsonl", "caches", "byte offsets, not a transcript"),
    Rule::lines("projects/*/*.jsonl", "transcripts", "transcript", "conversations"),
    Rule::keep("projects/*/*/subagents/**/journal.jsonl", "workflows", "journals of workflow runs"),
    Rule::lines("projects/*/*/subagents/**/*.jsonl", "sub-agents", "transcript", "transcripts of sub-agents"),
    Rule::read(
        "projects/*/*/subagents/**/*.meta.json",
        "sub-agents",
        "agent_meta",
        "type and caller of a sub-agent",
    ),
    // Some homes have them without the folder of their session.
    Rule::keep("projects/*/subagents/**/journal.jsonl", "workflows", "journals of workflow runs"),
    Rule::lines("projects/*/subagents/**/*.jsonl", "sub-agents", "transcript", "transcripts of sub-agents"),
    Rule::read(
        "projects/*/subagents/**/*.meta.json",
        "sub-agents",
        "agent_meta",
        "type and caller of a sub-agent",
    ),
    Rule::read(
        "projects/*/*/tool-results/**",
        "full tool results",
        "full_result",
        "outputs too long for the transcript",
    ),
    Rule::read("projects/*/*/custom-title.json", "titles", "custom_title", "session name given by the user"),
    Rule::keep(
        "projects/*/*/{workflows,remote-agents}/**",
        "workflows",
        "records of workflows and cloud agents",
    ),
    Rule::authored("projects/*/memory/**", "memory notes", "authored", "memories about a project"),
    Rule::keep("projects/*/{sessions-index.json,.session-aliases}", "indexes", "session index of the client"),
    Rule::lines(
        "history.jsonl",
        "prompt history",
        "history",
        "every prompt typed, including those of deleted sessions",
    ),
    Rule::keep("{paste-cache,image-cache,uploads}/**", "pastes", "pasted texts that the history refers to"),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    Rule::authored("todos/*.json", "todos", "todos", "to-do lists"),
    Rule::authored("tasks/*/*.json", "todos", "todos", "tasks"),
    Rule::read(
        "file-history/*/*",
        "file snapshots",
        "snapshot",
        "files before an edit; the client deletes them",
    ),
    Rule::authored("plans/**", "plans", "authored", "plan documents"),
    Rule::authored(
        "{skills,commands,agents,output-styles,rules,hooks,workflows,themes}/**",
        "authored",
        "authored",
        "files written by the user",
    ),
    Rule::authored(
        "{CLAUDE.md,CLAUDE.local.md,keybindings.json,loop.md}",
        "authored",
        "authored",
        "instructions for every session",
    ),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "authored", "authored", "notes and instructions beside those of the client"),
    Rule::authored("agent-memory/**", "memory notes", "authored", "memories of agents"),
    Rule::authored(
        "{settings,settings.local}.json",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::authored(
        "plugins/{installed_plugins,installed_plugins_v2,known_marketplaces}.json",
        "plugins",
        "authored",
        "installed plugins",
    ),
    Rule::left_out("plugins/*", "plugin caches", "third-party code"),
    Rule::left_out(
        "{cache,local,chrome,ide,state,jobs,teams,traces,telemetry,statsig,startup-perf,usage-data}",
        "machinery",
        "caches, locks and telemetry of the client",
    ),
    Rule::left_out(
        "{remote-settings.json,stats-cache.json,.last-cleanup,daemon*,feedback*}",
        "machinery",
        "caches and markers of the client",
    ),
    Rule::left_out(
        "**/{.git,node_modules,__pycache__,.venv}",
        "machinery",
        "repositories and installed packages",
    ),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for agents of every kind"),
    Rule::authored("CLAUDE.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        "CLAUDE.local.md",
        "instructions",
        "authored",
        "personal instructions for sessions in the repository",
    ),
    Rule::authored(
        ".claude/CLAUDE.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".claude/settings.json", "settings", "authored", "settings of the repository"),
    Rule::authored(
        ".claude/settings.local.json",
        "settings",
        "authored",
        "personal settings in the repository",
    ),
    Rule::authored(".claude/skills/**", "authored", "authored", "skills of the repository"),
    Rule::authored(".claude/commands/**", "authored", "authored", "commands of the repository"),
    Rule::authored(".claude/agents/**", "authored", "authored", "agents of the repository"),
    Rule::authored(".claude/rules/**", "authored", "authored", "rules of the repository"),
    Rule::authored(".claude/hooks/**", "authored", "authored", "scripts that settings run on events"),
    Rule::authored(".claude/output-styles/**", "authored", "authored", "output styles of the repository"),
];
