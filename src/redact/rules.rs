//! The tables of secrets: shapes, telling surroundings and names, and what only looks like one.

use Trust::{Telling, Vague};
use regex::bytes::Regex;

/// A line a shape that secrets have: kind, how it starts, a pattern for the rest.
/// A pattern must give up at the first byte that its classes lack: so many false starts cost linear time.
pub(super) const SHAPES: &[(&str, &str, &str)] = &[
    ("anthropic-key", "sk-ant-", r"[\w-]{20,}"),
    ("openai-key", "sk-", r"(?:proj|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{20}[\w-]*"),
    ("github-token", "ghp_", r"[A-Za-z0-9]{30,}"),
    ("github-token", "gho_", r"[A-Za-z0-9]{30,}"),
    ("github-token", "ghu_", r"[A-Za-z0-9]{30,}"),
    ("github-token", "ghs_", r"[A-Za-z0-9]{30,}"),
    // Since 2026 an installation token may also be a number and a JWT.
    ("github-token", "ghs_", r"[A-Za-z0-9]{1,20}_eyJ[\w-]+\.[\w-]+\.[\w-]+"),
    ("github-token", "ghr_", r"[A-Za-z0-9]{30,}"),
    ("github-token", "github_pat_", r"\w{30,}"),
    ("gitlab-token", "glpat-", r"[\w-]{20,}(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?"),
    ("slack-token", "xox", r"[abeprs]-[A-Za-z0-9-]{10,}"),
    ("slack-token", "xapp-", r"[0-9]-[A-Za-z0-9-]{10,}"),
    ("aws-key-id", "AKIA", r"[A-Z0-9]{16}\b"),
    ("aws-key-id", "ASIA", r"[A-Z0-9]{16}\b"),
    ("google-key", "AIza", r"[\w-]{35,40}"),
    ("stripe-key", "sk_", r"(?:live|test)_[A-Za-z0-9]{16,}"),
    ("stripe-key", "rk_", r"(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    ("pypi-token", "pypi-AgE", r"[\w-]{40,}"),
    ("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}"),
    ("sendgrid-key", "SG.", r"[\w-]{16,}\.[\w-]{32,}"),
    ("twilio-key", "SK", r"[0-9a-f]{32}\b"),
    ("jwt", "eyJ", r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    // A block without spaces or with a line of Base64, and the start of a block whose end was cut off.
    // Line numbers, signs of a diff and escaped newlines may stand between the lines.
    (
        "private-key",
        "-----BEGIN ",
        "[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:-{0,4}[^- \\[])*[A-Za-z0-9]{6}(?:-{0,4}[^- \\[])*\
         |(?:-{0,4}[^-\\[])*[A-Za-z0-9+/=]{24}(?:-{0,4}[^-\\[])*)-----END [A-Z0-9 ]+-{0,5}",
    ),
    (
        "private-key",
        "-----BEGIN ",
        "[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:-?[^-\\[]){0,160}?[A-Za-z0-9+/=]{40,}\
         (?:[^-\\[]{1,16}?[A-Za-z0-9+/=]{16,})*(?:[^-\\[]{1,16}?[A-Za-z0-9+/=]+\\z)?",
    ),
];

/// Shapes that alone say too little, and the word that must stand shortly before them.
pub(super) const BESIDE: &[(&str, &str)] = &[("twilio-key", "twilio")];

/// A line a surrounding that gives a secret away: kind, how it starts, a pattern for the rest with the secret
/// as its group, the fewest bytes of a secret.
pub(super) const SURROUNDINGS: &[(&str, &str, &str, usize)] = &[
    ("bearer", "bearer", r"[ \t]+([\w.~+/=-]*[0-9][\w.~+/=-]{8,}|[\w.~+/=-]{8,}[0-9][\w.~+/=-]*)", 16),
    ("bearer", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}bearer[ \t]+([\w.~+/=-]+)"#, 8),
    ("basic", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}basic[ \t]+([\w.~+/=-]+)"#, 8),
    ("token", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}(?:token|apikey)[ \t]+([\w.~+/=-]+)"#, 8),
    ("url-password", "://", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, 1),
    ("url-password", r":\/\/", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, 1),
];

/// A line a word that names end in when a secret is assigned to them: word, kind, how much the word says.
pub(super) const NAMES: &[(&str, &str, Trust)] = &[
    ("password", "password", Telling),
    ("passwd", "password", Telling),
    ("secret", "secret", Telling),
    ("token", "token", Telling),
    ("credential", "credential", Telling),
    ("credentials", "credential", Telling),
    ("authorization", "authorization", Telling),
    ("key", "key", Vague),
];

/// What `key` says after what stands before it, up to its first letter: a secret as in `api_key`, `X-Api-Key`,
/// `secretAccessKey` and "API key"; nothing as in `publicKey`; or little, when it is a word at all.
pub(super) const KEY_NAMES: [&str; 3] = [
    "(?i)(?:api|access|private|secret|auth|account|admin|client|deploy|encryption|functions|master|service|\
     signing|storage|subscription)[_ -]?k$",
    "(?i)public[_ -]?k$",
    "(?:^|[^A-Za-z])[kK]$|[a-z]K$",
];

pub(super) const COOKIE_ATTRIBUTES: &[&str] =
    &["path", "domain", "expires", "max-age", "samesite", "priority"];

/// Signs at the start of a value that it is none: it is filled in later, is a pattern, leads elsewhere, is
/// code, or was shortened by someone before us.
pub(super) const STAND_INS: &[(&[Place], &str)] = &[
    (ANYWHERE, r"^[<{\[(^]|^--|^/\^|^[*.xX]+$"),
    (ANYWHERE, r"^\$[{(]|^\$[A-Za-z_][\w:.>\[\]-]*$|^%[sd({]|^%\w+%$"),
    (ANYWHERE, r"\$\{|\{\{|\{[A-Za-z_.]*\}|%\(|\*\*\*|\.\.\.|://|\[(?:A-Z|a-z|0-9|\^)|\\[dw]"),
    (UNQUOTED, r"^[#@!]|^(?:[\w.!?-]|::)+[(\[{]"),
];

/// What is no secret although it stands in the place of one: up to which length, where, a pattern for the
/// whole. None may fit `=` or a lone colon: such a value may hold assignments itself, and to read it again
/// for each of them would cost quadratic time.
pub(super) const PLAIN: &[(usize, &[Place], &str)] = &[
    // Words, alone or joined. Base64 of letters alone has capitals where no word has them.
    (19, ANYWHERE, r"(?:(?:[A-Z]*[a-z]{2,})*[A-Z]*|[a-z])(?:[-_./](?:(?:[A-Z]*[a-z]{2,})*[A-Z]*|[a-z]))*"),
    (usize::MAX, ANYWHERE, r"[A-Za-z/_-]+\.[A-Za-z/_.-]+"),
    (usize::MAX, ANYWHERE, r"[A-Za-z/_.-]*(?i:password|passwd|secret|token|credential|key)[A-Za-z/_.-]*"),
    // Variables, fields, constants and types, as they stand in code.
    (usize::MAX, BARE, r"(?:[A-Za-z]{0,19}[0-9]{0,2}(?:[_.$]|::))+[A-Za-z]{0,19}[0-9]{0,2}[+?!]*"),
    (usize::MAX, BARE, r"[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{2,})+|\w*(?:Array|String)"),
    (usize::MAX, ANYWHERE, r"(?:\w|[.!?-]|::)+\([^=:]*\)"),
    // Paths; Base64 that starts with a slash has digits, small and capital letters in one part.
    (usize::MAX, ANYWHERE, r"(?:~|\.{1,2})?(?:/[a-z0-9_.~-]*|/[A-Za-z_.~-]*)+"),
    // Ids of messages and calls: as random as a key, but the way to find a thing again.
    (usize::MAX, ANYWHERE, r"(?:call|msg|toolu)_[\w-]*"),
    (usize::MAX, ANYWHERE, r"0+|-+|_+|#+|\?+"),
    (usize::MAX, ANYWHERE, r"[^0-9=:]*[\x80-\xff][^0-9=:]*"),
];

/// What may stand before a shape.
pub(super) const WORD_STARTS: &str =
    r"(?:^|[^\w-]|^-|\n-|\\[nrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|(?:\x1b|1b)\[[0-9;]*m)$";

/// The type in `name: Type = value`.
pub(super) const ANNOTATION: &str = r"(?:&'static )?[\w&'<>\[\].?]{1,24}(?: \| [\w<>\[\].?]{1,24})? ";

/// How far stand-ins are looked for, again for the sake of linear time.
pub(super) const HEAD: usize = 64;

/// More than any secret takes; without an end, the end of a private key might be found in another message.
pub(super) const LONGEST: usize = 64 * 1024;

pub(super) const ANYWHERE: &[Place] = &[Place::Quoted, Place::Environment, Place::Bare];
pub(super) const UNQUOTED: &[Place] = &[Place::Environment, Place::Bare];
pub(super) const BARE: &[Place] = &[Place::Bare];

/// Where a value stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Quoted,
    /// `NAME=value` in capitals: here a word is no variable.
    Environment,
    Bare,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Trust {
    Telling,
    Vague,
}

pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) anchor: &'static str,
    pub(super) check: Check,
}

pub(super) enum Check {
    Shape { rest: Option<Regex>, beside: Option<&'static str> },
    Surrounding { rest: Option<Regex>, least: usize },
    Name(Trust),
    Cookie,
}
