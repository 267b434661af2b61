//! Search: ranked passages, grouped by session.

#[cfg(feature = "fuzzing")]
pub(super) mod fuzz;
pub(super) mod passages;
pub(super) mod query;
pub(super) mod show;
pub(super) mod terms;

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;
use utoipa::ToSchema;

use super::context::View;
use super::paging::{Paging, read_numbers, write_numbers};
use annals_core::{Error, FileId, PassageKind, Result, SessionId, Shown, Time};
use annals_sources::by_common_name;
use annals_store::{PassageHit, TermQuery};
use passages::{FoundPassage, PassageReader, closeness, fragment, matches_query};
use query::{Clause, Query, check_words, intersect_kinds, normalize, parse_kinds, parse_query, parse_role};

/// Hits whose texts are read to rank them.
const READ: usize = 40;
/// Hits verified at a time, if the text must contain something exactly as typed.
const WINDOW: usize = 2_000;
/// Most hits verified for one query.
const MOST_UNVERIFIED: usize = 500_000;
/// Hits verified per page before a cursor is returned instead, unless the caller sets another limit.
pub const USUAL_EFFORT: usize = 20_000;
/// Passages shown per session among the first results; later ones show one.
pub const SHOWN: usize = 3;
const FIRST: usize = 10;
/// Passages beyond the best one that raise the score of a session.
const COUNTED: usize = 4;
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

#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    pub query: String,
    pub source: Option<String>,
    pub project: Option<String>,
    pub role: Option<String>,
    pub kind: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Newest first instead of best first.
    pub recent: bool,
    /// Only the session with this row id.
    pub session: Option<SessionId>,
    pub page: Paging,
    /// Hits to verify before returning an incomplete answer; `USUAL_EFFORT` if not set.
    pub effort: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SearchAnswer {
    pub query: String,
    /// `all` if every word was found in one message, `any` if these are the closest matches.
    pub mode: &'static str,
    pub results: Vec<SearchResult>,
    pub next_cursor: Option<String>,
    /// Number of results; a lower bound if `complete` is false.
    pub total: usize,
    /// False if more may be found: follow `next_cursor`, even if this page is empty.
    pub complete: bool,
}

/// A session, or a library item.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchResult {
    /// `session` or `library`.
    pub kind: &'static str,
    pub source: String,
    pub provider_label: &'static str,
    pub session_id: Option<String>,
    /// Kind of a library item.
    pub stream: Option<String>,
    pub title: Option<Shown>,
    pub cwd: Option<Shown>,
    pub git_branch: Option<Shown>,
    pub last_message_at: Option<String>,
    pub score: f64,
    pub passages: Vec<PassageView>,
    pub more_passages: usize,
    /// Command that resumes the session in its client.
    pub resume_command: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PassageView {
    /// Message id for `annals show SESSION --at MESSAGE`; the key of a library item.
    pub message_id: Shown,
    /// Number of the message, as in `seq`.
    pub position: Option<i64>,
    /// It is on a branch that the client does not show: ask for the messages with `branch` and its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub off_branch: bool,
    pub role: &'static str,
    pub kind: &'static str,
    pub tool: Option<Shown>,
    pub at: Option<String>,
    pub score: f64,
    pub snippet: Shown,
    /// Start and length of the matches, in characters of the snippet.
    pub highlights: Vec<[usize; 2]>,
}

