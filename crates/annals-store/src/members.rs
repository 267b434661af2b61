//! Organisations, members and the hashes of their tokens.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;
use crate::{BrowserHolder, Store, sql};
use annals_core::{InstanceId, MemberId, MemberRole, OrganisationId, Scope, Time};

#[derive(Debug, Clone)]
pub struct MemberRow {
    pub id: MemberId,
    pub name: String,
    pub organisation: String,
    pub role: MemberRole,
    pub added_at: Time,
    pub removed_at: Option<Time>,
    /// Valid tokens, and when the first of them expires.
    pub tokens: i64,
    pub token_expires_at: Option<Time>,
    pub last_used: Option<Time>,
    /// Homes that belong to the member.
    pub homes: i64,
    /// Machines that pushed, and when the last of them sent something new.
    pub machines: i64,
    pub last_push: Option<Time>,
    /// Homes that were sent without their secrets.
    pub masked_homes: i64,
    pub sessions: i64,
    /// Of the newest version of every file.
    pub bytes: i64,
}

#[derive(Debug, Clone, Copy)]
pub struct NewMember<'a> {
    pub name: &'a str,
    pub organisation: &'a str,
    pub role: MemberRole,
}

/// The member a token belongs to.
#[derive(Debug, Clone)]
pub struct TokenHolder {
    pub token: i64,
    pub member: MemberId,
    pub scope: Scope,
    pub last_used: Option<Time>,
    pub expires_at: Option<Time>,
}

/// A token as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    pub hash: &'a [u8; 32],
    pub expires_at: Option<Time>,
}

/// Only the owner of this machine manages members. Never called on behalf of a member.
impl Store {
    /// Adds a member with a first token, or restores one that was removed.
    pub fn add_member(&mut self, member: &NewMember<'_>, token: &NewToken<'_>, now: Time) -> Result<()> {
        let NewMember { name, organisation, role } = *member;
        let known = self.member(name)?;
        if known.as_ref().is_some_and(|member| member.removed_at.is_none()) {
            return Err(annals_core::Error::new(format!("{name:?} is already a member"))
                .hint("`annals members token NAME` creates another token")
                .into());
        }
        let transaction = self.connection.transaction()?;
        let organisation: OrganisationId = transaction.query_row(
            sql!(
            "insert into organisation (name) values ($1) on conflict (name) do update set name = excluded.name
             returning id"
        ),
            [organisation],
            |row| row.get(0),
        )?;
        let member: MemberId = transaction.query_row(
            sql!(
                "insert into member (organisation, name, role, added_at) values ($1, $2, $3, $4)
             on conflict (name) do update set organisation = excluded.organisation, role = excluded.role,
                 added_at = excluded.added_at, removed_at = null
             returning id"
            ),
            params![organisation, name, role.name(), now.micros()],
            |row| row.get(0),
        )?;
        add_token(&transaction, member, token, now)?;
        transaction.commit()?;
        Ok(())
    }

