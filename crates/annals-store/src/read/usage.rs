//! Queries about tokens and tools: sums, the responses behind them, calls and files.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Row, ToSql, params};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{optional_raw, span, time};
use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{
    CallKind, FileId, Operation, Picodollars, Raw, Scope, SessionId, Span, Time, Tokens, day_number, is_utc,
};

/// What sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum UsageBy {
    Day,
    Model,
    Project,
    Session,
    Source,
    Member,
}

impl UsageBy {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn from_name(name: &str) -> Option<UsageBy> {
        name.parse().ok()
    }
}

/// Responses of one group, day, model and class of prompt length.
#[derive(Debug, Clone)]
pub struct UsageSum {
    /// A session, model, project, source or member; `None` for days and if unknown.
    pub group: Option<Raw>,
    pub source: String,
    /// In UTC: prices change at its midnight.
    pub day: i64,
    /// The day that people mean, in their time zone if it was asked for.
    pub shown_day: i64,
    pub model: Option<String>,
    pub prompt_class: i64,
    pub responses: i64,
    pub tokens: Tokens,
    /// What the client says that they cost; `None` if it has to be estimated.
    pub reported: Option<Picodollars>,
    /// The session that they all belong to, if the client says what it cost as a whole, but not what they cost.
    pub total_of: Option<SessionId>,
}

/// Selects responses on or after the day `since`, and of a session, model, project or source.
#[derive(Debug, Clone, Default)]
pub struct ResponseFilter {
    pub source: Option<String>,
    /// The row of a session.
    pub session: Option<SessionId>,
    pub model: Option<String>,
    /// A working directory and everything below it.
    pub project: Option<String>,
    pub since_day: Option<i64>,
    pub until_day: Option<i64>,
    /// From this moment on.
    pub since: Option<Time>,
    /// Before this moment.
    pub until: Option<Time>,
    /// Any of these models; all if empty.
    pub models: Vec<String>,
    /// Any of these working directories, and everything below them; all if empty.
    pub projects: Vec<String>,
    /// Count days in the time zone that people mean, not in UTC.
    pub local_days: bool,
    /// Only homes of this machine.
    pub machine: Option<String>,
}

impl ResponseFilter {
    /// Sums are kept by days of UTC; anything else has to be summed up from responses.
    fn needs_responses(&self, by: UsageBy) -> bool {
        let is_midnight = |time: &Time| *time == Time::from_day(time.day());
        let whole_days = self.since.iter().chain(&self.until).all(is_midnight);
        !whole_days || self.local_days && by == UsageBy::Day && !is_utc()
    }
}

/// One response, or a copy of one.
#[derive(Debug, Clone)]
pub struct ResponseRow {
    pub offset: crate::RowPlace,
    pub source: String,
    pub session: String,
    pub file: FileId,
    pub span: Span,
    pub at: Option<Time>,
    pub key: annals_core::ContentKey,
    pub model: Option<String>,
    pub tokens: Tokens,
    /// What the client says that it cost.
    pub reported: Option<Picodollars>,
    /// Its session, if the client says what that cost as a whole, but not what this response cost.
    pub total_of: Option<SessionId>,
    pub copied: bool,
    /// The session that it counts in, if this is a copy.
    pub counted_in: Option<String>,
}

/// Selects calls for analytics, optionally of sessions in or below a directory.
#[derive(Debug, Clone, Copy)]
pub struct CallFilter<'f> {
    pub source: &'f str,
    pub since: Time,
    /// Before this moment.
    pub until: Time,
    pub project: Option<&'f str>,
    pub machine: Option<&'f str>,
}

impl CallFilter<'_> {
    /// Values in the order of the parameters of a query.
    pub(super) fn values(&self) -> (&str, i64, Option<&str>, i64, Option<&str>) {
        let project = self.project.map(|project| project.trim_end_matches('/'));
        (self.source, self.since.micros(), project, self.until.micros(), self.machine)
    }
}

/// The id of a tool name or file path. Names are stored once for all homes; only reads of visible rows return an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(i64);

/// The fields of a call that analytics need.
#[derive(Debug)]
pub struct CallTally<'r> {
    pub name: NameId,
    pub kind: CallKind,
    pub title: &'r str,
    /// Made by a script, which is counted itself.
    pub inner: bool,
    pub ok: Option<bool>,
    /// How long it took.
    pub milliseconds: Option<i64>,
}

