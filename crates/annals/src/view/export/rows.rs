//! The rows of each table, session by session, every text through the door.

use super::ExportedSession;
use super::columns::Cell;
use super::tables::{ExportTable, Partition, month_of};
use crate::view::context::View;
use crate::view::library::LibraryQuery;
use crate::view::session::entry_builder::EntryBuilder;
use crate::view::session::list::{SessionView, TokenSums};
use crate::view::session::transcript::BlockView;
use crate::view::usage::reported::SessionTotals;
use annals_core::{Picodollars, Result, Shown, Time};
use annals_sources::by_name;
use annals_store::{ResponseFilter, RowPlace, Stretch};

/// Messages read at a time.
const STRETCH: i64 = 200;

type Visit<'v> = dyn FnMut(Vec<Cell>) -> Result<()> + 'v;

impl View<'_> {
    pub(super) fn each_row(
        &self,
        partition: &Partition,
        sessions: &[ExportedSession],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        if partition.table == ExportTable::AuthoredItems {
            return self.item_rows(partition, visit);
        }
        for exported in partition.sessions.iter().filter_map(|at| sessions.get(*at)) {
            let session = &exported.session;
            match partition.table {
                ExportTable::Sessions => visit(session_row(session))?,
                ExportTable::Messages => self.message_rows(session, partition, visit)?,
                ExportTable::ToolCalls => self.call_rows(session, partition, visit)?,
                ExportTable::Usage => self.usage_rows(session, partition, visit)?,
                ExportTable::FileTouches => self.touch_rows(session, partition, visit)?,
                ExportTable::AuthoredItems => {}
            }
        }
        Ok(())
    }

    fn message_rows(
        &self,
        session: &SessionView,
        partition: &Partition,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(source) = by_name(&session.source) else { return Ok(()) };
        let builder = EntryBuilder { view: self, source, full: true, changes: false };
        let counts = self.archive.message_counts(session.row)?;
        let mut contents = self.archive.contents();
        for file in self.archive.transcript_files(session.row)? {
            let mut after = -1;
            loop {
                let stretch = Stretch { session: session.row, file, after, limit: STRETCH, copies: true };
                let rows = self.archive.messages_in(&stretch)?;
                let Some(last) = rows.last() else { break };
                after = last.span.offset as i64;
                for row in rows.iter().filter(|row| month_of(row.at) == partition.month) {
                    let entry = builder.message(&mut contents, row)?;
                    let texts = entry.blocks.iter().filter_map(|block| match block {
                        BlockView::Text { text, .. } | BlockView::Thinking { text, .. } => {
                            Some(text.as_str())
                        }
                        _ => None,
                    });
                    let count = counts.get(&(row.file, row.span.offset));
                    visit(vec![
                        session.session_id.as_str().into(),
                        row.key.hex().into(),
                        row.at.into(),
                        row.role.name().into(),
                        row.kind.name().into(),
                        self.shown(row.model.as_deref()),
                        count.is_some_and(|count| count.is_copy).into(),
                        count.is_some_and(|count| count.is_counted).into(),
                        (row.span.length as i64).into(),
                        texts.collect::<Vec<_>>().join("\n\n").into(),
                    ])?;
                }
            }
        }
        Ok(())
    }

    fn call_rows(&self, session: &SessionView, partition: &Partition, visit: &mut Visit<'_>) -> Result<()> {
        self.archive.each_call_of(session.row, &mut |row, is_copy| {
            if month_of(row.at) != partition.month {
                return Ok(());
            }
            let is_inner = row.parent.is_some();
            let cells = vec![
                session.session_id.as_str().into(),
                row.key.hex().into(),
                row.at.into(),
                self.door.text(&row.name).to_string().into(),
                row.kind.name().into(),
                self.door.raw(&row.title).to_string().into(),
                self.shown(row.model.as_deref()),
                row.ok.into(),
                row.exit_code.into(),
                row.duration_ms.into(),
                is_inner.into(),
                is_copy.into(),
                (!is_inner && !is_copy).into(),
            ];
            Ok(visit(cells)?)
        })?;
        Ok(())
    }

    /// Copies are left out: each response is there once.
    fn usage_rows(&self, session: &SessionView, partition: &Partition, visit: &mut Visit<'_>) -> Result<()> {
        let filter = ResponseFilter { session: Some(session.row), ..ResponseFilter::default() };
        let mut totals = SessionTotals::default();
        self.archive.each_response(&filter, RowPlace::default(), &mut |row| {
            if row.copied || month_of(row.at) != partition.month {
                return Ok(true);
            }
            let cost = self.response_cost(&row, &mut totals, Some(session.row))?.cost;
            let tokens = TokenSums::from(row.tokens);
            let cells = vec![
                session.session_id.as_str().into(),
                row.key.hex().into(),
                row.at.into(),
                session.cwd.as_ref().map(Shown::to_string).into(),
                self.shown(row.model.as_deref()),
                tokens.input.into(),
                tokens.output.into(),
                tokens.cache_read.into(),
                tokens.cache_write.into(),
                tokens.reasoning.into(),
                tokens.total.into(),
                cost.map(Picodollars::stored).into(),
            ];
            visit(cells)?;
            Ok(true)
        })?;
        Ok(())
    }

    fn touch_rows(&self, session: &SessionView, partition: &Partition, visit: &mut Visit<'_>) -> Result<()> {
        self.archive.each_touch_of(session.row, &mut |row| {
            if month_of(row.at) != partition.month {
                return Ok(());
            }
            let start = |range: Option<annals_core::Range>| range.map(|range| i64::from(range.start)).into();
            let end = |range: Option<annals_core::Range>| range.map(|range| i64::from(range.end)).into();
            let cells = vec![
                session.session_id.as_str().into(),
                row.call.hex().into(),
                row.at.into(),
                self.door.raw(&row.touch.path).to_string().into(),
                row.touch.operation.name().into(),
                start(row.touch.before),
                end(row.touch.before),
                start(row.touch.after),
                end(row.touch.after),
                row.is_copy.into(),
            ];
            Ok(visit(cells)?)
        })?;
        Ok(())
    }

    fn item_rows(&self, partition: &Partition, visit: &mut Visit<'_>) -> Result<()> {
        let query = LibraryQuery { source: Some(partition.source.clone()), ..LibraryQuery::default() };
        let mut contents = self.archive.contents();
        self.each_item(&query, &mut |version| {
            if month_of(Some(version.row.changed_at)) != partition.month {
                return Ok(());
            }
            let text = self.item_text(&version, &mut contents)?;
            let item = self.item_of(&version);
            visit(vec![
                item.id.to_string().into(),
                item.kind.into(),
                family_name(item.family).into(),
                item.scope.into(),
                item.project.map(|project| project.to_string()).into(),
                item.name.to_string().into(),
                item.version.into(),
                version.row.changed_at.into(),
                version.row.deleted_at.into(),
                (item.bytes as i64).into(),
                item.path.to_string().into(),
                text.into(),
            ])
        })
    }

    fn shown(&self, text: Option<&str>) -> Cell {
        text.map(|text| self.door.text(text).to_string()).into()
    }
}

