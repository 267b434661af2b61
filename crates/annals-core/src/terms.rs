//! The tokenizer of search: splits texts into terms, for the index and for queries alike.

use std::ops::Range;

use serde_json::Value;

use super::compose::{composed, is_mark};

/// Longer words are data, not language: nobody types them, and indexing them would take more space than the text.
pub const LONGEST_TERM: usize = 64;
/// Only the start of a longer text is indexed.
pub const LONGEST_TEXT: usize = 256 << 10;

/// Prefixes of terms that are not words of a text: the name of a tool, a model, the last component of a path.
pub const TOOL_MARK: &[u8] = b"\x01t";
pub const MODEL_MARK: &[u8] = b"\x01m";
pub const FILE_MARK: &[u8] = b"\x01f";
/// The prefix of terms that appear only within secrets: only those who may see secrets search for them.
pub const SECRET_MARK: &[u8] = b"\x01s";

/// Emits every term of a text, in order and with repetitions: words in lower case, the parts of `snake_case` and
/// `camelCase`, and pairs of adjacent characters in scripts without spaces.
pub fn each_term(text: &str, emit: impl FnMut(&[u8])) {
    tokenize(text, Word::default(), emit);
}

/// The same without the parts of words: a search for `GitHub` does not mean two words.
pub fn each_whole_term(text: &str, emit: impl FnMut(&[u8])) {
    tokenize(text, Word { undivided: true, ..Word::default() }, emit);
}

fn tokenize(text: &str, mut word: Word, mut emit: impl FnMut(&[u8])) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if CLASSES[usize::from(byte)] == SEPARATOR {
            at = if byte == ESCAPE { after_colour(bytes, at + 1) } else { at + 1 };
            continue;
        }
        let start = at;
        let mut classes = 0;
        for byte in &bytes[start..] {
            let class = CLASSES[usize::from(*byte)];
            if class == SEPARATOR {
                break;
            }
            classes |= class;
            at += 1;
        }
        let escaped = start > 0 && bytes[start - 1] == b'\\';
        if escaped && &bytes[start..at] == b"u001b" {
            at = after_colour(bytes, at);
            continue;
        }
        each_term_of_run(text, start..at, classes, &mut word, &mut emit);
        // In JSON inside a text, a line break is two characters: the visible word begins after them. It may also be
        // part of a path, so both are terms.
        if escaped && !word.undivided && at > start + 1 && matches!(byte, b'n' | b't' | b'r') {
            each_term_of_run(text, start + 1..at, classes, &mut word, &mut emit);
        }
    }
}

/// The offset after a colour sequence such as `[31m`.
fn after_colour(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) != Some(&b'[') {
        return at;
    }
    let parameters = bytes[at + 1..].iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    let end = at + 1 + parameters;
    if bytes.get(end).is_some_and(u8::is_ascii_alphabetic) { end + 1 } else { at }
}

/// A run without separators.
fn each_term_of_run(
    text: &str,
    run: Range<usize>,
    classes: u8,
    word: &mut Word,
    emit: &mut impl FnMut(&[u8]),
) {
    match &text.as_bytes()[run.clone()] {
        // Nearly every word: lower case and digits, used as it is.
        plain if classes == PLAIN => {
            if plain.len() <= LONGEST_TERM {
                emit(plain);
            }
        }
        mixed if classes & FOREIGN == 0 => each_ascii_term(mixed, word.undivided, emit),
        _ => each_foreign_term(&text[run], word, emit),
    }
}

