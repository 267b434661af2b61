//! Who read whose sessions, and who may: what members can ask about themselves, and admins about their organisation.

use rusqlite::{Row, params};

use crate::error::Result;
use crate::members::{MEMBERS, MemberRow, member_row};
use crate::{Archive, Store, sql};
use annals_core::{AccessKind, MemberId, MemberRole, SessionId, Time};

/// The log forgets after two years.
const KEPT: i64 = 731 * 86_400 * 1_000_000;

/// One way in which somebody read a session on one day.
#[derive(Debug, Clone)]
pub struct AccessRow {
    pub id: i64,
    /// None for the owner of the machine.
    pub viewer: Option<String>,
    pub viewer_role: MemberRole,
    /// Whose session it is; none for the owner of the machine.
    pub holder: Option<String>,
    pub source: String,
    pub session: String,
    pub kind: AccessKind,
    pub first_at: Time,
    pub last_at: Time,
}

/// A member who sees sessions of another.
#[derive(Debug, Clone)]
pub struct ViewerRow {
    pub name: String,
    pub role: MemberRole,
    pub organisation: String,
}

impl Store {
    /// Notes that `viewer`, or the owner of the machine, read these sessions. Their own are left out. Returns how many entries
    /// are new or newer.
    pub fn record_accesses(
        &mut self,
        viewer: Option<MemberId>,
        sessions: &[(SessionId, AccessKind)],
        now: Time,
    ) -> Result<usize> {
        let transaction = self.connection.transaction()?;
        let mut count = 0;
        {
            let mut note = transaction.prepare_cached(sql!(
                "insert into access (viewer, holder, source, session, kind, day, first_at, last_at)
                 select coalesce($1, 0), coalesce(instance.member, 0), instance.source, session.key, $3, $4, $5, $5
                 from session join instance on instance.id = session.instance
                 where session.id = $2 and instance.member is distinct from $1
                 on conflict (holder, source, session, viewer, kind, day) do update set last_at = excluded.last_at"
            ))?;
            for (session, kind) in sessions {
                count += note.execute(params![viewer, *session, kind.stored(), now.day(), now.micros()])?;
            }
            let mut forget = transaction.prepare_cached(sql!("delete from access where last_at < $1"))?;
            forget.execute(params![now.micros().saturating_sub(KEPT)])?;
        }
        transaction.commit()?;
        Ok(count)
    }

    /// Those of these sessions that are not the viewer's own.
    pub fn sessions_of_others(
        &self,
        viewer: Option<MemberId>,
        sessions: &[(SessionId, AccessKind)],
    ) -> Result<Vec<(SessionId, AccessKind)>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select exists (select 1 from session join instance on instance.id = session.instance
                            where session.id = $1 and instance.member is distinct from $2)"
        ))?;
        let mut others = Vec::new();
        for (session, kind) in sessions {
            if statement.query_row(params![*session, viewer], |row| row.get(0))? {
                others.push((*session, *kind));
            }
        }
        Ok(others)
    }
}

impl Archive<'_> {
    /// The log about sessions in scope, the latest first, after the time and id of an entry.
    pub fn accesses(
        &self,
        holder: Option<&str>,
        after: Option<(i64, i64)>,
        limit: i64,
    ) -> Result<Vec<AccessRow>> {
        let (last_at, id) = after.unwrap_or((i64::MAX, i64::MAX));
        let mut statement = self.prepare(sql!(
            "select access.id, viewer.name, viewer.role, holder.name, source, session, kind, first_at, last_at
             from access left join member viewer on viewer.id = access.viewer
             left join member holder on holder.id = access.holder
             where {visible_holder} and ($1 is null or holder.name = $1)
             and (last_at < $2 or last_at = $2 and access.id < $3)
             order by last_at desc, access.id desc limit $4"
        ))?;
        let rows = statement.query_map(params![holder, last_at, id, limit], access_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The members in scope.
    pub fn members(&self, now: Time) -> Result<Vec<MemberRow>> {
        let text = format!(
            "{MEMBERS} where {{visible_member}} and member.removed_at is null order by organisation.name, member.name"
        );
        let mut statement = self.prepare(&text)?;
        let rows = statement.query_map([now.micros()], member_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Who sees sessions in scope besides whoever asks, and besides the owner of the machine.
    pub fn viewers(&self) -> Result<Vec<ViewerRow>> {
        let mut statement = self.prepare(sql!(
            "select member.name, member.role, organisation.name
             from member join organisation on organisation.id = member.organisation
             where {visible_viewer} and member.removed_at is null order by member.role desc, member.name"
        ))?;
        let rows = statement.query_map([], |row| {
            Ok(ViewerRow { name: row.get(0)?, role: role(row, 1)?, organisation: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

fn access_row(row: &Row<'_>) -> rusqlite::Result<AccessRow> {
    let viewer: Option<String> = row.get(1)?;
    Ok(AccessRow {
        id: row.get(0)?,
        viewer_role: if viewer.is_some() { role(row, 2)? } else { MemberRole::Owner },
        viewer,
        holder: row.get(3)?,
        source: row.get(4)?,
        session: row.get(5)?,
        kind: AccessKind::from_stored(row.get(6)?),
        first_at: Time::from_micros(row.get(7)?),
        last_at: Time::from_micros(row.get(8)?),
    })
}

fn role(row: &Row<'_>, column: usize) -> rusqlite::Result<MemberRole> {
    let name = row.get_ref(column)?.as_str().unwrap_or_default();
    Ok(MemberRole::from_name(name).unwrap_or(MemberRole::Member))
}
