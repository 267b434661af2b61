//! One pass over the text for all rules: finds possible anchors.

use super::rules::Rule;

/// One bit per group of anchors that start alike, and for each of the first four bytes a table of the bits it fits.
pub(super) struct Prefilter {
    tables: [[u128; 256]; WIDTH],
    /// A bit for every hash of the first three bytes of an anchor. Few other places of a text have one of them: a
    /// branch that is hard to predict costs more than all the rest.
    trigrams: Vec<u64>,
    /// What two pairs of bytes in a row say about an anchor that begins with them: a bit for each of eight groups, by
    /// the first pair and by the second. Nearly all of a text is passed over with two lookups a byte.
    first_pairs: Box<[u8; 1 << 16]>,
    second_pairs: Box<[u8; 1 << 16]>,
    /// The anchors of each bit, in the order of the rules.
    anchors: Vec<Vec<Anchor>>,
}

pub(super) struct Anchor {
    bytes: &'static [u8],
    ignores_case: bool,
    rule: usize,
    /// The first eight bytes as one number, bits that differ between capital and small letters set where case does not
    /// matter, and bits behind the end of a shorter anchor.
    start: u64,
    ignored: u64,
}

const WIDTH: usize = 4;
/// Bytes that are passed over together.
const BLOCK: usize = 8;

impl Prefilter {
    pub(super) fn new(rules: &[Rule]) -> Prefilter {
        let mut trigrams = vec![0; 1 << (HASH_BITS - 6)];
        let mut tables = [[0; 256]; WIDTH];
        let mut anchors: Vec<Vec<Anchor>> = (0..u128::BITS).map(|_| Vec::new()).collect();
        // Two anchors that match at one place start alike: they share a bit, and their order is kept. Neighbours in the
        // alphabet share one too if there are too few.
        let start_of = |anchor: &str| anchor.as_bytes()[..2].to_ascii_lowercase();
        let mut starts: Vec<_> =
            rules.iter().flat_map(|rule| rule.anchors.iter().map(|anchor| start_of(anchor))).collect();
        starts.sort();
        starts.dedup();
        for (rule, index) in rules.iter().zip(0..) {
            for anchor in rule.anchors {
                let bytes = anchor.as_bytes();
                let place = starts.binary_search(&start_of(anchor)).unwrap_or_default();
                let bit = place * anchors.len() / starts.len();
                let anchor = Anchor::new(bytes, rule.ignores_case(), index);
                for first in anchor.cases(0) {
                    for second in anchor.cases(1) {
                        for hash in anchor.cases(2).map(|third| trigram([first, second, third, 0])) {
                            trigrams[hash >> 6] |= 1 << (hash & 63);
                        }
                    }
                }
                for (offset, table) in tables.iter_mut().enumerate() {
                    match bytes.get(offset) {
                        Some(byte) if anchor.ignores_case => {
                            table[usize::from(byte.to_ascii_lowercase())] |= 1 << bit;
                            table[usize::from(byte.to_ascii_uppercase())] |= 1 << bit;
                        }
                        Some(byte) => table[usize::from(*byte)] |= 1 << bit,
                        None => table.iter_mut().for_each(|bits| *bits |= 1 << bit),
                    }
                }
                anchors[bit].push(anchor);
            }
        }
        let (first_pairs, second_pairs) = pair_tables(&starts, anchors.iter().flatten());
        Prefilter { tables, trigrams, first_pairs, second_pairs, anchors }
    }

    /// The next place from `from` on where an anchor may be, and the bits that matched.
    pub(super) fn next(&self, bytes: &[u8], mut from: usize) -> Option<(usize, u128)> {
        loop {
            while let Some(block) = bytes.get(from..).and_then(|rest| rest.first_chunk()) {
                if self.may_start_in(block) {
                    break;
                }
                from += BLOCK;
            }
            let windows = bytes.get(from..)?.windows(WIDTH).take(BLOCK);
            let mut places = (from..).zip(windows).filter(|(_, window)| {
                let hash = window.first_chunk().map_or(0, |window| trigram(*window));
                self.trigrams.get(hash >> 6).is_some_and(|bits| bits >> (hash & 63) & 1 != 0)
            });
            let found =
                places.find_map(|(at, window)| Some((at, self.bits(window))).filter(|(_, bits)| *bits != 0));
            if found.is_some() {
                return found;
            }
            from += BLOCK;
        }
    }

