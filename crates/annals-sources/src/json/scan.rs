//! Where JSON values start and end, and what strings contain: the innermost loops of every reader.

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

/// The character after `\u`, and the number of bytes it took.
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

/// Skips from an opening quote past the closing one. Raw control bytes are accepted: they are data.
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

/// A value or a name within scanned bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub start: u32,
    pub end: u32,
    /// The number of marks in the value, including this one.
    pub count: u32,
}

/// Receives the values of a walk.
trait Visitor {
    /// A string, number or literal; also the name of a field.
    fn leaf(&mut self, start: usize, end: usize);
    fn open(&mut self, start: usize, is_object: bool);
    fn close(&mut self, end: usize);
    fn depth(&self) -> usize;
    fn in_object(&self) -> bool;
}

/// Open containers as bits: a set bit is an object. No allocation until depth 64.
#[derive(Default)]
struct Open {
    bits: u64,
    depth: usize,
    deeper: Vec<u64>,
}

impl Visitor for Open {
    #[inline]
    fn leaf(&mut self, _start: usize, _end: usize) {}

    fn open(&mut self, _start: usize, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.deeper.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn close(&mut self, _end: usize) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.deeper.pop().unwrap_or_default();
        }
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// Marks all values, parents before children.
struct Marker<'m> {
    open: Open,
    marks: &'m mut Vec<Mark>,
    /// The marks of the open containers.
    parents: Vec<usize>,
    limit: usize,
}

impl Visitor for Marker<'_> {
    #[inline]
    fn leaf(&mut self, start: usize, end: usize) {
        if self.marks.len() < self.limit {
            self.marks.push(Mark { start: start as u32, end: end as u32, count: 1 });
        }
    }

    fn open(&mut self, start: usize, is_object: bool) {
        self.open.open(start, is_object);
        self.parents.push(self.marks.len());
        self.leaf(start, start);
    }

    fn close(&mut self, end: usize) {
        self.open.close(end);
        let Some(parent) = self.parents.pop() else { return };
        let count = self.marks.len() - parent;
        if let Some(mark) = self.marks.get_mut(parent) {
            (mark.end, mark.count) = (end as u32, count as u32);
        }
    }

    fn depth(&self) -> usize {
        self.open.depth
    }

    fn in_object(&self) -> bool {
        self.open.in_object()
    }
}

/// Skips from the first byte of a value past its last, checking structure; `None` if it is not JSON.
pub(super) fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    walk(bytes, start, &mut Open::default())
}

/// Like `skip_value`, marking up to `limit` values. The input must be smaller than 4 GiB.
pub(super) fn mark_value(bytes: &[u8], start: usize, marks: &mut Vec<Mark>, limit: usize) -> Option<usize> {
    walk(bytes, start, &mut Marker { open: Open::default(), marks, parents: Vec::new(), limit })
}

fn walk(bytes: &[u8], start: usize, visitor: &mut impl Visitor) -> Option<usize> {
    let mut at = start;
    loop {
        at = skip_space(bytes, at);
        let value = at;
        at = match bytes.get(at)? {
            open @ (b'{' | b'[') => {
                let is_object = *open == b'{';
                visitor.open(at, is_object);
                let inside = skip_space(bytes, at + 1);
                if bytes.get(inside)? == if is_object { &b'}' } else { &b']' } {
                    visitor.close(inside + 1);
                    inside + 1
                } else {
                    at = if is_object { walk_name(bytes, inside, visitor)? } else { inside };
                    continue;
                }
            }
            first => {
                let end = if *first == b'"' { skip_string(bytes, at)? } else { skip_word(bytes, at)? };
                visitor.leaf(value, end);
                end
            }
        };
        loop {
            if visitor.depth() == 0 {
                return Some(at);
            }
            at = skip_space(bytes, at);
            match (bytes.get(at)?, visitor.in_object()) {
                (b',', true) => {
                    at = walk_name(bytes, skip_space(bytes, at + 1), visitor)?;
                    break;
                }
                (b',', false) => {
                    at += 1;
                    break;
                }
                (b'}', true) | (b']', false) => {
                    at += 1;
                    visitor.close(at);
                }
                _ => return None,
            }
        }
    }
}

/// Skips `"name" :`.
fn walk_name(bytes: &[u8], at: usize, visitor: &mut impl Visitor) -> Option<usize> {
    if bytes.get(at)? != &b'"' {
        return None;
    }
    let end = skip_string(bytes, at)?;
    visitor.leaf(at, end);
    let colon = skip_space(bytes, end);
    (bytes.get(colon)? == &b':').then_some(colon + 1)
}
