//! What is searched for, and what the answer contains.

use serde::Serialize;
use utoipa::ToSchema;

use super::query::{Query, check_words, intersect_kinds, parse_kinds, parse_query, parse_role};
use super::weights::Weights;
use crate::view::paging::Paging;
use crate::view::session::list::heading;
use annals_core::{Error, Result, SessionId, Shown, Time};
use annals_sources::by_common_name;

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
    /// Weights to try; the usual ones if not set.
    pub weights: Option<Weights>,
    /// Count what results have in common.
    pub with_facets: bool,
}

impl SearchQuery {
    /// The query with its filters, from the text and from parameters.
    pub fn parse(&self, now: Time) -> Result<Query> {
        check_words(&self.query)?;
        let mut query = parse_query(&self.query, now)?;
        query.source = self.source.clone().or(query.source);
        query.project = self.project.clone().or(query.project);
        query.since = self.since.or(query.since);
        query.until = self.until.or(query.until);
        if let Some(role) = &self.role {
            query.kinds = intersect_kinds(query.kinds.as_deref(), parse_role(role)?);
        }
        if let Some(kind) = &self.kind {
            query.kinds = intersect_kinds(query.kinds.as_deref(), parse_kinds(kind)?);
        }
        query.take_time(now);
        if query.is_empty() {
            return Err(Error::bad_request("empty query")
                .hint("use words, a \"phrase\", or a filter such as tool:NAME"));
        }
        if let Some(name) = &query.source {
            let source = by_common_name(name).ok_or_else(|| {
                Error::bad_request(format!("unknown source {name:?}"))
                    .hint("`annals sources` lists all sources")
            })?;
            query.source = Some(source.manifest().source.to_owned());
        }
        Ok(query)
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SearchAnswer {
    pub query: String,
    /// `all` if every word was found in one message, `any` if these are the closest matches.
    pub mode: &'static str,
    /// A time that the query names. Sessions of that time are preferred, others are shown too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<PreferredTime>,
    /// Words that no session has, and what is searched for instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Correction>,
    pub results: Vec<SearchResult>,
    pub next_cursor: Option<String>,
    /// Number of results; a lower bound if `complete` is false.
    pub total: usize,
    /// False if more may be found: follow `next_cursor`, even if this page is empty.
    pub complete: bool,
    /// While a capture runs: how much of what it found can be searched, in percent. The newest files come first.
    pub indexed_percent: Option<u64>,
    #[serde(skip)]
    #[schema(ignore)]
    pub facets: SearchFacets,
}

/// How many of the sessions found have what in common, most first.
#[derive(Debug, Default)]
pub struct SearchFacets {
    /// Names of sources.
    pub sources: Vec<(String, usize)>,
    pub projects: Vec<(Shown, usize)>,
    /// The first results that were counted, if there are more.
    pub counted: Option<usize>,
}

/// Leave the words out to search without it; `since:` and `until:` require a time.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreferredTime {
    /// The words that name it.
    pub text: Shown,
    pub since: String,
    pub until: String,
    /// The first and the last day, in local time.
    #[serde(skip)]
    pub days: [String; 2],
}

/// Quote a word to search for it as typed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Correction {
    pub typed: Shown,
    pub used: Shown,
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
    /// What the caller named the session; shown instead of the title.
    pub name: Option<Shown>,
    pub starred: bool,
    pub tags: Vec<Shown>,
    pub cwd: Option<Shown>,
    pub git_branch: Option<Shown>,
    pub last_message_at: Option<String>,
    pub score: f64,
    pub passages: Vec<PassageView>,
    pub more_passages: usize,
    /// Command that resumes the session in its client.
    pub resume_command: Option<String>,
}

impl SearchResult {
    /// What people call it: its name, or else its title.
    pub fn heading(&self) -> Option<&Shown> {
        heading(&self.name, &self.title)
    }
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
