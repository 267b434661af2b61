//! Lists of calls over all sessions, of every source that a filter includes.

use super::tools::ToolsQuery;
use crate::view::context::View;
use annals_core::{Result, Shown, Time};
use annals_store::{CallFilter, CallOrder, CallPart};

/// A call in a list.
#[derive(Debug)]
pub struct CallLine {
    pub source: &'static str,
    pub provider_label: &'static str,
    pub session_id: String,
    /// What people call its session.
    pub session: Option<Shown>,
    /// The id of the step that contains it.
    pub step: String,
    pub tool: Shown,
    pub title: Shown,
    pub cwd: Option<Shown>,
    pub at: Option<String>,
    pub failed: bool,
    pub exit_code: Option<i64>,
    pub milliseconds: Option<i64>,
}

impl View<'_> {
    /// The first calls in an order over some sources, of one tool or of all.
    pub fn calls(
        &self,
        queries: &[ToolsQuery],
        tool: Option<&str>,
        (part, order): (CallPart, CallOrder),
        limit: usize,
    ) -> Result<Vec<CallLine>> {
        let mut lines = Vec::new();
        for query in queries {
            let manifest = query.source.manifest();
            let project = query.project.as_deref().map(|project| self.project_named(project)).transpose()?;
            let filter = CallFilter {
                source: manifest.source,
                since: query.since.unwrap_or(Time::from_micros(i64::MIN)),
                until: query.until.unwrap_or(Time::from_micros(i64::MAX)),
                project: project.as_deref(),
                machine: query.machine.as_deref(),
            };
            for call in self.archive.listed_calls(&filter, tool, (part, order), limit as i64)? {
                let time = call.at.map_or(i64::MIN, Time::micros);
                lines.push((call, manifest, time));
            }
        }
        match order {
            CallOrder::Latest => lines.sort_by_key(|(.., time)| std::cmp::Reverse(*time)),
            CallOrder::Slowest => lines.sort_by_key(|(call, ..)| std::cmp::Reverse(call.milliseconds)),
        }
        lines.truncate(limit);
        let mut shown = Vec::with_capacity(lines.len());
        for (call, manifest, _) in lines {
            let Some(session) = self.session_of_row(call.session)? else { continue };
            shown.push(CallLine {
                source: manifest.source,
                provider_label: manifest.label,
                session: session.heading().cloned(),
                session_id: session.session_id,
                step: call.step.hex(),
                tool: self.door.raw(&call.tool),
                title: self.door.raw(&call.title),
                cwd: call.cwd.as_ref().map(|cwd| self.door.raw(cwd)),
                at: call.at.map(Time::rfc3339),
                failed: call.ok == Some(false),
                exit_code: call.exit_code,
                milliseconds: call.milliseconds,
            });
        }
        Ok(shown)
    }
}
