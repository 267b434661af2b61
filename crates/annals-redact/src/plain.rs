//! What only looks like a secret: placeholders, words, code, paths and ids.

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::rules::BEFORE_NAMES;

/// Where a value appears.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Quoted,
    /// `NAME=value` in capitals: here a word is not a variable.
    Environment,
    Bare,
}

const ANYWHERE: &[Place] = &[Place::Quoted, Place::Environment, Place::Bare];
const UNQUOTED: &[Place] = &[Place::Environment, Place::Bare];
const BARE: &[Place] = &[Place::Bare];

/// Prefixes that mean a value is not a secret: it is filled in later, is a pattern, a reference or code, or was
/// already redacted by someone else.
const PLACEHOLDERS: &[(&[Place], &str)] = &[
    (ANYWHERE, r"^[<{\[(^]|^--|^/\^|^[*.xX]+$"),
    (ANYWHERE, r"^\$[{(]|^\$[A-Za-z_][\w:.>\[\]-]*$|^%[sd({]|^%\w+%$"),
    (
        ANYWHERE,
        r"\$\{|\{\{|\{[A-Za-z_.]*\}|%\(|\*\*\*|\.\.\.|^[a-z][a-z+.-]{1,15}://|\[(?:A-Z|a-z|0-9|\^)|\\[dw]|\*/|/\*",
    ),
    (
        ANYWHERE,
        r"(?i)^your[_-]|^change_?-?me$|xxxxx|your[ _-](?:password|secret|unique)|placeholder|^aws4-hmac|^(?:gs|s3|arn|urn|data|file|sha[0-9]{3}):",
    ),
    (ANYWHERE, r"(?i)^(?:pass(?:word|wd)?|pwd?|secret|token)$|abcdefghijklmnopqrstuvwxyz"),
    (ANYWHERE, r"%[sd]$"),
    (UNQUOTED, r"^[A-Z]\w*=(?:None|null|undefined)"),
    (UNQUOTED, r"^[#@!:]|^(?:[\w.!?-]|::)+[(\[{]"),
];

/// Values that are not secrets although they appear in the place of one: longest length, where, and a pattern for the
/// complete value. No pattern may match `=` or a lone colon: such a value may contain assignments itself, and reading
/// it again for each of them would take quadratic time.
const PLAIN: &[(usize, &[Place], &str)] = &[
    // Words, alone or joined. Base64 of letters alone has capitals where no word has them.
    (19, ANYWHERE, r"[a-z]?(?:[A-Z]*[a-z]{2,})*[A-Z]*(?:[-_./][a-z]?(?:[A-Z]*[a-z]{2,})*[A-Z]*)*"),
    (usize::MAX, ANYWHERE, r"[A-Za-z/_-]+\.[A-Za-z/_.-]+"),
    (usize::MAX, ANYWHERE, r"[A-Za-z/_.-]*(?i:password|passwd|secret|token|credential|key)[A-Za-z/_.-]*"),
    // Variables, fields, constants and types, as they appear in code.
    (usize::MAX, BARE, r"(?:[A-Za-z]{0,19}[0-9]{0,2}(?:[_.$]|::))+[A-Za-z]{0,19}[0-9]{0,2}[+?!]*"),
    (usize::MAX, BARE, r"(?:\w+::)+\w+|(?:[a-z_][a-z0-9_]*\.)+[A-Z]\w*|(?:\w+\.)+\w+[(\[{][^=:]*"),
    (usize::MAX, BARE, r"[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{2,})+|\w*(?:Array|String)"),
    (usize::MAX, ANYWHERE, r"(?:\w|[.!?-]|::)+\([^=:]*\)"),
    // Paths; Base64 that starts with a slash mixes digits, lower-case and capital letters in one component.
    (usize::MAX, ANYWHERE, r"(?:~|\.{1,2})?(?:/[a-z0-9_.~-]*|/[A-Za-z_.~-]*)+"),
    (usize::MAX, ANYWHERE, r"(?:(?:[a-z0-9_.-]+|[a-z]{2,}(?:[A-Z][a-z]+)*)/){2,}[a-z0-9_.-]+"),
    (usize::MAX, ANYWHERE, r"[A-Z0-9_-]*(?:PASSWORD|SECRET|TOKEN|CREDENTIAL|KEY)[A-Z0-9_-]*"),
    // Public keys, by their common prefixes.
    (usize::MAX, ANYWHERE, r"(?:MFkwEwYH|MIIBIjAN|MCowBQYD)[^=:]*={0,2}|ssh-[a-z0-9-]+"),
    // Ids of messages and calls: as random as a key, but needed to find things again.
    (usize::MAX, ANYWHERE, r"(?:call|msg|toolu|resp|req|chatcmpl|fc|rs|run|evt|user|org)[_-][\w-]*"),
    (usize::MAX, ANYWHERE, r"0+|-+|_+|#+|\?+"),
    (usize::MAX, ANYWHERE, r"[^0-9=:]*[\x80-\xff][^0-9=:]*"),
];

/// What a value refers to instead of being it: paths, calls, constants, public keys, and labels in other scripts.
const REFERENCES: &[&str] = &[
    r"(?:~|\.{1,2})?(?:/[a-z0-9_.~-]*|/[A-Za-z_.~-]*)+",
    r"(?:\w|[.!?-]|::)+\([^=:]*\)",
    r"(?:[A-Z0-9]*_)*(?:PASSWORD|SECRET|TOKEN|CREDENTIAL|KEY)(?:_[A-Z0-9_]*)?",
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+",
    r"\w+::\w+|\w+->\w+",
    r"[^0-9=:]*[\x80-\xff][^0-9=:]*",
    r"[^A-Za-z0-9]*",
];

