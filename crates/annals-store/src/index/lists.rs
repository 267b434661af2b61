//! Reads the lists of the text index: the passages of a term, the terms that begin alike, the places of passages.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::format::{BlockReader, Doc, read_docs};
use super::search::{PassageMatch, TermGroup};
use crate::error::Result;
use crate::{Archive, Store, sql};
use annals_core::{FileId, stem_of, stem_start};

/// Terms that a prefix may expand to.
const MOST_TERMS: usize = 5_000;
/// Terms of a segment that are compared with a word that nobody wrote.
const MOST_NEIGHBOURS: usize = 100_000;

/// The passages of a segment that contain a word as typed, and those that contain another form. Both are sorted.
#[derive(Default)]
pub(super) struct GroupList {
    pub exact: Vec<u32>,
    pub forms: Vec<u32>,
}

impl Archive<'_> {
    /// Terms of all homes that begin like this and fit, with the number of passages that contain each. The caller must
    /// check that a visible passage has the term before it is shown.
    pub fn terms_from(&self, prefix: &[u8], fits: impl Fn(&[u8]) -> bool) -> Result<HashMap<Vec<u8>, u64>> {
        let mut terms: HashMap<Vec<u8>, u64> = HashMap::new();
        for (segment, _) in self.store().segments()? {
            self.store().terms_of(segment, prefix, MOST_NEIGHBOURS, |reader| {
                if fits(reader.term()) {
                    *terms.entry(reader.term().to_vec()).or_default() += reader.count();
                }
                true
            })?;
        }
        Ok(terms)
    }
}

/// The index is shared by all homes: callers must filter results by visible files.
impl Store {
    /// Files and places of calls that contain every one of these groups.
    pub(super) fn calls_with(
        &self,
        groups: &[TermGroup],
        segments: &[(i64, i64)],
    ) -> Result<HashSet<(FileId, i64)>> {
        let mut calls: Option<HashSet<(FileId, i64)>> = None;
        for one in groups {
            let mut with = HashSet::new();
            for (segment, _) in segments {
                let list = self.list(*segment, one)?;
                if list.is_empty() {
                    continue;
                }
                let seen: Vec<PassageMatch> = list.into_iter().map(PassageMatch::new).collect();
                self.visit_docs(*segment, &seen, |doc, _| {
                    with.insert((doc.file, doc.offset));
                    Ok(())
                })?;
            }
            calls = Some(match calls {
                Some(before) => before.intersection(&with).copied().collect(),
                None => with,
            });
        }
        Ok(calls.unwrap_or_default())
    }