impl View<'_> {
    pub fn search(&self, request: &SearchQuery) -> Result<SearchAnswer> {
        let query = parse_request(request, self.now)?;
        let [skipped, from] = request.page.cursor.as_deref().map_or(Ok([0, 0]), read_numbers)?;
        let [skipped, from] = [skipped, from].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let limit = usize::try_from(request.page.limit).unwrap_or(usize::MAX).max(1);
        let end = skipped.saturating_add(limit);
        let searcher = Searcher::new(self, request);
        let mut mode = "all";
        let mut found = searcher.run(&query, MatchMode::All, from, end)?;
        let loose = query.clauses.len() > 1 && query.clauses.iter().any(|clause| clause.forms().is_some());
        if found.groups.is_empty() && found.complete && from == 0 && loose {
            mode = "any";
            found = searcher.run(&query, MatchMode::Any, 0, end)?;
        }
        let total = found.groups.len();
        let mut results = Vec::new();
        for (number, group) in found.groups.into_iter().skip(skipped).take(limit).enumerate() {
            let shown = if number < FIRST { SHOWN } else { 1 };
            results.extend(searcher.result(group, &query, shown)?);
        }
        let next_cursor = match found.next {
            _ if total > end => Some(write_numbers(&[end as i64, from as i64])),
            Some(next) => Some(write_numbers(&[0, next as i64])),
            None => None,
        };
        let complete = found.complete && found.next.is_none();
        Ok(SearchAnswer { query: request.query.clone(), mode, results, next_cursor, total, complete })
    }

    /// Steps of one session that match the query, by id and number, in order; and whether they are complete.
    pub fn find_in_session(&self, request: &SearchQuery) -> Result<(Vec<(String, i64)>, bool)> {
        let query = parse_request(request, self.now)?;
        let searcher = Searcher::new(self, request);
        let found = searcher.run(&query, MatchMode::All, 0, usize::MAX)?;
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

fn parse_request(request: &SearchQuery, now: Time) -> Result<Query> {
    check_words(&request.query)?;
    let mut query = parse_query(&request.query, now)?;
    query.source = request.source.clone().or(query.source);
    query.project = request.project.clone().or(query.project);
    query.since = request.since.or(query.since);
    query.until = request.until.or(query.until);
    if let Some(role) = &request.role {
        query.kinds = intersect_kinds(query.kinds.as_deref(), parse_role(role)?);
    }
    if let Some(kind) = &request.kind {
        query.kinds = intersect_kinds(query.kinds.as_deref(), parse_kinds(kind)?);
    }
    if query.is_empty() {
        return Err(
            Error::bad_request("empty query").hint("use words, a \"phrase\", or a filter such as tool:NAME")
        );
    }
    if let Some(name) = &query.source {
        let source = by_common_name(name).ok_or_else(|| {
            Error::bad_request(format!("unknown source {name:?}")).hint("`annals sources` lists all sources")
        })?;
        query.source = Some(source.manifest().source.to_owned());
    }
    Ok(query)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    All,
    Any,
}

pub struct Searcher<'a> {
    pub view: &'a View<'a>,
    pub recent: bool,
    pub session: Option<SessionId>,
    effort: usize,
    pub texts: RefCell<Texts>,
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

struct Groups {
    groups: Vec<Group>,
    /// No hits were left out.
    complete: bool,
    /// The first hit that has not been verified.
    next: Option<usize>,
}

impl<'a> Searcher<'a> {
    fn new(view: &'a View<'a>, request: &SearchQuery) -> Searcher<'a> {
        Searcher {
            view,
            recent: request.recent,
            session: request.session,
            effort: request.effort.unwrap_or(USUAL_EFFORT),
            texts: RefCell::default(),
        }
    }

    /// Sessions, best first. If the index alone cannot confirm a match, hits are verified from `from` on until there
    /// are more than `enough` sessions.
    fn run(&self, query: &Query, mode: MatchMode, from: usize, enough: usize) -> Result<Groups> {
        let terms = self.term_query(query, mode)?;
        let test = Verification::of(query, mode);
        let most = if test.is_some() { MOST_UNVERIFIED } else { MOST };
        let (mut hits, all) = self.view.archive.passages(&terms, most, |hit| match self.recent {
            true => hit.minutes as f32,
            false => self.score(hit, mode),
        })?;
        let complete = all && hits.len() <= most;
        if self.recent {
            hits.iter_mut().for_each(|(score, hit)| *score = self.score(hit, mode));
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
                (self.live_groups(self.group_hits(hits, mode))?, None)
            }
        };
        if mode == MatchMode::All && from == 0 {
            self.add_titles(&mut groups, query, &terms)?;
        }
        Ok(Groups { groups, complete, next })
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

    /// Sessions in the order in which windows of hits confirm them: each page continues where the last one ended.
    fn verified_groups(
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
            for group in self.group_hits(self.verify(window, test)?, MatchMode::All) {
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
                        let of_session =
                            query.project.is_some() || query.branch.is_some() || self.session.is_some();
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
        groups.sort_by(|left, right| right.score.total_cmp(&left.score).then(right.newest.cmp(&left.newest)));
        Ok(())
    }

    /// Ranks rare words, human-written text, short passages and recent ones higher.
    fn score(&self, hit: &PassageHit, mode: MatchMode) -> f32 {
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
        // In a question, many matching words count for more than a single rare one.
        let held = if mode == MatchMode::Any { hit.held.count_ones() as f32 } else { 1.0 };
        hit.weight * whose / length * recency * held.sqrt()
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

    fn group_hits(&self, hits: Vec<(f32, PassageHit)>, mode: MatchMode) -> Vec<Group> {
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
                1..=COUNTED if mode == MatchMode::Any => 0.25,
                1..=COUNTED => 0.1,
                _ => 0.0,
            };
            group.score += score * share;
            group.newest = group.newest.max(hit.minutes);
            group.hits.push((score, hit));
        }
        if !self.recent {
            groups.sort_by(|left, right| {
                right.score.total_cmp(&left.score).then(right.newest.cmp(&left.newest))
            });
        }
        groups
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

    fn touches(&self, hit: &PassageHit, path: &str) -> Result<bool> {
        let touches = self.view.archive.touches(hit.session, hit.file, hit.offset)?;
        Ok(touches
            .iter()
            .any(|touch| normalize(&String::from_utf8_lossy(touch.path.expose())).ends_with(path)))
    }
}

/// What a text must satisfy besides containing the words.
struct Verification<'q> {
    query: &'q Query,
    exact: Vec<&'q Clause>,
    unwanted: Vec<&'q Clause>,
    path: Option<String>,
    /// If the bytes do not contain these, the text cannot contain `exact`.
    fragments: Vec<&'q str>,
}

impl<'q> Verification<'q> {
    /// None if the index alone can decide.
    fn of(query: &'q Query, mode: MatchMode) -> Option<Verification<'q>> {
        let exact: Vec<&Clause> =
            query.clauses.iter().filter(|clause| clause.is_exact() && mode == MatchMode::All).collect();
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
