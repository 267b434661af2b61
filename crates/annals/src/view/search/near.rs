//! Finds the words of a question in a text, and measures how close they are to each other.

use std::collections::HashMap;

use super::question::Question;
use super::weights::Weights;
use crate::view::door::between_letters;
use annals_core::{each_term, stem_of};

/// Words are only looked for up to here: longer texts are output, not prose.
const READ: usize = 32 << 10;
/// Words that are farther apart have nothing to do with each other.
const FAR: usize = 12;

/// Recognises the words of a question.
pub struct WordMatcher<'q> {
    terms: HashMap<&'q [u8], usize>,
    stems: HashMap<&'q str, usize>,
    form: f32,
    words: usize,
    /// Words that were typed, without related ones.
    typed: usize,
    /// Last position and share of each word.
    last: Vec<Option<usize>>,
}

impl<'q> WordMatcher<'q> {
    pub fn new(question: &'q Question, weights: &Weights) -> WordMatcher<'q> {
        let (mut terms, mut stems) = (HashMap::new(), HashMap::new());
        for (number, word) in question.words.iter().enumerate() {
            for term in word.group.terms.iter().chain(&word.group.forms) {
                terms.entry(term.as_slice()).or_insert(number);
            }
            if let Some(stem) = &word.group.stem {
                stems.entry(stem.as_str()).or_insert(number);
            }
        }
        let typed = question.words.iter().filter(|word| word.related_to.is_none()).count();
        WordMatcher { terms, stems, form: weights.form, words: question.words.len(), typed, last: Vec::new() }
    }

    /// The word that a term is, and whether as typed.
    fn word(&self, term: &[u8]) -> Option<(usize, bool)> {
        if let Some(number) = self.terms.get(term) {
            return Some((*number, true));
        }
        let term = std::str::from_utf8(term).ok()?;
        self.stems.get(stem_of(term).as_ref()).map(|number| (*number, false))
    }

    /// How much of each word a text has.
    pub fn words_in(&mut self, text: &str) -> Vec<f32> {
        let mut held = vec![0.0f32; self.words];
        each_term(&text[..between_letters(text, READ)], |term| {
            if let Some((word, exact)) = self.word(term) {
                held[word] = held[word].max(if exact { 1.0 } else { self.form });
            }
        });
        held
    }

    /// How close each word comes to the one after it, from 0 to 1: 1 if all are adjacent.
    pub fn nearness(&mut self, text: &str) -> f32 {
        if self.typed < 2 {
            return 0.0;
        }
        self.last.clear();
        self.last.resize(self.words, None);
        let mut best = vec![0.0f32; self.words];
        let mut position = 0;
        let mut last = std::mem::take(&mut self.last);
        each_term(&text[..between_letters(text, READ)], |term| {
            position += 1;
            let Some((word, _)) = self.word(term) else { return };
            for (other, at) in last.iter().enumerate() {
                let Some(apart) =
                    at.map(|at: usize| position - at).filter(|apart| *apart > 0 && *apart <= FAR)
                else {
                    continue;
                };
                if other != word {
                    let near = 1.0 / (1.0 + (apart - 1) as f32 / 3.0);
                    // Words that were typed one after another belong together.
                    let near = if word.abs_diff(other) == 1 { near } else { 0.6 * near };
                    for one in [word, other] {
                        best[one] = best[one].max(near);
                    }
                }
            }
            last[word] = Some(position);
        });
        self.last = last;
        best[..self.typed].iter().sum::<f32>() / self.typed as f32
    }
}
