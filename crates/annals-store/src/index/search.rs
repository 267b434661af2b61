//! Queries the text index: which passages contain these terms, which are alive, and how rare each term is.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::format::Doc;
use super::lists::{Epochs, GroupList};
use crate::arrangement::OWN_NAME;
use crate::error::Result;
use crate::{Archive, Store, sql};
use annals_core::{FileId, PassageKind, Raw, SessionId};

/// Up to this many hits, epochs are read per file; beyond, reading those of all files is cheaper.
const FEW: usize = 1_000;

/// One word of a query: any of these terms, or any term with one of these prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermGroup {
    pub terms: Vec<Vec<u8>>,
    pub prefixes: Vec<Vec<u8>>,
    /// Other forms of the word, which count for less than the word itself.
    pub forms: Vec<Vec<u8>>,
    /// Every term with this stem is such a form.
    pub stem: Option<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageHit {
    pub session: SessionId,
    pub file: FileId,
    pub offset: u64,
    pub kind: PassageKind,
    pub minutes: i64,
    /// One bit per group that it contains.
    pub held: u64,
    /// One bit per group whose word it contains as typed, not only in another form.
    pub exact: u64,
    /// Base-2 logarithm of the number of terms.
    pub length: u8,
}

/// The passages that match a query: their lists, read once and visited as often as needed.
pub struct Matches<'a> {
    index: &'a Store,
    query: &'a TermQuery,
    visible: Option<HashSet<FileId>>,
    calls: Option<HashSet<(FileId, i64)>>,
    segments: Vec<SegmentLists>,
    epochs: Epochs,
}

/// The passages of a segment that contain each group.
struct SegmentLists {
    segment: i64,
    passages: usize,
    groups: Vec<GroupList>,
    excluded: Vec<Vec<u32>>,
}

