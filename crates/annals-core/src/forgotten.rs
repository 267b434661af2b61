//! What was forgotten, by hash: recognises it in bytes wherever they come from, without having its text.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Takes the place of every byte of a forgotten line or document: white space in JSON that no client writes alone.
pub const BLANK: u8 = b'\t';
/// Takes the place of every byte of a forgotten text inside of something that is kept.
pub const MASK: u8 = b'*';
/// What the path of a forgotten file starts with; a hash follows.
pub const FORGOTTEN_FILES: &str = "forgotten/";
/// Shorter lines and documents say too little to be recognised in other files.
const DISTINCTIVE: usize = 48;

/// The first half of a keyed blake3 hash.
pub type ForgottenHash = [u8; 16];

/// Where a line or document is recognised. The numbers are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// In every file, with these ids.
    Everywhere = 0,
    /// In every file, also with other ids in it, as forks and resumed sessions repeat it.
    WithAnyIds = 1,
    /// In a file with this name.
    OneFile = 2,
}

/// A text that is masked wherever it appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ForgottenText {
    pub length: usize,
    /// Found by this hash, which rolls over the bytes, and confirmed by the other.
    pub rolling: u64,
    pub hash: ForgottenHash,
}

/// What a line is recognised by later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It has a time and content of its own.
    Timed,
    /// It has content of its own.
    Content,
    /// Anything else of a file that is forgotten as a whole.
    Other,
}

/// The hashes of everything that was forgotten.
#[derive(Debug, Clone, Default)]
pub struct Forgotten {
    key: [u8; 32],
    lines: HashSet<ForgottenHash>,
    lengths: HashSet<u64>,
    texts: BTreeMap<usize, TextsOfLength>,
}

#[derive(Debug, Clone)]
struct TextsOfLength {
    /// The weight of the byte that leaves the window.
    weight: u64,
    filter: Vec<u64>,
    texts: HashSet<(u64, ForgottenHash)>,
}

const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
/// Bits of the filter that most windows end at.
const FILTER_BITS: u32 = 14;

impl Forgotten {
    /// The key is that of the archive, so that hashes mean nothing elsewhere.
    pub fn new(key: [u8; 32]) -> Forgotten {
        Forgotten { key, ..Forgotten::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.texts.is_empty()
    }

    pub fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    pub fn add_line(&mut self, length: u64, hash: ForgottenHash) {
        self.lengths.insert(length);
        self.lines.insert(hash);
    }

    pub fn add_text(&mut self, text: ForgottenText) {
        let of_length = self.texts.entry(text.length).or_insert_with(|| TextsOfLength {
            weight: (1..text.length).fold(1, |weight, _| weight.wrapping_mul(BASE)),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
            texts: HashSet::new(),
        });
        let (word, bit) = filter_bit(text.rolling);
        of_length.filter[word] |= bit;
        of_length.texts.insert((text.rolling, text.hash));
    }

    /// What the path of a forgotten file becomes.
    pub fn file_name(&self, path: &str) -> String {
        use std::fmt::Write;
        let hash = self.hash(&[b"path", path.as_bytes()]);
        hash.iter().take(12).fold(FORGOTTEN_FILES.to_owned(), |mut name, byte| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        })
    }

    /// The hash that a line or document of a file is to be recognised by.
    pub fn hash_of_line(&self, path: &str, line: &[u8], kind: LineKind) -> ForgottenHash {
        let reach = match kind {
            LineKind::Timed if line.len() >= DISTINCTIVE => Reach::WithAnyIds,
            LineKind::Content if line.len() >= DISTINCTIVE => Reach::Everywhere,
            LineKind::Timed | LineKind::Content | LineKind::Other => Reach::OneFile,
        };
        self.reach_hash(path, line, reach)
    }

    /// Whether a line or document of a file was forgotten.
    pub fn is_forgotten(&self, path: &str, line: &[u8]) -> bool {
        if line.is_empty() || !self.lengths.contains(&(line.len() as u64)) {
            return false;
        }
        [Reach::WithAnyIds, Reach::OneFile, Reach::Everywhere]
            .into_iter()
            .any(|reach| self.lines.contains(&self.reach_hash(path, line, reach)))
    }

    /// The entry for a text.
    pub fn text(&self, bytes: &[u8]) -> ForgottenText {
        ForgottenText { length: bytes.len(), rolling: roll(bytes), hash: self.hash(&[b"text", bytes]) }
    }