    /// Whether an anchor may start in all but the last two bytes: one branch for all of them.
    fn may_start_in(&self, block: &[u8; BLOCK + 2]) -> bool {
        let pair = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
        let groups = |at: usize| self.first_pairs[pair(at)] & self.second_pairs[pair(at + 1)];
        (0..BLOCK).fold(0, |any, at| any | groups(at)) != 0
    }

    pub(super) fn bits(&self, window: &[u8]) -> u128 {
        let [first, second, third, fourth, ..] = *window else { return 0 };
        let [of_first, of_second, of_third, of_fourth] = &self.tables;
        of_first[usize::from(first)]
            & of_second[usize::from(second)]
            & of_third[usize::from(third)]
            & of_fourth[usize::from(fourth)]
    }

    /// The rules whose anchor is here, by index, each with the end of its anchor.
    pub(super) fn rules_at(
        &self,
        bytes: &[u8],
        at: usize,
        mut bits: u128,
    ) -> impl Iterator<Item = (usize, usize)> {
        let indexes = std::iter::from_fn(move || {
            let index = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (index < u128::BITS).then_some(index)
        });
        let rest = bytes.get(at..).unwrap_or_default();
        let anchors = indexes.flat_map(|index| self.anchors.get(index as usize).into_iter().flatten());
        anchors.filter(|anchor| anchor.is_at(rest)).map(move |anchor| (anchor.rule, at + anchor.bytes.len()))
    }
}

/// The tables of first and second pairs, by the starts of anchors. Starts with the same second letter are in different
/// groups, as far as there are enough: then the two pairs are of one anchor.
fn pair_tables<'a>(
    starts: &[Vec<u8>],
    anchors: impl Iterator<Item = &'a Anchor>,
) -> (Box<[u8; 1 << 16]>, Box<[u8; 1 << 16]>) {
    let (mut first_pairs, mut second_pairs) = (Box::new([0; 1 << 16]), Box::new([0; 1 << 16]));
    for anchor in anchors {
        let start = anchor.bytes[..2].to_ascii_lowercase();
        let number = starts.iter().filter(|other| other[1] == start[1] && **other < start).count();
        let group = 1 << (number % 8);
        for (pairs, offset) in [(&mut first_pairs, 0), (&mut second_pairs, 1)] {
            for first in anchor.cases(offset) {
                for second in anchor.cases(offset + 1) {
                    pairs[usize::from(u16::from_le_bytes([first, second]))] |= group;
                }
            }
        }
    }
    (first_pairs, second_pairs)
}

/// A hash of the first three bytes.
fn trigram(window: [u8; WIDTH]) -> usize {
    let three = u32::from_le_bytes(window) << 8;
    (three.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)) as usize
}

const HASH_BITS: u32 = 18;

impl Anchor {
    fn new(bytes: &'static [u8], ignores_case: bool, rule: usize) -> Anchor {
        let (mut start, mut ignored) = ([0; 8], [u8::MAX; 8]);
        for ((byte, start), ignored) in bytes.iter().zip(&mut start).zip(&mut ignored) {
            *ignored = if ignores_case && byte.is_ascii_alphabetic() { 0x20 } else { 0 };
            *start = byte | *ignored;
        }
        let (start, ignored) = (u64::from_le_bytes(start), u64::from_le_bytes(ignored));
        // Bits behind the end are set on both sides.
        Anchor { bytes, ignores_case, rule, start: start | ignored, ignored }
    }