    pub(crate) fn segments(&self) -> Result<Vec<(i64, i64)>> {
        let mut statement =
            self.connection.prepare_cached(sql!("select id, passages from search_segment order by id"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Visits the passages in `seen`. Reads the table of the segment up to the last of them.
    pub(super) fn visit_docs(
        &self,
        segment: i64,
        seen: &[PassageMatch],
        mut visit: impl FnMut(&Doc, &PassageMatch) -> rusqlite::Result<()>,
    ) -> Result<()> {
        if seen.is_empty() {
            return Ok(());
        }
        let mut statement =
            self.connection.prepare_cached(sql!("select table_data from search_segment where id = $1"))?;
        statement.query_row(params![segment], |row| {
            let mut seen = seen.iter().peekable();
            for (number, doc) in read_docs(row.get_ref(0)?.as_blob().unwrap_or_default()).enumerate() {
                match seen.peek() {
                    Some(next) if next.passage as usize == number => visit(&doc, next)?,
                    Some(_) => continue,
                    None => break,
                }
                seen.next();
            }
            Ok(())
        })?;
        Ok(())
    }

    pub(crate) fn search_epochs(&self) -> Result<HashMap<FileId, i64>> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select id, search_epoch from file where search_epoch > 0"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(super) fn epoch_of(&self, file: FileId, epochs: &mut Epochs) -> rusqlite::Result<i64> {
        let known = match epochs {
            Epochs::All(known) => return Ok(known.get(&file).copied().unwrap_or(0)),
            Epochs::Cached(known) => known,
        };
        if let Some(epoch) = known.get(&file) {
            return Ok(*epoch);
        }
        let mut statement =
            self.connection.0.prepare_cached(sql!("select search_epoch from file where id = $1"))?;
        let found = statement.query_row(params![file], |row| row.get(0)).optional()?.unwrap_or(0);
        known.insert(file, found);
        Ok(found)
    }

    /// Passages of a segment that contain any term of the group, sorted.
    pub(super) fn list(&self, segment: i64, group: &TermGroup) -> Result<Vec<u32>> {
        let mut passages = Vec::new();
        for term in &group.terms {
            self.exact(segment, term, &mut passages)?;
        }
        for prefix in &group.prefixes {
            self.beginning(segment, prefix, |_| true, &mut passages)?;
        }
        if group.terms.len() + group.prefixes.len() > 1 || !group.prefixes.is_empty() {
            sort_distinct(&mut passages);
        }
        Ok(passages)
    }

    pub(super) fn group_list(&self, segment: i64, group: &TermGroup) -> Result<GroupList> {
        let exact = self.list(segment, group)?;
        let mut forms = Vec::new();
        for term in &group.forms {
            self.exact(segment, term, &mut forms)?;
        }
        if let Some(stem) = &group.stem {
            let has_stem = |term: &[u8]| {
                std::str::from_utf8(term).is_ok_and(|term| stem_of(term).as_ref() == stem)
                    && !group.terms.iter().any(|typed| typed == term)
            };
            self.beginning(segment, stem_start(stem).as_bytes(), has_stem, &mut forms)?;
        }
        sort_distinct(&mut forms);
        Ok(GroupList { exact, forms })
    }

    fn exact(&self, segment: i64, term: &[u8], passages: &mut Vec<u32>) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select data from search_block where segment = $1 and first_term <= $2
             order by first_term desc limit 1"
        ))?;
        statement
            .query_row(params![segment, term], |row| {
                let mut reader = BlockReader::new(row.get_ref(0)?.as_blob().unwrap_or_default());
                while reader.advance() && reader.term() <= term {
                    if reader.term() == term {
                        reader.passages(passages);
                    }
                }
                Ok(())
            })
            .optional()?;
        Ok(())
    }

    /// Adds the passages of terms with this prefix that fit.
    fn beginning(
        &self,
        segment: i64,
        prefix: &[u8],
        fits: impl Fn(&[u8]) -> bool,
        passages: &mut Vec<u32>,
    ) -> Result<()> {
        self.terms_of(segment, prefix, MOST_TERMS, |reader| {
            let fits = fits(reader.term());
            if fits {
                reader.passages(passages);
            }
            fits
        })
    }

    /// Visits the terms of a segment with this prefix, until `most` of them were of use.
    fn terms_of(
        &self,
        segment: i64,
        prefix: &[u8],
        most: usize,
        mut visit: impl FnMut(&BlockReader<'_>) -> bool,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select data from search_block where segment = $1
             and first_term >= coalesce((select max(first_term) from search_block
                                         where segment = $1 and first_term <= $2), $2)
             order by first_term"
        ))?;
        let mut rows = statement.query(params![segment, prefix])?;
        let mut terms = 0;
        while let Some(row) = rows.next()? {
            let mut reader = BlockReader::new(row.get_ref(0)?.as_blob().unwrap_or_default());
            while reader.advance() {
                if reader.term().starts_with(prefix) {
                    terms += usize::from(visit(&reader));
                } else if reader.term() > prefix {
                    return Ok(());
                }
                if terms >= most {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn sort_distinct(passages: &mut Vec<u32>) {
    passages.sort_unstable();
    passages.dedup();
}

/// Epochs of files: of all, or of those requested so far.
pub(super) enum Epochs {
    All(HashMap<FileId, i64>),
    Cached(HashMap<FileId, i64>),
}
