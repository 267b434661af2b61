//! One pass over the text for all rules: finds possible anchors.

use super::rules::Rule;

/// One bit per group of anchors that start alike, and for each of the first four bytes a table of the bits it fits.
pub(super) struct Prefilter {
    tables: [[u64; 256]; WIDTH],
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
        let mut tables = [[0; 256]; WIDTH];
        let mut anchors: Vec<Vec<Anchor>> = (0..u64::BITS).map(|_| Vec::new()).collect();
        let mut starts = Vec::new();
        for (rule, index) in rules.iter().zip(0..) {
            for anchor in rule.anchors {
                let bytes = anchor.as_bytes();
                // Two anchors that match at one place start alike: they share a bit, and their order is kept.
                let start = bytes[..2].to_ascii_lowercase();
                let known = starts.iter().position(|known| *known == start).unwrap_or_else(|| {
                    starts.push(start);
                    starts.len() - 1
                });
                let bit = known % anchors.len();
                let anchor = Anchor { bytes, ignores_case: rule.ignores_case(), rule: index };
                for (offset, table) in tables.iter_mut().enumerate() {
                    for (byte, bits) in (0..=u8::MAX).zip(table) {
                        *bits |= u64::from(anchor.may_match(offset, byte)) << bit;
                    }
                }
                anchors[bit].push(anchor);
            }
        }
        Prefilter { tables, anchors }
    }

    /// The next place from `from` on where an anchor may be, and the bits that matched.
    pub(super) fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, u64)> {
        let windows = bytes.get(from..)?.windows(WIDTH);
        windows.zip(from..).map(|(window, at)| (at, self.bits(window))).find(|(_, bits)| *bits != 0)
    }

    pub(super) fn bits(&self, window: &[u8]) -> u64 {
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
        mut bits: u64,
    ) -> impl Iterator<Item = (usize, usize)> {
        let indexes = std::iter::from_fn(move || {
            let index = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (index < u64::BITS).then_some(index)
        });
        let rest = bytes.get(at..).unwrap_or_default();
        let anchors = indexes.flat_map(|index| self.anchors.get(index as usize).into_iter().flatten());
        anchors.filter(|anchor| anchor.is_at(rest)).map(move |anchor| (anchor.rule, at + anchor.bytes.len()))
    }
}

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