    /// The bytes that it may have at an offset; any behind its end.
    fn cases(&self, offset: usize) -> impl Iterator<Item = u8> + use<> {
        let byte = self.bytes.get(offset).copied();
        let other = byte.map(|byte| {
            if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
        });
        let any = if byte.is_none() { 0..u16::from(u8::MAX) + 1 } else { 0..0 };
        byte.into_iter().chain(other.filter(|_| self.ignores_case)).chain(any.map(|byte| byte as u8))
    }

    #[inline]
    fn is_at(&self, rest: &[u8]) -> bool {
        // Decides nearly always, in a few instructions.
        if let Some(first) = rest.first_chunk::<8>() {
            if u64::from_le_bytes(*first) | self.ignored != self.start {
                return false;
            }
            if self.bytes.len() <= 8 {
                return true;
            }
        }
        let Some(here) = rest.get(..self.bytes.len()) else { return false };
        here == self.bytes || self.ignores_case && here.eq_ignore_ascii_case(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchor, Prefilter, WIDTH};
    use crate::rules::rules;

    /// At every offset, with every number of bytes before and behind it.
    #[test]
    fn no_anchor_is_skipped() {
        let rules = rules();
        let prefilter = Prefilter::new(&rules);
        for rule in &rules {
            for anchor in rule.anchors {
                for (before, after) in (0..6).flat_map(|before| (0..6).map(move |after| (before, after))) {
                    let text = format!("{}{anchor}{}", "~".repeat(before), "~".repeat(after));
                    let found = prefilter.next(text.as_bytes(), 0).map(|(at, _)| at);
                    let expected = (before + WIDTH <= text.len()).then_some(before);
                    assert_eq!(found, expected, "{text}");
                    let shouted = text.to_ascii_uppercase();
                    if rule.ignores_case() {
                        assert_eq!(
                            prefilter.next(shouted.as_bytes(), 0).map(|(at, _)| at),
                            expected,
                            "{shouted}"
                        );
                    }
                }
            }
        }
    }

    /// Whatever the block that a place is in.
    #[test]
    fn every_place_of_a_text_is_found() {
        let prefilter = Prefilter::new(&rules());
        let text =
            "The token, a key: pass the password to /path?code=1&sig=2. Log in s.cookie KEY sk-1 ".repeat(3);
        let bytes = text.as_bytes();
        let is_place = |at: &usize| {
            let window = bytes[*at..].first_chunk::<WIDTH>();
            window.is_some_and(|window| {
                let hash = super::trigram(*window);
                prefilter.trigrams[hash >> 6] >> (hash & 63) & 1 != 0 && prefilter.bits(window) != 0
            })
        };
        let expected: Vec<usize> = (0..bytes.len()).filter(is_place).collect();
        for from in 0..20 {
            let mut found = Vec::new();
            let mut next = from;
            while let Some((at, bits)) = prefilter.next(bytes, next) {
                assert_eq!(bits, prefilter.bits(&bytes[at..]));
                found.push(at);
                next = at + 1;
            }
            let expected: Vec<usize> = expected.iter().copied().filter(|at| *at >= from).collect();
            assert_eq!(found, expected);
            assert!(found.len() > 20);
        }
    }

    #[test]
    fn an_anchor_is_found_as_a_comparison_of_bytes_would() {
        let texts = [
            "password",
            "PASSWORD=",
            "passWord_",
            "pass",
            "p4ssword",
            "[assword",
            "sk-proj-abc",
            "SK-PROJ-abc",
            "sk-proj",
            "",
        ];
        for anchor in ["password", "pass", "sk-proj-a", "sk", "-", "p"] {
            for ignores_case in [false, true] {
                let found = Anchor::new(anchor.as_bytes(), ignores_case, 0);
                for text in texts {
                    let here = text.get(..anchor.len());
                    let expected = here.is_some_and(|here| {
                        here == anchor || ignores_case && here.eq_ignore_ascii_case(anchor)
                    });
                    assert_eq!(found.is_at(text.as_bytes()), expected, "{anchor} {ignores_case} {text}");
                }
            }
        }
    }
}