fn session_row(session: &SessionView) -> Vec<Cell> {
    let time = |at: &Option<String>| at.as_deref().and_then(Time::parse).into();
    let shown = |text: &Option<Shown>| text.as_ref().map(Shown::to_string).into();
    let tokens = &session.tokens;
    vec![
        session.session_id.as_str().into(),
        session.parent_session_id.clone().into(),
        session.parent_kind.clone().into(),
        session.copied_from.clone().into(),
        shown(&session.title),
        shown(&session.cwd),
        shown(&session.git_branch),
        session.models.first().cloned().into(),
        Some(session.models.join(", ")).filter(|models| !models.is_empty()).into(),
        shown(&session.client_version),
        time(&session.started_at),
        time(&session.first_message_at),
        time(&session.last_message_at),
        session.message_count.into(),
        session.user_message_count.into(),
        session.assistant_message_count.into(),
        session.tool_call_count.into(),
        tokens.input.into(),
        tokens.output.into(),
        tokens.cache_read.into(),
        tokens.cache_write.into(),
        tokens.reasoning.into(),
        tokens.total.into(),
        session.cost_usd.into(),
        session.billing_source.into(),
        session.archived.into(),
        session.source_gone.into(),
        (!session.history_only).into(),
    ]
}

fn family_name(family: annals_core::Family) -> String {
    serde_json::to_value(family).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
