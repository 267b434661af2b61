//! The archive as one asker sees it: every read that answers a question happens here.

use rusqlite::CachedStatement;

use crate::error::{Result, StoreError};
use crate::{Store, sql};
use annals_core::Scope;

/// A handle on what one asker may see. Only [`Store::scoped`] makes one, and every statement that is prepared on it
/// names the homes that it is about.
#[derive(Clone, Copy)]
pub struct Archive<'s> {
    store: &'s Store,
    scope: Scope,
}

impl Store {
    /// The archive as this asker sees it.
    pub fn scoped(&self, scope: Scope) -> Archive<'_> {
        Archive { store: self, scope }
    }
}

impl<'s> Archive<'s> {
    /// Whether the asker sees every home.
    pub fn is_whole(&self) -> bool {
        self.scope == Scope::Owner
    }

    /// All reads of `work` see the archive as the first of them does, and take its locks once.
    pub fn at_once<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let transaction = self.store.connection.unchecked_transaction().map_err(StoreError::from)?;
        let answer = work();
        transaction.finish().map_err(StoreError::from)?;
        answer
    }

    /// The number of the run that wrote last; the archive is as it was while it stays the same.
    pub fn last_run(&self) -> Result<i64> {
        let mut statement =
            self.store.connection.prepare_cached(sql!("select coalesce(max(id), 0) from run"))?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Prepares a statement with the asker's homes in the place of one of these conditions:
    ///
    /// * `{visible}`: the row of `instance` is one of them;
    /// * `{visible_instance}`, `{visible_session}`, `{visible_file}`: the home, session or file whose id is the first
    ///   parameter is of one of them.
    ///
    /// Scopes hold numbers: nothing that an asker wrote gets into the text.
    #[track_caller]
    pub(crate) fn prepare(&self, text: &str) -> Result<CachedStatement<'s>> {
        debug_assert!(text.contains("{visible"), "a read that leaves out whose rows it returns: {text}");
        self.store.connection.prepare_cached(&visible_to(self.scope, text))
    }

    /// What belongs to no home, such as the text index: the caller answers for what it hands out of it.
    pub(crate) fn store(&self) -> &'s Store {
        self.store
    }

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }
}

fn visible_to(scope: Scope, text: &str) -> String {
    let homes = match scope {
        Scope::Owner => None,
        Scope::Organisation(id) => {
            Some(format!("instance.member in (select id from member where organisation = {id})"))
        }
        Scope::Member(id) => Some(format!("instance.member = {id}")),
    };
    let mut text = text.to_owned();
    for (name, from) in [
        ("{visible_instance}", "instance where instance.id = ?1"),
        ("{visible_session}", "session own join instance on instance.id = own.instance where own.id = ?1"),
        ("{visible_file}", "file own join instance on instance.id = own.instance where own.id = ?1"),
    ] {
        if text.contains(name) {
            let condition = match &homes {
                Some(homes) => format!("exists (select 1 from {from} and {homes})"),
                None => "1 = 1".to_owned(),
            };
            text = text.replace(name, &condition);
        }
    }
    text.replace("{visible}", homes.as_deref().unwrap_or("1 = 1"))
}
