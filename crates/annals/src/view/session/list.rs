//! Session lists, in one shape for every source.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::paging::{Paging, read_keyed, write_keyed};
use crate::view::usage::prices::Cost;
use annals_core::{Arranged, Error, Result, SessionFacts, SessionId, Shown, ShownJson, Time, Tokens};
use annals_sources::by_name;
use annals_store::{Page, SessionFilter, SessionRow};

/// A session is active unless its client says that its turn ended, or nothing was written for five minutes.
const ACTIVE: i64 = 300_000_000;

#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    pub filter: SessionFilter,
    pub page: Paging,
    /// Omits client-specific fields, which frequent lists do not need.
    pub brief: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
    pub next_cursor: Option<String>,
    pub total: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SessionView {
    pub session_id: String,
    pub source: String,
    pub provider_label: &'static str,
    pub project_dir: Option<Shown>,
    pub cwd: Option<Shown>,
    /// As the client has it.
    pub title: Option<Shown>,
    /// What the caller named it; shown instead of the title.
    pub name: Option<Shown>,
    pub starred: bool,
    pub tags: Vec<Shown>,
    pub has_note: bool,
    /// Markdown; only of a single session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Shown>,
    /// Left out of lists and searches: the session, its project or the session that started it is hidden.
    pub hidden: bool,
    pub models: Vec<String>,
    pub tokens: TokenSums,
    pub cost_usd: Option<f64>,
    pub billing_source: &'static str,
    pub message_count: i64,
    pub user_message_count: i64,
    pub assistant_message_count: i64,
    pub tool_call_count: i64,
    /// When it was opened; the first message may come much later.
    pub started_at: Option<String>,
    pub first_message_at: Option<String>,
    pub last_message_at: Option<String>,
    /// The assistant works: its client wrote no end of the turn, and something in the last five minutes.
    pub is_active: bool,
    pub entrypoints: Vec<Shown>,
    pub git_branch: Option<Shown>,
    pub git_commit: Option<Shown>,
    pub git_origin_url: Option<Shown>,
    pub parent_session_id: Option<String>,
    pub parent_kind: Option<String>,
    /// The session whose history this one repeats, and where that history is counted.
    pub copied_from: Option<String>,
    pub archived: bool,
    pub source_gone: bool,
    /// Only prompts are left, from the client's prompt history: there is no transcript.
    pub history_only: bool,
    pub client_version: Option<Shown>,
    pub resume_command: String,
    /// Client-specific facts, under the client's own names; not included in lists over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<ShownJson>,
    #[serde(skip)]
    pub row: SessionId,
    #[serde(skip)]
    last: Option<Time>,
}

/// Tokens used by responses, and their sum.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Tokens)]
pub struct TokenSums {
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub reasoning: i64,
    pub total: i64,
}

impl From<Tokens> for TokenSums {
    fn from(tokens: Tokens) -> TokenSums {
        TokenSums {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write + tokens.cache_write_hour,
            reasoning: tokens.reasoning,
            total: tokens.total(),
        }
    }
}

/// Several homes may have a session, and an import too: the one whose messages are no copies.
fn best_of_equals(rows: &[SessionRow], id: &str) -> Option<usize> {
    let equal = rows.iter().enumerate().filter(|(_, row)| row.key == id);
    equal.min_by_key(|(_, row)| std::cmp::Reverse(row.messages)).map(|(at, _)| at)
}