    /// Whether anyone but the owner has access.
    pub fn has_members(&self) -> Result<bool> {
        let mut statement = self
            .connection
            .prepare_cached(sql!("select exists (select 1 from member where removed_at is null)"))?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Revokes the member's tokens; their sessions stay.
    pub fn remove_member(&self, name: &str, now: Time) -> Result<()> {
        let member = self.member_named(name)?;
        let mut statement =
            self.connection.prepare_cached(sql!("update member set removed_at = $2 where id = $1"))?;
        statement.execute(params![member.id, now.micros()])?;
        self.revoke(member.id, now)?;
        Ok(())
    }

    pub fn add_token(&self, name: &str, token: &NewToken<'_>, now: Time) -> Result<()> {
        let member = self.member_named(name)?;
        add_token(&self.connection, member.id, token, now)
    }

    /// Replaces all tokens of a member by one; the others expire at a time of their own, or then. Browsers end with them.
    /// Returns how many there were.
    pub fn rotate_tokens(
        &mut self,
        name: &str,
        token: &NewToken<'_>,
        others_end: Time,
        now: Time,
    ) -> Result<usize> {
        let member = self.member_named(name)?;
        let transaction = self.connection.transaction()?;
        let end = others_end.micros();
        let ended = transaction.execute(
            sql!(
                "update token set expires_at = min(coalesce(expires_at, $2), $2)
                  where member = $1 and revoked_at is null and (expires_at is null or expires_at > $3)"
            ),
            params![member.id, end, now.micros()],
        )?;
        transaction.execute(
            sql!("update browser set ends_at = min(coalesce(ends_at, $2), $2), expires_at = min(expires_at, $2)
                  where member = $1"),
            params![member.id, end],
        )?;
        add_token(&transaction, member.id, token, now)?;
        transaction.commit()?;
        Ok(ended)
    }

    /// Revokes all tokens of a member. Returns how many.
    pub fn revoke_tokens(&self, name: &str, now: Time) -> Result<usize> {
        let member = self.member_named(name)?;
        self.revoke(member.id, now)
    }

    /// Finds the member of a token, which gives a request its scope.
    pub fn token_holder(&self, hash: &[u8; 32], now: Time) -> Result<Option<TokenHolder>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select token.id, member.role, member.id, member.organisation, token.last_used, token.expires_at
             from token join member on member.id = token.member
             where token.hash = $1 and token.revoked_at is null and member.removed_at is null
             and (token.expires_at is null or token.expires_at > $2)"
        ))?;
        let holder = statement.query_row(params![hash.as_slice(), now.micros()], |row| {
            let (member, scope) = (row.get(2)?, scope(row, 1)?);
            let (last_used, expires_at) = (crate::read::time(row, 4)?, crate::read::time(row, 5)?);
            Ok(TokenHolder { token: row.get(0)?, member, scope, last_used, expires_at })
        });
        Ok(holder.optional()?)
    }

    /// The member of a name, as another program that knows people hands it over.
    pub fn holder_named(&self, name: &str) -> Result<Option<BrowserHolder>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select role, id, organisation from member where name = $1 and removed_at is null"
        ))?;
        let holder = statement.query_row(params![name], |row| {
            Ok(BrowserHolder { member: row.get(1)?, scope: scope(row, 0)?, ends_at: None })
        });
        Ok(holder.optional()?)
    }

    pub fn record_token_use(&self, token: i64, now: Time) -> Result<()> {
        let mut statement =
            self.connection.prepare_cached(sql!("update token set last_used = $2 where id = $1"))?;
        statement.execute(params![token, now.micros()])?;
        Ok(())
    }

    /// Assigns homes to a member. Each member has originals of their own, so if a home with sessions changes hands, the
    /// next run that writes rebuilds the rows.
    pub fn assign_homes(&self, instances: &[InstanceId], name: &str) -> Result<()> {
        let member = self.member_named(name)?;
        let mut rebuild = self.connection.prepare_cached(sql!(
            "insert into setting (name, value) select 'rebuilding', 1
             where exists (select 1 from instance join session on session.instance = instance.id
                           where instance.id = $1 and instance.member is distinct from $2)
             and not exists (select 1 from setting where name = 'rebuilding')"
        ))?;
        let mut assign = self.connection.prepare_cached(sql!(
            "update instance set member = $2 where id = $1 and member is distinct from $2"
        ))?;
        let transaction = self.connection.unchecked_transaction()?;
        for instance in instances {
            rebuild.execute(params![*instance, member.id])?;
            assign.execute(params![*instance, member.id])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The row of a member, who need not have access any more.
    pub fn member_id(&self, name: &str) -> Result<Option<MemberId>> {
        Ok(self.member(name)?.map(|member| member.id))
    }

    /// What a member sees; None if they were removed.
    pub(crate) fn scope_of_member(&self, member: MemberId) -> Result<Option<Scope>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select role, id, organisation from member where id = $1 and removed_at is null"
        ))?;
        Ok(statement.query_row(params![member], |row| scope(row, 0)).optional()?)
    }

    /// Ends their browsers too.
    fn revoke(&self, member: MemberId, now: Time) -> Result<usize> {
        for table in ["browser", "browser_link"] {
            self.connection.execute(&format!("delete from {table} where member = ?1"), [member])?;
        }
        let mut statement = self.connection.prepare_cached(sql!(
            "update token set revoked_at = $2 where member = $1 and revoked_at is null"
        ))?;
        Ok(statement.execute(params![member, now.micros()])?)
    }

    fn member(&self, name: &str) -> Result<Option<MemberRow>> {
        let text = format!("{MEMBERS} where member.name = ?2");
        let mut statement = self.connection.prepare_cached(&text)?;
        Ok(statement.query_row(params![0, name], member_row).optional()?)
    }

    fn member_named(&self, name: &str) -> Result<MemberRow> {
        self.member(name)?.filter(|member| member.removed_at.is_none()).ok_or_else(|| {
            annals_core::Error::new(format!("no member named {name:?}"))
                .hint("`annals members list` lists all members")
                .into()
        })
    }
}

