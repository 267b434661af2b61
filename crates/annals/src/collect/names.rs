//! File names as text and back: names that are not UTF-8 keep every byte, so that two names never collide.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Precedes the two digits of a byte that is not UTF-8.
const MARK: char = char::REPLACEMENT_CHARACTER;

/// A file name as text. Bytes that are not UTF-8, and the mark itself, are escaped as the mark and two digits.
#[cfg(unix)]
pub fn text_of(name: &OsStr) -> String {
    use std::os::unix::ffi::OsStrExt;
    if let Some(text) = name.to_str().filter(|text| !text.contains(MARK)) {
        return text.to_owned();
    }
    let mut text = String::new();
    let digits = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            text.push_str(&format!("{MARK}{byte:02x}"));
        }
    };
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                MARK => digits(&mut text, MARK.encode_utf8(&mut [0; 4]).as_bytes()),
                plain => text.push(plain),
            }
        }
        digits(&mut text, chunk.invalid());
    }
    text
}

#[cfg(not(unix))]
pub fn text_of(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// The inverse of `text_of`. Only bytes beyond ASCII are unescaped, so no separator and no dot can appear.
#[cfg(unix)]
pub fn path_of(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (plain, marked) = rest.split_at(at);
        let (mark, after) = marked.split_at(MARK.len_utf8());
        bytes.extend_from_slice(plain.as_bytes());
        let byte = after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|byte| *byte >= 0x80);
        match byte {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(mark.as_bytes()),
        }
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
pub fn path_of(text: &str) -> PathBuf {
    PathBuf::from(text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::{path_of, text_of};
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn plain_names_stay_and_digits_make_no_separator() {
        assert_eq!(text_of(OsStr::new("rollout-é.jsonl")), "rollout-é.jsonl");
        assert_eq!(text_of(OsStr::from_bytes(b"a\xffb")), "a\u{fffd}ffb");
        assert_eq!(path_of("a\u{fffd}2f\u{fffd}2e").to_str(), Some("a\u{fffd}2f\u{fffd}2e"));
        assert_eq!(path_of("a\u{fffd}").to_str(), Some("a\u{fffd}"));
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in prop::collection::vec(
            prop_oneof![1u8..=255, Just(0xef), Just(0xbf), Just(0xbd), Just(b'f')], 0..40
        )) {
            let name = OsStr::from_bytes(&name);
            let back = path_of(&text_of(name));
            prop_assert_eq!(back.as_os_str(), name);
        }
    }
}
