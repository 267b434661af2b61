//! The tables of an analytical export: their columns, and how they are divided by source and month.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use super::columns::{Column, ColumnKind, ParquetFile};
use super::{ExportedSession, FORM, stamp_of};
use crate::view::context::View;
use crate::view::library::LibraryQuery;
use annals_core::{Result, Time};
use annals_store::TimedRows;

/// A table of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExportTable {
    Sessions,
    Messages,
    ToolCalls,
    Usage,
    FileTouches,
    AuthoredItems,
}

/// The rows of one table, source and month; they are one file.
#[derive(Debug)]
pub struct Partition {
    pub table: ExportTable,
    pub source: String,
    /// `2026-11`, in UTC; none for rows without a time.
    pub month: Option<String>,
    /// Equal stamps mean that nothing changed.
    pub stamp: String,
    /// The sessions with rows in it, by their index.
    pub(super) sessions: Vec<usize>,
}

impl Partition {
    /// `usage/source=…/month=2026-11/part-0.parquet`, as DuckDB and Spark expect it.
    pub fn path(&self) -> String {
        let month = self.month.as_deref().unwrap_or("__HIVE_DEFAULT_PARTITION__");
        format!("{}/source={}/month={month}/part-0.parquet", self.table.name(), self.source)
    }
}

const fn required(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind, required: true }
}

const fn optional(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind, required: false }
}

const SESSIONS: &[Column] = &[
    required("session_id", ColumnKind::Text),
    optional("parent_session_id", ColumnKind::Name),
    optional("parent_kind", ColumnKind::Name),
    optional("copied_from", ColumnKind::Name),
    optional("title", ColumnKind::Text),
    optional("project", ColumnKind::Name),
    optional("git_branch", ColumnKind::Name),
    optional("model", ColumnKind::Name),
    optional("models", ColumnKind::Name),
    optional("client_version", ColumnKind::Name),
    optional("started_at", ColumnKind::Moment),
    optional("first_message_at", ColumnKind::Moment),
    optional("last_message_at", ColumnKind::Moment),
    required("message_count", ColumnKind::Integer),
    required("user_message_count", ColumnKind::Integer),
    required("assistant_message_count", ColumnKind::Integer),
    required("tool_call_count", ColumnKind::Integer),
    required("input_tokens", ColumnKind::Integer),
    required("output_tokens", ColumnKind::Integer),
    required("cache_read_tokens", ColumnKind::Integer),
    required("cache_write_tokens", ColumnKind::Integer),
    required("reasoning_tokens", ColumnKind::Integer),
    required("total_tokens", ColumnKind::Integer),
    optional("cost_usd", ColumnKind::Number),
    required("billing_source", ColumnKind::Name),
    required("is_archived", ColumnKind::Boolean),
    required("is_deleted", ColumnKind::Boolean),
    required("has_transcript", ColumnKind::Boolean),
];

const MESSAGES: &[Column] = &[
    required("session_id", ColumnKind::Name),
    required("message_id", ColumnKind::Text),
    optional("occurred_at", ColumnKind::Moment),
    required("role", ColumnKind::Name),
    required("kind", ColumnKind::Name),
    optional("model", ColumnKind::Name),
    required("is_copy", ColumnKind::Boolean),
    required("is_counted", ColumnKind::Boolean),
    required("bytes", ColumnKind::Integer),
    required("text", ColumnKind::Text),
];

const TOOL_CALLS: &[Column] = &[
    required("session_id", ColumnKind::Name),
    required("call_id", ColumnKind::Text),
    optional("occurred_at", ColumnKind::Moment),
    required("name", ColumnKind::Name),
    required("kind", ColumnKind::Name),
    required("title", ColumnKind::Text),
    optional("model", ColumnKind::Name),
    optional("ok", ColumnKind::Boolean),
    optional("exit_code", ColumnKind::Integer),
    optional("duration_ms", ColumnKind::Integer),
    required("is_inner", ColumnKind::Boolean),
    required("is_copy", ColumnKind::Boolean),
    required("is_counted", ColumnKind::Boolean),
];

const USAGE: &[Column] = &[
    required("session_id", ColumnKind::Name),
    required("response_id", ColumnKind::Text),
    optional("occurred_at", ColumnKind::Moment),
    optional("project", ColumnKind::Name),
    optional("model", ColumnKind::Name),
    required("input_tokens", ColumnKind::Integer),
    required("output_tokens", ColumnKind::Integer),
    required("cache_read_tokens", ColumnKind::Integer),
    required("cache_write_tokens", ColumnKind::Integer),
    required("reasoning_tokens", ColumnKind::Integer),
    required("total_tokens", ColumnKind::Integer),
    optional("cost_usd", ColumnKind::Money),
];

const FILE_TOUCHES: &[Column] = &[
    required("session_id", ColumnKind::Name),
    required("call_id", ColumnKind::Text),
    optional("occurred_at", ColumnKind::Moment),
    required("path", ColumnKind::Name),
    required("operation", ColumnKind::Name),
    optional("before_start", ColumnKind::Integer),
    optional("before_end", ColumnKind::Integer),
    optional("after_start", ColumnKind::Integer),
    optional("after_end", ColumnKind::Integer),
    required("is_copy", ColumnKind::Boolean),
];

