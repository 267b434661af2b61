//! The position of a value after a name: after `=`, `:` or a flag, with any quotes and escapes.

use std::ops::Range;

use super::plain::Place;
use super::rules::Trust;
use super::rules::Trust::Strong;

pub(super) struct Slot {
    pub(super) start: usize,
    pub(super) place: Place,
    quote: u8,
    escapes: usize,
}

impl Slot {
    pub(super) fn after_name(bytes: &[u8], word: Range<usize>) -> Option<Slot> {
        let closed = run(until(bytes, word.end, DEEPEST), word.end, |byte| b"\\\"'`*]".contains(&byte));
        let separator = run(bytes, closed, is_blank);
        let slot = Slot::after_separator(bytes, separator)?;
        let shouted = bytes[word.clone()].iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
        let tight = bytes[separator] == b'=' && word.end == separator && slot.start == separator + 1;
        let place =
            if shouted && tight && slot.place == Place::Bare { Place::Environment } else { slot.place };
        Some(Slot { place, ..slot })
    }

    pub(super) fn after_separator(bytes: &[u8], separator: usize) -> Option<Slot> {
        if let Some(b"%3D" | b"%3d") = bytes.get(separator..separator + 3) {
            return Some(Slot::at(bytes, separator + 3));
        }
        // Full-width signs.
        if let Some([0xef, 0xbc, 0x9a | 0x9d]) = bytes.get(separator..separator + 3) {
            return Some(Slot::at(bytes, run(bytes, separator + 3, is_blank)));
        }
        let separator = separator + usize::from(bytes.get(separator..separator + 2) == Some(b"?="));
        let is_path = bytes.get(separator + 1) == Some(&b':');
        if !matches!(bytes.get(separator), Some(b'=' | b':')) || is_path {
            return None;
        }
        let few = |from: usize, set: &[u8]| run(until(bytes, from, 2), from, |byte| set.contains(&byte));
        let open = few(run(bytes, few(few(separator + 1, b"=>"), b"*"), is_blank), b"*");
        Some(Slot::at(bytes, open))
    }

    /// After `--name`, as a separate word or as the next item of a list.
    pub(super) fn after_flag(bytes: &[u8], word: Range<usize>) -> Option<Slot> {
        let name = &bytes[word.start.saturating_sub(LONGEST_FLAG)..word.start];
        let length = name.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
        if name[name.len() - length..].first() != Some(&b'-') {
            return None;
        }
        let closed = run(until(bytes, word.end, DEEPEST), word.end, |byte| b"\\\"'".contains(&byte));
        let comma = closed + usize::from(closed > word.end && bytes.get(closed) == Some(&b','));
        let open = run(bytes, comma, is_blank);
        let slot = Slot::at(bytes, open);
        let is_next =
            if closed > word.end { comma > closed && slot.place == Place::Quoted } else { open > comma };
        (is_next && bytes.get(slot.start) != Some(&b'-')).then_some(slot)
    }

    /// After `"name", ` in a call that sets the named value.
    pub(super) fn after_comma(bytes: &[u8], word: Range<usize>) -> Option<Slot> {
        let before = &bytes[word.start.saturating_sub(LONGEST_FLAG)..word.start];
        let length = before.iter().rev().take_while(|byte| is_name_byte(**byte) || **byte == b'.').count();
        let call = before[..before.len() - length].trim_ascii_end();
        let call = call.strip_suffix(b"\"").or_else(|| call.strip_suffix(b"'"))?.trim_ascii_end();
        let call = call.strip_suffix(b"\\").unwrap_or(call).strip_suffix(b"(")?.to_ascii_lowercase();
        let is_setter = ["define", "env", "setdefault", "property", "put", "set", "putenv"]
            .iter()
            .any(|setter| call.ends_with(setter.as_bytes()));
        let closed = run(until(bytes, word.end, DEEPEST), word.end, |byte| b"\\\"'".contains(&byte));
        let comma = run(bytes, closed, is_blank);
        let slot = Slot::at(bytes, run(bytes, comma + 1, is_blank));
        let fits = is_setter && closed > word.end && bytes.get(comma) == Some(&b',');
        (fits && slot.place == Place::Quoted).then_some(slot)
    }

    /// Between backticks, where types and names are mentioned too.
    pub(super) fn is_code(&self) -> bool {
        self.quote == b'`'
    }

    /// The end of a quoted value, which may have blanks if `spaced`.
    pub(super) fn closing(&self, bytes: &[u8], limit: usize, spaced: bool) -> Option<usize> {
        let mut escapes = 0;
        for (at, byte) in (self.start..limit).zip(bytes.get(self.start..limit)?.iter().copied()) {
            if byte == self.quote && escapes <= self.escapes {
                return Some(at - escapes);
            }
            escapes = if byte == b'\\' { escapes + 1 } else { 0 };
            if byte < b' ' || byte == b' ' && !spaced {
                return None;
            }
        }
        (limit == bytes.len() && !spaced).then_some(limit)
    }

