//! Ranks sessions by how well they answer a question: as a whole, by a few messages together, and by single passages.
//!
//! Sums are made of whole numbers and of maxima, so that they do not depend on the order in which passages are stored.

use std::collections::{HashMap, HashSet};

use super::near::WordMatcher;
use super::question::{Question, Relation};
use super::weights::Weights;
use super::{Group, GroupKey, Groups, MOST_RECORDS, Searcher, group_of};
use crate::view::search::query::Query;
use annals_core::{PassageKind, Result, SessionId};
use annals_store::{PassageHit, TermQuery};

/// Sessions that are compared by all of their passages; the sum of their words decides which.
const CANDIDATES: usize = 200;
/// Sessions whose length is considered to choose these.
const MEASURED: usize = 400;
/// Passages of a session that are compared.
const COMPARED: usize = 256;
/// Sessions whose passages are read to see how close the words are, and how many passages of each.
const READ_SESSIONS: usize = 20;
const READ_PASSAGES: usize = 2;
/// Sessions that are checked for copies of others, and how many passages of each.
const CHECKED: usize = 40;
const CHECKED_PASSAGES: usize = 16;
/// One occurrence of a word, as a whole number.
const UNIT: f32 = 64.0;

/// How often each session has each word.
struct Tally {
    numbers: HashMap<GroupKey, usize>,
    keys: Vec<GroupKey>,
    /// One row per session.
    counts: Vec<u32>,
    width: usize,
    newest: Vec<i64>,
    timely: Vec<bool>,
    /// Passages of a session are adjacent.
    last: Option<(GroupKey, usize)>,
}

impl Tally {
    fn new(width: usize) -> Tally {
        Tally {
            last: None,
            numbers: HashMap::new(),
            keys: Vec::new(),
            counts: Vec::new(),
            width,
            newest: Vec::new(),
            timely: Vec::new(),
        }
    }

    fn add(&mut self, hit: &PassageHit, weights: &Weights, question: &Question) {
        let key = group_of(hit);
        let number = match self.last.filter(|(last, _)| *last == key) {
            Some((_, number)) => number,
            None => *self.numbers.entry(key).or_insert_with(|| {
                self.keys.push(key);
                self.counts.extend(std::iter::repeat_n(0, self.width));
                self.newest.push(0);
                self.timely.push(false);
                self.keys.len() - 1
            }),
        };
        self.last = Some((key, number));
        let whole = weights.of_kind(hit.kind) * UNIT;
        let [exact, form] = [whole, whole * weights.form].map(|count| count as u32);
        let counts = &mut self.counts[number * self.width..(number + 1) * self.width];
        let mut held = hit.held;
        while held > 0 {
            let group = held.trailing_zeros() as usize;
            held &= held - 1;
            if let Some(count) = counts.get_mut(group) {
                *count = count.saturating_add(if hit.exact >> group & 1 == 1 { exact } else { form });
            }
        }
        self.newest[number] = self.newest[number].max(hit.minutes);
        self.timely[number] |= question.is_timely(hit.minutes);
    }

    fn counts(&self, number: usize) -> &[u32] {
        &self.counts[number * self.width..(number + 1) * self.width]
    }
}

/// A session that is compared.
struct Candidate {
    number: usize,
    key: GroupKey,
    score: f32,
    length: f32,
    title: f32,
    hits: Vec<(f32, PassageHit)>,
}

/// The words of a question, with how much each is worth.
struct Worth<'q> {
    question: &'q Question,
    weights: &'q Weights,
    /// By group: its rarity among sessions, times its weight.
    rarity: Vec<f32>,
    total: f32,
    /// By group: the number of sessions.
    counts: Vec<usize>,
}

