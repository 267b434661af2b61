//! Which files of a Pi home are kept, left out, and never opened, with the reasons.

use crate::home::rules;
use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint =
    Footprint { rules: RULES, repository_rules: REPOSITORY_RULES, otherwise: rules::OTHERWISE };

const RULES: &[Rule] = &[
    rules::ENVIRONMENTS,
    rules::PRIVATE_KEYS,
    Rule::never("**/auth.json*", "credentials", "login tokens"),
    Rule::never("**/oauth*.json", "credentials", "login tokens"),
    Rule::lines("sessions/**/*.jsonl", "transcripts", "transcript", "conversations"),
    Rule::authored(
        "{AGENTS,SYSTEM,APPEND_SYSTEM}.md",
        "instructions",
        "authored",
        "instructions for every session",
    ),
    Rule::authored("prompts/**", "prompts", "authored", "prompts written by the user"),
    Rule::authored("skills/**", "skills", "authored", "skills written or installed by the user"),
    rules::PACKAGES,
    Rule::authored("extensions/**", "extensions", "authored", "programs written by the user"),
    Rule::authored("themes/**", "settings", "authored", "colours"),
    Rule::authored(
        "{settings,models,keybindings}.json",
        "settings",
        "authored",
        "settings; values that look secret are masked in all output",
    ),
    Rule::left_out("{bin,git,npm,tools}", "caches", "downloaded programs and packages"),
    Rule::left_out("*.log", "logs", "log messages of the client"),
    Rule::left_out("**/*.lock", "caches", "locks of the running client"),
    rules::NAMED_CREDENTIALS,
    Rule::authored("*.md", "instructions", "authored", "notes beside the client's instructions"),
    rules::UNKNOWN,
];

const REPOSITORY_RULES: &[Rule] = &[
    Rule::authored("AGENTS.md", "instructions", "authored", "instructions for sessions in the repository"),
    Rule::authored(
        ".pi/{SYSTEM,APPEND_SYSTEM}.md",
        "instructions",
        "authored",
        "system prompts of the repository",
    ),
    Rule::authored(".pi/settings.json", "settings", "authored", "settings of the repository"),
    Rule::authored(".pi/prompts/**", "prompts", "authored", "prompts of the repository"),
    Rule::authored(".pi/skills/**", "skills", "authored", "skills of the repository"),
    Rule::authored(".pi/extensions/**", "extensions", "authored", "programs of the repository"),
    Rule::authored(".agents/skills/**", "skills", "authored", "skills of the repository"),
];
