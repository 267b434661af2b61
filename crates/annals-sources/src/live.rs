//! What a source requests from its provider, from within the provider's page in the user's browser.
//!
//! A source defines requests and interprets responses; the collector decides when, how often and what to keep. Apart
//! from the script, everything is a pure function.

use serde_json::Value;

use crate::Settings;
use crate::import::Capture;
use annals_core::Time;

pub trait Live: Sync {
    /// Increased when a newer version may fetch what an older one could not.
    fn version(&self) -> &'static str;

    /// The origin of the page: `https://example.com`.
    fn origin(&self, settings: &dyn Settings) -> String;

    /// Defines `annals.session()` and `annals.ask(request)` in an isolated world of the page. Credentials stay there
    /// and are never part of a response.
    fn script(&self) -> &'static str;

    fn judge(&self, answer: &LiveAnswer) -> Judged;

    /// Small documents that are fetched whole.
    fn listings(&self) -> &'static [Listing];

    /// Requests a page of a listing; `None` if there is no such way.
    fn listing_request(&self, listing: &Listing, way: usize, page: PageRequest<'_>) -> Option<LiveRequest>;

    /// `None` if the response is not a page of the listing, as opposed to an empty page. Whatever is not understood
    /// must not look like the end.
    fn listing_page(
        &self,
        listing: &Listing,
        page: PageRequest<'_>,
        body: &str,
    ) -> Option<ListPage<ListedItem>>;

    /// Requests more details of an item than the listing has.
    fn listing_detail(&self, listing: &Listing, id: &str) -> Option<LiveRequest>;

    /// An item and the response to `listing_detail` as one text, which takes away nothing that the listing had.
    fn detailed(&self, id: &str, listed: &str, answer: &str) -> String;

    /// The detail of an item in the document as it was last archived, if the item says that it has not changed.
    fn kept_detail(&self, listing: &Listing, document: &str, item: &ListedItem) -> Option<String>;

    /// What a page or a detail of a listing says about files, for the records of these files.
    fn listing_captures(&self, listing: &Listing, body: &str) -> Vec<Capture<'static>>;

    /// Lists of items that are fetched one by one; `parts` returns the ids in a listing.
    fn lists(&self, parts: &dyn Fn(&str) -> Vec<String>) -> Vec<String>;

    fn list_request(&self, list: &str, page: PageRequest<'_>) -> LiveRequest;

    /// Newest first.
    fn list_page(&self, list: &str, page: PageRequest<'_>, body: &str) -> Option<ListPage<Listed>>;

    /// Requests several at once. Those missing from the response are requested one by one.
    fn several(&self, ids: &[String]) -> LiveRequest;

    /// The most ids that `several` accepts.
    fn most_at_once(&self) -> usize;

    /// Splits the response of `several` into ids and bodies.
    fn read_several(&self, body: &str) -> Option<Vec<(String, String)>>;

    /// Requests one item in one of two ways. Which of them works depends on the account.
    fn single(&self, id: &str, way: Way, page: PageRequest<'_>) -> LiveRequest;

    /// Joins the pages of one item, newest first as they were requested.
    fn assemble(&self, id: &str, pages: &[String]) -> Assembled;

    /// The files of the archive that it goes to.
    fn captures<'b>(&self, body: &'b [u8]) -> Vec<Capture<'b>>;

    /// Whether something belongs to an item and is not part of it.
    fn has_beside(&self, body: &[u8]) -> bool;

    /// Requests that.
    fn beside(&self, id: &str) -> LiveRequest;

    /// The files of the archive that the response of `beside` goes to; `None` if it is not what it should be.
    fn captures_beside(&self, id: &str, body: &str) -> Option<Vec<Capture<'static>>>;

    /// The archive path of a file, and the request for its bytes with `annals.bytes` of the script.
    fn file(&self, id: &str, record: &Value) -> (String, LiveRequest);

    /// Requests what the provider knows about a file, if its record lacks something that may be there.
    fn file_facts(&self, id: &str, record: &Value) -> Option<LiveRequest>;

    /// The response of `file_facts` as captures; none if it is not about a file.
    fn file_fact_captures(&self, id: &str, body: &str) -> Vec<Capture<'static>>;

    /// Turns the bytes of a file into captures; `ElementBody::Member` represents the bytes themselves.
    fn file_captures(&self, id: &str, bytes: &[u8]) -> Vec<Capture<'static>>;
}

/// Which page of a list is requested, and how large it may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageRequest<'p> {
    /// Where it starts; the first page has no place.
    pub place: Option<&'p str>,
    /// How often the usual size was halved because the provider refused it.
    pub halvings: u32,
}

impl PageRequest<'_> {
    /// The number of items to request where `usual` are requested otherwise.
    pub fn size(self, usual: usize) -> usize {
        usual.checked_shr(self.halvings).unwrap_or(0).max(1)
    }
}

/// A request relative to the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRequest {
    pub path: String,
    /// Sent with POST if present.
    pub body: Option<String>,
}

impl LiveRequest {
    pub fn get(path: impl Into<String>) -> LiveRequest {
        LiveRequest { path: path.into(), body: None }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveAnswer {
    /// 0 if there was no response.
    pub status: u16,
    pub content_type: String,
    /// The response is a challenge of the provider.
    pub challenge: bool,
    /// Seconds that the provider asks to wait before the next request; 0 if it does not.
    pub retry_after: u32,
    /// Why there was no response.
    pub failure: String,
    pub body: String,
}

impl LiveAnswer {
    pub fn of(value: &Value) -> LiveAnswer {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        LiveAnswer {
            status: value["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0),
            content_type: text("type"),
            challenge: value["challenge"].as_bool().unwrap_or(false),
            retry_after: value["after"].as_u64().and_then(|after| u32::try_from(after).ok()).unwrap_or(0),
            failure: text("failure"),
            body: text("body"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    Good,
    /// Rate limit reached.
    Refused,
    /// Fewer may be requested at a time.
    TooLarge,
    /// A challenge that only a person can pass.
    Challenge,
    /// The session has to be read again.
    Expired,
    Forbidden,
    Missing,
    /// A failure of the provider, or a truncated response.
    Broken,
    /// Timed out.
    Late,
    /// The provider cannot be reached.
    Unreachable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    Tree,
    Pages,
}

/// A document, or pages of one, captured as a whole: items missing from it have ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of its file in the archive and of its gap.
    pub name: &'static str,
    pub stream: &'static str,
    /// Once a day is enough.
    pub daily: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub next: NextPage,
    /// Items without an id, which nothing can be known of.
    pub nameless: usize,
}

/// What follows a page, where the page says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    End,
    /// More follows at this place.
    At(String),
    /// The page does not say: if there is nothing new at this place, it was the end.
    Perhaps(String),
    /// Another part of the list begins at this place, whatever this one had.
    Part(String),
}

/// An item of a document, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedItem {
    pub id: String,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub updated: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assembled {
    Whole(Vec<u8>),
    /// More follows at this place.
    More(String),
    /// Incomplete, with the reason.
    Part(Vec<u8>, &'static str),
    /// Unreadable, or a different item.
    Torn(&'static str),
}
