//! Queries about sessions: lists, counts, facts by file, and links to others.

use rusqlite::{OptionalExtension, Row, ToSql, params};

use super::{optional_raw, raw, time};
use crate::arrangement::{HIDDEN, OWN_NAME, TAGGED, has_value};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{ArrangedField, InstanceId, Raw, Role, Scope, SessionId, Tally, Time, Tokens};

/// What happens to hidden sessions. A session that is asked for by its id is never left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hiding {
    #[default]
    LeftOut,
    Included,
    Only,
}

#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    pub source: Option<String>,
    /// A working directory and everything below it.
    pub project: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// An exact id or a prefix.
    pub id: Option<String>,
    pub exact_id: Option<String>,
    pub branch: Option<String>,
    /// Part of the name of the working directory.
    pub project_part: Option<String>,
    /// Only the session with this row id.
    pub row: Option<SessionId>,
    pub model: Option<String>,
    /// Any of these working directories, and everything below them; all if empty.
    pub projects: Vec<String>,
    /// Any of these models; all if empty.
    pub models: Vec<String>,
    /// Words of the title, the working directory or the branch.
    pub words: Option<String>,
    pub with_agents: bool,
    /// Only sessions started by others.
    pub only_agents: bool,
    /// Only sessions that repeat rows of another.
    pub only_copies: bool,
    /// Only sessions started by the session with this key.
    pub parent: Option<String>,
    /// Only sessions in which a call failed.
    pub with_errors: bool,
    pub archived: Option<bool>,
    /// Only sessions that the client has deleted.
    pub only_gone: bool,
    pub hiding: Hiding,
    /// Only sessions with a star, on themselves or on a message.
    pub starred: bool,
    /// Only sessions with a note, on themselves or on a message.
    pub noted: bool,
    /// All of these tags must be on the session, on one of its messages or on its project.
    pub tags: Vec<String>,
    /// Only homes of this machine.
    pub machine: Option<String>,
    /// Not these rows: what matches in them is masked.
    pub without: Vec<SessionId>,
}

/// The texts of a session that a filter is compared with.
#[derive(Debug)]
pub struct SessionTexts {
    pub row: SessionId,
    pub key: String,
    pub title: Option<Raw>,
    pub cwd: Option<Raw>,
    pub git_branch: Option<Raw>,
    /// The name that a person gave it.
    pub name: Option<Raw>,
}

/// Where a page starts: after the last row of the previous page.
#[derive(Debug, Clone)]
pub struct Page {
    pub limit: i64,
    pub after: Option<(i64, String)>,
}

#[derive(Debug, Clone)]
pub struct SessionRow {
    pub id: SessionId,
    pub source: String,
    pub key: String,
    pub title: Option<Raw>,
    pub cwd: Option<Raw>,
    pub git_branch: Option<Raw>,
    pub parent: Option<String>,
    pub parent_kind: Option<String>,
    pub models: Vec<String>,
    pub archived: bool,
    pub started_at: Option<Time>,
    pub last_at: Option<Time>,
    /// All merged facts, as JSON.
    pub facts: Raw,
    pub messages: i64,
    pub user_messages: i64,
    pub assistant_messages: i64,
    pub tool_calls: i64,
    /// Input, output, cache read, cache write, cache write for an hour, reasoning.
    pub tokens: Tokens,
    pub gone: bool,
    /// The session whose rows this one repeats.
    pub copied_from: Option<String>,
}

#[derive(Debug, Clone)]
pub struct LinkRow {
    pub kind: String,
    pub other: String,
    pub position: Option<String>,
}

/// A cached count of sessions, by query and by the changes of this and of other connections at that time.
#[derive(Debug)]
pub(crate) struct CachedCount {
    of: (String, i64, u64),
    count: i64,
}

pub(crate) const SESSION_COLUMNS: &str =
    "session.id, instance.source, session.key, title, cwd, git_branch, parent, parent_kind, models, archived,
    started_at, last_at, facts, user_messages, assistant_messages, tool_calls, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, gone_at, messages,
    (select other from link where link.session = session.id and link.kind = 'copy')";

