//! Exports of sessions: which ones, whether they changed, and their conversations as Markdown, JSON and typed tables.

mod columns;
mod documents;
mod markdown;
mod rows;
mod tables;

use std::collections::{HashMap, HashSet};

use super::context::View;
use super::paging::Paging;
use super::session::bytes::Picture;
use super::session::list::{SessionQuery, SessionView};
use super::session::transcript::TranscriptQuery;
use annals_core::{Error, Result};
use annals_store::SessionFilter;

pub use documents::{JsonSessions, write_json_lines};
pub use markdown::write_markdown;
pub use tables::ExportTable;

/// Changes when exported documents get another form: everything is then written again.
const FORM: &str = "1";

/// Which sessions to export.
#[derive(Debug, Default)]
pub struct ExportQuery {
    /// Ids or their beginnings; without any, the filter decides.
    pub ids: Vec<String>,
    pub filter: SessionFilter,
}

/// A session to export.
#[derive(Debug)]
pub struct ExportedSession {
    /// Without client-specific fields.
    pub session: SessionView,
    /// Sub-agents and reviewers that this session started and that are exported too, by their index.
    pub agents: Vec<usize>,
    /// The last commit that changed it.
    changed: i64,
}

/// How conversations are exported.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// Include messages copied from another session.
    pub copies: bool,
    /// The address of the web UI.
    pub web: String,
}

impl ExportOptions {
    /// Complete texts, and edits as diffs.
    pub fn transcript(&self) -> TranscriptQuery {
        TranscriptQuery { full: true, copies: self.copies, changes: true, ..TranscriptQuery::default() }
    }
}

/// Takes an image by the id of its step and its number there.
pub type KeepPicture<'l> = dyn FnMut(&str, usize, Picture) -> Result<Option<String>> + 'l;

/// What a document refers to.
pub struct Links<'l> {
    /// The command that continues a session; empty if there is none.
    pub resume: fn(&SessionView) -> String,
    /// The address of an exported session of the same source.
    pub session: &'l dyn Fn(&str) -> Option<String>,
    /// Stores an image and returns its address; none if it is left out.
    pub picture: &'l mut KeepPicture<'l>,
}

impl View<'_> {
    /// The sessions that match, with all their sub-agents, oldest first.
    pub fn sessions_to_export(&self, query: &ExportQuery) -> Result<Vec<ExportedSession>> {
        let changes = self.archive.session_changes()?;
        let mut found = Vec::new();
        if query.ids.is_empty() {
            found = self.every_session(SessionFilter { with_agents: true, ..query.filter.clone() })?;
        }
        for id in &query.ids {
            found.push(self.find_session(id)?.ok_or_else(|| {
                Error::new(format!("no session found with id {id:?}"))
                    .hint("`annals sessions --all` lists all sessions; `annals sync` captures new ones")
            })?);
        }
        let mut seen = HashSet::new();
        found.retain(|session| seen.insert(session.row));
        self.add_agents(&mut found, &mut seen)?;
        found.sort_by(|left, right| {
            let order = |session: &SessionView| {
                (session.first_message_at.clone(), session.source.clone(), session.session_id.clone())
            };
            order(left).cmp(&order(right)).then(left.row.0.cmp(&right.row.0))
        });
        let mut agents: HashMap<(String, String), Vec<usize>> = HashMap::new();
        for (at, session) in found.iter().enumerate().filter(|(_, session)| is_agent(session)) {
            if let Some(parent) = &session.parent_session_id {
                agents.entry((session.source.clone(), parent.clone())).or_default().push(at);
            }
        }
        let exported = found.into_iter().map(|session| {
            let key = (session.source.clone(), session.session_id.clone());
            ExportedSession {
                agents: agents.get(&key).cloned().unwrap_or_default(),
                changed: changes.get(&session.row).copied().unwrap_or(0),
                session,
            }
        });
        Ok(exported.collect())
    }

    fn every_session(&self, filter: SessionFilter) -> Result<Vec<SessionView>> {
        let page = Paging { limit: i64::MAX - 1, cursor: None };
        Ok(self.sessions(&SessionQuery { filter, page, brief: true })?.sessions)
    }

    /// Adds what these sessions started, and what those started.
    fn add_agents(
        &self,
        found: &mut Vec<SessionView>,
        seen: &mut HashSet<annals_core::SessionId>,
    ) -> Result<()> {
        let filter = SessionFilter { with_agents: true, only_agents: true, ..SessionFilter::default() };
        let mut others = self.every_session(filter)?;
        others.retain(|agent| !seen.contains(&agent.row));
        let key = |source: &str, id: &str| (source.to_owned(), id.to_owned());
        let mut names: HashSet<(String, String)> =
            found.iter().map(|session| key(&session.source, &session.session_id)).collect();
        loop {
            let (children, rest): (Vec<SessionView>, Vec<SessionView>) =
                others.into_iter().partition(|agent| {
                    agent
                        .parent_session_id
                        .as_ref()
                        .is_some_and(|parent| names.contains(&key(&agent.source, parent)))
                });
            if children.is_empty() {
                return Ok(());
            }
            others = rest;
            for child in children {
                names.insert(key(&child.source, &child.session_id));
                seen.insert(child.row);
                found.push(child);
            }
        }
    }

    /// The complete session, with client-specific fields.
    pub fn whole_of(&self, session: &ExportedSession) -> Result<SessionView> {
        let gone = || Error::new(format!("session {} has gone", session.session.session_id));
        self.session_of_row(session.session.row)?.ok_or_else(gone)
    }

    /// Identifies the content of a document about a session; equal stamps mean that nothing changed.
    pub fn export_stamp(
        &self,
        exported: &ExportedSession,
        options: &ExportOptions,
        more: &[&str],
    ) -> Result<String> {
        let session = &exported.session;
        let rebuilds = self.archive.state()?.rebuilds;
        let counts = [
            rebuilds,
            exported.changed,
            self.archive.arranged_in(&session.source, &session.session_id)?,
            session.message_count,
            session.tool_call_count,
            session.tokens.total,
            i64::from(session.is_active),
            i64::from(options.copies),
            i64::from(self.door.reveals()),
        ];
        let mut parts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let texts = [FORM, env!("CARGO_PKG_VERSION"), &session.source, &session.session_id, &options.web];
        parts.extend(texts.into_iter().chain(more.iter().copied()).map(str::to_owned));
        parts.extend(session.last_message_at.clone());
        Ok(stamp_of(&parts))
    }
}

/// A short hash of texts that belong together.
fn stamp_of(parts: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn is_agent(session: &SessionView) -> bool {
    matches!(session.parent_kind.as_deref(), Some("sub_agent" | "review"))
}
