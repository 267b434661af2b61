//! Finds lines that differ from what an edit wrote: wrapped differently, or changed.

use std::collections::{HashMap, HashSet};

use super::matching::{Board, Claim, Grade};

/// Least similarity of a changed line between equal lines of its hunk.
const ALIKE: f32 = 0.78;
/// Least similarity if one side is open or only similar text led here: code is full of similar lines.
const MUCH_ALIKE: f32 = 0.87;
/// Lines above the first and below the last equal line that may have been changed.
const EDGE: usize = 12;

impl Board<'_> {
    /// Claims lines between, above and below equal lines of a hunk: wrapped differently, or changed.
    pub fn claim_between(&mut self) {
        let mut of_hunk: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (at, claim) in self.claims.iter().enumerate() {
            if let Some(claim) = claim.filter(|claim| claim.grade != Grade::Read) {
                of_hunk.entry(claim.hunk).or_default().push((at, claim.line));
            }
        }
        let mut hunks: Vec<_> = of_hunk.into_iter().collect();
        // Latest first, in a stable order.
        hunks.sort_by_key(|(hunk, _)| (self.age(*hunk), *hunk));
        for (hunk, places) in hunks {
            let length = self.hunks[hunk].lines.len();
            let (first, last) = (places[0], places[places.len() - 1]);
            let above = (first.0.saturating_sub(EDGE), first.0, first.1.saturating_sub(EDGE), first.1);
            let end = (last.0 + 1 + EDGE).min(self.file.len());
            let below = (last.0 + 1, end, last.1 + 1, (last.1 + 1 + EDGE).min(length));
            let mut gaps = vec![above, below];
            for pair in places.windows(2) {
                let ((from, line), (to, next)) = (pair[0], pair[1]);
                if to > from + 1 && next > line + 1 {
                    gaps.push((from + 1, to, line + 1, next));
                }
            }
            for (number, (from, to, line, next)) in gaps.into_iter().enumerate() {
                let is_open = |at: &usize| self.claims[*at].is_none() && self.is_in_time(hunk, *at);
                let open: Vec<usize> = (from..to).filter(is_open).collect();
                let left: Vec<usize> = (line..next)
                    .filter(|line| !self.used[hunk][*line] && !self.hunks[hunk].lines[*line].context)
                    .collect();
                // The ends of the file do not enclose anything; equal lines do.
                if number >= 2 && self.same_letters(&open, hunk, &left) {
                    let grade = if self.hunks[hunk].same_file { Grade::Exact } else { Grade::Moved };
                    for (step, at) in open.iter().enumerate() {
                        let line = left[step.min(left.len() - 1)];
                        self.claims[*at] = Some(Claim { grade, hunk, line });
                    }
                    left.iter().for_each(|line| self.used[hunk][*line] = true);
                    continue;
                }
                if !open.is_empty() {
                    let left = self.with_letters(hunk, left.into_iter());
                    self.claim_changed(&open, hunk, &left, if number >= 2 { ALIKE } else { MUCH_ALIKE }, 1);
                }
            }
        }
    }

    /// Whether both are the same text with different line breaks.
    fn same_letters(&self, open: &[usize], hunk: usize, left: &[usize]) -> bool {
        let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
        let ours: String = open.iter().map(|at| letters(&self.file[*at].text)).collect();
        let theirs: String = left.iter().map(|line| letters(&self.hunks[hunk].lines[*line].text)).collect();
        let bare = |text: &str| text.replace(",)", ")").replace(",]", "]").replace(",}", "}");
        ours.len() >= 4 && bare(&ours) == bare(&theirs)
    }

    /// The lines of a hunk in comparable form, without those found in every program: they are similar by chance.
    fn with_letters(&self, hunk: usize, lines: impl Iterator<Item = usize>) -> Vec<(usize, Letters)> {
        let of_hunk = &self.hunks[hunk].lines;
        let distinctive = lines.filter(|line| of_hunk[*line].print.is_distinctive);
        distinctive.map(|line| (line, Letters::of(&of_hunk[line].text))).collect()
    }

    /// Assigns open lines to similar lines of a hunk, if at least `fewest` are that similar.
    fn claim_changed(
        &mut self,
        open: &[usize],
        hunk: usize,
        left: &[(usize, Letters)],
        least: f32,
        fewest: usize,
    ) {
        let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
        for at in open.iter().filter(|at| self.worth[**at] >= 0.6 && self.is_in_time(hunk, **at)) {
            let hash = self.file[*at].print.hash;
            let ours = self.letters[*at].get_or_init(|| Letters::of(&self.file[*at].text));
            for (line, theirs) in left {
                if let Some(alike) = ours.likeness(theirs, least)
                    && self.hunks[hunk].lines[*line].print.hash != hash
                {
                    pairs.push((alike, *at, *line));
                }
            }
        }
        // Best pairs first; each line is used once.
        pairs.sort_by(|left, right| {
            right.0.total_cmp(&left.0).then((left.1, left.2).cmp(&(right.1, right.2)))
        });
        let (mut given, mut taken) = (HashMap::new(), HashSet::new());
        for (_, at, line) in pairs {
            if !given.contains_key(&at) && taken.insert(line) {
                given.insert(at, line);
            }
        }
        if given.len() >= fewest {
            for (at, line) in given {
                self.claims[at] = Some(Claim { grade: Grade::Changed, hunk, line });
            }
        }
    }

    /// Claims stretches in which no line is as it was written, by similarity to the text of a hunk.
    pub fn claim_alike(&mut self) {
        let mut order: Vec<usize> = (0..self.hunks.len()).filter(|hunk| self.hunks[*hunk].loose).collect();
        order.sort_by_key(|hunk| (!self.hunks[*hunk].same_file, self.age(*hunk)));
        for hunk in order {
            let left = self.with_letters(hunk, 0..self.hunks[hunk].lines.len());
            let mut at = 0;
            while at < self.file.len() {
                let open: Vec<usize> =
                    (at..self.file.len()).take_while(|at| self.claims[*at].is_none()).collect();
                at += open.len().max(1);
                // A single line may be similar by chance.
                self.claim_changed(&open, hunk, &left, MUCH_ALIKE, 2);
            }
        }
    }
}

