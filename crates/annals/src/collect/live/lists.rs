//! Walks the lists of a provider: documents that are captured whole, and lists of conversations to fetch.

use std::collections::{HashMap, HashSet};

use super::talk::{Retry, Stop};
use super::{DOCUMENTS, FetchItem, LISTS, LiveRun, fresh, why_of};
use annals_core::{FailureKind, Result, Time};
use annals_sources::{Judged, ListPage, Listed, Listing};

/// Pages of one list; more would be one that never ends.
const MOST_PAGES: usize = 5_000;

impl LiveRun<'_> {
    fn known_today(&self, listing: &Listing) -> bool {
        listing.daily && self.learnt.days.get(listing.name) == Some(&(self.now)().day())
    }

    /// A document with all its pages, or none of it: what is not whole says nothing about what has ended.
    pub fn listing(&mut self, listing: &Listing) -> std::result::Result<Option<Vec<String>>, Stop> {
        if self.known_today(listing) {
            return Ok(None);
        }
        let mut way = 0;
        let (mut pages, mut ids): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut place: Option<String> = None;
        while let Some(request) = self.live.listing_request(listing, way, place.as_deref()) {
            let Some((judged, answer)) = self.talk.ask(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => {}
                Judged::Missing if pages.is_empty() => {
                    way += 1;
                    continue;
                }
                Judged::Challenge => return Err(self.talk.challenged()),
                other => return self.no_document(listing, other, "no answer"),
            }
            let Some(page) = self.live.listing_page(listing, place.as_deref(), &answer.body) else {
                return self.no_document(listing, Judged::Broken, "unexpected content");
            };
            let (before, is_empty) = (ids.len(), page.items.is_empty());
            ids.extend(page.items.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
            let news = ids.len() > before;
            pages.push(answer.body);
            match page.next {
                Some(next) if news && pages.len() < MOST_PAGES => place = Some(next),
                // Paging was seen to go in circles: then what it does not name may be there all the same.
                Some(_) if !is_empty && self.keeper.would_end(listing, &ids)? => {
                    return self.no_document(listing, Judged::Broken, "its pages repeat");
                }
                Some(_) | None => break,
            }
        }
        if pages.is_empty() {
            // This account has no such thing, and lacks nothing of it.
            self.keeper.close(DOCUMENTS, listing.name)?;
            return Ok(Some(Vec::new()));
        }
        let mut details = Vec::new();
        for id in &ids {
            let Some(request) = self.live.listing_detail(listing, id) else { break };
            let Some((judged, answer)) = self.talk.ask(&[request], Retry::Patiently)?.pop() else { break };
            match judged {
                Judged::Good => details.push(answer.body),
                // The list says enough of what nobody may see more of.
                Judged::Missing | Judged::Forbidden => {}
                Judged::Challenge => return Err(self.talk.challenged()),
                other => return self.no_document(listing, other, "no answer"),
            }
        }
        self.report.captured_bytes += self.keeper.document(listing, &pages, &details)?;
        self.report.documents += 1;
        self.learnt.days.insert(listing.name.to_owned(), (self.now)().day());
        Ok(Some(ids))
    }

    fn no_document(
        &mut self,
        listing: &Listing,
        judged: Judged,
        what: &str,
    ) -> std::result::Result<Option<Vec<String>>, Stop> {
        self.report.problems.push(format!("{}: {what}; nothing was removed from the archive", listing.name));
        self.keeper.fail(DOCUMENTS, listing.name, "", (why_of(judged), what), (self.now)())?;
        Ok(None)
    }

    /// Walks a list down to what was seen before; answers where its cursor may move once all of it is done.
    pub fn walk(
        &mut self,
        list: &str,
        full: bool,
        seen: &HashMap<String, String>,
        lacking: &HashMap<String, String>,
        wanted: &mut HashMap<String, FetchItem>,
    ) -> std::result::Result<Option<(String, String)>, Stop> {
        // A moment that is yet to come would hide all that is new until then.
        let now = (self.now)();
        let has_been = |at: &Time| *at <= now;
        let cursor = if full { None } else { self.keeper.list_cursor(list)?.filter(has_been) };
        let (mut place, mut newest): (Option<String>, Option<Time>) = (None, cursor);
        let mut met = HashSet::new();
        for _ in 0..MOST_PAGES {
            let Some(page) = self.page(list, place.as_deref())? else { return Ok(None) };
            let (mut news, mut reached, is_empty) = (false, false, page.items.is_empty());
            for item in page.items {
                newest = newest.max(item.updated.filter(has_been));
                // Several may have changed at the same moment: that moment is looked at again. What is pinned stands
                // above what is newer: only the last says how far down the page goes.
                if item.updated.is_some() {
                    reached = item.updated < cursor;
                }
                if !met.insert(item.id.clone()) {
                    continue;
                }
                news = true;
                match fresh(item, seen, lacking) {
                    Some(thing) => drop(wanted.insert(thing.id.clone(), thing)),
                    None => self.report.unchanged += 1,
                }
            }
            match page.next {
                Some(next) if news && !reached => place = Some(next),
                Some(_) if !news && !is_empty => {
                    self.breaks_off(list, FailureKind::Pressure, "its pages repeat")?;
                    return Ok(None);
                }
                Some(_) | None => {
                    let mark = newest.map_or_else(String::new, |at| at.micros().to_string());
                    return Ok(Some((list.to_owned(), mark)));
                }
            }
        }
        self.breaks_off(list, FailureKind::Failed, "too many pages")?;
        Ok(None)
    }

    fn breaks_off(&mut self, list: &str, why: FailureKind, what: &str) -> Result<()> {
        self.report.problems.push(format!("the list {list:?} could not be read completely: {what}"));
        self.keeper.fail(LISTS, list, "", (why, what), (self.now)())
    }

    pub fn page(
        &mut self,
        list: &str,
        place: Option<&str>,
    ) -> std::result::Result<Option<ListPage<Listed>>, Stop> {
        let request = self.live.list_request(list, place);
        let answer = self.talk.ask(&[request], Retry::Patiently)?.pop();
        let (judged, page) = match answer {
            Some((Judged::Good, answer)) => (Judged::Broken, self.live.list_page(list, place, &answer.body)),
            Some((Judged::Challenge, _)) => return Err(self.talk.challenged()),
            Some((judged, _)) => (judged, None),
            None => (Judged::Late, None),
        };
        if page.is_none() {
            self.breaks_off(list, why_of(judged), "a page could not be fetched")?;
        }
        Ok(page)
    }
}
