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
    /// The first eight bytes as one number, bits that differ between capital and small letters set where case does not
    /// matter, and bits behind the end of a shorter anchor.
    start: u64,
    ignored: u64,
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
                let anchor = Anchor::new(bytes, rule.ignores_case(), index);
                let third = bytes.get(2).map_or(0..=u8::MAX, |byte| *byte..=*byte);
                for hash in third.map(|third| trigram(bytes[0], bytes[1], third)) {
                    trigrams[hash >> 6] |= 1 << (hash & 63);
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
    use super::Anchor;

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
