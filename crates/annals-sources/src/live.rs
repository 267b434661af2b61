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
    fn listing_request(&self, listing: &Listing, way: usize, place: Option<&str>) -> Option<LiveRequest>;

    /// `None` if the response is not a page of the listing, as opposed to an empty page. Whatever is not understood
    /// must not look like the end.
    fn listing_page(&self, listing: &Listing, place: Option<&str>, body: &str) -> Option<ListPage<String>>;

    /// Requests more details of an item than the listing has.
    fn listing_detail(&self, listing: &Listing, id: &str) -> Option<LiveRequest>;

    /// Lists of items that are fetched one by one; `parts` returns the ids in a listing.
    fn lists(&self, parts: &dyn Fn(&str) -> Vec<String>) -> Vec<String>;

    fn list_request(&self, list: &str, place: Option<&str>) -> LiveRequest;

    /// Newest first.
    fn list_page(&self, list: &str, place: Option<&str>, body: &str) -> Option<ListPage<Listed>>;

    /// Requests several at once. Those missing from the response are requested one by one.
    fn several(&self, ids: &[String]) -> LiveRequest;

    /// The most ids that `several` accepts.
    fn most_at_once(&self) -> usize;

    /// Splits the response of `several` into ids and bodies.
    fn read_several(&self, body: &str) -> Option<Vec<(String, String)>>;

    /// Requests one item in one of two ways. Which of them works depends on the account.
    fn single(&self, id: &str, way: Way, place: Option<&str>) -> LiveRequest;

    /// Joins the pages of one item, newest first as they were requested.
    fn assemble(&self, id: &str, pages: &[String]) -> Assembled;

    /// The files of the archive that it goes to.
    fn captures<'b>(&self, body: &'b [u8]) -> Vec<Capture<'b>>;

    /// The archive path of a file, and the request for its bytes with `annals.bytes` of the script. `thing` refers to
    /// the file.
    fn file(&self, id: &str, thing: Option<&str>) -> (String, LiveRequest);

    /// Turns the bytes of a file into captures; `ElementBody::Member` represents the bytes themselves.
    fn file_captures(&self, id: &str, bytes: &[u8]) -> Vec<Capture<'static>>;
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
    pub next: Option<String>,
    /// Items without an id, which nothing can be known of.
    pub nameless: usize,
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
