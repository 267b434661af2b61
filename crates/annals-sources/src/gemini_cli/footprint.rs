//! Which files of a Gemini home are kept, left out, and never opened, with the reasons.

use crate::home::rules;
use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("**/oauth_creds*", "credentials", "login tokens"),
    Rule::never("**/google_accounts*", "credentials", "accounts"),
    Rule::never("**/*oauth-tokens*", "credentials", "login tokens of MCP servers and agents"),
    Rule::never("**/gemini-credentials*", "credentials", "login tokens"),
    Rule::lines("tmp/*/chats/*.jsonl", "transcripts", "chat", "conversations"),
    Rule::lines("tmp/*/chats/*/*.jsonl", "transcripts", "chat", "conversations of sub-agents"),
    Rule::read("tmp/*/chats/*.json", "transcripts", "chat_document", "conversations of older clients"),
    Rule::read(
        "tmp/*/chats/*/*.json",
        "transcripts",
        "chat_document",
        "conversations of sub-agents of older clients",
    ),
    Rule::keep("tmp/*/chats/**/*.unreadable-*", "transcripts", "conversations that the client found damaged"),
    Rule::left_out("tmp/*/chats/**/*.tmp-*", "caches", "files that the client is writing"),
    Rule::read("tmp/*/logs.json", "prompt log", "logs", "prompts typed in the interactive client"),
    Rule::keep("tmp/*/logs.json.*.bak", "prompt log", "prompt logs that the client found damaged"),
    Rule::authored(
        "tmp/*/checkpoint-*.json",
        "saved conversations",
        "checkpoint",
        "conversations saved by the user",
    ),
    Rule::left_out("tmp/*/checkpoints", "restore points", "copies of files and conversations before an edit"),
    Rule::read(
        "tmp/*/tool-outputs/*/*",
        "tool outputs",
        "tool_output",
        "outputs too long for the transcript",
    ),
    Rule::read("tmp/*/*.output", "tool outputs", "tool_output", "outputs too long for the transcript"),
    Rule::authored("tmp/*/.project_root", "projects", "projects", "the directory of the project"),
    Rule::keep("tmp/*/shell_history", "shell history", "commands typed after an exclamation mark"),
    Rule::authored("tmp/*/memory/**", "memories", "authored", "memories written by the assistant"),
    Rule::authored("tmp/*/*/{plans,tasks,tracker}/**", "plans", "authored", "plans written by the assistant"),
    Rule::left_out("tmp/bin", "caches", "downloaded programs"),
    Rule::authored(
        "{projects,trustedFolders}.json",
        "projects",
        "projects",
        "directories that sessions ran in",
    ),
    Rule::authored("commands/**", "commands", "authored", "commands written by the user"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("policies/**", "settings", "authored", "approvals given by the user"),
    rules::PACKAGES,
    Rule::authored("extensions/*/gemini-extension.json", "extensions", "authored", "manifests of extensions"),
    Rule::authored("extensions/*/*.md", "extensions", "authored", "instructions of extensions"),
    // A folder is entered if a rule before `left_out` names it.
    Rule::authored(
        "extensions/*/{commands,agents,skills}",
        "extensions",
        "authored",
        "commands, agents and skills of extensions",
    ),
    Rule::authored(
        "extensions/*/{commands,agents,skills}/**",
        "extensions",
        "authored",
        "commands, agents and skills of extensions",
    ),
    Rule::left_out("extensions/*/**", "extensions", "code of extensions"),
    Rule::left_out("extensions/*.json", "machinery", "which extensions are enabled"),
    Rule::authored(
        "{settings,keybindings}.json",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::authored(
        "settings.json.orig",
        "settings",
        "authored",
        "settings before the client changed their form",
    ),
    Rule::left_out("history", "restore points", "shadow repositories of projects"),
    Rule::left_out(
        "{installation_id,user_id,state.json,policy_integrity.json,acknowledgments}",
        "machinery",
        "state of the client without user data",
    ),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("GEMINI.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        ".gemini/GEMINI.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".gemini/settings.json", "settings", "authored", "settings of the repository"),
    Rule::authored(".gemini/commands/**", "commands", "authored", "commands of the repository"),
    Rule::authored(".gemini/agents/**", "agents", "authored", "agents of the repository"),
    Rule::authored(".gemini/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".gemini/policies/**", "settings", "authored", "approvals for the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];