/// The same as pushing every byte into a word, for a run of letters, digits and underscores.
fn each_ascii_term(run: &[u8], undivided: bool, emit: &mut impl FnMut(&[u8])) {
    let mut letters = [0; LONGEST_TERM];
    let Some(letters) = letters.get_mut(..run.len()) else { return };
    letters.copy_from_slice(run);
    letters.make_ascii_lowercase();
    let whole = trimmed(letters);
    if whole.is_empty() {
        return;
    }
    emit(whole);
    // A bit for every byte that a part starts with.
    let (mut starts, mut before) = (0_u64, SEPARATOR);
    for (at, byte) in run.iter().enumerate() {
        let class = CLASSES[usize::from(*byte)];
        let is_start = before == PLAIN && class == CAPITAL || before == UNDERSCORE;
        starts |= u64::from(is_start) << at;
        before = class;
    }
    if starts == 0 || undivided {
        return;
    }
    let mut start = 0;
    while start < letters.len() {
        let end = if starts == 0 { letters.len() } else { starts.trailing_zeros() as usize };
        starts &= starts.wrapping_sub(1);
        let part = trimmed(&letters[start..end]);
        if part.len() > 1 && part.len() < whole.len() {
            emit(part);
        }
        start = end;
    }
}

/// A run with multi-byte characters; not all of them are parts of words.
fn each_foreign_term(run: &str, word: &mut Word, emit: &mut impl FnMut(&[u8])) {
    // Some systems write an accent after its letter.
    let run = composed(run);
    let mut letters = run.chars().filter(|letter| !is_mark(*letter)).peekable();
    // The previous character, within a script without spaces.
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        if is_unspaced(letter) {
            word.end(emit);
            let mut pair = [0; 8];
            let first = before.map_or(0, |before| before.encode_utf8(&mut pair).len());
            let second = letter.encode_utf8(&mut pair[first..]).len();
            // A single character is a word too, unless another one follows.
            if before.is_some() || !letters.peek().copied().is_some_and(is_unspaced) {
                emit(&pair[..first + second]);
            }
            // The last character starts no pair, and can be searched for alone.
            if before.is_some() && !word.undivided && !letters.peek().copied().is_some_and(is_unspaced) {
                emit(&pair[first..first + second]);
            }
            before = Some(letter);
            continue;
        }
        before = None;
        match u8::try_from(letter).ok().filter(u8::is_ascii) {
            Some(byte) => word.push_ascii(byte),
            None if letter.is_alphanumeric() => word.push(letter),
            None => {
                word.end(emit);
                if is_pictogram(letter) {
                    emit(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
    word.end(emit);
}

const ESCAPE: u8 = 0x1b;
const SEPARATOR: u8 = 0;
/// Lower-case letters and digits.
const PLAIN: u8 = 1;
const CAPITAL: u8 = 2;
const UNDERSCORE: u8 = 4;
const FOREIGN: u8 = 8;

const CLASSES: [u8; 256] = {
    let mut classes = [SEPARATOR; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => PLAIN,
            b'A'..=b'Z' => CAPITAL,
            b'_' => UNDERSCORE,
            0x80..=0xff => FOREIGN,
            _ => SEPARATOR,
        };
        byte += 1;
    }
    classes
};

/// Han, kana, hangul, Thai and the like: words are not separated by spaces.
pub fn is_unspaced(letter: char) -> bool {
    matches!(letter as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3134F)
}

/// Emoji and other symbols that people search for; not modifiers that only change the look of another one.
fn is_pictogram(letter: char) -> bool {
    matches!(letter as u32, 0x203C | 0x2049 | 0x2139 | 0x231A..=0x231B | 0x2328 | 0x23CF | 0x23E9..=0x23FA
        | 0x2600..=0x27BF | 0x2B1B..=0x2B1C | 0x2B50 | 0x2B55 | 0x1F000..=0x1F3FA | 0x1F400..=0x1FAFF)
}

/// A word in progress, with the offsets of its parts.
#[derive(Default)]
struct Word {
    letters: Vec<u8>,
    starts: Vec<usize>,
    small_before: bool,
    too_long: bool,
    undivided: bool,
}

impl Word {
    fn push_ascii(&mut self, byte: u8) {
        if self.letters.len() >= LONGEST_TERM {
            self.too_long = true;
            return;
        }
        if byte.is_ascii_uppercase() && self.small_before {
            self.starts.push(self.letters.len());
        }
        self.small_before = byte.is_ascii_lowercase() || byte.is_ascii_digit();
        self.letters.push(byte.to_ascii_lowercase());
        if byte == b'_' {
            self.starts.push(self.letters.len());
        }
    }

    fn push(&mut self, letter: char) {
        self.small_before = letter.is_lowercase();
        for letter in letter.to_lowercase() {
            if self.letters.len() + letter.len_utf8() > LONGEST_TERM {
                self.too_long = true;
                return;
            }
            let mut bytes = [0; 4];
            self.letters.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
        }
    }

    fn end(&mut self, emit: &mut impl FnMut(&[u8])) {
        if self.letters.is_empty() {
            return;
        }
        if !self.too_long {
            let whole = trimmed(&self.letters);
            if !whole.is_empty() {
                emit(whole);
            }
            if !self.starts.is_empty() && !self.undivided {
                let starts = std::iter::once(0).chain(self.starts.iter().copied());
                let ends = self.starts.iter().copied().chain([self.letters.len()]);
                for (start, end) in starts.zip(ends) {
                    let part = trimmed(&self.letters[start..end]);
                    if part.len() > 1 && part.len() < whole.len() {
                        emit(part);
                    }
                }
            }
        }
        self.letters.clear();
        self.starts.clear();
        (self.small_before, self.too_long) = (false, false);
    }
}

fn trimmed(word: &[u8]) -> &[u8] {
    let start = word.iter().position(|byte| *byte != b'_').unwrap_or(word.len());
    let end = word.iter().rposition(|byte| *byte != b'_').map_or(start, |last| last + 1);
    &word[start..end]
}

/// Emits every text in a value. Field names describe the tool, not the content, and are skipped.
pub fn each_text(value: &Value, emit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each_embedded_text(text, emit),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, emit)),
        Value::Object(fields) => fields.values().for_each(|field| each_text(field, emit)),
        Value::Number(number) => emit(&number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Emits a text, or the texts in it if it is JSON: some clients store inputs and outputs that way, with escaped line
/// breaks.
pub fn each_embedded_text(text: &str, emit: &mut dyn FnMut(&str)) {
    let document = Some(text).filter(|text| text.starts_with(['{', '[']));
    match document.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        Some(document) => each_text(&document, emit),
        None => emit(text),
    }
}

/// The distinct terms of a passage, packed: each is preceded by its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    packed: Vec<u8>,
    /// Number of terms, including repeated ones.
    pub length: u32,
}

impl Terms {
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.packed.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (term, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(term)
        })
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }
}

