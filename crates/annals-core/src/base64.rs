//! Base64 in JSON.

/// Bytes of base64, with or without padding, in either alphabet; `None` for anything else.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b'=') {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::from_base64;

    #[test]
    fn base64_is_read_as_it_is_written() {
        assert_eq!(from_base64(b"aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(from_base64(b"aGVs\nbG8"), Some(b"hello".to_vec()));
        assert_eq!(from_base64(b"a b*c"), None);
        assert_eq!(from_base64(b""), Some(Vec::new()));
    }
}
