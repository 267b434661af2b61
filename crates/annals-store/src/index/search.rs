//! Queries the text index: which passages contain these terms, which are alive, and how rare each term is.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::format::{BlockReader, Doc, read_docs};
use crate::error::Result;
use crate::{Archive, Store, sql};
use annals_core::{FileId, PassageKind, Raw, SessionId};

/// Terms that a prefix may expand to.
const MOST_TERMS: usize = 5_000;
/// Up to this many hits, epochs are read per file; beyond, reading those of all files is cheaper.
const FEW: usize = 1_000;

/// One word of a query: any of these terms, or any term with one of these prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermGroup {
    pub terms: Vec<Vec<u8>>,
    pub prefixes: Vec<Vec<u8>>,
}

/// What passages must contain, and what they must not.
#[derive(Debug, Clone, Default)]
pub struct TermQuery {
    pub groups: Vec<TermGroup>,
    pub excluded: Vec<TermGroup>,
    /// The number of groups that a passage must contain.
    pub least: usize,
    /// Groups that one call must contain, all of them; only its input, output and files match.
    pub of_calls: Vec<TermGroup>,
    /// Kinds of passages to include; all if `None`.
    pub kinds: Option<Vec<PassageKind>>,
    pub since_minute: Option<i64>,
    pub until_minute: Option<i64>,
    /// Sessions to include; all if `None`. 0 represents records of files.
    pub sessions: Option<HashSet<SessionId>>,
}

/// A matching passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassageHit {
    pub session: SessionId,
    pub file: FileId,
    pub offset: u64,
    pub kind: PassageKind,
    pub minutes: i64,
    /// Sum of the rarities of the groups that it contains.
    pub weight: f32,
    /// One bit per group that it contains.
    pub held: u64,
    /// Base-2 logarithm of the number of terms.
    pub length: u8,
}