impl View<'_> {
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionList> {
        let after = query.page.cursor.as_deref().map(read_keyed).transpose()?;
        let limit = query.page.limit.max(1);
        let filter = self.without_guesses(&query.filter)?;
        let mut rows = self.archive.sessions(&filter, Page { limit: limit.saturating_add(1), after })?;
        let more = rows.len() as i64 > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let native = if query.brief { Native::LeftOut } else { Native::Included };
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            sessions.push(self.session_view(row, native)?);
        }
        let next_cursor = sessions.last().filter(|_| more).map(session_cursor);
        Ok(SessionList { sessions, next_cursor, total: self.archive.count_sessions(&filter)? })
    }

    /// A session by its id, or by a prefix that only one id has.
    pub fn find_session(&self, id: &str) -> Result<Option<SessionView>> {
        let (source, id) = match id.split_once(':') {
            Some((source, id)) if by_name(source).is_some() => (Some(source.to_owned()), id),
            _ => (None, id),
        };
        let filter =
            SessionFilter { source, id: Some(id.to_owned()), with_agents: true, ..SessionFilter::default() };
        let mut rows = self.archive.sessions(&filter, Page { limit: 50, after: None })?;
        if let Some(exact) = best_of_equals(&rows, id) {
            return self.session_view(rows.swap_remove(exact), Native::Included).map(Some);
        }
        // Several homes may have the one session that is meant.
        if let Some(key) = rows.first().map(|row| row.key.clone())
            && rows.iter().all(|row| row.key == key)
            && let Some(best) = best_of_equals(&rows, &key)
        {
            return self.session_view(rows.swap_remove(best), Native::Included).map(Some);
        }
        match rows.len() {
            0 => Ok(None),
            1 => rows.pop().map(|row| self.session_view(row, Native::Included)).transpose(),
            many => {
                let some: Vec<&str> = rows.iter().take(3).map(|row| row.key.as_str()).collect();
                Err(Error::new(format!("ambiguous session id {id:?}: {many} sessions match"))
                    .hint(format!("use a longer id, for example {}", some.join(", "))))
            }
        }
    }

    /// A session of a source by its complete id.
    pub fn exact_session(&self, source: &str, id: &str) -> Result<Option<SessionView>> {
        let filter = SessionFilter {
            source: Some(source.to_owned()),
            exact_id: Some(id.to_owned()),
            with_agents: true,
            ..SessionFilter::default()
        };
        let mut rows = self.archive.sessions(&filter, Page { limit: 50, after: None })?;
        let row = best_of_equals(&rows, id).map(|best| rows.swap_remove(best));
        row.map(|row| self.session_view(row, Native::Included)).transpose()
    }

    /// A session by its row id, as search hits refer to it.
    pub fn session_of_row(&self, row: SessionId) -> Result<Option<SessionView>> {
        let filter = SessionFilter { row: Some(row), with_agents: true, ..SessionFilter::default() };
        let row = self.archive.sessions(&filter, Page { limit: 1, after: None })?.pop();
        row.map(|row| self.session_view(row, Native::Included)).transpose()
    }
}

/// Links to other sessions, and what each file says about this one.
#[derive(Debug, Serialize)]
pub struct SessionTies {
    pub links: Vec<LinkView>,
    pub parts: Vec<PartView>,
}

#[derive(Debug, Serialize)]
pub struct LinkView {
    pub kind: String,
    pub session_id: String,
    pub position: Option<String>,
}

/// If files disagree, the higher rank wins; all values are kept.
#[derive(Debug, Serialize)]
pub struct PartView {
    pub path: Shown,
    pub rank: i64,
    pub facts: ShownJson,
}

