//! A 64-bit key derived from content: equal content in two files has the same key.

use serde::{Deserialize, Serialize};

/// The first 8 bytes of a blake3 hash. Stored as SQLite's native 64-bit integer, shown as 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentKey(i64);

/// Letters of a long text that are compared.
const COMPARED: usize = 4_096;

impl ContentKey {
    /// Parts are prefixed with their lengths, so that ("ab", "c") and ("a", "bc") differ.
    pub fn of(parts: &[&[u8]]) -> ContentKey {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        ContentKey(i64::from_le_bytes(first))
    }

    /// The next link of a chain: equal only if everything before it was equal too.
    pub fn then(self, bytes: &[u8]) -> ContentKey {
        ContentKey::of(&[&self.0.to_le_bytes(), bytes])
    }

    /// Equal for texts that differ only in case, spacing and signs, as a prompt and the client's note of it do.
    pub fn of_words(text: &str) -> ContentKey {
        let folded = |wanted: fn(char) -> bool| -> String {
            text.chars().filter(|c| wanted(*c)).take(COMPARED).flat_map(char::to_lowercase).collect()
        };
        let words = folded(char::is_alphanumeric);
        let words = if words.is_empty() { folded(|c| !c.is_whitespace()) } else { words };
        ContentKey::of(&[b"words", words.as_bytes()])
    }

    pub fn from_stored(stored: i64) -> ContentKey {
        ContentKey(stored)
    }

    pub fn stored(self) -> i64 {
        self.0
    }

    pub fn hex(self) -> String {
        format!("{:016x}", self.0 as u64)
    }

    pub fn from_hex(hex: &str) -> Option<ContentKey> {
        (hex.len() == 16)
            .then(|| u64::from_str_radix(hex, 16).ok().map(|bits| ContentKey(bits as i64)))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::ContentKey;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(ContentKey::of(&[b"ab", b"c"]), ContentKey::of(&[b"a", b"bc"]));
        assert_eq!(ContentKey::of(&[b"a"]).then(b"x"), ContentKey::of(&[b"a"]).then(b"x"));
        assert_ne!(ContentKey::of(&[b"a"]).then(b"x"), ContentKey::of(&[b"b"]).then(b"x"));
    }

    #[test]
    fn words_are_equal_however_they_are_spaced() {
        let words = ContentKey::of_words("Oil the gears, please");
        assert_eq!(words, ContentKey::of_words("oil the\n gears please\n"));
        assert_ne!(words, ContentKey::of_words("oil the gear, please"));
        assert_ne!(ContentKey::of_words("???"), ContentKey::of_words("!"));
    }

    /// Rows of every archive contain these values, and copies are recognised by them.
    #[test]
    fn values_on_disk_stay() {
        let keys =
            [ContentKey::of(&[b"a"]), ContentKey::of(&[b"a", b"b"]), ContentKey::of(&[b"a"]).then(b"b")];
        assert_eq!(keys.map(ContentKey::hex), ["ae4ce19078b4fe57", "57a04113bc387223", "4a264f66593b4a54"]);
    }

    #[test]
    fn hex_round_trips_and_refuses_other_lengths() {
        let key = ContentKey::of(&[b"annals"]);
        assert_eq!(ContentKey::from_hex(&key.hex()), Some(key));
        assert_eq!(ContentKey::from_hex("12"), None);
        assert_eq!(ContentKey::from_hex("zzzzzzzzzzzzzzzz"), None);
    }
}
