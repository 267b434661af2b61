//! Search: ranked passages, grouped by session.

pub(super) mod answer;
mod correct;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzz;
mod near;
pub(super) mod passages;
pub(super) mod query;
pub(super) mod question;
mod rank;
mod related;
pub(super) mod show;
mod snippet;
mod stop_words;
pub(super) mod terms;
mod verify;
pub(super) mod weights;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::context::View;
use super::format::local;
use super::paging::{read_numbers, write_numbers};
use annals_core::{FileId, PassageKind, Raw, Result, SessionId, Shown, Time};
use annals_store::{PassageHit, TermQuery};
pub use answer::{
    Correction, PassageView, PreferredTime, SearchAnswer, SearchFacets, SearchQuery, SearchResult,
};
use passages::{FoundPassage, PassageReader, closeness};
use query::{Clause, Query, normalize};
use question::Question;
use snippet::Marker;
use verify::Verification;
use weights::Weights;

/// Hits whose texts are read to rank them.
const READ: usize = 40;
/// Most hits verified for one query.
const MOST_UNVERIFIED: usize = 500_000;
/// Hits verified per page before a cursor is returned instead, unless the caller sets another limit.
pub const USUAL_EFFORT: usize = 20_000;
/// Passages shown per session among the first results; later ones show one.
pub const SHOWN: usize = 3;
const FIRST: usize = 10;
/// What one word is worth, compared with a title.
const WORD: f32 = 5.0;
/// Passages beyond the best one that raise the score of a session.
const COUNTED: usize = 4;
/// Groups of which it is counted what they have in common.
const COUNTED_GROUPS: usize = 1_000;
/// More terms do not narrow the result; each has a bit.
pub const MOST_TERM_GROUPS: usize = 64;
/// Longer words are not searched in titles.
const LONGEST_WORD: usize = 256;
/// Hits in records that are resolved, best first; words with more of them also match sessions.
const MOST_RECORDS: usize = 1_000;
/// Hits that are ranked; nobody pages further.
const MOST: usize = 5_000;
/// Steps returned for one session.
const FOUND_IN_SESSION: usize = 300;

