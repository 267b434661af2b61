//! The settings of annals itself. Those of sources are in their manifests.

use annals_core::{ValueKind, Variable};

/// Settings that belong to no source. Sources declare theirs in their manifests.
pub(super) const OWN: [&Variable; 26] = [
    &HOME,
    &LISTEN,
    &PROJECTS,
    &LOG,
    &MACHINE,
    &PAGER,
    &EDITOR,
    &BUDGET,
    &BROWSER,
    &BROWSER_ARGUMENTS,
    &BROWSER_HEADLESS,
    &RETENTION_RULES,
    &RETENTION_AUTOMATIC,
    &SERVER_HOSTS,
    &TLS_CERTIFICATE,
    &TLS_KEY,
    &TRUSTED_PROXIES,
    &USER_HEADER,
    &HUB_POLICY,
    &PUSH_URL,
    &PUSH_TOKEN_FILE,
    &PUSH_CA,
    &PUSH_SOURCES,
    &PUSH_EXCLUDED_SOURCES,
    &PUSH_PROJECTS,
    &PUSH_EXCLUDED_PROJECTS,
];

pub(super) static HOME: Variable = Variable {
    name: "ANNALS_HOME",
    config_key: "home",
    what: "folder of the archive",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static LISTEN: Variable = Variable {
    name: "ANNALS_LISTEN",
    config_key: "listen",
    what: "address and port of the server",
    default: "127.0.0.1:4848",
    kind: ValueKind::Text,
};
pub(super) static PROJECTS: Variable = Variable {
    name: "ANNALS_PROJECTS",
    config_key: "projects",
    what: "also archive instructions, skills and rules of the repositories that sessions ran in",
    default: "yes",
    kind: ValueKind::Boolean,
};
pub(super) static LOG: Variable = Variable {
    name: "ANNALS_LOG",
    config_key: "log",
    what: "events on stderr: a level, or levels by module (warn,annals::serve=debug)",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static MACHINE: Variable = Variable {
    name: "ANNALS_MACHINE",
    config_key: "machine",
    what: "name of this machine, for the homes on it",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static PAGER: Variable = Variable {
    name: "ANNALS_PAGER",
    config_key: "pager",
    what: "program that long answers open in on a terminal; cat for none",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static EDITOR: Variable = Variable {
    name: "ANNALS_EDITOR",
    config_key: "editor",
    what: "address that opens a file from a page in your editor, with {path} and {line}; none for no links",
    default: "vscode://file{path}:{line}",
    kind: ValueKind::Text,
};
pub(super) static BUDGET: Variable = Variable {
    name: "ANNALS_BUDGET",
    config_key: "budget",
    what: "US dollars that a month may cost: a line in the charts of cost",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static BROWSER: Variable = Variable {
    name: "ANNALS_BROWSER",
    config_key: "browser.program",
    what: "browser for live collection: Chromium or Chrome",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static BROWSER_ARGUMENTS: Variable = Variable {
    name: "ANNALS_BROWSER_ARGUMENTS",
    config_key: "browser.arguments",
    what: "extra arguments for the browser, one per line",
    default: "",
    kind: ValueKind::Lines,
};
pub(super) static BROWSER_HEADLESS: Variable = Variable {
    name: "ANNALS_BROWSER_HEADLESS",
    config_key: "browser.headless",
    what: "show no browser window",
    default: "no",
    kind: ValueKind::Boolean,
};

pub(super) static RETENTION_RULES: Variable = Variable {
    name: "ANNALS_RETENTION_RULES",
    config_key: "retention.rules",
    what: "what `annals retain` forgets, one rule per line",
    default: "",
    kind: ValueKind::Lines,
};
pub(super) static RETENTION_AUTOMATIC: Variable = Variable {
    name: "ANNALS_RETENTION_AUTOMATIC",
    config_key: "retention.automatic",
    what: "apply the retention rules after each `annals sync`",
    default: "no",
    kind: ValueKind::Boolean,
};

pub(super) static SERVER_HOSTS: Variable = Variable {
    name: "ANNALS_SERVER_HOSTS",
    config_key: "server.hosts",
    what: "host names that the server answers to besides the loopback names, one per line",
    default: "",
    kind: ValueKind::Lines,
};

pub(super) static TLS_CERTIFICATE: Variable = Variable {
    name: "ANNALS_TLS_CERT",
    config_key: "server.tls_cert",
    what: "certificate chain of the server, a PEM file",
    default: "",
    kind: ValueKind::Text,
};

pub(super) static TLS_KEY: Variable = Variable {
    name: "ANNALS_TLS_KEY",
    config_key: "server.tls_key",
    what: "private key of that certificate, a PEM file",
    default: "",
    kind: ValueKind::Text,
};

pub(super) static TRUSTED_PROXIES: Variable = Variable {
    name: "ANNALS_TRUST_PROXY",
    config_key: "server.trust_proxy",
    what: "addresses or networks of reverse proxies in front of the server, one per line",
    default: "",
    kind: ValueKind::Lines,
};

pub(super) static USER_HEADER: Variable = Variable {
    name: "ANNALS_USER_HEADER",
    config_key: "server.user_header",
    what: "header in which a trusted proxy names the member who asks",
    default: "",
    kind: ValueKind::Text,
};

pub(super) static PUSH_URL: Variable = Variable {
    name: "ANNALS_PUSH_URL",
    config_key: "push.url",
    what: "hub that `serve`, `watch` and the service send to",
    default: "",
    kind: ValueKind::Text,
};

pub(super) static PUSH_TOKEN_FILE: Variable = Variable {
    name: "ANNALS_PUSH_TOKEN_FILE",
    config_key: "push.token_file",
    what: "file with the token for the hub",
    default: "",
    kind: ValueKind::Text,
};

pub(super) static PUSH_CA: Variable = Variable {
    name: "ANNALS_PUSH_CA",
    config_key: "push.ca",
    what: "certificate authority of the hub, a PEM file",
    default: "",
    kind: ValueKind::Text,
};
pub(super) static PUSH_SOURCES: Variable = Variable {
    name: "ANNALS_PUSH_SOURCES",
    config_key: "push.sources",
    what: "sources that are sent to the hub; all if none is named",
    default: "",
    kind: ValueKind::List,
};
pub(super) static PUSH_EXCLUDED_SOURCES: Variable = Variable {
    name: "ANNALS_PUSH_EXCLUDE_SOURCES",
    config_key: "push.exclude_sources",
    what: "sources that are not sent",
    default: "",
    kind: ValueKind::List,
};
pub(super) static PUSH_PROJECTS: Variable = Variable {
    name: "ANNALS_PUSH_PROJECTS",
    config_key: "push.projects",
    what: "directories whose sessions are sent, one per line; all if none is named",
    default: "",
    kind: ValueKind::Lines,
};
pub(super) static PUSH_EXCLUDED_PROJECTS: Variable = Variable {
    name: "ANNALS_PUSH_EXCLUDE_PROJECTS",
    config_key: "push.exclude_projects",
    what: "directories whose sessions are not sent, one per line",
    default: "",
    kind: ValueKind::Lines,
};
pub(super) static HUB_POLICY: Variable = Variable {
    name: "ANNALS_SERVER_POLICY",
    config_key: "server.policy",
    what: "what members push to this hub: exact copies of files, or copies with secrets masked",
    default: "",
    kind: ValueKind::Text,
};
