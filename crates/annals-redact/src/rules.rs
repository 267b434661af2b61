//! The tables of names and contexts that indicate a secret, and the types of all rules.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use super::commands::{self, CERTAIN, COMMANDS};
use super::vendors::{BEHIND, REQUIRED_WORDS, SHAPES};

/// Kind, prefixes, and a pattern for the rest.
pub(super) type Shape = (&'static str, &'static [&'static str], &'static str);

/// A shape that is recognised by its middle.
pub(super) struct Behind {
    pub(super) kind: &'static str,
    pub(super) anchor: &'static str,
    /// The class of the bytes before the anchor, and how many there are.
    pub(super) class: fn(u8) -> bool,
    pub(super) length: RangeInclusive<usize>,
    pub(super) rest: &'static str,
}

/// One context per line that gives a secret away: kind, prefix, a pattern for the rest with the secret as its group,
/// and which values are secrets there.
#[rustfmt::skip]
const SURROUNDINGS: &[(&str, &str, &str, Accept)] = &[
    ("bearer", "bearer", r"[ \t]+([\w.~+/=-]*[0-9][\w.~+/=-]{8,}|[\w.~+/=-]{8,}[0-9][\w.~+/=-]*)", Accept::Least(16)),
    ("bearer", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}bearer[ \t]+([\w.~+/=-]+)"#, Accept::Least(8)),
    ("basic", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}basic[ \t]+([\w.~+/=-]+)"#, Accept::Least(8)),
    ("token", "authorization",
        r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}(?:token|apikey|api-key|key|bot|oauth|sso-key|genie-?key)[ \t]+([\w.~+/:-]+={0,2})(?:[^\w=]|$)"#, Accept::Least(8)),
    ("aws", "signature=", r"([0-9a-f]{64})\b", Accept::Least(64)),
    ("aws", "akia", r#"[A-Z0-9]{16}[\s,:;"'|\\/]{1,6}([A-Za-z0-9/+]{40})\b"#, Accept::Random),
    ("aws", "asia", r#"[A-Z0-9]{16}[\s,:;"'|\\/]{1,6}([A-Za-z0-9/+]{40})\b"#, Accept::Random),
    ("url-password", "://", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, Accept::Any),
    ("url-password", r":\/\/", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, Accept::Any),
    ("sentry", "://", r#"([0-9a-f]{32})@[\w.-]*sentry"#, Accept::Least(32)),
    // A token in the place of a user name.
    ("url-password", "://", r#"([\w.~%-]{20,255}):?@"#, Accept::Random),
    ("url-password", r":\/\/", r#"([\w.~%-]{20,255}):?@"#, Accept::Random),
    ("url-password", "jdbc:oracle:", r#"\w{1,16}:[^\s/@:"']{1,64}/([^\s/@"']{1,128})@"#, Accept::Any),
    ("slack", "hooks.slack.com", r"\\?/(?:services|workflows|triggers)\\?/([\w\\/]{20,})", Accept::Least(20)),
    ("discord", "/api", r"\\?/(?:v[0-9]{1,2}\\?/)?webhooks\\?/[0-9]{15,20}\\?/([\w-]{60,})", Accept::Least(60)),
    ("teams", ".webhook.office.com", r"\\?/webhookb2\\?/([\w@\\/-]{60,})", Accept::Least(60)),
    ("password", "login", r#"(?:[ \t]|\\[nrt]|[\r\n]){1,4}[^\s\\"']{1,100}(?:[ \t]|\\[nrt]|[\r\n]){1,4}password[ \t]+([^\s\\"'`]+)"#, Accept::Least(6)),
    ("password", "sshpass", r#"[ \t]+-p[ \t]*[\\"']{0,4}([^\s\\"'`]+)"#, Accept::Any),
    ("password", "--proxy-user", r#"[ \t=]+[\\"']{0,4}[^\s:\\"'`$/]{1,100}:([^\s\\"'`]+)"#, Accept::Least(6)),
];

/// Contexts that are too weak alone, and the word that must come before them.
const SURROUNDING_WORDS: &[(&str, &str)] = &[("signature=", "signedheaders")];

/// One word per line that ends names which secrets are assigned to: word, kind, how it is read.
const NAMES: &[(&str, &str, Reading)] = &[
    ("secret_access_key", "aws", Reading::Always),
    ("secret-access-key", "aws", Reading::Always),
    ("secret access key", "aws", Reading::Always),
    ("secretaccesskey", "aws", Reading::Always),
    ("secret_key_base", "secret", Reading::Always),
    ("key_base", "secret", Reading::Always),
    ("secret_key", "secret", Reading::Always),
    ("secret_token", "secret", Reading::Always),
    ("secret_old", "secret", Reading::Always),
    ("secret_new", "secret", Reading::Always),
    ("secret_1", "secret", Reading::Always),
    ("secret_2", "secret", Reading::Always),
    ("password", "password", Reading::Always),
    ("passwort", "password", Reading::Always),
    ("kennwort", "password", Reading::Always),
    ("contraseña", "password", Reading::Always),
    ("CONTRASEÑA", "password", Reading::Always),
    ("contrasena", "password", Reading::Always),
    ("senha", "password", Reading::Always),
    ("mot de passe", "password", Reading::Always),
    ("wachtwoord", "password", Reading::Always),
    ("lösenord", "password", Reading::Always),
    ("hasło", "password", Reading::Always),
    ("пароль", "password", Reading::Always),
    ("Пароль", "password", Reading::Always),
    ("ПАРОЛЬ", "password", Reading::Always),
    ("密码", "password", Reading::Always),
    ("密碼", "password", Reading::Always),
    ("パスワード", "password", Reading::Always),
    ("비밀번호", "password", Reading::Always),
    ("passwd", "password", Reading::Always),
    ("passphrase", "password", Reading::Always),
    ("passcode", "password", Reading::Always),
    ("pass", "password", Reading::Part),
    ("pwd", "password", Reading::Part),
    ("secret", "secret", Reading::Always),
    ("token", "token", Reading::Always),
    ("pat", "token", Reading::Part),
    ("jwt", "token", Reading::Always),
    ("credential", "credential", Reading::Always),
    ("credentials", "credential", Reading::Always),
    ("authorization", "authorization", Reading::Always),
    ("auth", "auth", Reading::Word),
    ("sessid", "cookie", Reading::Always),
    ("jsessionid", "cookie", Reading::Always),
    ("connect.sid", "cookie", Reading::Always),
    ("key", "key", Reading::Key),
    ("sig", "signature", Reading::Query),
    ("signature", "signature", Reading::Query),
    ("code", "code", Reading::Query),
];

/// What the text before `key`, up to its first letter, says about it: a secret as in `api_key`, `X-Api-Key`,
/// `secretAccessKey` and "API key"; no secret as in `publicKey` (and `token` in `nextPageToken`); or little, if `key`
/// is a separate word. Then what makes a word part of a longer name, and what puts it into the query of a URL.
pub(super) const BEFORE_NAMES: [&str; 5] = [
    "(?i)(?:api|access|private|secret|auth|account|admin|app|application|client|deploy|encryption|functions|\
     host|license|licence|master|(?:pre)?shared|root|service|signing|storage|subscription|write)[_ -]?k$",
    "(?i)public[_ -]?k$|(?:next|page|request|idempotency|continuation|start|starting|stop|end|cancel|cancellation|\
     input|output|pad|eos|bos|unk|sep)[_ -]?t$",
    "(?:^|[^A-Za-z])[A-Za-z]$|[a-z][A-Z]$",
    "[A-Za-z0-9][_-][A-Za-z]$|[a-z][A-Z]$|--[a-z]$|(?:;[ ]?|[?&])[A-Za-z]$",
    "(?:[?&]|%26|%3F|u0026|&amp;)(?:[A-Za-z]+-)*[A-Za-z]$",
];

pub(super) const COOKIE_ATTRIBUTES: &[&str] =
    &["path", "domain", "expires", "max-age", "samesite", "priority"];

/// The type in `name: Type = value`.
pub(super) const ANNOTATION: &str = r"(?:&'static )?[\w&'<>\[\].?]{1,24}(?: \| [\w<>\[\].?]{1,24})? ";

/// What is between a name and its value if both are separate fields.
pub(super) const PAIR: &str =
    r#"[\\"']{0,40},?(?:\s|\\+[nrt]){0,40}[\\"']{0,40}(?i:value)[\\"']{0,40}[ \t]{0,4}"#;

/// How far placeholders are searched for, again for linear time.
pub(super) const HEAD: usize = 64;

/// How far before a context to search for its word: commands have long lines.
pub(super) const LINE: usize = 256;

/// Longer than any secret; without a limit, the end of a private key might be found in another message.
pub(super) const LONGEST: usize = 64 * 1024;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Trust {
    Strong,
    /// Only values that look random are secrets.
    Weak,
}

/// Which values are secrets in a context.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Accept {
    /// Any value, words included.
    Any,
    /// Any value that does not describe one.
    Certain,
    /// Not a word, and at least this many bytes.
    Least(usize),
    Random,
}

/// How a name is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    Always,
    /// `key`, which has many meanings.
    Key,
    /// Weak, and only as a separate word.
    Word,
    /// Only as part of a longer name: `DB_PASS`, not `pass` and `PWD`.
    Part,
    /// Only in the query of a URL.
    Query,
}

/// A pattern that is compiled on first use: most runs need few.
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        Pattern { text: format!("^(?:{text})"), compiled: OnceLock::new() }
    }

    /// A pattern that does not compile finds nothing, and fails a test. ASCII classes keep the automata small.
    pub(super) fn get(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| RegexBuilder::new(&self.text).unicode(false).build().ok()).as_ref()
    }
}

pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) anchors: &'static [&'static str],
    pub(super) required_word: Option<&'static str>,
    pub(super) check: Check,
}

pub(super) enum Check {
    Shape(Pattern),
    Behind(&'static Behind, Pattern),
    Surrounding {
        rest: Pattern,
        accept: Accept,
    },
    Name(Reading),
    /// The end of a block whose start is missing.
    BlockEnd(Pattern),
    Cookie,
}

impl Rule {
    pub(super) fn ignores_case(&self) -> bool {
        match self.check {
            Check::Surrounding { .. } | Check::Name(_) | Check::Cookie => true,
            Check::Shape(_) | Check::Behind(..) | Check::BlockEnd(_) => false,
        }
    }
}

/// All rules, the most specific first.
pub(super) fn rules() -> Vec<Rule> {
    let required_word = |table: &[(&str, &'static str)], anchor: &str| {
        table.iter().find(|(name, _)| *name == anchor).map(|(_, word)| *word)
    };
    let one = std::slice::from_ref;
    let surroundings = SURROUNDINGS.iter().map(|(kind, anchor, rest, accept)| Rule {
        kind,
        anchors: one(anchor),
        required_word: required_word(SURROUNDING_WORDS, anchor),
        check: Check::Surrounding { rest: Pattern::new(&format!("(?i){rest}")), accept: *accept },
    });
    let certain = CERTAIN.iter().map(|(kind, anchor, rest, words)| Rule {
        kind,
        anchors: one(anchor),
        required_word: Some(*words).filter(|words| !words.is_empty()),
        check: Check::Surrounding { rest: Pattern::new(&format!("(?i){rest}")), accept: Accept::Certain },
    });
    let commands = COMMANDS.iter().map(|(anchor, option)| Rule {
        kind: "password",
        anchors: one(anchor),
        required_word: None,
        check: Check::Surrounding {
            rest: Pattern::new(&format!("(?i){}", commands::pattern(option))),
            accept: Accept::Certain,
        },
    });
    let shapes = SHAPES.iter().map(|(kind, anchors, rest)| Rule {
        kind,
        anchors,
        required_word: required_word(REQUIRED_WORDS, anchors[0]),
        check: Check::Shape(Pattern::new(rest)),
    });
    let behind = BEHIND.iter().map(|behind| Rule {
        kind: behind.kind,
        anchors: one(&behind.anchor),
        required_word: None,
        check: Check::Behind(behind, Pattern::new(behind.rest)),
    });
    let names = NAMES.iter().map(|(anchor, kind, reading)| Rule {
        kind,
        anchors: one(anchor),
        required_word: None,
        check: Check::Name(*reading),
    });
    let block_end = Rule {
        kind: "private-key",
        anchors: &["-----END "],
        required_word: None,
        check: Check::BlockEnd(Pattern::new("[A-Z0-9 ]{0,24}PRIVATE KEY")),
    };
    let cookie = Rule { kind: "cookie", anchors: &["cookie"], required_word: None, check: Check::Cookie };
    surroundings
        .chain(certain)
        .chain(commands)
        .chain(shapes)
        .chain(behind)
        .chain(names)
        .chain([block_end, cookie])
        .collect()
}
