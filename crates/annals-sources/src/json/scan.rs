//! Where JSON values end, and what strings contain: the innermost loops of every reader.

use memchr::memchr2;

/// Text of escaped bytes. A lone surrogate or bad UTF-8 becomes U+FFFD here; the archive keeps the bytes.
pub fn unescape(inner: &[u8]) -> String {
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &inner[at..]) {
        out.extend_from_slice(&inner[at..at + found]);
        at += found + 1;
        let Some(escape) = inner.get(at) else { break };
        at += 1;
        let plain = match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let (character, used) = unescape_unicode(&inner[at..]);
                at += used;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => *other,
        };
        out.push(plain);
    }
    out.extend_from_slice(inner.get(at..).unwrap_or_default());
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The character after `\u`, and how many bytes it took.
fn unescape_unicode(rest: &[u8]) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let digits = std::str::from_utf8(rest.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if let Some(character) = char::from_u32(first) {
        return (character, 4);
    }
    let pair = (first < 0xDC00 && rest.get(4..6) == Some(b"\\u")).then(|| unit(6)).flatten();
    match pair {
        Some(second) if (0xDC00..0xE000).contains(&second) => {
            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
        }
        _ => (char::REPLACEMENT_CHARACTER, 4),
    }
}

pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// From an opening quote to behind the closing one. Raw control bytes are let through: they are data.
pub(super) fn skip_string(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

pub(super) fn skip_word(bytes: &[u8], at: usize) -> Option<usize> {
    for word in [&b"true"[..], b"false", b"null"] {
        if bytes[at..].starts_with(word) {
            return Some(at + word.len());
        }
    }
    let length = bytes[at..]
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
        .count();
    (length > 0).then_some(at + length)
}

/// Which containers are open, as bits: a set bit is an object. No allocation until depth 64.
#[derive(Default)]
struct Open {
    bits: u64,
    depth: usize,
    deeper: Vec<u64>,
}

impl Open {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.deeper.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.deeper.pop().unwrap_or_default();
        }
    }

    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// From the first byte of a value to behind its last, checking structure; `None` if it is not JSON.
pub(super) fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    let mut open = Open::default();
    let mut at = start;
    loop {
        at = skip_space(bytes, at);
        at = match bytes.get(at)? {
            b'"' => skip_string(bytes, at)?,
            b'{' => {
                let inside = skip_space(bytes, at + 1);
                if bytes.get(inside)? == &b'}' {
                    inside + 1
                } else {
                    open.push(true);
                    at = skip_name(bytes, inside)?;
                    continue;
                }
            }
            b'[' => {
                let inside = skip_space(bytes, at + 1);
                if bytes.get(inside)? == &b']' {
                    inside + 1
                } else {
                    open.push(false);
                    at = inside;
                    continue;
                }
            }
            _ => skip_word(bytes, at)?,
        };
        loop {
            if open.depth == 0 {
                return Some(at);
            }
            at = skip_space(bytes, at);
            match (bytes.get(at)?, open.in_object()) {
                (b',', true) => {
                    at = skip_name(bytes, skip_space(bytes, at + 1))?;
                    break;
                }
                (b',', false) => {
                    at += 1;
                    break;
                }
                (b'}', true) | (b']', false) => {
                    at += 1;
                    open.pop();
                }
                _ => return None,
            }
        }
    }
}

/// Over `"name" :`.
pub(super) fn skip_name(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at)? != &b'"' {
        return None;
    }
    let colon = skip_space(bytes, skip_string(bytes, at)?);
    (bytes.get(colon)? == &b':').then_some(colon + 1)
}
