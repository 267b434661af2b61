//! Finds the edit that wrote each line of a file: by content, longest and latest first. No edit wrote a line that was
//! there before it.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::alike::Letters;
use annals_core::{LineFingerprint, line_fingerprint};

/// How certain it is that a line comes from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grade {
    /// The text of the edit, unchanged.
    Exact,
    /// The same text elsewhere, or in another file.
    Moved,
    /// Similar text.
    Changed,
    /// The session read it and did not write it.
    Read,
}

impl Grade {
    pub fn name(self) -> &'static str {
        match self {
            Grade::Exact => "exact",
            Grade::Moved => "moved",
            Grade::Changed => "changed",
            Grade::Read => "read",
        }
    }
}

/// Adjacent lines that one call wrote or read.
#[derive(Debug, Clone)]
pub struct Hunk {
    /// Index of the call in the caller's list.
    pub call: usize,
    pub read: bool,
    pub same_file: bool,
    /// Number of trailing path components that are equal. Of two repositories with the same file, the closer one
    /// wins.
    pub nearness: usize,
    /// Time of the call; later calls overwrite earlier ones.
    pub at: i64,
    /// Line number of the first line at that time.
    pub start: Option<u32>,
    pub lines: Vec<HunkLine>,
    /// Found through similar text only: its lines are compared for changes, and exact matches claim nothing.
    pub loose: bool,
}

#[derive(Debug, Clone)]
pub struct HunkLine {
    pub print: LineFingerprint,
    pub text: String,
    /// Context that was already there: it shows the position and was not written.
    pub context: bool,
}

impl HunkLine {
    pub fn new(text: &str, context: bool) -> HunkLine {
        HunkLine { print: line_fingerprint(text), text: text.to_owned(), context }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub grade: Grade,
    pub hunk: usize,
    /// Line number in the hunk.
    pub line: usize,
}

/// Adjacent lines that are equal in the file and in a hunk.
#[derive(Debug, Clone, Copy)]
struct MatchRun {
    hunk: usize,
    file: usize,
    line: usize,
    length: usize,
    strength: f32,
}

/// A line that occurs more often in the file says nothing about its position.
const MOST_PLACES: usize = 64;
/// Runs weaker than this do not compete with a longer one.
const WEAK: f32 = 2.0;
/// How much stronger the longer one must be.
const STRONGER: f32 = 2.5;

/// The lines to trace, and what is known about them besides their text.
#[derive(Debug, Clone, Copy)]
pub struct TracedLines<'b> {
    pub lines: &'b [HunkLine],
    /// The latest time at which each line can have been written; lines beyond the end have none.
    pub deadlines: &'b [i64],
    /// Of several calls that wrote a line, the first one is wanted instead of the latest.
    pub first: bool,
}

/// Finds the hunk that each line comes from. `rarity` rates how distinctive a line is, from 0 to 1.
pub fn claim_lines(
    file: TracedLines<'_>,
    hunks: &[Hunk],
    rarity: &dyn Fn(&LineFingerprint) -> f32,
) -> Vec<Option<Claim>> {
    let mut board = Board::new(file, hunks, rarity);
    board.claim_equal();
    board.claim_between();
    board.claim_alike();
    board.claim_small();
    board.claim_whole_file();
    board.claims
}

pub struct Board<'b> {
    pub file: &'b [HunkLine],
    deadlines: &'b [i64],
    first: bool,
    pub hunks: &'b [Hunk],
    runs: Vec<MatchRun>,
    pub claims: Vec<Option<Claim>>,
    /// How distinctive each line of the file is.
    pub worth: Vec<f32>,
    /// Lines of each hunk that have been matched.
    pub used: Vec<Vec<bool>>,
    /// What lines of the file are compared by, computed on demand.
    pub letters: Vec<OnceCell<Letters>>,
}

