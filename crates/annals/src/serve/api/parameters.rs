//! Query parameters of all routes: unknown names and invalid values are refused with a reason.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

pub use super::queries::{InPath, OfSource, Params, parameters_of};
use crate::config::now;
use crate::view::{LibraryQuery, Paging, UsageQuery, source_named, time_named};
use annals_core::{Error, Result, Time, arrangement};
use annals_store::{Hiding, ResponseFilter, SessionFilter, UsageBy};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BranchParameters {
    /// The branch that contains this message, or `all` branches
    pub branch: Option<String>,
}

/// For routes without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RecordParameters {
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page, or list what changed since a list: its `next_cursor` or its `state`
    cursor: Option<String>,
    /// Only records whose cursor field is at or after this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    since: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionParameters {
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    cursor: Option<String>,
    /// Only sessions that ran in this directory or below it, or in one of this name
    project: Option<String>,
    /// Only sessions that used this model; part of its name is enough
    model: Option<String>,
    /// Only sessions active at or after this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only sessions that started before this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    until: Option<String>,
    /// Words of the title, directory, branch or id, all of which must match
    q: Option<String>,
    /// Include sub-agents and reviewers as separate sessions
    include_subagents: Option<bool>,
    /// Only sessions with this tag, on themselves, a message or their project
    tag: Option<String>,
    /// Only sessions with a star, on themselves or a message
    starred: Option<bool>,
    /// Only sessions with a note, on themselves or a message
    has_note: Option<bool>,
    /// Only hidden sessions (`true`); others leave them out
    hidden: Option<bool>,
}

impl SessionParameters {
    pub fn read(self, source: &str) -> Result<(SessionFilter, Paging)> {
        let filter = SessionFilter {
            source: Some(source.to_owned()),
            project: self.project,
            model: self.model,
            since: parse_time(self.since.as_deref())?,
            until: parse_time(self.until.as_deref())?,
            words: self.q,
            with_agents: self.include_subagents.unwrap_or(false),
            tags: tags_of(self.tag)?,
            starred: self.starred.unwrap_or(false),
            noted: self.has_note.unwrap_or(false),
            hiding: hiding_of(self.hidden),
            ..SessionFilter::default()
        };
        Ok((filter, paging(self.limit, self.cursor)?))
    }
}

fn tags_of(tag: Option<String>) -> Result<Vec<String>> {
    tag.iter().map(|tag| arrangement::tag(tag)).collect()
}

fn hiding_of(hidden: Option<bool>) -> Hiding {
    if hidden == Some(true) { Hiding::Only } else { Hiding::LeftOut }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProjectParameters {
    /// Directory in which sessions ran, or its name
    pub project: String,
}

/// Sessions of all sources; pages keep these in their address.
#[derive(Debug, Clone, Default, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AllSessionParameters {
    /// Only this source
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Maximum number of results
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500, default = 50)]
    pub limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only sessions that ran in this directory or below it, or in one of this name
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only sessions that used this model; part of its name is enough
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Part of the name of a Git branch
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Only sessions active at or after this time (RFC 3339, or 7d, monday, last week)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Only sessions that started before this time (RFC 3339, or 7d, monday, last week)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Words of the title, directory, branch or id, all of which must match
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Include sub-agents and reviewers as separate sessions
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_subagents: Option<bool>,
    /// Only sessions with a failed tool call
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<bool>,
    /// Only archived sessions (`true`), or only others (`false`)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Only sessions that the client has deleted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<bool>,
    /// Only sessions with this tag, on themselves, a message or their project
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only sessions with a star, on themselves or a message
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starred: Option<bool>,
    /// Only sessions with a note, on themselves or a message
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_note: Option<bool>,
    /// Only hidden sessions (`true`); others leave them out
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
}