impl View<'_> {
    pub fn search(&self, request: &SearchQuery) -> Result<SearchAnswer> {
        let mut query = request.parse(self.now)?;
        let [skipped, from] = request.page.cursor.as_deref().map_or(Ok([0, 0]), read_numbers)?;
        let [skipped, from] = [skipped, from].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let limit = usize::try_from(request.page.limit).unwrap_or(usize::MAX).max(1);
        let end = skipped.saturating_add(limit);
        let searcher = Searcher::new(self, request);
        let (mut found, mut any) = searcher.find(&query, from, end)?;
        let corrected = match found.unknown.is_empty() {
            true => None,
            false => searcher.correct(&query, &found.unknown)?,
        };
        let mut corrections = Vec::new();
        if let Some((other, made)) = corrected {
            (query, corrections) = (other, made);
            (found, any) = searcher.find(&query, from, end)?;
        }
        let mode = if any { "any" } else { "all" };
        let rarity = searcher.rarity.take();
        let marker = Marker::new(&query, any, &rarity);
        let total = found.groups.len();
        let facets =
            if request.with_facets { self.search_facets(&found.groups)? } else { SearchFacets::default() };
        let mut results = Vec::new();
        for (number, group) in found.groups.into_iter().skip(skipped).take(limit).enumerate() {
            let shown = if number < FIRST { SHOWN } else { 1 };
            results.extend(searcher.result(group, &marker, shown)?);
        }
        let next_cursor = match found.next {
            _ if total > end => Some(write_numbers(&[end as i64, from as i64])),
            Some(next) => Some(write_numbers(&[0, next as i64])),
            None => None,
        };
        let complete = found.complete && found.next.is_none();
        let time = query.when.as_ref().map(|when| PreferredTime {
            text: Shown::new(when.text.clone()),
            since: when.since.rfc3339(),
            until: when.until.rfc3339(),
            days: [when.since, Time::from_micros(when.until.micros() - 1)]
                .map(|day| local(day).chars().take(10).collect()),
        });
        let (query, indexed_percent) = (request.query.clone(), self.captured_percent);
        Ok(SearchAnswer {
            query,
            mode,
            time,
            corrections,
            results,
            next_cursor,
            total,
            complete,
            indexed_percent,
            facets,
        })
    }

    /// What the sessions of groups have in common.
    fn search_facets(&self, groups: &[Group]) -> Result<SearchFacets> {
        let mut sources: HashMap<String, usize> = HashMap::new();
        let mut projects: HashMap<Vec<u8>, (Raw, usize)> = HashMap::new();
        for group in groups.iter().take(COUNTED_GROUPS) {
            if let Some(source) = self.archive.session_source(group.session)? {
                *sources.entry(source).or_default() += 1;
            }
            if let Some(cwd) = self.archive.session_cwd(group.session)? {
                projects.entry(cwd.expose().to_vec()).or_insert((cwd, 0)).1 += 1;
            }
        }
        let mut sources: Vec<(String, usize)> = sources.into_iter().collect();
        sources.sort_by(|(one, count), (other, more)| more.cmp(count).then(one.cmp(other)));
        let mut projects: Vec<(Vec<u8>, (Raw, usize))> = projects.into_iter().collect();
        projects.sort_by(|(one, (_, count)), (other, (_, more))| more.cmp(count).then(one.cmp(other)));
        let projects = projects.into_iter().map(|(_, (cwd, count))| (self.door.raw(&cwd), count));
        Ok(SearchFacets {
            sources,
            projects: projects.collect(),
            counted: (groups.len() > COUNTED_GROUPS).then_some(COUNTED_GROUPS),
        })
    }

    /// Steps of one session that match the query, by id and number, in order; and whether they are complete.
    pub fn find_in_session(&self, request: &SearchQuery) -> Result<(Vec<(String, i64)>, bool)> {
        let query = request.parse(self.now)?;
        let searcher = Searcher::new(self, request);
        let found = match query.is_question() {
            true => searcher.answer(&query, &Question::of(&query))?,
            false => searcher.run(&query, 0, usize::MAX)?,
        };
        let hits: Vec<(f32, PassageHit)> = found.groups.into_iter().flat_map(|group| group.hits).collect();
        let complete = found.complete && found.next.is_none() && hits.len() <= FOUND_IN_SESSION;
        let mut reader = searcher.reader();
        let mut steps = Vec::new();
        for (_, hit) in hits.iter().take(FOUND_IN_SESSION) {
            let found = searcher.read(&mut reader, hit)?;
            let Some(step) = found.as_ref().and_then(|found| found.step.as_ref()) else { continue };
            let number = self.archive.steps_before(step.session, step.file, step.place)?;
            steps.push((step.id.clone(), number));
        }
        steps.sort_by_key(|(_, number)| *number);
        steps.dedup();
        Ok((steps, complete))
    }
}

pub struct Searcher<'a> {
    pub view: &'a View<'a>,
    pub recent: bool,
    pub session: Option<SessionId>,
    effort: usize,
    weights: Weights,
    pub texts: RefCell<Texts>,
    /// Of the words of a question, by term.
    rarity: RefCell<HashMap<Vec<u8>, f32>>,
}

/// Texts read so far, by file, offset and kind.
type Texts = HashMap<(FileId, u64, PassageKind), Option<Rc<FoundPassage>>>;

/// Hits of one session, or one hit in a library item.
pub struct Group {
    pub session: SessionId,
    pub score: f32,
    pub newest: i64,
    pub hits: Vec<(f32, PassageHit)>,
}

pub struct Groups {
    groups: Vec<Group>,
    /// No hits were left out.
    complete: bool,
    /// The first hit that has not been verified.
    next: Option<usize>,
    /// Terms that no visible passage has.
    unknown: Vec<Vec<u8>>,
}

