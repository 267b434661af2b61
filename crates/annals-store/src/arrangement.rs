//! Arrangements: every version of what people said about sessions, messages, projects and searches. Each person, or group
//! of people with one scope, has their own.

use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};

use crate::error::Result;
use crate::write::changes::{next_commit, save_commit};
use crate::{Archive, Store, sql};
use annals_core::{
    Arranged, ArrangedField, ArrangedKind, Arrangement, MemberId, Raw, Scope, SessionId, Time,
};

/// A stored version.
#[derive(Debug, Clone)]
pub struct ArrangementRow {
    pub id: i64,
    pub of: Arranged,
    pub field: ArrangedField,
    pub item: String,
    /// `None` once it is removed.
    pub value: Option<Raw>,
    pub at: Time,
    /// Counts the versions of this value.
    pub version: i64,
}

/// Whose arrangements a scope reads and writes.
pub(crate) fn holder_of(scope: Scope) -> i64 {
    match scope {
        Scope::Owner => 0,
        Scope::Member(member) => member.0,
        Scope::Organisation(organisation) => -organisation.0,
    }
}

/// Sessions that are hidden: themselves, or with the project they ran in, or with the session that started them.
pub(crate) const HIDDEN: &str = "session.id in (
    with recursive hidden (id, instance, key) as (
        select own.id, own.instance, own.key from arrangement
        join instance home on home.source = arrangement.source
        join session own on own.instance = home.id and own.key = arrangement.target
        where arrangement.holder = {holder} and arrangement.field = 'hidden' and arrangement.newest = 1
        and arrangement.kind = 'session' and arrangement.value is not null
        union
        select own.id, own.instance, own.key from arrangement
        join session own on own.cwd = arrangement.target
            or substr(own.cwd, 1, length(arrangement.target) + 1) = arrangement.target || '/'
        where arrangement.holder = {holder} and arrangement.field = 'hidden' and arrangement.newest = 1
        and arrangement.kind = 'project' and arrangement.value is not null
        union
        select child.id, child.instance, child.key from hidden
        join session child on child.instance = hidden.instance and child.parent = hidden.key
        where child.parent_kind in ('sub_agent', 'review')
    ) select id from hidden)";

/// A condition on a session: it, or one of its messages, has a value of a field.
pub(crate) fn has_value(field: ArrangedField) -> String {
    let name = field.name();
    format!(
        "exists (select 1 from arrangement where arrangement.holder = {{holder}} and arrangement.field = '{name}'
                 and arrangement.source = instance.source and arrangement.target = session.key
                 and arrangement.newest = 1 and arrangement.value is not null)"
    )
}

/// A condition on a session: it, one of its messages or its project has the tag `#`.
pub(crate) const TAGGED: &str = "exists (select 1 from arrangement
    where arrangement.holder = {holder} and arrangement.field = 'tag' and arrangement.newest = 1
    and arrangement.item = # and arrangement.value is not null
    and (arrangement.source = instance.source and arrangement.target = session.key
         or arrangement.kind = 'project' and (cwd = arrangement.target
            or substr(cwd, 1, length(arrangement.target) + 1) = arrangement.target || '/')))";

/// The name that a person gave a session.
pub(crate) const OWN_NAME: &str = "(select value from arrangement where arrangement.holder = {holder}
    and arrangement.field = 'name' and arrangement.source = instance.source and arrangement.target = session.key
    and arrangement.kind = 'session' and arrangement.newest = 1)";

