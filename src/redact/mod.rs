//! Finds secrets in text and masks them, so that nothing the archive shows carries a key that opens a door.

mod rules;

use std::borrow::Cow;
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use rules::Trust::{Telling, Vague};
use rules::{
    ANNOTATION, BESIDE, COOKIE_ATTRIBUTES, Check, HEAD, KEY_NAMES, LONGEST, NAMES, PLAIN, Place, Rule,
    SHAPES, STAND_INS, SURROUNDINGS, Trust, WORD_STARTS,
};

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
mod tests;
