//! The forms in which a text appears in files: as it is, escaped, and encoded.

use std::collections::BTreeSet;

use annals_core::{in_address, to_base64, to_hex};

/// Shorter forms appear everywhere by chance.
pub const SHORTEST: usize = 6;
/// Escapes within escapes: JSON in a string of JSON in a string of JSON.
const DEPTH: usize = 3;

/// All forms of a text, each once.
pub fn forms_of(text: &str) -> Vec<Vec<u8>> {
    let mut forms: BTreeSet<Vec<u8>> = BTreeSet::new();
    let utf16_le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let mut written = vec![text.to_owned()];
    let html = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    written.push(html);
    written.push(text.replace('/', "\\/"));
    for is_upper in [false, true] {
        written.push(escaped(text, is_upper, |letter| !letter.is_ascii()));
        written.push(escaped(text, is_upper, |_| true));
    }
    for mut form in written {
        forms.insert(form.clone().into_bytes());
        for _ in 0..DEPTH {
            form = in_json(&form);
            forms.insert(form.clone().into_bytes());
        }
    }
    for bytes in [text.as_bytes(), &utf16_le, &utf16_be] {
        forms.insert(bytes.to_vec());
        forms.insert(to_hex(bytes).into_bytes());
        forms.insert(to_hex(bytes).to_uppercase().into_bytes());
        for form in in_base64(bytes) {
            forms.insert(form.replace('+', "-").replace('/', "_").into_bytes());
            forms.insert(form.into_bytes());
        }
    }
    forms.insert(in_address(text).into_bytes());
    forms.into_iter().filter(|form| form.len() >= SHORTEST).collect()
}

/// A text as it is in a string of JSON.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A text with `\uXXXX` in place of some letters, and the escapes of JSON in place of others.
fn escaped(text: &str, is_upper: bool, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if is_escaped(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let digits = if is_upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                escaped.push_str(&digits);
            }
        } else {
            escaped.push_str(&in_json(&letter.to_string()));
        }
    }
    escaped
}

/// The letters of Base64 that depend on these bytes alone, at each of the three offsets they may have.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    (0..3)
        .map(|offset| {
            let shifted = [&[0; 2][..offset], bytes].concat();
            let letters = to_base64(&shifted);
            let first = (offset * 8).div_ceil(6);
            let last = shifted.len() * 8 / 6;
            letters.get(first..last).unwrap_or_default().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_in_every_form() {
        let forms = forms_of("zürich \"4711\"");
        let has = |form: &str| forms.contains(&form.as_bytes().to_vec());
        assert!(has("zürich \"4711\"") && has("zürich \\\"4711\\\"") && has("z\\u00fcrich \\\"4711\\\""));
        assert!(has("z\\u00FCrich \\\"4711\\\"") && has("z\\\\u00fcrich \\\\\\\"4711\\\\\\\""));
        assert!(has("7ac3bc72696368202234373131 22".replace(' ', "").as_str()));
        for before in ["", "x", "xy"] {
            let whole = to_base64(format!("{before}zürich \"4711\" and more").as_bytes());
            assert!(
                forms.iter().any(|form| whole.contains(std::str::from_utf8(form).unwrap_or("?"))),
                "{whole}"
            );
        }
    }
}