const AUTHORED_ITEMS: &[Column] = &[
    required("item_id", ColumnKind::Name),
    required("kind", ColumnKind::Name),
    required("family", ColumnKind::Name),
    required("scope", ColumnKind::Name),
    optional("project", ColumnKind::Name),
    required("name", ColumnKind::Name),
    required("version", ColumnKind::Integer),
    required("changed_at", ColumnKind::Moment),
    optional("deleted_at", ColumnKind::Moment),
    required("bytes", ColumnKind::Integer),
    required("path", ColumnKind::Name),
    required("text", ColumnKind::Text),
];

impl ExportTable {
    pub const ALL: [ExportTable; 6] = [
        ExportTable::Sessions,
        ExportTable::Messages,
        ExportTable::ToolCalls,
        ExportTable::Usage,
        ExportTable::FileTouches,
        ExportTable::AuthoredItems,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ExportTable::Sessions => "sessions",
            ExportTable::Messages => "messages",
            ExportTable::ToolCalls => "tool_calls",
            ExportTable::Usage => "usage",
            ExportTable::FileTouches => "file_touches",
            ExportTable::AuthoredItems => "authored_items",
        }
    }

    fn columns(self) -> &'static [Column] {
        match self {
            ExportTable::Sessions => SESSIONS,
            ExportTable::Messages => MESSAGES,
            ExportTable::ToolCalls => TOOL_CALLS,
            ExportTable::Usage => USAGE,
            ExportTable::FileTouches => FILE_TOUCHES,
            ExportTable::AuthoredItems => AUTHORED_ITEMS,
        }
    }

    fn timed_rows(self) -> Option<TimedRows> {
        match self {
            ExportTable::Messages => Some(TimedRows::Messages),
            ExportTable::ToolCalls => Some(TimedRows::Calls),
            ExportTable::Usage => Some(TimedRows::Usage),
            ExportTable::FileTouches => Some(TimedRows::Touches),
            ExportTable::Sessions | ExportTable::AuthoredItems => None,
        }
    }
}

/// The month of a time, `2026-11`.
pub(super) fn month_of(at: Option<Time>) -> Option<String> {
    at.map(|at| at.date().chars().take(7).collect())
}

/// A session is listed in the month of its first message.
pub(super) fn session_month(exported: &ExportedSession) -> Option<String> {
    month_of(exported.session.first_message_at.as_deref().and_then(Time::parse))
}

type Parts = BTreeMap<(String, Option<String>), Vec<usize>>;

impl View<'_> {
    /// The files that all tables of these sessions are divided into. Authored items belong to no session: they are those
    /// of the given source, or of all.
    pub fn partitions(&self, sessions: &[ExportedSession], source: Option<&str>) -> Result<Vec<Partition>> {
        let rows: HashMap<_, usize> =
            sessions.iter().enumerate().map(|(at, exported)| (exported.session.row, at)).collect();
        let state = self.archive.state()?;
        let common = [FORM, env!("CARGO_PKG_VERSION")].map(str::to_owned);
        let mut partitions = Vec::new();
        for table in ExportTable::ALL {
            let mut parts = Parts::new();
            let mut add = |at: usize, month: Option<String>| {
                let list = parts.entry((sessions[at].session.source.clone(), month)).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            };
            if table == ExportTable::Sessions {
                sessions.iter().enumerate().for_each(|(at, exported)| add(at, session_month(exported)));
            }
            if let Some(kind) = table.timed_rows() {
                for (row, day) in self.archive.session_days(kind)? {
                    if let Some(at) = rows.get(&row) {
                        add(*at, month_of(day.map(Time::from_day)));
                    }
                }
            }
            for ((source, month), list) in parts {
                let mut stamp = common.to_vec();
                stamp.extend(
                    [state.rebuilds, i64::from(self.door.reveals())].map(|number| number.to_string()),
                );
                for exported in list.iter().filter_map(|at| sessions.get(*at)) {
                    let session = &exported.session;
                    stamp.push(format!(
                        "{} {} {} {} {} {:?}",
                        session.session_id,
                        exported.changed,
                        session.message_count,
                        session.tool_call_count,
                        session.tokens.total,
                        session.cost_usd
                    ));
                }
                partitions.push(Partition { table, source, month, stamp: stamp_of(&stamp), sessions: list });
            }
        }
        partitions.extend(self.item_partitions(source, &common)?);
        partitions.sort_by_key(Partition::path);
        Ok(partitions)
    }

    fn item_partitions(&self, source: Option<&str>, common: &[String]) -> Result<Vec<Partition>> {
        let query = LibraryQuery { source: source.map(str::to_owned), ..LibraryQuery::default() };
        let mut parts: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
        self.each_item(&query, &mut |item| {
            let month = month_of(Some(item.row.changed_at));
            let stamp = parts.entry((item.source.manifest().source.to_owned(), month)).or_default();
            stamp.push(format!("{}/{} {:?}", item.stream.name, item.row.key, item.row));
            Ok(())
        })?;
        let reveals = self.door.reveals().to_string();
        Ok(parts
            .into_iter()
            .map(|((source, month), rows)| Partition {
                table: ExportTable::AuthoredItems,
                source,
                month,
                stamp: stamp_of(&[common.to_vec(), vec![reveals.clone()], rows].concat()),
                sessions: Vec::new(),
            })
            .collect())
    }

    /// Writes a file of a table; returns the number of rows.
    pub fn write_partition(
        &self,
        partition: &Partition,
        sessions: &[ExportedSession],
        sink: impl Write + Send,
    ) -> Result<u64> {
        let mut file = ParquetFile::new(partition.table.name(), partition.table.columns(), sink)?;
        self.each_row(partition, sessions, &mut |row| file.push(row))?;
        file.finish()
    }
}