impl AllSessionParameters {
    pub fn read(self) -> Result<(SessionFilter, Paging)> {
        let source = source_of(self.source.as_deref())?;
        // A name means the directories of this name; part of a path means what contains it.
        let is_part = |project: &String| project.contains('/') && !project.starts_with('/');
        let filter = SessionFilter {
            source,
            project: self.project.clone().filter(|project| !is_part(project)),
            project_part: self.project.filter(is_part),
            model: self.model,
            branch: self.branch,
            since: parse_time(self.since.as_deref())?,
            until: parse_time(self.until.as_deref())?,
            words: self.q,
            with_agents: self.include_subagents.unwrap_or(false),
            with_errors: self.errors.unwrap_or(false),
            archived: self.archived,
            only_gone: self.gone.unwrap_or(false),
            tags: tags_of(self.tag)?,
            starred: self.starred.unwrap_or(false),
            noted: self.has_note.unwrap_or(false),
            hiding: hiding_of(self.hidden),
            ..SessionFilter::default()
        };
        Ok((filter, paging(self.limit, self.cursor)?))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessageParameters {
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    cursor: Option<String>,
    /// Return complete texts instead of previews
    full: Option<bool>,
    /// Include messages copied from another session
    copies: Option<bool>,
    /// The branch that contains this message, or `all` branches
    branch: Option<String>,
}

impl MessageParameters {
    pub fn read(self) -> Result<(crate::view::TranscriptQuery, Paging)> {
        let query = crate::view::TranscriptQuery {
            full: self.full.unwrap_or(false),
            copies: self.copies.unwrap_or(false),
            changes: false,
            branch: crate::view::Branch::parse(self.branch.as_deref()),
        };
        Ok((query, paging(self.limit, self.cursor)?))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DayParameters {
    /// Number of days to include (7, 30, 90, any number), or `all`
    #[param(default = "30", pattern = "^(all|[1-9][0-9]{0,4})$")]
    days: Option<String>,
    /// Only sessions that ran in this directory or below it, or in one of this name
    pub project: Option<String>,
}

impl DayParameters {
    pub fn read(&self) -> Result<Option<i64>> {
        days_of(self.days.as_deref())
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageParameters {
    /// Number of days to include, in UTC (7, 30, 90, any number), or `all`
    #[param(default = "30", pattern = "^(all|[1-9][0-9]{0,4})$")]
    days: Option<String>,
    /// Group by day, model, project, session, source or member
    #[param(default = "day", pattern = "^(day|model|project|session|source|member)$")]
    by: Option<String>,
    /// Only this source
    source: Option<String>,
    /// Only this model; part of its name is enough
    model: Option<String>,
    /// Only sessions that ran in this directory or below it, or in one of this name
    project: Option<String>,
    /// Only this session, by its complete id; requires `source`
    session_id: Option<String>,
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    cursor: Option<String>,
}

impl UsageParameters {
    /// Resolves the session by its source and id as well.
    pub fn read(self) -> Result<(UsageQuery, Option<(String, String)>)> {
        let by = self.by.as_deref().unwrap_or("day");
        let by = UsageBy::from_name(by).ok_or_else(|| {
            Error::bad_request("invalid value of `by`")
                .hint("use day, model, project, session, source or member")
        })?;
        let source = source_of(self.source.as_deref())?;
        let session = match (self.session_id, &source) {
            (None, _) => None,
            (Some(id), Some(source)) => Some((source.clone(), id)),
            (Some(_), None) => {
                return Err(Error::bad_request("`session_id` requires `source`").hint("add source=NAME"));
            }
        };
        let query = UsageQuery {
            by,
            days: days_of(self.days.as_deref())?,
            filter: ResponseFilter {
                source,
                model: self.model,
                project: self.project,
                ..ResponseFilter::default()
            },
            page: paging(self.limit, self.cursor)?,
        };
        Ok((query, session))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchParameters {
    /// Query: words, a "phrase", prefix*, OR, -not, and filters such as tool:NAME
    pub q: String,
    /// Only this source
    pub source: Option<String>,
    /// Working directory, or part of its name
    pub project: Option<String>,
    /// Only text of this role: user, assistant, thinking or tool
    #[param(pattern = "^(user|assistant|thinking|tool)$")]
    pub role: Option<String>,
    /// Only this kind: message, call, result or library
    #[param(pattern = "^(message|call|result|library)$")]
    pub kind: Option<String>,
    /// Only at or after this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Only before this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Sort by `best` match or most `recent`
    #[param(default = "best", pattern = "^(best|recent)$")]
    pub sort: Option<String>,
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    pub limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    pub cursor: Option<String>,
}

impl SearchParameters {
    pub fn read(self) -> Result<crate::view::SearchQuery> {
        let source = source_of(self.source.as_deref())?;
        let recent = match self.sort.as_deref() {
            None | Some("best") => false,
            Some("recent") => true,
            Some(_) => {
                return Err(Error::bad_request("invalid value of `sort`").hint("use best or recent"));
            }
        };
        Ok(crate::view::SearchQuery {
            query: self.q,
            source,
            project: self.project,
            role: self.role,
            kind: self.kind,
            since: parse_time(self.since.as_deref())?,
            until: parse_time(self.until.as_deref())?,
            recent,
            session: None,
            page: paging(self.limit, self.cursor)?,
            effort: None,
            weights: None,
            with_facets: false,
        })
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DailyParameters {
    /// Number of days to include, in UTC (7, 30, 90, any number), or `all`
    #[param(default = "30", pattern = "^(all|[1-9][0-9]{0,4})$")]
    days: Option<String>,
    /// Only this source
    source: Option<String>,
    /// Only sessions that ran in this directory or below it, or in one of this name
    project: Option<String>,
}

impl DailyParameters {
    pub fn read(self) -> Result<(ResponseFilter, Option<i64>)> {
        let source = source_of(self.source.as_deref())?;
        let filter = ResponseFilter { source, project: self.project, ..ResponseFilter::default() };
        Ok((filter, days_of(self.days.as_deref())?))
    }
}

#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LibraryParameters {
    /// Only this source
    pub source: Option<String>,
    /// Only this kind: the name of a stream
    pub kind: Option<String>,
    /// Only items of this repository, and the user's own
    pub project: Option<String>,
    /// Items in effect at this time (RFC 3339, or 7d, monday, last week)
    #[param(format = DateTime)]
    pub as_of: Option<String>,
}

impl LibraryParameters {
    pub fn read(self) -> Result<(LibraryQuery, Time)> {
        let source = source_of(self.source.as_deref())?;
        let then = parse_time(self.as_of.as_deref())?.unwrap_or(Time::from_micros(i64::MAX));
        Ok((LibraryQuery { source, kind: self.kind, project: self.project, session: None }, then))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ItemParameters {
    /// Name of the source
    source: String,
    /// Stream of the source
    kind: String,
    /// Id of the item
    id: String,
}

impl ItemParameters {
    pub fn read(self) -> Result<(LibraryQuery, String)> {
        let source = source_of(Some(&self.source))?;
        Ok((LibraryQuery { source, kind: Some(self.kind), ..LibraryQuery::default() }, self.id))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LineageParameters {
    /// Path of the file as a client named it, or the end of it; without it, the files are listed
    file: Option<String>,
    /// First line (the first line of the file is 1)
    #[param(minimum = 1)]
    start: Option<u32>,
    /// Last line
    #[param(minimum = 1)]
    end: Option<u32>,
    /// Maximum number of files in a list
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page of a list: its `next_cursor`
    cursor: Option<String>,
}

/// One file, or the list of files.
pub enum LineageRequest {
    File(crate::view::LineageQuery),
    List(Paging),
}

impl LineageParameters {
    pub fn read(self) -> Result<LineageRequest> {
        let line = |line: Option<u32>| line.map(|line| line as usize);
        let page = paging(self.limit, self.cursor)?;
        match self.file {
            Some(file) => {
                let (start, end) = (line(self.start), line(self.end));
                Ok(LineageRequest::File(crate::view::LineageQuery { file, start, end }))
            }
            None if self.start.is_some() || self.end.is_some() => {
                Err(Error::bad_request("`start` and `end` need `file`"))
            }
            None => Ok(LineageRequest::List(page)),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AccessParameters {
    /// Only sessions of this member
    member: Option<String>,
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GapParameters {
    /// Only this source
    source: Option<String>,
    /// Only gaps with this status: pending, in_progress, recovered or terminal
    #[param(pattern = "^(pending|in_progress|recovered|terminal)$")]
    status: Option<String>,
    /// Maximum number of results
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<i64>,
    /// Continue after a page: its `next_cursor`
    cursor: Option<String>,
}

impl AccessParameters {
    pub fn read(self) -> Result<crate::view::AccessQuery> {
        Ok(crate::view::AccessQuery { member: self.member, page: paging(self.limit, self.cursor)? })
    }
}

impl GapParameters {
    pub fn read(self) -> Result<crate::view::GapQuery> {
        let source = source_of(self.source.as_deref())?;
        let statuses = ["pending", "in_progress", "recovered", "terminal"];
        if self.status.as_deref().is_some_and(|status| !statuses.contains(&status)) {
            return Err(
                Error::bad_request("invalid value of `status`").hint(format!("use {}", statuses.join(", ")))
            );
        }
        let page = paging(self.limit, self.cursor)?;
        Ok(crate::view::GapQuery { source, statuses: self.status.into_iter().collect(), page })
    }
}

impl RecordParameters {
    pub fn read(self) -> Result<(Paging, Option<Time>)> {
        let since = parse_time(self.since.as_deref())?;
        Ok((paging(self.limit, self.cursor)?, since))
    }
}

fn paging(limit: Option<i64>, cursor: Option<String>) -> Result<Paging> {
    let limit = limit.unwrap_or(50);
    if !(1..=500).contains(&limit) {
        return Err(Error::bad_request(format!("`limit` is out of range: {limit}"))
            .hint("use a number from 1 to 500 (default: 50)"));
    }
    Ok(Paging { limit, cursor })
}

pub fn days_of(text: Option<&str>) -> Result<Option<i64>> {
    let text = text.unwrap_or("30");
    if text == "all" {
        return Ok(None);
    }
    let days =
        text.parse::<i64>().ok().filter(|days| (1..=99_999).contains(days) && !text.starts_with(['+', '0']));
    days.map(Some)
        .ok_or_else(|| Error::bad_request("`days` is not a number of days").hint("use 7, 30, 90 or all"))
}

/// RFC 3339 or a date in UTC, or words such as `7d` and `monday`, which mean days of this machine.
pub fn parse_time(text: Option<&str>) -> Result<Option<Time>> {
    let parse = |text: &str| match Time::parse(text).or_else(|| Time::parse(&format!("{text}T00:00:00Z"))) {
        Some(time) => Ok(time),
        None => time_named(text, now()),
    };
    text.map(parse).transpose()
}

/// The name of a source from any name that people use for it.
pub fn source_of(name: Option<&str>) -> Result<Option<String>> {
    Ok(name.map(source_named).transpose()?.map(|source| source.manifest().source.to_owned()))
}