impl<'q> Worth<'q> {
    fn new(question: &'q Question, weights: &'q Weights, tally: &Tally, sessions: usize) -> Worth<'q> {
        let mut counts = vec![0usize; tally.width];
        for number in 0..tally.keys.len() {
            for (count, times) in counts.iter_mut().zip(tally.counts(number)) {
                *count += usize::from(*times > 0);
            }
        }
        let all = sessions.max(tally.keys.len()) as f32;
        let rarity = counts.iter().zip(&question.words).map(|(count, word)| {
            let count = *count as f32;
            let rarity = (1.0 + (all - count + 0.5) / (count + 0.5)).ln();
            rarity * if word.weak { weights.weak } else { 1.0 } * word.share
        });
        let mut rarity: Vec<f32> = rarity.collect();
        // A related word is never worth more than the word itself.
        for (group, word) in question.words.iter().enumerate() {
            if let Some((of, _)) = word.related_to.filter(|(of, _)| counts[*of] > 0) {
                rarity[group] = rarity[group].min(rarity[of]);
            }
        }
        let mut total = 0.0;
        for (group, word) in question.words.iter().enumerate() {
            if word.related_to.is_none() && counts[group] > 0 {
                total += rarity[group];
            }
        }
        Worth { question, weights, rarity, total: f32::max(total, 1.0), counts }
    }

    /// Words that no session has in any form.
    fn unknown(&self) -> Vec<Vec<u8>> {
        let words = self.question.words.iter().zip(&self.counts);
        let words =
            words.filter(|(word, count)| **count == 0 && word.related_to.is_none() && word.share == 1.0);
        words.filter_map(|(word, _)| word.group.terms.first().cloned()).collect()
    }

    fn rarity_by_term(&self) -> HashMap<Vec<u8>, f32> {
        let words =
            self.question.words.iter().zip(&self.rarity).filter(|(word, _)| word.related_to.is_none());
        words.filter_map(|(word, rarity)| Some((word.group.terms.first()?.clone(), *rarity))).collect()
    }

    /// The sum over all words; `share` returns how much of a word there is, at most 1.
    fn sum(&self, mut share: impl FnMut(usize) -> f32) -> f32 {
        let mut best = [0.0f32; 64];
        for (group, word) in self.question.words.iter().enumerate() {
            let share = share(group);
            if share > 0.0 {
                let (of, factor) = match word.related_to {
                    Some((of, Relation::Close)) => (of, self.weights.related),
                    Some((of, Relation::Loose)) => (of, self.weights.loose),
                    None => (group, 1.0),
                };
                best[of] = best[of].max(share * factor * self.rarity[group]);
            }
        }
        best.iter().sum::<f32>() / self.total
    }

    fn as_a_whole(&self, counts: &[u32], length: f32) -> f32 {
        let discount = self.weights.saturation * (1.0 - self.weights.length + self.weights.length * length);
        self.sum(|group| {
            let times = counts[group] as f32 / UNIT;
            times / (times + discount)
        })
    }

    fn coverage(&self, counts: &[u32]) -> f32 {
        self.sum(|group| f32::from(u8::from(counts[group] > 0)))
    }

    fn share_of(&self, hit: &PassageHit, group: usize) -> f32 {
        match (hit.held >> group & 1, hit.exact >> group & 1) {
            (0, _) => 0.0,
            (_, 0) => self.weights.form * self.weights.of_kind(hit.kind),
            _ => self.weights.of_kind(hit.kind),
        }
    }

    fn passage(&self, hit: &PassageHit) -> f32 {
        let long = f32::from(hit.length.saturating_sub(4));
        self.sum(|group| self.share_of(hit, group)) / (1.0 + self.weights.passage_length * long)
    }

    /// The best few messages together. Hits are in the order of the transcript.
    fn window(&self, hits: &[PassageHit]) -> f32 {
        let (mut best, mut from) = (0.0f32, 0);
        for (to, last) in hits.iter().enumerate() {
            while hits[from].file != last.file
                || last.offset.saturating_sub(hits[from].offset) > self.weights.window_bytes as u64
            {
                from += 1;
            }
            let window = &hits[from..=to];
            let share =
                |group: usize| window.iter().map(|hit| self.share_of(hit, group)).fold(0.0f32, f32::max);
            best = best.max(self.sum(share));
        }
        best
    }
}

