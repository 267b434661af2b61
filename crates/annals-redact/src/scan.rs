//! Examines the places where a secret may appear, and decides.

use std::ops::Range;
use std::sync::LazyLock;

use super::certain::{self, Setting};
use super::plain::{Doubts, Place, has_disorder, has_random_part, is_made_up, is_number, is_random, is_text};
use super::prefilter::Prefilter;
use super::rules::Trust::{Strong, Weak};
use super::rules::{
    ANNOTATION, Accept, COOKIE_ATTRIBUTES, Check, HEAD, LINE, LONGEST, PAIR, Pattern, Reading, Rule, Trust,
    rules,
};
use super::slot::{Slot, is_blank, is_name_byte, is_value_byte, mark_end, run, starts_word, trim_end, until};
use super::table::Column;

/// The rules are the same for every archive.
static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// Emits the kind and range of every secret, in order.
pub(super) fn scan(bytes: &[u8], emit: &mut dyn FnMut(&'static str, Range<usize>)) {
    let scanner = &*SCANNER;
    let mut start = 0;
    let mut from = 0;
    let mut found = Vec::new();
    // Nothing looks back across a mask, so masked text gives the same result again.
    while let Some((at, bits)) = scanner.prefilter.next(&bytes[start..], from) {
        from = at + 1;
        let Some(resume) = scanner.inspect(&bytes[start..], at, bits, &mut found) else { continue };
        for Secret { kind, range } in found.drain(..) {
            emit(kind, start + range.start..start + range.end);
        }
        start += resume;
        from = 0;
    }
}

/// Whether any rule could start here.
pub(super) fn has_anchor(bytes: &[u8]) -> bool {
    SCANNER.prefilter.next(bytes, 0).is_some()
}

pub(super) struct Scanner {
    pub(super) rules: Vec<Rule>,
    pub(super) annotation: Pattern,
    pub(super) pair: Pattern,
    pub(super) doubts: LazyLock<Doubts>,
    prefilter: Prefilter,
}

struct Secret {
    kind: &'static str,
    range: Range<usize>,
}

impl Rule {
    fn shape(&self, bytes: &[u8], at: usize, end: usize) -> Option<Secret> {
        let range = match &self.check {
            Check::Shape(rest) => {
                let rest = rest.get()?.find(until(bytes, end, LONGEST).get(end..)?)?;
                at..end + rest.end()
            }
            Check::Behind(behind, rest) => {
                let starts = behind.length.clone().rev().filter_map(|length| at.checked_sub(length));
                let mut starts = starts.filter(|start| {
                    let continues = start.checked_sub(1).is_some_and(|before| (behind.class)(bytes[before]));
                    let fits = bytes[*start..at].iter().all(|byte| (behind.class)(*byte));
                    fits && (!continues || starts_word(bytes, *start))
                });
                let start = starts.next()?;
                start..end + rest.get()?.find(until(bytes, end, HEAD * 8).get(end..)?)?.end()
            }
            Check::Surrounding { .. } | Check::Name(_) | Check::BlockEnd(_) | Check::Cookie => return None,
        };
        let random = if range.start < at { range.start } else { end };
        let fits = self.has_required_word(bytes, at, HEAD) && !is_made_up(&bytes[random..range.end]);
        fits.then_some(Secret { kind: self.kind, range })
    }

    /// The lines of Base64 before the end of a block whose start is missing.
    fn block_before(&self, bytes: &[u8], at: usize, end: usize, label: &Pattern) -> Option<Secret> {
        label.get()?.find(until(bytes, end, HEAD).get(end..)?)?;
        let from = at.saturating_sub(LONGEST / 4);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\\".contains(byte);
        let length = bytes[from..at].iter().rev().take_while(|byte| is_part(byte)).count();
        let body = &bytes[at - length..at];
        let is_line = |line: &[u8]| line.len() >= 40 && is_random(line);
        let is_block = body.split(|byte| matches!(byte, b'\n' | b'\\')).any(is_line);
        let lead = body.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        is_block.then(|| Secret { kind: self.kind, range: at - length + lead..at })
    }

    /// A shape directly after a letter, `_` or `-`, where the prefix alone says little: the rest must look random. Only
    /// a short part is read until that is sure.
    fn shape_in_word(&self, bytes: &[u8], at: usize, end: usize) -> Option<Secret> {
        let is_joined = matches!(bytes[at - 1], b'_' | b'-');
        let is_closed = !bytes[end - 1].is_ascii_alphanumeric();
        let is_prefix = end - at >= 3 && (is_joined || is_closed && end - at >= 4);
        let head = until(bytes, end, HEAD * 4);
        let near = self.shape(head, at, end).filter(|_| is_prefix)?;
        let rest = &bytes[end..near.range.end];
        let capitals = |rest: &[u8]| is_joined && !rest.iter().any(u8::is_ascii_lowercase);
        (is_random(rest) || capitals(rest)).then(|| self.shape(bytes, at, end)).flatten()
    }

    /// Whether the word that the rule requires comes shortly before.
    fn has_required_word(&self, bytes: &[u8], at: usize, far: usize) -> bool {
        let before = &bytes[at.saturating_sub(far)..at];
        let contains =
            |word: &str| before.windows(word.len()).any(|near| near.eq_ignore_ascii_case(word.as_bytes()));
        self.required_word.is_none_or(|words| words.split('|').any(contains))
    }
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        let rules = rules();
        let prefilter = Prefilter::new(&rules);
        Scanner {
            rules,
            prefilter,
            annotation: Pattern::new(ANNOTATION),
            pair: Pattern::new(PAIR),
            doubts: LazyLock::new(Doubts::new),
        }
    }

    /// Adds the secrets at an anchor to `found` and returns where to continue; None if there are none.
    fn inspect(&self, bytes: &[u8], at: usize, bits: u128, found: &mut Vec<Secret>) -> Option<usize> {
        self.prefilter.rules_at(bytes, at, bits).find_map(|(index, end)| {
            let rule = &self.rules[index];
            let secret = match &rule.check {
                // The order matters: a shape may read far, and inside a word it would do so again and again.
                Check::Shape(_) if is_amid_blob(bytes, at, end) => None,
                Check::Shape(_) if !starts_word(bytes, at) => rule.shape_in_word(bytes, at, end),
                Check::Shape(_) | Check::Behind(..) => rule.shape(bytes, at, end),
                Check::Surrounding { rest, accept } => {
                    // Commands and statements are short; reading far from each of many anchors is slow.
                    let far = if *accept == Accept::Certain { LINE * 4 } else { LONGEST };
                    let after = until(bytes, end, far).get(end..)?;
                    if *accept == Accept::Certain && !rule.has_required_word(bytes, at, LINE) {
                        return None;
                    }
                    let rest = rest.get().filter(|rest| rest.is_match(after))?;
                    let group = rest.captures(after)?.get(1)?;
                    let range = end + group.start()..end + group.end();
                    let fits = rule.has_required_word(bytes, at, LINE);
                    let secret =
                        self.check_context(bytes, range.clone(), rule.kind, *accept).filter(|_| fits)?;
                    found.extend(self.shapes(&bytes[..secret.range.start], at));
                    Some(secret)
                }
                Check::Name(reading) => match at.checked_sub(1).and_then(|open| mark_end(bytes, open)) {
                    Some(end) => return Some(end),
                    None => match self.check_name(bytes, at..end, rule.kind, *reading) {
                        Some(secret) => Some(secret),
                        None => return self.table(bytes, at..end, rule.kind, *reading, found),
                    },
                },
                Check::BlockEnd(label) => rule.block_before(bytes, at, end, label),
                Check::Cookie => return self.cookies(bytes, end, found),
            }?;
            let end = secret.range.end;
            found.push(secret);
            Some(end)
        })
    }

    /// The shape that starts here, including one that is recognised by its middle a little further on.
    fn shape_from(&self, bytes: &[u8], start: usize) -> Option<Secret> {
        self.shape_at(bytes, start).or_else(|| {
            let head = until(bytes, start, HEAD);
            let (at, _) = self.prefilter.next(head, start + 1)?;
            self.shape_at(bytes, at).filter(|secret| secret.range.start == start)
        })
    }

    fn shape_at(&self, bytes: &[u8], at: usize) -> Option<Secret> {
        let bits = self.prefilter.bits(bytes.get(at..)?);
        self.prefilter
            .rules_at(bytes, at, bits)
            .find_map(|(index, end)| self.rules[index].shape(bytes, at, end))
    }

    /// The shapes in the context of a secret, such as a token that is the user of a URL.
    fn shapes(&self, bytes: &[u8], mut from: usize) -> Vec<Secret> {
        let mut shapes = Vec::new();
        while let Some((at, _)) = self.prefilter.next(bytes, from) {
            let shape = self.shape_at(bytes, at).filter(|_| starts_word(bytes, at));
            from = shape.as_ref().map_or(at + 1, |shape| shape.range.end);
            shapes.extend(shape);
        }
        shapes
    }

    fn check_context(
        &self,
        bytes: &[u8],
        range: Range<usize>,
        kind: &'static str,
        accept: Accept,
    ) -> Option<Secret> {
        if range.clone().chain([range.end]).any(|at| mark_end(bytes, at).is_some()) {
            return None;
        }
        let range = range.start..trim_end(bytes, range);
        let value = &bytes[range.clone()];
        let is_word = || self.doubts.is_plain(value, Place::Quoted) || is_number(value);
        let fits = match accept {
            Accept::Any => !value.is_empty(),
            Accept::Certain => certain::is_secret(value, Place::Environment, &self.doubts),
            Accept::Least(least) => value.len() >= least && !is_word(),
            Accept::Random => {
                has_random_part(value) || value.len() >= 32 && value.iter().all(u8::is_ascii_hexdigit)
            }
        };
        let fits = fits && !self.doubts.is_placeholder(value, Place::Quoted);
        let shape = self.shape_from(bytes, range.start);
        longest(fits.then_some(Secret { kind, range }), shape)
    }

    fn check_name(
        &self,
        bytes: &[u8],
        word: Range<usize>,
        kind: &'static str,
        reading: Reading,
    ) -> Option<Secret> {
        let continues = bytes.get(word.end).is_some_and(|next| is_name_byte(*next));
        // One of several parts separated by colons, as in resource names.
        let amid_parts = bytes[..word.start].ends_with(b":") && bytes.get(word.end) == Some(&b':');
        if continues || amid_parts {
            return None;
        }
        let assigned = Slot::after_name(bytes, word.clone());
        let slot = assigned
            .or_else(|| Slot::after_flag(bytes, word.clone()))
            .or_else(|| Slot::after_tag(bytes, word.clone()))
            .or_else(|| Slot::after_comma(bytes, word.clone()))
            .or_else(|| self.after_pair(bytes, word.end));
        let Some(slot) = slot else {
            let slot = Slot::after_space(bytes, word.end)?;
            if slot.place == Place::Quoted && is_macro(bytes, word.start) {
                return self.check_certain(bytes, &word, &slot, kind);
            }
            let quoted = slot.place == Place::Quoted && kind == "password";
            let trust = if quoted { Strong } else { Weak };
            let is_strong = || self.trust(bytes, word.start, reading) == Some(Strong);
            // Names of types come in pairs too, but they are shorter.
            let foreign = kind == "password" && Slot::is_foreign(&bytes[word.end..], &bytes[word.clone()]);
            let trust = if foreign { Strong } else { trust };
            let digits = |range: &Range<usize>| bytes[range.clone()].iter().any(u8::is_ascii_digit);
            let long =
                |secret: &Secret| quoted || secret.range.len() >= LONG || foreign && digits(&secret.range);
            // Most words after a name are short, and no secret unless they have the shape of one.
            let is_short = !quoted
                && !foreign
                && run(until(bytes, slot.start, LONG), slot.start, is_value_byte) < slot.start + LONG;
            let secret = match is_short && slot.place != Place::Quoted {
                true => self.shape_from(bytes, slot.start),
                false => self.check_value(bytes, &slot, kind, trust),
            };
            return secret.filter(|secret| long(secret) && is_strong());
        };
        let trust = self.trust(bytes, word.start, reading)?;
        if let Some(secret) = self.check_certain(bytes, &word, &slot, kind) {
            return Some(secret);
        }
        self.check_value(bytes, &slot, kind, trust).or_else(|| {
            let annotation = self.annotation.get()?.find(bytes.get(slot.start..)?)?;
            let slot = Slot::after_separator(bytes, slot.start + annotation.end())?;
            self.check_value(bytes, &slot, kind, trust)
        })
    }

    /// At a place that has nothing but secrets.
    fn check_certain(
        &self,
        bytes: &[u8],
        word: &Range<usize>,
        slot: &Slot,
        kind: &'static str,
    ) -> Option<Secret> {
        if !matches!(kind, "password" | "secret") {
            return None;
        }
        let setting = Setting::of(bytes, word.clone(), slot);
        let is_certain = match kind {
            "password" => true,
            "secret" => {
                setting.shouted
                    || self.doubts.is_owned_secret(&bytes[word.start.saturating_sub(16)..word.end])
            }
            _ => false,
        };
        let end = certain::value_end(bytes, slot, &setting, &self.doubts).filter(|_| is_certain)?;
        longest(Some(Secret { kind, range: slot.start..end }), self.shape_from(bytes, slot.start))
    }

    /// As in a list of variables, each with `name` and `value`.
    fn after_pair(&self, bytes: &[u8], end: usize) -> Option<Slot> {
        let near = until(bytes, end, LINE).get(end..)?;
        // The first byte of `value` ends what the pattern begins with. Most names are followed by something else.
        let start = near.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\\\"',\x0bnrt".contains(byte));
        start.filter(|start| start.eq_ignore_ascii_case(&b'v'))?;
        let between = self.pair.get()?.find(near)?;
        Slot::after_separator(bytes, end + between.end())
    }

    fn check_value(&self, bytes: &[u8], slot: &Slot, kind: &'static str, trust: Trust) -> Option<Secret> {
        let range = self.value_end(bytes, slot, trust).map(|end| slot.start..end);
        let is_plain = |value: &[u8]| is_number(value) || self.doubts.is_name(value);
        let range = range.filter(|range| kind == "password" || !is_plain(&bytes[range.clone()]));
        let range = range.filter(|range| kind != "code" || !is_text(&bytes[range.clone()]));
        longest(range.map(|range| Secret { kind, range }), self.shape_from(bytes, slot.start))
    }

    fn value_end(&self, bytes: &[u8], slot: &Slot, trust: Trust) -> Option<usize> {
        let head = slot.value_end(bytes, until(bytes, slot.start, HEAD).len(), trust)?;
        // A value this close before a mask was seen together with the secret, and left alone.
        if self.doubts.is_placeholder(&bytes[slot.start..head], slot.place) || mark_end(bytes, head).is_some()
        {
            return None;
        }
        let end = slot.value_end(bytes, bytes.len(), trust)?;
        let end = if slot.place == Place::Quoted { end } else { trim_end(bytes, slot.start..end) };
        let value = &bytes[slot.start..end];
        let calls = matches!(bytes.get(end), Some(b'(' | b'[' | b'{'));
        let points = value.ends_with(b"-") && bytes.get(end) == Some(&b'>');
        let is_code = slot.place == Place::Bare && (calls || points);
        let fits = !is_code && (trust == Strong || has_random_part(value));
        (fits && value.len() >= 8 && !self.doubts.is_plain(value, slot.place)).then_some(end)
    }

    fn trust(&self, bytes: &[u8], at: usize, reading: Reading) -> Option<Trust> {
        let before = &bytes[at.saturating_sub(24)..=at];
        let [distinctive_key, public, word, part, query] = self.doubts.before_name(before);
        if public {
            return None;
        }
        match reading {
            Reading::Always => Some(Strong),
            Reading::Key if distinctive_key => Some(Strong),
            Reading::Key | Reading::Word => word.then_some(Weak),
            Reading::Part => part.then_some(Strong),
            Reading::Query => query.then_some(Strong),
        }
    }

    /// Masks the cells below a header. The first of them decides whether this is a table of secrets.
    fn table(
        &self,
        bytes: &[u8],
        word: Range<usize>,
        kind: &'static str,
        reading: Reading,
        found: &mut Vec<Secret>,
    ) -> Option<usize> {
        let is_certain = matches!(kind, "password" | "secret");
        let mut column =
            Column::below(bytes, word.clone()).filter(|column| is_certain || column.is_markdown())?;
        self.trust(bytes, word.start, reading).filter(|trust| *trust == Strong)?;
        let is_secret = |cell: &Range<usize>| {
            let value = &bytes[cell.clone()];
            let strong =
                || value.len() >= 8 && !is_number(value) && !self.doubts.is_plain(value, Place::Quoted);
            let is_free = !cell.clone().chain([cell.end]).any(|at| mark_end(bytes, at).is_some());
            is_free && certain::is_secret(value, Place::Environment, &self.doubts) && (is_certain || strong())
        };
        let first = column.cell(bytes).filter(is_secret)?;
        let mut from = word.end;
        let mut next = Some(first);
        while let Some(cell) = next {
            if is_secret(&cell) {
                found.extend(self.shapes(&bytes[..cell.start], from));
                from = cell.end;
                found.push(Secret { kind, range: cell });
            }
            next = column.cell(bytes);
        }
        Some(from)
    }

    /// Masks every pair of the header separately; the attributes of `Set-Cookie` stay readable.
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
            if masked.is_none() && self.doubts.is_placeholder(&bytes[start..head], Place::Quoted) {
                return resume;
            }
            let end = masked.unwrap_or_else(|| run(bytes, start, is_value_byte));
            let is_name = |word: &&str| word.as_bytes().eq_ignore_ascii_case(&bytes[name..equals]);
            if masked.is_none() && !COOKIE_ATTRIBUTES.iter().any(is_name) {
                found.extend(self.check_context(bytes, start..end, "cookie", Accept::Least(8)));
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

/// The least length of a value after only a space.
const LONG: usize = 20;

/// Whether a name is defined by the preprocessor.
fn is_macro(bytes: &[u8], word: usize) -> bool {
    let before = &bytes[word.saturating_sub(64)..word];
    let name = before.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
    before[..before.len() - name].ends_with(b"#define ")
}

/// Whether an anchor is inside Base64: images are not full of keys.
fn is_amid_blob(bytes: &[u8], at: usize, end: usize) -> bool {
    let is_blob = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let before = &bytes[at.saturating_sub(40)..at];
    let length = before.iter().rev().take_while(|byte| is_blob(byte)).count();
    let blob = &before[before.len() - length..];
    // Names of directories are in better order.
    let is_disorder = |part: &[u8]| part.len() >= 8 && has_disorder(part);
    length >= 12
        && matches!(bytes[at - 1], b'+' | b'/')
        && bytes[at..end].iter().all(u8::is_ascii_alphanumeric)
        && blob.split(|byte| matches!(byte, b'+' | b'/')).any(is_disorder)
}

/// The shape takes precedence over the context, so that a secret has the same kind everywhere.
fn longest(in_context: Option<Secret>, shape: Option<Secret>) -> Option<Secret> {
    [in_context, shape].into_iter().flatten().max_by_key(|secret| secret.range.end)
}
