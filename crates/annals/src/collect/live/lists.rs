//! Walks the lists of a provider: documents that are captured completely, and lists of conversations to fetch.

use std::collections::{HashMap, HashSet};

use super::talk::{Retry, Stop};
use super::{FetchItem, LiveRun, failure_kind, to_fetch};
use annals_core::{FailureKind, GapStream, Result, Time};
use annals_sources::{
    Judged, ListPage, Listed, ListedItem, Listing, LiveAnswer, LiveRequest, NextPage, PageRequest,
};

/// Most pages of one list; more means that paging never ends.
const MOST_PAGES: usize = 5_000;

/// Consecutive empty pages that lead on; more means that paging never ends.
const EMPTY_PAGES: usize = 20;

/// A document as far as it was walked.
#[derive(Default)]
struct Walked {
    pages: Vec<String>,
    items: Vec<ListedItem>,
    ids: HashSet<String>,
    nameless: usize,
    places: HashSet<String>,
    /// Empty pages since the last one that was not.
    empty: usize,
}

/// What to do after a page.
enum Step {
    Go(String),
    End,
    /// It goes in circles: what it does not list may still exist.
    Repeats,
    /// Nothing but empty pages, and no end.
    Endless,
}

impl LiveRun<'_> {
    fn is_up_to_date(&self, listing: &Listing, is_due: bool) -> bool {
        let today = Some(&(self.now)().day());
        let state = &self.state;
        // Missing documents are requested once a day; failed ones when their gap is due.
        state.absent.get(listing.name) == today
            || listing.daily && state.days.get(listing.name) == today
            || listing.daily && !is_due && state.failed.get(listing.name) == today
    }

    /// A document with all its pages, or nothing: an incomplete one does not show what was deleted.
    pub fn listing(
        &mut self,
        listing: &Listing,
        is_due: bool,
    ) -> std::result::Result<Option<Vec<String>>, Stop> {
        if self.is_up_to_date(listing, is_due) {
            return Ok(None);
        }
        let (mut way, mut walked) = (0, Walked::default());
        let mut place: Option<String> = None;
        loop {
            let name = format!("listing {}", listing.name);
            let live = self.live;
            let request = |halvings: u32| {
                live.listing_request(listing, way, PageRequest { place: place.as_deref(), halvings })
            };
            let Some((judged, answer, halvings)) = self.send_page(&name, &request)? else { break };
            match judged {
                Judged::Good => {}
                Judged::Missing if walked.pages.is_empty() => {
                    way += 1;
                    continue;
                }
                Judged::Challenge => return Err(self.talk.challenge_stop()),
                other => return self.fail_document(listing, failure_kind(other), "no answer"),
            }
            let page = PageRequest { place: place.as_deref(), halvings };
            let Some(page) = self.live.listing_page(listing, page, &answer.body) else {
                return self.fail_document(listing, FailureKind::ShapeChanged, "unexpected content");
            };
            let keeps_items = self.live.listing_detail(listing, "").is_some();
            place = match walked.add(page, answer.body, keeps_items) {
                Step::Go(next) => Some(next),
                Step::End => break,
                Step::Repeats if !self.keeper.would_remove(listing, &walked.ids)? => break,
                Step::Repeats => {
                    return self.fail_document(listing, FailureKind::Pressure, "its pages repeat");
                }
                Step::Endless => {
                    return self.fail_document(listing, FailureKind::ShapeChanged, "its pages do not end");
                }
            };
        }
        let today = (self.now)().day();
        if walked.pages.is_empty() {
            // This account has no such document, so nothing is missing.
            self.state.absent.insert(listing.name.to_owned(), today);
            self.keeper.close(GapStream::Documents, listing.name)?;
            return Ok(Some(Vec::new()));
        }
        self.state.absent.remove(listing.name);
        if walked.nameless > 0 {
            // What it lists without an id may be what seems to have ended.
            if self.keeper.would_remove(listing, &walked.ids)? {
                return self.fail_document(listing, FailureKind::ShapeChanged, "items without an id");
            }
            self.report
                .warnings
                .push(format!("{}: {} without an id left out", listing.name, walked.nameless));
        }
        let before = self.keeper.document_text(listing)?;
        let mut details = Vec::new();
        for item in &walked.items {
            let Some(request) = self.live.listing_detail(listing, &item.id) else { break };
            if let Some(kept) = self.live.kept_detail(listing, &before, item) {
                details.push(self.live.detailed(&item.id, &item.body, &kept));
                continue;
            }
            let Some((judged, answer)) = self.talk.send(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => details.push(self.live.detailed(&item.id, &item.body, &answer.body)),
                // The list entry is enough for items whose details are not accessible.
                Judged::Missing | Judged::Forbidden => {}
                Judged::Challenge => return Err(self.talk.challenge_stop()),
                other => return self.fail_document(listing, failure_kind(other), "no answer"),
            }
        }
        self.report.captured_bytes += self.keeper.document(listing, &walked.pages, &details)?;
        for text in walked.pages.iter().chain(&details) {
            let captures = self.live.listing_captures(listing, text);
            self.report.captured_bytes += self.keeper.add_notes(captures)?;
        }
        self.report.documents += 1;
        self.state.days.insert(listing.name.to_owned(), today);
        Ok(Some(walked.items.into_iter().map(|item| item.id).collect()))
    }

    /// Requests a page, and smaller ones while the provider refuses its size; how often it was halved.
    fn send_page(
        &mut self,
        list: &str,
        request: &dyn Fn(u32) -> Option<LiveRequest>,
    ) -> std::result::Result<Option<(Judged, LiveAnswer, u32)>, Stop> {
        loop {
            let halvings = self.halvings.get(list).copied().unwrap_or(0);
            let Some(wanted) = request(halvings) else { return Ok(None) };
            let answer = self.talk.send(std::slice::from_ref(&wanted), Retry::Patiently)?.pop();
            let Some((judged, answer)) = answer else { return Ok(None) };
            // Half of one is one.
            let smaller = request(halvings + 1).filter(|smaller| *smaller != wanted);
            if judged != Judged::TooLarge || smaller.is_none() {
                return Ok(Some((judged, answer, halvings)));
            }
            self.halvings.insert(list.to_owned(), halvings + 1);
        }
    }

    fn fail_document(
        &mut self,
        listing: &Listing,
        why: FailureKind,
        what: &str,
    ) -> std::result::Result<Option<Vec<String>>, Stop> {
        self.report.warnings.push(format!("{}: {what}; nothing was removed from the archive", listing.name));
        self.state.failed.insert(listing.name.to_owned(), (self.now)().day());
        self.keeper.fail(GapStream::Documents, listing.name, "", (why, what), (self.now)())?;
        Ok(None)
    }

    /// Walks a list down to what was seen before; returns the cursor to store once all of it is done.
    pub fn walk(
        &mut self,
        list: &str,
        full: bool,
        seen: &HashMap<String, String>,
        missing: &HashMap<String, String>,
        wanted: &mut HashMap<String, FetchItem>,
    ) -> std::result::Result<Option<(String, String)>, Stop> {
        // A time in the future would hide everything new until then.
        let now = (self.now)();
        let has_been = |at: &Time| *at <= now;
        let cursor = if full { None } else { self.keeper.list_cursor(list)?.filter(has_been) };
        let (mut place, mut newest): (Option<String>, Option<Time>) = (None, cursor);
        let (mut visited, mut places, mut empty) = (HashSet::new(), HashSet::new(), 0);
        for _ in 0..MOST_PAGES {
            let Some(page) = self.page(list, place.as_deref())? else { return Ok(None) };
            if page.nameless > 0 {
                let what = format!("the list {list:?}: {} without an id left out", page.nameless);
                self.report.warnings.push(what);
            }
            let (mut has_new, mut reached, is_empty) = (false, false, page.items.is_empty());
            for item in page.items {
                newest = newest.max(item.updated.filter(has_been));
                // Several items may have changed at the same time, so that time is read again. Pinned items come
                // before newer ones: only the last item shows how far down the page goes.
                if item.updated.is_some() {
                    reached = item.updated < cursor;
                }
                if !visited.insert(item.id.clone()) {
                    continue;
                }
                has_new = true;
                match to_fetch(item, seen, missing) {
                    Some(conversation) => drop(wanted.insert(conversation.id.clone(), conversation)),
                    None => self.report.unchanged += 1,
                }
            }
            empty = if is_empty { empty + 1 } else { 0 };
            let step = match page.next {
                _ if reached => Step::End,
                next => next_step(next, has_new, is_empty, empty, &mut places),
            };
            match step {
                Step::Go(next) => place = Some(next),
                Step::Repeats => {
                    self.fail_list(list, FailureKind::Pressure, "its pages repeat")?;
                    return Ok(None);
                }
                Step::Endless => {
                    self.fail_list(list, FailureKind::ShapeChanged, "its pages do not end")?;
                    return Ok(None);
                }
                Step::End => {
                    let mark = newest.map_or_else(String::new, |at| at.micros().to_string());
                    return Ok(Some((list.to_owned(), mark)));
                }
            }
        }
        self.fail_list(list, FailureKind::Failed, "too many pages")?;
        Ok(None)
    }

    fn fail_list(&mut self, list: &str, why: FailureKind, what: &str) -> Result<()> {
        self.report.warnings.push(format!("the list {list:?} could not be read completely: {what}"));
        self.keeper.fail(GapStream::Lists, list, "", (why, what), (self.now)())
    }

    pub fn page(
        &mut self,
        list: &str,
        place: Option<&str>,
    ) -> std::result::Result<Option<ListPage<Listed>>, Stop> {
        let (live, name) = (self.live, format!("list {list}"));
        let request = |halvings: u32| Some(live.list_request(list, PageRequest { place, halvings }));
        let answer = self.send_page(&name, &request)?;
        let judged = match answer {
            Some((Judged::Good, answer, halvings)) => {
                let page = self.live.list_page(list, PageRequest { place, halvings }, &answer.body);
                if page.is_none() {
                    self.fail_list(list, FailureKind::ShapeChanged, "a page was not as expected")?;
                }
                return Ok(page);
            }
            Some((Judged::Challenge, ..)) => return Err(self.talk.challenge_stop()),
            Some((judged, ..)) => judged,
            None => Judged::Late,
        };
        self.fail_list(list, failure_kind(judged), "a page could not be fetched")?;
        Ok(None)
    }
}