impl Searcher<'_> {
    /// Sessions that have any of the words, best first.
    pub fn answer(&self, query: &Query, question: &Question) -> Result<Groups> {
        let terms = self.question_terms(query, question)?;
        let mut matches = self.view.archive.matches(&terms)?;
        let (mut tally, mut loose) = (Tally::new(question.words.len()), Vec::new());
        matches.visit(None, |hit| match hit.session {
            SessionId::NONE => {
                loose.push(*hit);
                if loose.len() > 4 * MOST_RECORDS {
                    keep_best(&mut loose, MOST_RECORDS, |hit| hit.held.count_ones());
                }
            }
            _ => tally.add(hit, &self.weights, question),
        })?;
        keep_best(&mut loose, MOST_RECORDS, |hit| hit.held.count_ones());
        let loose: Vec<(f32, PassageHit)> = loose.into_iter().map(|hit| (0.0, hit)).collect();
        let mut extra: HashMap<GroupKey, Vec<PassageHit>> = HashMap::new();
        for (_, hit) in self.resolve_sessions(loose, query, &terms)? {
            tally.add(&hit, &self.weights, question);
            extra.entry(group_of(&hit)).or_default().push(hit);
        }
        let worth = Worth::new(question, &self.weights, &tally, self.view.archive.count_all_sessions()?);
        let unknown = worth.unknown();
        self.rarity.replace(worth.rarity_by_term());
        let (mut candidates, complete) = self.candidates(&tally, &worth, question)?;
        let sessions: HashSet<SessionId> = candidates.iter().map(|one| one.key.0).collect();
        let mut found: HashMap<GroupKey, Vec<PassageHit>> = extra;
        matches.visit(Some(&sessions), |hit| {
            if hit.session != SessionId::NONE {
                let hits = found.entry(group_of(hit)).or_default();
                hits.push(*hit);
                if hits.len() > 4 * COMPARED {
                    keep_best(hits, COMPARED, |hit| (worth.passage(hit) * 1e6) as u32);
                }
            }
        })?;
        for candidate in &mut candidates {
            let mut hits = found.remove(&candidate.key).unwrap_or_default();
            hits.sort_unstable_by_key(|hit| (hit.file, hit.offset, hit.kind as u8));
            hits.dedup_by(|next, before| is_the_same(next, before));
            keep_best(&mut hits, COMPARED, |hit| (worth.passage(hit) * 1e6) as u32);
            hits.sort_unstable_by_key(|hit| (hit.file, hit.offset, hit.kind as u8));
            self.compare(candidate, &worth, &hits);
        }
        sort_candidates(&mut candidates, &tally);
        self.leave_copies_out(&mut candidates, &worth)?;
        sort_candidates(&mut candidates, &tally);
        self.read_best(&mut candidates, question)?;
        let mut groups: Vec<Group> = candidates
            .into_iter()
            .filter(|candidate| !candidate.hits.is_empty())
            .map(|candidate| Group {
                session: candidate.key.0,
                score: candidate.score,
                newest: tally.newest[candidate.number],
                hits: candidate.hits,
            })
            .collect();
        self.sort_groups(&mut groups)?;
        Ok(Groups { groups, complete, next: None, unknown })
    }

    fn question_terms(&self, query: &Query, question: &Question) -> Result<TermQuery> {
        let mut terms = self.term_query(query, question.groups())?;
        terms.least = 1;
        Ok(terms)
    }

    /// The sessions with most of the words, and whether these are all.
    fn candidates(
        &self,
        tally: &Tally,
        worth: &Worth<'_>,
        question: &Question,
    ) -> Result<(Vec<Candidate>, bool)> {
        let mut best: Vec<(f32, usize)> = (0..tally.keys.len())
            .map(|number| (worth.as_a_whole(tally.counts(number), 1.0), number))
            .collect();
        let order = |(left, a): &(f32, usize), (right, b): &(f32, usize)| {
            right.total_cmp(left).then(tally.newest[*b].cmp(&tally.newest[*a]))
        };
        best.sort_unstable_by(order);
        best.truncate(MEASURED);
        let mut matcher = WordMatcher::new(question, &self.weights);
        let (mut candidates, mut sum, mut measured) = (Vec::new(), 0.0, 0.0);
        for (_, number) in best {
            let key = tally.keys[number];
            let mut candidate =
                Candidate { number, key, score: 0.0, length: 1.0, title: 0.0, hits: Vec::new() };
            if let Some((length, title)) = self.view.archive.session_outline(key.0)? {
                candidate.length = length as f32;
                (sum, measured) = (sum + candidate.length, measured + 1.0);
                if let Some(title) = title {
                    let held = matcher.words_in(self.view.door.raw(&title).as_str());
                    candidate.title = worth.sum(|group| held[group]);
                }
            }
            candidates.push(candidate);
        }
        let usual = f32::max(sum / f32::max(measured, 1.0), 1.0);
        for candidate in &mut candidates {
            candidate.length /= usual;
            candidate.score = worth.as_a_whole(tally.counts(candidate.number), candidate.length)
                + self.weights.title * candidate.title;
        }
        sort_candidates(&mut candidates, tally);
        let complete = tally.keys.len() <= CANDIDATES;
        candidates.truncate(CANDIDATES);
        Ok((candidates, complete))
    }

    /// Counts words again: each passage once, however often and in which parts it was indexed.
    fn compare(&self, candidate: &mut Candidate, worth: &Worth<'_>, hits: &[PassageHit]) {
        let weights = &self.weights;
        let mut tally = Tally::new(worth.counts.len());
        hits.iter().for_each(|hit| tally.add(hit, weights, worth.question));
        let (Some(newest), Some(timely)) = (tally.newest.first(), tally.timely.first()) else { return };
        let counts = tally.counts(0);
        let mut ranked: Vec<(f32, PassageHit)> = hits.iter().map(|hit| (worth.passage(hit), *hit)).collect();
        ranked.sort_by(|(left, a), (right, b)| {
            // Prompts and answers before what tools say.
            let of_tool = |hit: &PassageHit| hit.kind as u8 > PassageKind::Thinking as u8;
            right
                .total_cmp(left)
                .then(of_tool(a).cmp(&of_tool(b)))
                .then(b.minutes.cmp(&a.minutes))
                .then((a.kind as u8, a.offset, a.file).cmp(&(b.kind as u8, b.offset, b.file)))
        });
        let passage = ranked.first().map_or(0.0, |(score, _)| *score);
        let sum = weights.session * worth.as_a_whole(counts, candidate.length)
            + weights.window * worth.window(hits)
            + weights.passage * passage
            + weights.title * candidate.title;
        let days = match *newest {
            0 => 365.0,
            newest => self.view.now.minute().saturating_sub(newest).max(0) as f32 / 1_440.0,
        };
        let recent = 1.0 + weights.recency / (1.0 + days / 30.0);
        let timely = if *timely { 1.0 + weights.time } else { 1.0 };
        let all = worth.coverage(counts).powf(weights.coordination);
        candidate.score = sum * all * recent * timely;
        candidate.hits = ranked;
    }

    /// Copies of messages in other sessions are no matches; they are found in their original.
    fn leave_copies_out(&self, candidates: &mut [Candidate], worth: &Worth<'_>) -> Result<()> {
        let reader = self.reader();
        for (place, candidate) in candidates.iter_mut().enumerate() {
            let most = if place < CHECKED { CHECKED_PASSAGES } else { 1 };
            let (mut live, mut copies, mut at) = (Vec::new(), Vec::new(), 0);
            while let Some((_, hit)) = candidate.hits.get(at) {
                at += 1;
                if reader.is_live(hit)? {
                    live.push(*hit);
                    if live.len() >= most {
                        break;
                    }
                } else {
                    copies.push(*hit);
                }
            }
            if copies.is_empty() {
                continue;
            }
            live.extend(candidate.hits[at..].iter().map(|(_, hit)| *hit));
            live.sort_unstable_by_key(|hit| (hit.file, hit.offset, hit.kind as u8));
            candidate.hits.clear();
            self.compare(candidate, worth, &live);
        }
        Ok(())
    }

    /// Reads the best passages and moves those up in which the words are close together.
    fn read_best(&self, candidates: &mut [Candidate], question: &Question) -> Result<()> {
        if question.words.len() < 2 {
            return Ok(());
        }
        let mut reader = self.reader();
        let mut matcher = WordMatcher::new(question, &self.weights);
        for candidate in candidates.iter_mut().filter(|one| !one.hits.is_empty()).take(READ_SESSIONS) {
            let mut near = 0.0f32;
            for (_, hit) in candidate.hits.iter().take(READ_PASSAGES) {
                if let Some(found) = self.read(&mut reader, hit)? {
                    near = near.max(matcher.nearness(found.text.shown(self.view.door)));
                }
            }
            candidate.score *= 1.0 + self.weights.near * near;
        }
        Ok(())
    }
}

fn sort_candidates(candidates: &mut [Candidate], tally: &Tally) {
    candidates.sort_by(|left, right| {
        let newest = tally.newest[right.number].cmp(&tally.newest[left.number]);
        right.score.total_cmp(&left.score).then(newest)
    });
}

/// Whether two hits are one passage; the first then has the words of both. A result may be indexed twice, once for the model
/// and once for the client, and the second time as a whole or without what it repeats: that depends on when it was captured.
fn is_the_same(next: &PassageHit, before: &mut PassageHit) -> bool {
    let same = (next.file, next.offset, next.kind) == (before.file, before.offset, before.kind);
    if same {
        before.held |= next.held;
        before.exact |= next.exact;
        before.length = before.length.max(next.length);
        before.minutes = before.minutes.max(next.minutes);
    }
    same
}

/// Keeps the hits that are worth most, and the newest of equal ones.
fn keep_best(hits: &mut Vec<PassageHit>, most: usize, worth: impl Fn(&PassageHit) -> u32) {
    if hits.len() > most {
        hits.sort_by_cached_key(|hit| {
            std::cmp::Reverse((worth(hit), hit.minutes, hit.offset, hit.kind as u8))
        });
        hits.truncate(most);
    }
}