/// What lines are compared by: pairs of adjacent characters, without whitespace.
#[derive(Debug, Clone)]
pub struct Letters {
    /// Sorted, with repetitions.
    pairs: Vec<[u8; 2]>,
    /// A Bloom-like mask of the pairs: a bit set in only one line is a pair that only it has.
    marks: u128,
}

impl Letters {
    fn of(text: &str) -> Letters {
        let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).take(400).collect();
        let mut pairs: Vec<[u8; 2]> = letters.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_unstable();
        let mark =
            |pair: &[u8; 2]| 1 << (u32::from(u16::from_le_bytes(*pair)).wrapping_mul(0x9e37_79b1) >> 25);
        let marks = pairs.iter().map(mark).fold(0_u128, |marks, mark| marks | mark);
        Letters { pairs, marks }
    }

    /// The share of two lines that is equal, if at least `least`.
    fn likeness(&self, other: &Letters, least: f32) -> Option<f32> {
        let (ours, theirs) = (&self.pairs, &other.pairs);
        let share = |shared: usize| 2.0 * shared as f32 / (ours.len() + theirs.len()) as f32;
        let alone = |marks: u128, others: u128| (marks & !others).count_ones() as usize;
        // Most lines have little in common, which the masks show without comparing pairs.
        let most =
            (ours.len() - alone(self.marks, other.marks)).min(theirs.len() - alone(other.marks, self.marks));
        if most == 0 || share(most) < least {
            return None;
        }
        let (mut shared, mut at) = (0, 0);
        for pair in ours {
            while at < theirs.len() && theirs[at] < *pair {
                at += 1;
            }
            if theirs.get(at) == Some(pair) {
                shared += 1;
                at += 1;
            }
        }
        Some(share(shared)).filter(|share| *share >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_alike_by_what_they_share() {
        let likeness =
            |left: &str, right: &str, least| Letters::of(left).likeness(&Letters::of(right), least);
        assert_eq!(likeness("let total = 1;", "  let  total=1;", 0.9), Some(1.0));
        assert_eq!(likeness("abcd", "abxy", 0.3), Some(1.0 / 3.0));
        assert_eq!(likeness("abcd", "abxy", 0.4), None);
        assert_eq!(likeness("abab", "ab", 0.5), Some(0.5));
        assert_eq!(likeness("", "abcd", 0.0), None);
        assert_eq!(likeness("abcd", "wxyz", 0.1), None);
    }
}
