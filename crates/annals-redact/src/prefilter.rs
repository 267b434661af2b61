//! One pass over the text for all rules: finds possible anchors.

use super::rules::Rule;

/// One bit per group of anchors that start alike, and for each of the first four bytes a table of the bits it fits.
pub(super) struct Prefilter {
    tables: [[u128; 256]; WIDTH],
    /// A bit for every hash of the first three bytes of an anchor, in either case.
    trigrams: Vec<u64>,
    /// The anchors of each bit, in the order of the rules.
    anchors: Vec<Vec<Anchor>>,
}

pub(super) struct Anchor {
    bytes: &'static [u8],
    ignores_case: bool,
    rule: usize,
}

const WIDTH: usize = 4;

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
                let anchor = Anchor { bytes, ignores_case: rule.ignores_case(), rule: index };
                let third = bytes.get(2).map_or(0..=u8::MAX, |byte| *byte..=*byte);
                for hash in third.map(|third| trigram(bytes[0], bytes[1], third)) {
                    trigrams[hash >> 6] |= 1 << (hash & 63);
                }
                for (offset, table) in tables.iter_mut().enumerate() {
                    for (byte, bits) in (0..=u8::MAX).zip(table) {
                        *bits |= u128::from(anchor.may_match(offset, byte)) << bit;
                    }
                }
                anchors[bit].push(anchor);
            }
        }
        Prefilter { tables, trigrams, anchors }
    }

    /// The next place from `from` on where an anchor may be, and the bits that matched.
    pub(super) fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, u128)> {
        let windows = bytes.get(from..)?.windows(WIDTH);
        let may_start = |window: &[u8]| {
            let [first, second, third, ..] = *window else { return false };
            let hash = trigram(first, second, third);
            self.trigrams.get(hash >> 6).is_some_and(|bits| bits >> (hash & 63) & 1 != 0)
        };
        let mut places = windows.zip(from..).filter(|(window, _)| may_start(window));
        places.find_map(|(window, at)| Some((at, self.bits(window))).filter(|(_, bits)| *bits != 0))
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

/// A hash that is the same for capital and small letters.
fn trigram(first: u8, second: u8, third: u8) -> usize {
    let folded = u32::from_le_bytes([first | 0x20, second | 0x20, third | 0x20, 0]);
    (folded.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)) as usize
}

const HASH_BITS: u32 = 16;

impl Anchor {
    fn may_match(&self, offset: usize, byte: u8) -> bool {
        self.bytes.get(offset).is_none_or(|expected| {
            *expected == byte || self.ignores_case && expected.eq_ignore_ascii_case(&byte)
        })
    }

    fn is_at(&self, rest: &[u8]) -> bool {
        let Some(here) = rest.get(..self.bytes.len()) else { return false };
        here == self.bytes || self.ignores_case && here.eq_ignore_ascii_case(self.bytes)
    }
}
