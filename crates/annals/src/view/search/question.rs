//! A question as words to rank by: without those that mean nothing, with their other forms and with related words.

use super::query::{Clause, Query};
use super::related::{RelatedWords, related_words};
use super::stop_words::{WordRole, is_in_another_language};
use annals_core::{NamedTime, each_term, irregular_forms, stem_of};
use annals_store::TermGroup;

/// Each word has a bit.
const MOST_WORDS: usize = 64;
/// Words of a question beyond which no related ones are added.
const MOST_RELATED: usize = 32;

/// The words of a question.
pub struct Question {
    pub words: Vec<QuestionWord>,
    when: Option<NamedTime>,
}

pub struct QuestionWord {
    pub group: TermGroup,
    /// One that questions contain whatever they are about.
    pub weak: bool,
    /// The number of the word that this one is related to, and how.
    pub related_to: Option<(usize, Relation)>,
    /// Less than 1 for a part of what was typed.
    pub share: f32,
}

/// How a word is related to one that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It means about the same.
    Close,
    /// It is written about the same things.
    Loose,
}

impl Question {
    pub fn of(query: &Query) -> Question {
        let mut question = Question { words: Vec::new(), when: query.when.clone() };
        for clause in &query.clauses {
            question.add(clause);
        }
        for name in query.when.iter().flat_map(NamedTime::names) {
            let group = TermGroup { terms: vec![name.as_bytes().to_vec()], ..TermGroup::default() };
            question.push(group, true, 1.0);
        }
        let typed = question.words.len();
        let texts = query.clauses.iter().flat_map(|clause| &clause.pieces).map(|piece| piece.text.as_str());
        if !is_in_another_language(&texts.collect::<Vec<_>>()) {
            for number in 0..typed.min(MOST_RELATED) {
                question.add_related(number, typed);
            }
        }
        question
    }

    pub fn groups(&self) -> Vec<TermGroup> {
        self.words.iter().map(|word| word.group.clone()).collect()
    }

    pub fn is_timely(&self, minutes: i64) -> bool {
        self.when.as_ref().is_some_and(|when| when.contains(minutes))
    }

    fn add(&mut self, clause: &Clause) {
        let [piece] = clause.pieces.as_slice() else {
            // Alternatives are one word.
            self.push(clause.term_groups().pop().unwrap_or_default(), false, 1.0);
            return;
        };
        if piece.role == WordRole::Stop {
            return;
        }
        let weak = piece.role == WordRole::Weak;
        // What follows an apostrophe is no word: `Anna's`, `l'école`.
        let has_apostrophe = piece.text.contains(['\'', '\u{2019}']);
        for (number, term) in piece.terms.iter().enumerate() {
            if has_apostrophe && term.len() < 3 {
                continue;
            }
            let mut group = piece.term_group(number);
            if let (false, Ok(word)) = (piece.prefix, std::str::from_utf8(term)) {
                add_forms(word, &mut group);
            }
            self.push(group, weak, 1.0);
        }
        // The parts of an identifier, in case it is nowhere as typed.
        if let [whole] = piece.terms.as_slice() {
            let mut parts: Vec<Vec<u8>> = Vec::new();
            each_term(&piece.typed, |part| {
                if part != whole.as_slice() {
                    parts.push(part.to_vec());
                }
            });
            let share = 0.5 / parts.len().max(1) as f32;
            for part in parts {
                self.push(TermGroup { terms: vec![part], ..TermGroup::default() }, false, share);
            }
        }
    }

    fn push(&mut self, group: TermGroup, weak: bool, share: f32) {
        let is_known = self.words.iter().any(|word| word.group.terms == group.terms);
        if self.words.len() < MOST_WORDS && !is_known && group != TermGroup::default() {
            self.words.push(QuestionWord { group, weak, related_to: None, share });
        }
    }

    fn add_related(&mut self, number: usize, typed: usize) {
        let word = &self.words[number];
        let ([term], false) = (word.group.terms.as_slice(), word.weak) else { return };
        let Ok(text) = std::str::from_utf8(term) else { return };
        let RelatedWords { close, loose } = related_words(text);
        for (related, relation) in [(close, Relation::Close), (loose, Relation::Loose)] {
            self.push_related(number, typed, &related, relation);
        }
    }

    fn push_related(&mut self, number: usize, typed: usize, related: &[&str], relation: Relation) {
        let mut group = TermGroup::default();
        for related in related {
            let is_typed = self.words[..typed]
                .iter()
                .any(|word| word.group.terms.iter().any(|term| term == related.as_bytes()));
            if !is_typed {
                group.terms.push(related.as_bytes().to_vec());
                let forms = irregular_forms(related).filter(|form| form != related);
                group.forms.extend(forms.map(|form| form.as_bytes().to_vec()));
            }
        }
        if !group.terms.is_empty() && self.words.len() < MOST_WORDS {
            let share = self.words[number].share;
            let related_to = Some((number, relation));
            self.words.push(QuestionWord { group, weak: false, related_to, share });
        }
    }
}

/// The words of a question that say what it is about, in lower case.
#[cfg(feature = "test-clock")]
pub fn content_words(question: &str) -> annals_core::Result<Vec<String>> {
    let query = super::query::parse_query(question, annals_core::Time::from_seconds(0))?;
    let pieces = query.clauses.iter().flat_map(|clause| &clause.pieces);
    let terms = pieces.filter(|piece| piece.role == WordRole::Content).flat_map(|piece| &piece.terms);
    Ok(terms.map(|term| String::from_utf8_lossy(term).into_owned()).collect())
}

/// Adds the other forms of an English word.
fn add_forms(word: &str, group: &mut TermGroup) {
    group
        .forms
        .extend(irregular_forms(word).filter(|form| *form != word).map(|form| form.as_bytes().to_vec()));
    if word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        group.stem = Some(stem_of(word).into_owned());
    }
}