impl Archive<'_> {
    /// Matching passages with their scores, unordered: all, or at least the `most` best. Also returns whether
    /// these are all.
    pub fn passages(
        &self,
        query: &TermQuery,
        most: usize,
        score: impl Fn(&PassageHit) -> f32,
    ) -> Result<(Vec<(f32, PassageHit)>, bool)> {
        let (index, visible) = (self.store(), self.visible_files()?);
        let segments = index.segments()?;
        let all: i64 = segments.iter().map(|(_, count)| count).sum();
        // Read all lists first: the rarity of a term depends on all segments.
        let mut found: Vec<Vec<Vec<u32>>> = Vec::with_capacity(segments.len());
        let mut counts = vec![0usize; query.groups.len()];
        for (segment, _) in &segments {
            let mut lists = Vec::with_capacity(query.groups.len());
            for (group, count) in query.groups.iter().zip(&mut counts) {
                let list = index.list(*segment, group)?;
                *count += list.len();
                lists.push(list);
            }
            found.push(lists);
        }
        let rarity: Vec<f32> =
            counts.iter().map(|count| (1.0 + all as f32 / (*count as f32 + 1.0)).ln()).collect();
        let few = !counts.is_empty() && counts.iter().sum::<usize>() <= FEW;
        let mut epochs = match few {
            true => Epochs::Cached(HashMap::new()),
            false => Epochs::All(index.search_epochs()?),
        };
        let calls = match query.of_calls.as_slice() {
            [] => None,
            groups => Some(index.calls_with(groups, &segments)?),
        };
        let better = |(left, _): &(f32, PassageHit), (right, _): &(f32, PassageHit)| right.total_cmp(left);
        let (mut hits, mut matches, mut complete) = (Vec::new(), SegmentMatches::default(), true);
        for ((segment, count), lists) in segments.iter().zip(&found) {
            let held = lists.iter().filter(|list| !list.is_empty()).count();
            if held < query.least || held == 0 && !query.groups.is_empty() {
                continue;
            }
            matches.fill(usize::try_from(*count).unwrap_or(0), lists, &rarity);
            for excluded in &query.excluded {
                matches.exclude(&index.list(*segment, excluded)?);
            }
            matches.seen.retain(|seen| !seen.excluded && seen.held.count_ones() as usize >= query.least);
            // Passages of a file are adjacent.
            let mut last = (FileId::default(), 0);
            index.visit_docs(*segment, &matches.seen, |doc, seen| {
                if doc.file != last.0 {
                    last = (doc.file, index.epoch_of(doc.file, &mut epochs)?);
                }
                // An output in a separate file is matched with its call only when it is read.
                let apart = doc.kind == PassageKind::Output.stored();
                let of_calls = calls.as_ref().is_none_or(|calls| calls.contains(&(doc.file, doc.offset)));
                let alive = last.1 == doc.epoch && (apart || of_calls);
                let is_visible = visible.as_ref().is_none_or(|files| files.contains(&doc.file));
                if let Some(hit) = hit(query, doc, seen).filter(|_| alive && is_visible) {
                    hits.push((score(&hit), hit));
                }
                if hits.len() > 2 * most {
                    complete = false;
                    hits.select_nth_unstable_by(most, better);
                    hits.truncate(most);
                }
                Ok(())
            })?;
        }
        Ok((hits, complete))
    }

    /// The visible files; `None` if all files are visible.
    pub(super) fn visible_files(&self) -> Result<Option<HashSet<FileId>>> {
        if self.is_whole() {
            return Ok(None);
        }
        let mut statement = self.prepare(sql!(
            "select file.id from file join instance on instance.id = file.instance where {visible}"
        ))?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(Some(rows.collect::<rusqlite::Result<_>>()?))
    }

    /// Rows of sessions that match a filter.
    pub fn session_rows(&self, filter: &crate::SessionFilter) -> Result<HashSet<SessionId>> {
        let (conditions, values) = crate::read::sessions::session_conditions(filter);
        let text = format!(
            "select session.id from session join instance on instance.id = session.instance
             where {{visible}} and {conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn rusqlite::ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Sessions whose title contains every one of these words, ignoring case, with their titles.
    pub fn titled_sessions(&self, words: &[&str]) -> Result<Vec<(SessionId, Raw)>> {
        let conditions: Vec<String> = (1..=words.len())
            .map(|number| format!("title like '%' || ?{number} || '%' escape '\\'"))
            .collect();
        let text = format!(
            "select session.id, title from session join instance on instance.id = session.instance
             where {{visible}} and {} order by session.id limit 500",
            conditions.join(" and ")
        );
        let words = words.iter().map(|word| crate::read::sessions::like_text(word));
        let mut statement = self.prepare(&text)?;
        let rows = statement.query_map(rusqlite::params_from_iter(words), |row| {
            Ok((row.get(0)?, Raw::new(row.get::<_, String>(1)?.into_bytes())))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The size of the index for all homes: segments, passages, bytes.
    pub fn index_size(&self) -> Result<(i64, i64, i64)> {
        let mut statement = self.store().connection.prepare_cached(sql!(
            "select count(*), cast(coalesce(sum(passages), 0) as bigint),
                    cast(coalesce(sum(length(table_data)), 0) as bigint)
                    + (select cast(coalesce(sum(length(data)), 0) as bigint) from search_block)
             from search_segment"
        ))?;
        Ok(statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
    }
}

/// The index is shared by all homes: callers must filter results by visible files.
impl Store {
    /// Files and places of calls that contain every one of these groups.
    fn calls_with(&self, groups: &[TermGroup], segments: &[(i64, i64)]) -> Result<HashSet<(FileId, i64)>> {
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
    fn visit_docs(
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

    fn epoch_of(&self, file: FileId, epochs: &mut Epochs) -> rusqlite::Result<i64> {
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
    fn list(&self, segment: i64, group: &TermGroup) -> Result<Vec<u32>> {
        let mut passages = Vec::new();
        for term in &group.terms {
            self.exact(segment, term, &mut passages)?;
        }
        for prefix in &group.prefixes {
            self.beginning(segment, prefix, &mut passages)?;
        }
        if group.terms.len() + group.prefixes.len() > 1 || !group.prefixes.is_empty() {
            passages.sort_unstable();
            passages.dedup();
        }
        Ok(passages)
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

    fn beginning(&self, segment: i64, prefix: &[u8], passages: &mut Vec<u32>) -> Result<()> {
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
                    reader.passages(passages);
                    terms += 1;
                } else if reader.term() > prefix {
                    return Ok(());
                }
                if terms >= MOST_TERMS {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Epochs of files: of all, or of those requested so far.
enum Epochs {
    All(HashMap<FileId, i64>),
    Cached(HashMap<FileId, i64>),
}

/// The passages of a segment that contain any group.
#[derive(Default)]
struct SegmentMatches {
    /// In the order of the passages.
    seen: Vec<PassageMatch>,
}

#[derive(Clone, Copy, Default)]
struct PassageMatch {
    passage: u32,
    weight: f32,
    held: u64,
    excluded: bool,
}

impl PassageMatch {
    fn new(passage: u32) -> PassageMatch {
        PassageMatch { passage, ..PassageMatch::default() }
    }

    fn add_group(&mut self, number: usize, rarity: f32) {
        self.weight += rarity;
        self.held |= 1 << number.min(63);
    }
}

impl SegmentMatches {
    fn fill(&mut self, passages: usize, lists: &[Vec<u32>], rarity: &[f32]) {
        self.seen.clear();
        let lists = lists.iter().zip(rarity).enumerate().filter(|(_, (list, _))| !list.is_empty());
        let held: usize = lists.clone().map(|(_, (list, _))| list.len()).sum();
        // One entry per passage if many match or there are no groups; otherwise only for those that match.
        if held == 0 || held > passages / 8 && lists.clone().count() > 1 {
            self.seen.extend((0..passages as u32).map(PassageMatch::new));
            for (number, (list, rarity)) in lists {
                for passage in list {
                    if let Some(seen) = self.seen.get_mut(*passage as usize) {
                        seen.add_group(number, *rarity);
                    }
                }
            }
            return;
        }
        for (number, (list, rarity)) in lists {
            self.seen.extend(list.iter().map(|passage| {
                let mut seen = PassageMatch::new(*passage);
                seen.add_group(number, *rarity);
                seen
            }));
        }
        self.seen.sort_by_key(|seen| seen.passage);
        self.seen.dedup_by(|next, before| {
            let same = next.passage == before.passage;
            if same {
                before.weight += next.weight;
                before.held |= next.held;
            }
            same
        });
    }

    /// Both are sorted.
    fn exclude(&mut self, list: &[u32]) {
        let mut list = list.iter().peekable();
        for seen in &mut self.seen {
            while list.next_if(|passage| **passage < seen.passage).is_some() {}
            seen.excluded |= list.peek().is_some_and(|passage| **passage == seen.passage);
        }
    }
}

fn hit(query: &TermQuery, doc: &Doc, seen: &PassageMatch) -> Option<PassageHit> {
    let kind = PassageKind::from_stored(doc.kind)?;
    let fits = query.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
        && query.since_minute.is_none_or(|since| doc.minutes >= since)
        && query.until_minute.is_none_or(|until| doc.minutes != 0 && doc.minutes < until)
        && query.sessions.as_ref().is_none_or(|sessions| sessions.contains(&doc.session));
    fits.then_some(PassageHit {
        session: doc.session,
        file: doc.file,
        offset: doc.offset as u64,
        kind,
        minutes: doc.minutes,
        weight: seen.weight,
        held: seen.held,
        length: doc.length,
    })
}