const SUMS: &str = "cast(sum(responses) as bigint), cast(sum(usage_sum.input) as bigint),
    cast(sum(usage_sum.output) as bigint), cast(sum(usage_sum.cache_read) as bigint),
    cast(sum(usage_sum.cache_write) as bigint), cast(sum(usage_sum.cache_write_hour) as bigint),
    cast(sum(usage_sum.reasoning) as bigint), cast(sum(usage_sum.cost) as bigint)";

/// The session of a response, if the client says what the session cost as a whole but not what its responses cost. Such a
/// figure includes inherited history and sub-agents, which are counted elsewhere.
pub(crate) const TOTAL_OF: &str = "(case when session.cost is not null and session.parent is null
    and not exists (select 1 from link where link.session = session.id and link.kind = 'copy')
    and not exists (select 1 from session child where child.instance = session.instance
                    and child.parent = session.key and child.parent_kind in ('sub_agent', 'review'))
    and not exists (select 1 from usage_sum own where own.session = session.id and own.reported = 1)
    then session.id end)";

/// What the client says that a session cost as a whole, and all its responses.
#[derive(Debug, Clone)]
pub struct SessionTotal {
    pub cost: Picodollars,
    pub sums: Vec<UsageSum>,
}

/// The order of sums: shown day, day, group, source, model, prompt class, whether the cost is reported, and the session
/// that has a total.
type SumOrder = (i64, i64, Vec<u8>, String, Option<String>, i64, bool, Option<SessionId>);