impl<'b> Board<'b> {
    fn new(
        traced: TracedLines<'b>,
        hunks: &'b [Hunk],
        rarity: &dyn Fn(&LineFingerprint) -> f32,
    ) -> Board<'b> {
        let TracedLines { lines: file, deadlines, first } = traced;
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, line) in file.iter().enumerate().filter(|(_, line)| line.print.is_distinctive) {
            places.entry(line.print.hash).or_default().push(at);
        }
        let worth: Vec<f32> = file
            .iter()
            .map(|line| {
                let print = &line.print;
                let here = places.get(&print.hash).map_or(0, Vec::len);
                let length = if print.letters >= 12 { 1.0 } else { 0.6 };
                let repeated = if here > 4 { 0.4 } else { 1.0 };
                if print.is_distinctive { rarity(print) * length * repeated } else { 0.0 }
            })
            .collect();
        let mut runs = Vec::new();
        for (number, hunk) in hunks.iter().enumerate().filter(|(_, hunk)| !hunk.loose) {
            find_runs(file, number, hunk, &places, &worth, &mut runs);
        }
        runs.retain(|run| is_significant(file, &hunks[run.hunk], run));
        let used = hunks.iter().map(|hunk| vec![false; hunk.lines.len()]).collect();
        let letters = vec![OnceCell::new(); file.len()];
        let claims = vec![None; file.len()];
        Board { file, deadlines, first, hunks, runs, claims, worth, used, letters }
    }

    /// Whether a hunk can be the origin of a line: what was there before cannot have been written later.
    pub fn is_in_time(&self, hunk: usize, at: usize) -> bool {
        let hunk = &self.hunks[hunk];
        hunk.read || self.deadlines.get(at).is_none_or(|deadline| hunk.at <= *deadline)
    }

    /// Whether this line of a hunk can have become this line of the file.
    fn can_write(&self, hunk: usize, line: usize, at: usize) -> bool {
        !self.hunks[hunk].lines[line].context && self.is_in_time(hunk, at)
    }

    /// Smaller is preferred: later calls overwrite earlier ones, unless the first is wanted.
    pub fn age(&self, hunk: usize) -> i64 {
        let at = self.hunks[hunk].at;
        if self.first { at } else { at.saturating_neg() }
    }

    fn claim_equal(&mut self) {
        let hunks = self.hunks;
        let rank = |run: &MatchRun| {
            let hunk = &hunks[run.hunk];
            (hunk.read, !hunk.same_file, std::cmp::Reverse(hunk.nearness), self.age(run.hunk), run.hunk)
        };
        let mut runs = self.runs.clone();
        runs.sort_by(|left, right| {
            rank(left)
                .cmp(&rank(right))
                .then(right.strength.total_cmp(&left.strength))
                .then(left.file.cmp(&right.file))
        });
        // The strongest run over each line, among writes to this file and among all writes.
        let mut support = vec![[(0.0_f32, usize::MAX); 2]; self.file.len()];
        for run in runs.iter().filter(|run| !hunks[run.hunk].read) {
            for at in (run.file..run.file + run.length).filter(|at| self.is_in_time(run.hunk, *at)) {
                let best = &mut support[at];
                let classes = if hunks[run.hunk].same_file { 0..2 } else { 1..2 };
                for class in classes {
                    if run.strength > best[class].0 {
                        best[class] = (run.strength, run.hunk);
                    }
                }
            }
        }
        let mut repeats = Vec::new();
        for run in &runs {
            let hunk = &hunks[run.hunk];
            let written: Vec<usize> = (0..run.length)
                .filter(|step| self.can_write(run.hunk, run.line + step, run.file + step))
                .collect();
            let already_matched = written.iter().all(|step| self.used[run.hunk][run.line + step]);
            if already_matched {
                repeats.push(*run);
                continue;
            }
            let class = usize::from(!hunk.same_file);
            for step in written {
                let (at, line) = (run.file + step, run.line + step);
                let (best, by) = support[at][class];
                let outdone =
                    !hunk.read && run.strength < WEAK && by != run.hunk && best >= run.strength + STRONGER;
                if self.claims[at].is_none() && !self.used[run.hunk][line] && !outdone {
                    self.claim(at, run, line);
                }
            }
        }
        // A second copy of what a hunk wrote: the same text at a position it did not write.
        for run in repeats.iter().filter(|run| run.strength >= WEAK) {
            for step in 0..run.length {
                let at = run.file + step;
                let hunk = &hunks[run.hunk];
                if self.claims[at].is_none() && self.can_write(run.hunk, run.line + step, at) {
                    let grade = if hunk.read { Grade::Read } else { Grade::Moved };
                    self.claims[at] = Some(Claim { grade, hunk: run.hunk, line: run.line + step });
                }
            }
        }
        self.mark_moved();
    }

    fn claim(&mut self, at: usize, run: &MatchRun, line: usize) {
        let hunk = &self.hunks[run.hunk];
        let grade = match (hunk.read, hunk.same_file) {
            (true, _) => Grade::Read,
            (false, true) => Grade::Exact,
            (false, false) => Grade::Moved,
        };
        self.used[run.hunk][line] = true;
        self.claims[at] = Some(Claim { grade, hunk: run.hunk, line });
    }

    /// Lines of a hunk that are no longer in its order were moved.
    fn mark_moved(&mut self) {
        let mut of_hunk: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (at, claim) in self.claims.iter().enumerate() {
            if let Some(claim) = claim.filter(|claim| claim.grade == Grade::Exact) {
                of_hunk.entry(claim.hunk).or_default().push((at, claim.line));
            }
        }
        for places in of_hunk.values() {
            let in_order = longest_rise(places);
            for ((at, _), stays) in places.iter().zip(in_order) {
                if let (Some(claim), false) = (&mut self.claims[*at], stays) {
                    claim.grade = Grade::Moved;
                }
            }
        }
    }

    /// A file that is exactly what one call wrote comes from that call, however generic its lines are. At another
    /// path, at least one line must be distinctive.
    fn claim_whole_file(&mut self) {
        let is_blank = self.file.iter().all(|line| line.print.letters == 0);
        if is_blank || self.claims.iter().all(Option::is_some) {
            return;
        }
        let distinct: f32 = self.worth.iter().sum();
        let is_whole_file = |hunk: &Hunk| {
            let here = hunk.same_file || hunk.nearness > 0 && distinct >= 0.5;
            let equal = || self.file.iter().zip(&hunk.lines).all(|(ours, theirs)| ours.print == theirs.print);
            !hunk.read && !hunk.loose && here && hunk.lines.len() == self.file.len() && equal()
        };
        let open: Vec<usize> = (0..self.file.len()).filter(|at| self.claims[*at].is_none()).collect();
        let has_open_lines = |hunk: usize| open.iter().any(|at| self.can_write(hunk, *at, *at));
        let whole = self.hunks.iter().enumerate().filter(|(_, hunk)| is_whole_file(hunk));
        let best = whole.filter(|(number, _)| has_open_lines(*number)).min_by_key(|(number, hunk)| {
            (!hunk.same_file, std::cmp::Reverse(hunk.nearness), self.age(*number))
        });
        let Some((hunk, written)) = best else { return };
        let grade = if written.same_file { Grade::Exact } else { Grade::Moved };
        for at in open {
            if self.can_write(hunk, at, at) {
                self.claims[at] = Some(Claim { grade, hunk, line: at });
            }
        }
    }

    /// Lines that are not distinctive belong to the call whose lines surround them.
    fn claim_small(&mut self) {
        let mut at = 0;
        while at < self.file.len() {
            let small = |at: &usize| self.claims[*at].is_none() && !self.file[*at].print.is_distinctive;
            let stretch = (at..self.file.len()).take_while(small).count();
            if stretch > 0 && stretch <= 3 && at > 0 && at + stretch < self.file.len() {
                let (above, below) = (self.claims[at - 1], self.claims[at + stretch]);
                if let (Some(above), Some(below)) = (above, below)
                    && self.hunks[above.hunk].call == self.hunks[below.hunk].call
                    && above.grade != Grade::Read
                    && below.grade != Grade::Read
                    && (at..at + stretch).all(|at| self.is_in_time(above.hunk, at))
                {
                    let grade = above.grade.max(below.grade);
                    for claim in &mut self.claims[at..at + stretch] {
                        *claim = Some(Claim { grade, ..above });
                    }
                }
            }
            at += stretch.max(1);
        }
    }
}