/// Names of types and fields, and joined words: not tokens, but people do use such passwords.
const NAME: &str = "(?:[A-Z]?[a-z]{2,}[0-9]?|[A-Z][0-9]|[A-Z]{2,4})(?:[A-Z][a-z]{2,}[0-9]?)+\
    |(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})(?:[-_./](?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15}|v[0-9]{1,2}|[0-9]))+|\\w+\\[-?[0-9]*\\][\\w.]*";

/// Checks that rule out secrets, compiled on first use.
pub(super) struct Doubts {
    placeholders: RegexSet,
    plain: RegexSet,
    name: RegexSet,
    before_names: RegexSet,
    references: RegexSet,
}

impl Doubts {
    pub(super) fn new() -> Doubts {
        let placeholders = set(PLACEHOLDERS.iter().map(|(_, pattern)| pattern.to_string()));
        let plain = set(PLAIN.iter().map(|(_, _, pattern)| format!("^(?:{pattern})$")));
        let name = set([format!("^(?:{NAME})$")].into_iter());
        let before_names = set(BEFORE_NAMES.iter().map(|pattern| pattern.to_string()));
        let references = set(REFERENCES.iter().map(|pattern| format!("^(?:{pattern})$")));
        Doubts { placeholders, plain, name, before_names, references }
    }

    /// Whether all patterns compiled.
    #[cfg(test)]
    pub(super) fn all_compiled(&self) -> bool {
        let lengths = (self.placeholders.len(), self.plain.len(), self.before_names.len());
        lengths == (PLACEHOLDERS.len(), PLAIN.len(), BEFORE_NAMES.len())
            && self.name.len() == 1
            && self.references.len() == REFERENCES.len()
    }

    pub(super) fn is_placeholder(&self, head: &[u8], place: Place) -> bool {
        self.placeholders.matches(head).iter().any(|index| PLACEHOLDERS[index].0.contains(&place))
    }

    pub(super) fn is_plain(&self, value: &[u8], place: Place) -> bool {
        self.plain.matches(value).iter().any(|index| {
            let (longest, places, _) = PLAIN[index];
            value.len() <= longest && places.contains(&place)
        })
    }

    pub(super) fn is_reference(&self, value: &[u8]) -> bool {
        self.references.is_match(value)
    }

    /// `client_secret` and its like, which are never the name of a secret.
    pub(super) fn is_owned_secret(&self, name: &[u8]) -> bool {
        let name = name.to_ascii_lowercase();
        let owners =
            ["client", "app", "jwt", "session", "api", "webhook", "consumer", "shared", "signing", "cookie"];
        let word = name
            .strip_suffix(b"secret")
            .map(|owner| owner.strip_suffix(b"_").or_else(|| owner.strip_suffix(b"-")).unwrap_or(owner));
        word.is_some_and(|word| owners.iter().any(|owner| word.ends_with(owner.as_bytes())))
    }

    pub(super) fn is_name(&self, value: &[u8]) -> bool {
        self.name.is_match(value)
    }

    /// Which of `BEFORE_NAMES` match the text up to the first letter of a name.
    pub(super) fn before_name(&self, before: &[u8]) -> [bool; BEFORE_NAMES.len()] {
        let matches = self.before_names.matches(before);
        std::array::from_fn(|index| matches.matched(index))
    }
}

fn set(patterns: impl Iterator<Item = String>) -> RegexSet {
    RegexSetBuilder::new(patterns).unicode(false).dot_matches_new_line(true).build().unwrap_or_default()
}

/// A number, a time or a short hexadecimal constant.
pub(super) fn is_number(value: &[u8]) -> bool {
    let short_hex = value.len() <= 18 && value.starts_with(b"0x");
    short_hex || value.iter().all(|byte| byte.is_ascii_digit() || b"-+:.,_TZ%".contains(byte))
}

/// Digits, lower-case and capital letters in a disorder that no name has: `Sha256WithEncryption` is a name.
pub(super) fn is_random(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    mixed && has_disorder(value)
}

/// Whether the class of characters changes more often than in any name.
pub(super) fn has_disorder(value: &[u8]) -> bool {
    let changes = value.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    changes * 3 >= value.len()
}

/// Whether a value in a URL is text, as on pages that run examples.
pub(super) fn is_text(value: &[u8]) -> bool {
    let escapes = [&b"%0A"[..], b"%20", b"%23", b"%7B", b"(", b"+"];
    escapes.into_iter().any(|escape| value.windows(escape.len()).any(|part| part == escape))
}

/// Whether part of a value is random, and long enough for that to mean something.
pub(super) fn has_random_part(value: &[u8]) -> bool {
    value.split(|byte| b"-_.".contains(byte)).any(|part| part.len() >= 16 && is_random(part))
}

/// A value of the right shape is still not a secret if it repeats itself, consists of words, or says so. Long values
/// are not checked: they would be read again from every anchor in them.
pub(super) fn is_made_up(value: &[u8]) -> bool {
    if value.len() > LONGEST_CHECKED {
        return false;
    }
    let mut seen = [false; 256];
    value.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let varied = seen.iter().filter(|seen| **seen).count() >= 8;
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic());
    let capitals = letters.clone().filter(|byte| byte.is_ascii_uppercase()).count();
    let worded = capitals * 6 < letters.count() && !value.iter().any(u8::is_ascii_digit);
    let lower = value.to_ascii_lowercase();
    let contains = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
    let zeros = value.windows(5).any(|part| part == b"AAAAA");
    !varied
        || worded
        || zeros
        || [&b"xxxxx"[..], b"example", b"your-", b"your_", b"placeholder"].into_iter().any(contains)
}

const LONGEST_CHECKED: usize = 128;

fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    }
}
