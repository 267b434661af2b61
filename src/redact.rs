//! Finds secrets in text and masks them, so that nothing the archive shows carries a key that opens a door.

use std::borrow::Cow;
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use Trust::{Telling, Vague};

/// Masks a secret as `[secret:<kind>:<4 hex>]`. The hex is keyed: within one archive it says which secrets
/// are the same, and elsewhere it says nothing.
pub struct Redactor {
    key: [u8; 32],
    rules: Vec<Rule>,
    prefilter: Prefilter,
    annotation: Option<Regex>,
    key_names: RegexSet,
    word_starts: RegexSet,
    stand_ins: RegexSet,
    plain: RegexSet,
}

impl Redactor {
    pub fn new(key: [u8; 32]) -> Redactor {
        let rules = rules();
        let prefilter = Prefilter::new(&rules);
        let annotation = pattern(ANNOTATION);
        let key_names = set(KEY_NAMES.iter().map(|pattern| pattern.to_string()));
        let word_starts = set([WORD_STARTS.to_string()].into_iter());
        let stand_ins = set(STAND_INS.iter().map(|(_, pattern)| pattern.to_string()));
        let plain = set(PLAIN.iter().map(|(_, _, pattern)| format!("^(?:{pattern})$")));
        Redactor { key, rules, prefilter, annotation, key_names, word_starts, stand_ins, plain }
    }

    /// Borrowed when nothing was found. Masking masked text changes nothing.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = String::new();
        let mut changed = false;
        let mut rest = text;
        let mut from = 0;
        let mut found = Vec::new();
        while let Some((at, bits)) = self.prefilter.next(rest.as_bytes(), from) {
            from = at + 1;
            let Some(resume) = self.inspect(rest.as_bytes(), at, bits, &mut found) else { continue };
            let mut copied = 0;
            for Secret { kind, range } in found.drain(..) {
                masked.push_str(&rest[copied..range.start]);
                masked.push_str(&self.mark(kind, &rest[range.clone()]));
                copied = range.end;
                changed = true;
            }
            masked.push_str(&rest[copied..resume]);
            // Nothing looks back over a mark: so masked text reads the same as it did before.
            rest = &rest[resume..];
            from = 0;
        }
        if !changed {
            return Cow::Borrowed(text);
        }
        masked.push_str(rest);
        Cow::Owned(masked)
    }
}

