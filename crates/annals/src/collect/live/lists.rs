//! Walks the lists of a provider: documents that are captured completely, and lists of conversations to fetch.

use std::collections::{HashMap, HashSet};

use super::talk::{Retry, Stop};
use super::{DOCUMENTS, FetchItem, LISTS, LiveRun, failure_kind, to_fetch};
use annals_core::{FailureKind, Result, Time};
use annals_sources::{Judged, ListPage, Listed, Listing};

/// Most pages of one list; more means that paging never ends.
const MOST_PAGES: usize = 5_000;

impl LiveRun<'_> {
    fn is_up_to_date(&self, listing: &Listing) -> bool {
        listing.daily && self.state.days.get(listing.name) == Some(&(self.now)().day())
    }

    /// A document with all its pages, or nothing: an incomplete one does not show what was deleted.
    pub fn listing(&mut self, listing: &Listing) -> std::result::Result<Option<Vec<String>>, Stop> {
        if self.is_up_to_date(listing) {
            return Ok(None);
        }
        let (mut way, mut nameless) = (0, 0);
        let (mut pages, mut ids): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut place: Option<String> = None;
        while let Some(request) = self.live.listing_request(listing, way, place.as_deref()) {
            let Some((judged, answer)) = self.talk.send(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => {}
                Judged::Missing if pages.is_empty() => {
                    way += 1;
                    continue;
                }
                Judged::Challenge => return Err(self.talk.challenge_stop()),
                other => return self.fail_document(listing, failure_kind(other), "no answer"),
            }
            let Some(page) = self.live.listing_page(listing, place.as_deref(), &answer.body) else {
                return self.fail_document(listing, FailureKind::ShapeChanged, "unexpected content");
            };
            nameless += page.nameless;
            let (before, is_empty) = (ids.len(), page.items.is_empty());
            ids.extend(page.items.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
            let has_new = ids.len() > before;
            pages.push(answer.body);
            match page.next {
                Some(next) if has_new && pages.len() < MOST_PAGES => place = Some(next),
                // Paging sometimes goes in circles: items it does not list may still exist.
                Some(_) if !is_empty && self.keeper.would_remove(listing, &ids)? => {
                    return self.fail_document(listing, FailureKind::Pressure, "its pages repeat");
                }
                Some(_) | None => break,
            }
        }
        if pages.is_empty() {
            // This account has no such document, so nothing is missing.
            self.keeper.close(DOCUMENTS, listing.name)?;
            return Ok(Some(Vec::new()));
        }
        if nameless > 0 {
            // What it lists without an id may be what seems to have ended.
            if self.keeper.would_remove(listing, &ids)? {
                return self.fail_document(listing, FailureKind::ShapeChanged, "items without an id");
            }
            self.report.warnings.push(format!("{}: {nameless} without an id left out", listing.name));
        }
        let mut details = Vec::new();
        for id in &ids {
            let Some(request) = self.live.listing_detail(listing, id) else { break };
            let Some((judged, answer)) = self.talk.send(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => details.push(answer.body),
                // The list entry is enough for items whose details are not accessible.
                Judged::Missing | Judged::Forbidden => {}
                Judged::Challenge => return Err(self.talk.challenge_stop()),
                other => return self.fail_document(listing, failure_kind(other), "no answer"),
            }
        }
        self.report.captured_bytes += self.keeper.document(listing, &pages, &details)?;
        self.report.documents += 1;
        self.state.days.insert(listing.name.to_owned(), (self.now)().day());
        Ok(Some(ids))
    }

    fn fail_document(
        &mut self,
        listing: &Listing,
        why: FailureKind,
        what: &str,
    ) -> std::result::Result<Option<Vec<String>>, Stop> {
        self.report.warnings.push(format!("{}: {what}; nothing was removed from the archive", listing.name));
        self.keeper.fail(DOCUMENTS, listing.name, "", (why, what), (self.now)())?;
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
        let mut visited = HashSet::new();
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
            match page.next {
                Some(next) if has_new && !reached => place = Some(next),
                Some(_) if !has_new && !is_empty => {
                    self.fail_list(list, FailureKind::Pressure, "its pages repeat")?;
                    return Ok(None);
                }
                Some(_) | None => {
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
        self.keeper.fail(LISTS, list, "", (why, what), (self.now)())
    }

    pub fn page(
        &mut self,
        list: &str,
        place: Option<&str>,
    ) -> std::result::Result<Option<ListPage<Listed>>, Stop> {
        let request = self.live.list_request(list, place);
        let answer = self.talk.send(&[request], Retry::Patiently)?.pop();
        let judged = match answer {
            Some((Judged::Good, answer)) => {
                let page = self.live.list_page(list, place, &answer.body);
                if page.is_none() {
                    self.fail_list(list, FailureKind::ShapeChanged, "a page was not as expected")?;
                }
                return Ok(page);
            }
            Some((Judged::Challenge, _)) => return Err(self.talk.challenge_stop()),
            Some((judged, _)) => judged,
            None => Judged::Late,
        };
        self.fail_list(list, failure_kind(judged), "a page could not be fetched")?;
        Ok(None)
    }
}