impl Walked {
    /// Items are kept with their content if details are added to it; all of it is in the page anyway.
    fn add(&mut self, page: ListPage<ListedItem>, body: String, keeps_items: bool) -> Step {
        let (before, is_empty) = (self.ids.len(), page.items.is_empty());
        self.nameless += page.nameless;
        for item in page.items {
            if self.ids.insert(item.id.clone()) {
                let body = if keeps_items { item.body } else { String::new() };
                self.items.push(ListedItem { body, ..item });
            }
        }
        self.pages.push(body);
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        let has_new = self.ids.len() > before;
        match next_step(page.next, has_new, is_empty, self.empty, &mut self.places) {
            Step::Go(_) if self.pages.len() >= MOST_PAGES => Step::Repeats,
            step => step,
        }
    }
}

/// `empty` is how many pages without items came in a row, and `places` is where pages began.
fn next_step(
    next: NextPage,
    has_new: bool,
    is_empty: bool,
    empty: usize,
    places: &mut HashSet<String>,
) -> Step {
    match next {
        NextPage::End => Step::End,
        NextPage::Part(next) => Step::Go(next),
        NextPage::Perhaps(next) if has_new => Step::Go(next),
        NextPage::Perhaps(_) => Step::End,
        NextPage::At(_) if empty > EMPTY_PAGES => Step::Endless,
        NextPage::At(next) => match (places.insert(next.clone()), is_empty) {
            (true, true) => Step::Go(next),
            (true, false) if has_new => Step::Go(next),
            // An empty page that leads to itself leads nowhere.
            (false, true) => Step::End,
            (_, false) => Step::Repeats,
        },
    }
}