impl<'a> Searcher<'a> {
    fn new(view: &'a View<'a>, request: &SearchQuery) -> Searcher<'a> {
        Searcher {
            view,
            recent: request.recent,
            session: request.session,
            effort: request.effort.unwrap_or(USUAL_EFFORT),
            weights: request.weights.clone().unwrap_or_default(),
            texts: RefCell::default(),
            rarity: RefCell::default(),
        }
    }

    /// What contains every word, or what is closest, and which of the two.
    fn find(&self, query: &Query, from: usize, end: usize) -> Result<(Groups, bool)> {
        let mut found = None;
        if !query.is_question() {
            let mut all = self.run(query, from, end)?;
            if !all.groups.is_empty() || !all.complete || all.next.is_some() {
                return Ok((all, false));
            }
            all.unknown = self.unknown_words(query)?;
            found = Some(all);
        }
        let question = Question::of(query);
        // A single word is there or not, but a sentence may have no spaces.
        let is_loose = query.clauses.len() > 1
            || query
                .clauses
                .iter()
                .flat_map(|clause| &clause.pieces)
                .any(|piece| !piece.quoted && !piece.text.is_ascii() && piece.terms.len() > 2);
        match found {
            Some(found) if from > 0 || !is_loose || question.words.is_empty() => Ok((found, false)),
            _ => Ok((self.answer(query, &question)?, true)),
        }
    }

    /// Sessions, best first. If the index alone cannot confirm a match, hits are verified from `from` on until there
    /// are more than `enough` sessions.
    fn run(&self, query: &Query, from: usize, enough: usize) -> Result<Groups> {
        let terms = self.term_query(query, query.clauses.iter().flat_map(Clause::term_groups).collect())?;
        let test = Verification::of(query);
        let most = if test.is_some() { MOST_UNVERIFIED } else { MOST };
        let (mut hits, all) = self.view.archive.passages(&terms, most, |hit| match self.recent {
            true => hit.minutes as f32,
            false => self.score(hit, query),
        })?;
        let complete = all && hits.len() <= most;
        if self.recent {
            hits.iter_mut().for_each(|(score, hit)| *score = self.score(hit, query));
        }
        // A result may be indexed twice, once for the model and once for the client.
        let order = |(left, a): &(f32, PassageHit), (right, b): &(f32, PassageHit)| {
            let newest = b.minutes.cmp(&a.minutes);
            let best = right.total_cmp(left);
            let first = if self.recent { newest.then(best) } else { best.then(newest) };
            first.then((a.file, a.offset, a.kind as u8).cmp(&(b.file, b.offset, b.kind as u8)))
        };
        if hits.len() > most {
            hits.select_nth_unstable_by(most, order);
            hits.truncate(most);
        }
        hits.sort_unstable_by(order);
        let mut seen = HashSet::new();
        hits.retain(|(_, hit)| seen.insert((hit.file, hit.offset, hit.kind as u8)));
        let (mut groups, next) = match test {
            Some(test) => self.verified_groups(&hits, &terms, &test, from, enough)?,
            None => {
                let mut hits = self.resolve_sessions(hits, query, &terms)?;
                self.refine(&mut hits, query)?;
                (self.live_groups(self.group_hits(hits)?)?, None)
            }
        };
        if from == 0 {
            self.add_titles(&mut groups, query, &terms)?;
        }
        Ok(Groups { groups, complete, next, unknown: Vec::new() })
    }

    /// Drops groups of which only copies matched: they are no results, and must not be counted as such.
    fn live_groups(&self, groups: Vec<Group>) -> Result<Vec<Group>> {
        let reader = self.reader();
        let mut live = Vec::with_capacity(groups.len());
        for mut group in groups {
            let mut dead = 0;
            while let Some((_, hit)) = group.hits.get(dead) {
                if reader.is_live(hit)? {
                    break;
                }
                dead += 1;
            }
            group.hits.drain(..dead);
            if !group.hits.is_empty() {
                live.push(group);
            }
        }
        Ok(live)
    }

    /// Gives outputs stored in separate files the session of their call. Drops hits that are gone or not visible.
    fn resolve_sessions(
        &self,
        hits: Vec<(f32, PassageHit)>,
        query: &Query,
        terms: &TermQuery,
    ) -> Result<Vec<(f32, PassageHit)>> {
        let mut resolved = Vec::with_capacity(hits.len());
        let mut records = 0;
        for (score, mut hit) in hits {
            let let_through = |session: SessionId| {
                terms.sessions.as_ref().is_none_or(|sessions| sessions.contains(&session))
            };
            if hit.session == SessionId::NONE && hit.kind == PassageKind::User {
                // An entry of a prompt history: found in its session, unless that has it in its transcript.
                let Some(session) = self.view.archive.session_of_typed(hit.file, hit.offset)? else {
                    continue;
                };
                if query.tool.is_some()
                    || query.file.is_some()
                    || query.model.is_some()
                    || !let_through(session)
                {
                    continue;
                }
                hit.session = session;
            } else if hit.session == SessionId::NONE {
                records += 1;
                if records > MOST_RECORDS {
                    continue;
                }
                let Some(record) = self.view.archive.record_at(hit.file, hit.offset)? else { continue };
                let name = format!("{}/{}", record.stream, record.key);
                let call = match hit.kind {
                    PassageKind::Output => self.view.archive.call_with_output(&name)?,
                    _ => None,
                };
                let matches = match &call {
                    Some(call) => {
                        hit.session = call.session_id;
                        let has_name = |name: &String| name.eq_ignore_ascii_case(&call.name);
                        let is_by = |model: &String| {
                            call.model.as_ref().is_some_and(|name| name.starts_with(&model.to_lowercase()))
                        };
                        query.tool.as_ref().is_none_or(has_name) && query.model.as_ref().is_none_or(is_by)
                    }
                    None => {
                        let of_call = query.tool.is_some() || query.file.is_some() || query.model.is_some();
                        let of_session = query.project.is_some()
                            || query.branch.is_some()
                            || self.session.is_some()
                            || query.is_of_arranged();
                        let source = query.source.as_ref().is_none_or(|source| *source == record.source);
                        source && !of_call && !of_session
                    }
                };
                if !matches || !let_through(hit.session) {
                    continue;
                }
            }
            resolved.push((score, hit));
        }
        Ok(resolved)
    }

    /// A title that contains all words ranks like a passage, and above most.
    fn add_titles(&self, groups: &mut Vec<Group>, query: &Query, terms: &TermQuery) -> Result<()> {
        let of_rows = query.kinds.is_some() || !terms.of_calls.is_empty();
        let dated = query.since.is_some() || query.until.is_some();
        if of_rows || dated || query.clauses.is_empty() || self.recent {
            return Ok(());
        }
        let words: Option<Vec<&str>> = query
            .clauses
            .iter()
            .map(|clause| match clause.pieces.as_slice() {
                [piece] => Some(piece.text.as_str()).filter(|text| text.len() <= LONGEST_WORD),
                _ => None,
            })
            .collect();
        let Some(words) = words else { return Ok(()) };
        let known: HashMap<SessionId, usize> =
            groups.iter().enumerate().map(|(at, group)| (group.session, at)).collect();
        for (row, title) in self.view.archive.titled_sessions(&words)? {
            // What is masked in a title does not match.
            let title = normalize(self.view.door.raw(&title).as_str());
            if !words.iter().all(|word| title.contains(word)) {
                continue;
            }
            if terms.sessions.as_ref().is_some_and(|sessions| !sessions.contains(&row)) {
                continue;
            }
            match known.get(&row).and_then(|at| groups.get_mut(*at)) {
                Some(group) => group.score *= 1.3,
                None => {
                    groups.push(Group {
                        session: row,
                        score: 2.0 * words.len() as f32,
                        newest: 0,
                        hits: Vec::new(),
                    });
                }
            }
        }
        self.sort_groups(groups)
    }

    /// Best or newest first. Of equal ones, the order is that of their ids, however they came into the archive.
    fn sort_groups(&self, groups: &mut [Group]) -> Result<()> {
        let order = |left: &Group, right: &Group| {
            let (best, newest) = (right.score.total_cmp(&left.score), right.newest.cmp(&left.newest));
            if self.recent { newest.then(best) } else { best.then(newest) }
        };
        groups.sort_by(order);
        let mut at = 0;
        while at < groups.len() {
            let equal = groups[at..].iter().take_while(|group| order(group, &groups[at]).is_eq()).count();
            if equal > 1 {
                let mut names = HashMap::new();
                for group in &groups[at..at + equal] {
                    names.insert(group.session, self.view.archive.session_name(group.session)?);
                }
                groups[at..at + equal]
                    .sort_by(|left, right| names[&left.session].cmp(&names[&right.session]));
            }
            at += equal;
        }
        Ok(())
    }

    /// Ranks human-written text, short passages and recent ones higher. All of them contain every word.
    fn score(&self, hit: &PassageHit, query: &Query) -> f32 {
        let whose = match hit.kind {
            PassageKind::User => 1.25,
            PassageKind::Assistant => 1.15,
            PassageKind::Record => 1.1,
            PassageKind::Call => 1.0,
            PassageKind::Files => 0.95,
            PassageKind::Thinking => 0.9,
            PassageKind::Result | PassageKind::Output => 0.8,
        };
        let length = 1.0 + 0.06 * f32::from(hit.length.saturating_sub(4));
        let minutes = self.view.now.minute().saturating_sub(hit.minutes).max(0);
        let days = if hit.minutes == 0 { 365.0 } else { minutes as f32 / 1_440.0 };
        let recency = 1.0 + 0.25 / (1.0 + days / 30.0);
        let timely = query.when.as_ref().is_some_and(|when| when.contains(hit.minutes));
        let time = if timely { 1.0 + self.weights.time } else { 1.0 };
        WORD * hit.held.count_ones() as f32 * whose / length * recency * time
    }

    /// Reads the best hits and moves those up in which the words are close together.
    fn refine(&self, hits: &mut [(f32, PassageHit)], query: &Query) -> Result<()> {
        if self.recent || query.clauses.len() < 2 {
            return Ok(());
        }
        let typed: Vec<&str> = query
            .clauses
            .iter()
            .flat_map(|clause| clause.pieces.first())
            .map(|piece| piece.text.as_str())
            .collect();
        let typed = typed.join(" ");
        let mut reader = self.reader();
        // The same number for every page: otherwise results would repeat on the next page.
        let best = hits.len().min(READ);
        for (score, hit) in &mut hits[..best] {
            if let Some(found) = self.read(&mut reader, hit)? {
                *score *= 1.0 + closeness(found.text.shown(self.view.door), &query.clauses, &typed);
            }
        }
        hits[..best].sort_by(|(left, _), (right, _)| right.total_cmp(left));
        Ok(())
    }

    fn group_hits(&self, hits: Vec<(f32, PassageHit)>) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut known: HashMap<GroupKey, usize> = HashMap::new();
        for (score, hit) in hits {
            let at = *known.entry(group_of(&hit)).or_insert_with(|| {
                groups.push(Group { session: hit.session, score: 0.0, newest: 0, hits: Vec::new() });
                groups.len() - 1
            });
            let group = &mut groups[at];
            // A session with many matches is more relevant; the first few matches suffice to tell.
            let share = match group.hits.len() {
                0 => 1.0,
                1..=COUNTED => 0.1,
                _ => 0.0,
            };
            group.score += score * share;
            group.newest = group.newest.max(hit.minutes);
            group.hits.push((score, hit));
        }
        self.sort_groups(&mut groups)?;
        Ok(groups)
    }

    pub fn reader(&self) -> PassageReader<'_> {
        PassageReader { view: self.view, contents: self.view.archive.contents() }
    }

    /// Caches texts: one read for ranking is shown soon after.
    pub fn read(&self, reader: &mut PassageReader<'_>, hit: &PassageHit) -> Result<Option<Rc<FoundPassage>>> {
        let key = (hit.file, hit.offset, hit.kind);
        if let Some(found) = self.texts.borrow().get(&key) {
            return Ok(found.clone());
        }
        let source = match hit.session {
            SessionId::NONE => None,
            session => self.view.archive.session_source(session)?,
        };
        let found = reader.read(hit, source.as_deref())?.map(Rc::new);
        let mut texts = self.texts.borrow_mut();
        if texts.len() < READ {
            texts.insert(key, found.clone());
        }
        Ok(found)
    }
}

/// A session, or one passage of a file.
type GroupKey = (SessionId, Option<(FileId, u64)>);

/// Library items are results themselves; all other hits belong to their session.
fn group_of(hit: &PassageHit) -> GroupKey {
    if hit.session == SessionId::NONE {
        (SessionId::NONE, Some((hit.file, hit.offset)))
    } else {
        (hit.session, None)
    }
}
