//! Finds the edit that wrote each line of a file: by content, longest and latest first.

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
    /// The call came after the file was last written, so its text should not be in it.
    pub late: bool,
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

/// Finds the hunk that each line comes from. `rarity` rates how distinctive a line is, from 0 to 1.
pub fn claim_lines(
    file: &[HunkLine],
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
    fn new(file: &'b [HunkLine], hunks: &'b [Hunk], rarity: &dyn Fn(&LineFingerprint) -> f32) -> Board<'b> {
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
        Board { file, hunks, runs, claims: vec![None; file.len()], worth, used, letters }
    }

    fn claim_equal(&mut self) {
        let hunks = self.hunks;
        let rank = |run: &MatchRun| {
            let hunk = &hunks[run.hunk];
            (
                hunk.read,
                !hunk.same_file,
                std::cmp::Reverse(hunk.nearness),
                hunk.late,
                std::cmp::Reverse(hunk.at),
                run.hunk,
            )
        };
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_by(|left, right| {
            rank(left)
                .cmp(&rank(right))
                .then(right.strength.total_cmp(&left.strength))
                .then(left.file.cmp(&right.file))
        });
        // The strongest run over each line, among writes to this file and among all writes.
        let mut support = vec![[(0.0_f32, usize::MAX); 2]; self.file.len()];
        for run in runs.iter().filter(|run| !hunks[run.hunk].read) {
            for best in &mut support[run.file..run.file + run.length] {
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
            let written = (0..run.length).filter(|step| !hunk.lines[run.line + step].context);
            let already_matched = written.clone().all(|step| self.used[run.hunk][run.line + step]);
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
                if self.claims[at].is_none() && !hunk.lines[run.line + step].context {
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
        let hunks = self.hunks.iter().enumerate().filter(|(_, hunk)| is_whole_file(hunk));
        let latest = hunks.max_by_key(|(_, hunk)| (hunk.same_file, hunk.nearness, !hunk.late, hunk.at));
        let Some((number, hunk)) = latest else { return };
        let grade = if hunk.same_file { Grade::Exact } else { Grade::Moved };
        for (line, claim) in self.claims.iter_mut().enumerate() {
            if claim.is_none() && !hunk.lines[line].context {
                *claim = Some(Claim { grade, hunk: number, line });
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
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<HunkLine> {
        text.lines().map(|line| HunkLine::new(line, false)).collect()
    }

    fn hunk(call: usize, at: i64, text: &str) -> Hunk {
        Hunk {
            call,
            read: false,
            same_file: true,
            nearness: 1,
            at,
            late: false,
            start: None,
            lines: lines(text),
            loose: false,
        }
    }

    fn grades_of(file: &str, hunks: &[Hunk]) -> String {
        let claims = claim_lines(&lines(file), hunks, &|_| 1.0);
        let code = |claim: &Option<Claim>| match claim {
            Some(claim) => format!("{}{}", &claim.grade.name()[..1], hunks[claim.hunk].call),
            None => "-".to_owned(),
        };
        claims.iter().map(code).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_latest_writer_has_the_line() {
        let first = hunk(0, 1, "fn alpha() {\n    first_thing();\n    second_thing();\n}\nfn omega() {}");
        let second = hunk(1, 2, "fn alpha() {\n    first_thing();\n    second_thing();\n}");
        let file = "fn alpha() {\n  first_thing();\n  second_thing();\n}\nfn omega() {}";
        assert_eq!(grades_of(file, &[first.clone(), second]), "e1 e1 e1 e1 e0");
        assert_eq!(grades_of(file, &[first]), "e0 e0 e0 e0 e0");
    }

    #[test]
    fn small_lines_need_company() {
        let hunk = hunk(0, 1, "fn alpha() {\n    first_thing();\n}");
        assert_eq!(
            grades_of("mine();\n}\nfn alpha() {\n    first_thing();\n}\n}\nother_mine();", &[hunk]),
            "- - e0 e0 e0 - -"
        );
    }

    #[test]
    fn a_file_written_completely_by_a_call_belongs_to_it() {
        let written = hunk(0, 1, "1.2");
        assert_eq!(grades_of("1.2", std::slice::from_ref(&written)), "e0");
        assert_eq!(grades_of("1.2\n", &[written.clone(), hunk(1, 2, "1.2"), hunk(2, 3, "1.3")]), "e1");
        assert_eq!(grades_of("1.2\n3", std::slice::from_ref(&written)), "- -", "a part is not the whole");
        assert_eq!(grades_of("", &[hunk(0, 1, "")]), "");
        let elsewhere = Hunk { same_file: false, ..written };
        assert_eq!(grades_of("1.2", std::slice::from_ref(&elsewhere)), "-", "so are many files of that name");
        let elsewhere = Hunk { lines: lines("int needle;"), ..elsewhere };
        assert_eq!(grades_of("int needle;", std::slice::from_ref(&elsewhere)), "m0");
        let nameless = Hunk { nearness: 0, ..elsewhere };
        assert_eq!(grades_of("int needle;", &[nameless]), "-");
    }

    #[test]
    fn one_line_of_a_later_edit_does_not_break_a_long_run() {
        let long = hunk(0, 1, "one_line_here\ntwo_line_here\nlog_debug_done\nfour_line_here\nfive_line_here");
        let short = hunk(1, 2, "log_debug_done");
        let file =
            "one_line_here\ntwo_line_here\nlog_debug_done\nfour_line_here\nfive_line_here\nlog_debug_done";
        assert_eq!(grades_of(file, &[long, short]), "e0 e0 e0 e0 e0 e1");
    }

    #[test]
    fn blocks_that_changed_places_were_moved() {
        let written = hunk(0, 1, "alpha_one();\nalpha_two();\nalpha_three();\nbeta_one();\nbeta_two();");
        let file = "beta_one();\nbeta_two();\nalpha_one();\nalpha_two();\nalpha_three();";
        assert_eq!(grades_of(file, std::slice::from_ref(&written)), "m0 m0 e0 e0 e0");
        let elsewhere = Hunk { same_file: false, ..written };
        assert_eq!(grades_of("alpha_one();\nalpha_two();", &[elsewhere]), "m0 m0");
    }

    #[test]
    fn lines_that_were_broken_or_changed_are_found_between() {
        let hunk = hunk(0, 1, "start_of_it();\ncall(first, second, third);\nlet total = 1;\nend_of_it();");
        let file =
            "start_of_it();\ncall(\n    first,\n    second,\n    third,\n);\nlet total = 1;\nend_of_it();";
        assert_eq!(grades_of(file, std::slice::from_ref(&hunk)), "e0 e0 e0 e0 e0 e0 e0 e0");
        let changed = "start_of_it();\ncall(first, second_one, third);\nlet total = 1;\nend_of_it();";
        assert_eq!(grades_of(changed, &[hunk]), "e0 c0 e0 e0");
    }

    #[test]
    fn what_was_seen_is_not_written() {
        let mut seen = hunk(0, 5, "human_line_one\nhuman_line_two\nagent_line_one");
        seen.read = true;
        let wrote = hunk(1, 1, "agent_line_one");
        assert_eq!(grades_of("human_line_one\nhuman_line_two\nagent_line_one", &[seen, wrote]), "r0 r0 e1");
    }
}
