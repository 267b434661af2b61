//! The archive within one scope: every read on behalf of a user goes through here.

use rusqlite::CachedStatement;

use crate::error::{Result, StoreError};
use crate::{Store, sql};
use annals_core::Scope;

/// A read handle limited to a scope. Only [`Store::scoped`] creates one, and every statement prepared on it has a
/// condition on the visible homes.
#[derive(Clone, Copy)]
pub struct Archive<'s> {
    store: &'s Store,
    scope: Scope,
}

impl Store {
    /// Limits reads to the homes of `scope`.
    pub fn scoped(&self, scope: Scope) -> Archive<'_> {
        Archive { store: self, scope }
    }
}

impl<'s> Archive<'s> {
    /// Whether the scope includes every home.
    pub fn is_whole(&self) -> bool {
        self.scope == Scope::Owner
    }

    /// Runs all reads of `work` in one transaction: they share a snapshot and take locks once.
    pub fn in_snapshot<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let transaction = self.store.connection.unchecked_transaction().map_err(StoreError::from)?;
        let answer = work();
        transaction.finish().map_err(StoreError::from)?;
        answer
    }

    /// The number of the last run that wrote. The archive is unchanged while it stays the same.
    pub fn last_run(&self) -> Result<i64> {
        let mut statement =
            self.store.connection.prepare_cached(sql!("select coalesce(max(id), 0) from run"))?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Prepares a statement, replacing one of these placeholders with a condition on the visible homes:
    ///
    /// * `{visible}`: the row of `instance` is visible;
    /// * `{visible_instance}`, `{visible_session}`, `{visible_file}`: the home, session or file whose id is the first
    ///   parameter is visible;
    /// * `{visible_holder}`, `{visible_member}`: the entry of the access log is about a visible session, the member is one whose
    ///   sessions are visible;
    /// * `{visible_viewer}`: the member sees sessions in scope;
    /// * `{holder}`: whoever's arrangements are read;
    /// * `{twin:TABLE}`: the row of `TABLE`, whose `session` and `instance` are joined, is there again in the home of another
    ///   visible member, and counts there.
    ///
    /// Scopes contain only numbers, so no user input gets into the SQL text.
    #[track_caller]
    pub(crate) fn prepare(&self, text: &str) -> Result<CachedStatement<'s>> {
        let is_limited = text.contains("{visible") || text.contains("{holder}");
        debug_assert!(is_limited, "a read that leaves out whose rows it returns: {text}");
        self.store.connection.prepare_cached(&visible_to(self.scope, text))
    }

    /// For data that belongs to no home, such as the text index: the caller must check what it returns.
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
    for table in ["usage", "tool_call", "message"] {
        let name = format!("{{twin:{table}}}");
        if text.contains(&name) {
            text = text.replace(&name, &twin_condition(scope, table, homes.as_deref()));
        }
    }
    let text = visible_members(scope, text);
    let text = text.replace("{holder}", &crate::arrangement::holder_of(scope).to_string());
    text.replace("{visible}", homes.as_deref().unwrap_or("1 = 1"))
}

/// The conditions on entries of the access log, on members, and on those who see sessions in scope.
fn visible_members(scope: Scope, text: String) -> String {
    let (holder, member, viewer) = match scope {
        Scope::Owner => {
            ("1 = 1".to_owned(), "1 = 1".to_owned(), "member.role in ('owner', 'admin')".to_owned())
        }
        Scope::Organisation(id) => (
            format!("access.holder in (select id from member where organisation = {id})"),
            format!("member.organisation = {id}"),
            format!("(member.role = 'owner' or member.role = 'admin' and member.organisation = {id})"),
        ),
        Scope::Member(id) => (
            format!("access.holder = {id}"),
            format!("member.id = {id}"),
            format!(
                "member.id <> {id} and (member.role = 'owner' or member.role = 'admin'
                  and member.organisation = (select organisation from member where id = {id}))"
            ),
        ),
    };
    let text = text.replace("{visible_holder}", &holder).replace("{visible_member}", &member);
    text.replace("{visible_viewer}", &viewer)
}