impl Archive<'_> {
    /// Newest first; sessions without a time come last.
    pub fn sessions(&self, filter: &SessionFilter, page: Page) -> Result<Vec<SessionRow>> {
        let (conditions, mut values) = session_conditions(filter);
        let (time, key) = page.after.unwrap_or((i64::MAX, String::new()));
        values.push(Box::new(time));
        values.push(Box::new(key));
        values.push(Box::new(page.limit));
        let count = values.len();
        // Without the sum, SQLite reads and sorts all sessions of a home, whatever the limit.
        let home = if filter.exact_id.is_some() { "session.instance" } else { "session.instance + 0" };
        let text = format!(
            "select {SESSION_COLUMNS} from session join instance on instance.id = {home}
             where {{visible}} and {conditions} and coalesce(last_at, {NO_TIME}) <= ?{time}
             and (coalesce(last_at, {NO_TIME}), session.key) < (?{time}, ?{})
             order by coalesce(last_at, {NO_TIME}) desc, session.key desc limit ?{count}",
            count - 1,
            time = count - 2,
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), session_row)?;
        let mut rows: Vec<SessionRow> = rows.collect::<rusqlite::Result<_>>()?;
        for row in &mut rows {
            self.count_once(row)?;
        }
        Ok(rows)
    }

    /// Takes from the totals of a session what another visible member has as well, and counts there. Whoever sees only
    /// one of them sees all of it.
    pub(crate) fn count_once(&self, row: &mut SessionRow) -> Result<()> {
        if matches!(self.scope(), Scope::Member(_)) || !self.store().has_members()? {
            return Ok(());
        }
        let joined = |table: &str| {
            format!(
                "from {table} join session on session.id = {table}.session
                 join instance on instance.id = session.instance
                 where {table}.session = ?1 and {table}.copied = 0 and {{visible}} and {{twin:{table}}}"
            )
        };
        let [message, rewritten, aside, record, rewritten_record] =
            [Tally::Message, Tally::Rewritten, Tally::Aside, Tally::Record, Tally::RewrittenRecord]
                .map(Tally::stored);
        let records = format!("tally in ({message}, {rewritten}, {record}, {rewritten_record})");
        let mut statement = self.prepare(&format!(
            "select count(*) filter (where tally in ({message}, {rewritten}, {aside})),
                    count(*) filter (where {records} and role = {}),
                    count(*) filter (where {records} and role = {}) {}",
            Role::User.stored(),
            Role::Assistant.stored(),
            joined("message")
        ))?;
        let twins: [i64; 3] =
            statement.query_row([row.id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        let mut statement = self.prepare(&format!("select count(*) {}", joined("tool_call")))?;
        let calls: i64 = statement.query_row([row.id], |row| row.get(0))?;
        let mut statement = self.prepare(&format!(
            "select coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0),
                    coalesce(sum(cache_write), 0), coalesce(sum(cache_write_hour), 0), coalesce(sum(reasoning), 0) {}",
            joined("usage")
        ))?;
        let tokens = statement.query_row([row.id], |row| super::tokens(row, 0))?;
        row.messages -= twins[0];
        row.user_messages -= twins[1];
        row.assistant_messages -= twins[2];
        row.tool_calls -= calls;
        row.tokens += tokens * -1;
        Ok(())
    }

    /// What a filter is compared with, of every session that matches it.
    pub fn session_texts(&self, filter: &SessionFilter) -> Result<Vec<SessionTexts>> {
        let (conditions, values) = session_conditions(filter);
        let text = format!(
            "select session.id, session.key, title, cwd, git_branch, {OWN_NAME}
             from session join instance on instance.id = session.instance where {{visible}} and {conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), |row| {
            Ok(SessionTexts {
                row: row.get(0)?,
                key: row.get(1)?,
                title: optional_raw(row, 2)?,
                cwd: optional_raw(row, 3)?,
                git_branch: optional_raw(row, 4)?,
                name: optional_raw(row, 5)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Every page of a list shows the count, so the last one is cached until the archive changes.
    pub fn count_sessions(&self, filter: &SessionFilter) -> Result<i64> {
        let mut statement = self.store().connection.prepare_cached("pragma data_version")?;
        let by_others: i64 = statement.query_row([], |row| row.get(0))?;
        let of =
            (format!("{:?} {filter:?}", self.scope()), by_others, self.store().connection.total_changes());
        if let Some(counted) = self.store().counted.borrow().as_ref().filter(|counted| counted.of == of) {
            return Ok(counted.count);
        }
        let count = self.count_uncached(filter)?;
        *self.store().counted.borrow_mut() = Some(CachedCount { of, count });
        Ok(count)
    }

    fn count_uncached(&self, filter: &SessionFilter) -> Result<i64> {
        let (conditions, values) = session_conditions(filter);
        let text = format!(
            "select count(*) from session join instance on instance.id = session.instance
             where {{visible}} and {conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        Ok(statement.query_row(values.as_slice(), |row| row.get(0))?)
    }

    /// The source of a session's row.
    pub fn session_source(&self, session: SessionId) -> Result<Option<String>> {
        let mut statement = self.prepare(sql!(
            "select instance.source from session join instance on instance.id = session.instance
                 where session.id = $1 and {visible}"
        ))?;
        Ok(statement.query_row(params![session], |row| row.get(0)).optional()?)
    }

    /// The working directory of a session.
    pub fn session_cwd(&self, session: SessionId) -> Result<Option<Raw>> {
        let mut statement =
            self.prepare(sql!("select cwd from session where id = $1 and {visible_session}"))?;
        Ok(statement.query_row(params![session], |row| optional_raw(row, 0)).optional()?.flatten())
    }

    /// The ids of all sessions in order, sub-agents included.
    pub fn session_keys(&self) -> Result<Vec<String>> {
        let mut statement = self.prepare(sql!(
            "select distinct session.key from session join instance on instance.id = session.instance
             where {visible} order by 1"
        ))?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether other sessions were started by this one.
    pub fn has_agents(&self, session: SessionId) -> Result<bool> {
        let mut statement = self.prepare(sql!(
            "select exists (select 1 from session child join session on session.id = $1
                            where child.instance = session.instance and child.parent = session.key
                            and child.parent_kind in ('sub_agent', 'review') and {visible_session})"
        ))?;
        Ok(statement.query_row(params![session], |row| row.get(0))?)
    }

    /// Folders that sessions of a home ran in.
    pub fn session_folders(&self, instance: InstanceId) -> Result<Vec<String>> {
        let mut statement = self.prepare(sql!(
            "select distinct cwd from session where instance = $1 and cwd is not null and {visible_instance}
             order by cwd"
        ))?;
        let rows = statement.query_map(params![instance], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Sessions of a home whose transcript the client still has and whose last message is older.
    pub fn count_idle_since(&self, instance: InstanceId, since: Time) -> Result<i64> {
        let mut statement = self.prepare(sql!(
            "select count(*) from session where instance = $1 and last_at < $2 and gone_at is null and {visible_instance}
             and (parent_kind is null or parent_kind not in ('sub_agent', 'review'))
             and exists (select 1 from session_part part where part.session = session.id and part.rank = 0)"
        ))?;
        Ok(statement.query_row(params![instance, since.micros()], |row| row.get(0))?)
    }

    /// Facts about a session by file: `(path, rank, facts)`, highest rank first.
    pub fn session_parts(&self, session: SessionId) -> Result<Vec<(String, i64, Raw)>> {
        let mut statement = self.prepare(sql!(
            "select file.path, part.rank, part.facts from session_part part join file on file.id = part.file
             where part.session = $1 and {visible_session} order by part.rank desc, file.path"
        ))?;
        let rows =
            statement.query_map(params![session], |row| Ok((row.get(0)?, row.get(1)?, raw(row, 2)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub fn links(&self, session: SessionId) -> Result<Vec<LinkRow>> {
        let mut statement = self.prepare(sql!(
            "select kind, other, position from link where session = $1 and {visible_session} order by kind, other"
        ))?;
        let rows = statement.query_map(params![session], |row| {
            Ok(LinkRow { kind: row.get(0)?, other: row.get(1)?, position: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// A session that ran in a directory or below it.
const BELOW: &str = "(cwd = # or substr(cwd, 1, length(#) + 1) = # || '/')";
/// A session that used a model.
const USED: &str = "models like '%\"' || # || '\"%' escape '\\'";

/// Sorts after every real time.
const NO_TIME: i64 = i64::MIN + 1;

pub(crate) fn session_conditions(filter: &SessionFilter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut conditions = vec!["1 = 1".to_owned()];
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    for (condition, list) in [(BELOW, &filter.projects), (USED, &filter.models)] {
        if !list.is_empty() {
            let parameters = list.iter().map(|value| {
                let value =
                    if condition == USED { like_text(value) } else { value.trim_end_matches('/').to_owned() };
                values.push(Box::new(value));
                condition.replace('#', &format!("?{}", values.len()))
            });
            conditions.push(format!("({})", parameters.collect::<Vec<_>>().join(" or ")));
        }
    }
    let mut add = |condition: &str, value: Box<dyn ToSql>| {
        values.push(value);
        conditions.push(condition.replace('#', &format!("?{}", values.len())));
    };
    if let Some(source) = &filter.source {
        add("instance.source = #", Box::new(source.clone()));
    }
    if let Some(machine) = &filter.machine {
        add("instance.machine = #", Box::new(machine.clone()));
    }
    if let Some(project) = &filter.project {
        add(BELOW, Box::new(project.trim_end_matches('/').to_owned()));
    }
    if let Some(since) = filter.since {
        add("last_at >= #", Box::new(since.micros()));
    }
    if let Some(until) = filter.until {
        add("coalesce(started_at, last_at) < #", Box::new(until.micros()));
    }
    if let Some(id) = &filter.id {
        add("substr(session.key, 1, length(#)) = #", Box::new(id.clone()));
    }
    if let Some(id) = &filter.exact_id {
        add("session.key = #", Box::new(id.clone()));
    }
    if let Some(branch) = &filter.branch {
        add(
            "lower(git_branch) like '%' || # || '%' escape '\\'",
            Box::new(like_text(&branch.to_lowercase())),
        );
    }
    if let Some(part) = &filter.project_part {
        add("lower(cwd) like '%' || # || '%' escape '\\'", Box::new(like_text(&part.to_lowercase())));
    }
    if let Some(row) = filter.row {
        add("session.id = #", Box::new(row));
    }
    if let Some(model) = &filter.model {
        add(USED, Box::new(like_text(model)));
    }
    if let Some(words) = &filter.words {
        for word in words.split_whitespace() {
            let columns = ["title", "cwd", "git_branch", "session.key", OWN_NAME];
            let columns = columns.map(|column| format!("lower({column}) like '%' || # || '%' escape '\\'"));
            add(&format!("({})", columns.join(" or ")), Box::new(like_text(&word.to_lowercase())));
        }
    }
    for tag in &filter.tags {
        add(TAGGED, Box::new(tag.clone()));
    }
    if let Some(parent) = &filter.parent {
        add("parent = #", Box::new(parent.clone()));
    }
    if let Some(archived) = filter.archived {
        add("archived = #", Box::new(archived));
    }
    if !filter.without.is_empty() {
        let rows: Vec<String> = filter.without.iter().map(SessionId::to_string).collect();
        conditions.push(format!("session.id not in ({})", rows.join(", ")));
    }
    let is_asked_for = filter.row.is_some() || filter.id.is_some() || filter.exact_id.is_some();
    match filter.hiding {
        Hiding::LeftOut if !is_asked_for => conditions.push(format!("not {HIDDEN}")),
        Hiding::Only => conditions.push(HIDDEN.into()),
        Hiding::LeftOut | Hiding::Included => {}
    }
    if filter.starred {
        conditions.push(has_value(ArrangedField::Star));
    }
    if filter.noted {
        conditions.push(has_value(ArrangedField::Note));
    }
    if filter.only_gone {
        conditions.push("gone_at is not null".into());
    }
    if filter.with_errors {
        conditions.push(
            "exists (select 1 from tool_call failed where failed.session = session.id and failed.ok = 0)"
                .into(),
        );
    }
    if filter.only_copies {
        conditions.push(
            "exists (select 1 from link where link.session = session.id and link.kind = 'copy')".into(),
        );
    }
    if filter.only_agents {
        conditions.push("parent_kind in ('sub_agent', 'review')".into());
    } else if !filter.with_agents {
        conditions.push("(parent_kind is null or parent_kind not in ('sub_agent', 'review'))".into());
    }
    (conditions.join(" and "), values)
}

/// Escapes text for `like`.
pub(crate) fn like_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let models: String = row.get(8)?;
    Ok(SessionRow {
        id: row.get(0)?,
        source: row.get(1)?,
        key: row.get(2)?,
        title: optional_raw(row, 3)?,
        cwd: optional_raw(row, 4)?,
        git_branch: optional_raw(row, 5)?,
        parent: row.get(6)?,
        parent_kind: row.get(7)?,
        models: serde_json::from_str(&models).unwrap_or_default(),
        archived: row.get(9)?,
        started_at: time(row, 10)?,
        last_at: time(row, 11)?,
        facts: raw(row, 12)?,
        user_messages: row.get(13)?,
        assistant_messages: row.get(14)?,
        tool_calls: row.get(15)?,
        tokens: super::tokens(row, 16)?,
        gone: row.get::<_, Option<i64>>(22)?.is_some(),
        messages: row.get(23)?,
        copied_from: row.get(24)?,
    })
}
