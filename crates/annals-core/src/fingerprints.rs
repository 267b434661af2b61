//! Fingerprints of code: lines without whitespace, and winnowed runs of words, so that formatting does not matter.

use super::hash_term;

/// Prefixes of fingerprints in the index; no word of a text begins with them.
pub const LINE_MARK: u8 = 2;
pub const GRAM_MARK: u8 = 3;

/// A fingerprint as stored in the index.
pub type FingerprintTerm = [u8; 5];

/// The fingerprint of a line, whatever its indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFingerprint {
    pub hash: u64,
    /// Characters that are not whitespace.
    pub letters: u32,
    /// The line is distinctive enough to search for: a brace is not.
    pub is_distinctive: bool,
}

/// Words per gram, and grams per window, of which the least is kept.
const GRAM: usize = 5;
const WINDOW: usize = 12;

pub fn line_fingerprint(line: &str) -> LineFingerprint {
    let (mut hash, mut letters, mut words) = (SEED, 0, 0);
    // Collected first and hashed eight at a time: every line that is read goes through here.
    let (mut gathered, mut count) = ([0_u8; GATHERED], 0);
    for chunk in line.as_bytes().chunks(GATHERED / 2) {
        for byte in chunk {
            let class = CLASSES[usize::from(*byte)];
            gathered[count] = *byte;
            count += usize::from(class & LETTER);
            words += u32::from(class >> 1);
        }
        if count > GATHERED / 2 {
            // Always after the same number of letters, so that chunk boundaries do not matter.
            hash = (hash ^ hash_term(&gathered[..GATHERED / 2])).wrapping_mul(FOLD);
            gathered.copy_within(GATHERED / 2.., 0);
            (count, letters) = (count - GATHERED / 2, letters + GATHERED / 2);
        }
    }
    hash = (hash ^ hash_term(&gathered[..count])).wrapping_mul(FOLD);
    let letters = u32::try_from(letters + count).unwrap_or(u32::MAX);
    LineFingerprint { hash: hash ^ hash >> 29, letters, is_distinctive: letters >= 6 && words >= 4 }
}

const GATHERED: usize = 512;
const LETTER: u8 = 1;

/// Whether a byte is whitespace, punctuation, or part of a word.
const CLASSES: [u8; 256] = {
    let mut classes = [LETTER; 256];
    let mut byte = 0;
    while byte < 256 {
        let at = byte as u8;
        if at.is_ascii_whitespace() {
            classes[byte] = 0;
        } else if at.is_ascii_alphanumeric() || at >= 0x80 {
            classes[byte] = LETTER | 2;
        }
        byte += 1;
    }
    classes
};

/// The distinctive lines of a text.
pub fn each_line_term(text: &str, mut emit: impl FnMut(FingerprintTerm)) {
    for line in text.lines() {
        let print = line_fingerprint(line);
        if print.is_distinctive {
            emit(print.term());
        }
    }
}

/// A quarter of the distinctive lines, always the same ones: enough for text that was only read.
pub fn each_sampled_line_term(
    lines: impl Iterator<Item = LineFingerprint>,
    mut emit: impl FnMut(FingerprintTerm),
) {
    for print in lines.filter(|print| print.is_sampled()) {
        emit(print.term());
    }
}

impl LineFingerprint {
    pub fn term(self) -> FingerprintTerm {
        term(LINE_MARK, self.hash)
    }

    pub fn is_sampled(self) -> bool {
        self.is_distinctive && (self.hash >> 40).is_multiple_of(4)
    }
}

