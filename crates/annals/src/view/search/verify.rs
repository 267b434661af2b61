//! What the index alone cannot confirm: phrases, paths and exclusions are checked in the texts of hits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::passages::{fragment, matches_query};
use super::query::{Clause, Query, normalize};
use super::{Group, GroupKey, Searcher, group_of};
use annals_core::Result;
use annals_store::{PassageHit, TermQuery};

/// Hits verified at a time.
const WINDOW: usize = 2_000;

impl Searcher<'_> {
    /// Sessions in the order in which windows of hits confirm them: each page continues where the last one ended.
    pub fn verified_groups(
        &self,
        hits: &[(f32, PassageHit)],
        terms: &TermQuery,
        test: &Verification<'_>,
        from: usize,
        enough: usize,
    ) -> Result<(Vec<Group>, Option<usize>)> {
        let mut groups: Vec<Group> = Vec::new();
        let mut known: HashMap<GroupKey, usize> = HashMap::new();
        let mut at = from.min(hits.len());
        while at < hits.len() && groups.len() <= enough && at - from < self.effort {
            let end = at.saturating_add(WINDOW).min(hits.len());
            let window = self.resolve_sessions(hits[at..end].to_vec(), test.query, terms)?;
            for group in self.group_hits(self.verify(window, test)?)? {
                let Some((_, first)) = group.hits.first() else { continue };
                match known.entry(group_of(first)) {
                    Entry::Occupied(place) => groups[*place.get()].hits.extend(group.hits),
                    Entry::Vacant(place) => {
                        place.insert(groups.len());
                        groups.push(group);
                    }
                }
            }
            at = end;
        }
        Ok((groups, Some(at).filter(|at| *at < hits.len())))
    }

    fn verify(
        &self,
        mut hits: Vec<(f32, PassageHit)>,
        test: &Verification<'_>,
    ) -> Result<Vec<(f32, PassageHit)>> {
        let mut reader = self.reader();
        // In order of their bytes, so that each segment is decompressed once.
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_unstable_by_key(|at| (hits[*at].1.file, hits[*at].1.offset));
        let mut fitting = vec![false; hits.len()];
        for at in order {
            let hit = &hits[at].1;
            if reader.rules_out(hit, &test.fragments)? {
                continue;
            }
            let Some(found) = self.read(&mut reader, hit)? else { continue };
            fitting[at] = matches_query(self.view.door, &found.text, &test.exact, &test.unwanted)
                && test.path.as_ref().is_none_or(|path| self.touches(hit, path).unwrap_or(false));
        }
        let mut fitting = fitting.into_iter();
        hits.retain(|_| fitting.next().unwrap_or(false));
        Ok(hits)
    }

    fn touches(&self, hit: &PassageHit, path: &str) -> Result<bool> {
        let touches = self.view.archive.touches(hit.session, hit.file, hit.offset)?;
        Ok(touches
            .iter()
            .any(|touch| normalize(&String::from_utf8_lossy(touch.path.expose())).ends_with(path)))
    }
}

/// What a text must satisfy besides containing the words.
pub struct Verification<'q> {
    query: &'q Query,
    exact: Vec<&'q Clause>,
    unwanted: Vec<&'q Clause>,
    path: Option<String>,
    /// If the bytes do not contain these, the text cannot contain `exact`.
    fragments: Vec<&'q str>,
}

impl<'q> Verification<'q> {
    /// None if the index alone can decide.
    pub fn of(query: &'q Query) -> Option<Verification<'q>> {
        let exact: Vec<&Clause> = query.clauses.iter().filter(|clause| clause.is_exact()).collect();
        let unwanted: Vec<&Clause> = query.unwanted.iter().filter(|clause| clause.is_exact()).collect();
        let path = query.file.as_deref().map(normalize);
        if exact.is_empty() && unwanted.is_empty() && path.is_none() {
            return None;
        }
        let fragments = exact.iter().filter_map(|clause| match clause.pieces.as_slice() {
            [piece] => fragment(&piece.text),
            _ => None,
        });
        let fragments = fragments.collect();
        Some(Verification { query, exact, unwanted, path, fragments })
    }
}