    /// Emits where forgotten texts are.
    pub fn each_text(&self, bytes: &[u8], emit: &mut dyn FnMut(Range<usize>)) {
        for (length, texts) in &self.texts {
            let Some(first) = bytes.get(..*length) else { break };
            let mut rolling = roll(first);
            let mut start = 0;
            loop {
                let (word, bit) = filter_bit(rolling);
                if texts.filter[word] & bit != 0 {
                    let window = &bytes[start..start + length];
                    let is_rolling = |(known, _): &(u64, ForgottenHash)| *known == rolling;
                    if texts.texts.iter().any(is_rolling)
                        && texts.texts.contains(&(rolling, self.hash(&[b"text", window])))
                    {
                        emit(start..start + length);
                    }
                }
                let Some(next) = bytes.get(start + length) else { break };
                let gone = u64::from(bytes[start]) + 1;
                rolling = rolling
                    .wrapping_sub(gone.wrapping_mul(texts.weight))
                    .wrapping_mul(BASE)
                    .wrapping_add(u64::from(*next) + 1);
                start += 1;
            }
        }
    }

    fn reach_hash(&self, path: &str, line: &[u8], reach: Reach) -> ForgottenHash {
        let mark = [reach as u8];
        match reach {
            Reach::Everywhere => self.hash(&[&mark, line]),
            Reach::WithAnyIds => self.hash(&[&mark, &without_ids(line)]),
            Reach::OneFile => {
                let name = path.rsplit('/').next().unwrap_or(path);
                self.hash(&[&mark, name.as_bytes(), line])
            }
        }
    }

    fn hash(&self, parts: &[&[u8]]) -> ForgottenHash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        first
    }
}

fn filter_bit(rolling: u64) -> (usize, u64) {
    let bit = rolling >> (64 - FILTER_BITS);
    ((bit >> 6) as usize, 1 << (bit & 63))
}

fn roll(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |rolling: u64, byte| rolling.wrapping_mul(BASE).wrapping_add(u64::from(*byte) + 1))
}

/// The line with zeros in place of the digits of every UUID.
fn without_ids(line: &[u8]) -> Vec<u8> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    const LENGTH: usize = 36;
    let mut masked = line.to_vec();
    let mut from = 0;
    while let Some(dash) = memchr::memchr(b'-', &line[from..]).map(|at| from + at) {
        from = dash + 1;
        let Some(start) = dash.checked_sub(DASHES[0]) else { continue };
        let Some(id) = line.get(start..start + LENGTH) else { break };
        let is_id = id.iter().enumerate().all(|(at, byte)| match DASHES.contains(&at) {
            true => *byte == b'-',
            false => byte.is_ascii_hexdigit(),
        });
        if is_id {
            for (at, byte) in masked[start..start + LENGTH].iter_mut().enumerate() {
                *byte = if DASHES.contains(&at) { b'-' } else { b'0' };
            }
            from = start + LENGTH;
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        br#"{"id":"0199c2f4-6a2e-7000-8000-1234567890ab","at":"2026-03-01T10:00:00.123Z","text":"oil the gears"}"#;

    fn remembering(path: &str, kind: LineKind) -> Forgotten {
        let mut forgotten = Forgotten::new([7; 32]);
        let hash = forgotten.hash_of_line(path, LINE, kind);
        forgotten.add_line(LINE.len() as u64, hash);
        forgotten
    }

    #[test]
    fn lines_are_recognised_as_far_as_they_are_distinctive() {
        let fork = String::from_utf8_lossy(LINE).replace("1234567890ab", "ba0987654321");
        let timed = remembering("a/b.jsonl", LineKind::Timed);
        assert!(timed.is_forgotten("elsewhere", LINE) && timed.is_forgotten("elsewhere", fork.as_bytes()));
        let content = remembering("a/b.jsonl", LineKind::Content);
        assert!(content.is_forgotten("c", LINE) && !content.is_forgotten("c", fork.as_bytes()));
        let other = remembering("a/b.jsonl", LineKind::Other);
        assert!(other.is_forgotten("moved/b.jsonl", LINE) && !other.is_forgotten("a/c.jsonl", LINE));
        assert!(!timed.is_forgotten("a/b.jsonl", b"") && !timed.is_forgotten("a/b.jsonl", &LINE[1..]));
    }

    #[test]
    fn texts_are_found_at_every_offset() {
        let mut forgotten = Forgotten::new([7; 32]);
        forgotten.add_text(forgotten.text(b"gears"));
        forgotten.add_text(forgotten.text(b"oil the"));
        let mut found = Vec::new();
        forgotten.each_text(b"gears: oil the gears", &mut |range| found.push(range));
        assert_eq!(found, [0..5, 15..20, 7..14]);
    }

    #[test]
    fn hashes_on_disk_stay() {
        let forgotten = Forgotten::new([7; 32]);
        assert_eq!(forgotten.text(b"gears").rolling, roll(b"gears"));
        assert_eq!(
            without_ids(b"x-0199c2f4-6a2e-7000-8000-1234567890ab-y"),
            b"x-00000000-0000-0000-0000-000000000000-y"
        );
        assert_eq!(forgotten.file_name("a").len(), FORGOTTEN_FILES.len() + 24);
    }
}
