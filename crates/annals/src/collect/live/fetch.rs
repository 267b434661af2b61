//! Fetches conversations and files by id: in batches if the provider allows it, the rest one by one. What cannot be
//! fetched becomes a gap.

use std::collections::{HashSet, VecDeque};

use super::pace::{Allowance, GROUP};
use super::talk::{Retry, Stop};
use super::{FetchItem, LiveProgress, LiveRun, failure_kind};
use annals_core::{FailureKind, GapStream};
use annals_sources::{Assembled, Judged, LiveRequest, PageRequest, Way};
use annals_store::DueGap;

/// Most pages of one conversation; more means that paging never ends.
const MOST_PAGES: usize = 2_000;
/// Files requested in parallel.
const FILES_AT_ONCE: usize = 2;
/// Files that one run asks about; the next run asks about others.
const FACTS_A_RUN: usize = 200;
/// Names of page sizes: conversations in a batch, and turns of a conversation.
const BATCHES: &str = "batches";
const TURNS: &str = "turns";

/// The result of requesting one conversation.
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
            let halvings = self.halvings.get(BATCHES).copied().unwrap_or(0);
            let most = PageRequest { place: None, halvings }.size(self.live.most_at_once());
            let group: Vec<Vec<FetchItem>> = (0..GROUP)
                .map(|_| queue.drain(..most.min(queue.len())).collect::<Vec<_>>())
                .filter(|ids| !ids.is_empty())
                .collect();
            self.fetch_several(group, &mut queue, &mut singly)?;
            self.keeper.commit_if_due(&self.state)?;
            self.report_progress(all, queue.len() + singly.len());
        }
        singly.append(&mut queue);
        while !singly.is_empty() && !self.exhausted {
            let allowance = self.state.bucket.allowance(self.pace, (self.now)());
            let (count, retry) = match allowance {
                Allowance::Probe(_) | Allowance::Empty if self.waits => {
                    std::thread::sleep(self.state.bucket.slot(self.pace));
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
            self.keeper.commit_if_due(&self.state)?;
            self.report_progress(all, singly.len());
            if challenged {
                self.postpone(singly);
                return Err(self.talk.challenge_stop());
            }
        }
        self.postpone(singly);
        Ok(())
    }

    /// Records gaps without attempts for conversations that are not requested now, so that nothing is forgotten. They
    /// are committed together with the cursors that pass them.
    fn postpone(&mut self, rest: VecDeque<FetchItem>) {
        for conversation in rest.into_iter().filter(|conversation| !conversation.is_gap) {
            self.report.new_gaps += 1;
            self.keeper.postpone_conversation(conversation, "rate limit reached");
        }
    }

    fn fetch_several(
        &mut self,
        group: Vec<Vec<FetchItem>>,
        queue: &mut VecDeque<FetchItem>,
        singly: &mut VecDeque<FetchItem>,
    ) -> Result<(), Stop> {
        let requests: Vec<LiveRequest> = group
            .iter()
            .map(|conversations| {
                let ids: Vec<String> =
                    conversations.iter().map(|conversation| conversation.id.clone()).collect();
                self.live.several(&ids)
            })
            .collect();
        let answers = match self.talk.send(&requests, Retry::Patiently) {
            Ok(answers) => answers,
            Err(stop) => {
                self.keeper.commit(&self.state)?;
                return Err(stop);
            }
        };
        let mut is_halved = false;
        for (conversations, (judged, answer)) in group.into_iter().zip(answers) {
            if judged == Judged::TooLarge && conversations.len() > 1 {
                // Fewer at a time; once for the whole group.
                let halvings = self.halvings.entry(BATCHES.to_owned()).or_insert(0);
                *halvings += u32::from(!std::mem::replace(&mut is_halved, true));
                conversations.into_iter().rev().for_each(|conversation| queue.push_front(conversation));
                continue;
            }
            // If batches are refused or unknown, stop using them.
            let transient = [Judged::Late, Judged::Broken, Judged::Unreachable];
            self.several &= judged == Judged::Good || transient.contains(&judged);
            let found = (judged == Judged::Good).then(|| self.live.read_several(&answer.body)).flatten();
            let mut found = found.unwrap_or_default();
            for conversation in conversations {
                // Batches omit some and truncate others: request those separately.
                let body =
                    found.iter().position(|(id, _)| *id == conversation.id).map(|at| found.swap_remove(at).1);
                match body.map(|body| self.live.assemble(&conversation.id, &[body])) {
                    Some(Assembled::Whole(body)) => self.keep(conversation, &body)?,
                    Some(Assembled::More(_) | Assembled::Part(..) | Assembled::Torn(_)) | None => {
                        singly.push_back(conversation);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether the provider shows a captcha.
    fn fetch_singly(
        &mut self,
        group: Vec<FetchItem>,
        retry: Retry,
        singly: &mut VecDeque<FetchItem>,
    ) -> Result<bool, Stop> {
        let fetched = match self.pages(&group, self.way, retry) {
            Ok(fetched) => fetched,
            Err(stop) => {
                self.keeper.commit(&self.state)?;
                return Err(stop);
            }
        };
        let mut challenged = false;
        let mut elsewhere = Vec::new();
        let mut results: Vec<(FetchItem, Fetched)> = Vec::new();
        for (conversation, fetched) in group.into_iter().zip(fetched) {
            match fetched {
                Fetched::Failed(FailureKind::NotFound, _) => elsewhere.push(conversation),
                fetched => results.push((conversation, fetched)),
            }
        }
        if !elsewhere.is_empty() {
            // Accounts migrate between the two endpoints: what one does not know, the other may.
            let other = match self.way {
                Way::Tree => Way::Pages,
                Way::Pages => Way::Tree,
            };
            let fetched = self.pages(&elsewhere, other, retry)?;
            let has_pages = |conversation: &FetchItem| {
                self.started.get(&conversation.id).is_some_and(|(_, had)| !had.is_empty())
            };
            let mut attempts = elsewhere.iter().zip(&fetched);
            if attempts.any(|(conversation, fetched)| {
                matches!(fetched, Fetched::Whole(_)) || has_pages(conversation)
            }) {
                self.way = other;
            }
            results.extend(elsewhere.into_iter().zip(fetched));
        }
        let mut refused = Vec::new();
        for (conversation, fetched) in results {
            match fetched {
                Fetched::Whole(body) => self.keep(conversation, &body)?,
                Fetched::Refused => refused.push(conversation),
                Fetched::Challenge => {
                    challenged = true;
                    self.fail(
                        conversation,
                        FailureKind::RateLimited,
                        "the page shows a captcha or another check",
                    );
                }
                Fetched::Failed(why, reason) => self.fail(conversation, why, &reason),
            }
        }
        if !refused.is_empty() {
            self.state.bucket.refused(self.pace, (self.now)());
            self.exhausted = !self.waits;
        }
        for conversation in refused {
            match self.waits {
                true => singly.push_front(conversation),
                false => self.fail(conversation, FailureKind::RateLimited, "too many requests"),
            }
        }
        // A last wait before anything else is requested.
        if self.exhausted && retry == Retry::Patiently && !singly.is_empty() {
            std::thread::sleep(self.pace.wait(3));
        }
        Ok(challenged)
    }

    /// Fetches all pages of each conversation, several conversations in parallel.
    fn pages(&mut self, conversations: &[FetchItem], way: Way, retry: Retry) -> Result<Vec<Fetched>, Stop> {
        let mut pages: Vec<Vec<String>> = vec![Vec::new(); conversations.len()];
        let mut fetched: Vec<Option<Fetched>> = conversations.iter().map(|_| None).collect();
        let mut places: Vec<Option<String>> = vec![None; conversations.len()];
        for (at, conversation) in conversations.iter().enumerate() {
            // Resume a conversation that was refused halfway.
            if self.started.get(&conversation.id).is_none_or(|(before, _)| *before != way) {
                continue;
            }
            let started =
                self.started.remove(&conversation.id).map(|(_, started)| started).unwrap_or_default();
            if let Assembled::More(place) = self.live.assemble(&conversation.id, &started) {
                (pages[at], places[at]) = (started, Some(place));
            }
        }
        while fetched.iter().any(Option::is_none) {
            let open: Vec<usize> = (0..conversations.len()).filter(|at| fetched[*at].is_none()).collect();
            let halvings = self.halvings.get(TURNS).copied().unwrap_or(0);
            let requests: Vec<LiveRequest> = open
                .iter()
                .map(|at| {
                    let page = PageRequest { place: places[*at].as_deref(), halvings };
                    self.live.single(&conversations[*at].id, way, page)
                })
                .collect();
            let answers = self.talk.send(&requests, retry)?;
            for (request, (at, (judged, answer))) in requests.iter().zip(open.into_iter().zip(answers)) {
                let page = PageRequest { place: places[at].as_deref(), halvings: halvings + 1 };
                let can_shrink = self.live.single(&conversations[at].id, way, page) != *request;
                fetched[at] = match judged {
                    Judged::TooLarge if can_shrink => {
                        self.halvings.insert(TURNS.to_owned(), halvings + 1);
                        None
                    }
                    Judged::Good => {
                        self.state.bucket.given();
                        pages[at].push(answer.body);
                        match self.live.assemble(&conversations[at].id, &pages[at]) {
                            Assembled::Whole(body) => Some(Fetched::Whole(body)),
                            Assembled::More(place) if pages[at].len() < MOST_PAGES => {
                                places[at] = Some(place);
                                None
                            }
                            Assembled::More(_) => {
                                Some(Fetched::Failed(FailureKind::Malformed, "too many pages".into()))
                            }
                            Assembled::Part(body, why) => {
                                // It may never get better, and it still counts as missing.
                                self.report.captured_bytes +=
                                    self.keeper.add_part(self.live.captures(&body))?;
                                Some(Fetched::Failed(FailureKind::Malformed, why.to_owned()))
                            }
                            Assembled::Torn(why) => {
                                Some(Fetched::Failed(FailureKind::Malformed, why.to_owned()))
                            }
                        }
                    }
                    Judged::Refused => {
                        if self.waits {
                            self.started
                                .insert(conversations[at].id.clone(), (way, std::mem::take(&mut pages[at])));
                        }
                        Some(Fetched::Refused)
                    }
                    Judged::Challenge => Some(Fetched::Challenge),
                    Judged::Expired
                    | Judged::Forbidden
                    | Judged::Missing
                    | Judged::TooLarge
                    | Judged::Broken
                    | Judged::Late
                    | Judged::Unreachable => {
                        let reason = match answer.status {
                            0 if judged == Judged::Unreachable => "connection lost".to_owned(),
                            0 => "timed out".to_owned(),
                            200 => "incomplete response".to_owned(),
                            status => format!("HTTP status {status}"),
                        };
                        let why =
                            if answer.status == 200 { FailureKind::Malformed } else { failure_kind(judged) };
                        Some(Fetched::Failed(why, reason))
                    }
                };
            }
        }
        Ok(fetched.into_iter().flatten().collect())
    }

    fn keep(&mut self, conversation: FetchItem, body: &[u8]) -> Result<(), Stop> {
        let captures = self.live.captures(body);
        // A response without captures is not a success.
        if captures.is_empty() {
            self.fail(conversation, FailureKind::Malformed, "no conversation");
            return Ok(());
        }
        let id = conversation.id.clone();
        self.report.fetched += 1;
        self.report.recovered += u64::from(conversation.is_gap);
        self.report.captured_bytes += self.keeper.add_conversation(conversation, captures)?;
        if self.live.has_beside(body) { self.fetch_beside(&id) } else { Ok(()) }
    }

    /// What belongs to a conversation and is not part of it, or a gap.
    fn fetch_beside(&mut self, id: &str) -> Result<(), Stop> {
        let request = self.live.beside(id);
        let Some((judged, answer)) = self.talk.send(&[request], Retry::Patiently)?.pop() else {
            return Ok(());
        };
        let (why, reason) = match judged {
            Judged::Good => match self.live.captures_beside(id, &answer.body) {
                Some(captures) => {
                    self.report.captured_bytes += self.keeper.add_notes(captures)?;
                    return Ok(self.keeper.close(GapStream::ConversationDocuments, id)?);
                }
                None => (FailureKind::ShapeChanged, "not as expected"),
            },
            // There is nothing.
            Judged::Missing => return Ok(self.keeper.close(GapStream::ConversationDocuments, id)?),
            Judged::Challenge => return Err(self.talk.challenge_stop()),
            other => (failure_kind(other), "no answer"),
        };
        self.report.new_gaps += 1;
        Ok(self.keeper.fail(GapStream::ConversationDocuments, id, "", (why, reason), (self.now)())?)
    }

    pub fn retry_beside(&mut self, due: &[DueGap]) -> Result<(), Stop> {
        for gap in due.iter().filter(|gap| GapStream::ConversationDocuments.is(&gap.stream)) {
            self.fetch_beside(&gap.key)?;
        }
        Ok(())
    }

    /// Asks about files whose records lack something, each once, and not about too many in one run.
    pub fn fetch_file_facts(&mut self) -> Result<(), Stop> {
        let requested = self.keeper.requested_files()?;
        let lacking = self.keeper.referenced_files()?.into_iter().filter(|(id, _)| !requested.contains(id));
        let lacking = lacking.filter_map(|(id, record)| Some((self.live.file_facts(&id, &record)?, id)));
        let lacking: Vec<(LiveRequest, String)> = lacking.take(FACTS_A_RUN).collect();
        for group in lacking.chunks(GROUP) {
            let requests: Vec<LiveRequest> = group.iter().map(|(request, _)| request.clone()).collect();
            let answers = self.talk.send(&requests, Retry::NotRefusals)?;
            let mut refused = false;
            for ((_, id), (judged, answer)) in group.iter().zip(answers) {
                match judged {
                    Judged::Good => {
                        let captures = self.live.file_fact_captures(id, &answer.body);
                        self.report.captured_bytes += self.keeper.add_facts(id, captures)?;
                    }
                    Judged::Missing | Judged::Forbidden | Judged::TooLarge => {
                        self.keeper.add_facts(id, Vec::new())?;
                    }
                    Judged::Challenge => return Err(self.talk.challenge_stop()),
                    // The next run asks again.
                    _ => refused = true,
                }
            }
            self.keeper.commit_if_due(&self.state)?;
            if refused {
                break;
            }
        }
        Ok(self.keeper.commit(&self.state)?)
    }

    fn fail(&mut self, conversation: FetchItem, why: FailureKind, reason: &str) {
        self.report.new_gaps += u64::from(!conversation.is_gap);
        self.keeper.fail_conversation(conversation, why, reason);
    }

    /// Fetches the files that conversations refer to, whoever fetched those: what is neither archived nor known to be
    /// missing.
    pub fn fetch_files(&mut self, gaps_only: bool, due: &[DueGap]) -> Result<(), Stop> {
        let missing = self.keeper.missing(GapStream::Files)?;
        let due_ids: HashSet<&str> =
            due.iter().filter(|gap| GapStream::Files.is(&gap.stream)).map(|gap| gap.key.as_str()).collect();
        let mut wanted = Vec::new();
        for (id, record) in self.keeper.referenced_files()? {
            let is_due = due_ids.contains(id.as_str());
            let (path, request) = self.live.file(&id, &record);
            if (is_due || !gaps_only && !missing.contains_key(&id)) && !self.keeper.has(&path)? {
                wanted.push((id, request));
            }
        }
        for group in wanted.chunks(FILES_AT_ONCE) {
            let requests: Vec<LiveRequest> = group.iter().map(|(_, request)| request.clone()).collect();
            let answers = self.talk.fetch_bytes(&requests)?;
            let mut refused = false;
            for ((id, _), (judged, answer)) in group.iter().zip(answers) {
                match judged {
                    Judged::Good if answer.content_type == "bytes" => {
                        let bytes: Vec<u8> =
                            answer.body.chars().filter_map(|letter| u8::try_from(letter).ok()).collect();
                        let captures = self.live.file_captures(id, &bytes);
                        self.report.captured_bytes += self.keeper.add_file(id, captures, &bytes)?;
                        self.report.files += 1;
                    }
                    Judged::Challenge => return Err(self.talk.challenge_stop()),
                    judged => {
                        refused |= judged == Judged::Refused;
                        self.report.warnings.push(format!("{id}: content unavailable"));
                        let why = (failure_kind(judged), "content unavailable");
                        self.keeper.fail(GapStream::Files, id, "", why, (self.now)())?;
                    }
                }
            }
            self.keeper.commit_if_due(&self.state)?;
            if refused {
                break;
            }
        }
        self.keeper.commit(&self.state)?;
        Ok(())
    }

    fn report_progress(&mut self, all: u64, left: usize) {
        let left = left as u64;
        let time_left = self.state.bucket.time_for(left, self.pace, (self.now)());
        (self.progress)(LiveProgress { done: all.saturating_sub(left), total: all, time_left });
    }
}