fn find_runs(
    file: &[HunkLine],
    number: usize,
    hunk: &Hunk,
    places: &HashMap<u64, Vec<usize>>,
    worth: &[f32],
    runs: &mut Vec<MatchRun>,
) {
    // Where the last run on each diagonal ended.
    let mut ends: HashMap<isize, usize> = HashMap::new();
    for (line, of_hunk) in hunk.lines.iter().enumerate().filter(|(_, line)| line.print.is_distinctive) {
        let Some(places) = places.get(&of_hunk.print.hash).filter(|places| places.len() <= MOST_PLACES)
        else {
            continue;
        };
        for at in places {
            let diagonal = *at as isize - line as isize;
            let end = ends.get(&diagonal).copied().unwrap_or(0);
            if *at < end {
                continue;
            }
            let equal = |step: isize| {
                let (at, line) = (at.checked_add_signed(step)?, line.checked_add_signed(step)?);
                Some(at >= end && file.get(at)?.print.hash == hunk.lines.get(line)?.print.hash)
            };
            let back = (1_isize..).take_while(|step| equal(-*step) == Some(true)).count();
            let on = (1_isize..).take_while(|step| equal(*step) == Some(true)).count();
            let (start, length) = (at - back, back + 1 + on);
            ends.insert(diagonal, start + length);
            let strength = worth[start..start + length].iter().sum();
            runs.push(MatchRun { hunk: number, file: start, line: line - back, length, strength });
        }
    }
}

/// Whether a run is unlikely to be a coincidence.
fn is_significant(file: &[HunkLine], hunk: &Hunk, run: &MatchRun) -> bool {
    let longest = file[run.file..run.file + run.length].iter().map(|line| line.print.letters).max();
    let longest = longest.unwrap_or(0);
    match (hunk.read, hunk.same_file) {
        (true, true) => run.strength >= 1.0,
        (true, false) => run.strength >= 2.0,
        (false, true) => run.strength >= 0.5,
        // A single equal line in another file is no coincidence if it is long, or if the file has the same name.
        (false, false) => {
            let long = longest >= if hunk.nearness > 0 { 20 } else { 40 };
            run.strength >= 1.8 || run.strength >= 0.95 && long
        }
    }
}

/// Marks the longest increasing subsequence of line numbers, in order of position.
fn longest_rise(places: &[(usize, usize)]) -> Vec<bool> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; places.len()];
    for (at, (_, line)) in places.iter().enumerate() {
        let slot = tails.partition_point(|tail| places[*tail].1 < *line);
        before[at] = slot.checked_sub(1).map(|slot| tails[slot]);
        if slot == tails.len() {
            tails.push(at);
        } else {
            tails[slot] = at;
        }
    }
    let mut stays = vec![false; places.len()];
    let mut next = tails.last().copied();
    while let Some(at) = next {
        stays[at] = true;
        next = before[at];
    }
    stays
}

#[cfg(test)]
mod tests;
