//! Fetches conversations and files by id: in batches where the provider allows it, the rest one by one; what cannot be
//! fetched becomes a gap.

use std::collections::{HashSet, VecDeque};

use super::pace::{Allowance, GROUP};
use super::talk::{Retry, Stop};
use super::{FILES, FetchItem, LiveNews, LiveRun, why_of};
use annals_core::FailureKind;
use annals_sources::{Assembled, Judged, LiveRequest, Way};
use annals_store::DueGap;

/// Pages of one thing; more would be one that never ends.
const MOST_PAGES: usize = 2_000;
/// Files whose bytes are asked for at the same time.
const FILES_AT_ONCE: usize = 2;

/// What came of asking for one.
enum Fetched {
    Whole(Vec<u8>),
    Refused,
    Challenge,
    Failed(FailureKind, String),
}

impl LiveRun<'_> {
    pub fn fetch(&mut self, wanted: Vec<FetchItem>) -> Result<(), Stop> {
        let all = wanted.len() as u64;
        let mut queue: VecDeque<FetchItem> = wanted.into();
        let mut singly: VecDeque<FetchItem> = VecDeque::new();
        while self.several && !queue.is_empty() {
            let most = self.live.most_at_once();
            let group: Vec<Vec<FetchItem>> = (0..GROUP)
                .map(|_| queue.drain(..most.min(queue.len())).collect::<Vec<_>>())
                .filter(|ids| !ids.is_empty())
                .collect();
            self.fetch_several(group, &mut singly)?;
            self.keeper.settle(&self.learnt)?;
            self.tell_news(all, queue.len() + singly.len());
        }
        singly.append(&mut queue);
        while !singly.is_empty() && !self.exhausted {
            let allowance = self.learnt.bucket.allowance(self.pace, (self.now)());
            let (count, retry) = match allowance {
                Allowance::Probe(_) | Allowance::Empty if self.waits => {
                    std::thread::sleep(self.learnt.bucket.slot(self.pace));
                    (1, Retry::NotRefusals)
                }
                Allowance::Free => (GROUP, Retry::Patiently),
                Allowance::Some(left) => (GROUP.min(left as usize), Retry::Patiently),
                Allowance::Probe(count) => (GROUP.min(count as usize), Retry::NotRefusals),
                Allowance::Empty => (0, Retry::NotRefusals),
            };
            if count == 0 {
                self.exhausted = true;
                break;
            }
            let group: Vec<FetchItem> = singly.drain(..count.min(singly.len())).collect();
            let challenged = self.fetch_singly(group, retry, &mut singly)?;
            self.keeper.settle(&self.learnt)?;
            self.tell_news(all, singly.len());
            if challenged {
                self.put_off(singly);
                return Err(self.talk.challenged());
            }
        }
        self.put_off(singly);
        Ok(())
    }

    /// What is not asked for now: gaps all the same, so that nothing is forgotten. They are committed with the cursors
    /// that pass by them.
    fn put_off(&mut self, rest: VecDeque<FetchItem>) {
        for thing in rest.into_iter().filter(|thing| !thing.is_gap) {
            self.report.new_gaps += 1;
            self.keeper.fail_thing(thing, FailureKind::RateLimited, "rate limit reached");
        }
    }

    fn fetch_several(
        &mut self,
        group: Vec<Vec<FetchItem>>,
        singly: &mut VecDeque<FetchItem>,
    ) -> Result<(), Stop> {
        let requests: Vec<LiveRequest> = group
            .iter()
            .map(|things| {
                let ids: Vec<String> = things.iter().map(|thing| thing.id.clone()).collect();
                self.live.several(&ids)
            })
            .collect();
        let answers = match self.talk.ask(&requests, Retry::Patiently) {
            Ok(answers) => answers,
            Err(stop) => {
                self.keeper.commit(&self.learnt)?;
                return Err(stop);
            }
        };
        for (things, (judged, answer)) in group.into_iter().zip(answers) {
            // Where it is refused or not known, it is not asked for again.
            let weather = [Judged::Late, Judged::Broken, Judged::Unreachable];
            self.several &= judged == Judged::Good || weather.contains(&judged);
            let found = (judged == Judged::Good).then(|| self.live.read_several(&answer.body)).flatten();
            let mut found = found.unwrap_or_default();
            for thing in things {
                // It leaves some out, and cuts others: those are asked for by themselves.
                let body = found.iter().position(|(id, _)| *id == thing.id).map(|at| found.swap_remove(at).1);
                match body.map(|body| self.live.assemble(&thing.id, &[body])) {
                    Some(Assembled::Whole(body)) => self.keep(thing, &body)?,
                    Some(Assembled::More(_) | Assembled::Part(..) | Assembled::Torn(_)) | None => {
                        singly.push_back(thing);
                    }
                }
            }
        }
        Ok(())
    }

    /// Answers whether the provider wants a person.
    fn fetch_singly(
        &mut self,
        group: Vec<FetchItem>,
        retry: Retry,
        singly: &mut VecDeque<FetchItem>,
    ) -> Result<bool, Stop> {
        let fetched = match self.pages(&group, self.way, retry) {
            Ok(fetched) => fetched,
            Err(stop) => {
                self.keeper.commit(&self.learnt)?;
                return Err(stop);
            }
        };
        let mut challenged = false;
        let mut elsewhere = Vec::new();
        let mut results: Vec<(FetchItem, Fetched)> = Vec::new();
        for (thing, fetched) in group.into_iter().zip(fetched) {
            match fetched {
                Fetched::Failed(FailureKind::NotFound, _) => elsewhere.push(thing),
                fetched => results.push((thing, fetched)),
            }
        }
        if !elsewhere.is_empty() {
            // Accounts are moved from one way to the other: what one does not know, the other may.
            let other = match self.way {
                Way::Tree => Way::Pages,
                Way::Pages => Way::Tree,
            };
            let fetched = self.pages(&elsewhere, other, retry)?;
            let is_begun =
                |thing: &FetchItem| self.started.get(&thing.id).is_some_and(|(_, had)| !had.is_empty());
            let mut told = elsewhere.iter().zip(&fetched);
            if told.any(|(thing, fetched)| matches!(fetched, Fetched::Whole(_)) || is_begun(thing)) {
                self.way = other;
            }
            results.extend(elsewhere.into_iter().zip(fetched));
        }
        let mut refused = Vec::new();
        for (thing, fetched) in results {
            match fetched {
                Fetched::Whole(body) => self.keep(thing, &body)?,
                Fetched::Refused => refused.push(thing),
                Fetched::Challenge => {
                    challenged = true;
                    self.lacks(thing, FailureKind::RateLimited, "the page shows a captcha or another check");
                }
                Fetched::Failed(why, reason) => self.lacks(thing, why, &reason),
            }
        }
        if !refused.is_empty() {
            self.learnt.bucket.refused(self.pace, (self.now)());
            self.exhausted = !self.waits;
        }
        for thing in refused {
            match self.waits {
                true => singly.push_front(thing),
                false => self.lacks(thing, FailureKind::RateLimited, "too many requests"),
            }
        }
        // The last of the waits, before anything else is asked.
        if self.exhausted && retry == Retry::Patiently && !singly.is_empty() {
            std::thread::sleep(self.pace.wait(3));
        }
        Ok(challenged)
    }

    /// All pages of each, several things at the same time.
    fn pages(&mut self, things: &[FetchItem], way: Way, retry: Retry) -> Result<Vec<Fetched>, Stop> {
        let mut pages: Vec<Vec<String>> = vec![Vec::new(); things.len()];
        let mut fetched: Vec<Option<Fetched>> = things.iter().map(|_| None).collect();
        let mut places: Vec<Option<String>> = vec![None; things.len()];
        for (at, thing) in things.iter().enumerate() {
            // What was refused in the middle goes on from there.
            if self.started.get(&thing.id).is_none_or(|(before, _)| *before != way) {
                continue;
            }
            let started = self.started.remove(&thing.id).map(|(_, started)| started).unwrap_or_default();
            if let Assembled::More(place) = self.live.assemble(&thing.id, &started) {
                (pages[at], places[at]) = (started, Some(place));
            }
        }
        while fetched.iter().any(Option::is_none) {
            let open: Vec<usize> = (0..things.len()).filter(|at| fetched[*at].is_none()).collect();
            let requests: Vec<LiveRequest> = open
                .iter()
                .map(|at| self.live.single(&things[*at].id, way, places[*at].as_deref()))
                .collect();
            let answers = self.talk.ask(&requests, retry)?;
            for (at, (judged, answer)) in open.into_iter().zip(answers) {
                fetched[at] = match judged {
                    Judged::Good => {
                        self.learnt.bucket.given();
                        pages[at].push(answer.body);
                        match self.live.assemble(&things[at].id, &pages[at]) {
                            Assembled::Whole(body) => Some(Fetched::Whole(body)),
                            Assembled::More(place) if pages[at].len() < MOST_PAGES => {
                                places[at] = Some(place);
                                None
                            }
                            Assembled::More(_) => {
                                Some(Fetched::Failed(FailureKind::Malformed, "too many pages".into()))
                            }
                            Assembled::Part(body, why) => {
                                // It may never come better, and is lacking all the same.
                                self.report.captured_bytes += self.keeper.part(self.live.captures(&body))?;
                                Some(Fetched::Failed(FailureKind::Malformed, why.to_owned()))
                            }
                            Assembled::Torn(why) => {
                                Some(Fetched::Failed(FailureKind::Malformed, why.to_owned()))
                            }
                        }
                    }
                    Judged::Refused => {
                        if self.waits {
                            self.started.insert(things[at].id.clone(), (way, std::mem::take(&mut pages[at])));
                        }
                        Some(Fetched::Refused)
                    }
                    Judged::Challenge => Some(Fetched::Challenge),
                    Judged::Expired
                    | Judged::Forbidden
                    | Judged::Missing
                    | Judged::Broken
                    | Judged::Late
                    | Judged::Unreachable => {
                        let reason = match answer.status {
                            0 if judged == Judged::Unreachable => "connection lost".to_owned(),
                            0 => "timed out".to_owned(),
                            200 => "incomplete response".to_owned(),
                            status => format!("HTTP status {status}"),
                        };
                        let why = if answer.status == 200 { FailureKind::Malformed } else { why_of(judged) };
                        Some(Fetched::Failed(why, reason))
                    }
                };
            }
        }
        Ok(fetched.into_iter().flatten().collect())
    }

    fn keep(&mut self, thing: FetchItem, body: &[u8]) -> Result<(), Stop> {
        let captures = self.live.captures(body);
        // Nothing is done that left nothing behind.
        if captures.is_empty() {
            self.lacks(thing, FailureKind::Malformed, "no conversation");
            return Ok(());
        }
        self.report.fetched += 1;
        self.report.recovered += u64::from(thing.is_gap);
        self.report.captured_bytes += self.keeper.thing(thing, captures)?;
        Ok(())
    }

    fn lacks(&mut self, thing: FetchItem, why: FailureKind, reason: &str) {
        self.report.new_gaps += u64::from(!thing.is_gap);
        self.keeper.fail_thing(thing, why, reason);
    }

    /// The bytes of files that conversations speak of, whoever fetched those: what is not here, and not known to be
    /// lacking.
    pub fn files(&mut self, gaps_only: bool, due: &[DueGap]) -> Result<(), Stop> {
        let lacking = self.keeper.lacking(FILES)?;
        let due: HashSet<&str> =
            due.iter().filter(|gap| gap.stream == FILES).map(|gap| gap.key.as_str()).collect();
        let mut wanted = Vec::new();
        for (id, thing) in self.keeper.files()? {
            let is_due = due.contains(id.as_str());
            let (path, request) = self.live.file(&id, thing.as_deref());
            if (is_due || !gaps_only && !lacking.contains_key(&id)) && !self.keeper.has(&path)? {
                wanted.push((id, request));
            }
        }
        for group in wanted.chunks(FILES_AT_ONCE) {
            let requests: Vec<LiveRequest> = group.iter().map(|(_, request)| request.clone()).collect();
            let answers = self.talk.bytes(&requests)?;
            let mut refused = false;
            for ((id, _), (judged, answer)) in group.iter().zip(answers) {
                match judged {
                    Judged::Good if answer.content_type == "bytes" => {
                        let bytes: Vec<u8> =
                            answer.body.chars().filter_map(|letter| u8::try_from(letter).ok()).collect();
                        let captures = self.live.file_captures(id, &bytes);
                        self.report.captured_bytes += self.keeper.file(id, captures, &bytes)?;
                        self.report.files += 1;
                    }
                    Judged::Challenge => return Err(self.talk.challenged()),
                    judged => {
                        refused |= judged == Judged::Refused;
                        self.report.problems.push(format!("{id}: content unavailable"));
                        let why = (why_of(judged), "content unavailable");
                        self.keeper.fail(FILES, id, "", why, (self.now)())?;
                    }
                }
            }
            self.keeper.settle(&self.learnt)?;
            if refused {
                break;
            }
        }
        self.keeper.commit(&self.learnt)?;
        Ok(())
    }

    fn tell_news(&mut self, all: u64, left: usize) {
        let left = left as u64;
        let time_left = self.learnt.bucket.time_for(left, self.pace, (self.now)());
        (self.tell)(LiveNews { done: all.saturating_sub(left), wanted: all, time_left });
    }
}
