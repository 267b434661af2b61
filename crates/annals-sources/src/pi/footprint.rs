//! Which files of a Pi home are kept, left out, and never opened, with the reasons.

use annals_core::{Footprint, Rule};

pub const FOOTPRINT: Footprint = Footprint {
    rules: RULES,
    repository_rules: REPOSITORY_RULES,
    otherwise: "small text files that match no pattern are kept as unknown; others are not kept, and reported as unaccounted",
};

const RULES: &[Rule] = &[
    Rule::never("**/{.env,.env.*,.envrc,.netrc}", "credentials", "environment variables and passwords"),
    Rule::never("**/{id_rsa,id_dsa,id_ecdsa,id_ed25519,*.pem,*.p12,*.pfx}", "credentials", "private keys"),
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
    Rule::left_out("**/{.git,node_modules}", "caches", "repositories and installed packages"),
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
    Rule::never("*{credential,password,secret}*.md", "credentials", "name suggests credentials"),
    Rule::authored("*.md", "instructions", "authored", "notes beside the client's instructions"),
    Rule::unknown("**", "files of unknown kind"),
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
