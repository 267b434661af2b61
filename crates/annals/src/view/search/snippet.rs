//! Snippets: the part of a text that has most of the words, with the words marked.

use std::collections::HashMap;

use super::passages::{PassageText, find_folded, start_and_beyond, truncate_to};
use super::query::Query;
use super::related::related_words;
use super::stop_words::WordRole;
use crate::view::door::Door;
use annals_core::{LONGEST_TEXT, Shown, each_term, irregular_forms, is_unspaced, stem_of};

/// Approximate length of a snippet, in characters.
const SNIPPET: usize = 200;
/// Bytes that a snippet is chosen from: folding a complete output costs more than searching it.
const REGION: usize = 8 << 10;
/// Longer texts are cut to such a region first.
const SHORT: usize = 2 * REGION;
/// Occurrences of each word that are considered to choose the region.
const OCCURRENCES: usize = 100;

/// What is marked in snippets.
pub struct Marker<'q> {
    /// Found in a text as they are: phrases, paths, scripts without spaces.
    needles: Vec<(&'q str, usize)>,
    /// Whole words, and words by their start or stem.
    words: HashMap<&'q [u8], usize>,
    starts: Vec<(&'q str, usize)>,
    stems: HashMap<String, usize>,
    /// How much each clause of the query is worth.
    worth: Vec<f32>,
}

/// A marked word: start and length in characters, and its clause.
struct Mark {
    start: usize,
    length: usize,
    clause: usize,
}

impl<'q> Marker<'q> {
    /// `loose` if the words of the query may also be found in other forms; `rarity` by term.
    pub fn new(query: &'q Query, loose: bool, rarity: &HashMap<Vec<u8>, f32>) -> Marker<'q> {
        let mut marker = Marker {
            needles: Vec::new(),
            words: HashMap::new(),
            starts: Vec::new(),
            stems: HashMap::new(),
            worth: Vec::new(),
        };
        let mut related = Vec::new();
        for (clause, parts) in query.clauses.iter().enumerate() {
            let mut worth = 0.0f32;
            for piece in &parts.pieces {
                if loose && piece.role == WordRole::Stop {
                    continue;
                }
                worth = 1.0;
                let is_word =
                    |term: &str| term.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
                if piece.exact || !is_word(&piece.text) || !piece.text.is_ascii() {
                    marker.needles.push((&piece.text, clause));
                }
                if piece.exact && !loose {
                    continue;
                }
                for term in &piece.terms {
                    let Ok(text) = std::str::from_utf8(term) else { continue };
                    worth = worth.max(rarity.get(term).copied().unwrap_or(1.0));
                    if !text.is_ascii() {
                        marker.needles.push((text, clause));
                    }
                    marker.words.entry(term).or_insert(clause);
                    if piece.prefix {
                        marker.starts.push((text, clause));
                    } else if loose && piece.terms.len() == 1 {
                        marker.stems.entry(stem_of(text).into_owned()).or_insert(clause);
                        let forms = irregular_forms(text).chain(related_words(text).close);
                        related.extend(forms.map(|word| (word, clause)));
                    }
                }
            }
            marker.worth.push(worth);
        }
        for (word, clause) in related {
            marker.words.entry(word.as_bytes()).or_insert(clause);
            marker.stems.entry(stem_of(word).into_owned()).or_insert(clause);
        }
        marker
    }

    /// The best part of a text, and the start and length of each match in characters. The complete text is masked before
    /// it is cut: part of a secret is not recognised as one.
    pub fn snippet(&self, door: &Door, text: &PassageText) -> (Shown, Vec<[usize; 2]>) {
        let masked = door.text(start_and_beyond(text.shown(door)));
        let (part, cut) = self.region(truncate_to(masked.as_str(), LONGEST_TEXT));
        // On one line: matches may be separated only by line breaks.
        let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
        let letters: Vec<char> = line.chars().collect();
        // Words that begin inside others, after an escape sequence, are better than none.
        let mut marks = self.marks(&letters, false);
        let within = marks.is_empty();
        if within {
            marks = self.marks(&letters, true);
        }
        let start = self.best_start(&marks, &letters);
        let (from, to) = avoid_cutting_masks(&letters, start, (start + SNIPPET).min(letters.len()));
        let mut text: String = letters[from..to].iter().collect();
        if from > 0 || cut {
            text.insert(0, '…');
        }
        if to < letters.len() {
            text.push('…');
        }
        let shown: Vec<char> = text.chars().collect();
        let marks = self.marks(&shown, within).iter().map(|mark| [mark.start, mark.length]).collect();
        (Shown::new(text), marks)
    }

    /// The part of a long text with most of the words, and whether it starts inside the text.
    fn region<'t>(&self, text: &'t str) -> (&'t str, bool) {
        if text.len() <= SHORT {
            return (text, false);
        }
        let words =
            self.words.iter().filter_map(|(term, clause)| Some((std::str::from_utf8(term).ok()?, *clause)));
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (needle, clause) in words.chain(self.needles.iter().copied()) {
            let mut at = 0;
            for _ in 0..OCCURRENCES {
                let Some(found) = find_folded(&text.as_bytes()[at..], needle.as_bytes()) else { break };
                places.push((at + found, clause));
                at += found + needle.len().max(1);
            }
        }
        places.sort_unstable();
        let window = |from: usize| {
            let end = places[from].0 + REGION;
            places[from..].iter().take_while(move |(at, _)| *at < end).map(|(_, clause)| *clause)
        };
        let best = (0..places.len()).map(|from| (from, self.sum(window(from))));
        let best = best.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
        let first = places.get(best.0).map_or(0, |(at, _)| *at);
        let from = truncate_to(text, first.saturating_sub(REGION / 2)).len();
        (&truncate_to(text, first.saturating_add(REGION + SNIPPET))[from..], from > 0)
    }

    /// Distinct clauses by their worth; repetitions decide between equal ones.
    fn sum(&self, clauses: impl Iterator<Item = usize>) -> f32 {
        let (mut seen, mut sum, mut repeated) = (0u64, 0.0, 0.0);
        for clause in clauses {
            let bit = 1 << clause.min(63);
            if seen & bit == 0 {
                sum += self.worth[clause];
            } else {
                repeated += 0.001;
            }
            seen |= bit;
        }
        sum + f32::min(repeated, 0.05)
    }

    /// Where the snippet with most of the words starts.
    fn best_start(&self, marks: &[Mark], letters: &[char]) -> usize {
        let window = |from: usize| {
            let end = marks[from].start + SNIPPET;
            marks[from..].iter().take_while(move |mark| mark.start + mark.length <= end)
        };
        let best = (0..marks.len()).map(|from| (from, self.sum(window(from).map(|mark| mark.clause))));
        let (first, _) = best.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
        let Some(first_mark) = marks.get(first) else { return 0 };
        let end = window(first).last().map_or(first_mark.start, |mark| mark.start + mark.length);
        if end <= SNIPPET * 9 / 10 || letters.len() <= SNIPPET {
            return 0;
        }
        let room = SNIPPET.saturating_sub(end - first_mark.start);
        let start = first_mark.start.saturating_sub((room / 2).min(SNIPPET / 4));
        // At a word.
        let space = letters[start..first_mark.start].iter().position(|letter| *letter == ' ');
        space.map_or(start, |space| start + space + 1)
    }

    /// `within` if words are also found inside others.
    fn marks(&self, letters: &[char], within: bool) -> Vec<Mark> {
        let small: Vec<char> =
            letters.iter().map(|letter| letter.to_lowercase().next().unwrap_or(*letter)).collect();
        let mut marks = Vec::new();
        let mut at = 0;
        while at < small.len() {
            let words = self.words.iter().filter(|_| within);
            let words = words.filter_map(|(term, clause)| Some((std::str::from_utf8(term).ok()?, *clause)));
            let needle = self
                .needles
                .iter()
                .copied()
                .chain(words)
                .filter(|(needle, _)| {
                    needle.chars().eq(small[at..].iter().copied().take(needle.chars().count()))
                })
                .map(|(needle, clause)| (needle.chars().count(), clause))
                .max_by_key(|(length, _)| *length)
                .filter(|(length, _)| *length > 0);
            if let Some((length, clause)) = needle {
                marks.push(Mark { start: at, length, clause });
                at += length;
                continue;
            }
            let is_part =
                |letter: &&char| (letter.is_alphanumeric() || **letter == '_') && !is_unspaced(**letter);
            let begins = is_part(&&small[at]) && (at == 0 || !is_part(&&small[at - 1]));
            if !begins {
                at += 1;
                continue;
            }
            let length = small[at..].iter().take_while(is_part).count();
            let word: String = letters[at..at + length].iter().collect();
            match self.clause_of(&word).filter(|_| !within) {
                Some(clause) => {
                    marks.push(Mark { start: at, length, clause });
                    at += length;
                }
                // A script without spaces may follow within the run.
                None if word.is_ascii() && !within => at += length,
                None => at += 1,
            }
        }
        marks
    }

    fn clause_of(&self, word: &str) -> Option<usize> {
        let mut found = None;
        let mut is_whole = true;
        each_term(word, |term| {
            found = found.or_else(|| self.words.get(term).copied());
            if let (None, true, Ok(text)) = (found, is_whole, std::str::from_utf8(term)) {
                let start = self.starts.iter().find(|(start, _)| text.starts_with(start));
                found = start
                    .map(|(_, clause)| *clause)
                    .or_else(|| self.stems.get(stem_of(text).as_ref()).copied());
            }
            is_whole = false;
        });
        found
    }
}

/// Moves the ends so that no mask is cut in two.
fn avoid_cutting_masks(letters: &[char], mut start: usize, mut end: usize) -> (usize, usize) {
    let opens = |at: usize| letters[at..].starts_with(&['[', 's', 'e', 'c', 'r', 'e', 't', ':']);
    let close =
        |at: usize| letters[at..].iter().take(64).position(|letter| *letter == ']').map(|step| at + step + 1);
    for at in start.saturating_sub(64)..letters.len().min(end) {
        if !opens(at) {
            continue;
        }
        let Some(close) = close(at) else { continue };
        if at < start && close > start {
            start = close;
        }
        if at < end && close > end {
            end = close;
        }
    }
    (start.min(end), end)
}