impl Store {
    /// Adds versions that the archive does not have, for whoever has this scope. Returns how many were new.
    pub fn arrange(&mut self, scope: Scope, versions: &[Arrangement]) -> Result<usize> {
        for version in versions {
            version.check()?;
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let commit = next_commit(&transaction)?;
        let holder = holder_of(scope);
        let mut added = 0;
        for version in versions {
            let Arrangement { of, field, item, value, at } = version;
            let mut statement = transaction.prepare_cached(sql!(
                "select id, value, at, newest from arrangement
                 where holder = $1 and kind = $2 and source = $3 and target = $4 and message = $5 and field = $6
                 and item = $7"
            ))?;
            let same_value =
                params![holder, of.kind.name(), of.source, of.target, of.message, field.name(), item];
            let known = statement.query_map(same_value, |row| {
                let (value, at) = (row.get(1)?, Time::from_micros(row.get(2)?));
                Ok((row.get::<_, i64>(0)?, Arrangement { value, at, ..version.clone() }, row.get(3)?))
            })?;
            let known: Vec<(i64, Arrangement, bool)> = known.collect::<rusqlite::Result<_>>()?;
            // Even one that says nothing new is kept: what arrives later may be from before it.
            if known.iter().any(|(_, other, _)| other == version) {
                continue;
            }
            let newest = known.iter().find(|(_, _, newest)| *newest);
            let counts = newest.is_none_or(|(_, other, _)| other.order(version).is_lt());
            if let (Some((id, _, _)), true) = (newest, counts) {
                let mut statement =
                    transaction.prepare_cached(sql!("update arrangement set newest = 0 where id = $1"))?;
                statement.execute([id])?;
            }
            let mut statement = transaction.prepare_cached(sql!(
                "insert into arrangement (holder, kind, source, target, message, field, item, value, at, newest, changed)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
            ))?;
            statement.execute(params![
                holder,
                of.kind.name(),
                of.source,
                of.target,
                of.message,
                field.name(),
                item,
                value,
                at.micros(),
                counts,
                commit
            ])?;
            added += 1;
        }
        if added > 0 {
            save_commit(&transaction, commit)?;
        }
        transaction.commit()?;
        Ok(added)
    }

    /// The scope of a member, who need not have access any more; their arrangements stay theirs.
    pub fn scope_of_name(&self, member: &str) -> Result<Option<Scope>> {
        let mut statement = self.connection.prepare_cached(sql!("select id from member where name = $1"))?;
        let id: Option<MemberId> = statement.query_row([member], |row| row.get(0)).optional()?;
        Ok(match id {
            Some(id) => self.scope_of_member(id)?.or(Some(Scope::Member(id))),
            None => None,
        })
    }
}

const COLUMNS: &str = "id, kind, source, target, message, field, item, value, at,
    (select count(*) from arrangement earlier where earlier.holder = arrangement.holder
     and earlier.kind = arrangement.kind and earlier.source = arrangement.source
     and earlier.target = arrangement.target and earlier.message = arrangement.message
     and earlier.field = arrangement.field and earlier.item = arrangement.item
     and (earlier.at, earlier.id) <= (arrangement.at, arrangement.id))";

impl Archive<'_> {
    /// What is said about one thing, by field and tag; also what was said and removed.
    pub fn arrangement_of(&self, of: &Arranged) -> Result<Vec<ArrangementRow>> {
        let mut statement = self.prepare(&format!(
            "select {COLUMNS} from arrangement
             where holder = {{holder}} and kind = ?1 and source = ?2 and target = ?3 and message = ?4
             and newest = 1 order by field, item"
        ))?;
        let rows = statement
            .query_map(params![of.kind.name(), of.source, of.target, of.message], arrangement_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// What is said about the messages of a session.
    pub fn arranged_messages(&self, source: &str, session: &str) -> Result<Vec<ArrangementRow>> {
        let mut statement = self.prepare(&format!(
            "select {COLUMNS} from arrangement
             where holder = {{holder}} and kind = 'message' and source = ?1 and target = ?2
             and newest = 1 and value is not null order by message, field, item"
        ))?;
        let rows = statement.query_map([source, session], arrangement_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Everything of one kind that counts.
    pub fn arranged(&self, kind: ArrangedKind) -> Result<Vec<ArrangementRow>> {
        let mut statement = self.prepare(&format!(
            "select {COLUMNS} from arrangement where holder = {{holder}} and kind = ?1
             and newest = 1 and value is not null order by target, message, field, item"
        ))?;
        let rows = statement.query_map([kind.name()], arrangement_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Visits every version, or only those that count, ordered by id.
    pub fn each_arrangement(
        &self,
        all_versions: bool,
        (changed_after, after): (i64, i64),
        visit: &mut dyn FnMut(ArrangementRow) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.prepare(&format!(
            "select {COLUMNS} from arrangement where holder = {{holder}} and (?1 or newest = 1)
             and changed > ?2 and id > ?3 order by id"
        ))?;
        let mut rows = statement.query(params![all_versions, changed_after, after])?;
        while let Some(row) = rows.next()? {
            if !visit(arrangement_row(row)?)? {
                break;
            }
        }
        Ok(())
    }

    /// The last commit that changed what is said about a session or its messages.
    pub fn arranged_in(&self, source: &str, session: &str) -> Result<i64> {
        let mut statement = self.prepare(
            "select coalesce(max(changed), 0) from arrangement
             where holder = {holder} and kind in ('session', 'message') and source = ?1 and target = ?2",
        )?;
        Ok(statement.query_row([source, session], |row| row.get(0))?)
    }

    /// The number of visible sessions that are hidden, without sub-agents.
    pub fn count_hidden(&self) -> Result<i64> {
        let mut statement = self.prepare(&format!(
            "select count(*) from session join instance on instance.id = session.instance
             where {{visible}} and (parent_kind is null or parent_kind not in ('sub_agent', 'review')) and {HIDDEN}"
        ))?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Whether a session ran in a directory or below it.
    pub fn has_project(&self, path: &str) -> Result<bool> {
        let mut statement = self.prepare(sql!(
            "select exists (select 1 from session join instance on instance.id = session.instance
                            where {visible} and (cwd = $1 or substr(cwd, 1, length($1) + 1) = $1 || '/'))"
        ))?;
        Ok(statement.query_row([path], |row| row.get(0))?)
    }

    /// Whether a session is hidden, itself or with its project or the session that started it.
    pub fn is_hidden(&self, session: SessionId) -> Result<bool> {
        let mut statement = self.prepare(&format!(
            "select exists (select 1 from session join instance on instance.id = session.instance
                            where session.id = ?1 and {{visible}} and {HIDDEN})"
        ))?;
        Ok(statement.query_row([session], |row| row.get(0))?)
    }

    /// Whether anything is hidden.
    pub fn hides(&self) -> Result<bool> {
        let mut statement = self.prepare(
            "select exists (select 1 from arrangement where holder = {holder} and field = 'hidden' and newest = 1
                            and value is not null)",
        )?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

/// Expects the columns of `COLUMNS`. Kinds and fields that a later version wrote are errors, which name them.
fn arrangement_row(row: &Row<'_>) -> rusqlite::Result<ArrangementRow> {
    let unknown = |at: usize, name: String| {
        rusqlite::Error::FromSqlConversionFailure(
            at,
            rusqlite::types::Type::Text,
            format!("unknown arrangement {name:?}").into(),
        )
    };
    let (kind, field): (String, String) = (row.get(1)?, row.get(5)?);
    Ok(ArrangementRow {
        id: row.get(0)?,
        of: Arranged {
            kind: ArrangedKind::from_name(&kind).ok_or_else(|| unknown(1, kind))?,
            source: row.get(2)?,
            target: row.get(3)?,
            message: row.get(4)?,
        },
        field: ArrangedField::from_name(&field).ok_or_else(|| unknown(5, field))?,
        item: row.get(6)?,
        value: crate::read::optional_raw(row, 7)?,
        at: Time::from_micros(row.get(8)?),
        version: row.get(9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(value: Option<&str>, at: i64) -> Arrangement {
        Arrangement {
            of: Arranged::session("somewhere", "one"),
            field: ArrangedField::Note,
            item: String::new(),
            value: value.map(str::to_owned),
            at: Time::from_micros(at),
        }
    }

    fn counting(store: &Store, scope: Scope) -> Vec<(Option<Raw>, i64)> {
        let rows = store.scoped(scope).arrangement_of(&Arranged::session("somewhere", "one")).unwrap();
        rows.into_iter().map(|row| (row.value, row.version)).collect()
    }

    #[test]
    fn the_order_of_arrival_does_not_matter() {
        let versions = [note(Some("a"), 1), note(None, 2), note(Some("b"), 3), note(Some("c"), 3)];
        for start in 0..versions.len() {
            let folder = tempfile::tempdir().unwrap();
            let mut store = Store::open(folder.path()).unwrap();
            for number in 0..versions.len() {
                let version = &versions[(start + number) % versions.len()];
                store.arrange(Scope::Owner, std::slice::from_ref(version)).unwrap();
            }
            assert_eq!(store.arrange(Scope::Owner, &versions).unwrap(), 0, "again");
            let counting = counting(&store, Scope::Owner);
            let values: Vec<_> = counting.into_iter().map(|(value, _)| value).collect();
            assert_eq!(values, [Some(Raw::new("c"))], "{start}");
        }
    }

    #[test]
    fn everyone_has_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let member = Scope::Member(MemberId(1));
        assert_eq!(store.arrange(member, &[note(Some("mine"), 1)]).unwrap(), 1);
        assert_eq!(counting(&store, member), [(Some(Raw::new("mine")), 1)]);
        for other in
            [Scope::Owner, Scope::Member(MemberId(2)), Scope::Organisation(annals_core::OrganisationId(1))]
        {
            assert_eq!(counting(&store, other), [], "{other:?}");
        }
        assert!(store.arrange(member, &[note(Some(&"x".repeat(2 << 20)), 3)]).is_err());
    }
}