/// Collects distinct terms, passage after passage, and reuses its memory. Unlike a table of `hashbrown`, it is not cleared
/// between passages: what an earlier one left is free, since it has another number.
#[derive(Default)]
pub struct TermSet {
    /// Hashes of the current passage are tagged with its number.
    slots: Vec<(u32, u64)>,
    /// Number of slots in use for the current passage: few for most, so that they stay in the nearest cache.
    size: usize,
    passage: u32,
    hashes: Vec<u64>,
    terms: Terms,
}

const FEWEST_SLOTS: usize = 1024;

impl TermSet {
    pub fn add_text(&mut self, text: &str) {
        each_term(start(text), |term| {
            self.terms.length += 1;
            self.add(term);
        });
    }

    /// Adds the terms of a text with secrets whose visible part was added before: what is new is within a secret.
    pub fn add_secrets_of(&mut self, text: &str) {
        let mut marked = SECRET_MARK.to_vec();
        each_term(start(text), |term| {
            if !self.contains(hash_term(term)) {
                marked.truncate(SECRET_MARK.len());
                marked.extend_from_slice(term);
                self.add(&marked);
            }
        });
    }

    /// Adds a term that is not a word of a text, such as the name of a tool.
    pub fn add(&mut self, term: &[u8]) {
        if term.is_empty() || term.len() > usize::from(u8::MAX) {
            return;
        }
        if (self.hashes.len() + 1) * 2 > self.size {
            self.grow();
        }
        let hash = hash_term(term);
        // Two terms with the same 64-bit hash would be merged, which does not happen in practice.
        if !self.insert(hash) {
            return;
        }
        self.hashes.push(hash);
        self.terms.packed.push(term.len() as u8);
        self.terms.packed.extend_from_slice(term);
    }