impl View<'_> {
    pub fn session_ties(&self, session: &SessionView) -> Result<SessionTies> {
        let links = self.archive.links(session.row)?.into_iter();
        let parts = self.archive.session_parts(session.row)?.into_iter();
        Ok(SessionTies {
            links: links
                .map(|link| LinkView { kind: link.kind, session_id: link.other, position: link.position })
                .collect(),
            parts: parts
                .map(|(path, rank, facts)| PartView {
                    path: self.door.text(&path),
                    rank,
                    facts: self.door.json(serde_json::from_slice(facts.expose()).unwrap_or_default()),
                })
                .collect(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Native {
    Included,
    LeftOut,
}

/// The facts that every list shows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BriefFacts<'f> {
    #[serde(borrow)]
    entrypoint: Option<Cow<'f, str>>,
    #[serde(borrow)]
    client_version: Option<Cow<'f, str>>,
    #[serde(borrow)]
    git_commit: Option<Cow<'f, str>>,
    #[serde(borrow)]
    git_url: Option<Cow<'f, str>>,
    cost_usd: Option<f64>,
    first_message_at: Option<Time>,
    ended_at: Option<Time>,
    history_only: bool,
}

impl View<'_> {
    /// A session with everything that is known of it.
    pub(in crate::view) fn whole_session(&self, row: SessionRow) -> Result<SessionView> {
        self.session_view(row, Native::Included)
    }

    fn session_view(&self, row: SessionRow, native: Native) -> Result<SessionView> {
        let manifest = by_name(&row.source).map(|source| source.manifest());
        let facts: BriefFacts<'_> = serde_json::from_slice(row.facts.expose()).unwrap_or_default();
        let mut arranged = self.arrangement(&Arranged::session(&row.source, &row.key))?;
        let has_note = arranged.note.is_some();
        let hidden = arranged.hidden || self.archive.hides()? && self.archive.is_hidden(row.id)?;
        if native == Native::LeftOut {
            arranged.note = None;
        }
        let native = match native {
            Native::Included => {
                let facts: SessionFacts = serde_json::from_slice(row.facts.expose()).unwrap_or_default();
                Some(self.door.json(Value::Object(facts.native)))
            }
            Native::LeftOut => None,
        };
        let cwd = row.cwd.as_ref().map(|cwd| self.door.raw(cwd));
        let optional = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| self.door.text(text));
        let sums = self.session_usage(row.id)?;
        // A session without any response costs what its client says, if that is nothing.
        let is_free = sums.is_empty() && facts.cost_usd == Some(0.0);
        let cost = Cost::of(&sums);
        let (cost_usd, billing_source) = match is_free {
            true => (Some(0.0), "reported"),
            false => (cost.whole(), cost.billing_source()),
        };
        Ok(SessionView {
            resume_command: manifest
                .filter(|_| !facts.history_only)
                .map_or("", |manifest| manifest.resume_command)
                .replace("{id}", &shell_word(&row.key)),
            provider_label: manifest.map_or("", |manifest| manifest.label),
            project_dir: cwd.clone(),
            cwd,
            title: row.title.as_ref().map(|title| self.door.raw(title)),
            name: arranged.name,
            starred: arranged.starred,
            tags: arranged.tags,
            has_note,
            note: arranged.note,
            hidden,
            models: row.models,
            tokens: row.tokens.into(),
            cost_usd,
            billing_source,
            message_count: row.messages,
            user_message_count: row.user_messages,
            assistant_message_count: row.assistant_messages,
            tool_call_count: row.tool_calls,
            started_at: row.started_at.map(Time::rfc3339),
            first_message_at: facts.first_message_at.or(row.started_at).map(Time::rfc3339),
            last_message_at: row.last_at.map(Time::rfc3339),
            is_active: facts.ended_at.is_none()
                && row.last_at.is_some_and(|last| self.now.micros().saturating_sub(last.micros()) < ACTIVE),
            entrypoints: optional(&facts.entrypoint).into_iter().collect(),
            git_branch: row.git_branch.as_ref().map(|branch| self.door.raw(branch)),
            git_commit: optional(&facts.git_commit),
            git_origin_url: optional(&facts.git_url),
            parent_session_id: row.parent,
            parent_kind: row.parent_kind,
            copied_from: row.copied_from,
            archived: row.archived,
            source_gone: row.gone,
            history_only: facts.history_only,
            client_version: optional(&facts.client_version),
            native,
            session_id: row.key,
            source: row.source,
            row: row.id,
            last: row.last_at,
        })
    }
}

impl SessionView {
    /// What people call it: its name, or else its title.
    pub fn heading(&self) -> Option<&Shown> {
        heading(&self.name, &self.title)
    }
}

/// The name that a person gave a session, or else its title; none if both are blank.
pub fn heading<'s>(name: &'s Option<Shown>, title: &'s Option<Shown>) -> Option<&'s Shown> {
    [name, title].into_iter().flatten().find(|text| !text.as_str().trim().is_empty())
}

/// The cursor of a list that continues after this session.
pub fn session_cursor(session: &SessionView) -> String {
    write_keyed(session.last.map_or(i64::MIN + 1, Time::micros), &session.session_id)
}

/// Quotes an id for the shell: transcripts may contain any.
fn shell_word(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !id.is_empty() && id.chars().all(plain) && !id.starts_with('-') {
        return id.to_owned();
    }
    format!("'{}'", id.replace('\'', r"'\''"))
}