/// Winnowed grams of a text: one of any twelve in a row, independent of what comes before.
pub fn each_gram_term(text: &str, mut emit: impl FnMut(FingerprintTerm)) {
    let mut words = [0_u64; GRAM];
    let mut count = 0;
    let mut window: std::collections::VecDeque<(usize, u64)> = std::collections::VecDeque::new();
    let mut last_emitted = None;
    each_word(text, |word| {
        words.rotate_left(1);
        words[GRAM - 1] = word;
        count += 1;
        if count < GRAM {
            return;
        }
        let gram = words.iter().fold(SEED, |hash, word| {
            let mixed = (hash ^ word).wrapping_mul(FOLD);
            mixed ^ mixed >> 31
        });
        // The front of the window is its least gram.
        while window.back().is_some_and(|(_, last)| *last >= gram) {
            window.pop_back();
        }
        window.push_back((count, gram));
        while window.front().is_some_and(|(at, _)| at + WINDOW <= count) {
            window.pop_front();
        }
        if count + 1 < GRAM + WINDOW {
            return;
        }
        if let Some((at, least)) = window.front().filter(|(at, _)| last_emitted != Some(*at)) {
            last_emitted = Some(*at);
            emit(term(GRAM_MARK, *least));
        }
    });
}

/// Words, and every other symbol by itself.
fn each_word(text: &str, mut emit: impl FnMut(u64)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let mut hash = (SEED ^ u64::from(byte)).wrapping_mul(FOLD);
        at += 1;
        if word(byte) {
            while let Some(&byte) = bytes.get(at).filter(|byte| word(**byte)) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(FOLD);
                at += 1;
            }
        }
        emit(hash ^ hash >> 32);
    }
}

const SEED: u64 = 0xCBF2_9CE4_8422_2325;
const FOLD: u64 = 0x9E37_79B9_7F4A_7C15;

fn term(mark: u8, hash: u64) -> FingerprintTerm {
    let [.., a, b, c, d] = (hash ^ hash >> 32).to_be_bytes();
    [mark, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_and_spacing_do_not_matter() {
        assert_eq!(line_fingerprint("  let x = a+b;"), line_fingerprint("let x=a + b;\r"));
        assert_ne!(line_fingerprint("let x = a + b;").hash, line_fingerprint("let x = b + a;").hash);
        assert!(
            !line_fingerprint("    }").is_distinctive
                && !line_fingerprint("").is_distinctive
                && !line_fingerprint("});").is_distinctive
        );
        assert!(line_fingerprint("return x").is_distinctive);
        let long = "some words of a long line ".repeat(60);
        let spaced = format!("\t{}", long.replace(' ', "    "));
        assert_eq!(line_fingerprint(&long), line_fingerprint(&spaced));
        assert_eq!(line_fingerprint(&long).letters, 20 * 60);
        assert_ne!(line_fingerprint(&long).hash, line_fingerprint(&long[3..]).hash);
    }

    /// Archives contain these values: changing one makes every existing index useless.
    #[test]
    fn values_on_disk_stay() {
        let lines = ["let x = a + b;", "    return Err(error.into());", "größer als zuvor"];
        let hashes = [15_488_960_620_978_969_552, 17_043_092_122_893_816_325, 9_954_292_877_209_775_299];
        assert_eq!(lines.map(|line| line_fingerprint(line).hash), hashes);
        assert_eq!(line_fingerprint("let x = a + b;").term(), [LINE_MARK, 63, 132, 204, 78]);
        let mut grams = Vec::new();
        let words: Vec<String> = (0..40).map(|number| format!("word{number}")).collect();
        each_gram_term(&words.join(" "), |gram| grams.push(gram));
        let terms = [[77, 6, 131, 114], [236, 2, 166, 52], [253, 160, 110, 235], [77, 115, 59, 92]];
        assert_eq!(grams, terms.map(|[a, b, c, d]| [GRAM_MARK, a, b, c, d]));
    }

    #[test]
    fn grams_are_few_and_found_again_in_longer_texts() {
        let grams = |text: &str| {
            let mut found = Vec::new();
            each_gram_term(text, |gram| found.push(gram));
            found
        };
        let words: Vec<String> = (0..200).map(|number| format!("w{}", number * 7919 % 1000)).collect();
        let text = words.join(" ");
        let part = words[50..150].join("\n   ");
        let (all, some) = (grams(&text), grams(&part));
        assert!(all.len() > 200 / WINDOW && all.len() < 60, "{}", all.len());
        assert!(some.len() > 8 && some.iter().all(|gram| all.contains(gram)));
        assert!(grams("only four words here").is_empty());
    }
}