impl<'a> Archive<'a> {
    pub fn matches(&self, query: &'a TermQuery) -> Result<Matches<'a>> {
        let (index, visible) = (self.store(), self.visible_files()?);
        let all = index.segments()?;
        let (mut segments, mut postings) = (Vec::with_capacity(all.len()), 0);
        for (segment, passages) in &all {
            let mut groups = Vec::with_capacity(query.groups.len());
            for group in &query.groups {
                let list = index.group_list(*segment, group)?;
                postings += list.exact.len() + list.forms.len();
                groups.push(list);
            }
            let held = groups.iter().filter(|list| !list.exact.is_empty() || !list.forms.is_empty()).count();
            if held < query.least || held == 0 && !query.groups.is_empty() {
                continue;
            }
            let excluded = query.excluded.iter().map(|group| index.list(*segment, group));
            let excluded = excluded.collect::<Result<_>>()?;
            let passages = usize::try_from(*passages).unwrap_or(0);
            segments.push(SegmentLists { segment: *segment, passages, groups, excluded });
        }
        let few = !query.groups.is_empty() && postings <= FEW;
        let epochs = match few {
            true => Epochs::Cached(HashMap::new()),
            false => Epochs::All(index.search_epochs()?),
        };
        let calls = match query.of_calls.as_slice() {
            [] => None,
            groups => Some(index.calls_with(groups, &all)?),
        };
        Ok(Matches { index, query, visible, calls, segments, epochs })
    }

    /// Matching passages with their scores, unordered: all, or at least the `most` best. Also returns whether
    /// these are all.
    pub fn passages(
        &self,
        query: &'a TermQuery,
        most: usize,
        score: impl Fn(&PassageHit) -> f32,
    ) -> Result<(Vec<(f32, PassageHit)>, bool)> {
        let better = |(left, a): &(f32, PassageHit), (right, b): &(f32, PassageHit)| {
            right.total_cmp(left).then(b.minutes.cmp(&a.minutes)).then(a.offset.cmp(&b.offset))
        };
        let (mut hits, mut complete) = (Vec::new(), true);
        self.matches(query)?.visit(None, |hit| {
            hits.push((score(hit), *hit));
            if hits.len() > 2 * most {
                complete = false;
                hits.select_nth_unstable_by(most, better);
                hits.truncate(most);
            }
        })?;
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

    /// What ties in a ranking are ordered by: the same in every archive of the same homes.
    pub fn session_name(&self, session: SessionId) -> Result<Option<String>> {
        let mut statement = self.prepare(sql!(
            "select session.key || ' ' || instance.source || ' ' || instance.root from session
             join instance on instance.id = session.instance where session.id = $1 and {visible}"
        ))?;
        Ok(statement.query_row(params![session], |row| row.get(0)).optional()?)
    }

    /// The number of prompts and answers of a session, and its title.
    pub fn session_outline(&self, session: SessionId) -> Result<Option<(i64, Option<Raw>)>> {
        let mut statement = self.prepare(sql!(
            "select user_messages + assistant_messages, title from session
             join instance on instance.id = session.instance where session.id = $1 and {visible}"
        ))?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, row.get::<_, Option<String>>(1)?.map(|title| Raw::new(title.into_bytes()))))
        };
        Ok(statement.query_row(params![session], read).optional()?)
    }

    /// The number of sessions that have messages, of agents too.
    pub fn count_all_sessions(&self) -> Result<usize> {
        let mut statement = self.prepare(sql!(
            "select count(*) from session join instance on instance.id = session.instance
             where {visible} and session.messages > 0"
        ))?;
        Ok(usize::try_from(statement.query_row([], |row| row.get::<_, i64>(0))?).unwrap_or(0))
    }

    /// Sessions whose name, or else title, contains every one of these words, ignoring case, with that text.
    pub fn titled_sessions(&self, words: &[&str]) -> Result<Vec<(SessionId, Raw)>> {
        let heading = format!("coalesce({OWN_NAME}, title)");
        let conditions: Vec<String> = (1..=words.len())
            .map(|number| format!("{heading} like '%' || ?{number} || '%' escape '\\'"))
            .collect();
        let text = format!(
            "select session.id, {heading} from session join instance on instance.id = session.instance
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

impl Matches<'_> {
    /// Visits every matching passage, or those of some sessions. The order is that of the index.
    pub fn visit(
        &mut self,
        sessions: Option<&HashSet<SessionId>>,
        mut visit: impl FnMut(&PassageHit),
    ) -> Result<()> {
        let mut matches = SegmentMatches::default();
        for lists in &self.segments {
            matches.fill(lists.passages, &lists.groups);
            for excluded in &lists.excluded {
                matches.exclude(excluded);
            }
            let least = self.query.least;
            matches.seen.retain(|seen| !seen.excluded && seen.held.count_ones() as usize >= least);
            // Passages of a file are adjacent.
            let mut last = (FileId::default(), 0);
            self.index.visit_docs(lists.segment, &matches.seen, |doc, seen| {
                if sessions.is_some_and(|sessions| !sessions.contains(&doc.session)) {
                    return Ok(());
                }
                if doc.file != last.0 {
                    last = (doc.file, self.index.epoch_of(doc.file, &mut self.epochs)?);
                }
                // An output in a separate file is matched with its call only when it is read.
                let apart = doc.kind == PassageKind::Output.stored();
                let of_calls =
                    self.calls.as_ref().is_none_or(|calls| calls.contains(&(doc.file, doc.offset)));
                let alive = last.1 == doc.epoch && (apart || of_calls);
                let is_visible = self.visible.as_ref().is_none_or(|files| files.contains(&doc.file));
                if let Some(hit) = hit(self.query, doc, seen).filter(|_| alive && is_visible) {
                    visit(&hit);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The passages of a segment that contain any group.
#[derive(Default)]
struct SegmentMatches {
    /// In the order of the passages.
    seen: Vec<PassageMatch>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct PassageMatch {
    pub passage: u32,
    held: u64,
    exact: u64,
    excluded: bool,
}

impl PassageMatch {
    pub fn new(passage: u32) -> PassageMatch {
        PassageMatch { passage, ..PassageMatch::default() }
    }

    fn add_group(&mut self, number: usize, exact: bool) {
        let bit = 1 << number.min(63);
        self.held |= bit;
        self.exact |= if exact { bit } else { 0 };
    }
}

impl SegmentMatches {
    fn fill(&mut self, passages: usize, groups: &[GroupList]) {
        self.seen.clear();
        let lists = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| [(number, true, &group.exact), (number, false, &group.forms)]);
        let lists = lists.filter(|(_, _, list)| !list.is_empty());
        let held: usize = lists.clone().map(|(_, _, list)| list.len()).sum();
        // One entry per passage if many match or there are no groups; otherwise only for those that match.
        if held == 0 || held > passages / 8 && lists.clone().count() > 1 {
            self.seen.extend((0..passages as u32).map(PassageMatch::new));
            for (number, exact, list) in lists {
                for passage in list {
                    if let Some(seen) = self.seen.get_mut(*passage as usize) {
                        seen.add_group(number, exact);
                    }
                }
            }
            // Without groups every passage matches.
            self.seen.retain(|seen| seen.held > 0 || held == 0);
            return;
        }
        for (number, exact, list) in lists {
            self.seen.extend(list.iter().map(|passage| {
                let mut seen = PassageMatch::new(*passage);
                seen.add_group(number, exact);
                seen
            }));
        }
        self.seen.sort_by_key(|seen| seen.passage);
        self.seen.dedup_by(|next, before| {
            let same = next.passage == before.passage;
            if same {
                before.held |= next.held;
                before.exact |= next.exact;
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
        held: seen.held,
        exact: seen.exact,
        length: doc.length,
    })
}