/// The scope of a role, a member and an organisation in three columns.
fn scope(row: &Row<'_>, first: usize) -> rusqlite::Result<Scope> {
    let role = MemberRole::from_name(row.get_ref(first)?.as_str().unwrap_or_default());
    Ok(match role {
        Some(MemberRole::Owner) => Scope::Owner,
        Some(MemberRole::Admin) => Scope::Organisation(row.get(first + 2)?),
        Some(MemberRole::Member) | None => Scope::Member(row.get(first + 1)?),
    })
}

fn add_token(connection: &Connection, member: MemberId, token: &NewToken<'_>, now: Time) -> Result<()> {
    let mut statement = connection.prepare_cached(sql!(
        "insert into token (member, hash, made_at, expires_at) values ($1, $2, $3, $4)"
    ))?;
    let expires_at = token.expires_at.map(Time::micros);
    statement.execute(params![member, token.hash.as_slice(), now.micros(), expires_at])?;
    Ok(())
}

/// The first parameter is the time now.
pub(crate) const MEMBERS: &str =
    "select member.id, member.name, organisation.name, member.role, member.added_at,
    member.removed_at,
    (select count(*) from token where token.member = member.id and token.revoked_at is null
     and (token.expires_at is null or token.expires_at > ?1)),
    (select max(token.last_used) from token where token.member = member.id),
    (select count(*) from instance where instance.member = member.id),
    (select count(distinct machine) from received_home where received_home.holder = member.id),
    (select max(last_at) from received_home where received_home.holder = member.id),
    (select count(*) from session join instance on instance.id = session.instance
     where instance.member = member.id and coalesce(parent_kind, '') not in ('sub_agent', 'review')),
    (select coalesce(sum(file.size), 0) from file join instance on instance.id = file.instance
     where instance.member = member.id),
    (select min(token.expires_at) from token where token.member = member.id and token.revoked_at is null
     and token.expires_at > ?1),
    (select count(*) from received_home where received_home.holder = member.id and policy = 'masked')
    from member join organisation on organisation.id = member.organisation";

pub(crate) fn member_row(row: &Row<'_>) -> rusqlite::Result<MemberRow> {
    let role = MemberRole::from_name(row.get_ref(3)?.as_str().unwrap_or_default());
    Ok(MemberRow {
        id: row.get(0)?,
        name: row.get(1)?,
        organisation: row.get(2)?,
        role: role.unwrap_or(MemberRole::Member),
        added_at: Time::from_micros(row.get(4)?),
        removed_at: crate::read::time(row, 5)?,
        tokens: row.get(6)?,
        last_used: crate::read::time(row, 7)?,
        homes: row.get(8)?,
        machines: row.get(9)?,
        last_push: crate::read::time(row, 10)?,
        sessions: row.get(11)?,
        bytes: row.get(12)?,
        token_expires_at: crate::read::time(row, 13)?,
        masked_homes: row.get(14)?,
    })
}