    /// After `<name>`, if the tag is closed.
    pub(super) fn after_tag(bytes: &[u8], word: Range<usize>) -> Option<Slot> {
        let name = &bytes[word.start.saturating_sub(LONGEST_FLAG)..word.start];
        let length = name.iter().rev().take_while(|byte| is_name_byte(**byte) || **byte == b':').count();
        let open = &name[..name.len() - length];
        // `<name attribute="…">` and `<property name="name">`.
        let is_named = open.ends_with(b"name=\"") && bytes.get(word.end) == Some(&b'"');
        if !is_named && !open.ends_with(b"<") {
            return None;
        }
        let has_attributes = bytes.get(word.end) == Some(&b' ') && open.ends_with(b"<");
        let attributes = until(bytes, word.end, LONGEST_TEXT);
        let bracket = match () {
            () if is_named => word.end + 1,
            () if has_attributes => run(attributes, word.end, |byte| !b"<>/\n".contains(&byte)),
            () => word.end,
        };
        let start = bracket + 1;
        let value = until(bytes, start, LONGEST_TEXT);
        let close = run(value, start, |byte| byte != b'<');
        let is_tag = bytes.get(bracket) == Some(&b'>');
        let is_closed = matches!(bytes.get(close + 1), Some(b'/' | b'\\'));
        (is_tag && is_closed).then_some(Slot { start, place: Place::Quoted, quote: b'<', escapes: 0 })
    }

    /// After only a space, or "is".
    pub(super) fn after_space(bytes: &[u8], end: usize) -> Option<Slot> {
        let open = run(until(bytes, end, 4), end, is_blank);
        let rest = bytes.get(open..).unwrap_or_default();
        let is = ["is ", "ist ", "est ", "es ", "\u{2014} ", "\u{2013} "]
            .into_iter()
            .find(|is| rest.starts_with(is.as_bytes()));
        // No blank is needed here.
        if let Some(is) = ["是", "为", "為", "は"].into_iter().find(|is| rest.starts_with(is.as_bytes()))
        {
            return Some(Slot::at(bytes, run(bytes, open + is.len(), is_blank)));
        }
        let start = is.map_or(open, |is| open + is.len());
        (open > end && start < bytes.len()).then(|| Slot::at(bytes, start))
    }

    /// Whether a name in another language is followed by its word for "is", or a dash.
    pub(super) fn is_foreign(rest: &[u8], name: &[u8]) -> bool {
        let rest = rest.trim_ascii_start();
        let is = ["ist ", "est ", "es ", "\u{2014} ", "\u{2013} ", "是", "为", "為", "は"];
        is.iter().any(|is| rest.starts_with(is.as_bytes())) && !name.eq_ignore_ascii_case(b"password")
    }

    fn at(bytes: &[u8], open: usize) -> Slot {
        let is_quote = |at: usize| bytes.get(at).is_some_and(|byte| b"\"'`".contains(byte));
        let prefixed = bytes.get(open).is_some_and(|byte| b"bfruBFRU$@".contains(byte)) && is_quote(open + 1);
        let open = open + usize::from(prefixed);
        let mark = run(bytes, open, |byte| byte == b'\\');
        if !is_quote(mark) {
            return Slot { start: open, place: Place::Bare, quote: 0, escapes: 0 };
        }
        Slot { start: mark + 1, place: Place::Quoted, quote: bytes[mark], escapes: mark - open }
    }

    /// Where the value ends, at `limit` at the latest; None if it is prose.
    pub(super) fn value_end(&self, bytes: &[u8], limit: usize, trust: Trust) -> Option<usize> {
        let is_weak = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-.".contains(&byte);
        let fits = |byte: u8| trust == Strong || is_weak(byte) || byte == b'=' && self.place == Place::Quoted;
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

const LONGEST_FLAG: usize = 40;

/// Longest distance to the end of a tag.
const LONGEST_TEXT: usize = 256;

/// Nested JSON doubles its backslashes: enough for five levels.
const DEEPEST: usize = 40;

/// The end of a mask that starts here.
pub(super) fn mark_end(bytes: &[u8], at: usize) -> Option<usize> {
    let kind = bytes.get(at..)?.strip_prefix(b"[secret:")?;
    let colon = kind.iter().take(33).position(|byte| *byte == b':')?;
    let is_kind = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let [b':', hash @ .., b']'] = kind.get(colon..colon + 6)? else { return None };
    let fits = kind[..colon].iter().all(is_kind) && hash.iter().all(u8::is_ascii_hexdigit);
    fits.then_some(at + b"[secret:".len() + colon + 6)
}

/// Not inside a word, but after an escape, a colour code or a diff marker.
pub(super) fn starts_word(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(12)..at];
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [] | [b'-'] | [.., b'\n', b'-'] | [.., b'\\', b'n', b'-'] => true,
        [.., b'\\', b'u', a, b, c, d] if is_hex(&[*a, *b, *c, *d]) => true,
        [.., b'%', a, b] if is_hex(&[*a, *b]) => true,
        [colour @ .., b'm'] => {
            let code = colour.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            let open = &colour[..colour.len() - code];
            open.ends_with(b"\x1b[") || open.ends_with(b"1b[")
        }
        [.., last] => !is_name_byte(*last),
    }
}

/// All bytes up to `length` after `start`.
pub(super) fn until(bytes: &[u8], start: usize, length: usize) -> &[u8] {
    &bytes[..bytes.len().min(start + length)]
}

/// The end of the run of bytes that fit.
pub(super) fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
}

/// The end without trailing punctuation or emphasis.
pub(super) fn trim_end(bytes: &[u8], range: Range<usize>) -> usize {
    let last = bytes[range.clone()].iter().rposition(|byte| !b".:*".contains(byte));
    range.start + last.map_or(0, |last| last + 1)
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Bytes of a value without quotes.
pub(super) fn is_value_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`,;&)]}<>|\\".contains(&byte)
}