/// A line a shape that secrets have: kind, how it starts, a pattern for the rest.
/// A pattern must give up at the first byte that its classes lack: so many false starts cost linear time.
const SHAPES: &[(&str, &str, &str)] = &[
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
const BESIDE: &[(&str, &str)] = &[("twilio-key", "twilio")];

/// A line a surrounding that gives a secret away: kind, how it starts, a pattern for the rest with the secret
/// as its group, the fewest bytes of a secret.
const SURROUNDINGS: &[(&str, &str, &str, usize)] = &[
    ("bearer", "bearer", r"[ \t]+([\w.~+/=-]*[0-9][\w.~+/=-]{8,}|[\w.~+/=-]{8,}[0-9][\w.~+/=-]*)", 16),
    ("bearer", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}bearer[ \t]+([\w.~+/=-]+)"#, 8),
    ("basic", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}basic[ \t]+([\w.~+/=-]+)"#, 8),
    ("token", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}(?:token|apikey)[ \t]+([\w.~+/=-]+)"#, 8),
    ("url-password", "://", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, 1),
    ("url-password", r":\/\/", r#"[^\s/:@?#"'`<>\\\[]*:([^\s/?#"'`<>\\]+)@"#, 1),
];

/// A line a word that names end in when a secret is assigned to them: word, kind, how much the word says.
const NAMES: &[(&str, &str, Trust)] = &[
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
const KEY_NAMES: [&str; 3] = [
    "(?i)(?:api|access|private|secret|auth|account|admin|client|deploy|encryption|functions|master|service|\
     signing|storage|subscription)[_ -]?k$",
    "(?i)public[_ -]?k$",
    "(?:^|[^A-Za-z])[kK]$|[a-z]K$",
];

const COOKIE_ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite", "priority"];

/// Signs at the start of a value that it is none: it is filled in later, is a pattern, leads elsewhere, is
/// code, or was shortened by someone before us.
const STAND_INS: &[(&[Place], &str)] = &[
    (ANYWHERE, r"^[<{\[(^]|^--|^/\^|^[*.xX]+$"),
    (ANYWHERE, r"^\$[{(]|^\$[A-Za-z_][\w:.>\[\]-]*$|^%[sd({]|^%\w+%$"),
    (ANYWHERE, r"\$\{|\{\{|\{[A-Za-z_.]*\}|%\(|\*\*\*|\.\.\.|://|\[(?:A-Z|a-z|0-9|\^)|\\[dw]"),
    (UNQUOTED, r"^[#@!]|^(?:[\w.!?-]|::)+[(\[{]"),
];

/// What is no secret although it stands in the place of one: up to which length, where, a pattern for the
/// whole. None may fit `=` or a lone colon: such a value may hold assignments itself, and to read it again
/// for each of them would cost quadratic time.
const PLAIN: &[(usize, &[Place], &str)] = &[
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
const WORD_STARTS: &str =
    r"(?:^|[^\w-]|^-|\n-|\\[nrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|(?:\x1b|1b)\[[0-9;]*m)$";

/// The type in `name: Type = value`.
const ANNOTATION: &str = r"(?:&'static )?[\w&'<>\[\].?]{1,24}(?: \| [\w<>\[\].?]{1,24})? ";

/// How far stand-ins are looked for, again for the sake of linear time.
const HEAD: usize = 64;

/// More than any secret takes; without an end, the end of a private key might be found in another message.
const LONGEST: usize = 64 * 1024;

const ANYWHERE: &[Place] = &[Place::Quoted, Place::Environment, Place::Bare];
const UNQUOTED: &[Place] = &[Place::Environment, Place::Bare];
const BARE: &[Place] = &[Place::Bare];

/// Where a value stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Quoted,
    /// `NAME=value` in capitals: here a word is no variable.
    Environment,
    Bare,
}

#[derive(Clone, Copy, PartialEq)]
enum Trust {
    Telling,
    Vague,
}

struct Rule {
    kind: &'static str,
    anchor: &'static str,
    check: Check,
}

enum Check {
    Shape { rest: Option<Regex>, beside: Option<&'static str> },
    Surrounding { rest: Option<Regex>, least: usize },
    Name(Trust),
    Cookie,
}

struct Secret {
    kind: &'static str,
    range: Range<usize>,
}

fn rules() -> Vec<Rule> {
    let shapes = SHAPES.iter().map(|&(kind, anchor, rest)| {
        let beside = BESIDE.iter().find(|(shape, _)| *shape == kind).map(|(_, word)| *word);
        Rule { kind, anchor, check: Check::Shape { rest: pattern(rest), beside } }
    });
    let surroundings = SURROUNDINGS.iter().map(|&(kind, anchor, rest, least)| Rule {
        kind,
        anchor,
        check: Check::Surrounding { rest: pattern(&format!("(?i){rest}")), least },
    });
    let names = NAMES.iter().map(|&(anchor, kind, trust)| Rule { kind, anchor, check: Check::Name(trust) });
    let cookie = Rule { kind: "cookie", anchor: "cookie", check: Check::Cookie };
    shapes.chain(surroundings).chain(names).chain([cookie]).collect()
}

/// A pattern that does not compile finds nothing, and fails a test. ASCII classes keep the automata small.
fn pattern(rest: &str) -> Option<Regex> {
    RegexBuilder::new(&format!("^(?:{rest})")).unicode(false).build().ok()
}

fn set(patterns: impl Iterator<Item = String>) -> RegexSet {
    RegexSetBuilder::new(patterns).unicode(false).dot_matches_new_line(true).build().unwrap_or_default()
}

impl Rule {
    fn ignores_case(&self) -> bool {
        match self.check {
            Check::Surrounding { .. } | Check::Name(_) | Check::Cookie => true,
            Check::Shape { .. } => false,
        }
    }

    /// Where the anchor ends, when it stands here.
    fn anchor_end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let end = at + self.anchor.len();
        let here = bytes.get(at..end)?;
        let wanted = self.anchor.as_bytes();
        (here == wanted || self.ignores_case() && here.eq_ignore_ascii_case(wanted)).then_some(end)
    }

    fn shape(&self, bytes: &[u8], at: usize) -> Option<Secret> {
        let Check::Shape { rest, beside } = &self.check else { return None };
        let start = self.anchor_end(bytes, at)?;
        let found = rest.as_ref()?.find(until(bytes, start, LONGEST).get(start..)?)?;
        let before = &bytes[at.saturating_sub(HEAD)..at];
        let stands = |word: &[u8]| before.windows(word.len()).any(|near| near.eq_ignore_ascii_case(word));
        beside
            .is_none_or(|word| stands(word.as_bytes()))
            .then_some(Secret { kind: self.kind, range: at..start + found.end() })
    }
}

/// One pass for all rules: a bit a rule, and for each of three bytes a table of the rules that it fits.
struct Prefilter {
    first: [u64; 256],
    second: [u64; 256],
    third: [u64; 256],
}

impl Prefilter {
    fn new(rules: &[Rule]) -> Prefilter {
        let table = |offset: usize| {
            let mut table = [0; 256];
            for (byte, bits) in (0..=u8::MAX).zip(&mut table) {
                for (index, rule) in rules.iter().enumerate() {
                    let fits = rule.anchor.as_bytes().get(offset).is_none_or(|wanted| {
                        *wanted == byte || rule.ignores_case() && wanted.eq_ignore_ascii_case(&byte)
                    });
                    *bits |= u64::from(fits) << (index % 64);
                }
            }
            table
        };
        Prefilter { first: table(0), second: table(1), third: table(2) }
    }

    fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, u64)> {
        let windows = bytes.get(from..)?.windows(3);
        windows.zip(from..).map(|(window, at)| (at, self.bits(window))).find(|(_, bits)| *bits != 0)
    }

    fn bits(&self, window: &[u8]) -> u64 {
        let [first, second, third, ..] = *window else { return 0 };
        self.first[usize::from(first)] & self.second[usize::from(second)] & self.third[usize::from(third)]
    }
}

/// The rules that bits of the prefilter stand for; beyond 64 rules a bit stands for several.
fn chosen(rules: &[Rule], mut bits: u64) -> impl Iterator<Item = &Rule> {
    let indexes = std::iter::from_fn(move || {
        let index = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (index < 64).then_some(index)
    });
    indexes.flat_map(|index| rules.iter().skip(index as usize).step_by(64))
}

impl Redactor {
    fn mark(&self, kind: &str, secret: &str) -> String {
        let hash = blake3::keyed_hash(&self.key, secret.as_bytes());
        let [first, second, ..] = hash.as_bytes();
        format!("[secret:{kind}:{first:02x}{second:02x}]")
    }

    /// Puts the secrets at an anchor into `found` and says where to go on, or nothing when there are none.
    fn inspect(&self, bytes: &[u8], at: usize, bits: u64, found: &mut Vec<Secret>) -> Option<usize> {
        chosen(&self.rules, bits).find_map(|rule| {
            let end = rule.anchor_end(bytes, at)?;
            let secret = match &rule.check {
                // The order matters: a shape may read far, and amid a word it would do so again and again.
                Check::Shape { .. } if !self.starts_word(bytes, at) => None,
                Check::Shape { .. } => rule.shape(bytes, at),
                Check::Surrounding { rest, least } => {
                    let after = until(bytes, end, LONGEST).get(end..)?;
                    let rest = rest.as_ref().filter(|rest| rest.is_match(after))?;
                    let group = rest.captures(after)?.get(1)?;
                    let range = end + group.start()..end + group.end();
                    let secret = self.surrounded(bytes, range.clone(), (rule.kind, *least))?;
                    found.extend(self.shapes(&bytes[..range.start], end));
                    Some(secret)
                }
                Check::Name(trust) => match at.checked_sub(1).and_then(|open| mark_end(bytes, open)) {
                    Some(end) => return Some(end),
                    None => self.named(bytes, at..end, rule.kind, *trust),
                },
                Check::Cookie => return self.cookies(bytes, end, found),
            }?;
            let end = secret.range.end;
            found.push(secret);
            Some(end)
        })
    }

    fn shaped(&self, bytes: &[u8], start: usize) -> Option<Secret> {
        let bits = self.prefilter.bits(bytes.get(start..)?);
        chosen(&self.rules, bits).find_map(|rule| rule.shape(bytes, start))
    }

    /// The shapes in what surrounds a secret, such as a token that stands as the user of an address.
    fn shapes(&self, bytes: &[u8], mut from: usize) -> Vec<Secret> {
        let mut shapes = Vec::new();
        while let Some((at, _)) = self.prefilter.next(bytes, from) {
            let shape = self.shaped(bytes, at).filter(|_| self.starts_word(bytes, at));
            from = shape.as_ref().map_or(at + 1, |shape| shape.range.end);
            shapes.extend(shape);
        }
        shapes
    }

    fn surrounded(&self, bytes: &[u8], range: Range<usize>, wanted: (&'static str, usize)) -> Option<Secret> {
        let (kind, least) = wanted;
        if range.clone().chain([range.end]).any(|at| mark_end(bytes, at).is_some()) {
            return None;
        }
        let range = range.start..trimmed(bytes, range);
        let value = &bytes[range.clone()];
        let plain =
            self.is_stand_in(value, Place::Quoted) || least > 1 && self.is_plain(value, Place::Quoted);
        let shape = self.shaped(bytes, range.start);
        longest((value.len() >= least && !plain).then_some(Secret { kind, range }), shape)
    }

    fn named(&self, bytes: &[u8], word: Range<usize>, kind: &'static str, trust: Trust) -> Option<Secret> {
        if bytes.get(word.end).is_some_and(|next| is_name_byte(*next)) {
            return None;
        }
        let slot = Slot::after_name(bytes, word.clone())?;
        let trust = match trust {
            Telling => Telling,
            Vague => self.key_trust(bytes, word.start)?,
        };
        let valued = |slot: &Slot| {
            let range = self.value_end(bytes, slot, trust).map(|end| slot.start..end);
            let range = range.filter(|range| kind == "password" || !is_number(&bytes[range.clone()]));
            longest(range.map(|range| Secret { kind, range }), self.shaped(bytes, slot.start))
        };
        valued(&slot).or_else(|| {
            let annotation = self.annotation.as_ref()?.find(bytes.get(slot.start..)?)?;
            valued(&Slot::after_separator(bytes, slot.start + annotation.end())?)
        })
    }

    fn value_end(&self, bytes: &[u8], slot: &Slot, trust: Trust) -> Option<usize> {
        let head = slot.value_end(bytes, until(bytes, slot.start, HEAD).len(), trust)?;
        // What stands so near before a mark was seen together with the secret, and left alone.
        if self.is_stand_in(&bytes[slot.start..head], slot.place) || mark_end(bytes, head).is_some() {
            return None;
        }
        let end = slot.value_end(bytes, bytes.len(), trust)?;
        let end = if slot.place == Place::Quoted { end } else { trimmed(bytes, slot.start..end) };
        let value = &bytes[slot.start..end];
        let mut parts = value.split(|byte| b"-_.".contains(byte));
        let fits = trust == Telling || parts.any(|part| part.len() >= 16 && is_mixed(part));
        (fits && value.len() >= 8 && !self.is_plain(value, slot.place)).then_some(end)
    }

    fn key_trust(&self, bytes: &[u8], at: usize) -> Option<Trust> {
        let said = self.key_names.matches(&bytes[at.saturating_sub(24)..=at]);
        let trust = if said.matched(0) { Telling } else { Vague };
        (!said.matched(1) && said.matched_any()).then_some(trust)
    }

    /// Not amid a word, but after an escape, a colour code or the sign of a diff.
    fn starts_word(&self, bytes: &[u8], at: usize) -> bool {
        self.word_starts.is_match(&bytes[at.saturating_sub(12)..at])
    }

    fn is_stand_in(&self, head: &[u8], place: Place) -> bool {
        self.stand_ins.matches(head).iter().any(|index| STAND_INS[index].0.contains(&place))
    }

    fn is_plain(&self, value: &[u8], place: Place) -> bool {
        self.plain.matches(value).iter().any(|index| {
            let (longest, places, _) = PLAIN[index];
            value.len() <= longest && places.contains(&place)
        })
    }

    /// Every pair of the header under a mark of its own; the attributes of `Set-Cookie` stay readable.
    fn cookies(&self, bytes: &[u8], end: usize, found: &mut Vec<Secret>) -> Option<usize> {
        let mut position = Slot::after_name(bytes, end..end)?.start;
        let mut resume = None;
        loop {
            let name = run(bytes, position, is_blank);
            let equals = run(bytes, name, |byte| is_name_byte(byte) || byte == b'.');
            let start = equals + 1;
            if equals == name || bytes.get(equals) != Some(&b'=') {
                return resume;
            }
            let masked = mark_end(bytes, start);
            let head = run(until(bytes, start, HEAD), start, is_value_byte);
            if masked.is_none() && self.is_stand_in(&bytes[start..head], Place::Quoted) {
                return resume;
            }
            let end = masked.unwrap_or_else(|| run(bytes, start, is_value_byte));
            let is_name = |word: &&str| word.as_bytes().eq_ignore_ascii_case(&bytes[name..equals]);
            if masked.is_none() && !COOKIE_ATTRIBUTES.iter().any(is_name) {
                found.extend(self.surrounded(bytes, start..end, ("cookie", 8)));
            }
            position = run(bytes, end, |byte| byte >= b' ' && !b";\"'`\\".contains(&byte));
            resume = Some(position);
            position += usize::from(bytes.get(position) == Some(&b';'));
            if resume == Some(position) {
                return resume;
            }
        }
    }
}

/// The place of a value behind a name and `=` or `:`, whatever quotes and escapes are around.
struct Slot {
    start: usize,
    place: Place,
    quote: u8,
    escapes: usize,
}

impl Slot {
    fn after_name(bytes: &[u8], word: Range<usize>) -> Option<Slot> {
        let closed = run(until(bytes, word.end, 6), word.end, |byte| b"\\\"'`*]".contains(&byte));
        let separator = run(bytes, closed, is_blank);
        let slot = Slot::after_separator(bytes, separator)?;
        let shouted = bytes[word.clone()].iter().all(u8::is_ascii_uppercase);
        let tight = bytes[separator] == b'=' && word.end == separator && slot.start == separator + 1;
        let place =
            if shouted && tight && slot.place == Place::Bare { Place::Environment } else { slot.place };
        Some(Slot { place, ..slot })
    }

    fn after_separator(bytes: &[u8], separator: usize) -> Option<Slot> {
        let is_path = bytes.get(separator + 1) == Some(&b':');
        if !matches!(bytes.get(separator), Some(b'=' | b':')) || is_path {
            return None;
        }
        let few = |from: usize, set: &[u8]| run(until(bytes, from, 2), from, |byte| set.contains(&byte));
        let open = few(run(bytes, few(few(separator + 1, b"=>"), b"*"), is_blank), b"*");
        let is_quote = |at: usize| bytes.get(at).is_some_and(|byte| b"\"'`".contains(byte));
        let prefixed = bytes.get(open).is_some_and(|byte| b"bfruBFRU$@".contains(byte)) && is_quote(open + 1);
        let open = open + usize::from(prefixed);
        let mark = run(bytes, open, |byte| byte == b'\\');
        if !is_quote(mark) {
            return Some(Slot { start: open, place: Place::Bare, quote: 0, escapes: 0 });
        }
        Some(Slot { start: mark + 1, place: Place::Quoted, quote: bytes[mark], escapes: mark - open })
    }

    /// Where the value ends, at the limit at the latest; nothing when it is prose.
    fn value_end(&self, bytes: &[u8], limit: usize, trust: Trust) -> Option<usize> {
        let is_vague = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-.".contains(&byte);
        let fits =
            |byte: u8| trust == Telling || is_vague(byte) || byte == b'=' && self.place == Place::Quoted;
        let mut escapes = 0;
        for at in self.start..limit {
            let byte = bytes[at];
            let masked = byte == b'[' && mark_end(bytes, at).is_some();
            let closed = match self.place {
                Place::Quoted => {
                    byte == self.quote && escapes <= self.escapes || matches!(byte, b'\n' | b'\r')
                }
                Place::Environment | Place::Bare => masked || !is_value_byte(byte) || !fits(byte),
            };
            if closed {
                return Some(at - escapes);
            }
            let escaped = escapes > 0 && !fits(b'\\');
            escapes = if byte == b'\\' { escapes + 1 } else { 0 };
            if masked || byte <= b' ' || escapes == 0 && (escaped || !fits(byte)) {
                return None;
            }
        }
        Some(limit)
    }
}

/// A shape names a secret before its surroundings do: so it has one kind wherever it stands.
fn longest(surrounded: Option<Secret>, shaped: Option<Secret>) -> Option<Secret> {
    [surrounded, shaped].into_iter().flatten().max_by_key(|secret| secret.range.end)
}

/// Where a mark ends that starts here.
fn mark_end(bytes: &[u8], at: usize) -> Option<usize> {
    let kind = bytes.get(at..)?.strip_prefix(b"[secret:")?;
    let colon = kind.iter().take(33).position(|byte| *byte == b':')?;
    let is_kind = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let [b':', hash @ .., b']'] = kind.get(colon..colon + 6)? else { return None };
    let fits = kind[..colon].iter().all(is_kind) && hash.iter().all(u8::is_ascii_hexdigit);
    fits.then_some(at + b"[secret:".len() + colon + 6)
}

/// All bytes up to `length` after `start`.
fn until(bytes: &[u8], start: usize, length: usize) -> &[u8] {
    &bytes[..bytes.len().min(start + length)]
}

/// Where the bytes end that fit.
fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
}

/// The end without the marks of a sentence or of emphasis.
fn trimmed(bytes: &[u8], range: Range<usize>) -> usize {
    let last = bytes[range.clone()].iter().rposition(|byte| !b".:*".contains(byte));
    range.start + last.map_or(0, |last| last + 1)
}

fn is_number(value: &[u8]) -> bool {
    let short_hex = value.len() <= 18 && value.starts_with(b"0x");
    short_hex || value.iter().all(|byte| byte.is_ascii_digit() || b"-+:.,_TZ%".contains(byte))
}

fn is_mixed(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// What a value without quotes is made of.
fn is_value_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`,;&)]}<>|\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([7; 32]));

    /// Keys are put together only when a test runs, so that no scanner takes this file for a leak.
    const MADE_UP: &str = "Fake0Key1Made2Up3For4Tests5Only6Not7Live8Not9Real0At1All2Truly3Made4Up5By6Hand7";

    /// Kind, start, length of what follows.
    const KEYS: &str = "anthropic-key sk-ant-api03- 40 | openai-key sk-proj- 48 | \
        openai-key sk-svcacct- 48 | openai-key sk-admin- 48 | openai-key sk- 48 | github-token ghp_ 36 | \
        github-token gho_ 36 | github-token ghu_ 36 | github-token ghs_ 36 | github-token ghr_ 36 | \
        github-token github_pat_ 70 | gitlab-token glpat- 20 | slack-token xoxb-000000000000- 24 | \
        slack-token xoxp-000000000000- 24 | slack-token xapp-1-A0- 30 | google-key AIza 35 | \
        stripe-key sk_live_ 24 | stripe-key sk_test_ 24 | stripe-key rk_live_ 24 | npm-token npm_ 36 | \
        pypi-token pypi-AgEIcHlwaS5vcmc 60 | huggingface-token hf_ 34";

    /// Where keys stand, in place of `§`.
    const PLACES: &str = r#"§ | see §. | (§) | "§" | a\n§\nb | x=%22§%22 | -§ | \u0022§ | ü§ü
        Bearer § | API_KEY=§ | export TOKEN="§" | {\"token\": \"§\"} | x-api-key: §
        Authorization: token § | https://me:§@example.com/ | ?key=§&page=2"#;

    /// `«kind secret»` is what a mark takes the place of; `§` and `¤` stand for something made up.
    const MASKED: &str = r##"
    twilio sid «twilio-key SK¤» ¦ TWILIO_API_KEY=«twilio-key SK¤»
    Authorization: Bearer «bearer abcd1234» ¦ 'authorization': 'bearer «bearer §»'
    Authorization: Basic «basic bWFkZTp1cA==» ¦ Proxy-Authorization: Basic «basic bWFkZXVwOm9r»
    authorization: «authorization §» ¦ send `Bearer «bearer §»`.
    Cookie: sid=«cookie §»; theme=dark; b=«cookie §» ¦ Set-Cookie: a=«cookie §»; Path=/; Max-Age=100000000
    -H 'cookie: sid=«cookie §»' -X GET ¦ X-Api-Key: «key §» ¦ X-Auth-Token: «token §»
    postgres://me:«url-password s3cr3t»@db.example:5432/x ¦ redis://:«url-password pa55»@cache
    https:\/\/me:«url-password pa55»@host\/x ¦ amqp://me:«url-password p@ss»@host
    DB_PASSWORD=«password hunter22» ¦ GITHUB_TOKEN=«token ¤»
    DB_PASSWORD=«password correct_horse_battery» ¦ ADMIN_PASSWD='«password 12345678»'
    mysql --password=«password hunter22» -u me ¦ aws_secret_access_key = «key Made/Up+0000000000/NotLive00»
    {"client_secret": "«secret ab-12-cd-34»"} ¦ {\"apiKey\":\"«key abcd1234»\",\"a\":1}
    {\\\"apiKey\\\":\\\"«key abcd1234»\\\"} ¦ "password": "«password ab\"cd12345»"
    The password: «password hunter22». ¦ **Password:** «password hunter22» ¦ token: **«token abcd1234»**
    My API key: `«key abcd-1234-efgh»` ¦ const TOKEN: &str = "«token abcd1234»";
    token: str = b'«token abcd1234»' ¦ os.environ["API_KEY"] = "«key abcd1234»"
    if token == '«token abcd1234»' { ¦ password := "«password P@ssw0rd!»"
    ?access_token=«token abcd1234»&user=me ¦ Server=db;Password=«password abcd!1234»;Database=x
    //registry.example/:_authToken=«token abcd-1234» ¦ AccountKey=«key Made0Up1NotLive2==»;x
    credentials: «credential abcd1234efgh» ¦ password: "«password abcd1234»
    "password": "«password correct-horse-battery-staple»" ¦ secret: «secret abcdefghijklmnopqrst»
    signing_key: «key 550e8400-e29b-41d4-a716-446655440000» ¦ my_key = "«key Made0Up1NotLive2Key3»""##;

    const LEFT_ALONE: &str = r##"
    k|ke|key|key=|token:|secret: "|://|https://a:|Bearer |cookie:|[secret:|-----|-----BEGIN
    commit 3f2a9c0d4e5b6a7988c7d6e5f4a3b2c1d0e9f8a7|550e8400-e29b-41d4-a716-446655440000
    call_00aBcDeFgH1234567890abcd|"id":"msg_01AbCdEfGh1234567890"|"key":"toolu_01AbCdEfGh1234567890"
    "data":"iVBORw0KGgoAAAANSUhEUgAA§§§§§key="|tokens: 1234|max_tokens=4096|"input_tokens": 6700
    token_count: 12345678|"token": 12345678|token: 2026-01-01T00:00:00Z|AUTH_KEY: c_int = 0x00000002
    API_KEY=${API_KEY}|token: $GITHUB_TOKEN|api_key: <your-api-key>|password=********|token: null, x
    secret = true;|"password": "${{ secrets.PASSWORD }}"|password: "{{ password }}"|API_KEY=sk-...abcd
    token: Option<String>,|token: &'static str,|token: String|token: Uint8Array|secret: [u8; 32],
    token: Vec<Token2026>|let token = get_token();|"token": "get_token()"|token = self.lexer.next_token()?;
    token: crate::lexer::token|api_key=os.environ["OPENAI_API_KEY"]|password=args.password
    api_key=openai_api_key,|token=f"prefix-{name}-12"|password: process.env.DB_PASSWORD
    token: TokenKind::Identifier2,|let secret = configurationServiceSecret;|"api_key": "OPENAI_API_KEY"
    password: optional|secret: well-known|"password": "current-password"|token = 'refresh_token'
    "password": "Must have at least 8 characters"|password: /run/secrets/db_password|token: "^[a-z0-9]{20}$"
    GOOGLE_APPLICATION_CREDENTIALS=/home/pat/key.json|secret: op://vault/item/field|key: value-123456789
    "cache_key": "conversation:1234567890"|primary_key=¤
    publicKey: "§"|monkey: §|keyboard=§
    Authorization: Bearer $TOKEN|Authorization: Bearer <token>|Authorization: Bearer YOUR_TOKEN
    authorization: required|bearer authentication is used|Bearer ${TOKEN}|the basic idea
    a bearer of news-from-2026|cookie: a small text file|Cookie: theme=dark
    Set-Cookie: id=<session-id>; Path=/|https://example.com:8080/@scope/package|ssh://git@example.com:22/x
    https://user:${PASSWORD}@host|http://[::1]:80/a@b|http://localhost:3000?mail=me@example.com
    https://user:<password>@host|SK¤
    class="sk-folding-cube-with-a-very-long-name"|task-sk-aaaa|xox|hf_hub_download_with_a_very_long_name
    AKIAnotanid|npm_config_registry|eyJhbGciOi.x.y|The secret: nobody knows; the token: a word.
    password: 密码密码密码密码"##;

    fn key(start: &str, length: usize) -> String {
        format!("{start}{}", &MADE_UP[..length])
    }

    fn made_up(text: &str) -> String {
        text.replace('§', &MADE_UP[..32]).replace('¤', &"0123456789abcdef".repeat(2))
    }

    fn block(label: &str, newline: &str) -> String {
        let body = [&MADE_UP[..64], &MADE_UP[10..74], "Made0Up="].join(newline);
        format!("-----{} {label}-----{newline}{body}{newline}-----{} {label}-----", "BEGIN", "END")
    }

    fn kinds(text: &str) -> String {
        let masked = REDACTOR.mask(text).into_owned();
        let mut parts = masked.split("[secret:");
        let first = parts.next().unwrap().to_string();
        parts.fold(first, |all, part| match part.split_once(':') {
            Some((kind, rest)) => format!("{all}[{kind}]{}", &rest[5..]),
            None => format!("{all}[secret:{part}"),
        })
    }

    #[test]
    fn every_pattern_compiles() {
        for rule in rules() {
            let broken =
                matches!(rule.check, Check::Shape { rest: None, .. } | Check::Surrounding { rest: None, .. });
            assert!(!broken, "{}", rule.anchor);
        }
        assert_eq!((REDACTOR.stand_ins.len(), REDACTOR.plain.len()), (STAND_INS.len(), PLAIN.len()));
        assert!(
            REDACTOR.annotation.is_some() && REDACTOR.word_starts.len() == 1 && REDACTOR.key_names.len() == 3
        );
    }

    #[test]
    fn masks_secrets_by_shape() {
        let jwt = format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 30), key("", 43));
        let mut keys = vec![
            ("github-token", format!("ghs_123456_{jwt}")),
            ("gitlab-token", key("glpat-", 27) + ".01.0fake1234"),
            ("aws-key-id", ["AKIA", "FAKEFAKEFAKE2345"].concat()),
            ("aws-key-id", ["ASIA", "FAKEFAKEFAKE2345"].concat()),
            ("sendgrid-key", key("SG.", 22) + "." + &MADE_UP[..43]),
            ("jwt", jwt),
        ];
        keys.extend(KEYS.split(" | ").map(|row| {
            let [kind, start, length] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
            (kind, key(start, length.parse().unwrap()))
        }));
        let places = PLACES.lines().flat_map(|line| line.trim_start().split(" | "));
        for place in places.chain(["\u{1b}[32m§\u{1b}[0m", "\0§\0"]) {
            for (kind, key) in &keys {
                assert_eq!(kinds(&place.replace('§', key)), place.replace('§', &format!("[{kind}]")));
            }
        }
    }

    #[test]
    fn masks_private_keys() {
        for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
            for newline in ["\n", "\r\n", "\\n", "\\\\n", "\n   12\u{2192}", "\n+"] {
                let whole = block(label, newline);
                assert_eq!(kinds(&format!("a {whole} b")), "a [private-key] b");
                assert_eq!(kinds(&format!("'private_key': '{whole}'")), "'private_key': '[private-key]'");
                let cut = whole.split(&format!("{newline}-----{}", "END")).next().unwrap();
                assert_eq!(kinds(cut), "[private-key]");
            }
        }
        let dots = block("PRIVATE KEY", "\n").replace(|letter: char| letter.is_ascii_lowercase(), ".");
        let prose = format!("First comes -----{} RSA PRIVATE KEY----- and that line tells nothing.", "BEGIN");
        for text in [block("CERTIFICATE", "\n"), block("PUBLIC KEY", "\n"), dots, prose] {
            assert_eq!(kinds(&text), text);
        }
    }

    #[test]
    fn masks_what_surroundings_give_away() {
        for row in MASKED.lines().flat_map(|line| line.trim_start().split(" ¦ ")) {
            let (mut text, mut expected) = (String::new(), String::new());
            for part in row.split('»') {
                let (before, secret) = part.split_once('«').unwrap_or((part, ""));
                let (kind, secret) = secret.split_once(' ').unwrap_or_default();
                text += &[before, &made_up(secret)].concat();
                expected += &[before, &format!("[{kind}]").replace("[]", "")].concat();
            }
            assert_eq!(kinds(&text), expected);
        }
    }

    #[test]
    fn leaves_the_rest_alone() {
        let texts = LEFT_ALONE.lines().flat_map(|line| line.trim_start().split('|'));
        for text in texts.chain(["", "\0\u{1b}[0m"]).map(made_up) {
            assert!(matches!(REDACTOR.mask(&text), Cow::Borrowed(_)), "{text}: {}", kinds(&text));
        }
    }

    #[test]
    fn masked_text_stays_as_it_is() {
        let texts = [
            MASKED,
            LEFT_ALONE,
            "secret=[secret:key:0a1b] [secret:secret:ffff]: x",
            &block("PRIVATE KEY", "\\n"),
        ];
        for text in texts.iter().flat_map(|text| text.lines().chain([*text])) {
            let once = REDACTOR.mask(text).into_owned();
            assert!(matches!(REDACTOR.mask(&once), Cow::Borrowed(_)), "{once}");
        }
    }

    #[test]
    fn the_same_secret_has_the_same_mark() {
        let (key, other) = (key("ghp_", 36), key("ghp_", 37));
        let text = format!("{key} TOKEN={key} https://{key}:{other}@host");
        let masked = REDACTOR.mask(&text).into_owned();
        let marks: Vec<&str> = masked.match_indices("[secret:").map(|(at, _)| &masked[at..at + 26]).collect();
        assert_eq!((marks[0], marks[0]), (marks[1], marks[2]));
        assert_ne!(marks[0], marks[3]);
        assert_ne!(Redactor::new([8; 32]).mask(&key), REDACTOR.mask(&key));
    }
}
