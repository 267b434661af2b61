//! Bytes as text: base64, hexadecimal digits, URL encoding.

use std::sync::LazyLock;

use data_encoding::{Encoding, HEXLOWER, Specification};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// As clients write it: in either alphabet, wrapped or not, with or without padding.
static BASE64: LazyLock<Option<Encoding>> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    specification.translate.from.push_str("-_");
    specification.translate.to.push_str("+/");
    specification.ignore.push_str(" \t\r\n\x0c=");
    specification.check_trailing_bits = false;
    specification.encoding().ok()
});

/// Decodes base64; `None` for anything else.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.as_ref()?.decode(text).ok()
}

/// With padding, in the standard alphabet.
pub fn to_base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

pub fn to_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

pub fn from_hex(digits: &str) -> Option<Vec<u8>> {
    HEXLOWER.decode(digits.as_bytes()).ok()
}

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Percent-encodes a value for a URL.
pub fn in_address(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The value that is percent-encoded in a URL; `None` if it is not UTF-8.
pub fn from_address(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::{from_address, from_base64, from_hex, in_address, to_hex};

    #[test]
    fn base64_is_read_as_it_is_written() {
        assert_eq!(from_base64(b"aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(from_base64(b"aGVs\nbG8"), Some(b"hello".to_vec()));
        assert_eq!(from_base64(b"-_8="), from_base64(b"+/8"));
        assert_eq!(from_base64(b"a b*c"), None);
        assert_eq!(from_base64(b""), Some(Vec::new()));
    }

    #[test]
    fn digits_read_back() {
        assert_eq!((to_hex(&[0, 255]), from_hex("00ff")), ("00ff".to_owned(), Some(vec![0, 255])));
        assert_eq!([from_hex("0"), from_hex("zz")], [None, None]);
    }

    #[test]
    fn nothing_in_a_value_means_anything_to_an_address() {
        assert_eq!(in_address("a/b?c&d=é .~"), "a%2Fb%3Fc%26d%3D%C3%A9%20.~");
        assert_eq!(from_address("a%2Fb%3Fc%26d%3D%C3%A9%20.~").as_deref(), Some("a/b?c&d=é .~"));
        assert_eq!(from_address("%ff"), None);
    }
}
