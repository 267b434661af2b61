//! What a source requests from its provider, from within the provider's page in the user's browser.
//!
//! A source says what to ask and what answers mean; when, how often and what is kept is the collector's. All but the
//! script are pure functions.

use serde_json::Value;

use crate::Settings;
use crate::import::Capture;
use annals_core::Time;

pub trait Live: Sync {
    /// Raised when it may get what it could not get before.
    fn version(&self) -> &'static str;

    /// Where the page is, without a path: `https://example.com`.
    fn origin(&self, settings: &dyn Settings) -> String;

    /// Defines `annals.session()` and `annals.ask(request)` in a world of its own within the page. Whatever opens the
    /// account stays there: answers hold none of it.
    fn script(&self) -> &'static str;

    fn judge(&self, answer: &LiveAnswer) -> Judged;

    /// Documents that are small and asked for whole.
    fn listings(&self) -> &'static [Listing];

    /// A page of a listing; `None` when there is no such way to ask for it.
    fn listing_request(&self, listing: &Listing, way: usize, place: Option<&str>) -> Option<LiveRequest>;

    /// `None` when it is not what such a page looks like, which is not the same as empty.
    fn listing_page(&self, listing: &Listing, place: Option<&str>, body: &str) -> Option<ListPage<String>>;

    /// What says more about one of its items than the listing does.
    fn listing_detail(&self, listing: &Listing, id: &str) -> Option<LiveRequest>;

    /// The lists of things that are fetched one by one; `parts` are the ids that a listing found.
    fn lists(&self, parts: &dyn Fn(&str) -> Vec<String>) -> Vec<String>;

    fn list_request(&self, list: &str, place: Option<&str>) -> LiveRequest;

    /// Newest first.
    fn list_page(&self, list: &str, place: Option<&str>, body: &str) -> Option<ListPage<Listed>>;

    /// Asks for several at once; what is left out of the answer is asked for singly.
    fn several(&self, ids: &[String]) -> LiveRequest;

    /// How many `several` takes.
    fn most_at_once(&self) -> usize;

    /// Each with its own bytes.
    fn read_several(&self, body: &str) -> Option<Vec<(String, String)>>;

    /// Asks for one, in one of two ways: the account decides which one is answered.
    fn single(&self, id: &str, way: Way, place: Option<&str>) -> LiveRequest;

    /// What the pages of one make together, newest first as they were asked for.
    fn assemble(&self, id: &str, pages: &[String]) -> Assembled;

    /// The files of the archive that it goes to.
    fn captures<'b>(&self, body: &'b [u8]) -> Vec<Capture<'b>>;

    /// Where the bytes of a file are kept, and how to ask for them: with `annals.bytes` of the script. `thing` is what
    /// speaks of the file.
    fn file(&self, id: &str, thing: Option<&str>) -> (String, LiveRequest);

    /// What bytes of a file become; `Body::Member` represents the bytes themselves.
    fn file_captures(&self, id: &str, bytes: &[u8]) -> Vec<Capture<'static>>;
}

/// What is asked, relative to the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRequest {
    pub path: String,
    /// Asked with POST when there is one.
    pub body: Option<String>,
}

impl LiveRequest {
    pub fn get(path: impl Into<String>) -> LiveRequest {
        LiveRequest { path: path.into(), body: None }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveAnswer {
    /// 0 when there was none.
    pub status: u16,
    pub content_type: String,
    /// The provider's gate is in the place of the answer.
    pub challenge: bool,
    /// Why there was none.
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
            failure: text("failure"),
            body: text("body"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    Good,
    /// Too many questions.
    Refused,
    /// A check that only a person can pass.
    Challenge,
    /// The session has to be read again.
    Expired,
    Forbidden,
    Missing,
    /// The provider's own failure, or a text that was cut off.
    Broken,
    /// Nothing came in time.
    Late,
    /// No way to the provider at all.
    Unreachable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    Tree,
    Pages,
}

/// A document, or pages of one, that is captured as a whole: what vanishes from it has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its file in the archive, and what a gap of it is called.
    pub name: &'static str,
    pub stream: &'static str,
    /// Once a day is enough.
    pub daily: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub updated: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assembled {
    Whole(Vec<u8>),
    /// More is behind this place.
    More(String),
    /// Not all of it is there, but this is.
    Part(Vec<u8>, &'static str),
    /// It cannot be read, or is another.
    Torn(&'static str),
}