/// Of the originals that several members have of one row, the first counts, whatever order they were synced in.
fn twin_condition(scope: Scope, table: &str, homes: Option<&str>) -> String {
    if let Scope::Member(_) = scope {
        return "1 = 0".to_owned();
    }
    let visible = homes.map_or("1 = 1".to_owned(), |homes| homes.replace("instance.", "home."));
    format!(
        "(exists (select 1 from member) and exists (
            select 1 from {table} twin join session other on other.id = twin.session
            join instance home on home.id = other.instance
            where twin.key = {table}.key and twin.copied = 0 and twin.session <> {table}.session
            and home.member is distinct from instance.member and {visible}
            and (coalesce(twin.at, 0), other.key, home.root, home.id)
                < (coalesce({table}.at, 0), session.key, instance.root, instance.id)))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CallFilter, CallOrder, CallPart, Page, RemovedKind, RowPlace, RowsQuery, SessionFilter, Stretch,
        TimedRows, WorkFilter,
    };
    use annals_core::{
        CallKind, ContentKey, FileId, InstanceId, MemberId, MessageKind, OrganisationId, SessionId, Span,
        Time,
    };

    /// One home of the first member, with a row of every kind.
    const HOME: &str = "
        insert into organisation values (1, 'ours'), (2, 'theirs');
        insert into member values (1, 1, 'pat', 'member', 0, null), (2, 2, 'sam', 'member', 0, null);
        insert into instance (id, source, machine, root, status, reason, first_seen, member)
            values (1, 'somewhere', 'here', '/', 'available', '', 0, 1);
        insert into file (id, instance, path, logical_path, store, reader, framing, encoding, document, mutable, version,
                          rows_version, size, content_size, parsed, reader_version, first_seen)
            values (1, 1, 'a', 'a', 'files', 'lines', 'lines', 'plain', 0, 0, 1, 1, 4, 4, 4, 1, 0);
        insert into cursor (instance, name, value) values (1, 'tables/a', '{}'), (1, 'survey', '{}');
        insert into gap (instance, stream, key, locator, reason, attempts, status, first_seen, last_tried)
            values (1, 'files', 'b', 'b', 'denied', 1, 'pending', 0, 0);
        insert into blob values (1, x'00', 4, 0, null, x'61626364');
        insert into segment values (1, 1, 0, 4, 1);
        insert into version (file, version, size, captured_at) values (1, 1, 4, 0);
        insert into session (id, instance, key, cwd, models, archived, facts, messages, user_messages,
                             assistant_messages, tool_calls, input_tokens, output_tokens, cache_read_tokens,
                             cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, last_at)
            values (1, 1, 'one', '/w', '[]', 0, '{}', 1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0),
                   (2, 1, 'two', '/w', '[]', 0, '{}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        update session set parent = 'one', parent_kind = 'sub_agent' where id = 2;
        insert into session_part values (1, 1, 0, '{}');
        insert into name values (1, '/w/tool');
        insert into message values (1, 1, 0, 2, 0, 0, 0, 7, 0, 0, 2, null, 1);
        insert into message_line values (1, 1, 0, 1, 1);
        insert into tool_call (session, file, byte_offset, length, key, inherited, copied, call_id, name, kind, title,
                               message, full_output)
            values (1, 1, 1, 1, 8, 0, 0, 'call', 1, 0, '', 0, 'outputs/x'),
                   (1, 1, 3, 1, 9, 0, 0, 'lone', 1, 0, '', null, null);
        insert into file_touch values (1, 1, 1, 0, 1, 0, null, null, null, null), (1, 1, 1, 1, 1, 2, null, null, 1, 2);
        update tool_call set at = 1, ok = byte_offset = 1;
        insert into usage values (1, 1, 0, 1, 0, 5, 0, 0, null, 1, 1, 0, 0, 0, 0, null);
        update session set cost = 1;
        insert into usage_sum (session, day, model, prompt_class, reported, responses, input, output, cache_read, cache_write,
                               cache_write_hour, reasoning) values (1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0);
        insert into link values (1, 1, 'sub_agent', 'two', 'call');
        insert into node values (1, 1, 0, 0, 7, null, 1, 1);
        insert into node_name values (7, 'n');
        insert into removed values (1, 1, 1, 1, 'one', 6, 0);
        insert into typed_prompt values (1, 2, 1, 1, 'one', null, 0, 0, 0, '', 1, 1);
        insert into access values (1, 0, 1, 'somewhere', 'one', 0, 0, 0, 0);
        insert into member values (3, 1, 'chief', 'admin', 0, null);
        insert into record values (1, 1, 'outputs', 'x', 1, 'one', 0, 1, 1, 0, 4, 0, 1, 0, null, 1);";

    /// Every read that starts from the id of a row, and whether it returns anything.
    fn reads(archive: Archive<'_>) -> Result<Vec<(&'static str, bool)>> {
        let stretch = Stretch { session: SessionId(1), file: FileId(1), after: -1, limit: 9, copies: true };
        let (key, call_key) = (ContentKey::from_stored(7), ContentKey::from_stored(8));
        let (mut prompts, mut messages, mut records) = (0, 0, 0);
        archive.each_prompt(SessionId(1), &mut |_| {
            prompts += 1;
            Ok(true)
        })?;
        let after = RowPlace(0, 0, -1);
        let rows = RowsQuery { source: "somewhere", key: None, session: None, changed_after: 0, after };
        let (mut calls, mut sessions) = (0, 0);
        archive.each_session(&rows, false, &mut |_| {
            sessions += 1;
            Ok(true)
        })?;
        archive.each_call(&rows, &mut |_| {
            calls += 1;
            Ok(true)
        })?;
        archive.each_message(&rows, &mut |_| {
            messages += 1;
            Ok(true)
        })?;
        archive.each_record("somewhere", "outputs", None, (0, 0), &mut |_| {
            records += 1;
            Ok(true)
        })?;
        let (mut exported_calls, mut exported_touches) = (0, 0);
        archive.each_call_of(SessionId(1), &mut |_, _| {
            exported_calls += 1;
            Ok(())
        })?;
        archive.each_touch_of(SessionId(1), &mut |_| {
            exported_touches += 1;
            Ok(())
        })?;
        let kinds = [TimedRows::Messages, TimedRows::Calls, TimedRows::Usage, TimedRows::Touches];
        let mut days = Vec::new();
        for kind in kinds {
            days.push(!archive.session_days(kind)?.is_empty());
        }
        let (mut failed, mut changed) = (0, 0);
        let ever = (Time::from_micros(0), Time::from_micros(9));
        archive.failed_calls_between(ever.0, ever.1, &mut |_| failed += 1)?;
        archive.changes_between(ever.0, ever.1, &mut |_| changed += 1)?;
        let everything = SessionFilter { with_agents: true, ..SessionFilter::default() };
        let (mut moments, mut turns, mut edits, mut failures) = (0, 0, 0, 0);
        let prompts_only = [MessageKind::Prompt, MessageKind::Prompt];
        archive.moments_between(&everything, ever, prompts_only, &mut |_| {
            moments += 1;
            true
        })?;
        archive.turns_between(&everything, ever, &mut |_| turns += 1)?;
        archive.edits_between(&everything, ever, &mut |_| edits += 1)?;
        archive.failures_between(&everything, ever, &mut |_| failures += 1)?;
        let called = CallFilter {
            source: "somewhere",
            since: Time::from_micros(i64::MIN),
            until: Time::from_micros(i64::MAX),
            project: None,
            machine: None,
        };
        let by_row = SessionFilter { row: Some(SessionId(1)), ..SessionFilter::default() };
        let steps = archive.steps_in(&stretch)?;
        let parts = archive.step_parts("somewhere", &steps)?;
        let message = archive.message_at(SessionId(1), FileId(1), 0)?;
        let file_name = std::iter::once("tool".to_owned()).collect();
        let mut loaded = archive.contents();
        loaded.load(&[crate::SpanRequest {
            file: FileId(1),
            version: None,
            span: Span { offset: 0, length: 4 },
        }])?;
        Ok(vec![
            ("instances", !archive.instances()?.is_empty()),
            ("homes", !archive.homes(None)?.is_empty()),
            ("files", !archive.files(None)?.is_empty()),
            ("table_counts", !archive.table_counts("somewhere")?.is_empty()),
            ("failed_captures", !archive.failed_captures(9)?.is_empty()),
            ("home_surveys", !archive.home_surveys("somewhere")?.is_empty()),
            ("sessions", !archive.sessions(&by_row, Page { limit: 1, after: None })?.is_empty()),
            ("session_rows_after", !archive.session_rows_after(-1)?.is_empty()),
            ("session_texts", !archive.session_texts(&by_row)?.is_empty()),
            ("session_source", archive.session_source(SessionId(1))?.is_some()),
            ("session_home", archive.session_home(SessionId(1))?.is_some()),
            ("session_in", archive.session_in(InstanceId(1), "one")?.is_some()),
            ("session_folders", !archive.session_folders(InstanceId(1))?.is_empty()),
            ("count_idle_since", archive.count_idle_since(InstanceId(1), Time::from_micros(1))? > 0),
            ("session_cwd", archive.session_cwd(SessionId(1))?.is_some()),
            ("session_keys", !archive.session_keys()?.is_empty()),
            ("failed_calls_between", failed > 0),
            ("changes_between", changed > 0),
            ("moments_between", moments > 0),
            ("turns_between", turns > 0),
            ("edits_between", edits > 0),
            ("failures_between", failures > 0),
            ("step_until", archive.step_until(SessionId(1), FileId(1), 3)?.is_some()),
            ("has_agents", archive.has_agents(SessionId(1))?),
            ("session_parts", !archive.session_parts(SessionId(1))?.is_empty()),
            ("links", !archive.links(SessionId(1))?.is_empty()),
            ("session_usage", !archive.session_usage(SessionId(1))?.is_empty()),
            ("session_totals", !archive.session_totals(None)?.is_empty()),
            ("usage_between", !archive.usage_between(SessionId(1), FileId(1), 0, 9)?.is_empty()),
            ("transcript_sources", !archive.transcript_sources(SessionId(1))?.is_empty()),
            ("transcript_files", !archive.transcript_files(SessionId(1))?.is_empty()),
            ("steps_in", steps.len() == 2),
            ("step_parts", message.is_some_and(|message| parts.calls(&message).len() == 1)),
            ("messages_at", !archive.messages_at(SessionId(1), &[(FileId(1), 0)])?.is_empty()),
            ("message_at", archive.message_at(SessionId(1), FileId(1), 0)?.is_some()),
            ("message_by_key", archive.message_by_key(SessionId(1), key)?.is_some()),
            ("message_lines", !archive.message_lines(SessionId(1), FileId(1), 0)?.is_empty()),
            ("prompt_before", archive.prompt_before(SessionId(1), FileId(1), 3)?.is_some()),
            ("call_at", archive.call_at(SessionId(1), FileId(1), 1)?.is_some()),
            ("call_by_key", archive.call_by_key(SessionId(1), call_key)?.is_some()),
            ("call_with_output", archive.call_with_output("outputs/x")?.is_some()),
            ("calls_of_kind", !archive.calls_of_kind(SessionId(1), CallKind::from_stored(0))?.is_empty()),
            ("calls_on_file", !archive.calls_on_file("/w/tool", 9)?.is_empty()),
            ("lines_written", !archive.lines_written()?.is_empty()),
            (
                "sessions_on_file",
                archive.sessions_on_file("one", "tool")?.iter().any(|(_, touched)| *touched),
            ),
            (
                "listed_calls",
                !archive.listed_calls(&called, None, (CallPart::All, CallOrder::Latest), 9)?.is_empty(),
            ),
            ("work_below", !archive.work_below(None, &WorkFilter::default())?.is_empty()),
            ("touched_files", !archive.touched_files("/tool", None, 9)?.is_empty()),
            ("calls_by_file_name", !archive.calls_by_file_name(&file_name)?.is_empty()),
            ("touches", !archive.touches(SessionId(1), FileId(1), 1)?.is_empty()),
            ("tree", !archive.tree(SessionId(1))?.is_empty()),
            ("node_at", archive.node_at(SessionId(1), FileId(1), 0)?.is_some()),
            ("steps_on_branch", archive.steps_on_branch(SessionId(1), FileId(1), 0)?.is_some()),
            ("count_steps", archive.count_steps(SessionId(1))? > 0),
            ("step_of_key", archive.step_of_key(SessionId(1), key)?.is_some()),
            ("steps_before", archive.steps_before(SessionId(1), FileId(1), 3)? > 0),
            ("place_before_step", archive.place_before_step(SessionId(1), 1)? == (0, 0)),
            ("each_prompt", prompts > 0),
            ("each_session", sessions > 0),
            ("each_call", calls > 0),
            ("line_owners", !archive.line_owners(SessionId(1), FileId(1), (0, 1 << 40))?.is_empty()),
            ("removed_rows", !archive.removed_rows("somewhere", RemovedKind::Message, 0, 0)?.is_empty()),
            ("node_names", !archive.node_names(SessionId(1))?.is_empty()),
            ("each_call_of", exported_calls > 0),
            ("each_touch_of", exported_touches > 0),
            ("session_changes", !archive.session_changes()?.is_empty()),
            ("session_days of messages", days[0]),
            ("session_days of calls", days[1]),
            ("session_days of usage", days[2]),
            ("session_days of touches", days[3]),
            ("message_counts", !archive.message_counts(SessionId(1))?.is_empty()),
            ("each_message", messages > 0),
            ("each_record", records > 0),
            ("session_of_typed", archive.session_of_typed(FileId(1), 2)?.is_some()),
            ("session_name", archive.session_name(SessionId(1))?.is_some()),
            ("session_outline", archive.session_outline(SessionId(1))?.is_some()),
            ("count_all_sessions", archive.count_all_sessions()? > 0),
            ("record_at", archive.record_at(FileId(1), 0)?.is_some()),
            ("record_session", archive.record_session("somewhere", "outputs", "x")?.is_some()),
            ("newest_records", !archive.newest_records("somewhere", &["outputs/x"])?.is_empty()),
            ("kept_copy", archive.kept_copy(FileId(1))?.is_some()),
            ("newest_content", archive.newest_content(InstanceId(1), "a")?.is_some()),
            ("accesses", !archive.accesses(None, None, 9)?.is_empty()),
            ("members", archive.members(Time::from_micros(0))?.iter().any(|member| member.name == "pat")),
            ("viewers", archive.viewers()?.iter().any(|viewer| viewer.name == "chief")),
            ("span", archive.contents().span(FileId(1), Span { offset: 0, length: 4 }).is_ok()),
            ("load", loaded.span(FileId(1), Span { offset: 0, length: 4 }).is_ok()),
        ])
    }

    #[test]
    fn a_member_reaches_no_row_of_another_by_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.connection.execute_batch(HOME).unwrap();
        let hash = blake3::hash(b"abcd");
        store.connection.execute("update blob set hash = ?1", [hash.as_bytes().as_slice()]).unwrap();
        for scope in [Scope::Owner, Scope::Organisation(OrganisationId(1)), Scope::Member(MemberId(1))] {
            let unseen: Vec<_> =
                reads(store.scoped(scope)).unwrap().into_iter().filter(|read| !read.1).collect();
            assert_eq!(unseen, [], "{scope:?}");
        }
        for scope in [Scope::Organisation(OrganisationId(2)), Scope::Member(MemberId(2))] {
            let seen: Vec<_> =
                reads(store.scoped(scope)).unwrap().into_iter().filter(|read| read.1).collect();
            assert_eq!(seen, [], "{scope:?}");
        }
    }
}
