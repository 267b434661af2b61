//! Characters that change what a reader sees without being seen: every output makes them visible.

/// Control characters, and those that reverse the direction of text and so hide what it says.
pub fn is_hidden(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || letter.is_control()
}

/// Escapes them in JSON, where they can only be part of a string: parsers read them back unchanged.
pub fn visible_json(json: Vec<u8>) -> Vec<u8> {
    // DEL, or the first byte of U+0080–U+009F and of U+2000–U+2FFF.
    if !json.iter().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xe2)) {
        return json;
    }
    let Ok(text) = std::str::from_utf8(&json) else { return json };
    let is_shown = |letter: char| !is_hidden(letter) || letter.is_ascii() && letter != '\u{7f}';
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_shown(letter) {
            escaped.push(letter);
        } else {
            escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
        }
    }
    escaped.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::visible_json;

    #[test]
    fn hidden_characters_are_escaped_in_json() {
        for hidden in ["\u{7f}", "\u{9b}31m", "\u{202e}", "\u{2069}", "\u{200e}", "\u{1b}["] {
            let text = format!("é … {hidden} x");
            let written = visible_json(serde_json::to_vec(&text).unwrap());
            let shown = std::str::from_utf8(&written).unwrap();
            assert!(!shown.contains(hidden) && shown.contains("é … \\u"), "{shown}");
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text);
        }
        assert_eq!(visible_json(b"{\n  \"a\": 1\n}".to_vec()), b"{\n  \"a\": 1\n}");
    }
}
