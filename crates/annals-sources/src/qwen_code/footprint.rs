//! Which files of a Qwen home are kept, left out, and never opened, with the reasons.

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
    Rule::never("**/*-credentials*", "credentials", "login tokens"),
    Rule::lines("projects/*/chats/*.jsonl", "transcripts", "transcript", "conversations"),
    Rule::lines("projects/*/subagents/*/*.jsonl", "transcripts", "transcript", "conversations of sub-agents"),
    Rule::read(
        "projects/*/subagents/*/*.meta.json",
        "transcripts",
        "agent_card",
        "what each sub-agent is for",
    ),
    Rule::left_out("projects/*/chats/*.runtime.json", "machinery", "processes of the client"),
    Rule::authored("projects/*/memory/**", "memories", "authored", "memories written by the assistant"),
    Rule::authored("memories/**", "memories", "authored", "memories written by the assistant"),
    Rule::left_out(
        "projects/*/{meta,extract-cursor}.json",
        "machinery",
        "how far the client has read for its memories",
    ),
    Rule::keep("projects/*/workflows/**", "workflows", "runs of workflows"),
    Rule::read("tmp/*/chats/*.json", "transcripts", "chat_document", "conversations of older clients"),
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
        "tmp/*/tool-{outputs,results}/**",
        "tool outputs",
        "tool_output",
        "outputs too long for the transcript",
    ),
    Rule::read("tmp/*/*.output", "tool outputs", "tool_output", "outputs too long for the transcript"),
    Rule::keep("tmp/*/shell_history", "shell history", "commands typed after an exclamation mark"),
    Rule::left_out("tmp/bin", "caches", "downloaded programs"),
    Rule::lines("usage_record.jsonl", "runs", "runs", "what the client counted when it ended"),
    Rule::authored("todos/*.json", "plans", "authored", "to-do lists of sessions"),
    Rule::authored("plans/**", "plans", "authored", "plans written by the assistant"),
    Rule::authored("trustedFolders.json", "projects", "projects", "directories that sessions ran in"),
    rules::PACKAGES,
    Rule::authored("commands/**", "commands", "authored", "commands written by the user"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("workflows/**", "commands", "authored", "workflows written by the user"),
    Rule::authored("extensions/*/qwen-extension.json", "extensions", "authored", "manifests of extensions"),
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
    Rule::left_out("{debug,logs}", "logs", "log messages of the client and requests"),
    Rule::left_out(
        "{insights,arena,ide,bin,extension-store,history,file-history}",
        "machinery",
        "state of the client and copies of files",
    ),
    Rule::left_out(
        "{installation_id,user_id,state.json,tip_history.json,.openai-logs-cleanup*}",
        "machinery",
        "state of the client without user data",
    ),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("QWEN.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for agents of every kind"),
    Rule::authored(
        ".qwen/{QWEN,output-language}.md",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".qwen/settings.json", "settings", "authored", "settings of the repository"),
    Rule::authored(".qwen/commands/**", "commands", "authored", "commands of the repository"),
    Rule::authored(".qwen/agents/**", "agents", "authored", "agents of the repository"),
    Rule::authored(".qwen/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".qwen/workflows/**", "commands", "authored", "workflows of the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];