impl Archive<'_> {
    pub fn usage_sums(&self, by: UsageBy, filter: &ResponseFilter) -> Result<Vec<UsageSum>> {
        let group = match by {
            UsageBy::Day => "null",
            UsageBy::Model => "name.text",
            UsageBy::Project => "session.cwd",
            UsageBy::Session => "session.key",
            UsageBy::Source => "instance.source",
            UsageBy::Member => "(select name from member where member.id = instance.member)",
        };
        if filter.needs_responses(by) {
            return self.sum_responses(group, filter);
        }
        let (conditions, values) = conditions(filter, "usage_sum");
        let text = format!(
            "select {group}, instance.source, usage_sum.day, name.text, prompt_class, {SUMS}, {TOTAL_OF}
             from usage_sum join session on session.id = usage_sum.session
             join instance on instance.id = session.instance left join name on name.id = usage_sum.model
             where {{visible}}{conditions}
             group by 1, 2, 3, 4, 5, usage_sum.reported, 14 order by 3, 1, 2, 4, 5, usage_sum.reported, 14"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let rows = statement.query_map(values.as_slice(), usage_sum)?;
        let mut sums = rows.collect::<rusqlite::Result<Vec<UsageSum>>>()?;
        self.subtract_twins(&mut sums, group, filter)?;
        Ok(sums)
    }

    /// The same sums from the responses themselves, for stretches of time and days that are not those of UTC.
    fn sum_responses(&self, group: &str, filter: &ResponseFilter) -> Result<Vec<UsageSum>> {
        let (conditions, values) = conditions(filter, "usage");
        let twins = if self.store().has_members()? { " and not {twin:usage}" } else { "" };
        let text = format!(
            "select {group}, instance.source, usage.at, name.text, usage.input, usage.output, usage.cache_read,
                    usage.cache_write, usage.cache_write_hour, usage.reasoning, usage.cost, {TOTAL_OF}
             from session join usage on usage.session = session.id
             join instance on instance.id = session.instance left join name on name.id = usage.model
             where usage.copied = 0{twins} and {{visible}}{conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let mut rows = statement.query(values.as_slice())?;
        let mut sums: BTreeMap<SumOrder, UsageSum> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (group, source, model) =
                (optional_raw(row, 0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(3)?);
            let (at, tokens) = (time(row, 2)?, super::tokens(row, 4)?);
            let (reported, total_of) = (super::cost(row, 10)?, row.get::<_, Option<SessionId>>(11)?);
            let day = at.map_or(0, Time::day);
            let shown_day = if filter.local_days { at.map_or(0, day_number) } else { day };
            let prompt_class = tokens.prompt_class();
            let order = row.get_ref(0)?.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec();
            let sum = sums
                .entry((
                    shown_day,
                    day,
                    order,
                    source.clone(),
                    model.clone(),
                    prompt_class,
                    reported.is_some(),
                    total_of,
                ))
                .or_insert_with(|| UsageSum {
                    group,
                    source,
                    day,
                    shown_day,
                    model,
                    prompt_class,
                    responses: 0,
                    tokens: Tokens::default(),
                    reported: reported.map(|_| Picodollars::default()),
                    total_of,
                });
            sum.responses += 1;
            sum.tokens += tokens;
            sum.reported = sum.reported.map(|sum| sum + reported.unwrap_or_default());
        }
        Ok(sums.into_values().collect())
    }

    /// Subtracts responses that several members have, and that count for another one.
    fn subtract_twins(&self, sums: &mut Vec<UsageSum>, group: &str, filter: &ResponseFilter) -> Result<()> {
        if matches!(self.scope(), Scope::Member(_)) || !self.store().has_members()? {
            return Ok(());
        }
        let (conditions, values) = conditions(filter, "usage");
        let text = format!(
            "select {group}, instance.source, usage.at, name.text, usage.input, usage.output, usage.cache_read,
                    usage.cache_write, usage.cache_write_hour, usage.reasoning, usage.cost, {TOTAL_OF}
             from usage join session on session.id = usage.session
             join instance on instance.id = session.instance left join name on name.id = usage.model
             where usage.copied = 0 and {{visible}} and {{twin:usage}}{conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let mut rows = statement.query(values.as_slice())?;
        while let Some(row) = rows.next()? {
            let (group, source, model) =
                (optional_raw(row, 0)?, row.get_ref(1)?, row.get::<_, Option<String>>(3)?);
            let (at, tokens) = (time(row, 2)?, super::tokens(row, 4)?);
            let (reported, total_of) = (super::cost(row, 10)?, row.get::<_, Option<SessionId>>(11)?);
            let (source, day) = (source.as_str().unwrap_or_default(), at.map_or(0, Time::day));
            let counted = sums.iter_mut().find(|sum| {
                sum.group == group
                    && sum.source == source
                    && sum.day == day
                    && sum.model == model
                    && sum.prompt_class == tokens.prompt_class()
                    && sum.reported.is_some() == reported.is_some()
                    && sum.total_of == total_of
            });
            if let Some(sum) = counted {
                sum.responses -= 1;
                sum.tokens += tokens * -1;
                sum.reported = sum.reported.map(|sum| sum + reported.unwrap_or_default() * -1);
            }
        }
        sums.retain(|sum| sum.responses > 0);
        Ok(())
    }

    pub fn session_usage(&self, session: SessionId) -> Result<Vec<UsageSum>> {
        let text = format!(
            "select null, '', day, name.text, prompt_class, responses, input, output, cache_read, cache_write,
                    cache_write_hour, reasoning, usage_sum.cost, {TOTAL_OF}
             from usage_sum join session on session.id = usage_sum.session
             left join name on name.id = usage_sum.model
             where usage_sum.session = ?1 and {{visible_session}}"
        );
        let mut statement = self.prepare(&text)?;
        let rows = statement.query_map(params![session], usage_sum)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Sessions of which the client says what they cost as a whole: one, or all.
    pub fn session_totals(&self, only: Option<SessionId>) -> Result<HashMap<SessionId, SessionTotal>> {
        let one = if only.is_some() { " and session.id = ?1" } else { " and ?1 is null" };
        let text = format!(
            "select null, instance.source, day, name.text, prompt_class, responses, input, output, cache_read,
                    cache_write, cache_write_hour, reasoning, usage_sum.cost, null, session.id, session.cost
             from session join usage_sum on usage_sum.session = session.id
             join instance on instance.id = session.instance left join name on name.id = usage_sum.model
             where session.cost is not null and {{visible}}{one}"
        );
        let mut statement = self.prepare(&text)?;
        let mut rows = statement.query(params![only])?;
        let mut totals: HashMap<SessionId, SessionTotal> = HashMap::new();
        while let Some(row) = rows.next()? {
            let cost = super::cost(row, 15)?.unwrap_or_default();
            let total = totals.entry(row.get(14)?).or_insert(SessionTotal { cost, sums: Vec::new() });
            total.sums.push(usage_sum(row)?);
        }
        Ok(totals)
    }

    /// Visits responses and copies of responses after a place.
    pub fn each_response(
        &self,
        filter: &ResponseFilter,
        after: crate::RowPlace,
        visit: &mut dyn FnMut(ResponseRow) -> Result<bool>,
    ) -> Result<()> {
        let (conditions, mut values) = conditions(filter, "usage");
        let first = values.len() + 1;
        let crate::RowPlace(session, file, offset) = after;
        values.extend([session, file, offset].map(|value| Box::new(value) as Box<dyn ToSql>));
        let text = format!(
            "select usage.session, usage.file, usage.byte_offset, usage.length, instance.source, session.key, usage.at,
                    usage.key, name.text, usage.input, usage.output, usage.cache_read, usage.cache_write,
                    usage.cache_write_hour, usage.reasoning, usage.cost, {TOTAL_OF},
                    usage.copied or {{twin:usage}},
                    case when usage.copied or {{twin:usage}} then (select origin.key from usage original
                        join session origin on origin.id = original.session
                        join instance on instance.id = origin.instance
                        where original.key = usage.key and original.copied = 0 and {{visible}}
                        order by coalesce(original.at, 0), origin.key, instance.root, instance.id limit 1) end
             from usage join session on session.id = usage.session
             join instance on instance.id = session.instance left join name on name.id = usage.model
             where {{visible}}{conditions}
             and (usage.session, usage.file, usage.byte_offset) > (?{first}, ?{}, ?{})
             order by usage.session, usage.file, usage.byte_offset",
            first + 1,
            first + 2
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let mut rows = statement.query(values.as_slice())?;
        while let Some(row) = rows.next()? {
            if !visit(response_row(row)?)? {
                break;
            }
        }
        Ok(())
    }

    pub fn count_copied_responses(&self, filter: &ResponseFilter) -> Result<i64> {
        let (conditions, values) = conditions(filter, "usage");
        // Without members, an index has all copies.
        let twins = if self.store().has_members()? { " or {twin:usage}" } else { "" };
        let text = format!(
            "select count(*) from usage join session on session.id = usage.session
             join instance on instance.id = session.instance left join name on name.id = usage.model
             where (usage.copied = 1{twins}) and {{visible}}{conditions}"
        );
        let mut statement = self.prepare(&text)?;
        let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        Ok(statement.query_row(values.as_slice(), |row| row.get(0))?)
    }

    /// Visits every call of a source since a time, without copies. Sessions whose last row is older are skipped without
    /// reading their calls.
    pub fn each_call_tally(
        &self,
        filter: &CallFilter<'_>,
        visit: &mut dyn FnMut(CallTally<'_>),
    ) -> Result<()> {
        let text = sql!(
            "select tool_call.name, kind, tool_call.title, tool_call.parent is not null, ok,
                    coalesce(duration_ms, (ended_at - tool_call.at) / 1000)
             from instance join session on session.instance = instance.id
             join tool_call on tool_call.session = session.id
             where instance.source = $1 and {visible} and tool_call.copied = 0 and not {twin:tool_call}
             and coalesce(session.last_at, $2) >= $2 and coalesce(tool_call.at, session.last_at) >= $2
             and coalesce(tool_call.at, session.last_at, $2) < $4 and ($5 is null or instance.machine = $5)
             and ($3 is null or session.cwd = $3 or substr(session.cwd, 1, length($3) + 1) = $3 || '/')"
        );
        let mut statement = self.prepare(text)?;
        let (source, since, project, until, machine) = filter.values();
        let mut rows = statement.query(params![source, since, project, until, machine])?;
        while let Some(row) = rows.next()? {
            visit(CallTally {
                name: NameId(row.get(0)?),
                kind: CallKind::from_stored(row.get(1)?),
                title: row.get_ref(2)?.as_str().unwrap_or_default(),
                inner: row.get(3)?,
                ok: row.get(4)?,
                milliseconds: row.get(5)?,
            });
        }
        Ok(())
    }

    /// Visits every file touch since a time, without those of copied calls.
    pub fn each_touch_tally(
        &self,
        filter: &CallFilter<'_>,
        visit: &mut dyn FnMut(NameId, Operation),
    ) -> Result<()> {
        let text = sql!(
            "select file_touch.path, file_touch.operation
             from instance join session on session.instance = instance.id
             join file_touch on file_touch.session = session.id
             join tool_call on tool_call.session = file_touch.session and tool_call.file = file_touch.file
                  and tool_call.byte_offset = file_touch.byte_offset
             where instance.source = $1 and {visible} and tool_call.copied = 0 and not {twin:tool_call}
             and coalesce(session.last_at, $2) >= $2 and coalesce(tool_call.at, session.last_at) >= $2
             and coalesce(tool_call.at, session.last_at, $2) < $4 and ($5 is null or instance.machine = $5)
             and ($3 is null or session.cwd = $3 or substr(session.cwd, 1, length($3) + 1) = $3 || '/')"
        );
        let mut statement = self.prepare(text)?;
        let (source, since, project, until, machine) = filter.values();
        let mut rows = statement.query(params![source, since, project, until, machine])?;
        while let Some(row) = rows.next()? {
            visit(NameId(row.get(0)?), Operation::from_stored(row.get(1)?));
        }
        Ok(())
    }

    /// The text of a name.
    pub fn name(&self, id: NameId) -> Result<Raw> {
        let mut statement =
            self.store().connection.prepare_cached(sql!("select text from name where id = $1"))?;
        Ok(statement.query_row(params![id.0], |row| super::raw(row, 0))?)
    }
}

/// A session that ran in a directory or below it.
const BELOW: &str = "(session.cwd = # or substr(session.cwd, 1, length(#) + 1) = # || '/')";

fn conditions(filter: &ResponseFilter, table: &str) -> (String, Vec<Box<dyn ToSql>>) {
    let mut text = String::new();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    for (condition, list) in [(BELOW, &filter.projects), ("name.text = #", &filter.models)] {
        if !list.is_empty() {
            let parameters = list.iter().map(|value| {
                values.push(Box::new(value.trim_end_matches('/').to_owned()));
                condition.replace('#', &format!("?{}", values.len()))
            });
            text.push_str(&format!(" and ({})", parameters.collect::<Vec<_>>().join(" or ")));
        }
    }
    let mut add = |condition: &str, value: Box<dyn ToSql>| {
        values.push(value);
        text.push_str(" and ");
        text.push_str(&condition.replace('#', &format!("?{}", values.len())));
    };
    if let Some(source) = &filter.source {
        add("instance.source = #", Box::new(source.clone()));
    }
    if let Some(machine) = &filter.machine {
        add("instance.machine = #", Box::new(machine.clone()));
    }
    if let Some(session) = filter.session {
        add(&format!("{table}.session = #"), Box::new(session));
    }
    if let Some(model) = &filter.model {
        add("name.text = #", Box::new(model.clone()));
    }
    if let Some(project) = &filter.project {
        add(BELOW, Box::new(project.trim_end_matches('/').to_owned()));
    }
    // Sums have days, responses have times.
    let day = |day: i64| if table == "usage" { Time::from_day(day).micros() } else { day };
    let column = if table == "usage" { "coalesce(usage.at, 0)" } else { "usage_sum.day" };
    if let Some(since) = filter.since_day {
        add(&format!("{column} >= #"), Box::new(day(since)));
    }
    if let Some(until) = filter.until_day {
        add(&format!("{column} < #"), Box::new(day(until)));
    }
    let moment = |time: Time| if table == "usage" { time.micros() } else { time.day() };
    if let Some(since) = filter.since {
        add(&format!("{column} >= #"), Box::new(moment(since)));
        // Older sessions are skipped without reading their responses.
        add("coalesce(session.last_at, #) >= #", Box::new(since.micros()));
    }
    if let Some(until) = filter.until {
        add(&format!("{column} < #"), Box::new(moment(until)));
    }
    (text, values)
}

pub(crate) fn usage_sum(row: &Row<'_>) -> rusqlite::Result<UsageSum> {
    Ok(UsageSum {
        group: optional_raw(row, 0)?,
        source: row.get(1)?,
        day: row.get(2)?,
        shown_day: row.get(2)?,
        model: row.get(3)?,
        prompt_class: row.get(4)?,
        responses: row.get(5)?,
        tokens: super::tokens(row, 6)?,
        reported: super::cost(row, 12)?,
        total_of: row.get(13)?,
    })
}

fn response_row(row: &Row<'_>) -> rusqlite::Result<ResponseRow> {
    Ok(ResponseRow {
        offset: crate::RowPlace(row.get(0)?, row.get(1)?, row.get(2)?),
        file: row.get(1)?,
        span: span(row, 2)?,
        source: row.get(4)?,
        session: row.get(5)?,
        at: time(row, 6)?,
        key: annals_core::ContentKey::from_stored(row.get(7)?),
        model: row.get(8)?,
        tokens: super::tokens(row, 9)?,
        reported: super::cost(row, 15)?,
        total_of: row.get(16)?,
        copied: row.get(17)?,
        counted_in: row.get(18)?,
    })
}
