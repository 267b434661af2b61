//! Which files of a Cline home are kept, left out, and never opened, with the reasons. The extension for editors has what is
//! below `data/` in a folder of its own.

use crate::home::rules;
use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("**/{secrets,providers}.json*", "credentials", "keys of providers"),
    Rule::never("**/{*oauth*,*credentials*}.json", "credentials", "login tokens"),
    Rule::read("data/sessions/*/*.messages.json", "transcripts", "messages", "conversations"),
    Rule::read(
        "data/sessions/*/*.json",
        "session cards",
        "session_card",
        "directory, title and state of sessions",
    ),
    Rule::read(
        "data/tasks/*/api_conversation_history.json",
        "transcripts",
        "messages",
        "conversations of older clients",
    ),
    Rule::read(
        "data/tasks/*/*_messages.json",
        "transcripts",
        "shown",
        "what the interface of older clients showed, with usage",
    ),
    Rule::read(
        "data/tasks/*/task_metadata.json",
        "session cards",
        "task_card",
        "version and models of tasks",
    ),
    Rule::keep("data/tasks/**", "tasks", "other files of tasks"),
    Rule::read(
        "data/state/taskHistory.json",
        "session cards",
        "tasks",
        "directory, prompt and cost of tasks",
    ),
    Rule::left_out(
        "data/{checkpoints,workspaces}",
        "restore points",
        "shadow repositories and views of projects",
    ),
    Rule::left_out("data/{cache,logs,locks}", "machinery", "state of the client"),
    Rule::left_out("data/state/**", "machinery", "state of the client"),
    Rule::left_out("data/db", "databases", "the sessions again, and state of the client"),
    Rule::authored(
        "data/{globalState.json,settings/*.json}",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    rules::PACKAGES,
    Rule::authored("rules/**", "instructions", "authored", "instructions for every session"),
    Rule::authored("workflows/**", "commands", "authored", "workflows written by the user"),
    Rule::authored("commands/**", "commands", "authored", "commands written by the user"),
    Rule::authored("agents/**", "agents", "authored", "agents written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    Rule::authored("hooks/**", "hooks", "authored", "scripts that run on events"),
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
    Rule::left_out("{logs,cache,locks}", "machinery", "state of the client"),
    Rule::left_out("**/*.{lock,log,tmp}", "caches", "files of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "instructions for every session"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(".clinerules", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        ".clinerules/**",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(
        ".cline/rules/**",
        "instructions",
        "authored",
        "instructions for sessions in the repository",
    ),
    Rule::authored(".cline/workflows/**", "commands", "authored", "workflows of the repository"),
    Rule::authored(".cline/agents/**", "agents", "authored", "agents of the repository"),
    Rule::authored(".cline/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".cline/hooks/**", "hooks", "authored", "scripts that run on events"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];
