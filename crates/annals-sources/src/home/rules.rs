//! Rules that the footprints of all homes share: files that are never opened, and what happens to the rest.

use annals_core::Rule;

/// What happens to files that match no rule.
pub const OTHERWISE: &str = "small text files that match no pattern are kept as unknown; others are not kept, and reported as unaccounted";

pub const ENVIRONMENTS: Rule =
    Rule::never("**/{.env,.env.*,.envrc,.netrc}", "credentials", "environment variables and passwords");
pub const PRIVATE_KEYS: Rule =
    Rule::never("**/{id_rsa,id_dsa,id_ecdsa,id_ed25519,*.pem,*.p12,*.pfx}", "credentials", "private keys");
/// Before the rule that keeps Markdown at the top of a home.
pub const NAMED_CREDENTIALS: Rule =
    Rule::never("*{credential,password,secret}*.md", "credentials", "name suggests credentials");
pub const PACKAGES: Rule = Rule::left_out(
    "**/{.git,node_modules,__pycache__,.venv}",
    "caches",
    "repositories and installed packages",
);
pub const UNKNOWN: Rule = Rule::unknown("**", "files of unknown kind");
