//! JSON inside an element, plain or within a string, and the position of its parts in the file.

use std::borrow::Cow;

use crate::json::{Json, unescape};
use annals_core::Span;

/// A request or a response. Logs often keep them as text in a string; rows then point to the escaped bytes.
pub struct TraceBody<'a> {
    text: Cow<'a, [u8]>,
    /// Offset of the text in the file.
    start: u64,
    /// After each escape: the offset in the text and in the escaped bytes.
    steps: Vec<(usize, usize)>,
}

impl<'a> TraceBody<'a> {
    /// `value` is in `element`, which starts at `offset` of the file.
    pub fn new(element: &[u8], offset: u64, value: Json<'a>) -> TraceBody<'a> {
        let bytes = value.inner().unwrap_or(value.bytes());
        let start = offset + within(element, bytes) as u64;
        if value.is_string() && memchr::memchr(b'\\', bytes).is_some() {
            let (text, steps) = unescape_with_places(bytes);
            return TraceBody { text: Cow::Owned(text), start, steps };
        }
        TraceBody { text: Cow::Borrowed(bytes), start, steps: Vec::new() }
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// `None` for text that is not JSON: a stream of events, or truncated text.
    pub fn json(&self) -> Option<Json<'_>> {
        Json::parse(&self.text)
    }

    /// The span of a part of the text in the file.
    pub fn span(&self, part: &[u8]) -> Span {
        let from = within(&self.text, part);
        let (first, last) = (self.place(from), self.place(from + part.len()));
        Span { offset: self.start + first as u64, length: (last - first) as u64 }
    }

    fn place(&self, at: usize) -> usize {
        let behind = self.steps.partition_point(|(text, _)| *text <= at);
        match behind.checked_sub(1).map(|step| self.steps[step]) {
            Some((text, escaped)) => escaped + (at - text),
            None => at,
        }
    }
}

fn within(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

fn unescape_with_places(escaped: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut text, mut steps, mut at) = (Vec::with_capacity(escaped.len()), Vec::new(), 0);
    while let Some(found) = memchr::memchr(b'\\', &escaped[at..]) {
        text.extend_from_slice(&escaped[at..at + found]);
        at += found;
        let one = |at: usize| match escaped.get(at + 1) {
            Some(b'u') => 6,
            _ => 2,
        };
        let mut end = at + one(at);
        // Two escapes may form one character.
        let unit = escaped.get(at + 2..at + 4).unwrap_or_default().to_ascii_lowercase();
        if one(at) == 6 && matches!(unit.as_slice(), b"d8" | b"d9" | b"da" | b"db") {
            end += 6;
        }
        let end = end.min(escaped.len());
        text.extend_from_slice(unescape(&escaped[at..end]).as_bytes());
        steps.push((text.len(), end));
        at = end;
    }
    text.extend_from_slice(&escaped[at..]);
    (text, steps)
}

#[cfg(test)]
mod tests {
    use super::{Json, TraceBody};
    use crate::json::unescape;

    #[test]
    fn parts_of_escaped_text_are_found_in_the_bytes() {
        let element = br#"{"text":"{\"a\":[\"\u00e9\\n\",{\"b\":\"\ud83d\ude00 \\\"x\\\"\"}]}"}"#;
        let value = Json::parse(element).unwrap().get("text").unwrap();
        let body = TraceBody::new(element, 100, value);
        let inside = body.json().unwrap().get("a").unwrap().items().nth(1).unwrap();
        let span = body.span(inside.bytes());
        let from = (span.offset - 100) as usize;
        let escaped = &element[from..from + span.length as usize];
        assert_eq!(unescape(escaped).as_bytes(), inside.bytes());
        assert!(escaped.starts_with(br#"{\"b\""#) && escaped.ends_with(b"}"), "{escaped:?}");
    }

    #[test]
    fn plain_values_keep_their_offsets() {
        let element = br#"{"text": {"a":1}}"#;
        let body = TraceBody::new(element, 7, Json::parse(element).unwrap().get("text").unwrap());
        let one = body.json().unwrap().get("a").unwrap();
        assert_eq!(body.span(one.bytes()).offset, 7 + 14);
    }

    #[test]
    fn broken_escapes_do_no_harm() {
        for text in [r#""a\u12""#, r#""\ud83d""#, r#""\ud83dxx\u""#, r#""é\\""#] {
            if let Some(value) = Json::parse(text.as_bytes()) {
                let body = TraceBody::new(text.as_bytes(), 0, value);
                let span = body.span(body.text());
                assert_eq!(span.length as usize, text.len() - 2, "{text}");
            }
        }
    }
}
