//! Members and what they see: for admins about their organisation, for members about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use super::context::View;
use super::paging::{Paging, read_numbers, write_numbers};
use super::usage::UsageQuery;
use annals_core::{AccessKind, Result, SessionId, Shown, Time};
use annals_store::{AccessRow, MemberRow, Page, ResponseFilter, SessionFilter, UsageBy};

/// The sessions that an answer shows something of.
#[derive(Default)]
pub struct Accesses(Mutex<BTreeSet<(SessionId, AccessKind)>>);

impl Accesses {
    pub fn note(&self, session: SessionId, kind: AccessKind) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((session, kind));
    }

    pub fn into_sessions(self) -> Vec<(SessionId, AccessKind)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct MemberView {
    pub name: Shown,
    pub organisation: Shown,
    /// owner, admin or member
    pub role: &'static str,
    pub homes: i64,
    /// Machines that pushed
    pub machines: i64,
    pub sessions: i64,
    /// Of the newest version of every file
    pub bytes: i64,
    pub last_push_at: Option<String>,
    /// Valid tokens
    pub tokens: i64,
    pub added_at: String,
    pub last_used_at: Option<String>,
    /// When the first of the valid tokens expires
    pub token_expires_at: Option<String>,
    /// Estimated cost of all responses that have a price
    pub cost_usd: Option<f64>,
    /// Homes of which this archive has copies without secrets
    pub masked_homes: i64,
}

/// Somebody who sees sessions of the caller, or of members that the caller sees.
#[derive(Debug, Serialize, ToSchema)]
pub struct ViewerView {
    /// Null for the owner of the machine that the server runs on
    pub name: Option<Shown>,
    pub role: &'static str,
    pub organisation: Option<Shown>,
}

/// One way in which somebody read a session of somebody else on one day.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessView {
    /// Who read it; null for the owner of the machine that the server runs on
    pub viewer: Option<Shown>,
    pub viewer_role: &'static str,
    /// Whose session it is; null for the owner of the machine
    pub member: Option<Shown>,
    pub source: Shown,
    pub session_id: Shown,
    /// conversation, search or records
    pub kind: &'static str,
    pub first_at: String,
    pub last_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct AccessList {
    pub visible_to: Vec<ViewerView>,
    pub accesses: Vec<AccessView>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct AccessQuery {
    /// Only sessions of this member.
    pub member: Option<String>,
    pub page: Paging,
}

impl View<'_> {
    /// Notes that the answer shows something of a session.
    pub(super) fn note_access(&self, session: SessionId, kind: AccessKind) {
        if let Some(accesses) = self.accesses {
            accesses.note(session, kind);
        }
    }

    /// The same for a record that names its session.
    pub(super) fn note_record_access(&self, source: &str, session: Option<&str>) -> Result<()> {
        let (Some(accesses), Some(session)) = (self.accesses, session) else { return Ok(()) };
        let filter = SessionFilter {
            source: Some(source.to_owned()),
            exact_id: Some(session.to_owned()),
            with_agents: true,
            ..SessionFilter::default()
        };
        for row in self.archive.sessions(&filter, Page { limit: 50, after: None })? {
            accesses.note(row.id, AccessKind::Records);
        }
        Ok(())
    }

    /// The members in scope.
    pub fn members(&self) -> Result<Vec<MemberView>> {
        let rows = self.archive.members(self.now)?;
        let mut costs = BTreeMap::new();
        if !rows.is_empty() {
            let query = UsageQuery {
                by: UsageBy::Member,
                days: None,
                filter: ResponseFilter::default(),
                page: Paging { limit: i64::MAX, cursor: None },
            };
            for row in self.usage(&query)?.rows {
                costs.insert(row.key.map(|key| key.to_string()), row.cost_usd);
            }
        }
        Ok(rows.into_iter().map(|row| self.member_view(row, &costs)).collect())
    }

    fn member_view(&self, row: MemberRow, costs: &BTreeMap<Option<String>, Option<f64>>) -> MemberView {
        let name = self.door.text(&row.name);
        MemberView {
            cost_usd: costs.get(&Some(name.to_string())).copied().flatten(),
            name,
            organisation: self.door.text(&row.organisation),
            role: row.role.name(),
            homes: row.homes,
            machines: row.machines,
            sessions: row.sessions,
            bytes: row.bytes,
            last_push_at: row.last_push.map(Time::rfc3339),
            tokens: row.tokens,
            added_at: row.added_at.rfc3339(),
            last_used_at: row.last_used.map(Time::rfc3339),
            token_expires_at: row.token_expires_at.map(Time::rfc3339),
            masked_homes: row.masked_homes,
        }
    }

    /// Who sees the sessions in scope, and a page of who did, the latest first.
    pub fn accesses(&self, query: &AccessQuery) -> Result<AccessList> {
        let after = query.page.cursor.as_deref().map(read_numbers::<2>).transpose()?;
        let limit = query.page.limit.max(1);
        let after = after.map(|[at, id]| (at, id));
        let mut rows = self.archive.accesses(query.member.as_deref(), after, limit.saturating_add(1))?;
        let more = rows.len() as i64 > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = rows.last().filter(|_| more);
        let next_cursor = last.map(|row| write_numbers(&[row.last_at.micros(), row.id]));
        let mut visible_to = vec![ViewerView { name: None, role: "owner", organisation: None }];
        visible_to.extend(self.archive.viewers()?.into_iter().map(|row| ViewerView {
            name: Some(self.door.text(&row.name)),
            role: row.role.name(),
            organisation: Some(self.door.text(&row.organisation)),
        }));
        let accesses = rows.into_iter().map(|row| self.access_view(&row)).collect();
        Ok(AccessList { visible_to, accesses, next_cursor })
    }

    fn access_view(&self, row: &AccessRow) -> AccessView {
        let shown = |name: &Option<String>| name.as_ref().map(|name| self.door.text(name));
        AccessView {
            viewer: shown(&row.viewer),
            viewer_role: row.viewer_role.name(),
            member: shown(&row.holder),
            source: self.door.text(&row.source),
            session_id: self.door.text(&row.session),
            kind: row.kind.name(),
            first_at: row.first_at.rfc3339(),
            last_at: row.last_at.rfc3339(),
        }
    }
}
