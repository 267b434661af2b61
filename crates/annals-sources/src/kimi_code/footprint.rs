//! Which files of a Kimi home are kept, left out, and never opened, with the reasons.

use crate::home::rules;
use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("credentials", "credentials", "login tokens"),
    Rule::never("**/{*oauth*,*token*,*credentials*}.json", "credentials", "login tokens"),
    Rule::never("mcp.json", "credentials", "servers with their headers and environments"),
    Rule::never("device_id", "credentials", "identifies the device to the provider"),
    Rule::lines("sessions/*/*/agents/*/wire.jsonl", "transcripts", "transcript", "conversations of agents"),
    Rule::read(
        "sessions/*/*/state.json",
        "session cards",
        "state",
        "directory, title and agents of sessions",
    ),
    Rule::read(
        "sessions/*/*/agents/*/tasks/*/output.log",
        "tool outputs",
        "tool_output",
        "outputs too long for the transcript",
    ),
    Rule::keep("sessions/*/*/agents/*/tasks/*.json", "tasks", "commands that ran in the background"),
    Rule::left_out(
        "sessions/*/*/agents/*/file-history",
        "restore points",
        "copies of the project's files before an edit",
    ),
    Rule::left_out("sessions/*/*/{logs,notify}", "machinery", "state and log messages of the client"),
    Rule::left_out("sessions/{.index-cache,.index-dirty}", "caches", "lists of sessions, made again"),
    Rule::lines("session_index.jsonl", "session index", "kept", "where sessions are"),
    Rule::lines("user-history/*.jsonl", "prompt log", "kept", "lines typed in each directory, without times"),
    Rule::authored("workspaces.json", "projects", "workspaces", "directories that sessions ran in"),
    rules::PACKAGES,
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("commands/**", "commands", "authored", "commands written by the user"),
    Rule::authored("plugins/*/plugin.json", "extensions", "authored", "manifests of plugins"),
    // A folder is entered if a rule before `left_out` names it.
    Rule::authored(
        "plugins/*/{commands,agents,skills}",
        "extensions",
        "authored",
        "commands, agents and skills of plugins",
    ),
    Rule::authored(
        "plugins/*/{commands,agents,skills}/**",
        "extensions",
        "authored",
        "commands, agents and skills of plugins",
    ),
    Rule::left_out("plugins/*/**", "extensions", "code of plugins"),
    Rule::authored(
        "{config,tui}.toml",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::left_out("{logs,file-history,workspace-trust,bin,cache}", "machinery", "state of the client"),
    Rule::left_out("**/*.{lock,tmp}", "caches", "files of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        ".kimi-code/AGENTS.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".kimi-code/agents/**", "agents", "authored", "agents of the repository"),
    Rule::authored(".kimi-code/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];
