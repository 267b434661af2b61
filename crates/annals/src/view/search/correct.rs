//! Typing errors: a word that no session has is replaced by the nearest one that some have, and the answer says so.

use super::query::{Query, QueryPiece};
use super::stop_words::WordRole;
use super::{Correction, Searcher};
use annals_core::{Result, Shown};
use annals_store::{TermGroup, TermQuery};

/// Shorter words have too many neighbours.
const SHORTEST: usize = 5;
/// Words of this length may have two errors.
const LONG: usize = 8;
/// Neighbours that are tried, nearest first.
const TRIED: usize = 8;

impl Searcher<'_> {
    /// Terms of a query that no visible passage has.
    pub fn unknown_words(&self, query: &Query) -> Result<Vec<Vec<u8>>> {
        let mut unknown = Vec::new();
        for piece in
            query.clauses.iter().flat_map(|clause| &clause.pieces).filter(|piece| is_correctable(piece))
        {
            for term in &piece.terms {
                if !self.is_known(term)? {
                    unknown.push(term.clone());
                }
            }
        }
        Ok(unknown)
    }

    /// The query with other words for these; `None` if there are none.
    pub fn correct(&self, query: &Query, unknown: &[Vec<u8>]) -> Result<Option<(Query, Vec<Correction>)>> {
        let (mut query, mut made) = (query.clone(), Vec::new());
        for piece in query.clauses.iter_mut().flat_map(|clause| &mut clause.pieces) {
            if !is_correctable(piece) || !unknown.contains(&piece.terms[0]) {
                continue;
            }
            let Some(used) = self.nearest(&piece.text)? else { continue };
            made.push(Correction { typed: Shown::new(piece.text.clone()), used: Shown::new(used.clone()) });
            piece.terms = vec![used.clone().into_bytes()];
            (piece.typed, piece.text) = (used.clone(), used);
        }
        Ok(Some((query, made)).filter(|(_, made)| !made.is_empty()))
    }

    /// The nearest word that a visible passage has, and of equally near ones the most common.
    fn nearest(&self, word: &str) -> Result<Option<String>> {
        let letters: Vec<char> = word.chars().collect();
        let most = if letters.len() < LONG { 1 } else { 2 };
        let distance = |term: &[u8]| {
            let term = std::str::from_utf8(term).ok()?;
            let is_word =
                term.chars().all(char::is_alphabetic) && term.chars().count().abs_diff(letters.len()) <= most;
            let distance = is_word.then(|| strsim::osa_distance(term, word))?;
            (distance <= most).then_some(distance)
        };
        // Errors are rarely in the first letters, except that two of them are swapped or one is too many.
        let [first, second, third, ..] = letters.as_slice() else { return Ok(None) };
        let mut near: Vec<(usize, u64, Vec<u8>)> = Vec::new();
        let mut starts =
            [[first, second], [second, first], [first, third]].map(|start| start.into_iter().collect());
        starts.sort();
        let mut starts: Vec<String> = starts.into();
        starts.dedup();
        for start in starts {
            let terms = self.view.archive.terms_from(start.as_bytes(), |term| distance(term).is_some())?;
            near.extend(terms.into_iter().filter_map(|(term, count)| Some((distance(&term)?, count, term))));
        }
        near.sort_by(|(one, many, left), (other, few, right)| {
            one.cmp(other).then(few.cmp(many)).then(left.cmp(right))
        });
        for (_, _, term) in near.into_iter().take(TRIED) {
            if self.is_known(&term)? {
                return Ok(String::from_utf8(term).ok());
            }
        }
        Ok(None)
    }

    fn is_known(&self, term: &[u8]) -> Result<bool> {
        let group = TermGroup { terms: vec![term.to_vec()], ..TermGroup::default() };
        let query = TermQuery { groups: vec![group], least: 1, ..TermQuery::default() };
        let mut known = false;
        self.view.archive.matches(&query)?.visit(None, |_| known = true)?;
        Ok(known)
    }
}

/// A word of letters that was neither quoted nor left open.
fn is_correctable(piece: &QueryPiece) -> bool {
    let is_word = piece.text.chars().all(char::is_alphabetic) && piece.text.chars().count() >= SHORTEST;
    let plain = !piece.quoted && !piece.prefix && !piece.exact && piece.terms.len() == 1;
    is_word && plain && piece.role == WordRole::Content
}
