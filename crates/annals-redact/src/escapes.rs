//! Reads `\u0041` and HTML's entities as the characters they represent: raw views contain tokens that way.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// A text without such escapes, and where each of its bytes comes from.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    origins: Vec<usize>,
}

static STARTS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["\\u00", "&quot;"].map(Finder::new));

const ENTITIES: &[(&[u8], &[u8])] = &[
    (b"&quot;", b"\""),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&#39;", b"'"),
    (b"&#34;", b"\""),
    (b"&#61;", b"="),
];

impl Decoded {
    /// None if there is nothing to decode, which is the common case.
    pub(super) fn of(text: &[u8]) -> Option<Decoded> {
        let first = STARTS.iter().filter_map(|start| start.find(text)).min()?;
        let mut decoded = Decoded { bytes: text[..first].to_vec(), origins: (0..first).collect() };
        let mut at = first;
        while let Some(byte) = text.get(at) {
            let (length, replaced) = match byte {
                b'\\' => escape(&text[at..]),
                b'&' => entity(&text[at..]),
                _ => None,
            }
            .unwrap_or((1, [*byte, 0]));
            let kept = if replaced[1] == 0 { 1 } else { 2 };
            decoded.bytes.extend(&replaced[..kept]);
            decoded.origins.extend(std::iter::repeat_n(at, kept));
            at += length;
        }
        decoded.origins.push(text.len());
        (decoded.bytes.len() < text.len()).then_some(decoded)
    }

    /// The same range in the original text.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        self.origins[range.start]..self.origins[range.end]
    }
}

/// The length of an escape, and the printable character it represents. A quote stays escaped.
fn escape(rest: &[u8]) -> Option<(usize, [u8; 2])> {
    let digits = std::str::from_utf8(rest.strip_prefix(b"\\u00")?.get(..2)?).ok()?;
    let byte = u8::from_str_radix(digits, 16).ok().filter(|byte| (b' '..=b'~').contains(byte))?;
    let quoted = matches!(byte, b'"' | b'\\');
    Some((6, if quoted { [b'\\', byte] } else { [byte, 0] }))
}

fn entity(rest: &[u8]) -> Option<(usize, [u8; 2])> {
    let (entity, letter) = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity))?;
    Some((entity.len(), [letter[0], 0]))
}