    fn contains(&self, hash: u64) -> bool {
        let Some(mask) = self.size.checked_sub(1) else { return false };
        let mut at = hash as usize & mask;
        while self.slots[at].0 == self.passage {
            if self.slots[at].1 == hash {
                return true;
            }
            at = (at + 1) & mask;
        }
        false
    }

    /// Returns false if it is already there.
    fn insert(&mut self, hash: u64) -> bool {
        let mask = self.size - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].0 == self.passage {
            if self.slots[at].1 == hash {
                return false;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = (self.passage, hash);
        true
    }

    /// Returns the terms so far and starts the next passage.
    pub fn take(&mut self) -> Terms {
        self.hashes.clear();
        self.size = self.size.min(FEWEST_SLOTS);
        self.forget();
        let terms = Terms { packed: self.terms.packed.as_slice().into(), length: self.terms.length };
        self.terms.packed.clear();
        self.terms.length = 0;
        terms
    }

    /// A new number empties all slots.
    fn forget(&mut self) {
        self.passage = self.passage.wrapping_add(1);
        if self.passage == 0 {
            self.slots.fill((0, 0));
            self.passage = 1;
        }
    }

    fn grow(&mut self) {
        self.size = (self.size * 2).max(FEWEST_SLOTS);
        if self.slots.len() < self.size {
            self.slots.resize(self.size, (0, 0));
        }
        self.forget();
        let hashes = std::mem::take(&mut self.hashes);
        for hash in &hashes {
            self.insert(*hash);
        }
        self.hashes = hashes;
    }
}

fn start(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Hashes eight bytes at a time: terms are short, and a general hash costs more than all the rest.
pub fn hash_term(term: &[u8]) -> u64 {
    const FOLD: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |hash: u64, bytes: u64| {
        let mixed = u128::from(hash ^ bytes) * u128::from(FOLD | 1 << 63);
        (mixed as u64) ^ (mixed >> 64) as u64
    };
    let mut hash = (term.len() as u64).wrapping_mul(FOLD);
    let mut rest = term;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        hash = fold(hash, u64::from_le_bytes(*chunk));
        rest = after;
    }
    // The length is part of the hash, so the last bytes may be read twice; copying them would cost more.
    match (rest.first_chunk::<4>(), rest.last_chunk::<4>(), rest) {
        (Some(first), Some(last), _) => {
            let [first, last] = [first, last].map(|four| u64::from(u32::from_le_bytes(*four)));
            fold(hash, first | last << 32)
        }
        (_, _, []) => hash,
        (_, _, [first, ..]) => {
            let (middle, last) = (rest[rest.len() / 2], rest[rest.len() - 1]);
            fold(hash, u64::from(*first) | u64::from(middle) << 8 | u64::from(last) << 16)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TermSet, Word, each_ascii_term, each_term, hash_term};

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        each_term(text, |term| terms.push(String::from_utf8(term.to_vec()).unwrap()));
        terms
    }

    /// Line fingerprints in every archive depend on these.
    #[test]
    fn hashes_on_disk_stay() {
        let hashes = [0, 2_589_744_547_436_673_585, 6_877_956_767_381_556_566, 1_364_079_601_130_989_666];
        assert_eq!([&b""[..], b"a", b"alpha", b"a longer term than eight"].map(hash_term), hashes);
    }

    #[test]
    fn texts_become_terms() {
        assert_eq!(terms("Fix the FLAKY login-test!"), ["fix", "the", "flaky", "login", "test"]);
        assert_eq!(terms("src/foo.rs"), ["src", "foo", "rs"]);
        assert_eq!(terms("parse_line"), ["parse_line", "parse", "line"]);
        assert_eq!(terms("getUserName"), ["getusername", "get", "user", "name"]);
        assert_eq!(terms("ECONNRESET 404 v1.2"), ["econnreset", "404", "v1", "2"]);
        assert_eq!(terms("__init__ _ x_1"), ["init", "x_1"]);
        assert_eq!(terms("Größe ÜBER naïve"), ["größe", "über", "naïve"]);
        assert_eq!(terms("修复登录"), ["修复", "复登", "登录", "录"]);
        assert_eq!(terms("a修b"), ["a", "修", "b"]);
        assert_eq!(terms("cafe\u{301} Gro\u{308}ße x\u{301}y"), ["café", "größe", "xy"]);
        assert_eq!(terms(&"x".repeat(65)), Vec::<String>::new());
        assert_eq!(terms(&"x".repeat(64)), ["x".repeat(64)]);
        assert_eq!(terms("\u{0}\u{1b}[31m \u{fffd}"), Vec::<String>::new());
    }

    proptest::proptest! {
        /// The short way for letters, digits and underscores agrees with the general one.
        #[test]
        fn ascii_runs_are_split_like_any_word(run in "[a-cA-C0-1_]{1,66}", undivided in proptest::bool::ANY) {
            let (mut short, mut general) = (Vec::new(), Vec::new());
            each_ascii_term(run.as_bytes(), undivided, &mut |term| short.push(term.to_vec()));
            let mut word = Word { undivided, ..Word::default() };
            run.bytes().for_each(|byte| word.push_ascii(byte));
            word.end(&mut |term| general.push(term.to_vec()));
            proptest::prop_assert_eq!(short, general);
        }
    }

    #[test]
    fn terms_are_visible_words() {
        assert_eq!(terms("\u{1b}[1;31merror\u{1b}[0m: no"), ["error", "no"]);
        assert_eq!(terms(r"\u001b[31merror\u001b[0m"), ["error"]);
        assert_eq!(terms("\u{1b}[ \u{1b}]x [31m"), ["x", "31m"]);
        assert_eq!(terms(r#"{"a":"one\ntwo\tthree"}"#), ["a", "one", "ntwo", "two", "tthree", "three"]);
        assert_eq!(terms(r"     7\tlet gauge"), ["7", "tlet", "let", "gauge"]);
        assert_eq!(terms(r"C:\new"), ["c", "new", "ew"]);
        assert_eq!(terms("     7→let gauge"), ["7", "let", "gauge"]);
        assert_eq!(terms("done 🎉✅ 👍🏽!"), ["done", "🎉", "✅", "👍"]);
    }

    #[test]
    fn hashes_differ() {
        let terms = (0..20_000).map(|number: u32| format!("{}{number:x}", "x".repeat(number as usize % 11)));
        let hashes: std::collections::HashSet<u64> = terms.map(|term| hash_term(term.as_bytes())).collect();
        assert_eq!(hashes.len(), 20_000);
    }

    #[test]
    fn terms_of_secrets_are_marked_unless_they_are_visible() {
        let mut set = TermSet::default();
        set.add_text("user ada -p • end");
        set.add_secrets_of("user ada -pHunter22 end user");
        let terms = set.take();
        let texts: Vec<String> =
            terms.iter().map(|term| String::from_utf8_lossy(term).replace('\u{1}', "^")).collect();
        assert_eq!(texts, ["user", "ada", "p", "end", "^sphunter22", "^shunter22"]);
    }

    #[test]
    fn each_passage_has_its_own_distinct_terms() {
        let mut set = TermSet::default();
        for passage in 0..3 {
            set.add_text("one two one");
            for number in 0..5_000 {
                set.add(format!("{passage} {number}").as_bytes());
                set.add(format!("{passage} {number}").as_bytes());
            }
            let terms = set.take();
            assert_eq!((terms.length, terms.iter().count()), (3, 5_002));
            assert_eq!(terms.iter().next(), Some(&b"one"[..]));
        }
    }
}
